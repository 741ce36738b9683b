"""The thread pool: tasks as threads of the worker's process.

Models ``celery/concurrency/thread.py`` (5.6.3) on
``concurrent.futures.ThreadPoolExecutor``: at most ``concurrency`` threads, an
unlimited queue before them. Acceptance and result are handled in the thread that
runs the task; an acknowledgement put off there with ``call_soon`` does not wake
the event loop's poller and goes out at its next turn, whatever brings that about.

All threads, the event loop's among them, share the interpreter lock
(:mod:`celerysim.engine.interpreter_lock`, the machine given to this pool).

There is no ``grow``: with ``--autoscale`` the first scale-up ends the worker
("Unrecoverable error: AttributeError"). Threads finish the jobs they were given;
their acknowledgements are never written. Leaves out: that the broker then takes
back what is unacknowledged.
Invariant: a job waits only while ``concurrency`` others run.
"""

from __future__ import annotations

from collections import deque

import simpy

from celerysim.engine.in_process import InProcessPool
from celerysim.engine.job import Job
from celerysim.engine.machine import Machine
from celerysim.engine.pool.base import PoolEvents
from celerysim.engine.recorder import Recorder
from celerysim.engine.supervisor import Activity
from celerysim.scenario.schema import Scenario


class ThreadsPool(InProcessPool):
    """``celery/concurrency/thread.py: TaskPool``."""

    def __init__(
        self,
        env: simpy.Environment,
        scenario: Scenario,
        machine: Machine,
        recorder: Recorder,
        events: PoolEvents,
    ) -> None:
        super().__init__(env, scenario, machine, recorder, events, scenario.worker.min_concurrency)
        self._threads = 0  # that run a job
        self._work_queue: deque[Job] = deque()

    def process_task(self, job: Job) -> None:
        """``executor.submit``."""
        self._work_queue.append(job)
        if self._threads < self._limit:
            self._threads += 1
            self._env.process(self._worker_thread())

    def _worker_thread(self) -> Activity:
        while self._work_queue:
            yield from self._apply_target(self._work_queue.popleft())
        self._threads -= 1
