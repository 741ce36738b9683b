"""The machines of all lanes: N cores shared by all runnable work of a worker.

The same processor sharing as :mod:`celerysim.engine.machine`, operation for
operation, so that times are equal to the last bit: one virtual clock a lane, one
place for the piece of each child and of the supervisor, and the alarms that were
set, outdated ones included (they advance the virtual clock, and so its rounding).

Invariant: ``runnable`` is the number of pieces whose end is not :data:`NEVER`;
the earliest alarm of a lane is the clock's machine event.
"""

from __future__ import annotations

import numpy as np

from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.arrays import NEVER, Bools, Floats, Ints, Lanes, Value, Whole, at, whole_at
from celerysim.batch.clock import Clock
from celerysim.engine.machine import RESOLUTION_S


class Alarms:
    """Alarms of each lane, the earliest one in the clock's row, the others on a stack."""

    def __init__(self, lanes: int, clock: Clock, row: int) -> None:
        self._clock = clock
        self._row = row
        self._time = np.full((4, lanes), NEVER)
        self._order = np.zeros((4, lanes), dtype=np.int64)
        self._depth = np.zeros(lanes, dtype=np.int64)

    def reset(self, lanes: Lanes) -> None:
        """No alarm is set."""
        self._depth[lanes] = 0

    def add(self, lanes: Lanes, time: Floats) -> None:
        """Set an alarm in each lane."""
        row, order = self._clock.time[self._row], self._clock.order[self._row]
        first = row.take(lanes)
        more = np.flatnonzero(first < NEVER)
        if more.size:
            others = lanes[more]
            depth = self._depth.take(others)
            if depth.max() >= len(self._time):
                self._grow()
            earlier = time[more] < first[more]
            if np.count_nonzero(earlier) < more.size:
                self._insert(others[~earlier], time[more][~earlier])
                above = np.ones(lanes.size, dtype=np.bool_)
                above[more[~earlier]] = False
                lanes, time = lanes[above], time[above]
                others, depth = others[earlier], depth[earlier]
            self._time[depth, others] = row.take(others)
            self._order[depth, others] = order.take(others)
            self._depth[others] = depth + 1
        self._clock.schedule(self._row, lanes, time)

    def _insert(self, lanes: Lanes, time: Floats) -> None:
        """Below the earliest: sink to the place that ``time`` asks for."""
        place = self._depth.take(lanes)
        self._depth[lanes] = place + 1
        self._time[place, lanes] = time
        self._order[place, lanes] = self._clock.tick()
        while lanes.size:
            deep = place > 0
            lanes, place = lanes[deep], place[deep]
            later = self._time[place - 1, lanes] <= self._time[place, lanes]
            lanes, place = lanes[later], place[later]
            for column in (self._time, self._order):
                upper, lower = column[place, lanes], column[place - 1, lanes]
                column[place, lanes], column[place - 1, lanes] = lower, upper
            place = place - 1

    def drop(self, lanes: Lanes) -> None:
        """The earliest alarm has rung."""
        row, order = self._clock.time[self._row], self._clock.order[self._row]
        row[lanes] = NEVER
        depth = self._depth.take(lanes)
        deep = np.flatnonzero(depth)
        if deep.size:
            others, place = lanes[deep], depth[deep] - 1
            row[others] = self._time[place, others]
            order[others] = self._order[place, others]
            self._depth[others] = place

    def _grow(self) -> None:
        self._time = np.concatenate([self._time, np.full_like(self._time, NEVER)])
        self._order = np.concatenate([self._order, np.zeros_like(self._order)])


