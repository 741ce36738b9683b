"""The autoscaler's decision, as a pure function of (state, now).

Models ``celery/worker/autoscale.py`` (5.6.3): ``Autoscaler._maybe_scale``,
``scale_up`` and ``scale_down``. Nothing here knows about the simulation; it can
be used on its own, beside Celery's class. Other policies sit beside
:class:`CeleryAutoscaler` with the same call.

Invariants: a decision never asks for more than ``max_concurrency`` nor, downwards,
for fewer than ``min_concurrency`` processes; scaling down leaves ``last_scale_up``
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol


class ScaleState(NamedTuple):
    """What the autoscaler sees."""

    processes: int  #: the pool's target size, ``pool.num_processes``; not the live children
    reserved: int  #: ``qty``: received and not finished, running ones included
    last_scale_up: float | None  #: seconds, on the clock of ``now``; None: never


class Decision(NamedTuple):
    """What the autoscaler does."""

    change: int  #: processes to add (positive) or remove (negative); 0: none
    maintain: bool  #: whether ``maintain_pool()`` follows; true even if scaling down is refused
    last_scale_up: float | None  #: the time stamp to keep


class Policy(Protocol):
    """A rule for scaling a pool."""

    def __call__(self, state: ScaleState, now: float) -> Decision:
        """Decide, at ``now`` seconds."""
        ...


@dataclass(frozen=True)
class CeleryAutoscaler:
    """Celery's own rule. ``keepalive`` in seconds."""

    max_concurrency: int
    min_concurrency: int
    keepalive: float

    def __call__(self, state: ScaleState, now: float) -> Decision:
        """Decide, at ``now`` seconds on a clock that is never exactly 0.

        (Celery tests ``if self._last_scale_up``, so a scale-up at clock zero
        would count as none; its clock is ``time.monotonic``.)
        """
        processes, reserved, last_scale_up = state
        target = min(reserved, self.max_concurrency)
        if target > processes:
            return Decision(target - processes, True, now)
        target = max(reserved, self.min_concurrency)
        if target < processes:
            # strictly: an age equal to the keepalive does not suffice
            if last_scale_up is not None and now - last_scale_up > self.keepalive:
                return Decision(target - processes, True, last_scale_up)
            return Decision(0, True, last_scale_up)
        return Decision(0, False, last_scale_up)
