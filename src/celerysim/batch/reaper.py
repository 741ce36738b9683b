"""Children come and go: ``maintain_pool`` in all lanes.

The same as ``PreforkPool.maintain_pool`` of :mod:`celerysim.engine.pool.prefork`:
reap what has exited, youngest first, waiting twice for silence in its pipe; see
to the jobs of the reaped; fork what is missing, one after the other.

Invariant: a slot is ``listed`` from a child's fork until the first half of its
reaping is over.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.arrays import Bools, Floats, Ints, Lanes, Value, at
from celerysim.batch.child import Children, Signal, State
from celerysim.batch.clock import Clock
from celerysim.batch.consumer import Consumer
from celerysim.batch.pool import Pool
from celerysim.batch.recorder import Recorder
from celerysim.batch.supervisor import Origin, Soon, Supervisor
from celerysim.batch.tasks import Tasks
from celerysim.batch.uniforms import ExitNumbers

#: Greater than the number of any child or job.
NOBODY = np.iinfo(np.int64).max


class Reaper:
    """Reaping and forking."""

    def __init__(
        self,
        lanes: int,
        children: int,
        clock: Clock,
        agenda: Agenda,
        supervisor: Supervisor,
        pool: Pool,
        processes: Children,
        consumer: Consumer,
        tasks: Tasks,
        recorder: Recorder,
    ) -> None:
        self._lanes = lanes
        self._columns = children
        self._clock = clock
        self._agenda = agenda
        self._supervisor = supervisor
        self._pool = pool
        self._children = processes
        self._consumer = consumer
        self._tasks = tasks
        self._recorder = recorder
        shape = (children, lanes)
        self._listed = np.zeros(shape, dtype=np.bool_)
        self._flat_listed = self._listed.reshape(-1)
        self._joining = np.zeros(shape, dtype=np.int8)  # 1: to be flushed, 2: once more
        self._flat_joining = self._joining.reshape(-1)
        self.listed = np.zeros(lanes, dtype=np.int64)
        self.forks = np.zeros(lanes, dtype=np.int64)
        self._origin = np.zeros(lanes, dtype=np.int8)
        self._child = np.zeros(lanes, dtype=np.int64)
        self._reaped = np.zeros(lanes, dtype=np.int64)
        self._to_fork = np.zeros(lanes, dtype=np.int64)
        self.fork_s: Value = 0.0
        self.reap_s: Value = 0.0
        self.proc_alive_timeout: Value = 0.0
        self.exit_missed_share: Value = 0.0
        self.exit_numbers: ExitNumbers

    def reset(self, lanes: Lanes) -> None:
        """There are no children."""
        self._listed[:, lanes] = False
        self._joining[:, lanes] = 0
        self.listed[lanes] = self.forks[lanes] = 0

    def come_up(self, lanes: Lanes) -> None:
        """The pool starts with its children, which are up."""
        size = self._pool.target.take(lanes)
        for child in range(int(size.max(initial=0))):
            self._create(lanes[size > child], up=True)
        self._consumer.start(lanes)

    def maintain(self, lanes: Lanes, origin: int) -> None:
        """Reap, fork what is missing, free the semaphore's places of the reaped."""
        if not lanes.size:
            return
        something = (self._children.exits.take(lanes) > 0) | (
            self.listed.take(lanes) < self._pool.target.take(lanes)
        )
        if np.count_nonzero(something):
            some = lanes[something]
            self._origin[some] = origin
            self._agenda.put(Stage.MAINTAIN, some)
            lanes = lanes[~something]
        self._maintained(lanes, origin)

    def _maintained(self, lanes: Lanes, origin: int) -> None:
        if not lanes.size:
            return
        if origin == Origin.SOURCE:
            self._agenda.put(Stage.SOURCE_DONE, lanes)
        elif origin == Origin.TIMER:
            self._supervisor.enter_maintain(lanes)
            self._agenda.put(Stage.TIMERS, lanes)
        else:
            self._consumer.scaled(lanes, origin)

    # reaping

    def begin(self, lanes: Lanes) -> None:
        """See which children have exited."""
        state = self._children.by_slot(self._children.state, lanes)
        exited = self._listed.take(lanes, axis=1) & (state == State.EXITED)
        self._joining[:, lanes] = exited
        self._reaped[lanes] = np.count_nonzero(exited, axis=0)
        self._flush_next(lanes)

    def _youngest(self, lanes: Lanes, phase: int) -> tuple[Bools, Ints]:
        """(whether there is a child in this phase of reaping, the youngest one)."""
        mine = self._joining.take(lanes, axis=1) == phase
        number = self._children.by_slot(self._children.number, lanes)
        return np.logical_or.reduce(mine, axis=0), np.where(mine, number, -1).argmax(axis=0)

    def _flush_next(self, lanes: Lanes) -> None:
        some, child = self._youngest(lanes, 1)
        self._settle_jobs(lanes[~some])
        self._flush(lanes[some], child[some], Stage.FLUSHED)

    def _flush(self, lanes: Lanes, child: Ints, stage: int) -> None:
        """Wait until the pipe has been silent for long enough."""
        self._child[lanes] = child
        self._clock.then[lanes] = stage
        until = self._clock.now.take(lanes) + at(self.reap_s, lanes) / 2
        self._clock.schedule(self._clock.supervisor, lanes, until)
        self._clock.wait(lanes)

    def flushed(self, lanes: Lanes) -> None:
        """Read what the child has left, then forget it."""
        child = self._child.take(lanes)
        more = self._children.has_message(lanes, child)
        self._pool.read_message(lanes[more], child[more], Origin.FLUSH)
        lanes, child = lanes[~more], child[~more]
        place = child * self._lanes + lanes
        self._flat_listed[place] = False
        self._flat_joining[place] = 2
        self.listed[lanes] -= 1
        self._children.exits[lanes] -= 1
        now = self._clock.now.take(lanes)
        self._record(lanes, place, now, now)
        self._flush_next(lanes)

    def _record(self, lanes: Lanes, place: Ints, end: Floats, exited: Floats) -> None:
        children = self._children
        self._recorder.left(
            lanes, end, number=children.number.take(place), forked=children.forked.take(place),
            up=children.up.take(place), terminated=children.terminated.take(place),
            exited=exited, cut_s=children.cut_s.take(place),
        )  # fmt: skip

    def _settle_jobs(self, lanes: Lanes) -> None:
        """Jobs of the reaped in their order: accepted ones are lost, others put back."""
        rest = lanes
        while rest.size:
            mine = self._joining.take(rest, axis=1) == 2
            job = self._children.by_slot(self._children.job, rest)
            job = np.where(mine & (job >= 0), job, NOBODY)
            child = job.argmin(axis=0)
            first = np.minimum.reduce(job, axis=0)
            some = first < NOBODY
            rest, child, first = rest[some], child[some], first[some]
            place = child * self._lanes + rest
            self._children.job[place] = -1
            lost = self._children.active.take(place)
            self._children.active[place] = False
            self._lose(rest[lost], first[lost])
            self._pool.put_back(rest[~lost], first[~lost])
        self._flush_again_next(lanes)

    def _lose(self, lanes: Lanes, job: Ints) -> None:
        self._consumer.reserved[lanes] -= 1
        task = lanes * self._tasks.width + job
        open_ = np.isnan(self._tasks.flat_finished.take(task))
        self._tasks.flat_finished[task[open_]] = self._clock.now.take(lanes[open_])
        self._tasks.flat_lost[task[open_]] = True
        self._children.count_finished(lanes[open_])
        self._supervisor.soon.push(lanes[self._pool.acks_late.take(lanes)], Soon.ACK)

    def _flush_again_next(self, lanes: Lanes) -> None:
        some, child = self._youngest(lanes, 2)
        self._begin_forks(lanes[~some])
        self._flush(lanes[some], child[some], Stage.FLUSHED_AGAIN)

    def flushed_again(self, lanes: Lanes) -> None:
        """The child's pipes are closed."""
        child = self._child.take(lanes)
        place = child * self._lanes + lanes
        self._flat_joining[place] = 0
        pool = self._pool
        pool.up[place] = pool.flat_free[place] = False
        self._supervisor.forget(lanes, child)
        self._supervisor.forget(lanes, self._columns + child)
        self._flush_again_next(lanes)

    # forking

    def _begin_forks(self, lanes: Lanes) -> None:
        missing = self._pool.target.take(lanes) - self.listed.take(lanes)
        self._to_fork[lanes] = np.maximum(missing, 0)
        self._fork_next(lanes)

    def _fork_next(self, lanes: Lanes) -> None:
        more = self._to_fork.take(lanes) > 0
        forking = lanes[more]
        self._pool.compute(forking, at(self.fork_s, forking), Stage.FORKED)
        lanes = lanes[~more]
        self._pool.release(lanes, self._reaped.take(lanes))
        origin = self._origin.take(lanes)
        for value in (Origin.SOURCE, Origin.TIMER, Origin.KEEPALIVE, Origin.MESSAGE):
            self._maintained(lanes[origin == value], value)

    def forked(self, lanes: Lanes) -> None:
        """``fork`` returns in the supervisor."""
        self._to_fork[lanes] -= 1
        self._create(lanes, up=False)
        self._fork_next(lanes)

    def _create(self, lanes: Lanes, *, up: bool) -> None:
        child = (~self._listed.take(lanes, axis=1)).argmax(axis=0)
        number = self.forks.take(lanes) + 1
        self.forks[lanes] = number
        self._flat_listed[child * self._lanes + lanes] = True
        self.listed[lanes] += 1
        missed = self.exit_numbers.below(lanes, number, at(self.exit_missed_share, lanes))
        self._children.create(lanes, child, number, up, missed)
        if not up:
            delay = at(self.proc_alive_timeout, lanes)
            self._supervisor.enter_verify(lanes, delay, child, number)

    def silent(self, lanes: Lanes, child: Ints, number: Ints) -> Bools:
        """Whether the child of this number in the given slot has not reported, and lives."""
        place = child * self._lanes + lanes
        silent: Bools = (
            (self._children.number.take(place) == number)
            & (self._children.state.take(place) < State.EXITED)
            & ~self._pool.up.take(place)
        )
        return silent

    def verify_alive(self, lanes: Lanes, child: Ints, number: Ints) -> None:
        """A child that has not reported in time is killed."""
        silent = self.silent(lanes, child, number)
        self._children.signal(lanes[silent], child[silent], Signal.KILL)

    def inactive(self, lanes: Lanes, n: Ints) -> Iterator[tuple[Ints, Bools]]:
        """The 1st, 2nd, ... child to shrink: (child, in which lanes there is one)."""
        idle = self._listed.take(lanes, axis=1)
        idle &= ~self._children.by_slot(self._children.active, lanes)
        number = np.where(idle, self._children.by_slot(self._children.number, lanes), NOBODY)
        for k in range(int(n.max(initial=0))):
            child = number.argmin(axis=0)
            some = (np.minimum.reduce(number, axis=0) < NOBODY) & (k < n)
            number[child, np.arange(lanes.size)] = NOBODY
            yield child, some

    def finish(self, lanes: Lanes) -> None:
        """The run is over: write down the children that live."""
        for column in range(self._columns):
            some = lanes[self._listed[column].take(lanes)]
            child = np.full(some.size, column)
            self._children.stop(some, child)
            place = child * self._lanes + some
            self._record(some, place, self._clock.now.take(some), np.full(some.size, np.nan))
