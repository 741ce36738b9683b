"""The lanes: all rooms of all workers, wired, started and advanced together.

Read this first; each room says what it shares with its namesake of
:mod:`celerysim.engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from celerysim.batch import express as fast
from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.ample import AmpleMachine
from celerysim.batch.arrays import NEVER, Floats, Ints, Lanes
from celerysim.batch.broker import UNLIMITED, Broker
from celerysim.batch.child import Children
from celerysim.batch.clock import Clock
from celerysim.batch.consumer import Consumer
from celerysim.batch.first_tasks import FirstTasks
from celerysim.batch.guard import Guard
from celerysim.batch.machine import Machine
from celerysim.batch.pool import Pool
from celerysim.batch.reaper import Reaper
from celerysim.batch.recorder import Recorder
from celerysim.batch.run_queues import RunQueues, capacity, crowds
from celerysim.batch.supervisor import Supervisor
from celerysim.batch.tasks import Tasks
from celerysim.batch.uniforms import ExitNumbers
from celerysim.batch.workload import Load
from celerysim.scenario.schema import Scenario


class Setting(NamedTuple):
    """A scenario's number that rooms read: which room and field, how to get it."""

    room: str
    field: str
    of: Callable[[Scenario], Any]


SETTINGS = (
    Setting("broker", "prefetch", lambda s: s.worker.prefetch_count or UNLIMITED),
    Setting("broker", "deliver_s", lambda s: s.costs.deliver_s),
    Setting("machine", "cores", lambda s: s.machine.cores),
    Setting("machine", "speed", lambda s: s.machine.speed),
    Setting("supervisor", "keepalive", lambda s: s.worker.keepalive),
    Setting("consumer", "keepalive", lambda s: s.worker.keepalive),
    Setting("consumer", "max_concurrency", lambda s: s.worker.max_concurrency),
    Setting("consumer", "min_concurrency", lambda s: s.worker.min_concurrency),
    Setting("consumer", "receive_s", lambda s: s.costs.receive_s),
    Setting("pool", "min_concurrency", lambda s: s.worker.min_concurrency),
    Setting("pool", "accept_s", lambda s: s.costs.accept_s),
    Setting("pool", "result_s", lambda s: s.costs.result_s),
    Setting("pool", "dispatch_s", lambda s: s.costs.dispatch_s),
    Setting("reaper", "fork_s", lambda s: s.costs.fork_s),
    Setting("reaper", "reap_s", lambda s: s.costs.reap_s),
    Setting("reaper", "proc_alive_timeout", lambda s: s.worker.proc_alive_timeout),
    Setting("reaper", "exit_missed_share", lambda s: s.costs.exit_missed_share),
    Setting("children", "child_start_s", lambda s: s.costs.child_start_s),
    Setting("children", "child_accept_s", lambda s: s.costs.child_accept_s),
    Setting("children", "child_report_s", lambda s: s.costs.child_report_s),
    Setting("children", "child_term_s", lambda s: s.costs.child_term_s),
    Setting("children", "child_exit_s", lambda s: s.costs.child_exit_s),
    Setting("express", "receive_s", fast.receive_s),
    Setting("express", "run_s", fast.run_s),
    Setting("express", "step_s", fast.step_s),
    Setting("express", "report_s", fast.report_s),
)


#: What machines with run queues read besides.
RUN_QUEUES = (
    Setting("machine", "capacity", capacity),
    Setting("machine", "balance_s", lambda s: s.machine.balance_s),
)

#: Stages that the supervisor goes on to after computing.
COMPUTES = (Stage.RECEIVED, Stage.MESSAGE_READ, Stage.WRITTEN, Stage.FORKED)


#: Tasks looked at in one go: their times fit into a processor's cache.
TOGETHER = 2**17


