"""The recorder: the only writer of results.

Rooms tell it what happened; it keeps plain lists, which become the tables of a
:class:`~celerysim.history.History` at the end. It knows no statistics.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import simpy

from celerysim.history import (
    CHILD_DTYPE,
    LEVEL_DTYPE,
    SCALE_DTYPE,
    TASK_DTYPE,
    Level,
    Outcome,
    Table,
    Trigger,
    table,
)

NEVER = float("nan")


class _ChildRow:
    """What is known of one child; the fields of CHILD_DTYPE."""

    __slots__ = ("busy_s", "exited", "forked", "number", "tasks", "terminated", "up")

    def __init__(self, number: int, forked: float) -> None:
        self.number = number
        self.forked = forked
        self.up = self.terminated = self.exited = NEVER
        self.tasks = 0
        self.busy_s = 0.0


class Tables(NamedTuple):
    """The four tables of a history."""

    tasks: Table
    scale_events: Table
    children: Table
    levels: Table


class Recorder:
    """Writes down what happens, with the time it happens at."""

    def __init__(self, env: simpy.Environment, *, levels: bool = True) -> None:
        self._env = env
        self._keep_levels = levels
        self._profile: list[int] = []
        self._sent: list[float] = []
        self._received: list[float] = []
        self._started: list[float] = []
        self._finished: list[float] = []
        self._child: list[int] = []
        self._outcome: list[int] = []
        self._deliveries: list[int] = []
        self._scale: list[tuple[float, int, int, int, int, int]] = []
        self._messages = 0  # received so far
        self._children: list[_ChildRow] = []
        self._level_time: list[float] = []  # columns, as for tasks: plain numbers cost the
        self._level_kind: list[int] = []  # garbage collector nothing
        self._level_value: list[int] = []
        self._current = [-1] * len(Level)
        self._unfinished = 0  # tasks sent and neither finished nor lost
        self._all_sent = False
        self.all_done = env.event()  #: fires when all tasks are sent and finished

    # tasks

    def expect(self, profiles: list[int]) -> None:
        """These tasks will be sent next, if the run lasts: make room for their rows."""
        n = len(profiles)
        self._profile += profiles
        self._received += [NEVER] * n
        self._started += [NEVER] * n
        self._finished += [NEVER] * n
        self._child += [-1] * n
        self._outcome += [Outcome.QUEUED] * n
        self._deliveries += [0] * n

    def sent(self) -> int:
        """The next message is in the broker. Returns the row of its task."""
        self._sent.append(self._env.now)
        self._unfinished += 1
        return len(self._sent) - 1

    def nothing_more_to_send(self) -> None:
        """The producer has stopped."""
        self._all_sent = True
        self._check_all_done()

    def received(self, task: int) -> None:
        """The worker logs "received"."""
        self._received[task] = self._env.now
        self._outcome[task] = Outcome.RESERVED
        self._deliveries[task] += 1
        self._messages += 1

    def started(self, task: int, child: int) -> None:
        """The task's body begins in child number ``child``."""
        self._started[task] = self._env.now
        self._child[task] = child
        self._outcome[task] = Outcome.RUNNING

    def finished(self, task: int, outcome: Outcome) -> None:
        """The task's body ended, or it was declared lost or over its hard time limit."""
        if self._finished[task] == self._finished[task]:
            return  # logged as succeeded, then lost before the supervisor knew: the first counts
        self._finished[task] = self._env.now
        self._outcome[task] = outcome
        self._unfinished -= 1
        if not self._unfinished:
            self._check_all_done()

    def requeued(self, task: int) -> None:
        """The message went back to the queue; the task will start anew."""
        if self._finished[task] == self._finished[task]:
            self._finished[task] = NEVER
            self._unfinished += 1
        self._started[task] = NEVER
        self._child[task] = -1
        self._outcome[task] = Outcome.QUEUED

    def _check_all_done(self) -> None:
        if self._all_sent and not self._unfinished and not self.all_done.triggered:
            self.all_done.succeed()

    # the pool

    def scaled(self, change: int, trigger: Trigger, processes: int, reserved: int) -> None:
        """The autoscaler logs "Scaling up" or "Scaling down"."""
        self._scale.append((self._env.now, change, trigger, processes, reserved, self._messages))

    def forked(self, number: int) -> None:
        """Child ``number`` exists. Numbers count from 1."""
        self._children.append(_ChildRow(number, self._env.now))

    def up(self, number: int) -> None:
        """The supervisor knows that the child is ready for work."""
        self._children[number - 1].up = self._env.now

    def terminated(self, number: int) -> None:
        """The child was told to leave, or began to by itself (the first time counts)."""
        row = self._children[number - 1]
        if row.terminated != row.terminated:
            row.terminated = self._env.now

    def exited(self, number: int) -> None:
        """The supervisor has reaped the child."""
        self._children[number - 1].exited = self._env.now

    def worked(self, number: int, seconds: float, *, done: bool) -> None:
        """The child spent ``seconds`` in a task, and finished it if ``done``."""
        row = self._children[number - 1]
        row.busy_s += seconds
        row.tasks += done

    # levels

    def level(self, level: Level, value: int) -> None:
        """A level has this value from now on."""
        if self._keep_levels and self._current[level] != value:
            self._current[level] = value
            self._level_time.append(self._env.now)
            self._level_kind.append(level)
            self._level_value.append(value)

    def tables(self) -> Tables:
        """Everything, as the tables of a history."""
        tasks = np.empty(len(self._sent), dtype=TASK_DTYPE)
        columns: dict[str, list[Any]] = {
            "profile": self._profile,
            "sent": self._sent,
            "received": self._received,
            "started": self._started,
            "finished": self._finished,
            "child": self._child,
            "outcome": self._outcome,
            "deliveries": self._deliveries,
        }
        for name, column in columns.items():
            tasks[name] = column[: len(tasks)]
        levels = np.empty(len(self._level_time), dtype=LEVEL_DTYPE)
        levels["time"] = self._level_time
        levels["level"] = self._level_kind
        levels["value"] = self._level_value
        fields = CHILD_DTYPE.names or ()
        return Tables(
            tasks,
            table(SCALE_DTYPE, self._scale),
            table(CHILD_DTYPE, ([getattr(row, f) for f in fields] for row in self._children)),
            levels,
        )
