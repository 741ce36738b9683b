"""Findings: each a small pure function of a :class:`~celerysim.inspection.view.View`.

It returns a :class:`~celerysim.inspection.finding.Finding`, or None where the
history does not show what it looks for.
"""

from __future__ import annotations

from collections.abc import Callable

from celerysim.inspection.finding import Finding
from celerysim.inspection.findings import ends, pool, scaling, waits, worker
from celerysim.inspection.view import View

#: In the order they are shown: first what loses work, then what costs time, then what is idle.
FINDINGS: tuple[Callable[[View], Finding | None], ...] = (
    scaling.lost_at_scale_down,
    worker.killed_children,
    worker.restarts,
    worker.connection_losses,
    ends.redeliveries,
    ends.unfinished,
    ends.failures,
    ends.retries,
    scaling.churn,
    scaling.exposed_at_scale_down,
    worker.memory_recycling,
    worker.task_recycling,
    waits.blocking_name,
    waits.waits_while_idle,
    waits.deep_prefetch,
    pool.all_busy,
    pool.idle,
)


def findings(view: View) -> tuple[Finding, ...]:
    """Everything found, in the order of :data:`FINDINGS`."""
    return tuple(found for find in FINDINGS if (found := find(view)) is not None)
