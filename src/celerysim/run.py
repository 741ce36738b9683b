"""Running a scenario once or several times, and summing it up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celerysim.engine.simulation import simulate
from celerysim.metrics import over_replications, summary
from celerysim.result import Result
from celerysim.scenario import Scenario


def replicate(
    scenario: Scenario,
    replications: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Result, dict[str, Any]]:
    """The first replication's result, and the statistics of all.

    With one replication the statistics are :func:`~celerysim.metrics.summary`'s,
    with more :func:`~celerysim.metrics.over_replications`'s. ``progress`` is
    called with (replications done, replications in all).
    """
    first = simulate(scenario)
    summaries = [summary(first)]
    for replication in range(1, replications):
        progress(replication, replications)
        summaries.append(summary(simulate(scenario, replication=replication, levels=False)))
    return first, summaries[0] if replications == 1 else over_replications(summaries)
