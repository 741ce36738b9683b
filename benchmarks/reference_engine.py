"""Simulated tasks per second of the reference engine beside Ciw and a plain SimPy model.

Covers: a fixed pool of 4 under Poisson arrivals at load 0.8 (M/M/4), exponential task times.
Scenario: the reference engine runs it with all mechanics and default costs on; the other two model
  the bare queue. All run in one process, turn by turn, so that a noisy machine treats them alike;
  the best of several rounds counts.
Run: python benchmarks/reference_engine.py [--tasks 40000] [--rounds 3] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
from collections.abc import Callable
from time import perf_counter

import simpy

from celerysim import make_scenario, simulate

SERVERS, LOAD = 4, 0.8


def celerysim_tasks(tasks: int) -> int:
    scenario = make_scenario(
        {
            "producer": {"kind": "poisson", "rate_per_s": SERVERS * LOAD, "max_tasks": tasks},
            "tasks": {
                "profiles": {"t": {"steps": [{"io_s": {"kind": "exponential", "mean": 1.0}}]}}
            },
            "worker": {"concurrency": SERVERS},
        }
    )
    return len(simulate(scenario).tasks)


def simpy_tasks(tasks: int) -> int:
    env = simpy.Environment()
    store = simpy.Store(env)
    done = 0
    numbers = random.Random(1)

    def source():
        for i in range(tasks):
            yield env.timeout(numbers.expovariate(SERVERS * LOAD))
            store.put(i)

    def server():
        nonlocal done
        while True:
            yield store.get()
            yield env.timeout(numbers.expovariate(1.0))
            done += 1

    env.process(source())
    for _ in range(SERVERS):
        env.process(server())
    env.run()
    return done


def ciw_tasks(tasks: int) -> int:
    import ciw

    ciw.seed(1)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(SERVERS * LOAD)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[SERVERS],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(tasks, method="Complete")
    return len(simulation.get_all_records())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    models: dict[str, Callable[[int], int]] = {
        "celerysim, all mechanics": celerysim_tasks,
        "plain SimPy": simpy_tasks,
    }
    try:
        import ciw  # noqa: F401 - only whether it is there

        models["Ciw"] = ciw_tasks
    except ImportError:
        print("Ciw is not installed: pip install 'celerysim[benchmark]'")
    best = dict.fromkeys(models, 0.0)
    for _ in range(options.rounds):
        for name, model in models.items():
            began = perf_counter()
            done = model(options.tasks)
            best[name] = max(best[name], done / (perf_counter() - began))
    ours = best["celerysim, all mechanics"]
    for name, speed in best.items():
        print(f"{name:<26}{speed:>10,.0f} tasks/s   celerysim / this: {ours / speed:.2f}")
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(celerysim_tasks, options.tasks)
        pstats.Stats(profile).sort_stats("tottime").print_stats(15)


if __name__ == "__main__":
    main()