class Fleet:
    """``lanes`` runs in progress, of some of the given scenarios."""

    def __init__(
        self,
        lanes: int,
        scenarios: Sequence[Scenario],
        width: int,
        *,
        tables: bool = False,
        ample: bool = False,
        express: bool = True,
    ) -> None:
        children = max(s.worker.max_concurrency for s in scenarios)
        steps = max(len(p.steps) for s in scenarios for p in s.tasks.profiles.values())
        self.lanes = lanes
        self.tables = tables  #: whether whole histories are wanted
        self.agenda = agenda = Agenda()
        cores = max((s.machine.cores for s in scenarios if crowds(s)), default=0)
        self.clock = clock = Clock(lanes, children, agenda, run_queues=cores > 0)
        self.tasks = Tasks(lanes, width, steps, durations=ample)
        self.recorder = Recorder(lanes, tables=tables)
        self.machine: Machine | AmpleMachine = (
            AmpleMachine(lanes, children, clock, self.tasks)
            if ample
            else RunQueues(lanes, children, clock, agenda, cores)
            if cores
            else Machine(lanes, children, clock, agenda)
        )
        self._settings = SETTINGS + (RUN_QUEUES if cores else ())
        self.broker = Broker(lanes, clock, agenda, self.tasks)
        self.supervisor = Supervisor(lanes, children, clock, agenda)
        self.first_tasks = FirstTasks(lanes, children, scenarios, self.tasks)
        self.children = Children(
            lanes, children, clock, agenda, self.machine, self.supervisor, self.tasks,
            self.first_tasks,
        )  # fmt: skip
        self.pool = Pool(
            lanes, children, clock, agenda, self.machine, self.broker, self.supervisor,
            self.children,
        )  # fmt: skip
        self.consumer = Consumer(
            lanes, clock, agenda, self.broker, self.supervisor, self.pool, self.tasks,
            self.recorder,
        )  # fmt: skip
        self.reaper = Reaper(
            lanes, children, clock, agenda, self.supervisor, self.pool, self.children,
            self.consumer, self.tasks, self.recorder,
        )  # fmt: skip
        self.broker.on_arrival = self.consumer.on_arrival  # type: ignore[method-assign]
        self.supervisor.pool = self.pool
        self.supervisor.consumer = self.consumer
        self.pool.reserved = self.consumer.reserved
        self.pool.read = self.consumer.read
        self.pool.reaper = self.reaper
        self.reaper.exit_numbers = ExitNumbers()
        self.start = np.zeros(lanes)  #: when the run began
        self.cores = np.zeros(lanes, dtype=np.int64)
        self.warm_up_s = np.zeros(lanes)  #: tasks sent before do not count
        self.express = fast.Express(self)
        self.guard = Guard(self)
        self.pool.some_late = any(s.worker.task_acks_late for s in scenarios)
        clock.horizons = any(s.run.horizon_s is not None for s in scenarios)
        if ample:
            clock.judge = self.supervisor.guard = self.consumer.guard = self.guard
        for room, field, of in self._settings:
            values = [of(scenario) for scenario in scenarios]
            alike = len(set(values)) == 1
            setattr(
                getattr(self, room),
                field,
                values[0] if alike else np.zeros(lanes, dtype=type(values[0])),
            )
        self._handlers: dict[int, Callable[[Lanes], None]] = {
            Stage.SELECT: clock.select,
            Stage.POLL_ALARM: self.supervisor.poll_alarm,
            Stage.PUBLISH: self.broker.publish,
            Stage.DELIVERED: self.broker.deliver,
            Stage.CHILD: self.children.event,
            Stage.URGENT: self.children.urgent,
            Stage.ALL_DONE: self.children.all_done,
            Stage.COME_UP: self.reaper.come_up,
            Stage.SOON: self.supervisor.run_soon,
            Stage.TIMERS: self.supervisor.timers,
            Stage.POLLED: self.supervisor.polled,
            Stage.SOURCES: self.supervisor.sources,
            Stage.SOURCE_DONE: self.supervisor.source_done,
            Stage.RECEIVED: self.consumer.received,
            Stage.QOS_DRAINED: self.consumer.qos_drained,
            Stage.QUICK_DRAIN_TRIGGERED: self.consumer.quick_drain_triggered,
            Stage.QUICK_DRAINED: self.consumer.quick_drained,
            Stage.MESSAGE_READ: self.pool.message_read,
            Stage.WRITTEN: self.pool.job_written,
            Stage.MAINTAIN: self.reaper.begin,
            Stage.FLUSHED: self.reaper.flushed,
            Stage.FLUSHED_AGAIN: self.reaper.flushed_again,
            Stage.FORKED: self.reaper.forked,
        }
        if isinstance(self.machine, Machine):
            self._handlers[Stage.RING] = self.machine.ring
            self._handlers[Stage.RING_ON] = self.machine.ring_on
            if express:
                self._handlers[Stage.RING] = self.express.ring
        if isinstance(self.machine, RunQueues):
            self._handlers[Stage.RING_CORES] = self.machine.ring_cores
            self._handlers[Stage.BALANCE] = self.machine.balance
        if express:
            self._handlers[Stage.PUBLISH] = self.express.publish
            self._handlers[Stage.CHILD] = self.express.ended
            self._handlers[Stage.POLL_ALARM] = self.express.poll_alarm

    def begin(self, lanes: Lanes, scenario: Scenario, load: Load, runs: Ints) -> None:
        """Runs of one scenario begin in these lanes."""
        clock = self.clock
        for room, field, of in self._settings:
            value = getattr(getattr(self, room), field)
            if isinstance(value, np.ndarray):
                value[lanes] = of(scenario)
        self.consumer.autoscale[lanes] = scenario.worker.autoscale is not None
        self.pool.acks_late[lanes] = scenario.worker.task_acks_late
        start = min(0.0, scenario.producer.start_s)
        horizon = scenario.run.horizon_s
        # SimPy's run(until=...) waits for the time that is left
        clock.reset(lanes, start, NEVER if horizon is None else start + (horizon - start))
        self.start[lanes] = start
        self.cores[lanes] = scenario.machine.cores
        self.warm_up_s[lanes] = scenario.run.warm_up_s or -NEVER
        self.tasks.reset(lanes, load, scenario.machine.speed)
        self.first_tasks.reset(lanes, scenario)
        self.recorder.reset(lanes, runs)
        for part in (
            self.machine, self.broker, self.supervisor, self.children, self.pool, self.consumer,
            self.reaper, self.guard,
        ):  # fmt: skip
            part.reset(lanes)
        if scenario.costs.exit_missed_share:
            seeds = [(scenario.run.seed, number) for number in load.replications.tolist()]
            self.reaper.exit_numbers.reset(lanes, seeds)
        self.children.end(lanes[load.last == 0])
        clock.then[lanes] = Stage.COME_UP
        clock.schedule(clock.supervisor, lanes, np.zeros(lanes.size))
        self.agenda.put(Stage.SELECT, lanes)

    def advance(self, done: int) -> Lanes:
        """Go on until ``done`` runs are over, or all; returns their lanes."""
        while self.agenda.count(Stage.DONE) < done:
            stage = self.agenda.next()
            if stage is None:
                break
            self._handlers[stage](self.agenda.take(stage))
        lanes = self.agenda.take(Stage.DONE)
        self._stop(lanes[~self.guard.doubtful.take(lanes)])
        return lanes

    def close(self) -> None:
        """Let go of all arrays: rooms know each other, and would stay until garbage collection."""
        for room in vars(self).values():
            if hasattr(room, "__dict__"):
                vars(room).clear()

    def _stop(self, lanes: Lanes) -> None:
        """The runs are over: what is being computed is not finished."""
        if isinstance(self.machine, Machine):
            self.machine.advance(lanes)
        else:
            computing = self.clock.time[self.clock.supervisor].take(lanes) < NEVER
            computing &= np.isin(self.clock.then.take(lanes), COMPUTES)
            self.machine.withdraw(lanes[computing], self.machine.supervisor)
        self.reaper.finish(lanes)

    def busy_core_s(self, lanes: Lanes) -> Floats:
        """Core-seconds spent computing in finished runs."""
        machine = self.machine
        busy_core_s: Floats = machine.busy_core_s.take(lanes)
        if isinstance(machine, AmpleMachine):
            together = max(1, TOGETHER // self.tasks.width)
            for begin in range(0, lanes.size, together):
                part = slice(begin, begin + together)
                busy_core_s[part] += machine.bodies_s(lanes[part])
        return busy_core_s
