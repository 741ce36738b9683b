"""The tables as text: figures beside each other, errors, and what misses its limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from celerysim.report import columns
from celerysim.studies.cells import LOADS, medians, published
from celerysim.studies.limits import misses
from celerysim.studies.tables import FIGURES, CellResult, at, biases

_HEADS = ("forks", "tasks", "tasks/s", "mean", "median", "p90", "p95")
_FORMS = ("{:.1f}", "{:.1f}", "{:.2f}", "{:.2f}", "{:.2f}", "{:.2f}", "{:.2f}")


def tables_report(results: Sequence[CellResult]) -> str:
    """For each load the cells: simulated, published, medians over runs, and both errors."""
    count = len(results[0].simulated["tasks"]["values"])
    lines = [
        f"The published cells: {count} simulated runs of 300 s each; seconds from publish to done.",
        "simulated: means over runs; published: the same, quantiles over all tasks of all runs.",
        "error: median over simulated runs against the median over real runs, in percent.",
    ]
    for load in LOADS:
        chosen = [result for result in results if result.cell.load == load]
        if chosen:
            lines += ["", load, *columns(_rows(chosen))]
    bias = biases(results)
    lines += ["", "mean error of all cells (bias), in percent", *columns([
        ["", *_HEADS], ["", *(_percent(bias[".".join(figure)]) for figure in FIGURES)],
    ])]  # fmt: skip
    return "\n".join([*lines, "", *_verdict(results)])


def _rows(results: Sequence[CellResult]) -> list[list[str]]:
    rows = [["", *_HEADS]]
    for result in results:
        cell = result.cell
        mark = " (calibrated)" if cell.is_calibrated else ""
        rows += [
            [cell.label + mark, *("" for _ in _HEADS)],
            ["  simulated", *_figures(result, lambda found: found["mean"], result.simulated)],
            ["  published", *_figures(result, lambda found: found, published(cell))],
            ["  simulated, median", *_figures(result, _median, result.simulated)],
            ["  real, median", *_figures(result, lambda found: found, medians(cell))],
            ["  error", *(_percent(result.error(figure)) for figure in FIGURES)],
        ]
    return rows


def _figures(result: CellResult, of: Callable[[Any], float], table: dict[str, Any]) -> list[str]:
    """The figures as texts; a green pool forks nothing."""
    return [
        "-" if result.cell.is_green and figure == ("forks",) else form.format(of(at(table, figure)))
        for figure, form in zip(FIGURES, _FORMS, strict=True)
    ]


def _median(found: dict[str, Any]) -> float:
    return float(median(found["values"]))


def _percent(error: float | None) -> str:
    return "-" if error is None else f"{100 * error:+.1f}"


def _verdict(results: Sequence[CellResult]) -> list[str]:
    outside = [(result.cell.name, found) for result in results if (found := misses(result))]
    if not outside:
        return [f"all {len(results)} cells are within their limits (docs/tables.md)"]
    return [
        f"outside their limits (docs/tables.md says why): {len(outside)} of {len(results)} cells",
        *columns([[name, ", ".join(found)] for name, found in outside]),
    ]
