"""What the pools without child processes share: gevent, eventlet, threads, solo.

Models ``celery/concurrency/base.py: BasePool`` and ``apply_target``, and the
tracing of a task (``celery/app/trace.py: trace_task``) in the worker's own
process (5.6.3): accept, run, report, all in the greenlet or thread that runs the
task. Limits that only child processes have (``max_tasks_per_child``,
``max_memory_per_child``, soft time limits) do nothing here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

import simpy

from celerysim.engine.consumer import Consumer
from celerysim.engine.job import Job
from celerysim.engine.machine import Machine
from celerysim.engine.past import Past
from celerysim.engine.pool.base import PoolEvents
from celerysim.engine.recorder import Recorder
from celerysim.engine.supervisor import Activity, Supervisor
from celerysim.history import Level, Outcome
from celerysim.scenario.schema import Scenario, StepKind

#: The child number of tasks that run in the main process.
MAIN_PROCESS = 0


class InProcessPool(ABC):
    """A pool in the worker's own process; a :class:`~celerysim.engine.pool.base.Pool`."""

    def __init__(
        self,
        env: simpy.Environment,
        scenario: Scenario,
        machine: Machine,
        recorder: Recorder,
        events: PoolEvents,
        limit: int,
    ) -> None:
        self._env = env
        self._worker = scenario.worker
        self._costs = scenario.costs
        self._backend_s = 0.0  # green pools only
        self._machine = machine
        self._recorder = recorder
        self._past = Past()
        self._events = events
        self._limit = limit
        recorder.level(Level.PROCESSES, limit)

    @property
    def num_processes(self) -> int:
        """``BasePool.num_processes``: the limit."""
        return self._limit

    @abstractmethod
    def process_task(self, job: Job) -> None:
        """Take a job that was received; :meth:`hold` follows."""

    def hold(self) -> Activity:
        """What of taking the last job keeps the consumer: nothing, unless a pool says otherwise."""
        yield from ()

    def grow(self, n: int) -> None:
        """``'TaskPool' object has no attribute 'grow'``, unless a pool says otherwise."""
        raise WorkerDied

    def shrink(self, n: int) -> None:
        """``'TaskPool' object has no attribute 'shrink'``, unless a pool says otherwise."""
        raise WorkerDied

    def maintain_pool(self) -> Activity:
        """Nothing to maintain."""
        yield from ()

    def register_with_event_loop(self, _: Supervisor) -> None:
        """No timers."""
        return

    def wants_to_write(self) -> bool:
        """There is no pipe to write to."""
        return False

    def write(self) -> Activity:
        """There is no pipe to write to."""
        yield from ()

    # running a task

    def _apply_target(self, job: Job) -> Activity:
        """Accept the job, run it, report that it is done."""
        self._events.on_accepted(job)
        yield from self._trace_task(job)
        self._events.on_done(job)

    def _trace_task(self, job: Job) -> Activity:
        if self._costs.task_start_s:
            yield self._machine.work(self._costs.task_start_s)
        self._recorder.started(job.index, MAIN_PROCESS)
        first_cpu_s, factor = self._past.begin(job, self._env.now)
        try:
            if first_cpu_s:
                yield self._machine.work(first_cpu_s)
            for kind, seconds in zip(job.kind.steps, job.seconds, strict=False):
                if kind is StepKind.CPU:
                    yield self._machine.work(seconds * factor)
                elif kind is StepKind.IO:
                    yield from self._wait(seconds)
                else:
                    yield self._env.timeout(seconds)
        finally:  # a time limit may end it
            self._past.end(self._env.now)
        if self._backend_s:
            yield self._machine.work(self._backend_s)
        self._recorder.finished(job.index, Outcome.SUCCEEDED)
        if self._costs.task_end_s:
            yield self._machine.work(self._costs.task_end_s)

    def _wait(self, seconds: float) -> Activity:
        yield self._env.timeout(seconds)


class InProcessConsumer(Consumer):
    """A consumer whose pool may keep it, and which can acknowledge at once."""

    _pool: InProcessPool

    def _receive(self) -> Activity:
        yield from super()._receive()
        yield from self._pool.hold()

    def _acknowledge(self, job: Job) -> None:
        if self._worker.idealised and not job.acknowledged:
            job.acknowledged = True
            self._broker.ack(job)
        if not job.acknowledged:
            job.acknowledged = True
            self._supervisor.call_soon(partial(self._write_ack, job))

    def _write_ack(self, job: Job) -> Activity:
        if self._ack_s:
            yield self._machine.work(self._ack_s)
        self._broker.ack(job)


class WorkerDied(Exception):
    """The worker's main process ends: "Unrecoverable error" in its log."""
