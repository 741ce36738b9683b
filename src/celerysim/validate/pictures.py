"""The report's picture of everything at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from celerysim.compare.figures import LIMITS
from celerysim.compare.picture import COLOURS
from celerysim.compare.stages import STAGES
from celerysim.validate.validation import Validation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def overview_picture(validation: Validation) -> Figure:
    """Error of each recorded run, a panel a figure; the shaded band is the limit."""
    from matplotlib.figure import Figure  # not pyplot: no display, no global state

    names = list(validation.comparisons)
    figure = Figure(figsize=(13.0, 1.4 + 0.3 * len(names)), layout="constrained")
    paths = ("forks", *LIMITS)
    for axes, path in zip(figure.subplots(1, len(paths), sharey=True), paths, strict=True):
        for stage, shift in zip(STAGES, (-0.13, 0.13), strict=True):
            points = [
                (100 * p.error, row + shift)
                for row, name in enumerate(names)
                for comparison in validation.comparisons[name]
                if (p := comparison.prediction(stage, path)).error is not None
            ]
            errors, rows = np.array(points).reshape(-1, 2).T
            axes.plot(errors, rows, "o", color=COLOURS[stage], markersize=3.5, label=stage)
        if path in LIMITS:
            axes.axvspan(-100 * LIMITS[path], 100 * LIMITS[path], color="#eeeeee", zorder=0)
        axes.axvline(0, color="#222222", linewidth=0.8)
        axes.set_xlabel(f"{_label(validation, path)}: error, %", fontsize=8)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        axes.grid(axis="y", color="#eeeeee", linewidth=0.6)
    figure.axes[0].invert_yaxis()
    figure.axes[0].legend(fontsize=7, frameon=False)
    return figure


def _label(validation: Validation, path: str) -> str:
    first = next(iter(validation.comparisons.values()))[0]
    return first.prediction("predicted", path).figure.label
