"""Statistics of finished runs, many at once: those of :func:`celerysim.metrics.summary`.

One row a run; NaN where a summary says None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from celerysim.batch.arrays import Bools, Floats, Lanes
from celerysim.batch.fleet import TOGETHER, Fleet
from celerysim.history import Table
from celerysim.metrics import STATISTICS

_COUNTS = ("forks", "scale_ups", "scale_downs", "tasks", "lost")
_DURATIONS = ("sojourn_s", "runtime_s", "broker_wait_s", "worker_wait_s")
_AFTER = ("child_utilisation", "child_idle_share", "core_utilisation", "duration_s")

#: A row: columns of durations are called ``sojourn_s.mean`` and so on.
SUMMARY_DTYPE = np.dtype(
    [
        ("scenario", np.int64),  # its place among the scenarios
        ("replication", np.int64),
        *((name, np.int64) for name in _COUNTS),
        ("throughput_per_s", np.float64),
        *((f"{name}.{s}", np.float64) for name in _DURATIONS for s in STATISTICS),
        *((name, np.float64) for name in _AFTER),
    ]
)
_NAMES = (SUMMARY_DTYPE.names or ())[2:]
_QUANTILES = (0.5, 0.9, 0.95, 0.99)


def summarise(fleet: Fleet, lanes: Lanes, rows: Table) -> None:
    """Fill in the rows of the finished runs in these lanes."""
    together = max(1, TOGETHER // fleet.tasks.width)
    busy_s = fleet.recorder.cut_s.take(lanes)
    for begin in range(0, lanes.size, together):
        part = slice(begin, begin + together)
        busy_s[part] += _tasks(fleet, lanes[part], rows[part])
    end = fleet.clock.now.take(lanes)
    rows["forks"] = fleet.reaper.forks.take(lanes)
    rows["scale_ups"] = fleet.recorder.scale_ups.take(lanes)
    rows["scale_downs"] = fleet.recorder.scale_downs.take(lanes)
    life_s = fleet.recorder.life_s.take(lanes)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed_s = end - np.maximum(fleet.warm_up_s.take(lanes), 0.0)
        throughput = rows["tasks"] / observed_s
        rows["throughput_per_s"] = np.where(observed_s > 0.0, throughput, np.nan)
        rows["child_utilisation"] = np.where(life_s > 0.0, busy_s / life_s, np.nan)
        rows["child_idle_share"] = 1.0 - rows["child_utilisation"]
        duration_s = end - fleet.start.take(lanes)
        capacity = fleet.cores.take(lanes) * duration_s
        rows["core_utilisation"] = fleet.busy_core_s(lanes) / capacity
    rows["duration_s"] = duration_s


def _tasks(fleet: Fleet, lanes: Lanes, rows: Table) -> Floats:
    """Returns the seconds that children spent in finished tasks, of each run."""
    tasks = fleet.tasks
    most = int(tasks.total.take(lanes).max(initial=0))
    sent, received, started, finished = (
        table[lanes, :most] for table in (tasks.sent, tasks.received, tasks.started, tasks.finished)
    )
    counted = sent >= fleet.warm_up_s.take(lanes)[:, None]
    lost = tasks.lost[lanes, :most]
    rows["lost"] = np.count_nonzero(lost & counted, axis=1)
    done = ~np.isnan(finished) & ~lost
    busy_s = _sums(np.where(done, finished - started, 0.0))
    done &= counted
    count = np.count_nonzero(done, axis=1)
    rows["tasks"] = count
    for name, seconds in (
        ("sojourn_s", finished - sent),
        ("runtime_s", finished - started),
        ("broker_wait_s", received - sent),
        ("worker_wait_s", started - received),
    ):
        _durations(seconds, done, rows, name)
    return busy_s


def _durations(seconds: Floats, known: Bools, rows: Table, name: str) -> None:
    """Mean and quantiles of the known seconds of each row."""
    count = np.count_nonzero(known, axis=1)
    if not known.all():
        seconds[~known] = np.inf
    seconds.sort(axis=1)
    row = np.arange(len(seconds))
    values: dict[str, Any] = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        total = _sums(np.where(np.isinf(seconds), 0.0, seconds))
        values["mean"] = total / count
    for statistic, q in zip(STATISTICS[1:], _QUANTILES, strict=True):
        place = np.maximum(q * (count - 1), 0.0)
        below = place.astype(np.int64)
        above = np.minimum(below + 1, np.maximum(count - 1, 0))
        if not seconds.shape[1]:
            values[statistic] = np.nan
            continue
        low, high = seconds[row, below], seconds[row, above]
        with np.errstate(invalid="ignore"):
            values[statistic] = low + (high - low) * (place - below)
    for statistic in STATISTICS:
        rows[f"{name}.{statistic}"] = np.where(count > 0, values[statistic], np.nan)


def _sums(rows: Floats) -> Floats:
    """The sum of each row, added from left to right.

    ``sum`` adds in pairs, so that its last bit depends on the width of the table,
    and a run's figures on the runs beside it.
    """
    if not rows.shape[1]:
        return np.zeros(len(rows))
    return np.cumsum(rows, axis=1)[:, -1]


def as_mapping(row: np.void) -> dict[str, Any]:
    """A row as :func:`celerysim.metrics.summary` gives it."""
    values = dict(zip(SUMMARY_DTYPE.names or (), row.item(), strict=True))
    plain = {k: None if v != v else v for k, v in values.items()}
    found: dict[str, Any] = {name: plain[name] for name in (*_COUNTS, "throughput_per_s")}
    for name in _DURATIONS:
        found[name] = {s: plain[f"{name}.{s}"] for s in STATISTICS}
    return found | {name: plain[name] for name in _AFTER}


def write(found: Mapping[str, Any], row: np.void) -> None:
    """Write a summary of :func:`celerysim.metrics.summary` into a row."""
    for name in _NAMES:
        key, _, statistic = name.partition(".")
        value = found[key][statistic] if statistic else found[key]
        row[name] = np.nan if value is None else value
