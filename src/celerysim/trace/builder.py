"""Events in, rows out: tasks, scale events, level changes and what is odd about a log."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from celerysim.history import LEVEL_DTYPE, SCALE_DTYPE, Level, Outcome, Table, Trigger, table
from celerysim.trace import events as ev
from celerysim.trace.lives import Child, Life, WorkerState, child_number
from celerysim.trace.rows import TaskRows

#: A "Scaling" line this close (seconds) after a "received" line was caused by that message:
#: ``on_task_message`` logs "received", reserves the request and then calls ``maybe_scale``.
MESSAGE_WINDOW_S = 0.005
#: Stamps of different processes may be out of order by this much (seconds); more is a jump.
JUMP_S = 10.0
#: The same end of a task again within this time (seconds) is one end logged twice: by Celery
#: and by a signal handler of the application (django-structlog's ``task_succeeded``).
ECHO_S = 1.0

_NAN = math.nan
_RUNNING, _SUCCEEDED = int(Outcome.RUNNING), int(Outcome.SUCCEEDED)


class Track:
    """The changes of one level, over all workers together."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._value = 0
        self._times, self._values = array("d"), array("i")

    def change(self, time: float, change: int) -> None:
        """Note that the level changes by ``change`` at ``time`` (absolute seconds)."""
        self._value += change
        self._times.append(time)
        self._values.append(self._value)

    def table(self, zero: float) -> Table:
        """The changes as a :data:`~celerysim.history.LEVEL_DTYPE` table."""
        rows = np.empty(len(self._times), dtype=LEVEL_DTYPE)
        rows["time"] = np.round(np.asarray(self._times) - zero, 6)
        rows["level"], rows["value"] = self._level, self._values
        return rows


