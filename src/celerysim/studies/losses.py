"""How often a run of ``schedule autoscale(8,4)`` loses a task at scale-down, beside real runs.

Shrinking takes children that the supervisor does not know to be busy. One that was
written a job, and has begun it before the signal comes, takes its task along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celerysim.studies.cells import Cell
from celerysim.studies.tables import Progress, tables

#: The cell in which it was seen.
CELL = Cell("schedule", "autoscale", 8)
#: Real runs of it, and those that lost a task.
OBSERVED = (3, 20)


@dataclass(frozen=True)
class Losses:
    """Runs that lost a task."""

    lost: int
    runs: int
    forks: tuple[int, ...]  #: of each run
    observed: tuple[int, int] = OBSERVED

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "cell": CELL.name,
            "simulated": _share(self.lost, self.runs),
            "observed": _share(*self.observed),
            "forks": list(self.forks),
        }


def losses(
    replications: int = 200,
    *,
    overrides: Sequence[str] = (),
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> Losses:
    """Simulate the cell ``replications`` times and count the runs that lose a task.

    Arguments and errors as for :func:`~celerysim.studies.tables.tables`.
    """
    (result,) = tables(
        replications, cells=[CELL], overrides=overrides, processes=processes, progress=progress
    )
    lost = result.simulated["lost"]["values"]
    forks = tuple(int(count) for count in result.simulated["forks"]["values"])
    return Losses(sum(count > 0 for count in lost), replications, forks)


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact confidence interval of a probability."""
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2.0
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1.0 - tail)) if failures else 1.0
    return low, high


def _share(lost: int, runs: int) -> dict[str, Any]:
    return {
        "lost": lost,
        "runs": runs,
        "probability": lost / runs,
        "ci95": list(clopper_pearson(lost, runs)),
    }
