"""Simulated tasks per second of the batch engine beside the reference engine, SimPy and Ciw.

Covers: the puzzle (600 tasks a run), as shipped and with random steps and publishing, and M/M/4 at
  load 0.8, which is what Ciw and plain SimPy simulate (see ../reference_engine.py).
Scenario: many replications in the batch engine, a few in the reference engine; all in one process,
  so that ratios mean something on a noisy machine. Seconds of CPU; the best of several rounds.
Run: python benchmarks/engines/engines.py [--replications 10000] [--rounds 2] [--flat]
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

from celerysim import Scenario, load_scenario, make_scenario, simulate
from celerysim.batch import simulate_many

sys.path.insert(0, str(Path(__file__).parents[1]))
from reference_engine import ciw_tasks, simpy_tasks

RANDOM = [
    "tasks.profiles.short.steps=[{cpu_s={kind='lognormal', mean=0.05, sd=0.01}}, "
    "{io_s={kind='lognormal', mean=1.5, sd=0.05}}]",
    "producer.publish_s={kind='uniform', low=0.043, high=0.064}",
]
#: Durations scatter so much that batches overlap, and forks and tasks mix in time.
WIDE = [
    "tasks.profiles.short.steps=[{cpu_s={kind='lognormal', mean=0.05, sd=0.02}}, "
    "{io_s={kind='lognormal', mean=1.5, sd=0.3}}]",
    "producer.publish_s={kind='uniform', low=0.03, high=0.07}",
]
#: Cores as the other simulators have them; run queues take longer where they are crowded.
SHARING = "machine.scheduling='processor sharing'"
QUEUE_TASKS = 40_000


def mm4(cores: int) -> Scenario:
    return make_scenario(
        {
            "producer": {"kind": "poisson", "rate_per_s": 3.2, "max_tasks": 600},
            "tasks": {
                "profiles": {"t": {"steps": [{"io_s": {"kind": "exponential", "mean": 1.0}}]}}
            },
            "worker": {"concurrency": 4},
            "machine": {"cores": cores, "scheduling": "processor sharing"},
        }
    )


SCENARIOS = {
    "puzzle": load_scenario("puzzle"),
    "puzzle, random": load_scenario("puzzle", RANDOM),
    "puzzle, very random": load_scenario("puzzle", WIDE),
    "puzzle on 2 cores": load_scenario("puzzle-2-cores", [SHARING]),
    "M/M/4, 8 cores": mm4(8),
    "M/M/4, 4 cores": mm4(4),
}


def speed(rounds: int, run: Callable[[], int]) -> float:
    """Tasks per second of this process, the best of several rounds."""
    best = 0.0
    for _ in range(rounds):
        began = process_time()
        tasks = run()
        best = max(best, tasks / (process_time() - began))
    return best


def batch_tasks(scenario: Scenario, replications: int) -> int:
    return int(simulate_many([scenario], replications).table["tasks"].sum())


def reference_tasks(scenario: Scenario, replications: int) -> int:
    runs = (simulate(scenario, replication=i, levels=False) for i in range(replications))
    return sum(len(run.tasks) for run in runs)


def memory_mb() -> float:
    """The most memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--flat", action="store_true", help="the cost of 1,000 to 100,000 runs")
    options = parser.parse_args()
    if options.flat:
        flat(options.rounds)
        return
    queues = {"plain SimPy": lambda: simpy_tasks(QUEUE_TASKS)}
    try:
        import ciw  # noqa: F401 - only whether it is there

        queues["Ciw"] = lambda: ciw_tasks(QUEUE_TASKS)
    except ImportError:
        print("Ciw is not installed: pip install 'celerysim[benchmark]'")
    others = {name: speed(options.rounds, run) for name, run in queues.items()}
    for name, tasks_per_s in others.items():
        print(f"{name + ', M/M/4':<28}{tasks_per_s:>12,.0f} tasks/s")
    for name, scenario in SCENARIOS.items():
        reference = speed(options.rounds, lambda s=scenario: reference_tasks(s, 20))
        batch = speed(options.rounds, lambda s=scenario: batch_tasks(s, options.replications))
        ratios = {"reference": reference} | others
        print(
            f"{name:<28}{batch:>12,.0f} tasks/s   "
            + ", ".join(f"{batch / other:.0f} x {who}" for who, other in ratios.items())
        )


def flat(rounds: int) -> None:
    """What a replication costs, whatever their number."""
    for name in ("puzzle", "puzzle, random"):
        for replications in (1_000, 10_000, 100_000):
            scenario = SCENARIOS[name]
            run_rounds = rounds if replications < 100_000 else 1
            tasks_per_s = speed(run_rounds, lambda s=scenario, n=replications: batch_tasks(s, n))
            print(
                f"{name:<20}{replications:>9,} replications: {600e6 / tasks_per_s:>6.0f} us each, "
                f"{tasks_per_s:>10,.0f} tasks/s, at most {memory_mb():,.0f} MB so far",
                flush=True,
            )


if __name__ == "__main__":
    main()
