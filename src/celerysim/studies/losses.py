"""How often a run loses a task at scale-down: of any scenario, and of a published cell.

Shrinking takes children that the supervisor does not know to be busy. One that was
written a job, and has begun it before the signal comes, takes its task along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from celerysim.scenario import Scenario
from celerysim.studies.cells import Cell
from celerysim.studies.runs import Progress, replicate_all
from celerysim.studies.tables import tables

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
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> Losses:
    """Simulate ``scenario`` and count the runs that lose a task.

    ``name`` is what the answer calls it. The other arguments are those of
    :func:`~celerysim.studies.tables.tables`.
    """
    (found,) = replicate_all([scenario], replications, processes=processes, progress=progress)
    return _losses(name, found)


def published_losses(
    replications: int = REPLICATIONS,
    *,
    overrides: Sequence[str] = (),
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> Losses:
    """The same of the published cell, beside its real runs.

    Arguments and errors as for :func:`~celerysim.studies.tables.tables`.
    """
    (result,) = tables(
        replications, cells=[CELL], overrides=overrides, processes=processes, progress=progress
    )
    return _losses(CELL.name, result.simulated, OBSERVED)


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
    name: str, simulated: Mapping[str, Any], observed: tuple[int, int] | None = None
) -> Losses:
    lost, forks = (tuple(map(int, simulated[key]["values"])) for key in ("lost", "forks"))
    return Losses(name, lost, forks, observed)
