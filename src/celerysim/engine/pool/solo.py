"""The solo pool: the task runs in the supervisor, in place of the hand-over.

Models ``celery/concurrency/solo.py`` (5.6.3): ``on_apply`` is ``apply_target``
itself, so while a task runs nothing is received, no timer runs and no
acknowledgement is written. ``--concurrency`` only counts for the prefetch window;
with ``--autoscale`` nothing happens, as there is never more than one reserved
task for its one process.

Leaves out a race: when the broker's answer to a late acknowledgement arrives
before the same turn tries to read again, that task runs before the loop polls,
and its own acknowledgement waits for the poller as in the thread pool (about one
task in fifty on a busy machine; here only if ``costs.deliver_s`` is zero).
Invariant: one task at a time, and never two reserved.
"""

from __future__ import annotations

import simpy

from celerysim.engine.in_process import InProcessPool
from celerysim.engine.job import Job
from celerysim.engine.machine import Machine
from celerysim.engine.pool.base import PoolEvents
from celerysim.engine.recorder import Recorder
from celerysim.engine.supervisor import Activity
from celerysim.scenario.schema import Scenario


class SoloPool(InProcessPool):
    """``celery/concurrency/solo.py: TaskPool``."""

    def __init__(
        self,
        env: simpy.Environment,
        scenario: Scenario,
        machine: Machine,
        recorder: Recorder,
        events: PoolEvents,
    ) -> None:
        super().__init__(env, scenario, machine, recorder, events, limit=1)
        self._job: Job

    def process_task(self, job: Job) -> None:
        """``apply_target``: it runs in :meth:`hold`."""
        self._job = job

    def hold(self) -> Activity:
        """Run the task."""
        return self._apply_target(self._job)
