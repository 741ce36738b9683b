"""A child process of the prefork pool.

Models ``billiard/pool.py: Worker`` (4.2.4): start, report "up", then for each
job read it from the pipe, report that it is accepted, run it, report the
result; leave after ``max_tasks_per_child`` tasks or above
``max_memory_per_child``, both looked at after a task. On SIGTERM it reports
that it is leaving and sleeps until the supervisor signals again
(``Worker._do_exit``), which kills it.

Leaves out: signals that arrive in the microseconds between two of these.
Invariant: it runs one task at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from enum import Enum, auto
from typing import Any

import simpy

from celerysim.engine.job import Job
from celerysim.engine.machine import Machine, Work
from celerysim.engine.past import Past
from celerysim.engine.recorder import Recorder
from celerysim.engine.supervisor import Source, Supervisor
from celerysim.history import Outcome
from celerysim.scenario.schema import Scenario, StepKind

#: ``billiard/pool.py: Worker._do_exit`` sleeps this long for the supervisor's second signal.
DEATH_SLEEP_S = 1.0
#: ``GUARANTEE_MESSAGE_CONSUMPTION_RETRY_INTERVAL`` of billiard/pool.py.
RESULT_RETRY_S = 0.1
#: The kernel closes a process's files, the sentinel too, this much before it can be waited for.
#: (Well below a millisecond in validation/costs; the length matters less than that it is there.)
ZOMBIE_LAG_S = 0.0001

CPU = StepKind.CPU  # looked up once: it is compared in every step


class Message(Enum):
    """What a child writes to the supervisor."""

    UP = auto()
    ACK = auto()
    READY = auto()
    DEATH = auto()


class Signal(Enum):
    """What the supervisor (or the kernel) does to a child."""

    TERM = auto()
    KILL = auto()
    USR1 = auto()  # soft time limit


class Child:
    """One child process, and its pipes."""

    def __init__(
        self,
        env: simpy.Environment,
        scenario: Scenario,
        machine: Machine,
        supervisor: Supervisor,
        recorder: Recorder,
        number: int,
        slot: int,
        exit_missed: bool = False,
    ) -> None:
        self._env = env
        self._worker = scenario.worker
        self._costs = scenario.costs
        self._machine = machine
        self._supervisor = supervisor
        self._recorder = recorder
        self.number = number  #: the k of ForkPoolWorker-k
        self.slot = slot  #: its place among the pool's pipes
        self.messages: deque[tuple[Message, Job | None]] = deque()  #: written, not yet read
        self.active = 0  #: jobs the supervisor knows it accepted and has no result of
        self.results_read = 0  #: results the supervisor has read (``on_ready_counter``)
        self.running: Job | None = None
        self.closed = False  #: its files are closed: the sentinel can be read
        self.exited = False  #: it can be waited for; its exit may not have been reaped
        self.output: Source  #: its pipe, as the supervisor reads it
        self.sentinel: Source  #: its exit, as the supervisor sees it
        self._exit_missed = exit_missed
        self._pipe: deque[Job] = deque()  # written by the supervisor, not yet read
        self._asleep = False  # waiting for its pipe
        self._work: Work | None = None  # under way, or what it will begin with when woken
        self._dying = False
        self._past = Past()

    def start(self, output: Source, sentinel: Source, *, up: bool = False) -> None:
        """Begin to live; ``up``: it has already started and reported."""
        self.output = output
        self.sentinel = sentinel
        self._process = self._env.process(self._live(up))

    def give(self, job: Job) -> None:
        """The supervisor has written ``job`` to the pipe."""
        self._pipe.append(job)
        if self._asleep:
            self._asleep = False
            assert self._work is not None
            self._machine.begin(self._work, self._costs.child_accept_s)

    def signal(self, signal: Signal) -> None:
        """Deliver a signal. A process that is being torn down no longer notices."""
        if not self._dying:
            if signal is not Signal.USR1:
                self._recorder.terminated(self.number)
            self._process.interrupt(signal)

    # its life

    def _live(self, up: bool) -> Generator[simpy.Event, Any, None]:
        try:
            if not up:
                yield self._compute(self._costs.child_start_s)
            self._send(Message.UP)
            yield from self._work_loop()
            self._recorder.terminated(self.number)
            signal = Signal.TERM
        except simpy.Interrupt as interrupt:
            self._stop_work()
            assert isinstance(interrupt.cause, Signal)
            signal = interrupt.cause
        if signal is not Signal.KILL:
            try:
                yield self._compute(self._costs.child_term_s)
                self._send(Message.DEATH)
                yield self._env.timeout(DEATH_SLEEP_S)
            except simpy.Interrupt:
                self._stop_work()
        self._dying = True
        # The kernel frees its memory in its own time on a core; no signal stops that.
        gone = self._machine.work(self._costs.child_exit_s, self.number)
        while not gone.processed:
            try:
                yield gone
            except simpy.Interrupt:
                continue  # signalled a second time in the instant of its death
        self.closed = True
        self._supervisor.notify(self.sentinel)
        if self._exit_missed:
            yield self._env.timeout(ZOMBIE_LAG_S)
        self.exited = True

    def _work_loop(self) -> Generator[simpy.Event, Any, None]:
        """``Worker.workloop``: until its time has come."""
        costs = self._costs
        completed = 0
        rss_kib = costs.child_rss_kib
        while True:
            if self._pipe:
                yield self._compute(costs.child_accept_s)
            else:
                self._asleep = True
                self._work = Work(self._env, self.number)
                yield self._work
            job = self._pipe.popleft()
            self._send(Message.ACK, job)
            yield from self._run(job)
            if costs.child_report_s:
                yield self._compute(costs.child_report_s)
            self._send(Message.READY, job)
            completed += 1
            rss_kib += job.kind.rss_growth_kib
            limit = self._worker.max_memory_per_child
            if completed == self._worker.max_tasks_per_child or (limit and rss_kib > limit):
                break
        while self.results_read < completed:  # Worker._ensure_messages_consumed
            yield self._env.timeout(RESULT_RETRY_S)

    def _run(self, job: Job) -> Generator[simpy.Event, Any, None]:
        """The task's body."""
        began = self._env.now
        self._recorder.started(job.index, self.number)
        self.running = job
        try:
            first_cpu_s, factor = self._past.begin(job, began)
            if first_cpu_s:
                yield self._compute(first_cpu_s)
            for kind, seconds in zip(job.kind.steps, job.seconds, strict=False):
                yield self._compute(seconds * factor) if kind is CPU else self._env.timeout(seconds)
        except simpy.Interrupt as interrupt:
            self._stop_work()
            if interrupt.cause is not Signal.USR1:
                self._recorder.worked(self.number, self._env.now - began, done=False)
                raise
            job.failed = True  # SoftTimeLimitExceeded, which the task does not catch
        self.running = None
        self._past.end(self._env.now)
        self._recorder.worked(self.number, self._env.now - began, done=True)
        self._recorder.finished(job.index, Outcome.FAILED if job.failed else Outcome.SUCCEEDED)

    def _compute(self, cpu_s: float) -> Work:
        self._work = self._machine.work(cpu_s, self.number)
        return self._work

    def _stop_work(self) -> None:
        """The signal ends what was being computed, or the sleep."""
        if self._work is not None and not self._asleep:
            self._machine.withdraw(self._work)
        self._asleep = False
        self._work = None

    def _send(self, message: Message, job: Job | None = None) -> None:
        self.messages.append((message, job))
        self._supervisor.notify(self.output)
