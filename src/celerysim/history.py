"""What happened in a run: one row a task, a child and a scale event, and the level changes.

A simulated :class:`~celerysim.result.Result` and a worker log read by
:mod:`celerysim.trace` are both a :class:`History`, so that every metric and
every picture works on either. Tables are numpy structured arrays; all times
are seconds on one clock whose zero is the worker's "ready" (NaN: not known or
never happened).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.void]
Floats = NDArray[np.float64]


class Outcome(IntEnum):
    """Where a task stands when the history ends."""

    QUEUED = 0  #: sent, still ready in the broker (or unacked but not yet received)
    RESERVED = 1  #: received by the worker, not started
    RUNNING = 2  #: started, not finished
    SUCCEEDED = 3
    FAILED = 4  #: raised, or hit a time limit
    LOST = 5  #: its child was killed under it (``WorkerLostError``)
    RETRIED = 6  #: ended in a retry (logs only)
    REVOKED = 7  #: revoked or expired (logs only)


class Trigger(IntEnum):
    """What called the autoscaler when it scaled."""

    MESSAGE = 0  #: ``consumer.on_task_message``
    TIMER = 1  #: the hub's keepalive timer
    UNKNOWN = 2  #: a log does not say


class Level(IntEnum):
    """The quantities whose changes over time are kept."""

    PROCESSES = 0  #: the pool's target size (``pool.num_processes``)
    RESERVED = 1  #: received and not finished, running ones included (the autoscaler's ``qty``)
    READY = 2  #: messages waiting in the queue
    UNACKED = 3  #: messages delivered and not yet acknowledged
    CHILDREN = 4  #: child processes forked and not yet reaped


TASK_DTYPE = np.dtype(
    [
        ("profile", np.int32),  # index into History.names
        ("sent", np.float64),  # the broker has the message
        ("received", np.float64),  # the worker logged "received" (the last time, if redelivered)
        ("started", np.float64),
        ("finished", np.float64),  # succeeded, failed, or declared lost
        ("child", np.int32),  # the k of ForkPoolWorker-k; 0: the main process, -1: not known
        ("outcome", np.int8),  # an Outcome
        ("deliveries", np.int16),  # times received; more than 1: redelivered
    ]
)
SCALE_DTYPE = np.dtype(
    [
        ("time", np.float64),
        ("change", np.int32),  # as in the "Scaling" line: +n up, -n down (asked for, not achieved)
        ("trigger", np.int8),  # a Trigger
        ("processes", np.int32),  # the pool's target before the change (-1: not known)
        ("reserved", np.int32),  # the autoscaler's qty at that moment (-1: not known)
        ("received", np.int32),  # messages received before it: its place among "received" lines
    ]
)
CHILD_DTYPE = np.dtype(
    [
        ("number", np.int32),  # the k of ForkPoolWorker-k
        ("forked", np.float64),  # the fork returned in the supervisor
        ("up", np.float64),  # the supervisor learned that it is ready for work
        ("terminated", np.float64),  # told to leave (shrink, limit) or left by itself
        ("exited", np.float64),  # reaped by the supervisor
        ("tasks", np.int32),  # tasks it finished
        ("busy_s", np.float64),  # seconds it spent inside tasks
    ]
)
LEVEL_DTYPE = np.dtype(
    [("time", np.float64), ("level", np.int8), ("value", np.int32)]  # value from this time on
)


@dataclass(frozen=True)
class History:
    """The rows of one run.

    ``tasks`` is in the order the messages were sent (simulated) or received
    (logs); ``ids`` holds the task ids in the same order, empty when the tasks
    have none. ``end`` is when observation stopped. ``settings`` holds the
    worker settings that are known, under the scenario's names
    (``concurrency``, ``autoscale``, ``keepalive``, ...).
    """

    tasks: Table
    scale_events: Table
    children: Table
    levels: Table
    names: tuple[str, ...]
    start: float
    end: float
    settings: dict[str, Any] = field(default_factory=dict)
    ids: tuple[str, ...] = ()

    @property
    def forks(self) -> int:
        """Child processes created, the initial ones included."""
        return len(self.children)

    def lives(self) -> tuple[Floats, Floats]:
        """For each child, when it was born and when it was gone, within the run; seconds.

        A log shows neither fork nor exit of most children: there, a life lasts from the
        child's first task to the end of its last one.
        """
        children, tasks = self.children, self.tasks
        born = children["forked"].copy()
        died = np.where(np.isnan(children["exited"]), self.end, children["exited"])
        unknown = np.isnan(born)
        if not unknown.any():
            return born, died
        order = np.argsort(children["number"], kind="stable")
        place = np.searchsorted(children["number"][order], tasks["child"], side="right") - 1
        place = order[np.maximum(place, 0)]
        ran = children["number"][place] == tasks["child"]
        first = np.full(len(children), np.inf)
        last = np.full(len(children), -np.inf)
        np.fmin.at(first, place[ran], tasks["started"][ran])
        np.fmax.at(last, place[ran], tasks["finished"][ran])
        born[unknown] = np.clip(first[unknown], self.start, self.end)
        unknown &= np.isnan(children["exited"])
        died[unknown] = np.clip(last[unknown], born[unknown], self.end)
        return born, died

    def count(self, outcome: Outcome) -> int:
        """Number of tasks that ended (or stand) as ``outcome``."""
        return int(np.count_nonzero(self.tasks["outcome"] == outcome))

    def level(self, level: Level) -> tuple[Floats, NDArray[np.int32]]:
        """Times and values of one level's changes, in time order."""
        rows = self.levels[self.levels["level"] == level]
        return rows["time"], rows["value"]


def table(dtype: np.dtype[np.void], rows: Iterable[Sequence[Any]]) -> Table:
    """A structured array of ``dtype`` from rows of plain values in field order."""
    return np.array([tuple(row) for row in rows], dtype=dtype)
