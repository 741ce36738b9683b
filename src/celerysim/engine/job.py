"""A task on its way through the worker.

Models, in one object, Celery's ``Request`` (celery/worker/request.py) and the
pool's ``ApplyResult`` (billiard/pool.py), which always come in pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from celerysim.engine.workload import Kind

if TYPE_CHECKING:
    from celerysim.engine.pool.child import Child
    from celerysim.engine.supervisor import Timer


class Job:
    """One task: its content, and where the worker stands with it."""

    __slots__ = (
        "accepted_by",
        "acknowledged",
        "draw",
        "failed",
        "index",
        "kind",
        "limits",
        "ready",
        "seconds",
        "write_to",
    )

    def __init__(self, index: int, kind: Kind, seconds: Sequence[float], draw: float = 0.0) -> None:
        self.index = index  #: the task's row
        self.kind = kind
        self.seconds = seconds  #: of each step; zip with ``kind.steps``
        self.draw = draw  #: in [0, 1): see :mod:`celerysim.engine.past`
        self.reset()

    def reset(self) -> None:
        """Forget what happened to an earlier delivery."""
        self.write_to: Child | None = None  #: the child whose pipe it was written to
        self.accepted_by: Child | None = None  #: set when the child's acceptance is handled
        self.ready = False  #: a result is known (billiard: ``ApplyResult.ready()``)
        self.failed = False  #: raised: a soft time limit
        self.acknowledged = False  #: acked or rejected, so never again
        self.limits: tuple[Timer, ...] = ()  #: time limits under way
