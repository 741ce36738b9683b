"""The consumers of all lanes: a message from its frames to the pool, and the autoscaler.

The same order as :mod:`celerysim.engine.consumer`: received, reserved,
``maybe_scale``, hand-over. Invariant: ``reserved`` counts every job received and
not finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.arrays import Bools, Lanes, Value, Whole, at, whole_at
from celerysim.batch.broker import Broker
from celerysim.batch.clock import Clock
from celerysim.batch.pool import Pool
from celerysim.batch.recorder import Recorder
from celerysim.batch.supervisor import Origin, Soon, Supervisor
from celerysim.batch.tasks import Tasks
from celerysim.engine.consumer import QUICK_DRAIN_S
from celerysim.history import Trigger

if TYPE_CHECKING:
    from celerysim.batch.guard import Guard


class Consumer:
    """The workers' ends of the queues."""

    def __init__(
        self,
        lanes: int,
        clock: Clock,
        agenda: Agenda,
        broker: Broker,
        supervisor: Supervisor,
        pool: Pool,
        tasks: Tasks,
        recorder: Recorder,
    ) -> None:
        self._clock = clock
        self._agenda = agenda
        self._broker = broker
        self._supervisor = supervisor
        self._pool = pool
        self._tasks = tasks
        self._recorder = recorder
        self.read = np.zeros(lanes, dtype=np.int64)  #: messages read from the socket
        self.unread = np.zeros(lanes, dtype=np.int64)  #: messages in the socket
        self.reserved = np.zeros(lanes, dtype=np.int64)
        self.last_scale_up = np.zeros(lanes)  #: -inf: never
        self._origin = np.zeros(lanes, dtype=np.int8)
        self._to_drain = np.zeros(lanes, dtype=np.int64)  # by update_qos; -1: not in it
        self._awaits_arrival = np.zeros(lanes, dtype=np.bool_)
        self.autoscale = np.zeros(lanes, dtype=np.bool_)
        self.max_concurrency: Whole = 1
        self.min_concurrency: Whole = 0
        self.keepalive: Value = 0.0
        self.receive_s: Value = 0.0
        self.guard: Guard | None = None

    def reset(self, lanes: Lanes) -> None:
        """Nothing was received."""
        self.read[lanes] = self.unread[lanes] = self.reserved[lanes] = 0
        self.last_scale_up[lanes] = np.inf
        self._awaits_arrival[lanes] = False
        self._to_drain[lanes] = -1

    def start(self, lanes: Lanes) -> None:
        """``asynloop`` up to its loop: register timers, consume, say "ready"."""
        self._supervisor.register(lanes, lanes[self.autoscale.take(lanes)])
        self._supervisor.soon.push(lanes, Soon.UPDATE_QOS)
        self._supervisor.soon.push(lanes, Soon.QUICK_DRAIN)
        self._broker.consume(lanes)
        self._supervisor.turn(lanes)

    # messages come in

    def on_arrival(self, lanes: Lanes) -> None:
        """A message's frames can be read."""
        self.unread[lanes] += 1
        self._supervisor.notify(lanes, self._supervisor.socket)
        awaited = self._awaits_arrival.take(lanes)
        if np.count_nonzero(awaited):
            lanes = lanes[awaited]
            self._awaits_arrival[lanes] = False
            # of the arrival's event and the time-out the earlier one triggers the condition
            now = self._clock.now.take(lanes)
            later = self._clock.time[self._clock.supervisor].take(lanes) > now
            self._clock.schedule(self._clock.supervisor, lanes[later], now[later])

    def has_data(self, lanes: Lanes) -> Bools:
        """Whether the socket holds a message."""
        return self.unread.take(lanes) > 0

    def update_qos(self, lanes: Lanes) -> None:
        """Wait for the broker's answer."""
        if lanes.size:
            now = self._clock.now.take(lanes)
            self._clock.then[lanes] = Stage.QOS_DRAINED
            delay = at(self._broker.deliver_s, lanes)
            self._clock.schedule(self._clock.supervisor, lanes, now + delay)
            self._clock.wait(lanes)

    def qos_drained(self, lanes: Lanes) -> None:
        """Receive what was delivered meanwhile."""
        self._to_drain[lanes] = self.unread.take(lanes)
        self._drain(lanes)

    def _drain(self, lanes: Lanes) -> None:
        left = self._to_drain.take(lanes)
        self._to_drain[lanes] = left - 1
        self.receive(lanes[left > 0], Origin.SOON)
        self._supervisor.run_soon(lanes[left == 0])

    def quick_drain(self, lanes: Lanes) -> None:
        """The first turn reads one message, or blocks for a tenth of a second."""
        if not lanes.size:
            return
        some = self.has_data(lanes)
        self._quick_receive(lanes[some])
        lanes = lanes[~some]
        self._awaits_arrival[lanes] = True
        self._clock.then[lanes] = Stage.QUICK_DRAIN_TRIGGERED
        until = self._clock.now.take(lanes) + QUICK_DRAIN_S
        self._clock.schedule(self._clock.supervisor, lanes, until)
        self._clock.wait(lanes)

    def quick_drain_triggered(self, lanes: Lanes) -> None:
        """The condition (arrival or time-out) has become true; its own event follows."""
        self._clock.then[lanes] = Stage.QUICK_DRAINED
        self._clock.schedule(self._clock.supervisor, lanes, self._clock.now.take(lanes))
        self._clock.wait(lanes)

    def quick_drained(self, lanes: Lanes) -> None:
        """The first turn goes on."""
        self._awaits_arrival[lanes] = False
        some = self.has_data(lanes)
        self._quick_receive(lanes[some])
        self._supervisor.run_soon(lanes[~some])

    def _quick_receive(self, lanes: Lanes) -> None:
        self._to_drain[lanes] = 0
        self.receive(lanes, Origin.SOON)

    def receive(self, lanes: Lanes, origin: int) -> None:
        """Take a message from the socket."""
        if not lanes.size:
            return
        self._origin[lanes] = origin
        self.read[lanes] += 1
        unread = self.unread.take(lanes) - 1
        self.unread[lanes] = unread
        self._supervisor.forget(lanes[unread == 0], self._supervisor.socket)
        self._pool.work(lanes, self.receive_s, Stage.RECEIVED)

    def received(self, lanes: Lanes) -> None:
        """The log line "received"; then reserved, scale, hand over."""
        task = self.read.take(lanes) - 1
        place = lanes * self._tasks.width + task
        self._tasks.flat_received[place] = self._clock.now.take(lanes)
        self.reserved[lanes] += 1
        autoscale = self.autoscale.take(lanes)
        self._hand_over(lanes[~autoscale])
        self.maybe_scale(lanes[autoscale], Origin.MESSAGE)

    # the autoscaler

    def maybe_scale(self, lanes: Lanes, origin: int) -> None:
        """``Autoscaler.maybe_scale``: decide, scale, maintain the pool."""
        if not lanes.size:
            return
        reserved = self.reserved.take(lanes)
        processes = self._pool.target.take(lanes)
        now = self._clock.now.take(lanes)
        target = np.minimum(reserved, whole_at(self.max_concurrency, lanes))
        up = target > processes
        floor = np.maximum(reserved, whole_at(self.min_concurrency, lanes))
        below = ~up & (floor < processes)
        age, keepalive = now - self.last_scale_up.take(lanes), at(self.keepalive, lanes)
        down = below & (age > keepalive)
        if self.guard is not None:
            close = below & (np.abs(age - keepalive) <= self.guard.margin_s)
            self.guard.doubt(lanes[close])
        change = np.where(up, target - processes, floor - processes)
        scaled = up | down
        if np.count_nonzero(scaled):
            trigger = Trigger.MESSAGE if origin == Origin.MESSAGE else Trigger.TIMER
            self._recorder.scaled(
                lanes[scaled], now[scaled], change[scaled], trigger, processes[scaled],
                reserved[scaled], self.read.take(lanes[scaled]),
            )  # fmt: skip
            self.last_scale_up[lanes[up]] = now[up]
            self._pool.grow(lanes[up], change[up])
            self._pool.shrink(lanes[down], -change[down])
        maintain = up | below
        self._pool.maintain(lanes[maintain], origin)
        self.scaled(lanes[~maintain], origin)

    def scaled(self, lanes: Lanes, origin: int) -> None:
        """The autoscaler is done."""
        if not lanes.size:
            return
        if origin == Origin.MESSAGE:
            self._hand_over(lanes)
        else:
            self._supervisor.enter_keepalive(lanes)
            self._agenda.put(Stage.TIMERS, lanes)

    def _hand_over(self, lanes: Lanes) -> None:
        """Give the job to the pool, and return to where the message was read."""
        if not lanes.size:
            return
        self._pool.process_task(lanes)
        drained = self._to_drain.take(lanes)
        startup = drained >= 0
        if np.count_nonzero(startup):
            first = lanes[startup]
            self._drain(first)
            lanes = lanes[~startup]
        self._supervisor.soon.push(lanes, Soon.READ)
        from_soon = self._origin.take(lanes) == Origin.SOON
        self._supervisor.run_soon(lanes[from_soon])
        self._supervisor.source_done(lanes[~from_soon])
