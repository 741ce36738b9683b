"""Simulated logs out and back: random scenarios, and what calibrate recovers of them.

Run: python tests/unit/calibrate/round_trip.py [COUNT]

prints each deviation beyond the tolerances, and how often each part was told.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from celerysim.calibrate import Calibration, calibrate
from celerysim.engine.simulation import simulate
from celerysim.export.worker_log import worker_log
from celerysim.history import History
from celerysim.result import Result
from celerysim.scenario import Scenario, make_scenario
from celerysim.trace import Trace, read_log

#: Standard errors that a fitted mean or share may be off.
ERRORS = 4.5
#: Seconds that stamps of whole milliseconds, and the worker's own work, may shift a time by.
STAMPS_S = 0.002
#: CPU seconds may be off by this share of the runtime alone, where the log tells them.
SPLIT = 0.10
#: The fitted scenario's figures may be off by these shares ...
THROUGHPUT, SOJOURN = 0.05, 0.15
#: ... or by this many standard deviations over replications of the true scenario.
DEVIATIONS = 3.5


def random_scenario(number: int) -> dict[str, Any]:
    """The ``number``-th random scenario, as in a file; always the same one."""
    rng = np.random.default_rng([number, 20260101])
    cores = int(rng.choice([1, 2, 4]))
    size = int(rng.choice([2, 4, 8]))
    names = ["resize", "mail", "report"][: int(rng.integers(1, 4))]
    profiles: dict[str, Any] = {}
    for name in names:
        cpu_s, io_s = round(rng.uniform(0.05, 0.6), 3), round(rng.uniform(0.2, 1.5), 3)
        varying = rng.choice(["cpu_s", "io_s"])
        kind = rng.choice(["constant", "normal", "lognormal", "gamma"])
        seconds: dict[str, Any] = {"cpu_s": cpu_s, "io_s": io_s}
        if kind != "constant":
            mean = seconds[varying]
            spread = float(rng.uniform(0.02, 0.12 if kind == "normal" else 0.3))
            seconds[varying] = {"kind": str(kind), "mean": mean, "sd": round(spread * mean, 5)}
        order = ["cpu_s", "io_s"] if rng.random() < 0.5 else ["io_s", "cpu_s"]
        profiles[name] = {"steps": [{key: seconds[key]} for key in order]}
    tasks: dict[str, Any] = {"profiles": profiles}
    if len(names) > 1 and rng.random() < 0.5:
        tasks["pattern"] = [*names, *rng.choice(names, size=2).tolist()]
        shares = {name: tasks["pattern"].count(name) for name in names}
    else:
        for name in names:
            profiles[name]["weight"] = round(rng.uniform(0.5, 3.0), 2)
        shares = {name: profiles[name]["weight"] for name in names}
    total = sum(shares.values())
    cpu_s, io_s = (
        sum(shares[n] / total * _mean(profiles[n], key) for n in names) for key in ("cpu_s", "io_s")
    )
    capacity = min(size / (cpu_s + io_s), cores / cpu_s)
    rate = capacity * float(rng.uniform(0.35, 0.8))
    producer: dict[str, Any] = {"max_tasks": int(rng.integers(300, 600))}
    kind = rng.choice(["batches", "rate", "poisson"])
    if kind == "batches":
        batch = int(rng.integers(2, size + 1))
        publish_s = float(rng.choice([0.0, 0.005, 0.02]))
        producer |= {
            "kind": "batches",
            "batch_size": batch,
            "publish_s": publish_s,
            "pause_s": round(max(batch / rate - batch * publish_s, 0.3), 3),
        }
    else:
        producer |= {"kind": str(kind), "rate_per_s": round(rate, 4)}
    worker: dict[str, Any] = {
        "prefetch_multiplier": int(rng.choice([1, 2, 4])),
        "task_acks_late": bool(rng.random() < 0.5),
    }
    if rng.random() < 0.5:
        worker["autoscale"] = [size, int(rng.integers(0, size))]
    else:
        worker["concurrency"] = size
    return {
        "producer": producer,
        "tasks": tasks,
        "worker": worker,
        "machine": {"cores": cores, "scheduling": "processor sharing"},  # as it is read back
        "run": {"seed": number},
    }


def _mean(profile: dict[str, Any], key: str) -> float:
    seconds = next(step[key] for step in profile["steps"] if key in step)
    return float(seconds["mean"] if isinstance(seconds, dict) else seconds)


def as_log(history: History) -> Trace:
    """``history`` written as a worker log and read back."""
    return read_log(line.encode() + b"\n" for line in worker_log(history))


@dataclass
class Check:
    """What came back of one scenario."""

    true: Scenario
    fit: Calibration
    deviations: list[str] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)

    def near(self, what: str, found: float, true: float, tolerance: float) -> None:
        if not abs(found - true) <= tolerance:
            self.deviations.append(f"{what}: found {found:.5g}, true {true:.5g} +- {tolerance:.2g}")

    def same(self, what: str, found: Any, true: Any) -> None:
        if found != true:
            self.deviations.append(f"{what}: found {found}, true {true}")


def out_and_back(number: int, replications: int = 4) -> Check:
    """Simulate the ``number``-th scenario, calibrate on its log, and compare."""
    true = make_scenario(random_scenario(number))
    result = simulate(true)
    fit = calibrate([as_log(result)], cores=true.machine.cores, replications=0)
    check = Check(true, fit)
    _worker(check)
    _tasks(check, result)
    _arrivals(check)
    _figures(check, replications)
    return check


def _worker(check: Check) -> None:
    true, found = check.true.worker, check.fit.scenario.worker
    check.same("autoscale", found.autoscale, true.autoscale)
    check.same("max_concurrency", found.max_concurrency, true.max_concurrency)
    if check.fit.settings.acks_known:
        check.told["acks"] += 1
        check.same("task_acks_late", found.task_acks_late, true.task_acks_late)
        check.same("prefetch_multiplier", found.prefetch_multiplier, true.prefetch_multiplier)


def _tasks(check: Check, result: Result) -> None:
    true, fit = check.true.tasks, check.fit
    ran = result.tasks[result.tasks["finished"] == result.tasks["finished"]]
    if true.pattern and len(true.profiles) > 1:
        check.told["pattern"] += fit.order.pattern is not None
        check.same("pattern", fit.scenario.tasks.pattern, _shortest(true.pattern))
    else:
        check.same("pattern", fit.scenario.tasks.pattern, None)
        total = sum(profile.weight for profile in true.profiles.values())
        for name, weight in zip((f.name for f in fit.profiles), fit.order.weights):
            share = true.profiles[name].weight / total
            error = np.sqrt(share * (1 - share) / len(ran))
            check.near(f"weight of {name}", weight, share, ERRORS * error + 1e-9)
    for number, found in enumerate(fit.profiles):
        mine = ran[ran["profile"] == result.names.index(found.name)]
        logged = float((mine["finished"] - mine["started"]).mean())
        check.near(f"runtime of {found.name}", found.runtime_s, logged, 1e-4)
        if found.cpu_s is None or found.io_s is None:
            continue
        check.told["split"] += 1
        body = {step.kind.name: step.seconds for step in true.profiles[found.name].steps}
        alone = body["CPU"].expectation + body["IO"].expectation
        check.near(f"cpu of {found.name}", found.cpu_s, body["CPU"].expectation, SPLIT * alone)
        check.near(f"io of {found.name}", found.io_s, body["IO"].expectation, SPLIT * alone)
        if not fit.split.in_turns and fit.split.order_gain >= 5.0:
            first = "CPU_FIRST" if true.profiles[found.name].steps[0].is_cpu else "WAIT_FIRST"
            check.told["order"] += fit.split.bodies[number].order.name == first
            check.told["order asked"] += 1


def _shortest(pattern: tuple[str, ...]) -> tuple[str, ...]:
    """The shortest pattern that gives the same order."""
    n = len(pattern)
    return next(
        pattern[:period]
        for period in range(1, n + 1)
        if n % period == 0 and pattern == pattern[:period] * (n // period)
    )


def _arrivals(check: Check) -> None:
    true, process = check.true.producer, check.fit.process
    check.told[f"{true.kind} -> {process.kind}"] += 1
    if process.kind != true.kind:
        return
    found = check.fit.scenario.producer
    if true.kind == "batches" and found.kind == "batches":
        check.same("batch_size", found.batch_size, true.batch_size)
        period, expected = (
            p.pause_s.expectation + p.batch_size * p.publish_s.expectation for p in (found, true)
        )
        check.near("period", period, expected, STAMPS_S + 0.002 * expected)
        check.near("publish_s", found.publish_s.expectation, true.publish_s.expectation, STAMPS_S)
    elif true.kind in ("rate", "poisson") and found.kind == true.kind:
        error = 1 / np.sqrt(len(check.fit.arrivals.rows)) if true.kind == "poisson" else 1e-3
        check.near("rate", found.rate_per_s, true.rate_per_s, ERRORS * error * true.rate_per_s)


def _figures(check: Check, replications: int) -> None:
    """The fitted scenario behaves as the true one does."""
    figures: dict[str, tuple[list[float], list[float]]] = {}
    for place, scenario in enumerate((check.true, check.fit.scenario)):
        for replication in range(replications):
            run = simulate(scenario, replication=replication, levels=False)
            done = run.tasks[run.tasks["outcome"] == 3]
            for name, value in (
                ("throughput", len(done) / run.end),
                ("sojourn", float((done["finished"] - done["received"]).mean())),
                ("forks", float(run.forks)),
            ):
                figures.setdefault(name, ([], []))[place].append(value)
    if check.fit.process.kind == "saturated":
        return  # as calibrate says, the log does not tell how much was sent
    for name, (true, found) in figures.items():
        share = {"throughput": THROUGHPUT, "sojourn": SOJOURN, "forks": 0.2}[name]
        mean = float(np.mean(true))
        spread = DEVIATIONS * float(np.std(true, ddof=1)) * np.sqrt(2 / replications)
        tolerance = max(share * mean, spread, 1.0 if name == "forks" else 0.0)
        check.near(name, float(np.mean(found)), mean, tolerance)


def main(count: int) -> None:
    told: Counter[str] = Counter()
    wrong = 0
    for number in range(count):
        check = out_and_back(number)
        told += check.told
        wrong += bool(check.deviations)
        for text in check.deviations:
            print(f"{number}: {text}", flush=True)
    print(f"{count - wrong} of {count} scenarios came back within the tolerances")
    for what, times in sorted(told.items()):
        print(f"  {what}: {times}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
