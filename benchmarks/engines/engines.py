"""Simulated tasks per second of the batch engine beside the reference engine, SimPy and Ciw.

Covers: the puzzle, 600 tasks a run, as shipped and with random steps and publishing.
Scenario: many replications in the batch engine, a few in the reference engine, and M/M/4 in Ciw and
  in plain SimPy (see ../reference_engine.py); all in one process, so that ratios mean something on
  a noisy machine.
Run: python benchmarks/engines/engines.py [--replications 10000] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
from pathlib import Path
from time import perf_counter

from celerysim import Scenario, load_scenario, simulate
from celerysim.batch import simulate_many

sys.path.insert(0, str(Path(__file__).parents[1]))
from reference_engine import ciw_tasks, simpy_tasks

RANDOM = [
    "tasks.profiles.short.steps=[{cpu_s={kind='lognormal', mean=0.05, sd=0.01}}, "
    "{io_s={kind='lognormal', mean=1.5, sd=0.05}}]",
    "producer.publish_s={kind='uniform', low=0.043, high=0.064}",
]


def batch_speed(scenario: Scenario, replications: int) -> float:
    began = perf_counter()
    tasks = sum(run["tasks"] for run in simulate_many([scenario], replications))
    return tasks / (perf_counter() - began)


def reference_speed(scenario: Scenario, replications: int) -> float:
    began = perf_counter()
    runs = [simulate(scenario, replication=i, levels=False) for i in range(replications)]
    return sum(len(run.tasks) for run in runs) / (perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=10_000)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    queues = {"plain SimPy, M/M/4": simpy_tasks}
    try:
        import ciw  # noqa: F401 - only whether it is there

        queues["Ciw, M/M/4"] = ciw_tasks
    except ImportError:
        print("Ciw is not installed: pip install 'celerysim[benchmark]'")
    speeds = {}
    for name, model in queues.items():
        began = perf_counter()
        speeds[name] = model(40_000) / (perf_counter() - began)
        print(f"{name:<28}{speeds[name]:>12,.0f} tasks/s")
    for name, overrides in (("puzzle", []), ("puzzle, random", RANDOM)):
        scenario = load_scenario("puzzle", overrides)
        reference = reference_speed(scenario, 30)
        print(f"{name + ', reference':<28}{reference:>12,.0f} tasks/s")
        for count in sorted({max(options.replications // 10, 1), options.replications}):
            batch = batch_speed(scenario, count)
            ratios = [f"{batch / speed:.0f} x {other}" for other, speed in speeds.items()]
            print(
                f"{name + f', batch x {count:,}':<28}{batch:>12,.0f} tasks/s   "
                f"{batch / reference:.0f} x reference, {', '.join(ratios)}"
            )
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(batch_speed, load_scenario("puzzle", RANDOM), options.replications)
        pstats.Stats(profile).sort_stats("tottime").print_stats(20)


if __name__ == "__main__":
    main()
