"""Express lanes: the usual transitions of a calm worker in one go instead of step by step.

A worker is *calm* while its supervisor waits in poll with nothing put off, and its
children are those wanted, each up and not told to leave. If then nothing else can
happen until a transition is over, the transition's outcome is known at once:

- a message is sent, delivered and received, and then waits, or is written to an
  idle child, accepted and acknowledged;
- a child ends its task and reports, the supervisor reads the result, and the next
  job, if one waits, is written to the child, accepted and acknowledged;
- a child computes its step to the end and begins to wait;
- a timer finds nothing to do.

Calm, each reserved job is a child's or in the queue, and none is in the queue while a
child is free. So ``reserved - target`` jobs wait, or as many children are free.

The operations on times are those of the long way, one by one, so the results are
the same to the last bit; where anything else might happen meanwhile, or at the
same instant, the long way is taken. Invariant: an express transition leaves a lane
as the long way would, calm again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from celerysim.batch.agenda import Stage
from celerysim.batch.ample import AmpleMachine
from celerysim.batch.arrays import NEVER, Bools, Floats, Ints, Lanes, Value, at, whole_at
from celerysim.batch.child import State
from celerysim.batch.spans import AmpleSpan, SharedSpan, Span
from celerysim.engine.machine import RESOLUTION_S
from celerysim.engine.pool.prefork import MAINTAIN_EVERY_S
from celerysim.scenario.schema import Scenario

if TYPE_CHECKING:
    from celerysim.batch.fleet import Fleet

#: Whatever happens this much later than a transition's end does not touch it.
MARGIN_S = 1e-6


def at_most(scenario: Scenario, *costs: float) -> float:
    """The longest that these costs, one after the other, may take; NEVER: no express."""
    machine = scenario.machine
    rate = machine.speed * min(1.0, machine.cores / (scenario.worker.max_concurrency + 1))
    if not all(costs) or not scenario.costs.deliver_s or RESOLUTION_S / rate > MARGIN_S / 10:
        return NEVER
    return sum(costs) / rate + MARGIN_S


def receive_s(scenario: Scenario) -> float:
    """From a message's delivery to its being received."""
    return at_most(scenario, scenario.costs.receive_s)


def run_s(scenario: Scenario) -> float:
    """From a job's hand-over to its message's acknowledgement."""
    costs = scenario.costs
    return at_most(scenario, costs.dispatch_s, costs.child_accept_s, costs.accept_s)


def step_s(scenario: Scenario) -> float:
    """A step of more seconds than these is not over before its task's acknowledgement."""
    return at_most(scenario, scenario.costs.accept_s) * max(scenario.machine.speed, 1.0)


def report_s(scenario: Scenario) -> float:
    """From the end of a task to its result being read."""
    return at_most(scenario, scenario.costs.child_report_s, scenario.costs.result_s)


