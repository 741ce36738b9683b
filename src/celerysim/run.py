"""Running a scenario once or several times, and summing it up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from celerysim.engine.simulation import simulate
from celerysim.engines import Wanted, choose, for_runs, summaries
from celerysim.metrics import over_replications, summary
from celerysim.result import Result
from celerysim.scenario import Scenario


def replicate(
    scenario: Scenario,
    replications: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
    engine: Wanted = "auto",
) -> tuple[Result, list[Mapping[str, Any]]]:
    """The first replication in full, and the statistics of each.

    ``engine`` runs them: ``auto`` is the batch engine for many replications of
    what it supports. (The first one in full is always the reference engine's.)
    ``progress`` is called with (replications done, replications in all).

    Raises:
        CelerysimError: ``engine`` is batch, which does not support the scenario.
    """
    chosen = choose(scenario, for_runs(engine, replications))
    first = simulate(scenario)
    if chosen == "batch":
        runs = [(scenario, replication) for replication in range(replications)]
        return first, summaries(chosen, runs)
    found: list[Mapping[str, Any]] = [summary(first)]
    for replication in range(1, replications):
        progress(replication, replications)
        found.append(summary(simulate(scenario, replication=replication, levels=False)))
    return first, found


def statistics(found: list[Mapping[str, Any]]) -> dict[str, Any]:
    """One run's statistics as they are, several runs' with mean, interval and values."""
    return dict(found[0]) if len(found) == 1 else over_replications(found)
