"""The prefork pools of all lanes, as their supervisors run them.

The same pool as :mod:`celerysim.engine.pool.prefork` with ``-O fair``. Jobs keep
their order, so of the jobs received the last ``waiting`` wait for the semaphore
and the ``outbound`` before them for a child; only jobs put back from a dead child,
which go first, have a stack of their own (never more than there are children).

(The semaphore lets no job overtake another: with autoscale the pool grows before a
job waits, up to its maximum, and it cannot shrink while one does.)

Invariant: a job received is waiting, outbound, put back, some child's ``job``, or
done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.ample import AmpleMachine
from celerysim.batch.arrays import Bools, Ints, Lanes, Value, Whole, at, whole_at
from celerysim.batch.broker import Broker
from celerysim.batch.child import Children, Message, Signal
from celerysim.batch.clock import Clock
from celerysim.batch.machine import Machine
from celerysim.batch.supervisor import Origin, Soon, Supervisor

if TYPE_CHECKING:
    from celerysim.batch.reaper import Reaper


class Pool:
    """Jobs on their way to children and back; the target size."""

    def __init__(
        self,
        lanes: int,
        children: int,
        clock: Clock,
        agenda: Agenda,
        machine: Machine | AmpleMachine,
        broker: Broker,
        supervisor: Supervisor,
        processes: Children,
    ) -> None:
        self._lanes = lanes
        self._slots = np.arange(children)[:, None]
        self._clock = clock
        self._agenda = agenda
        self._machine = machine
        self.broker = broker
        self._supervisor = supervisor
        self.children = processes
        self.target = np.zeros(lanes, dtype=np.int64)
        # by slot
        self.free = np.zeros((children, lanes), dtype=np.bool_)  # up and not busy
        self.flat_free = self.free.reshape(-1)
        self.up = np.zeros(children * lanes, dtype=np.bool_)
        # jobs
        self.value = np.zeros(lanes, dtype=np.int64)  # of the semaphore
        self.waiting = np.zeros(lanes, dtype=np.int64)
        self.outbound = np.zeros(lanes, dtype=np.int64)
        self._put_back = np.zeros((children, lanes), dtype=np.int64)
        self.n_put_back = np.zeros(lanes, dtype=np.int64)
        # what the supervisor is doing
        self._child = np.zeros(lanes, dtype=np.int64)  # whose message is read
        self._message = np.zeros(lanes, dtype=np.uint8)
        self._message_origin = np.zeros(lanes, dtype=np.int8)
        self._cursor = np.zeros(lanes, dtype=np.int64)  # of write: the next slot
        self.acks_late = np.zeros(lanes, dtype=np.bool_)
        self.some_late = True  #: whether there is any such lane
        self.reserved: Ints  # the consumer's
        self.read: Ints  # the consumer's
        self.reaper: Reaper
        self.min_concurrency: Whole = 0
        self.accept_s: Value = 0.0
        self.result_s: Value = 0.0
        self.dispatch_s: Value = 0.0

    def reset(self, lanes: Lanes) -> None:
        """The pool's size is its minimum; no child is up, no job was handed over."""
        size = whole_at(self.min_concurrency, lanes)
        self.target[lanes] = self.value[lanes] = size
        self.free[:, lanes] = False
        self.up.reshape(self.free.shape)[:, lanes] = False
        for count in (self.waiting, self.outbound, self.n_put_back):
            count[lanes] = 0

    def work(self, lanes: Lanes, cpu_s: Value, stage: int) -> None:
        """The supervisor computes (not at all if it costs nothing) and goes on at ``stage``."""
        cost = at(cpu_s, lanes)
        if not isinstance(cost, float):
            self._agenda.put(stage, lanes[cost == 0.0])
            lanes, cost = lanes[cost > 0.0], cost[cost > 0.0]
        elif not cost:
            self._agenda.put(stage, lanes)
            return
        self.compute(lanes, cost, stage)

    def compute(self, lanes: Lanes, cpu_s: Value, stage: int) -> None:
        """The supervisor computes, be it for zero seconds."""
        self._clock.then[lanes] = stage
        self._machine.begin(lanes, self._machine.supervisor, cpu_s)
        self._clock.wait(lanes)

    # jobs in and out

    def process_task(self, lanes: Lanes) -> None:
        """Hand the next job over, when the semaphore allows it."""
        value = self.value.take(lanes)
        free = value > 0
        self.value[lanes] = value - free
        self.outbound[lanes] += free
        self.waiting[lanes] += ~free

    def release(self, lanes: Lanes, times: int | Ints) -> None:
        """Free places of the semaphore: for jobs that wait, else up to its bound, the target."""
        waiting = self.waiting.take(lanes)
        entering = np.minimum(waiting, times)
        self.waiting[lanes] = waiting - entering
        self.outbound[lanes] += entering
        value = self.value.take(lanes) + times - entering
        self.value[lanes] = np.minimum(value, self.target.take(lanes))

    def grow(self, lanes: Lanes, n: Ints) -> None:
        """Raise the target; nothing is forked yet."""
        self.target[lanes] += n
        self.value[lanes] += n
        self.release(lanes, n)

    def shrink(self, lanes: Lanes, n: Ints) -> None:
        """Terminate up to ``n`` inactive children, oldest first, lowering the target by each."""
        for child, mine in self.reaper.inactive(lanes, n):
            some = lanes[mine]
            self.target[some] -= 1
            self.value[some] = np.maximum(self.value.take(some) - 1, 0)
            self.children.signal(some, child[mine], Signal.TERM)

    def put_back(self, lanes: Lanes, jobs: Ints) -> None:
        """Jobs of dead children go first."""
        place = self.n_put_back.take(lanes)
        self._put_back[place, lanes] = jobs
        self.n_put_back[lanes] = place + 1

    # messages of children

    def read_message(self, lanes: Lanes, child: Ints, origin: int) -> None:
        """Read one message of a child and act on it."""
        if not lanes.size:
            return
        place = child * self._lanes + lanes
        messages = self.children.messages.take(place)
        message = messages & (~messages + np.uint8(1))  # the lowest bit
        self.children.messages[place] = messages ^ message
        self._child[lanes] = child
        self._message[lanes] = message
        self._message_origin[lanes] = origin
        ack, ready = message == Message.ACK, message == Message.READY
        self.work(lanes[ack], self.accept_s, Stage.MESSAGE_READ)
        self.work(lanes[ready], self.result_s, Stage.MESSAGE_READ)
        self._agenda.put(Stage.MESSAGE_READ, lanes[~(ack | ready)])

    def message_read(self, lanes: Lanes) -> None:
        """The effect of a message."""
        child = self._child.take(lanes)
        message = self._message.take(lanes)
        place = child * self._lanes + lanes
        late = self.acks_late.take(lanes)
        ack, ready = message == Message.ACK, message == Message.READY
        self.children.active[place[ack]] = True
        self._on_ready(lanes[ready], place[ready])
        self._supervisor.soon.push(lanes[(ready & late) | (ack & ~late)], Soon.ACK)
        if np.count_nonzero(ack | ready) < lanes.size:
            up = message == Message.UP
            self.up[place[up]] = self.flat_free[place[up]] = True
            self.children.up[place[up]] = self._clock.now.take(lanes[up])
            self.children.sound[lanes[up]] += np.isnan(self.children.terminated.take(place[up]))
            death = message == Message.DEATH
            self.children.signal(lanes[death], child[death], Signal.TERM)
        reaping = self._message_origin.take(lanes) == Origin.FLUSH
        if np.count_nonzero(reaping):
            self._agenda.put(Stage.FLUSHED, lanes[reaping])
            lanes = lanes[~reaping]
        self._supervisor.source_done(lanes)

    def _on_ready(self, lanes: Lanes, place: Ints) -> None:
        self.flat_free[place] = True
        self.release(lanes, 1)
        self.children.active[place] = False
        self.children.job[place] = -1
        self.reserved[lanes] -= 1

    # writing jobs

    def wants_to_write(self, lanes: Lanes) -> Bools:
        """Whether there is a job to write, and a child that is up and not busy."""
        free: Bools = np.logical_or.reduce(self.free.take(lanes, axis=1), axis=0)
        return free & self._some_outbound(lanes)

    def steady(self, lanes: Lanes) -> Bools:
        """Whether the children are those wanted, and each one is up and stays."""
        target = self.target.take(lanes)
        sound: Bools = self.children.sound.take(lanes) == target
        listed: Bools = self.reaper.listed.take(lanes) == target
        return sound & listed

    def _some_outbound(self, lanes: Lanes) -> Bools:
        return (self.outbound.take(lanes) + self.n_put_back.take(lanes)) > 0

    def write(self, lanes: Lanes) -> None:
        """Write one job to each child that can take one."""
        if lanes.size:
            self._cursor[lanes] = 0
            self._write_next(lanes)

    def _write_next(self, lanes: Lanes) -> None:
        free = self.free.take(lanes, axis=1) & (self._slots >= self._cursor.take(lanes))
        more = np.logical_or.reduce(free, axis=0) & self._some_outbound(lanes)
        if np.count_nonzero(more) < lanes.size:
            self._supervisor.turn(lanes[~more])
            lanes, free = lanes[more], free[:, more]
            if not lanes.size:
                return
        child = free.argmax(axis=0)
        place = child * self._lanes + lanes
        self.children.job[place] = self._next_job(lanes)
        self.flat_free[place] = False
        self._child[lanes] = child
        self._cursor[lanes] = child + 1
        self.work(lanes, self.dispatch_s, Stage.WRITTEN)

    def _next_job(self, lanes: Lanes) -> Ints:
        outbound = self.outbound.take(lanes)
        job = self.read.take(lanes) - self.waiting.take(lanes) - outbound
        put_back = self.n_put_back.take(lanes)
        again = put_back > 0
        self.outbound[lanes] = outbound - ~again
        if np.count_nonzero(again):
            some = lanes[again]
            self.n_put_back[some] = put_back[again] - 1
            job[again] = self._put_back[put_back[again] - 1, some]
        return job

    def job_written(self, lanes: Lanes) -> None:
        """The job is in the pipe."""
        self.children.give(lanes, self._child.take(lanes))
        self._write_next(lanes)

    # what the reaper does for others

    def maintain(self, lanes: Lanes, origin: int) -> None:
        """Reap, fork what is missing."""
        self.reaper.maintain(lanes, origin)

    def untrack(self, lanes: Lanes, child: Ints) -> None:
        """The sentinel is no longer watched."""
        self.children.tracked[child * self._lanes + lanes] = False

    def verify_alive(self, lanes: Lanes, child: Ints, number: Ints) -> None:
        """A child that has not reported in time is killed."""
        self.reaper.verify_alive(lanes, child, number)
