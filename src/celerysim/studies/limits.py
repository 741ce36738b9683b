"""How near the simulated tables must come to the published ones, and which cells do not.

The limits were set before the cells were simulated. In the cumulative prefork cells
the queue amplifies every small error, so theirs are wider.
"""

from __future__ import annotations

from celerysim.studies.cells import Cell, forks_of_runs, published
from celerysim.studies.tables import CellResult

#: Tasks, everywhere: relative error.
TASKS = 0.01
#: Relative error of the sojourn's mean, and of its median, p90 and p95.
SOJOURN = (0.02, 0.04)
SOJOURN_CUMULATIVE_PREFORK = (0.05, 0.08)
#: Forks of ``schedule autoscale(8,4)``: distance of the means.
FORKS = 0.75


def misses(result: CellResult) -> list[str]:
    """The figures of a cell that are outside its limits."""
    mean, quantile = sojourn_limits(result.cell)
    limits = {("tasks",): TASKS, ("sojourn_s", "mean"): mean}
    limits |= {("sojourn_s", key): quantile for key in ("median", "p90", "p95")}
    found = [
        figure[-1] for figure, limit in limits.items() if abs(result.error(figure) or 0.0) > limit
    ]
    return found if _forks_fit(result) else ["forks", *found]


def sojourn_limits(cell: Cell) -> tuple[float, float]:
    """The limits of a cell's mean sojourn and of its quantiles."""
    if cell.load == "cumulative" and not cell.is_green:
        return SOJOURN_CUMULATIVE_PREFORK
    return SOJOURN


def _forks_fit(result: CellResult) -> bool:
    """Forks: exact where every real run agrees, else the mean near theirs, or in their range."""
    runs = forks_of_runs(result.cell)
    forks = result.simulated["forks"]
    if not runs:
        return True
    if len(set(runs)) == 1:
        return set(forks["values"]) == set(runs)
    if result.cell.load == "schedule":
        return bool(abs(forks["mean"] - published(result.cell)["forks"]) <= FORKS)
    return bool(min(runs) <= forks["mean"] <= max(runs))
