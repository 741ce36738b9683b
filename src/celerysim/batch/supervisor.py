"""The supervisors' main loops, all lanes at once.

The same loop as :mod:`celerysim.engine.supervisor`, cut where it waits: one turn
runs what was put off, then the timers that are due, then waits until something
can be read, reads one message of each source in the order they became readable,
and last writes jobs. What a handler returns to is kept in ``origin``.

Invariant: never two handlers at once; ``readable`` of a source is its place in
the order in which sources became readable, or :data:`ABSENT`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.arrays import NEVER, Bools, Floats, Ints, Lanes, Ring, Value, at
from celerysim.batch.clock import Clock
from celerysim.batch.machine import Alarms
from celerysim.engine.pool.prefork import MAINTAIN_EVERY_S
from celerysim.engine.supervisor import MAX_TIMERS, MAX_WAIT_S

if TYPE_CHECKING:
    from celerysim.batch.consumer import Consumer
    from celerysim.batch.guard import Guard
    from celerysim.batch.pool import Pool

ABSENT = np.iinfo(np.int64).max


class Soon:
    """What is put off to the next turn."""

    ACK, READ, QUICK_DRAIN, UPDATE_QOS = range(4)


class Origin:
    """Where a handler was called from, and so where it returns to."""

    #: a turn's first part, its timers, a source that is read
    SOON, TIMER, SOURCE = 0, 1, 2
    #: the autoscaler, called by its timer or for a message
    KEEPALIVE, MESSAGE = 3, 4
    #: the reaper, which reads what a dead child has left
    FLUSH = 5


class Supervisor:
    """The loops, and what is waiting for them."""

    def __init__(self, lanes: int, children: int, clock: Clock, agenda: Agenda) -> None:
        self._lanes = lanes
        self._children = children
        self._clock = clock
        self._agenda = agenda
        self.soon = Ring(lanes, np.int8)
        self._mark = np.zeros(lanes, dtype=np.int64)  # the end of this turn's part of it
        # sources: the children's pipes, their exits, the broker's socket
        self.socket = 2 * children
        self._sources = np.arange(2 * children + 1, dtype=np.int16)[:, None]
        self._readable = np.full((2 * children + 1, lanes), ABSENT, dtype=np.int64)
        self.flat_readable = self._readable.reshape(-1)
        self.to_read = np.zeros(lanes, dtype=np.int64)
        self._snapshot = np.zeros(lanes, dtype=np.int64)
        self.source = np.zeros(lanes, dtype=np.int64)  #: the one being handled
        self._writing = np.zeros(lanes, dtype=np.bool_)
        # timers
        self.maintain_due = np.full(lanes, NEVER)
        self.maintain_order = np.zeros(lanes, dtype=np.int64)
        self.keepalive_due = np.full(lanes, NEVER)
        self.keepalive_order = np.zeros(lanes, dtype=np.int64)
        self.verify = Ring(lanes, np.float64, np.int64, np.int64, np.int64)
        self.next_timer = np.full(lanes, NEVER)
        self.fired = np.zeros(lanes, dtype=np.int64)
        # waiting
        self.polling = np.zeros(lanes, dtype=np.bool_)
        self.poll_until = np.zeros(lanes)
        self._alarmed = np.zeros(lanes, dtype=np.bool_)  # woken by an alarm
        self.calm = np.zeros(lanes, dtype=np.bool_)
        self.alarms = Alarms(lanes, clock, clock.poll)
        self.keepalive: Value = NEVER
        self.guard: Guard | None = None
        self.pool: Pool
        self.consumer: Consumer

    def reset(self, lanes: Lanes) -> None:
        """The worker is not up yet."""
        self.soon.reset(lanes)
        self.verify.reset(lanes)
        self._readable[:, lanes] = ABSENT
        self.to_read[lanes] = 0
        self.alarms.reset(lanes)
        self.polling[lanes] = self.calm[lanes] = False
        self.keepalive_due[lanes] = NEVER

    def register(self, lanes: Lanes, autoscaled: Lanes) -> None:
        """Enter the timers: the pool's, and the autoscaler's where there is one."""
        self.enter_maintain(lanes)
        self.enter_keepalive(autoscaled)

    # one turn

    def turn(self, lanes: Lanes) -> None:
        """Begin a turn."""
        self._mark[lanes] = self.soon.tail.take(lanes)
        self.run_soon(lanes)

    def run_soon(self, lanes: Lanes) -> None:
        """Run what was put off to this turn."""
        while lanes.size:
            more = self.soon.head.take(lanes) != self._mark.take(lanes)
            self._timers_or_poll(lanes[~more])
            lanes = lanes[more]
            if not lanes.size:
                return
            (what,) = self.soon.front(lanes)
            self.soon.drop(lanes)
            ack = what == Soon.ACK
            self.pool.broker.ack(lanes[ack])
            read = what == Soon.READ
            if np.count_nonzero(read):
                reading = lanes[read]
                some = self.consumer.has_data(reading)
                self.consumer.receive(reading[some], Origin.SOON)
                ack[np.flatnonzero(read)[~some]] = True
            self.consumer.quick_drain(lanes[what == Soon.QUICK_DRAIN])
            self.consumer.update_qos(lanes[what == Soon.UPDATE_QOS])
            lanes = lanes[ack]

    def _timers_or_poll(self, lanes: Lanes) -> None:
        now, timer = self._clock.now.take(lanes), self.next_timer.take(lanes)
        due = timer <= now
        if self.guard is not None:
            # timers that are not just due because poll waited for them
            close = np.abs(timer - now) <= self.guard.margin_s
            if np.count_nonzero(close):
                self.guard.due(lanes[close & ~self._alarmed.take(lanes)])
        if np.count_nonzero(due):
            self.fired[lanes[due]] = 0
            self._agenda.put(Stage.TIMERS, lanes[due])
            lanes = lanes[~due]
        self._poll(lanes)

    def timers(self, lanes: Lanes) -> None:
        """Run the next timer that is due."""
        if self.guard is not None:
            self.guard.timers(lanes)
        fired = self.fired.take(lanes)
        due = (self.next_timer.take(lanes) <= self._clock.now.take(lanes)) & (fired < MAX_TIMERS)
        self._poll(lanes[~due])
        lanes = lanes[due]
        self.fired[lanes] = fired[due] + 1
        time = self.next_timer.take(lanes)
        order = np.full(lanes.size, ABSENT)
        which = np.zeros(lanes.size, dtype=np.int8)
        for kind, (times, orders) in enumerate(
            (
                (self.maintain_due.take(lanes), self.maintain_order.take(lanes)),
                (self.keepalive_due.take(lanes), self.keepalive_order.take(lanes)),
                self.first_verify(lanes),
            )
        ):
            mine = (times == time) & (orders < order)
            order[mine] = orders[mine]
            which[mine] = kind
        self.maintain_due[lanes[which == 0]] = NEVER
        self.keepalive_due[lanes[which == 1]] = NEVER
        verify = lanes[which == 2]
        _, _, child, number = self.verify.front(verify)
        self.verify.drop(verify)
        self.update_next_timer(lanes)
        self.pool.verify_alive(verify, child, number)
        self._agenda.put(Stage.TIMERS, verify)
        self.pool.maintain(lanes[which == 0], Origin.TIMER)
        self.consumer.maybe_scale(lanes[which == 1], Origin.KEEPALIVE)

    def first_verify(self, lanes: Lanes) -> tuple[Floats, Ints]:
        """Time and order of the next look whether a new child is up (NEVER: none)."""
        time, order, _, _ = self.verify.front(lanes)
        time[~self.verify.filled(lanes)] = NEVER
        return time, order

    def update_next_timer(self, lanes: Lanes) -> None:
        """Bring the time of the first timer up to date."""
        first = np.minimum(self.maintain_due.take(lanes), self.keepalive_due.take(lanes))
        self.next_timer[lanes] = np.minimum(first, self.first_verify(lanes)[0])

    def count_due(self, lanes: Lanes, time: Floats) -> NDArray[np.int8]:
        """How many kinds of timers have come by then."""
        due = (self.maintain_due.take(lanes) <= time).astype(np.int8)
        due += self.keepalive_due.take(lanes) <= time
        due += self.first_verify(lanes)[0] <= time
        return due

    def enter_maintain(self, lanes: Lanes) -> None:
        """The pool is maintained again in five seconds."""
        self.maintain_due[lanes] = self._clock.now.take(lanes) + MAINTAIN_EVERY_S
        self.maintain_order[lanes] = self._clock.tick()
        self.update_next_timer(lanes)

    def enter_keepalive(self, lanes: Lanes) -> None:
        """The autoscaler runs again one keepalive from now."""
        self.keepalive_due[lanes] = self._clock.now.take(lanes) + at(self.keepalive, lanes)
        self.keepalive_order[lanes] = self._clock.tick()
        self.update_next_timer(lanes)

    def enter_verify(self, lanes: Lanes, delay: Value, child: Ints, number: Ints) -> None:
        """Look later whether a new child is up."""
        time = self._clock.now.take(lanes) + delay
        self.verify.push(lanes, time, self._clock.tick(), child, number)
        self.update_next_timer(lanes)

    # polling

    def _poll(self, lanes: Lanes) -> None:
        writing = self.pool.wants_to_write(lanes)
        self._writing[lanes] = writing
        act = writing | (self.to_read.take(lanes) > 0)
        self._agenda.put(Stage.POLLED, lanes[act])
        self._wait(lanes[~act])

    def _wait(self, lanes: Lanes) -> None:
        """Until something is readable, or the time is up."""
        now = self._clock.now.take(lanes)
        self.poll_until[lanes] = np.minimum(self.next_timer.take(lanes), now + MAX_WAIT_S)
        self.polling[lanes] = True
        self._alarmed[lanes] = False
        self.calm[lanes] = self.pool.steady(lanes) & ~self.soon.filled(lanes)
        self._clock.then[lanes] = Stage.POLLED
        self.set_alarm(lanes)
        self._clock.wait(lanes)

    def set_alarm(self, lanes: Lanes) -> None:
        """See to it that an alarm rings no later than the poll's time is up."""
        until = self.poll_until.take(lanes)
        early = self._clock.time[self._clock.poll].take(lanes) <= until
        if np.count_nonzero(early) < lanes.size:
            lanes, until = lanes[~early], until[~early]
            now = self._clock.now.take(lanes)
            self.alarms.add(lanes, now + np.maximum(until - now, 0.0))

    def poll_alarm(self, lanes: Lanes) -> None:
        """An alarm rings: poll returns if its time is up."""
        self.alarms.drop(lanes)
        polling = self.polling.take(lanes)
        over = polling & (self.poll_until.take(lanes) <= self._clock.now.take(lanes))
        self._wake(lanes[over])
        self._alarmed[lanes[over]] = True
        self.set_alarm(lanes[polling & ~over])
        self._clock.wait(lanes)

    def _wake(self, lanes: Lanes) -> None:
        self.polling[lanes] = self.calm[lanes] = False
        self._clock.schedule(self._clock.supervisor, lanes, self._clock.now.take(lanes))

    def notify(self, lanes: Lanes, source: int | Ints) -> None:
        """A source can be read; wakes the loop if it waits."""
        place = source * self._lanes + lanes
        new = self.flat_readable.take(place) == ABSENT
        self.flat_readable[place[new]] = self._clock.tick()
        self.to_read[lanes] += new
        polling = self.polling.take(lanes)
        if np.count_nonzero(polling):
            self._wake(lanes[polling])

    def forget(self, lanes: Lanes, source: int | Ints) -> None:
        """A source is closed or empty."""
        place = source * self._lanes + lanes
        self.to_read[lanes] -= self.flat_readable.take(place) != ABSENT
        self.flat_readable[place] = ABSENT

    # reading

    def polled(self, lanes: Lanes) -> None:
        """Poll returns: read what can be read now."""
        self._snapshot[lanes] = self._clock.tick()
        self.sources(lanes)

    def sources(self, lanes: Lanes) -> None:
        """Handle the next source."""
        readable = self._readable.take(lanes, axis=1)
        first = np.minimum.reduce(readable, axis=0)
        some = first < self._snapshot.take(lanes)
        if np.count_nonzero(some) < lanes.size:
            self._end_turn(lanes[~some])
            lanes, readable, first = lanes[some], readable[:, some], first[some]
        source = ((readable == first) * self._sources).max(axis=0).astype(np.int64)
        self.forget(lanes, source)
        self.source[lanes] = source
        read = self._has_data(lanes, source)
        self._agenda.put(Stage.SOURCES, lanes[~read])
        lanes, source = lanes[read], source[read]
        pipe = source < self._children
        self.pool.read_message(lanes[pipe], source[pipe], Origin.SOURCE)
        if np.count_nonzero(pipe) == lanes.size:
            return
        self.consumer.receive(lanes[source == self.socket], Origin.SOURCE)
        exit_ = ~pipe & (source < self.socket)
        if np.count_nonzero(exit_):
            lanes, child = lanes[exit_], source[exit_] - self._children
            self.pool.untrack(lanes, child)
            self.pool.maintain(lanes, Origin.SOURCE)

    def source_done(self, lanes: Lanes) -> None:
        """A source was handled: it stays readable if there is more; then the next."""
        source = self.source.take(lanes)
        more = self._has_data(lanes, source)
        if np.count_nonzero(more):
            self.notify(lanes[more], source[more])
        self.sources(lanes)

    def _has_data(self, lanes: Lanes, source: Ints) -> Bools:
        pipe = source < self._children
        if np.count_nonzero(pipe) == lanes.size:
            return self.pool.children.has_message(lanes, source)
        data = np.zeros(lanes.size, dtype=np.bool_)
        socket = source == self.socket
        exit_ = ~pipe & ~socket
        data[pipe] = self.pool.children.has_message(lanes[pipe], source[pipe])
        data[socket] = self.consumer.has_data(lanes[socket])
        child = source[exit_] - self._children
        data[exit_] = self.pool.children.has_closed(lanes[exit_], child)
        return data

    def _end_turn(self, lanes: Lanes) -> None:
        writing = self._writing.take(lanes)
        self.pool.write(lanes[writing])
        self.turn(lanes[~writing])
