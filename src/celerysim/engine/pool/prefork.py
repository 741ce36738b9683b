"""The prefork pool, as its supervisor runs it.

Models ``celery/concurrency/asynpool.py: AsynPool`` (Celery 5.6.3) on
``billiard/pool.py: Pool`` (4.2.4) and the worker's semaphore
(``kombu/asynchronous/semaphore.py``):

- ``grow`` only raises the target; ``maintain_pool`` reaps what has exited and
  forks ``target - len(children)`` new children, one after the other, in the
  supervisor. Terminated children count until they are reaped.
- ``shrink`` terminates inactive children, oldest first; *active* is a child
  that has a job the supervisor knows to be accepted.
- ``-O fair`` writes a job only to a child that is up and not busy; ``-O fast``
  to every pipe in turn.
- a job written to a child that dies before accepting it is put back; one that
  was accepted is lost (``WorkerLostError``).

Leaves out: jobs larger than a pipe's buffer, ``max_restarts``. Idle children
are written to in the order of their slots (in reality: of their file
descriptors in a set).
Invariant: every job received is waiting for the semaphore, outbound, written
to one child, or done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

import simpy

from celerysim.engine.job import Job
from celerysim.engine.machine import Machine
from celerysim.engine.pool.base import PoolEvents
from celerysim.engine.pool.child import Child, Message, Signal
from celerysim.engine.recorder import Recorder
from celerysim.engine.streams import BLOCK, Streams
from celerysim.engine.supervisor import Activity, Supervisor
from celerysim.history import Level, Outcome
from celerysim.scenario.schema import Scenario

#: ``AsynPool.timers``: the pool is maintained this often whatever happens.
MAINTAIN_EVERY_S = 5.0
#: ``billiard/pool.py: TimeoutHandler._trywaitkill`` waits this long between SIGTERM and SIGKILL.
KILL_AFTER_S = 0.1


class PreforkPool:
    """The pool of child processes; a :class:`~celerysim.engine.pool.base.Pool`."""

    def __init__(
        self,
        env: simpy.Environment,
        scenario: Scenario,
        machine: Machine,
        supervisor: Supervisor,
        recorder: Recorder,
        events: PoolEvents,
        streams: Streams,
    ) -> None:
        self._env = env
        self._scenario = scenario
        self._costs = scenario.costs
        self._worker = scenario.worker
        self._fair = scenario.worker.optimization == "fair"
        self._machine = machine
        self._supervisor = supervisor
        self._recorder = recorder
        self._events = events
        self._streams = streams
        self._target = scenario.worker.min_concurrency
        self._semaphore = _Semaphore(self._target, self._apply_async)
        self._children: list[Child] = []  # oldest first; exited ones until they are reaped
        self._forked = 0
        self._outbound: deque[Job] = deque()
        self._cache: dict[int, Job] = {}  # jobs handed over and without a result, by task
        self._inqueues: dict[int, Child] = {}  # children that are up, by slot and in its order
        self._busy: set[Child] = set()
        order = scenario.worker.write_order or ()
        self._rank = {place - 1: rank for rank, place in enumerate(order)}
        for _ in range(self._target):
            self._create_child(up=True)
        recorder.level(Level.PROCESSES, self._target)

    # the pool's interface

    @property
    def num_processes(self) -> int:
        """The target size, not the live children."""
        return self._target

    def register_with_event_loop(self, supervisor: Supervisor) -> None:
        """Maintain the pool every five seconds."""
        supervisor.call_repeatedly(MAINTAIN_EVERY_S, self.maintain_pool)

    def process_task(self, job: Job) -> None:
        """Hand a job to the pool when the semaphore allows it."""
        self._semaphore.acquire(job)

    def grow(self, n: int) -> None:
        """Raise the target; nothing is forked yet."""
        self._set_target(self._target + n)
        self._semaphore.grow(n)

    def shrink(self, n: int) -> None:
        """Terminate up to ``n`` inactive children, oldest first, lowering the target by each.

        With fewer inactive ones Celery raises *after* terminating them, and the
        autoscaler ignores it.
        """
        terminated = 0
        for child in self._children:
            if not child.active:
                self._set_target(self._target - 1)
                self._semaphore.shrink()
                child.signal(Signal.TERM)
                terminated += 1
                if terminated == n:
                    return

    def maintain_pool(self) -> Activity:
        """Reap, fork what is missing, free the semaphore's places of the reaped."""
        exited = [child for child in reversed(self._children) if child.exited]
        if exited:
            yield from self._join_exited_children(exited)
        for _ in range(self._target - len(self._children)):
            yield self._machine.work(self._costs.fork_s)
            self._create_child()
        for _ in exited:
            self._semaphore.release()

    # writing jobs

    def wants_to_write(self) -> bool:
        """Whether there is a job to write, and (fair) a child that is up and not busy."""
        if not self._outbound:
            return False
        return len(self._busy) < len(self._inqueues) if self._fair else bool(self._inqueues)

    def write(self) -> Activity:
        """Write one job to each child that can take one."""
        for child in tuple(self._inqueues.values()):
            if self._fair and child in self._busy:
                continue
            if not self._outbound:
                return
            job = self._outbound.popleft()
            job.write_to = child
            self._busy.add(child)
            if self._costs.dispatch_s:
                yield self._machine.work(self._costs.dispatch_s)
            child.give(job)

    def _write_order(self, inqueue: tuple[int, Child]) -> int:
        """Where a pipe comes when jobs are written.

        Celery: as epoll reports the pipes, which is as ``on_poll_start`` adds them, which is in the
        order of a set of their file descriptors; a place in the pool keeps its pipe.
        """
        slot, _ = inqueue
        return self._rank.get(slot, slot)

    def _apply_async(self, job: Job) -> None:
        self._cache[job.index] = job
        self._outbound.append(job)

    # children come and go

    def _create_child(self, *, up: bool = False) -> None:
        taken = {child.slot for child in self._children}
        slot = next(slot for slot in range(len(taken) + 1) if slot not in taken)
        self._forked += 1
        child = Child(
            self._env,
            self._scenario,
            self._machine,
            self._supervisor,
            self._recorder,
            self._forked,
            slot,
            self._exit_is_missed(self._forked),
        )
        self._children.append(child)
        self._recorder.forked(child.number)
        self._recorder.level(Level.CHILDREN, len(self._children))
        child.start(_Output(self, child), _Sentinel(self, child), up=up)
        if not up:
            self._supervisor.call_later(
                self._worker.proc_alive_timeout, partial(self._verify_alive, child)
            )

    def _exit_is_missed(self, number: int) -> bool:
        """Whether the event of this child's exit will come before it can be reaped.

        ``_event_process_exit`` has then given up watching it, and it stays in the pool until
        something else maintains the pool.
        """
        share = self._costs.exit_missed_share
        if not share:
            return False
        block, place = divmod(number, BLOCK)
        return bool(self._streams.uniform("exit", block)[place] < share)

    def _verify_alive(self, child: Child) -> Activity:
        """A child that has not reported after ``proc_alive_timeout`` is killed."""
        if not child.exited and self._inqueues.get(child.slot) is not child:
            child.signal(Signal.KILL)
        yield from ()

    def _join_exited_children(self, exited: list[Child]) -> Activity:
        """``Pool._join_exited_workers``: read what they left, then see to their jobs."""
        for child in exited:
            # process_flush_queues reads until the pipe has been silent for 10 ms
            yield self._env.timeout(self._costs.reap_s / 2)
            while child.messages:
                yield from self.handle_message(child)
            self._children.remove(child)
            self._recorder.exited(child.number)
        self._recorder.level(Level.CHILDREN, len(self._children))
        for job in list(self._cache.values()):
            if job.accepted_by in exited:
                self._finish(job)
                self._events.on_lost(job)
            elif job.write_to in exited:
                job.write_to = None
                self._outbound.appendleft(job)
        for child in exited:
            yield self._env.timeout(self._costs.reap_s / 2)  # on_process_down flushes once more
            if self._inqueues.get(child.slot) is child:
                del self._inqueues[child.slot]
            self._busy.discard(child)
            self._supervisor.forget(child.output)
            self._supervisor.forget(child.sentinel)

    # what children report

    def handle_message(self, child: Child) -> Activity:
        """Read one message of a child and act on it (``ResultHandler.on_state_change``)."""
        message, job = child.messages.popleft()
        if message is Message.ACK:
            assert job is not None
            if self._costs.accept_s:
                yield self._machine.work(self._costs.accept_s)
            self._on_ack(child, job)
        elif message is Message.READY:
            assert job is not None
            if self._costs.result_s:
                yield self._machine.work(self._costs.result_s)
            self._on_ready(child, job)
        elif message is Message.UP:
            self._inqueues[child.slot] = child
            self._inqueues = dict(sorted(self._inqueues.items(), key=self._write_order))
            self._recorder.up(child.number)
        else:
            child.signal(Signal.TERM)  # on_death: the second signal ends it

    def _on_ack(self, child: Child, job: Job) -> None:
        job.accepted_by = child
        child.active += 1
        soft, hard = self._worker.soft_time_limit, self._worker.time_limit
        if soft:
            action = partial(self._soft_limit, job, child)
            job.limits += (self._supervisor.call_later(soft, action),)
        if hard:
            action = partial(self._hard_limit, job, child)
            job.limits += (self._supervisor.call_later(hard, action),)
        self._events.on_accepted(job)

    def _on_ready(self, child: Child, job: Job) -> None:
        self._busy.discard(child)
        child.results_read += 1
        if not job.ready:
            self._semaphore.release()
            self._finish(job)
            self._events.on_done(job)

    def _finish(self, job: Job) -> None:
        """The job leaves the pool's cache."""
        job.ready = True
        del self._cache[job.index]
        if job.accepted_by is not None:
            job.accepted_by.active -= 1
        for timer in job.limits:
            timer.cancelled = True

    # time limits

    def _soft_limit(self, job: Job, child: Child) -> Activity:
        if child.running is job:
            child.signal(Signal.USR1)
        yield from ()

    def _hard_limit(self, job: Job, child: Child) -> Activity:
        """``TimeoutHandler.on_hard_timeout``: fail the job, then kill its child.

        The supervisor waits here for the child's end; the child waits for the
        supervisor's second SIGTERM: so it always comes to SIGKILL.
        """
        self._finish(job)
        self._recorder.finished(job.index, Outcome.FAILED)
        self._events.on_done(job)
        child.signal(Signal.TERM)
        yield self._env.timeout(KILL_AFTER_S)
        child.signal(Signal.KILL)

    def _set_target(self, value: int) -> None:
        self._target = value
        self._recorder.level(Level.PROCESSES, value)


