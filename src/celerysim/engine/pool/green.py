"""The green pools: tasks as greenlets of one process.

Models ``celery/concurrency/gevent.py`` on ``gevent.pool.Pool`` (26.9) and
``celery/concurrency/eventlet.py`` on ``eventlet.greenpool.GreenPool`` (0.41):

- ``spawn`` blocks the consumer's greenlet while the pool is full; a finished
  task lets it on, ``grow`` does not (it only raises the semaphore's counter);
- gevent's ``num_processes`` is the number of *running* greenlets, so the
  autoscaler adds what waits on top of the size again every second and never
  finds anything to remove; eventlet's is the size;
- gevent raises the hard time limit in the task when the task waits after it is
  due (``gevent.Timeout``); eventlet has no limits.

Invariant: one place of the semaphore for every running greenlet.
"""

from __future__ import annotations

from functools import partial

import simpy

from celerysim.engine.hub import Hub
from celerysim.engine.in_process import InProcessPool
from celerysim.engine.job import Job
from celerysim.engine.machine import Machine
from celerysim.engine.pool.base import PoolEvents
from celerysim.engine.recorder import Recorder
from celerysim.engine.supervisor import Activity
from celerysim.history import Level, Outcome
from celerysim.scenario.schema import Scenario


class EventletPool(InProcessPool):
    """``celery/concurrency/eventlet.py: TaskPool``; gevent's differs in little."""

    def __init__(
        self,
        env: simpy.Environment,
        scenario: Scenario,
        machine: Machine,
        hub: Hub,
        recorder: Recorder,
        events: PoolEvents,
    ) -> None:
        super().__init__(env, scenario, machine, recorder, events, scenario.worker.min_concurrency)
        self._backend_s = scenario.costs.backend_s
        self._hub = hub
        self._counter = self._limit  # the semaphore's; negative after a shrink of a busy pool
        self._running = 0
        self._unplaced: Job | None = None  # received, and there was no place for it
        self._blocked: Activity | None = None  # the greenlet in spawn()

    def process_task(self, job: Job) -> None:
        """``spawn``, if there is a place."""
        if self._counter > 0:
            self._spawn(job)
        else:
            self._unplaced = job

    def hold(self) -> Activity:
        """``spawn`` blocks the consumer until there is a place."""
        job, self._unplaced = self._unplaced, None
        if job is not None:
            self._blocked = self._hub.current
            yield self._hub.turn
            self._spawn(job)

    def grow(self, n: int) -> None:
        """Raise the semaphore's counter, without waking who waits for it."""
        self._limit += n
        self._counter += n
        self._recorder.level(Level.PROCESSES, self._limit)

    def shrink(self, n: int) -> None:
        """Lower the semaphore's counter; running tasks go on."""
        self.grow(-n)

    def _spawn(self, job: Job) -> None:
        self._counter -= 1
        self._running += 1
        self._hub.spawn(self._run(job))

    def _run(self, job: Job) -> Activity:
        yield from self._apply_target(job)
        self._running -= 1
        self._counter += 1
        if self._blocked is not None and self._counter > 0:
            blocked, self._blocked = self._blocked, None
            self._hub.run_soon(partial(self._hub.switch, blocked))

    def _wait(self, seconds: float) -> Activity:
        return self._hub.sleep(seconds)


class GeventPool(EventletPool):
    """``celery/concurrency/gevent.py: TaskPool``."""

    @property
    def num_processes(self) -> int:
        """``len(pool)``: the running greenlets."""
        return self._running

    def _apply_target(self, job: Job) -> Activity:
        """``apply_timeout``."""
        limit = self._worker.time_limit
        if limit is None:
            yield from super()._apply_target(job)
            return
        throw = partial(self._hub.throw, self._hub.current, _TimeLimitExceeded())
        timeout = self._hub.call_timeout(limit, throw)
        try:
            yield from super()._apply_target(job)
        except _TimeLimitExceeded:
            self._recorder.finished(job.index, Outcome.FAILED)
            self._events.on_done(job)
        finally:
            timeout.cancelled = True


class _TimeLimitExceeded(Exception):
    """What ``gevent.Timeout`` raises in the task."""
