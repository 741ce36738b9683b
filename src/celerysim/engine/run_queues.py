"""Cores with a run queue each, as Linux has them.

Models ``kernel/sched/fair.c`` (6.x): work that becomes runnable goes to the core
with the fewest runnable pieces; pieces on one core share it equally; a core with
two fewer than another is given one of the other's at once. Three equal
computations on two cores so run at 1/2, 1/2 and 1, not at 2/3 each. A difference
of one is left for ``balance_s`` seconds; then a piece is moved, the one that has
been on its core the longest, so that in the long run all have their share.
``validation/run_queues`` has the measurement. With ``late_share`` some of the processes
that wake up while all cores compute are not let in at once, but some milliseconds
later. A process that ends one piece and begins the next in the same instant stays where
it is.

Leaves out: time slices, which core was whose last one, the some tens of
milliseconds in which a burst of wake-ups may leave cores more unequal.
Invariant: while more is runnable than there are cores, no core idles and no two
cores' numbers of runnable pieces differ by two.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import simpy
from simpy.events import Timeout

from celerysim.engine.machine import NO_ALARM, RESOLUTION_S, Machine, Work

NEVER = float("inf")
#: Where a piece is that will come late.
LATE = object()


class Core:
    """One core: its pieces share it equally, so one clock of work done serves them all."""

    __slots__ = ("due", "heap", "number", "updated", "virtual")

    def __init__(self, number: int) -> None:
        self.number = number
        self.heap: list[tuple[float, int, Work]] = []  # (end on the clock, serial, piece)
        self.virtual = 0.0
        self.updated = 0.0
        self.due = NEVER  #: when the first of the pieces ends


class RunQueues(Machine):
    """A machine that has a run queue for each core.

    Up to one piece a core it is a :class:`Machine`. Beyond that it is *crowded*: the
    pieces are in the cores' heaps instead of the machine's one.
    """

    def __init__(
        self,
        env: simpy.Environment,
        cores: int,
        speed: float = 1.0,
        balance_s: float = NEVER,
        *,
        late_share: float = 0.0,
        late_s: float = 0.0,
        uniforms: Iterator[float] | None = None,
    ) -> None:
        super().__init__(env, cores, speed)
        self._late_share, self._late_s = late_share, late_s
        self._uniforms = uniforms or iter(())
        self._room = cores  # zero while crowded
        self._queues = [Core(number) for number in range(cores)]
        self._balance_s = balance_s
        self._balance_at = NEVER  # the alarm that is set
        self._balanced = 0.0  # the last time, or when it became crowded
        self._vacated: tuple[int, Core, int] | None = None  # owner, core, arrival of what has ended
        self._on_core_alarm = self._ring_cores

    def withdraw(self, piece: Work) -> None:
        """Take unfinished work away: the process that did it was killed."""
        if piece.core is LATE:
            piece.withdrawn = True
            return
        if self._room or piece.triggered or piece.withdrawn:
            super().withdraw(piece)
            return
        piece.withdrawn = True
        self._advance()
        self._runnable -= 1
        core = piece.core
        assert isinstance(core, Core)
        self._bring_up(core)
        core.heap = [entry for entry in core.heap if entry[2] is not piece]
        heapify(core.heap)
        self._settle_core(core)
        self._even_out()

    # crowding

    def _crowd(self, piece: Work, cpu_s: float) -> None:
        """Begin a piece beside as many others as there are cores, or more."""
        vacated = self._vacated
        goes_on = vacated is not None and vacated[0] == piece.owner
        if self._late_share and not goes_on and next(self._uniforms) < self._late_share:
            piece.core = LATE
            wait = (0.5 + next(self._uniforms)) * self._late_s
            Timeout(self._env, wait).callbacks.append(lambda _: self._come_late(piece, cpu_s))
        else:
            self._enter(piece, cpu_s)

    def _come_late(self, piece: Work, cpu_s: float) -> None:
        """Begin a piece that was kept waiting."""
        piece.core = None
        if piece.withdrawn:
            return
        self._serial += 1
        if self._runnable >= self._room:
            self._enter(piece, cpu_s)
        else:
            self.begin(piece, cpu_s)  # a core is free by now

    def _enter(self, piece: Work, cpu_s: float) -> None:
        self._advance()
        if self._room:
            self._spread()
        self._runnable += 1
        vacated = self._vacated
        if vacated and vacated[0] == piece.owner:  # its process goes on where it is
            self._vacated = None
            _, core, piece.arrival = vacated
        else:
            core = min(self._queues, key=_length)
            piece.arrival = self._serial
        self._join(core, piece, cpu_s, self._serial)

    def _spread(self) -> None:
        """Give each piece a core of its own, in the order in which they began."""
        now = self._updated
        running = sorted((entry[1], entry) for entry in self._heap if not entry[2].withdrawn)
        for core, (serial, (ends, _, piece)) in zip(self._queues, running, strict=True):
            core.heap.clear()
            core.virtual, core.updated = 0.0, now
            piece.arrival = serial
            self._join(core, piece, max(ends - self._virtual, 0.0), serial)
        self._heap.clear()
        self._room = 0
        self._balanced = now
        self._arm_balance()

    def _gather(self) -> None:
        """No more than a piece a core: all advance at full speed again."""
        self._room = self._cores
        self._virtual = 0.0
        for core in self._queues:
            self._bring_up(core)
            for ends, serial, piece in core.heap:
                piece.alarm = NO_ALARM  # the one that is set rings for the core
                heappush(self._heap, (ends - core.virtual, serial, piece))
            core.heap.clear()
        self._settle()

    # one core

    def _bring_up(self, core: Core) -> None:
        """Bring a core's clock up to now."""
        now = self._updated
        if core.heap:
            core.virtual += (now - core.updated) * self._speed / len(core.heap)
        else:
            core.virtual = 0.0
        core.updated = now

    def _join(self, core: Core, piece: Work, cpu_s: float, serial: int) -> None:
        self._bring_up(core)
        piece.core = core
        piece.alarm = NO_ALARM
        heappush(core.heap, (core.virtual + cpu_s, serial, piece))
        self._settle_core(core)

    def _settle_core(self, core: Core) -> None:
        """See to it that an alarm rings when the core's next piece ends."""
        if not core.heap:
            core.due = NEVER
            return
        ends, _, first = core.heap[0]
        wait = max(ends - core.virtual, 0.0) * len(core.heap) / self._speed
        now = self._updated
        core.due = now + wait
        if not now < first.alarm <= core.due + RESOLUTION_S / 2:
            first.alarm = core.due
            Timeout(self._env, wait).callbacks.append(self._on_core_alarm)

    def _ring_cores(self, event: simpy.Event) -> None:
        """Complete what is done, the earliest begun first."""
        while not self._room:
            self._advance()
            soon = self._updated + RESOLUTION_S
            done = [core for core in self._queues if core.due <= soon]
            if not done:
                for core in self._queues:  # the alarm was set when the core was less full
                    if core.heap[0][2].alarm <= self._updated:
                        self._bring_up(core)
                        self._settle_core(core)
                return
            self._complete(min(done, key=_first_serial))
        self._ring(event)

    def _complete(self, core: Core) -> None:
        """The first piece of a core is done."""
        self._bring_up(core)
        piece = heappop(core.heap)[2]
        self._settle_core(core)
        self._runnable -= 1
        self._vacated = (piece.owner, core, piece.arrival)
        piece.complete()  # its process may begin its next piece, and others', here
        self._vacated = None
        self._even_out()

    # balance

    def _even_out(self) -> None:
        """Move pieces until no two cores differ by two; the crowd may be over."""
        if self._room:
            return
        while True:
            short, long = min(self._queues, key=_length), max(self._queues, key=_length)
            if len(long.heap) - len(short.heap) < 2:
                break
            self._move(long, short)
        if self._runnable <= self._cores:
            self._gather()

    def _move(self, long: Core, short: Core) -> None:
        """Move the piece that came to ``long`` first to ``short``."""
        self._bring_up(long)
        entry = min(long.heap, key=_arrival)
        long.heap.remove(entry)
        heapify(long.heap)
        self._settle_core(long)
        ends, serial, piece = entry
        self._serial += 1
        piece.arrival = self._serial
        self._join(short, piece, max(ends - long.virtual, 0.0), serial)

    def _arm_balance(self) -> None:
        if self._balance_at == NEVER != self._balance_s:
            self._balance_at = self._balanced + self._balance_s
            Timeout(self._env, self._balance_at - self._updated).callbacks.append(self._balance)

    def _balance(self, _: simpy.Event) -> None:
        """A difference of one piece has been there for long enough: turn it round."""
        self._balance_at = NEVER
        if self._room:
            return
        self._advance()
        if self._updated >= self._balanced + self._balance_s - RESOLUTION_S:
            self._balanced = self._updated
            short, long = min(self._queues, key=_length), max(self._queues, key=_length)
            if len(long.heap) > len(short.heap):
                self._move(long, short)
        self._arm_balance()


def _length(core: Core) -> int:
    return len(core.heap)


def _first_serial(core: Core) -> int:
    return core.heap[0][1]


def _arrival(entry: tuple[float, int, Work]) -> int:
    return entry[2].arrival


__all__ = ["Core", "RunQueues"]
