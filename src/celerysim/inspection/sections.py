"""The parts of an inspection that count and list, as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from celerysim.history import Outcome, Trigger
from celerysim.inspection.incidents import HANDLER_ERROR
from celerysim.inspection.reading import ObservedTrace
from celerysim.inspection.view import View
from celerysim.metrics import child_life, durations
from celerysim.trace import Trace

#: Rows of one list at most; ``left_out`` says how many more there are.
MOST_ROWS = 1000
#: Most pieces the time is cut into for the throughput.
MOST_BINS = 20
_NICE_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800,
           21600, 43200, 86400)  # fmt: skip
#: The outcomes counted for each task name, and their keys.
_COUNTED = {
    "succeeded": Outcome.SUCCEEDED,
    "failed": Outcome.FAILED,
    "lost": Outcome.LOST,
    "retried": Outcome.RETRIED,
    "revoked": Outcome.REVOKED,
}


def names(view: View) -> list[dict[str, Any]]:
    """Each task name: counts, runtime and wait in the worker, share of all running; longest first.

    ``tasks`` counts rows: a retry's attempts each, a redelivered task once.
    """
    tasks = view.tasks
    order = np.argsort(tasks["profile"], kind="stable")
    cuts = np.searchsorted(tasks["profile"][order], np.arange(len(view.history.names) + 1))
    whole_s = float(np.nansum(view.runtime_s))
    found = []
    for profile, name in enumerate(view.history.names):
        rows = order[cuts[profile] : cuts[profile + 1]]
        if not len(rows):
            continue
        outcomes = np.bincount(tasks["outcome"][rows], minlength=len(Outcome))
        runtime_s = view.runtime_s[rows]
        ended = rows[view.ended[rows]]
        found.append(
            {
                "name": name,
                "tasks": len(rows),
                **{key: int(outcomes[outcome]) for key, outcome in _COUNTED.items()},
                "unfinished": int(outcomes[: Outcome.SUCCEEDED].sum()),
                "redelivered": int(np.count_nonzero(tasks["deliveries"][rows] > 1)),
                "runtime_s": durations(view.runtime_s[ended]),
                "worker_wait_s": durations(view.wait_s[ended]),
                "running_share": _share(float(np.nansum(runtime_s)), whole_s),
            }
        )
    return sorted(found, key=lambda entry: -(entry["running_share"] or 0.0))


def throughput(view: View, most: int = MOST_BINS) -> dict[str, Any]:
    """Receptions, ends, forks, mean running, waiting and pool, in at most ``most`` equal pieces."""
    start, end = view.history.start, view.history.end
    if not view.duration_s > 0:
        return {"bin_s": None, "bins": []}
    width = bin_width(view.duration_s, most)
    count = max(math.ceil(view.duration_s / width - 1e-9), 1)
    edges = start + width * np.arange(count + 1)
    edges[-1] = max(edges[-1], end)  # what happens at the end belongs to the last piece
    tasks, clock = view.tasks, view.clock
    received, _ = np.histogram(tasks["received"], edges)
    finished, _ = np.histogram(tasks["finished"][view.ended], edges)
    forked, _ = np.histogram(view.children["forked"], edges)
    lengths = np.diff(np.minimum(edges, end))
    running, waiting, pool = (
        np.diff(clock.until(level, np.minimum(edges, end))) / lengths
        for level in (view.running_now, view.waiting_now, view.pool_now)
    )
    return {
        "bin_s": width,
        "bins": [
            {
                "start_s": round(float(edges[i]), 6),
                "received": int(received[i]),
                "finished": int(finished[i]),
                "per_s": float(finished[i] / lengths[i]),
                "forks": int(forked[i]),
                "running": float(running[i]),
                "waiting": float(waiting[i]),
                "pool": float(pool[i]),
            }
            for i in range(count)
        ],
    }


def bin_width(duration_s: float, most: int = MOST_BINS) -> float:
    """A round number of seconds that cuts ``duration_s`` into at most ``most`` pieces."""
    nice = next((width for width in _NICE_S if duration_s <= width * most), None)
    return float(nice or 86400 * math.ceil(duration_s / 86400 / most))


def children(view: View) -> dict[str, Any]:
    """The children: how many, life, tasks and idle share, in all and each."""
    life_s, busy_s = child_life(view.history)
    rows = [
        {
            "number": number,
            "forked": _number(forked),
            "exited": _number(exited),
            "life_s": round(life, 6),
            "tasks": tasks,
            "idle_share": _share(life - busy, life),
        }
        for (number, forked, exited, tasks), life, busy in zip(
            view.children[["number", "forked", "exited", "tasks"]][:MOST_ROWS].tolist(),
            life_s.tolist(),
            busy_s.tolist(),
            strict=False,
        )
    ]
    gone = ~np.isnan(view.children["exited"])
    return {
        "count": len(view.children),
        "alive_at_end": int(np.count_nonzero(~gone)),
        "without_task": int(np.count_nonzero(view.children["tasks"] == 0)),
        "life_s": durations(life_s[gone]),
        "tasks_each": durations(view.children["tasks"][gone].astype(np.float64)),
        "inferred": view.is_inferred,
        "rows": rows,
        "left_out": len(view.children) - len(rows),
    }


def scale_events(view: View) -> dict[str, Any]:
    """Scale events by direction and trigger, and the processes they asked for."""
    events = view.scale_events
    by_trigger = []
    for direction, sign in (("up", 1), ("down", -1)):
        for trigger in Trigger:
            chosen = (np.sign(events["change"]) == sign) & (events["trigger"] == trigger)
            if chosen.any():
                by_trigger.append(
                    {
                        "direction": direction,
                        "trigger": trigger.name.lower(),
                        "events": int(np.count_nonzero(chosen)),
                        "processes": int(np.abs(events["change"][chosen]).sum()),
                    }
                )
    return {"trigger_inferred": view.is_inferred, "by_trigger": by_trigger}


def troubles(view: View) -> dict[str, Any]:
    """Lost and failed tasks, the lost ones first, each with what surrounded it."""
    outcome = view.tasks["outcome"]
    lost = np.flatnonzero(outcome == Outcome.LOST).tolist()
    failed = np.flatnonzero(outcome == Outcome.FAILED).tolist()
    rows = [_trouble(view, row) for row in [*lost, *failed][:MOST_ROWS]]
    return {
        "lost": len(lost),
        "failed": len(failed),
        "errors": list(_errors(view)),
        "rows": rows,
        "left_out": len(lost) + len(failed) - len(rows),
    }


def repeats(view: View) -> dict[str, Any]:
    """Retries and redeliveries."""
    deliveries = view.tasks["deliveries"]
    again = np.maximum(deliveries.astype(np.int64) - 1, 0)
    return {
        "retried": view.history.count(Outcome.RETRIED),
        "redelivered": int(np.count_nonzero(deliveries > 1)),
        "redeliveries": int(again.sum()),
    }


def lines(view: View) -> dict[str, Any] | None:
    """What became of every line of the log; None for a simulated run."""
    history = view.history
    if not isinstance(history, Trace):
        return None
    counts = history.line_counts
    kinds = ("total", "understood", "output", "continuation", "unexplained", "other_worker", "cut")
    samples = [{"line": number, "text": text} for number, text in counts.samples]
    return {kind: getattr(counts, kind) for kind in kinds} | {"samples": samples}


def _trouble(view: View, row: int) -> dict[str, Any]:
    history, task = view.history, view.tasks[row]
    time = float(task["finished"])
    return {
        "id": history.ids[row] if history.ids else str(row),
        "name": history.names[task["profile"]],
        "outcome": Outcome(task["outcome"]).name.lower(),
        "received": _number(task["received"]),
        "started": _number(task["started"]),
        "finished": _number(time),
        "child": int(task["child"]) if task["child"] >= 0 else None,
        "error": _error(view, row, time),
        "scale_event_before": _scale_before(view, time, (-1, 1)),
        "scale_down_before": _scale_before(view, time, (-1,)),
    }


def _scale_before(view: View, time: float, signs: tuple[int, ...]) -> dict[str, Any] | None:
    """The last scale event up to ``time``, of those with one of the signs."""
    events = view.scale_events
    rows = np.flatnonzero((events["time"] <= time) & np.isin(np.sign(events["change"]), signs))
    if not len(rows):
        return None
    row = int(rows[-1])
    event = events[row]
    return {
        "time": float(event["time"]),
        "seconds_before": round(time - float(event["time"]), 6),
        "change": int(event["change"]),
        "trigger": Trigger(event["trigger"]).name.lower(),
        "killed": list(view.killed.get(row, ())),
    }


def _error(view: View, row: int, time: float) -> str | None:
    """The error's text by the task's id, else the class in a handler's line of the same time."""
    history = view.history
    if not isinstance(history, ObservedTrace):
        return None
    text = history.errors.get(history.ids[row])
    if text is None and view.tasks["outcome"][row] == Outcome.LOST:
        same = (i.text for i in view.incidents(HANDLER_ERROR) if abs(i.time - time) < 1e-3)
        text = next(same, None)
    return text


def _errors(view: View) -> Iterator[dict[str, Any]]:
    """Errors by task name, the most frequent first."""
    history = view.history
    if isinstance(history, ObservedTrace):
        for (name, error), count in history.error_counts.most_common(100):
            yield {"name": name, "error": error, "tasks": count}


def _share(part: float, whole: float) -> float | None:
    return max(part, 0.0) / whole if whole > 0 else None


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
