"""How well does a scenario fitted to run 1 of a cell predict its runs 2 to 8? A Markdown table.

Run: python tests/unit/calibrate/reference_cells.py FOLDER [--together]

FOLDER holds the real prefork logs, CELL_run01.log.gz to CELL_run08.log.gz. With
--together a cell's runtimes are fitted to the first runs of all three sizes of
its kind, so that the log tells CPU from waiting.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from celerysim.calibrate import Comparison, calibrate, compare
from celerysim.trace import read_log

CORES = 2  # article_tables.json: "2 physical cores (cpuset)"
CELLS = [
    f"{load}_{mode}_{size}"
    for load in ("schedule", "cumulative")
    for mode in ("concurrency", "autoscale")
    for size in (2, 4, 8)
]
FIGURES = ("throughput_per_s", "sojourn_s.mean", "sojourn_s.p95", "forks")


def predict(
    folder: Path, cell: str, replications: int = 5, together: bool = False
) -> dict[str, tuple[Comparison, Comparison]]:
    """Each figure of runs 2 to 8: (by the scenario fitted to run 1, by run 1 itself)."""
    kind = cell.rpartition("_")[0]
    others = [f"{kind}_{size}" for size in (2, 4, 8) if f"{kind}_{size}" != cell]
    cells = [cell, *(others if together else ())]
    first = [read_log(folder / f"{name}_run01.log.gz") for name in cells]
    rest = [read_log(folder / f"{cell}_run0{run}.log.gz") for run in range(2, 9)]
    fitted = calibrate(first, cores=CORES, replications=1)
    rows = {row.figure: row for row in compare(fitted.scenario, rest, replications)}
    own = {row.figure: row for row in fitted.residuals}
    return {
        figure: (rows[figure], Comparison(figure, rows[figure].logs, own[figure].logs))
        for figure in FIGURES
    }


def table(folder: Path, together: bool = False) -> Iterator[str]:
    yield "| cell | figure | runs 2-8 | model | bias | error | bias of run 1 | error of run 1 |"
    yield "|---|---|---|---|---|---|---|---|"
    for cell in CELLS:
        for figure, (model, run1) in predict(folder, cell, together=together).items():
            yield (
                f"| {cell} | {figure} | {model.log:.3f} | {model.predicted:.3f} | "
                f"{model.bias:+.1%} | {model.error:.1%} | {run1.bias:+.1%} | {run1.error:.1%} |"
            )


if __name__ == "__main__":
    for line in table(Path(sys.argv[1]), "--together" in sys.argv):
        print(line, flush=True)
