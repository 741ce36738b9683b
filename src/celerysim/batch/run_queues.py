"""The machines of all lanes, where cores have a run queue each.

The same run queues as :mod:`celerysim.engine.run_queues`, operation for operation.
Lanes with no more runnable pieces than cores are those of
:class:`~celerysim.batch.machine.Machine`. In a *crowded* one a piece's end is on
the clock of its core instead; cores have alarms of their own, because the
machine's, set before the crowd, then ring for nothing.

Invariant: ``room`` is zero in crowded lanes, else what runs before they crowd;
while a lane is crowded, ``_first`` and ``_due`` are those of its cores' queues.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.arrays import NEVER, Bools, Floats, Ints, Lanes, Value, Whole, at, whole_at
from celerysim.batch.clock import Clock
from celerysim.batch.machine import Alarms, Machine
from celerysim.engine.machine import RESOLUTION_S
from celerysim.scenario.schema import Scenario

NOBODY = -1
#: The length of the queue of a core that a lane does not have, and a serial after all others.
ABSENT = LAST = np.iinfo(np.int64).max
#: Room where all pieces share all cores.
PLENTY = 2**62


def crowds(scenario: Scenario) -> bool:
    """Whether more may be runnable than there are cores, each with a run queue.

    A single core's run queue is processor sharing.
    """
    machine, processes = scenario.machine, scenario.worker.max_concurrency + 1
    return machine.scheduling == "run queues" and 1 < machine.cores < processes


def capacity(scenario: Scenario) -> int:
    """How many pieces run before they crowd."""
    return scenario.machine.cores if crowds(scenario) else PLENTY


class ManyAlarms(Alarms):
    """Alarms in no order but for the earliest.

    Crowds come and go and leave many outdated alarms; sinking each new one to its place
    took half of the time.
    """

    def reset(self, lanes: Lanes) -> None:
        """No alarm is set."""
        super().reset(lanes)
        self._time[:, lanes] = NEVER

    def _insert(self, lanes: Lanes, time: Floats) -> None:
        """Beside the earliest."""
        place = self._depth.take(lanes)
        self._depth[lanes] = place + 1
        self._time[place, lanes] = time
        self._order[place, lanes] = self._clock.tick()

    def drop(self, lanes: Lanes) -> None:
        """The earliest alarm has rung."""
        row, order = self._clock.time[self._row], self._clock.order[self._row]
        row[lanes] = NEVER
        depth = self._depth.take(lanes)
        some = np.flatnonzero(depth)
        if not some.size:
            return
        lanes, last = lanes[some], depth[some] - 1
        times = self._time[: int(last.max()) + 1].take(lanes, axis=1)
        first = np.minimum.reduce(times, axis=0)
        same = times == first
        place = (same * np.arange(len(same))[:, None]).max(axis=0)
        ties = np.flatnonzero(np.add.reduce(same, axis=0, dtype=np.int64) > 1)
        if ties.size:
            orders = self._order[: len(same)].take(lanes[ties], axis=1)
            orders[~same[:, ties]] = LAST
            place[ties] = orders.argmin(axis=0)
        row[lanes], order[lanes] = first, self._order[place, lanes]
        self._time[place, lanes] = self._time[last, lanes]
        self._order[place, lanes] = self._order[last, lanes]
        self._time[last, lanes] = NEVER
        self._depth[lanes] = last


class RunQueues(Machine):
    """Machines that have a run queue for each core; ``cores`` is the most that one has."""

    def __init__(self, lanes: int, children: int, clock: Clock, agenda: Agenda, cores: int) -> None:
        super().__init__(lanes, children, clock, agenda)
        self.alarms = ManyAlarms(lanes, clock, clock.machine)
        self._core_alarms = ManyAlarms(lanes, clock, clock.cores)
        self.capacity: Whole = PLENTY
        self.balance_s: Value = NEVER
        self.room = np.zeros(lanes, dtype=np.int64)
        self._by_core = np.zeros(lanes, dtype=np.bool_)  # the alarm that rings is a core's
        self._balanced = np.zeros(lanes)  # the last time, or when it became crowded
        # what has just ended, while its process goes on: piece, core, arrival
        self._vacated = np.full(lanes, NOBODY, dtype=np.int64)
        self._vacated_core = np.zeros(lanes, dtype=np.int64)
        self._vacated_arrival = np.zeros(lanes, dtype=np.int64)
        # by piece
        self._core = np.full(self.ends.shape, NOBODY, dtype=np.int64)
        self._arrival = np.zeros(self.ends.shape, dtype=np.int64)
        self._flat_core, self._flat_arrival = self._core.reshape(-1), self._arrival.reshape(-1)
        # by core
        shape = (cores, lanes)
        self._cores = np.arange(cores, dtype=np.int64)[:, None]
        self._length = np.zeros(shape, dtype=np.int64)
        self._due = np.full(shape, NEVER)
        self._first = np.zeros(shape, dtype=np.int64)  # the piece that ends first
        self._flat_length, self._flat_due = self._length.reshape(-1), self._due.reshape(-1)
        self._flat_first = self._first.reshape(-1)
        self._core_virtual = np.zeros(shape)
        self._flat_virtual = self._core_virtual.reshape(-1)
        self._flat_updated = np.zeros(cores * lanes)

    def reset(self, lanes: Lanes) -> None:
        """Nothing runs."""
        super().reset(lanes)
        self._core_alarms.reset(lanes)
        self.room[lanes] = whole_at(self.capacity, lanes)
        self._by_core[lanes] = False
        self._vacated[lanes] = NOBODY

    def has_room(self, lanes: Lanes, pieces: Whole) -> Bools:
        """Whether so many more pieces do not crowd."""
        room: Bools = self.runnable.take(lanes) + pieces <= self.room.take(lanes)
        return room

    def begin(self, lanes: Lanes, piece: int | Ints, cpu_s: Value) -> None:
        """Start ``cpu_s`` seconds of work as the given piece of each lane."""
        full = self.runnable.take(lanes) >= self.room.take(lanes)
        if np.count_nonzero(full):
            self._crowd(lanes[full], _part(piece, full), _part(cpu_s, full))
            full = ~full
            lanes, piece, cpu_s = lanes[full], _part(piece, full), _part(cpu_s, full)
        if lanes.size:
            super().begin(lanes, piece, cpu_s)

    def withdraw(self, lanes: Lanes, piece: int | Ints) -> None:
        """Take unfinished work away."""
        crowded = self.room.take(lanes) == 0
        if np.count_nonzero(crowded):
            self._withdraw_crowded(lanes[crowded], _part(piece, crowded))
            lanes, piece = lanes[~crowded], _part(piece, ~crowded)
        if lanes.size:
            super().withdraw(lanes, piece)

    def _withdraw_crowded(self, lanes: Lanes, piece: int | Ints) -> None:
        place = piece * self._lanes + lanes
        self.advance(lanes)
        self.runnable[lanes] -= 1
        core = self._flat_core.take(place)
        self._bring_up(lanes, core)
        self._leave(lanes, core, place)
        self._even_out(lanes)

    # crowding

    def _crowd(self, lanes: Lanes, piece: int | Ints, cpu_s: Value) -> None:
        """Begin a piece beside as many others as there are cores, or more."""
        self.advance(lanes)
        uncrowded = self.room.take(lanes) > 0
        if np.count_nonzero(uncrowded):
            self._spread(lanes[uncrowded])
        self.runnable[lanes] += 1
        place = piece * self._lanes + lanes
        self.flat_serial[place] = self._flat_arrival[place] = self._clock.tick()
        core = self._length.take(lanes, axis=1).argmin(axis=0)
        stays = self._vacated.take(lanes) == piece  # its process goes on where it is
        if np.count_nonzero(stays):
            some = lanes[stays]
            self._vacated[some] = NOBODY
            core[stays] = self._vacated_core.take(some)
            self._flat_arrival[place[stays]] = self._vacated_arrival.take(some)
        self._join(lanes, core, place, cpu_s)

    def _spread(self, lanes: Lanes) -> None:
        """Give each piece a core of its own, in the order in which they began."""
        cores = whole_at(self.cores, lanes)
        self._core[:, lanes] = NOBODY
        self._length[:, lanes] = np.where(self._cores < cores, 0, ABSENT)
        self._due[:, lanes] = NEVER
        serial = self._serial.take(lanes, axis=1)
        serial[self.ends.take(lanes, axis=1) == NEVER] = LAST
        order = serial.argsort(axis=0)
        for number in range(len(self._cores)):
            some = np.flatnonzero(np.broadcast_to(number < np.asarray(cores), lanes.shape))
            here = lanes[some]
            place = order[number, some] * self._lanes + here
            self._flat_arrival[place] = self.flat_serial.take(place)
            left = np.maximum(self.flat_ends.take(place) - self.virtual.take(here), 0.0)
            self._join(here, np.full(here.size, number), place, left)
        self.room[lanes] = 0
        self._balanced[lanes] = self.updated.take(lanes)
        self._arm_balance(lanes)

    def _gather(self, lanes: Lanes) -> None:
        """No more than a piece a core: all advance at full speed again."""
        self.room[lanes] = whole_at(self.capacity, lanes)
        self.virtual[lanes] = 0.0
        for number in range(len(self._cores)):
            self._bring_up(lanes, np.full(lanes.size, number))
        core = np.maximum(self._core.take(lanes, axis=1), 0)
        virtual = np.take_along_axis(self._core_virtual.take(lanes, axis=1), core, axis=0)
        self.ends[:, lanes] -= virtual
        # the alarms that are set ring for the cores
        self.alarm.reshape(self.ends.shape)[:, lanes] = NEVER
        self.settle(lanes)

    # one core of each lane

    def _bring_up(self, lanes: Lanes, core: Ints) -> Floats:
        """Bring the cores' clocks up to now; returns them."""
        place = core * self._lanes + lanes
        now = self.updated.take(lanes)
        length = self._flat_length.take(place)
        elapsed = now - self._flat_updated.take(place)
        virtual: Floats = self._flat_virtual.take(place)
        virtual += elapsed * at(self.speed, lanes) / np.maximum(length, 1)
        virtual *= length > 0
        self._flat_virtual[place] = virtual
        self._flat_updated[place] = now
        return virtual

    def _join(self, lanes: Lanes, core: Ints, place: Ints, cpu_s: Value) -> None:
        """A piece, by its place, comes to a core."""
        self.flat_ends[place] = self._bring_up(lanes, core) + cpu_s
        self._flat_core[place] = core
        self.alarm[place] = NEVER
        self._flat_length[core * self._lanes + lanes] += 1
        self._settle_core(lanes, core)

    def _leave(self, lanes: Lanes, core: Ints, place: Ints) -> None:
        """A piece goes from a core whose clock is up to now."""
        self.flat_ends[place] = NEVER
        self._flat_length[core * self._lanes + lanes] -= 1
        self._settle_core(lanes, core)

    def _settle_core(self, lanes: Lanes, core: Ints) -> None:
        """See to it that an alarm rings when the core's next piece ends."""
        place = core * self._lanes + lanes
        length = self._flat_length.take(place)
        empty = length == 0
        if np.count_nonzero(empty):
            self._flat_due[place[empty]] = NEVER
            some = ~empty
            lanes, core, place, length = lanes[some], core[some], place[some], length[some]
        if not lanes.size:
            return
        ends = self.ends.take(lanes, axis=1)
        ends[self._core.take(lanes, axis=1) != core] = NEVER
        end, piece = self.earliest(lanes, ends)
        self._flat_first[place] = piece
        left = np.maximum(end - self._flat_virtual.take(place), 0.0)
        now = self.updated.take(lanes)
        due = now + left * length / at(self.speed, lanes)
        self._flat_due[place] = due
        first = piece * self._lanes + lanes
        alarm = self.alarm.take(first)
        new = ~((now < alarm) & (alarm <= due + RESOLUTION_S / 2))
        if np.count_nonzero(new):
            self.alarm[first[new]] = due[new]
            self._core_alarms.add(lanes[new], due[new])

    # alarms

    def rung(self, lanes: Lanes) -> Lanes:
        """The machine's alarm rings; it means nothing to crowded lanes, and the others are left."""
        lanes = super().rung(lanes)
        crowded = self.room.take(lanes) == 0
        if np.count_nonzero(crowded):
            self._agenda.put(Stage.SELECT, lanes[crowded])
            lanes = lanes[~crowded]
        return lanes

    def ring_on(self, lanes: Lanes) -> None:
        """Complete the next piece if it is done, else the alarm is over."""
        by_core = self._by_core.take(lanes)
        if np.count_nonzero(by_core):
            some = lanes[by_core]
            self._vacated[some] = NOBODY
            self._even_out(some)
            self._ring_on_by_core(some)
            lanes = lanes[~by_core]
        crowded = self.room.take(lanes) == 0  # by what a completed piece's process has begun
        if np.count_nonzero(crowded):
            self._over(lanes[crowded])
            lanes = lanes[~crowded]
        if lanes.size:
            super().ring_on(lanes)

    def ring_cores(self, lanes: Lanes) -> None:
        """A core's alarm rings: complete what is done, the earliest begun first."""
        self._core_alarms.drop(lanes)
        self._ring_on_by_core(lanes)

    def _ring_on_by_core(self, lanes: Lanes) -> None:
        self.advance(lanes)
        crowded = self.room.take(lanes) == 0
        if np.count_nonzero(crowded) < lanes.size:
            rest = lanes[~crowded]
            self._by_core[rest] = False
            super().ring_on(rest)
            lanes = lanes[crowded]
        done = self._due.take(lanes, axis=1) <= self.updated.take(lanes) + RESOLUTION_S
        some = done.any(axis=0)
        if np.count_nonzero(some) < lanes.size:
            rest = lanes[~some]
            self._renew(rest)
            self._over(rest)
            lanes, done = lanes[some], done[:, some]
        if lanes.size:
            first = self._first.take(lanes, axis=1)
            serial = self.flat_serial.take(first * self._lanes + lanes)
            serial[~done] = LAST
            self._complete_first(lanes, serial.argmin(axis=0))

    def _renew(self, lanes: Lanes) -> None:
        """Set alarms anew that were set when the core was less full."""
        first = self._first.take(lanes, axis=1)
        old = self.alarm.take(first * self._lanes + lanes) <= self.updated.take(lanes)
        old &= self._length.take(lanes, axis=1) < ABSENT
        for number in np.flatnonzero(old.any(axis=1)).tolist():
            some = lanes[old[number]]
            core = np.full(some.size, number)
            self._bring_up(some, core)
            self._settle_core(some, core)

    def _over(self, lanes: Lanes) -> None:
        self._clock.ringing[lanes] = self._by_core[lanes] = False
        self._agenda.put(Stage.SELECT, lanes)

    def _complete_first(self, lanes: Lanes, core: Ints) -> None:
        """The first piece of a core is done; its process may begin its next, and others', here."""
        self._bring_up(lanes, core)
        piece = self._flat_first.take(core * self._lanes + lanes)
        place = piece * self._lanes + lanes
        self._leave(lanes, core, place)
        self.runnable[lanes] -= 1
        self._vacated[lanes] = piece
        self._vacated_core[lanes] = core
        self._vacated_arrival[lanes] = self._flat_arrival.take(place)
        self._by_core[lanes] = True
        self.resume(lanes, piece)

    # balance

    def _extremes(self, lanes: Lanes) -> tuple[Ints, Ints, Ints]:
        """(core with the fewest pieces, with the most, difference)."""
        length = self._length.take(lanes, axis=1)
        short, least = length.argmin(axis=0), length.min(axis=0)
        length[length == ABSENT] = -1
        return short, length.argmax(axis=0), length.max(axis=0) - least

    def _even_out(self, lanes: Lanes) -> None:
        """Move pieces until no two cores differ by two; the crowd may be over."""
        rest = lanes
        while rest.size:
            short, long, difference = self._extremes(rest)
            uneven = difference > 1
            rest = rest[uneven]
            self._move(rest, long[uneven], short[uneven])
        over = self.runnable.take(lanes) <= whole_at(self.cores, lanes)
        if np.count_nonzero(over):
            self._gather(lanes[over])

    def _move(self, lanes: Lanes, long: Ints, short: Ints) -> None:
        """Move the piece that came to ``long`` first to ``short``."""
        if not lanes.size:
            return
        virtual = self._bring_up(lanes, long)
        arrival = self._arrival.take(lanes, axis=1)
        arrival[self._core.take(lanes, axis=1) != long] = LAST
        arrival[self.ends.take(lanes, axis=1) == NEVER] = LAST
        place = arrival.argmin(axis=0) * self._lanes + lanes
        left = np.maximum(self.flat_ends.take(place) - virtual, 0.0)
        self._leave(lanes, long, place)
        self._flat_arrival[place] = self._clock.tick()
        self._join(lanes, short, place, left)

    def _arm_balance(self, lanes: Lanes) -> None:
        clock = self._clock
        at_s = self._balanced.take(lanes) + at(self.balance_s, lanes)
        new = (clock.time[clock.balance].take(lanes) == NEVER) & (at_s < NEVER)
        lanes, at_s = lanes[new], at_s[new]
        now = self.updated.take(lanes)
        clock.schedule(clock.balance, lanes, now + (at_s - now))

    def balance(self, lanes: Lanes) -> None:
        """A difference of one piece has been there for long enough: turn it round."""
        self._clock.time[self._clock.balance][lanes] = NEVER
        self._agenda.put(Stage.SELECT, lanes)
        lanes = lanes[self.room.take(lanes) == 0]
        if not lanes.size:
            return
        self.advance(lanes)
        now = self.updated.take(lanes)
        due_s = self._balanced.take(lanes) + at(self.balance_s, lanes) - RESOLUTION_S
        due = now >= due_s
        some = lanes[due]
        self._balanced[some] = now[due]
        short, long, difference = self._extremes(some)
        uneven = difference > 0
        self._move(some[uneven], long[uneven], short[uneven])
        self._arm_balance(lanes)


def _part(value: Any, lanes: Bools) -> Any:
    """The values of some lanes, where each has its own."""
    return value[lanes] if isinstance(value, np.ndarray) else value
