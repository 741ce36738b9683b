"""What every pool offers the consumer (``celery/concurrency/base.py: BasePool``)."""

from __future__ import annotations

from typing import Protocol

from celerysim.engine.job import Job
from celerysim.engine.supervisor import Activity, Supervisor


class Pool(Protocol):
    """An execution pool."""

    @property
    def num_processes(self) -> int:
        """The pool's size as the autoscaler sees it."""
        ...

    def register_with_event_loop(self, supervisor: Supervisor) -> None:
        """Enter the pool's timers."""
        ...

    def process_task(self, job: Job) -> None:
        """Take a job that was received."""
        ...

    def grow(self, n: int) -> None:
        """Raise the size by ``n``."""
        ...

    def shrink(self, n: int) -> None:
        """Lower the size by ``n``, as far as processes are inactive."""
        ...

    def maintain_pool(self) -> Activity:
        """Reap what has exited, start what is missing."""
        ...


class PoolEvents(Protocol):
    """What a pool reports to the consumer."""

    def on_accepted(self, job: Job) -> None:
        """The job was accepted."""
        ...

    def on_done(self, job: Job) -> None:
        """The job is done."""
        ...

    def on_lost(self, job: Job) -> None:
        """The job's process was lost."""
        ...