class Machine:
    """Cores, and the CPU work that runs on them."""

    ample = False

    def __init__(self, lanes: int, children: int, clock: Clock, agenda: Agenda) -> None:
        self._lanes = lanes
        self._clock = clock
        self._agenda = agenda
        self.supervisor = children  #: the piece of the supervisor; the others are the children's
        pieces = children + 1
        self._pieces = np.arange(pieces, dtype=np.int16)[:, None]
        self.ends = np.full((pieces, lanes), NEVER)  # virtual time
        self._serial = np.zeros((pieces, lanes), dtype=np.int64)
        self.alarm = np.full(pieces * lanes, NEVER)  # the latest alarm set for the piece
        self.flat_ends = self.ends.reshape(-1)
        self.flat_serial = self._serial.reshape(-1)
        self.alarms = Alarms(lanes, clock, clock.machine)
        self.virtual = np.zeros(lanes)
        self.updated = np.zeros(lanes)
        self.runnable = np.zeros(lanes, dtype=np.int64)
        self.rate = np.zeros(lanes)
        self.busy_core_s = np.zeros(lanes)
        self.cores: Whole = np.ones(lanes, dtype=np.int64)
        self.speed: Value = np.ones(lanes)

    def reset(self, lanes: Lanes) -> None:
        """Nothing runs."""
        self.ends[:, lanes] = NEVER
        self.alarms.reset(lanes)
        self.virtual[lanes] = 0.0
        self.updated[lanes] = self._clock.now.take(lanes)
        self.runnable[lanes] = 0
        self.busy_core_s[lanes] = 0.0

    def begin(self, lanes: Lanes, piece: int | Ints, cpu_s: Value) -> None:
        """Start ``cpu_s`` seconds of work as the given piece of each lane."""
        self.advance(lanes)
        place = piece * self._lanes + lanes
        self.flat_ends[place] = self.virtual.take(lanes) + cpu_s
        self.flat_serial[place] = self._clock.tick()
        self.alarm[place] = NEVER
        self.runnable[lanes] += 1
        self.settle(lanes)

    def withdraw(self, lanes: Lanes, piece: int | Ints) -> None:
        """Take unfinished work away."""
        place = piece * self._lanes + lanes
        self.advance(lanes)
        self.flat_ends[place] = NEVER
        self.runnable[lanes] -= 1
        self.settle(lanes)

    def has_room(self, lanes: Lanes, pieces: Whole) -> Bools:
        """Whether so many more pieces would be shared out like those that run."""
        return np.ones(lanes.size, dtype=np.bool_)

    def works(self, lanes: Lanes, piece: Ints) -> Bools:
        """Whether there is unfinished work."""
        return self.flat_ends.take(piece * self._lanes + lanes) < NEVER

    def advance(self, lanes: Lanes) -> None:
        """Bring the virtual clock up to now."""
        now = self._clock.now.take(lanes)
        elapsed = now - self.updated.take(lanes)
        if not np.count_nonzero(elapsed):
            return
        runnable = self.runnable.take(lanes)
        self.virtual[lanes] += elapsed * self.rate.take(lanes) * (runnable > 0)
        self.busy_core_s[lanes] += elapsed * np.minimum(runnable, whole_at(self.cores, lanes))
        self.updated[lanes] = now

    def settle(self, lanes: Lanes) -> None:
        """Recompute the rate, and see to it that an alarm rings when the next piece ends."""
        runnable = self.runnable.take(lanes)
        idle = runnable == 0
        if np.count_nonzero(idle):
            self.virtual[lanes[idle]] = 0.0
            lanes, runnable = lanes[~idle], runnable[~idle]
        cores, speed = whole_at(self.cores, lanes), at(self.speed, lanes)
        rate = np.where(runnable > cores, speed * cores / runnable, speed)
        self.rate[lanes] = rate
        ends, piece = self.first(lanes)
        wait = np.maximum(ends - self.virtual.take(lanes), 0.0) / rate
        now = self.updated.take(lanes)
        due = now + wait
        place = piece * self._lanes + lanes
        alarm = self.alarm.take(place)
        new = ~((now < alarm) & (alarm <= due + RESOLUTION_S / 2))
        if np.count_nonzero(new):
            due = due[new]
            self.alarm[place[new]] = due
            self.alarms.add(lanes[new], due)

    def first(self, lanes: Lanes) -> tuple[Floats, Ints]:
        """(end, piece) of the piece that ends first, by end and then by begin."""
        return self.earliest(lanes, self.ends.take(lanes, axis=1))

    def earliest(self, lanes: Lanes, ends: Floats) -> tuple[Floats, Ints]:
        """(end, piece) of the piece with the first of these ends, and then by begin."""
        end = np.minimum.reduce(ends, axis=0)
        first = ends == end
        piece = (first * self._pieces).max(axis=0)
        ties = np.add.reduce(first, axis=0, dtype=np.int16) > 1
        if np.count_nonzero(ties):
            serials = self._serial.take(lanes[ties], axis=1)
            serials[~first[:, ties]] = np.iinfo(np.int64).max
            piece[ties] = serials.argmin(axis=0)
        return end, piece.astype(np.int64)

    def ring(self, lanes: Lanes) -> None:
        """An alarm rings: complete what is done."""
        self.ring_on(self.rung(lanes))

    def rung(self, lanes: Lanes) -> Lanes:
        """An alarm rings; returns where work may be done."""
        self.alarms.drop(lanes)
        self.advance(lanes)
        return lanes

    def ring_on(self, lanes: Lanes) -> None:
        """Complete the next piece if it is done, else set the next alarm."""
        end, piece = self.first(lanes)
        self.complete(lanes, piece, end <= self.virtual.take(lanes) + RESOLUTION_S)

    def complete(self, lanes: Lanes, piece: Ints, done: Bools) -> None:
        """The first piece of each lane is done, or the alarm is over."""
        if np.count_nonzero(done) < lanes.size:
            rest = lanes[~done]
            self._clock.ringing[rest] = False
            self.settle(rest)
            self._agenda.put(Stage.SELECT, rest)
            lanes, piece = lanes[done], piece[done]
        self.flat_ends[piece * self._lanes + lanes] = NEVER
        left = self.runnable.take(lanes) - 1
        self.runnable[lanes] = left
        self.virtual[lanes] *= left > 0
        self.resume(lanes, piece)

    def resume(self, lanes: Lanes, piece: Ints) -> None:
        """A piece is done, and its process goes on within the alarm."""
        self._clock.ringing[lanes] = True
        mine = piece == self.supervisor
        if np.count_nonzero(mine):
            self._clock.resume(lanes[mine])
            lanes, piece = lanes[~mine], piece[~mine]
        self._clock.row[lanes] = piece
        self._agenda.put(Stage.CHILD, lanes)
