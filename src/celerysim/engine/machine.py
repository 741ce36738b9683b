"""The machine: N cores shared by all runnable work of the worker.

Processor sharing: while n pieces of CPU work are runnable, each advances at
``speed * min(1, cores / n)``. That is what the kernel's fair scheduler comes to in
the long run, and at once where no more is runnable than there are cores; what it
does before is :mod:`celerysim.engine.run_queues`. Leaves out time slices, cache
effects and the different weight of a process that has just woken. Invariant: the
work done by all pieces together never exceeds ``speed * cores`` a second, and no
piece advances faster than ``speed``.

All runnable pieces advance at one rate, so the machine keeps one virtual clock
of work done a piece; a piece ends when that clock reaches its arrival plus its
size. An event therefore costs O(log n): a heap ordered by that end.
(Virtual time of processor sharing: e.g. Parekh and Gallager, 1993.)
"""

from __future__ import annotations

from heapq import heappop, heappush

import simpy
from simpy.events import Timeout

#: Work within this many seconds of its end is done: well above the rounding of
#: the clock, well below anything that is modelled.
RESOLUTION_S = 1e-10

NO_ALARM = float("inf")

#: The process that is no child; children have their numbers.
SUPERVISOR = 0


class Work(simpy.Event):
    """A piece of CPU work; the event of its completion."""

    __slots__ = ("alarm", "arrival", "core", "owner", "withdrawn")

    def __init__(self, env: simpy.Environment, owner: int = SUPERVISOR) -> None:
        super().__init__(env)
        self.alarm = NO_ALARM  #: when the latest alarm set for it rings
        self.withdrawn = False
        self.owner = owner  #: the process that does it
        self.core: object = None  #: of a machine with run queues: where it is,
        self.arrival = 0  #: and in which order it came there

    def complete(self) -> None:
        """Process the event at once, as ``Environment.step`` does when an event's time has come.

        The alarm that calls this *is* the completion's place in the schedule; going
        through ``succeed`` would make two events of every piece of work.
        """
        self._ok, self._value = True, None
        callbacks, self.callbacks = self.callbacks, None  # type: ignore[assignment]
        for callback in callbacks:
            callback(self)


class Machine:
    """Cores, and the CPU work that runs on them."""

    def __init__(self, env: simpy.Environment, cores: int, speed: float = 1.0) -> None:
        self._env = env
        self._cores = cores
        self._speed = speed
        self._rate = speed  # virtual seconds a second, for each piece
        self._virtual = 0.0
        self._updated = env.now
        self._runnable = 0
        self._room: float = float("inf")  # pieces that run before they crowd
        self._busy_core_s = 0.0
        self._heap: list[tuple[float, int, Work]] = []
        self._serial = 0
        self._on_alarm = self._ring  # bound once

    @property
    def busy_core_s(self) -> float:
        """Core-seconds spent computing so far."""
        self._advance()
        return self._busy_core_s

    def work(self, cpu_s: float, owner: int = SUPERVISOR) -> Work:
        """Start ``cpu_s`` seconds of CPU work; the returned event fires when they are done."""
        piece = Work(self._env, owner)
        self.begin(piece, cpu_s)
        return piece

    def begin(self, piece: Work, cpu_s: float) -> None:
        """Start ``cpu_s`` seconds of CPU work whose completion is the event ``piece``.

        Someone may wait for ``piece`` long before: a sleeping process, say, whose
        first work is to wake up.
        """
        self._serial += 1
        if self._runnable >= self._room:
            self._crowd(piece, cpu_s)
        elif self._runnable:
            self._advance()
            heappush(self._heap, (self._virtual + cpu_s, self._serial, piece))
            self._runnable += 1
            self._settle()
        else:  # the same for a machine that idles, the usual case, in fewer steps
            self._updated = now = self._env.now
            self._heap.append((cpu_s, self._serial, piece))
            self._runnable = 1
            self._rate = self._speed
            wait = cpu_s / self._speed
            piece.alarm = now + wait
            Timeout(self._env, wait).callbacks.append(self._on_alarm)

    def withdraw(self, piece: Work) -> None:
        """Take unfinished work away: the process that did it was killed."""
        if piece.triggered or piece.withdrawn:
            return
        self._advance()
        piece.withdrawn = True
        self._runnable -= 1
        self._settle()

    def _crowd(self, piece: Work, cpu_s: float) -> None:
        """Begin a piece where there is no room; processor sharing always has some."""
        raise NotImplementedError

    def _advance(self) -> None:
        """Bring the virtual clock up to now."""
        now = self._env.now
        elapsed = now - self._updated
        if elapsed > 0.0:
            n = self._runnable
            if n:
                self._virtual += elapsed * self._rate
                self._busy_core_s += elapsed * (n if n < self._cores else self._cores)
            self._updated = now

    def _settle(self) -> None:
        """Recompute the rate, and see to it that an alarm rings when the next piece ends.

        Each piece is set an alarm when it comes first, and anew only when the rate has changed
        since; alarms that are out of date ring for nothing.
        """
        heap = self._heap
        while heap and heap[0][2].withdrawn:
            heappop(heap)
        n = self._runnable
        if not n:
            self._virtual = 0.0  # nothing runs: start anew, so that rounding cannot build up
            return
        if n > self._cores:
            self._rate = rate = self._speed * self._cores / n
        else:
            self._rate = rate = self._speed
        ends, _, first = heap[0]
        left = ends - self._virtual
        wait = left / rate if left > 0.0 else 0.0
        now = self._updated
        if not now < first.alarm <= now + wait + RESOLUTION_S / 2:
            first.alarm = now + wait
            Timeout(self._env, wait).callbacks.append(self._on_alarm)

    def _ring(self, _: simpy.Event) -> None:
        """Complete what is done."""
        self._advance()
        heap = self._heap
        while heap:
            ends, _serial, piece = heap[0]
            if ends > self._virtual + RESOLUTION_S:
                break
            heappop(heap)
            if not piece.withdrawn:
                self._runnable -= 1
                if not self._runnable:
                    heap.clear()
                    self._virtual = 0.0
                piece.complete()
        if heap:
            self._settle()


__all__ = ["RESOLUTION_S", "Machine", "Work"]
