"""Statistics of a run, and of several replications of it.

Averages over tasks (waits, sojourns) are kept apart from averages over time
(utilisation). A task's times are ``sent``, ``received``, ``started`` and
``finished``; from them:

- broker wait = received - sent,
- worker wait = started - received,
- runtime = finished - started,
- sojourn = finished - sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim.history import Floats, History, Outcome
from celerysim.result import Result

#: The statistics of a duration, in the order they are shown.
STATISTICS = ("mean", "median", "p90", "p95", "p99")
_QUANTILES = (0.5, 0.9, 0.95, 0.99)


def summary(history: History) -> dict[str, Any]:
    """The statistics of one run, as plain numbers (None: nothing to compute it from).

    Keys: ``forks``, ``scale_ups``, ``scale_downs`` (events), ``tasks`` (finished:
    succeeded or failed), ``lost``, ``throughput_per_s``, ``sojourn_s``,
    ``runtime_s``, ``broker_wait_s`` and ``worker_wait_s`` (each a table with
    ``mean``, ``median``, ``p90``, ``p95``, ``p99``), ``child_utilisation`` and
    ``child_idle_share`` (of the children's life), ``core_utilisation`` (of the
    machine's cores; simulated runs only) and ``duration_s``.

    Tasks sent before ``run.warm_up_s`` count in none of the statistics of tasks;
    the throughput is that of the time after it.
    """
    warm_up_s = 0.0
    cores = math.nan
    busy_core_s = math.nan
    if isinstance(history, Result) and history.scenario is not None:
        warm_up_s = history.scenario.run.warm_up_s
        cores = history.scenario.machine.cores
        busy_core_s = history.busy_core_s
    tasks = history.tasks
    if warm_up_s:
        tasks = tasks[tasks["sent"] >= warm_up_s]
    done = tasks[np.isin(tasks["outcome"], (Outcome.SUCCEEDED, Outcome.FAILED))]
    begin = max(warm_up_s, 0.0)
    observed_s = history.end - begin
    changes = history.scale_events["change"]
    life_s, busy_s = child_life(history)
    utilisation = busy_s.sum() / life_s.sum() if life_s.sum() > 0 else math.nan
    capacity_s = cores * (history.end - history.start)
    return {
        "forks": history.forks,
        "scale_ups": int(np.count_nonzero(changes > 0)),
        "scale_downs": int(np.count_nonzero(changes < 0)),
        "tasks": len(done),
        "lost": int(np.count_nonzero(tasks["outcome"] == Outcome.LOST)),
        "throughput_per_s": _number(len(done) / observed_s if observed_s > 0 else math.nan),
        "sojourn_s": durations(done["finished"] - done["sent"]),
        "runtime_s": durations(done["finished"] - done["started"]),
        "broker_wait_s": durations(done["received"] - done["sent"]),
        "worker_wait_s": durations(done["started"] - done["received"]),
        "child_utilisation": _number(utilisation),
        "child_idle_share": _number(1.0 - utilisation),
        "core_utilisation": _number(busy_core_s / capacity_s if capacity_s else math.nan),
        "duration_s": _number(history.end - history.start),
    }


def durations(seconds: Floats) -> dict[str, float | None]:
    """Mean and quantiles of durations; unknown ones (NaN) are left out, none at all gives None."""
    known = seconds[~np.isnan(seconds)]
    if not len(known):
        return dict.fromkeys(STATISTICS)
    values = [float(known.mean()), *map(float, np.quantile(known, _QUANTILES))]
    return dict(zip(STATISTICS, values, strict=True))


def child_life(history: History) -> tuple[Floats, Floats]:
    """For each child, the seconds it lived within the run and the seconds it spent in tasks."""
    born, died = history.lives()
    return np.maximum(died - born, 0.0), history.children["busy_s"]


def over_replications(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The same keys over several runs: each number becomes mean, interval and values.

    ``{"mean": ..., "ci95": [low, high], "values": [...]}``; the interval is
    Student's for the mean (None with fewer than two known values).
    """
    keys = summaries[0]
    merged: dict[str, Any] = {}
    for key in keys:
        column = [s[key] for s in summaries]
        if isinstance(column[0], Mapping):
            merged[key] = over_replications(column)
        else:
            merged[key] = interval(column)
    return merged


def interval(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean, 95 % confidence interval of the mean, and the values themselves."""
    known: NDArray[np.float64] = np.array([v for v in values if v is not None], dtype=np.float64)
    mean = float(known.mean()) if len(known) else None
    ci95 = None
    if len(known) > 1 and mean is not None:
        from scipy.special import stdtrit

        half = float(stdtrit(len(known) - 1, 0.975) * known.std(ddof=1) / math.sqrt(len(known)))
        ci95 = [mean - half, mean + half]
    return {"mean": mean, "ci95": ci95, "values": list(values)}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