class _Output:
    """A child's pipe to the supervisor, as something to read."""

    def __init__(self, pool: PreforkPool, child: Child) -> None:
        self._pool = pool
        self._child = child

    def has_data(self) -> bool:
        return bool(self._child.messages)

    def handle(self) -> Activity:
        return self._pool.handle_message(self._child)


class _Sentinel:
    """A child's exit, as something to read: the pool is maintained."""

    def __init__(self, pool: PreforkPool, child: Child) -> None:
        self._pool = pool
        self._child = child
        self._tracked = True

    def has_data(self) -> bool:
        return self._tracked and self._child.closed

    def handle(self) -> Activity:
        self._tracked = False  # _untrack_child_process
        yield from self._pool.maintain_pool()


class _Semaphore:
    """``kombu/asynchronous/semaphore.py: LaxBoundedSemaphore``, to the letter.

    Lax: freeing more often than taking is allowed, and a waiter is then let in
    above the bound. ``enter`` is called with each job that is let in.
    """

    def __init__(self, value: int, enter: Callable[[Job], None]) -> None:
        self._initial = self._value = value
        self._enter = enter
        self._waiting: deque[Job] = deque()

    def acquire(self, job: Job) -> None:
        if self._value <= 0:
            self._waiting.append(job)
        else:
            self._value -= 1
            self._enter(job)

    def release(self) -> None:
        if self._waiting:
            self._enter(self._waiting.popleft())
        else:
            self._value = min(self._value + 1, self._initial)

    def grow(self, n: int) -> None:
        self._initial += n
        self._value += n
        for _ in range(n):
            self.release()

    def shrink(self) -> None:
        self._initial = max(self._initial - 1, 0)
        self._value = max(self._value - 1, 0)
