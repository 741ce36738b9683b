"""The events to come in each lane, in SimPy's order.

Models SimPy's queue (``simpy/core.py: Environment.schedule``): by time, then
urgent before normal, then in the order of scheduling. A worker has few events
at a time, so each kind has one row: a child's time-out, what the supervisor waits
for, the machine's and the poll's next alarm, the producer's next message, the
next delivery, the end; with run queues also the cores' next alarm and the balancing.
Starts and interrupts of children are urgent: they come before anything else of the
same instant, first in, first out.

Invariant: ``order`` of two events of one lane compares as SimPy's event ids do.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.arrays import NEVER, Floats, Ints, Lanes, Ring

#: Above the number of any row: a sum of rows, each with this mark, tells how many there are.
MARK = 2**16


class Judge(Protocol):
    """Finds out where rounding might have decided; see :mod:`celerysim.batch.guard`."""

    margin_s: float

    def order(self, lanes: Lanes, times: Floats, row: Ints) -> None:
        """Look at lanes whose next event, in ``row``, is closely followed."""
        ...

    def horizon(self, lanes: Lanes, now: Floats, row: Ints) -> None:
        """Look at lanes whose next event is about at the horizon or beyond it."""
        ...


class Clock:
    """Now, and what comes next."""

    def __init__(
        self, lanes: int, children: int, agenda: Agenda, *, run_queues: bool = False
    ) -> None:
        self._agenda = agenda
        self.children = children
        self.cores, self.balance = children, children + 1
        others = children + 2 * run_queues
        rows = others + 6
        self.machine, self.poll, self.producer, self.delivery, self.supervisor, self.stop = range(
            others, rows
        )
        self._rows = MARK + np.arange(rows, dtype=np.int32)[:, None]
        self._stages: tuple[tuple[int, int], ...] = (
            (self.producer, Stage.PUBLISH),
            (self.poll, Stage.POLL_ALARM),
            (self.delivery, Stage.DELIVERED),
            (self.machine, Stage.RING),
            (self.stop, Stage.ALL_DONE),
        )
        if run_queues:
            self._stages += ((self.cores, Stage.RING_CORES), (self.balance, Stage.BALANCE))
        self.times = np.full((rows, lanes), NEVER)
        self.orders = np.zeros((rows, lanes), dtype=np.int64)
        self.time = list(self.times)  #: of the next event, by row
        self.order = list(self.orders)  #: its place among those scheduled, by row
        self.flat_time = self.times.reshape(-1)  #: addressed by ``row * lanes + lane``
        self.flat_order = self.orders.reshape(-1)
        self.now = np.zeros(lanes)
        self.horizon = np.full(lanes, NEVER)
        self.row = np.zeros(lanes, dtype=np.int64)  #: of the event that is being processed
        self.then = np.zeros(lanes, dtype=np.uint8)  #: the stage at which the supervisor goes on
        self.urgent = Ring(lanes, np.int64, np.int8)  #: (child, signal)
        self.ringing = np.zeros(lanes, dtype=np.bool_)  #: within an alarm of the machine
        self.stopping = np.zeros(lanes, dtype=np.bool_)  #: all tasks are done
        self._serial = 0
        self.judge: Judge | None = None
        self.horizons = True  #: whether any run has one

    def reset(self, lanes: Lanes, start: float, horizon: float) -> None:
        """Nothing is scheduled."""
        self.times[:, lanes] = NEVER
        self.now[lanes] = start
        self.horizon[lanes] = horizon
        self.ringing[lanes] = self.stopping[lanes] = False
        self.urgent.reset(lanes)

    def tick(self) -> int:
        """The next place in the order of scheduling."""
        self._serial += 1
        return self._serial

    def schedule(self, row: int, lanes: Lanes, time: Floats) -> None:
        """Set the event of a row."""
        self.time[row][lanes] = time
        self.order[row][lanes] = self.tick()

    def schedule_at(self, place: Ints, time: Floats) -> None:
        """Set events of several rows, addressed by ``row * lanes + lane``."""
        self.flat_time[place] = time
        self.flat_order[place] = self.tick()

    def wait(self, lanes: Lanes) -> None:
        """The code that was running waits for an event: go on with what is next."""
        ringing = self.ringing.take(lanes)
        if np.count_nonzero(ringing):
            self._agenda.put(Stage.RING_ON, lanes[ringing])
            lanes = lanes[~ringing]
        self._agenda.put(Stage.SELECT, lanes)

    def select(self, lanes: Lanes) -> None:
        """Go on with the next event, urgent ones first."""
        urgent = self.urgent.filled(lanes)
        if np.count_nonzero(urgent):
            self._agenda.put(Stage.URGENT, lanes[urgent])
            lanes = lanes[~urgent]
        self.advance(lanes)

    def advance(self, lanes: Lanes, calm: bool = False) -> None:
        """Go on with the next event; none is urgent. ``calm``: the supervisor waits in poll."""
        times = self.times[: self.supervisor if calm else None].take(lanes, axis=1)
        now = np.minimum.reduce(times, axis=0)
        close = times <= (now if self.judge is None else now + self.judge.margin_s)
        row = np.add.reduce(close * self._rows[: len(times)], axis=0, dtype=np.int32)
        ties = row >= 2 * MARK
        row -= MARK
        if np.count_nonzero(ties):
            some = ties.nonzero()[0]
            row[some] = self._first(lanes[some], times[:, some], now[some])
        if self.horizons:
            over = now >= self.horizon.take(lanes)
            if self.judge is not None:
                self.judge.horizon(lanes, now, row)
            if np.count_nonzero(over):
                self.now[lanes[over]] = self.horizon.take(lanes[over])
                self._agenda.put(Stage.DONE, lanes[over])
                lanes, now, row = lanes[~over], now[~over], row[~over]
        self.now[lanes] = now
        self.row[lanes] = row
        child = row < self.children
        self._agenda.put(Stage.CHILD, lanes[child])
        if np.count_nonzero(child) < lanes.size:
            lanes, row = lanes[~child], row[~child]
            for kind, stage in self._stages:
                mine = row == kind
                if np.count_nonzero(mine):
                    self._agenda.put(stage, lanes[mine])
            if not calm:
                self.resume(lanes[row == self.supervisor])

    def _first(self, lanes: Lanes, times: Floats, now: Floats) -> Ints:
        """The row of the next event, where there are several at (almost) one instant."""
        orders = self.orders[: len(times)].take(lanes, axis=1)
        orders[times != now] = np.iinfo(np.int64).max
        row: Ints = orders.argmin(axis=0)
        if self.judge is not None:
            self.judge.order(lanes, times, row)
        return row

    def give_up(self, lanes: Lanes) -> None:
        """These runs end before their next event."""
        self.time[self.stop][lanes] = -NEVER
        self.stopping[lanes] = False

    def resume(self, lanes: Lanes) -> None:
        """What the supervisor waited for has come."""
        self.time[self.supervisor][lanes] = NEVER
        self._agenda.put_each(self.then.take(lanes), lanes)
