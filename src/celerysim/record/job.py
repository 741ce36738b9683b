"""What worker and publisher must know about one recording. Standard library only."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

#: Name of the environment variable that carries :class:`Job` to worker and publisher. Not an
#: argument: the broker's address may hold a password, and arguments are public on a machine.
VARIABLE = "CELERYSIM_RECORD"


@dataclass(frozen=True)
class Job:
    """What worker and publisher must know about one recording."""

    run: str  #: a UUID: in the names of queue, exchanges and worker
    broker_url: str
    names: tuple[str, ...]  #: the tasks' names
    loops: int = 0  #: rounds of one chunk of the CPU burner
    ready_fd: int = -1  #: where the worker tells that it is ready
    fast: bool = False  #: worker.optimization: ``-O fast``
    conf: dict[str, Any] = field(default_factory=dict)  #: Celery settings of the worker

    @property
    def queue(self) -> str:
        """The queue's name."""
        return f"celerysim.{self.run}"

    @property
    def hostname(self) -> str:
        """The worker's node name; says nothing about the machine."""
        return f"{self.queue}@localhost"

    @property
    def control_exchange(self) -> str:
        """Celery's ``control_exchange``: of its own, so that other workers stay unheard."""
        return f"{self.queue}.control"

    @property
    def event_exchange(self) -> str:
        """Celery's ``event_exchange``: of its own, so that other workers stay unheard."""
        return f"{self.queue}.events"

    @property
    def pidbox(self) -> str:
        """The queue of the worker's remote control (kombu/pidbox.py: Mailbox.get_queue)."""
        return f"{self.hostname}.{self.control_exchange}.pidbox"

    @property
    def exchanges(self) -> tuple[str, ...]:
        """All exchanges that worker and publisher declare (kombu/pidbox.py: Mailbox)."""
        pidbox = f"{self.control_exchange}.pidbox"
        return (self.queue, self.event_exchange, pidbox, f"reply.{pidbox}")

    def dump(self) -> str:
        """The text that :func:`load_job` reads."""
        return json.dumps(asdict(self))


def load_job(text: str) -> Job:
    """The job of a text made by :meth:`Job.dump`."""
    data = json.loads(text)
    return Job(**(data | {"names": tuple(data["names"])}))
