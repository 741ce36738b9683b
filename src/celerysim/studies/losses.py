"""How often a run loses a task at scale-down: of any scenario, and of a published cell.

Shrinking takes children that the supervisor does not know to be busy. One that was
written a job, and has begun it before the signal comes, takes its task along.
Whether that happens hangs on milliseconds, so each run draws the worker's costs, late
wake-ups and the order of writing (:mod:`celerysim.uncertainty`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celerysim.engine.simulation import simulate
from celerysim.history import Outcome
from celerysim.scenario import Scenario
from celerysim.studies.cells import Cell, drain_s, scenario_of
from celerysim.studies.purge import simulate_purged
from celerysim.studies.runs import Progress, run_all
from celerysim.uncertainty import with_spread

REPLICATIONS = 200
#: The published cell in which it was seen.
CELL = Cell("schedule", "autoscale", 8)
#: Real runs of it: how many lost a task, and how many there were.
OBSERVED = (3, 20)


@dataclass(frozen=True)
class Losses:
    """Runs that lost a task."""

    name: str  #: of the scenario or the cell
    tasks_lost: tuple[int, ...]  #: of each run
    forks: tuple[int, ...]  #: of each run
    observed: tuple[int, int] | None = None  #: real runs that lost a task, and all

    @property
    def simulated(self) -> tuple[int, int]:
        """Runs that lost a task, and all."""
        return sum(count > 0 for count in self.tasks_lost), len(self.tasks_lost)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "name": self.name,
            "simulated": share(*self.simulated),
            "observed": None if self.observed is None else share(*self.observed),
            "tasks_lost": list(self.tasks_lost),
            "forks": list(self.forks),
        }


def losses(
    scenario: Scenario,
    replications: int = REPLICATIONS,
    *,
    name: str = "scenario",
    spread: bool = True,
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> Losses:
    """Simulate ``scenario`` and count the runs that lose a task.

    ``name`` is what the answer calls it. ``spread``: draw each run's costs, late wake-ups and
    write order; else all runs have the scenario's. The other arguments are those of
    :func:`~celerysim.studies.tables.tables`.
    """
    jobs = [(scenario, r, spread) for r in range(replications)]
    return _losses(name, run_all(_run, jobs, processes, progress))


def published_losses(
    replications: int = REPLICATIONS,
    *,
    overrides: Sequence[str] = (),
    spread: bool = True,
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> Losses:
    """The same of the published cell, beside its real runs.

    Arguments and errors as for :func:`losses` and :func:`~celerysim.studies.tables.tables`.
    """
    scenario = scenario_of(CELL, overrides)
    jobs = [(scenario, r, spread, drain_s(CELL)) for r in range(replications)]
    return _losses(CELL.name, run_all(_run, jobs, processes, progress), OBSERVED)


def _run(
    scenario: Scenario, replication: int, spread: bool, purged_s: float | None = None
) -> tuple[int, int]:
    """Tasks lost and forks of one run; ``purged_s``: it ends as the published ones did."""
    if spread:
        scenario = with_spread(scenario, replication)
    if purged_s is None:
        result = simulate(scenario, replication=replication, levels=False)
    else:
        result = simulate_purged(scenario, drain_s=purged_s, replication=replication)
    return result.count(Outcome.LOST), result.forks


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact confidence interval of a probability."""
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2.0
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1.0 - tail)) if failures else 1.0
    return low, high


def share(lost: int, runs: int) -> dict[str, Any]:
    """Runs that lost a task as a probability with its interval."""
    return {
        "lost": lost,
        "runs": runs,
        "probability": lost / runs,
        "ci95": list(clopper_pearson(lost, runs)),
    }


def _losses(
    name: str, found: Sequence[tuple[int, int]], observed: tuple[int, int] | None = None
) -> Losses:
    lost, forks = zip(*found, strict=True)
    return Losses(name, lost, forks, observed)
