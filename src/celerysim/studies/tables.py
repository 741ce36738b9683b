"""The published tables, simulated: 24 cells, 20 runs of 300 s each, beside the published figures.

Means over replications are compared with the published means over runs, medians
over replications with the medians over runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from celerysim.metrics import over_replications, summary
from celerysim.studies.cells import CELLS, Cell, drain_s, medians, published, scenario_of
from celerysim.studies.purge import simulate_purged
from celerysim.studies.runs import Progress, run_all

#: Replications of a cell: as many as were run.
REPLICATIONS = 20
#: What is compared: a path in a summary.
FIGURES = (
    ("forks",),
    ("tasks",),
    ("throughput_per_s",),
    ("sojourn_s", "mean"),
    ("sojourn_s", "median"),
    ("sojourn_s", "p90"),
    ("sojourn_s", "p95"),
)


@dataclass(frozen=True)
class CellResult:
    """A cell's replications beside its published figures."""

    cell: Cell
    simulated: dict[str, Any]  #: as ``run --json`` with several replications

    def error(self, figure: Sequence[str], *, robust: bool = True) -> float | None:
        """Relative error of one of :data:`FIGURES`; None where it says nothing (green forks).

        ``robust``: the median over replications against the median over runs; else the
        mean against the published mean.
        """
        if figure[0] == "forks" and self.cell.is_green:
            return None
        found = at(self.simulated, figure)
        real = float(at(medians(self.cell) if robust else published(self.cell), figure))
        model = median(found["values"]) if robust else found["mean"]
        return float(model) / real - 1.0

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "load": self.cell.load,
            "pool": self.cell.pool,
            "size": self.cell.size,
            "calibrated": self.cell.is_calibrated,
            "simulated": self.simulated,
            "published": published(self.cell),
            "medians": medians(self.cell),
            "errors": {
                kind: {".".join(figure): self.error(figure, robust=robust) for figure in FIGURES}
                for kind, robust in (("published", False), ("medians", True))
            },
        }


def tables(
    replications: int = REPLICATIONS,
    *,
    cells: Sequence[Cell] = CELLS,
    overrides: Sequence[str] = (),
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> list[CellResult]:
    """Simulate the published cells.

    Args:
        replications: runs of each cell.
        cells: which ones; all by default.
        overrides: ``dotted.path=value``, applied to every cell's scenario.
        processes: of this machine; 0: as many as it has cores. The results do not
            depend on it. (In a script of your own, more than one need
            ``if __name__ == "__main__":``.)
        progress: called with (runs done, runs in all).

    Raises:
        ScenarioError: something is wrong with ``overrides``.
    """
    for cell in cells:
        scenario_of(cell, overrides)  # a user's mistake is told before any work begins
    jobs = [(cell, r, tuple(overrides)) for cell in cells for r in range(replications)]
    summaries = run_all(run_cell, jobs, processes, progress)
    return [
        CellResult(cell, over_replications(summaries[i * replications : (i + 1) * replications]))
        for i, cell in enumerate(cells)
    ]


def run_cell(cell: Cell, replication: int, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The summary of one run of a cell."""
    scenario = scenario_of(cell, overrides)
    return summary(simulate_purged(scenario, drain_s=drain_s(cell), replication=replication))


def biases(results: Sequence[CellResult]) -> dict[str, float]:
    """Mean signed error of each figure over the cells, against the medians over runs."""
    found = {}
    for figure in FIGURES:
        errors = [e for r in results if (e := r.error(figure)) is not None]
        found[".".join(figure)] = sum(errors) / len(errors) if errors else 0.0
    return found


def at(table: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The value at a path of keys."""
    value: Any = table
    for key in path:
        value = value[key]
    return value