class Builder:
    """Collects what the events of one log say; times are absolute seconds."""

    def __init__(self) -> None:
        self.rows = TaskRows()
        self.workers: dict[str, WorkerState] = {}
        self.sent: dict[str, tuple[str, float]] = {}  #: name and time of what nobody received yet
        self.first = self.ready = self.end = _NAN
        self.hostnames: dict[str, int] = {}  #: "ready." lines by host name
        self.jumps = 0  #: how often the clock fell
        self.before_jump = _NAN  #: the last stamp before it first did
        self.lost_lines = 0  #: tasks that end without a "received" line
        self.by_number = 0  #: lost tasks found by the order of reception
        self.unnamed = 0  #: handler errors whose task the log does not tell
        self._scales: list[tuple[float, int, Trigger, int, int, int]] = []
        self._messages = 0  # "received" lines so far
        # Over all workers whose "ready." is in the log.
        self._reserved, self._processes = Track(Level.RESERVED), Track(Level.PROCESSES)
        self._handlers: dict[type, Callable[[Any, WorkerState, float], None]] = {
            ev.Sent: self._sent,
            ev.Received: self._received,
            ev.Applied: self._applied,
            ev.Accepted: self._accepted,
            ev.Succeeded: self._succeeded,
            ev.Failed: self._failed,
            ev.Retried: self._retried,
            ev.Revoked: self._revoked,
            ev.TimeLimit: self._time_limit,
            ev.HandlerError: self._handler_error,
            ev.Exited: self._exited,
            ev.MemoryLimit: self._memory_limit,
            ev.Scaled: self._scaled,
            ev.Ready: self._ready,
            ev.Setting: self._setting,
        }

    def consume(self, events: Iterable[ev.Event]) -> None:
        """Take in all ``events``, in the order of the log."""
        handlers, workers, other = self._handlers, self.workers, self._other
        for event in events:
            time, name = event[0], event[1]
            worker = workers.get(name)
            if worker is None:
                worker = workers[name] = WorkerState()
            if time != time:  # not stamped: as of the worker's last line
                time = worker.last
            else:
                if time < worker.last - JUMP_S:
                    if not self.jumps:
                        self.before_jump = worker.last
                    self.jumps += 1
                worker.last = time
                if not time <= self.end:
                    if self.end != self.end:
                        self.first = time
                    self.end = time
            handlers.get(type(event), other)(event, worker, time)

    # --- tasks ---

    def _sent(self, event: ev.Sent, worker: WorkerState, time: float) -> None:
        row = self.rows.latest.get(event.id)
        if row is None:
            self.sent[event.id] = (event.name, time)
        elif math.isnan(self.rows.sent[row]):
            # Events of client and worker come by different ways, the later one may be first.
            self.rows.sent[row] = time

    def _received(self, event: ev.Received, worker: WorkerState, time: float) -> None:
        self._messages += 1
        _, _, name, id, eta = event
        row = self.rows.receive(name, id, time)
        if self.sent and id in self.sent:
            self.rows.sent[row] = self.sent.pop(id)[1]
        worker.message_at = time
        life = worker.life
        life.used = True
        if life.from_start:
            life.reserved += 1
            self._reserved.change(time, 1)
        if eta:
            # It reaches the pool later than the messages after it: numbers no longer follow.
            life.in_order = False
        elif life.in_order:
            life.jobs.append(row)

    def _applied(self, event: ev.Applied, worker: WorkerState, time: float) -> None:
        worker.message_at = _NAN
        row = self.rows.find(event.name, event.id)
        worker.life.applied.append(row)

    def _accepted(self, event: ev.Accepted, worker: WorkerState, time: float) -> None:
        row = self.rows.find(event.name, event.id)
        self.rows.start(row, time)
        worker.life.pids[event.pid] = row
        worker.message_at = _NAN

    def _succeeded(self, event: ev.Succeeded, worker: WorkerState, time: float) -> None:
        _, _, process, name, id, runtime = event
        rows = self.rows
        row = rows.find(name, id)
        if rows.outcome[row] != _RUNNING and runtime == runtime:  # else an accepted line has told
            rows.started[row] = time - runtime
        self._finish(worker, row, time, _SUCCEEDED, process, runtime)

    def _failed(self, event: ev.Failed, worker: WorkerState, time: float) -> None:
        row = self.rows.find(event.name, event.id)
        self._finish(worker, row, time, Outcome.FAILED, event.process)

    def _retried(self, event: ev.Retried, worker: WorkerState, time: float) -> None:
        row = self.rows.find(event.name, event.id)
        self._finish(worker, row, time, Outcome.RETRIED, event.process)
        worker.life.in_order = False  # its next attempt has an ETA, not shown since 5.1

    def _revoked(self, event: ev.Revoked, worker: WorkerState, time: float) -> None:
        row = self.rows.find(event.name, event.id)
        self._finish(worker, row, time, Outcome.REVOKED, "")
        worker.life.discard(row)
        worker.message_at = _NAN

    def _time_limit(self, event: ev.TimeLimit, worker: WorkerState, time: float) -> None:
        worker.message_at = _NAN
        if event.hard:
            row = self.rows.find(event.name, event.id)
            if math.isnan(self.rows.started[row]):
                self.rows.started[row] = time - event.seconds
            self._finish(worker, row, time, Outcome.FAILED, "")

    def _handler_error(self, event: ev.HandlerError, worker: WorkerState, time: float) -> None:
        worker.message_at = _NAN
        if event.error.endswith("TimeLimitExceeded"):
            return  # its "Hard time limit" line has named the task
        row = self._lost_row(worker.life, event.job)
        if row is None:
            self.unnamed += 1
        else:
            lost = event.error.endswith("WorkerLostError")
            self._finish(worker, row, time, Outcome.LOST if lost else Outcome.FAILED, "")

    def _lost_row(self, life: Life, job: int) -> int | None:
        """The row of the lost job: by its number, else by the child that has just exited.

        ``billiard`` numbers jobs from 0 in the order they reach the pool: a
        DEBUG log shows it, else it is the order of reception, unless an ETA
        or a revoked task came between.
        """
        candidates: Sequence[int] = life.orphans
        if life.from_start and 0 <= job < len(life.applied):
            candidates = life.applied[job : job + 1]
        elif not candidates and 0 <= job < len(life.jobs):
            candidates = life.jobs[job : job + 1]
            self.by_number += 1
        row = next((row for row in candidates if self.rows.is_open(row)), None)
        if row in life.orphans:
            life.orphans.remove(row)
        return row

    def _finish(
        self,
        worker: WorkerState,
        row: int,
        time: float,
        outcome: int,
        process: str,
        runtime: float = _NAN,
    ) -> None:
        rows = self.rows
        life = worker.life
        life.used = True
        if rows.outcome[row] > _RUNNING:
            if rows.outcome[row] == outcome and time - rows.finished[row] < ECHO_S:
                return
        elif not rows.deliveries[row]:
            self.lost_lines += 1
        elif life.from_start:
            life.reserved -= 1
            self._reserved.change(time, -1)
        rows.finished[row] = time
        rows.outcome[row] = outcome
        number = child_number(process)
        if number < 0:
            return
        rows.child[row] = number
        if number:
            child = life.children.get(number)
            if child is None or child.exited == child.exited:
                child = self._child(worker, number, time)
            child.last_seen = time
            child.tasks += 1
            if runtime != runtime:
                runtime = time - rows.started[row]
            if runtime == runtime:
                child.busy_s += runtime

    # --- children, scaling, life cycle ---

    def _exited(self, event: ev.Exited, worker: WorkerState, time: float) -> None:
        worker.message_at = _NAN
        number = child_number(event.process)
        if number > 0:
            self._child(worker, number, time).exited = time
        row = worker.life.pids.pop(event.pid, None)
        if row is not None and self.rows.is_open(row):
            worker.life.orphans.append(row)
            self.rows.child[row] = number

    def _memory_limit(self, event: ev.MemoryLimit, worker: WorkerState, time: float) -> None:
        number = child_number(event.process)
        if number > 0:
            self._child(worker, number, time).terminated = time

    def _scaled(self, event: ev.Scaled, worker: WorkerState, time: float) -> None:
        life = worker.life
        after_message = time - worker.message_at <= MESSAGE_WINDOW_S
        worker.message_at = _NAN
        if not life.used:
            trigger = Trigger.UNKNOWN  # a log that does not show receptions
        else:
            trigger = Trigger.MESSAGE if after_message and not life.is_green else Trigger.TIMER
        reserved = life.reserved if life.from_start else -1
        self._scales.append((time, event.change, trigger, life.processes, reserved, self._messages))
        life.scaled_up += max(event.change, 0)
        if life.processes >= 0:
            before = life.processes
            life.scale(event.change)
            self._processes.change(time, life.processes - before)

    def _ready(self, event: ev.Ready, worker: WorkerState, time: float) -> None:
        self.hostnames[event.hostname] = self.hostnames.get(event.hostname, 0) + 1
        if math.isnan(self.ready):
            self.ready = time
        if worker.life.used:
            self._restart(worker, time)
        life = worker.life
        life.begin()
        self._reserved.change(time, 0)
        if life.is_sized:
            self._processes.change(time, life.processes)

    def _setting(self, event: ev.Setting, worker: WorkerState, time: float) -> None:
        if event.key in worker.life.banner and event.key == "hostname":
            self._restart(worker, time)  # another banner: another life
        worker.life.set(event.key, event.value)

    def _restart(self, worker: WorkerState, time: float) -> None:
        life = worker.life
        worker.restart()
        self._end(life, time)

    def _child(self, worker: WorkerState, number: int, time: float) -> Child:
        life = worker.life
        child = worker.child(number, time)
        if worker.life is not life:
            self._end(life, time)
        return child

    def _end(self, life: Life, time: float) -> None:
        """Take a life that is over out of the levels."""
        if life.from_start:
            self._reserved.change(time, -life.reserved)
            if life.is_sized:
                self._processes.change(time, -life.processes)

    def _other(self, event: ev.Event, worker: WorkerState, time: float) -> None:
        number = child_number(getattr(event, "process", "MainProcess"))
        if number > 0:
            self._child(worker, number, time)
        elif number == 0 or not isinstance(event, ev.Output):
            worker.message_at = _NAN

    # --- tables ---

    def worker_names(self) -> list[str]:
        """The workers in the log; clients that only sent tasks are none."""
        return [name for name, worker in self.workers.items() if worker.is_seen]

    def scale_table(self, zero: float) -> Table:
        """The scale events, in seconds since ``zero``."""
        return table(SCALE_DTYPE, ((round(t - zero, 6), *rest) for t, *rest in self._scales))

    def level_table(self, zero: float) -> Table:
        """The level changes, in seconds since ``zero``; empty without a "ready." line.

        ``PROCESSES`` is -1 from where the "Scaling" lines leave the pool's bounds.
        """
        rows = np.concatenate([self._reserved.table(zero), self._processes.table(zero)])
        return rows[np.argsort(rows["time"], kind="stable")]

    def children(self) -> list[Child]:
        """The children of all workers and lives, in the order of their numbers."""
        return [
            child
            for worker in self.workers.values()
            for life in worker.lives
            for child in life.all_children()
        ]
