"""The brokers of all lanes: messages ready in the queue, messages unacknowledged.

The same queue as :mod:`celerysim.engine.broker`. Nothing is ever put back into
it here, so messages keep their order and a message is a number: those below
``published`` were sent, of which the last ``ready`` wait in the queue; before
them come those that are under way to the worker.
Invariant: a lane whose window is open has no message ready.
"""

from __future__ import annotations

import numpy as np

from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.arrays import NEVER, Lanes, Ring, Value, Whole, at, whole_at
from celerysim.batch.clock import Clock
from celerysim.batch.tasks import Tasks

#: A prefetch count of zero: no limit.
UNLIMITED = 2**40


class Broker:
    """One queue a lane, and its producer."""

    def __init__(self, lanes: int, clock: Clock, agenda: Agenda, tasks: Tasks) -> None:
        self._clock = clock
        self._agenda = agenda
        self._tasks = tasks
        self.published = np.zeros(lanes, dtype=np.int64)
        self.ready = np.zeros(lanes, dtype=np.int64)
        self.unacked = np.zeros(lanes, dtype=np.int64)
        self.window = np.zeros(lanes, dtype=np.int64)  #: 0 until the worker consumes
        self._under_way = Ring(lanes, np.float64, np.int64)  # deliveries: (time, order)
        self.prefetch: Whole = UNLIMITED
        self.deliver_s: Value = 0.0

    def reset(self, lanes: Lanes) -> None:
        """The queue is empty; what is sent before the clock starts is in it at once."""
        sent = self._tasks.sent[lanes]
        published = np.count_nonzero(sent <= self._clock.now.take(lanes)[:, None], axis=1)
        self.published[lanes] = self.ready[lanes] = published
        self.unacked[lanes] = self.window[lanes] = 0
        self._under_way.reset(lanes)
        time = self._tasks.flat_sent.take(lanes * self._tasks.width + published)
        self._clock.schedule(self._clock.producer, lanes, time)

    def publish(self, lanes: Lanes) -> None:
        """A message arrives in the queue; the producer waits for its next one."""
        published = self.published.take(lanes) + 1
        self.published[lanes] = published
        self.ready[lanes] += 1
        self._fill(lanes)
        time = self._tasks.flat_sent.take(lanes * self._tasks.width + published)
        at_once = time <= self._clock.now.take(lanes)
        if np.count_nonzero(at_once):
            self._agenda.put(Stage.PUBLISH, lanes[at_once])
            lanes, time = lanes[~at_once], time[~at_once]
        self._clock.schedule(self._clock.producer, lanes, time)
        self._clock.wait(lanes)

    def consume(self, lanes: Lanes) -> None:
        """Begin to deliver."""
        self.window[lanes] = whole_at(self.prefetch, lanes)
        while lanes.size:
            lanes = self._fill(lanes)

    def ack(self, lanes: Lanes) -> None:
        """A message is acknowledged: its place in the window is free."""
        if lanes.size:
            self.unacked[lanes] -= 1
            self._fill(lanes)

    def _fill(self, lanes: Lanes) -> Lanes:
        """Deliver one message where one is ready and the window allows it; returns these lanes."""
        ready, unacked = self.ready.take(lanes), self.unacked.take(lanes)
        send = (ready > 0) & (unacked < self.window.take(lanes))
        if np.count_nonzero(send) < lanes.size:
            lanes, ready, unacked = lanes[send], ready[send], unacked[send]
            if not lanes.size:
                return lanes
        self.ready[lanes] = ready - 1
        self.unacked[lanes] = unacked + 1
        delay = at(self.deliver_s, lanes)
        if isinstance(delay, float):
            if delay:
                self._send(lanes, delay)
            else:
                self.on_arrival(lanes)
        else:
            self._send(lanes[delay > 0.0], delay[delay > 0.0])
            self.on_arrival(lanes[delay == 0.0])
        return lanes

    def _send(self, lanes: Lanes, delay: Value) -> None:
        clock = self._clock
        time = clock.now.take(lanes) + delay
        order = clock.tick()
        first = ~self._under_way.filled(lanes)
        self._under_way.push(lanes, time, order)
        alone = lanes[first]
        clock.time[clock.delivery][alone] = time[first]
        clock.order[clock.delivery][alone] = order

    def deliver(self, lanes: Lanes) -> None:
        """A message's frames can be read."""
        clock = self._clock
        self._under_way.drop(lanes)
        clock.time[clock.delivery][lanes] = NEVER
        more = self._under_way.filled(lanes)
        if np.count_nonzero(more):
            rest = lanes[more]
            time, order = self._under_way.front(rest)
            clock.time[clock.delivery][rest] = time
            clock.order[clock.delivery][rest] = order
        self.on_arrival(lanes)
        clock.wait(lanes)

    def on_arrival(self, lanes: Lanes) -> None:
        """Tell the worker; replaced when the rooms are wired."""
        raise AssertionError("not wired")
