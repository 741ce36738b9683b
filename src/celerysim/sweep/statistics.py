"""The statistics a sweep can put into its table: their names, units and types.

A name is a key of :func:`celerysim.metrics.summary`, with a dot into its tables
(``worker_wait_s.p95``), or one of the derived ones below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from celerysim.metrics import STATISTICS

_COUNTS = ("forks", "scale_ups", "scale_downs", "tasks", "lost")
_DURATIONS = ("sojourn_s", "broker_wait_s", "worker_wait_s", "runtime_s")
_SHARES = ("child_utilisation", "child_idle_share", "core_utilisation")

#: Statistic to unit, in the order of the table; counts and shares have none.
UNITS: dict[str, str] = (
    dict.fromkeys(_COUNTS, "")
    | {"forks_per_hour": "1/h", "throughput_per_s": "1/s"}
    | {f"{duration}.{name}": "s" for duration in _DURATIONS for name in STATISTICS}
    | dict.fromkeys(_SHARES, "")
    | {"duration_s": "s"}
)
#: Those that are whole numbers.
COUNTS = frozenset(_COUNTS)

#: Celery's settings in seconds, whose names do not say so.
_SECONDS = {"keepalive", "time_limit", "soft_time_limit", "proc_alive_timeout"}


def measure(summary: Mapping[str, Any], names: Sequence[str]) -> tuple[float, ...]:
    """The named statistics of one run's summary, NaN for what could not be computed."""
    return tuple(_one(summary, name) for name in names)


def _one(summary: Mapping[str, Any], name: str) -> float:
    if name == "forks_per_hour":
        forks, duration_s = summary["forks"], summary["duration_s"]
        return 3600.0 * forks / duration_s if duration_s else math.nan
    key, _, part = name.partition(".")
    value = summary[key][part] if part else summary[key]
    if value is None:
        return math.nan
    return int(value) if name in COUNTS else float(value)


def unit_of(field: str) -> str:
    """The unit of a statistic or of a scenario's field, read off its name; empty: none."""
    if field in UNITS:
        return UNITS[field]
    last = field.rpartition(".")[2]
    if last.endswith("_per_s"):
        return "1/s"
    if last.endswith("_s") or last in _SECONDS:
        return "s"
    return "KiB" if last.endswith("_kib") or last == "max_memory_per_child" else ""


def label(field: str) -> str:
    """The name with its unit, where the name does not carry it: ``worker.keepalive [s]``."""
    unit = unit_of(field)
    carried = any(part.endswith(("_s", "_per_hour", "_kib")) for part in field.split("."))
    return field if not unit or carried else f"{field} [{unit}]"
