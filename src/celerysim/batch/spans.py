"""A stretch of CPU work of each lane: pieces one after the other, nothing else beginning or ending.

What :mod:`celerysim.batch.express` computes on, for each kind of machine.
"""

from __future__ import annotations

import numpy as np

from celerysim.batch.ample import AmpleMachine
from celerysim.batch.arrays import NEVER, Floats, Ints, Lanes, Value, at, whole_at
from celerysim.batch.clock import Clock
from celerysim.batch.machine import Machine
from celerysim.batch.tasks import Tasks


class AmpleSpan:
    """On a machine with a core for everyone."""

    def __init__(self, machine: AmpleMachine, lanes: Lanes, now: Floats) -> None:
        self._machine = machine
        self._lanes = lanes
        self._speed = at(machine.speed, lanes)
        self._busy_s: Value = 0.0
        self.now = now  #: the end of the work so far

    def work(self, *cpu_s: Value) -> None:
        """Do pieces of work."""
        seconds = sum(cpu_s) / self._speed
        self.now = self.now + seconds
        self._busy_s = self._busy_s + seconds

    def leave(self) -> None:
        """The stretch is over."""
        self._machine.busy_core_s[self._lanes] += self._busy_s

    def begin_body(self, place: Ints, number: Ints, clock: Clock, tasks: Tasks) -> None:
        """A child begins a task's body; ``number`` is the task's place in the tables."""
        clock.schedule_at(place, self.now + tasks.flat_duration.take(number))


class SharedSpan:
    """Beside the work that runs all the while: the operations of Machine, one by one."""

    def __init__(self, machine: Machine, lanes: Lanes, now: Floats) -> None:
        self._machine = machine
        self._lanes = lanes
        self._cores = whole_at(machine.cores, lanes)
        self._speed = at(machine.speed, lanes)
        self._runnable = machine.runnable.take(lanes)
        self.now = machine.updated.take(lanes)
        self._virtual = machine.virtual.take(lanes)
        self._busy_s = machine.busy_core_s.take(lanes)
        self._pass(now, machine.rate.take(lanes), self._runnable)
        self._virtual *= self._runnable > 0

    def _rate(self, runnable: Ints) -> Floats:
        shared = self._speed * self._cores / np.maximum(runnable, 1)
        return np.where(runnable > self._cores, shared, self._speed)

    def _pass(self, until: Floats, rate: Value, runnable: Ints) -> None:
        elapsed = until - self.now
        self._virtual += elapsed * rate
        self._busy_s += elapsed * np.minimum(runnable, self._cores)
        self.now = until

    def work(self, *cpu_s: Value) -> None:
        """Do pieces of work."""
        runnable = self._runnable + 1
        rate = self._rate(runnable)
        for piece_s in cpu_s:
            left = (self._virtual + piece_s) - self._virtual
            self._pass(self.now + left / rate, rate, runnable)
            self._virtual *= self._runnable > 0  # it starts anew when nothing runs

    def leave(self) -> None:
        """The stretch is over."""
        machine, lanes = self._machine, self._lanes
        machine.virtual[lanes] = self._virtual
        machine.updated[lanes] = self.now
        machine.busy_core_s[lanes] = self._busy_s
        machine.runnable[lanes] = self._runnable
        machine.rate[lanes] = self._rate(self._runnable)

    def begin_body(self, place: Ints, number: Ints, clock: Clock, tasks: Tasks) -> None:
        """A child begins the first step of a task's body."""
        seconds = tasks.flat_seconds.take(number * tasks.steps)
        waits = np.signbit(seconds)
        clock.schedule_at(place[waits], self.now[waits] - seconds[waits])
        some = (~waits).nonzero()[0]
        if not some.size:
            return
        machine = self._machine
        lanes, place, virtual = self._lanes[some], place[some], self._virtual[some]
        ends = virtual + seconds[some]
        first = machine.ends.take(lanes, axis=1).min(axis=0) > ends
        machine.flat_ends[place] = ends
        machine.flat_serial[place] = clock.tick()
        machine.alarm[place] = NEVER
        self._runnable[some] += 1
        # it is set an alarm if it comes first
        rate = self._rate(self._runnable)[some]
        due = self.now[some] + (ends - virtual) / rate
        machine.alarm[place[first]] = due[first]
        machine.alarms.add(lanes[first], due[first])


Span = AmpleSpan | SharedSpan