class Express:
    """Takes lanes off the long way where it can."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.receive_s: Value = NEVER
        self.run_s: Value = NEVER
        self.step_s: Value = NEVER
        self.report_s: Value = NEVER

    def _span(self, lanes: Lanes, now: Floats) -> Span:
        machine = self._fleet.machine
        if isinstance(machine, AmpleMachine):
            return AmpleSpan(machine, lanes, now)
        return SharedSpan(machine, lanes, now)

    def _next_event(self, lanes: Lanes, rows: int) -> Floats:
        """The time of the next event but those of the last rows, or the horizon."""
        clock = self._fleet.clock
        first: Floats = np.minimum.reduce(clock.times[:rows].take(lanes, axis=1), axis=0)
        return np.minimum(first, clock.horizon.take(lanes)) if clock.horizons else first

    def _lasts(self, lanes: Lanes, number: Ints) -> Bools:
        """Whether a task's body outlasts the reading of its acceptance."""
        fleet = self._fleet
        if isinstance(fleet.machine, AmpleMachine):
            return fleet.tasks.flat_duration.take(number) > at(self.step_s, lanes)
        first = fleet.tasks.flat_seconds.take(number * fleet.tasks.steps)
        return np.abs(first) > at(self.step_s, lanes)

    def _computes(self, number: Ints) -> Bools:
        """Whether a task's first step is CPU work."""
        tasks = self._fleet.tasks
        return ~np.signbit(tasks.flat_seconds.take(number * tasks.steps))

    def publish(self, lanes: Lanes) -> None:
        """A message is sent."""
        fleet = self._fleet
        clock, pool, consumer, tasks = fleet.clock, fleet.pool, fleet.consumer, fleet.tasks
        task = consumer.read.take(lanes)
        number = lanes * tasks.width + task
        reserved = consumer.reserved.take(lanes)
        target = pool.target.take(lanes)
        busy = reserved >= target
        following = tasks.flat_sent.take(number + 1)
        delivered = clock.now.take(lanes) + at(fleet.broker.deliver_s, lanes)
        latest = delivered + at(self.receive_s, lanes)
        until = latest + np.where(busy, 0.0, at(self.run_s, lanes))
        # the message must neither grow nor shrink the pool
        old = consumer.last_scale_up.take(lanes) + at(consumer.keepalive, lanes) < latest
        floor = np.maximum(reserved + 1, whole_at(consumer.min_concurrency, lanes))
        fits = (
            fleet.supervisor.calm.take(lanes)
            & (np.minimum(self._next_event(lanes, clock.producer), following) > until)
            & (fleet.broker.published.take(lanes) == task)
            & (fleet.broker.unacked.take(lanes) < whole_at(fleet.broker.prefetch, lanes))
            & (busy | self._lasts(lanes, number))
            & fleet.machine.has_room(lanes, 1 + (~busy & self._computes(number)))
            & (~busy | (target >= whole_at(consumer.max_concurrency, lanes)))
            & ~(old & (floor < target))
        )
        if fleet.first_tasks.some:
            first = pool.free.take(lanes, axis=1).argmax(axis=0) * fleet.lanes + lanes
            fits &= busy | ~fleet.first_tasks.costs(lanes, first, task)
        if np.count_nonzero(fits) < lanes.size:
            fleet.broker.publish(lanes[~fits])
            some = fits.nonzero()[0]
            if not some.size:
                return
            lanes, task, number = lanes[some], task[some], number[some]
            reserved = reserved[some]
            busy, following, delivered = busy[some], following[some], delivered[some]
        clock.schedule(clock.producer, lanes, following)
        fleet.broker.published[lanes] = consumer.read[lanes] = task + 1
        consumer.reserved[lanes] = reserved + 1
        if np.count_nonzero(busy):
            some = busy.nonzero()[0]
            self._queue(lanes[some], delivered[some], number[some])
            some = (~busy).nonzero()[0]
            if not some.size:
                return
            lanes, task, number = lanes[some], task[some], number[some]
            delivered = delivered[some]
        pool.value[lanes] -= 1
        child = pool.free.take(lanes, axis=1).argmax(axis=0)
        place = child * fleet.lanes + lanes
        pool.flat_free[place] = False
        span = self._span(lanes, delivered)
        span.work(at(consumer.receive_s, lanes))
        tasks.flat_received[number] = span.now
        self._run(lanes, place, task, number, span)
        if pool.some_late:
            fleet.broker.unacked[lanes] += pool.acks_late.take(lanes)
        clock.advance(lanes, calm=True)

    def _queue(self, lanes: Lanes, delivered: Floats, number: Ints) -> None:
        """A message is received while all children are busy."""
        fleet = self._fleet
        span = self._span(lanes, delivered)
        span.work(at(fleet.consumer.receive_s, lanes))
        span.leave()
        fleet.tasks.flat_received[number] = span.now
        fleet.broker.unacked[lanes] += 1
        fleet.pool.process_task(lanes)
        fleet.clock.advance(lanes, calm=True)

    def _run(self, lanes: Lanes, place: Ints, task: Ints, number: Ints, span: Span) -> None:
        """A job is written to a child, which accepts and begins it; the supervisor reads that."""
        fleet = self._fleet
        children, tasks = fleet.children, fleet.tasks
        span.work(at(fleet.pool.dispatch_s, lanes), at(children.child_accept_s, lanes))
        tasks.flat_started[number] = span.now
        if fleet.tables:
            tasks.flat_child[number] = children.number.take(place)
        span.begin_body(place, number, fleet.clock, tasks)
        if isinstance(span, SharedSpan):
            children.step[place] = 0
        children.job[place] = task
        children.state[place] = State.STEP
        children.active[place] = True
        span.work(at(fleet.pool.accept_s, lanes))
        span.leave()

    def ended(self, lanes: Lanes) -> None:
        """A child's time-out: its task is over."""
        fleet = self._fleet
        clock, pool, children = fleet.clock, fleet.pool, fleet.children
        tasks, consumer = fleet.tasks, fleet.consumer
        place = clock.row.take(lanes) * fleet.lanes + lanes
        clock.flat_time[place] = NEVER
        now = clock.now.take(lanes)
        reserved = consumer.reserved.take(lanes)
        queue = np.maximum(reserved - pool.target.take(lanes), 0)
        job = children.job.take(place)
        finished = children.finished.take(lanes) + 1
        until = now + at(self.report_s, lanes)
        until += np.where(queue > 0, at(self.run_s, lanes), 0.0)
        fits = (
            fleet.supervisor.calm.take(lanes)
            & (children.state.take(place) == State.STEP)
            & (self._next_event(lanes, clock.supervisor) > until)
            & (finished != tasks.last.take(lanes))
            & fleet.machine.has_room(lanes, 1)
        )
        if np.count_nonzero(queue):
            following = lanes * tasks.width + consumer.read.take(lanes) - queue
            room = fleet.machine.has_room(lanes, 1 + self._computes(following))
            fits &= (queue == 0) | room
            if fleet.first_tasks.some:
                task = consumer.read.take(lanes) - queue
                fits &= (queue == 0) | ~fleet.first_tasks.costs(lanes, place, task)
            fits &= (queue == 0) | (
                (pool.n_put_back.take(lanes) == 0) & self._lasts(lanes, following)
            )
            if pool.some_late:
                more = pool.acks_late.take(lanes) & (fleet.broker.ready.take(lanes) > 0)
                fits &= ~(more & (queue > 0))
        if not isinstance(fleet.machine, AmpleMachine):
            fits &= ~clock.ringing.take(lanes)
            fits &= np.isnan(tasks.step(lanes, job, children.step.take(place) + 1))
        if np.count_nonzero(fits) < lanes.size:
            children.event(lanes[~fits])
            some = fits.nonzero()[0]
            if not some.size:
                return
            lanes, place, now, finished = (a[some] for a in (lanes, place, now, finished))
            job, queue, reserved = (a[some] for a in (job, queue, reserved))

        tasks.flat_finished[lanes * tasks.width + job] = now
        children.finished[lanes] = finished
        consumer.reserved[lanes] = reserved - 1
        span = self._span(lanes, now)
        span.work(at(children.child_report_s, lanes), at(pool.result_s, lanes))
        span.leave()
        if pool.some_late:
            late = pool.acks_late.take(lanes)
            clock.now[lanes] = span.now
            fleet.broker.ack(lanes[late])
        if np.count_nonzero(queue):
            some = queue.nonzero()[0]
            self._run_next(lanes[some], place[some], queue[some], span.now[some])
            some = (queue == 0).nonzero()[0]
            if not some.size:
                return
            lanes, place = lanes[some], place[some]
        children.state[place] = State.ASLEEP
        children.job[place] = -1
        children.active[place] = False
        pool.flat_free[place] = True
        pool.value[lanes] = np.minimum(pool.value.take(lanes) + 1, pool.target.take(lanes))
        clock.advance(lanes, calm=True)

    def _run_next(self, lanes: Lanes, place: Ints, queue: Ints, now: Floats) -> None:
        """The child that is free again gets the next job."""
        fleet = self._fleet
        pool, clock = fleet.pool, fleet.clock
        pool.release(lanes, 1)
        pool.outbound[lanes] -= 1
        task = fleet.consumer.read.take(lanes) - queue
        span = self._span(lanes, now)
        self._run(lanes, place, task, lanes * fleet.tasks.width + task, span)
        early = lanes
        if pool.some_late:
            early = lanes[~pool.acks_late.take(lanes)]
        clock.now[lanes] = span.now
        fleet.broker.ack(early)
        clock.advance(lanes, calm=True)

    def ring(self, lanes: Lanes) -> None:
        """An alarm of the machine: a child's step is done, and it waits next."""
        fleet = self._fleet
        clock, machine, children, tasks = fleet.clock, fleet.machine, fleet.children, fleet.tasks
        assert not isinstance(machine, AmpleMachine)
        lanes = machine.rung(lanes)
        if not lanes.size:
            return
        end, piece = machine.first(lanes)
        child = np.minimum(piece, machine.supervisor - 1)
        place = child * fleet.lanes + lanes
        virtual = machine.virtual.take(lanes)
        step = children.step.take(place) + 1
        seconds = tasks.step(lanes, children.job.take(place), step)
        done = end <= virtual + RESOLUTION_S
        fits = (
            done
            & (piece == child)
            & (children.state.take(place) == State.STEP)
            & np.signbit(seconds)
            & ~np.isnan(seconds)
        )
        if np.count_nonzero(fits) < lanes.size:
            machine.complete(lanes[~fits], piece[~fits], done[~fits])
            some = fits.nonzero()[0]
            if not some.size:
                return
            lanes, place, step = lanes[some], place[some], step[some]
            seconds, virtual = seconds[some], virtual[some]
        left = machine.runnable.take(lanes) - 1
        machine.runnable[lanes] = left
        virtual *= left > 0
        machine.virtual[lanes] = virtual
        machine.flat_ends[place] = NEVER
        children.step[place] = step
        clock.schedule_at(place, clock.now.take(lanes) - seconds)
        more = left > 0
        if np.count_nonzero(more):
            others, virtual = lanes[more], virtual[more]
            again = (
                np.minimum.reduce(machine.ends.take(others, axis=1), axis=0)
                <= virtual + RESOLUTION_S
            )
            clock.ringing[others[again]] = True
            fleet.agenda.put(Stage.RING_ON, others[again])
            machine.settle(others[~again])
            clock.advance(others[~again])
            lanes = lanes[~more]
        clock.advance(lanes)

    def poll_alarm(self, lanes: Lanes) -> None:
        """A timer is due: the pool is maintained, or the autoscaler called, for nothing."""
        fleet = self._fleet
        clock, supervisor, consumer = fleet.clock, fleet.supervisor, fleet.consumer
        now = clock.now.take(lanes)
        row = clock.time[clock.poll]
        alarm = row.take(lanes)
        row[lanes] = NEVER
        limit = self._next_event(lanes, clock.supervisor)
        row[lanes] = alarm
        maintain = supervisor.maintain_due.take(lanes)
        keepalive = supervisor.keepalive_due.take(lanes)
        verify, _ = supervisor.first_verify(lanes)
        target = fleet.pool.target.take(lanes)
        reserved = consumer.reserved.take(lanes)
        soon = now + MARGIN_S
        due = supervisor.count_due(lanes, soon)
        grows = np.minimum(reserved, whole_at(consumer.max_concurrency, lanes)) > target
        old = consumer.last_scale_up.take(lanes) + at(consumer.keepalive, lanes) < soon
        below = np.maximum(reserved, whole_at(consumer.min_concurrency, lanes)) < target
        fits = (
            supervisor.calm.take(lanes)
            & (limit > now)
            & (supervisor.next_timer.take(lanes) <= now)
            & (due == 1)
            & ~((keepalive <= now) & (grows | (old & below)))
        )
        if np.count_nonzero(fits) < lanes.size:
            supervisor.poll_alarm(lanes[~fits])
            some = fits.nonzero()[0]
            if not some.size:
                return
            lanes, now, maintain = lanes[some], now[some], maintain[some]
            keepalive, verify = keepalive[some], verify[some]
        supervisor.alarms.drop(lanes)
        mine = maintain <= now
        supervisor.maintain_due[lanes[mine]] = now[mine] + MAINTAIN_EVERY_S
        supervisor.maintain_order[lanes[mine]] = clock.tick()
        mine = keepalive <= now
        due_s = now[mine] + at(supervisor.keepalive, lanes[mine])
        supervisor.keepalive_due[lanes[mine]] = due_s
        supervisor.keepalive_order[lanes[mine]] = clock.tick()
        supervisor.verify.drop(lanes[verify <= now])
        supervisor.update_next_timer(lanes)
        supervisor.poll_until[lanes] = supervisor.next_timer.take(lanes)
        supervisor.set_alarm(lanes)
        clock.advance(lanes, calm=True)
