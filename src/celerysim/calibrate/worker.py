"""The worker's settings: those the banner states, and those its conduct shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from celerysim.calibrate.phases import Runs
from celerysim.conform import window as prefetch_window
from celerysim.history import History
from celerysim.scenario.schema import Worker


@dataclass(frozen=True)
class Settings:
    """Settings of a worker, and how they are known."""

    worker: dict[str, Any]  #: as in a scenario file
    window: int | None  #: most messages reserved, where the log shows that a limit was reached
    acks_known: bool  #: whether ``task_acks_late`` is told by the log
    found: tuple[str, ...]  #: what the log shows, one sentence each
    unknown: tuple[str, ...]  #: what it does not, and what was taken

    @property
    def max_concurrency(self) -> int:
        """Most processes the pool may have."""
        return Worker.model_validate(self.worker).max_concurrency


def read_settings(history: History, runs: Runs, keepalive: float | None = None) -> Settings:
    """The settings ``history`` was made with, as far as it tells.

    ``keepalive`` (seconds) is AUTOSCALE_KEEPALIVE if it is known.
    """
    worker = {k: v for k, v in history.settings.items() if k in Worker.model_fields}
    found, unknown = [], []
    if worker:
        stated = ", ".join(f"{key} {value}" for key, value in sorted(worker.items()))
        found.append(f"stated by the log: {stated}")
    if "autoscale" not in worker and "concurrency" not in worker:
        worker["concurrency"] = max(runs.running(), 1)
        unknown.append(
            f"concurrency, without a banner (taken: {worker['concurrency']}, most tasks at once)"
        )
    if worker.get("autoscale"):
        worker["autoscale"] = list(worker["autoscale"])
        worker["keepalive"] = float(keepalive or worker.get("keepalive", 30.0))
        line = _keepalive(history, worker["keepalive"])
        (unknown if keepalive is None else found).append(line)
    most = Worker.model_validate(worker).max_concurrency
    window = prefetch_window(history, most)
    acks_known = "task_acks_late" in worker
    if "prefetch_multiplier" not in worker:
        acks_known = _prefetch(history, worker, window, most, found, unknown)
    if "max_tasks_per_child" not in worker:
        limit = _tasks_per_child(history, worker)
        if limit:
            worker["max_tasks_per_child"] = limit
            found.append(f"every child that was replaced had done {limit} tasks")
    transport = history.settings.get("broker_transport", "amqp")
    if not str(transport).startswith(("amqp", "pyamqp")):
        unknown.append(f"how a {transport} broker delivers (taken: RabbitMQ)")
    return Settings(worker, window, acks_known, tuple(found), tuple(unknown))


def _prefetch(
    history: History,
    worker: dict[str, Any],
    window: int | None,
    most: int,
    found: list[str],
    unknown: list[str],
) -> bool:
    """Prefetch and acknowledgement, from how many messages were reserved at most.

    Returns whether the log tells if acknowledgements are late.
    """
    if window is None:
        reserved = _most_reserved(history)
        worker["prefetch_multiplier"] = max(4, -(-reserved // most))
        unknown.append(
            f"prefetch_multiplier and task_acks_late: at most {reserved} messages were reserved, "
            f"which shows no limit (taken: {worker['prefetch_multiplier']}, early acks)"
        )
        return False
    late, certain = _acks(history, window, most)
    worker["task_acks_late"] = late
    worker["prefetch_multiplier"] = window // most - (0 if late else 1)
    text = f"at most {window} messages were reserved, again and again"
    if certain:
        kind = "late" if late else "early"
        found.append(f"{text}: prefetch {worker['prefetch_multiplier']} with {kind} acks")
    else:
        unknown.append(
            f"whether acks are early: {text}, which is prefetch {window // most - 1} with early "
            f"acks or {window // most} with late ones (taken: early, Celery's default)"
        )
    return certain


def _acks(history: History, window: int, most: int) -> tuple[bool, bool]:
    """(late?, certain?).

    With early acks the running tasks no longer count in the prefetch window, so a
    window of ``most`` must be one of late acks. Else what came before the first
    task began tells: no message was acknowledged then.
    """
    if window == most:
        return True, True
    tasks = history.tasks
    if np.isnan(tasks["started"]).all():
        return False, False
    began = float(np.nanmin(tasks["started"]))
    at_first = int(np.count_nonzero(tasks["received"] < began - 0.002))
    return at_first == window, at_first in (window, window - most)


def _most_reserved(history: History) -> int:
    tasks = history.tasks
    received = np.sort(tasks["received"][~np.isnan(tasks["received"])])
    finished = np.sort(tasks["finished"][~np.isnan(tasks["finished"])])
    before = np.searchsorted(finished, received, side="right")
    return int((np.arange(1, len(received) + 1) - before).max(initial=0))


def _keepalive(history: History, keepalive: float) -> str:
    """Whether the ages at which the pool shrank agree with ``keepalive``."""
    events = history.scale_events
    ups = events["time"][events["change"] > 0]
    downs = events["time"][events["change"] < 0]
    last = np.searchsorted(ups, downs) - 1
    ages = downs[last >= 0] - ups[last[last >= 0]]
    if not len(ages):
        return f"keepalive: the pool never shrank (taken: {keepalive:g} s)"
    least = float(ages.min())
    verdict = "which agrees" if least > keepalive - 0.005 else "WHICH DISAGREES"
    return (
        f"keepalive: taken as {keepalive:g} s; the pool shrank no sooner than {least:.3f} s after "
        f"a scale-up, {verdict}"
    )


def _tasks_per_child(history: History, worker: dict[str, Any]) -> int | None:
    """The number of tasks after which children leave, if a pool of fixed size shows it."""
    size = worker.get("concurrency", 0)
    if worker.get("autoscale") or len(history.children) <= size:
        return None
    gone = history.children["tasks"][: len(history.children) - size]
    return int(gone[0]) if gone[0] > 0 and np.mean(gone == gone[0]) > 0.9 else None
