"""A history as Chrome trace events (JSON), which Perfetto and chrome://tracing open.

Children are threads with their tasks as slices; levels are counters; scale
events are instants. Format: the Trace Event Format document of the Chromium
project; times in microseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from celerysim.history import History, Level, Outcome

_WORKER = 1  # the one process of the trace


def write_trace_events(history: History, path: Path) -> None:
    """Write ``history`` as a trace-event file."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        json.dump({"traceEvents": trace_events(history), "displayTimeUnit": "ms"}, file)


def trace_events(history: History) -> list[dict[str, Any]]:
    """The trace events, each a plain table of the format's fields."""
    events: list[dict[str, Any]] = [
        _name("process_name", 0, "celery worker"),
        _name("thread_name", 0, "MainProcess"),
    ]
    for child in history.children.tolist():
        number, forked, up, terminated, exited, *_ = child
        events.append(_name("thread_name", number, f"ForkPoolWorker-{number}"))
        if up == up and forked == forked:
            events.append(_slice("starting", number, forked, up))
        if terminated == terminated:
            gone = exited if exited == exited else history.end
            events.append(_slice("leaving", number, terminated, gone))
    for row in history.tasks.tolist():
        profile, _sent, _received, started, finished, number, outcome, _deliveries = row
        if started == started and number >= 0:
            end = finished if finished == finished else history.end
            event = _slice(history.names[profile], number, started, end)
            event["args"] = {"outcome": Outcome(outcome).name.lower()}
            events.append(event)
    for time, change, *_ in history.scale_events.tolist():
        name = f"Scaling {'up' if change > 0 else 'down'} {abs(change)}"
        events.append(
            {"name": name, "ph": "i", "s": "p", "ts": time * 1e6, "pid": _WORKER, "tid": 0}
        )
    for time, level, value in history.levels.tolist():
        name = Level(level).name.lower()
        events.append(
            {"name": name, "ph": "C", "ts": time * 1e6, "pid": _WORKER, "args": {name: value}}
        )
    return events


def _name(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _WORKER, "tid": thread, "args": {"name": name}}


def _slice(name: str, thread: int, begin: float, end: float) -> dict[str, Any]:
    return {
        "name": name,
        "ph": "X",
        "ts": begin * 1e6,
        "dur": max(end - begin, 0.0) * 1e6,
        "pid": _WORKER,
        "tid": thread,
    }
