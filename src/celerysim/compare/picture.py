"""A comparison as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from celerysim.compare.comparison import Comparison
from celerysim.history import Floats, History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBSERVED = "#222222"
COLOURS = {"replayed": "#2f6f9f", "predicted": "#f0b429"}


def compare_picture(comparison: Comparison, title: str = "") -> Figure:
    """Errors of all figures with their intervals; scale events and sojourns beside each other."""
    from matplotlib.figure import Figure  # not pyplot: no display, no global state

    figure = Figure(figsize=(12.0, 6.4), layout="constrained")
    axes = figure.subplot_mosaic(
        [["errors", "forks"], ["errors", "sojourns"]], width_ratios=[1.15, 1.0]
    )
    _errors(axes["errors"], comparison)
    _forks(axes["forks"], comparison)
    _sojourns(axes["sojourns"], comparison)
    figure.suptitle(title, fontsize=10)
    return figure


def _errors(axes: Axes, comparison: Comparison) -> None:
    """Predicted relative to observed, in percent; whiskers are the prediction interval."""
    labels: list[str] = []
    for shift, (stage, predictions) in zip((-0.14, 0.14), comparison.stages.items(), strict=False):
        rows = [p for p in predictions if p.observed and p.interval]
        labels = [p.figure.label for p in rows]
        place = np.arange(len(rows)) + shift
        observed = np.array([p.observed for p in rows])
        middle = np.array([p.median for p in rows]) / observed - 1
        ends = np.array([p.interval for p in rows]).reshape(-1, 2) / observed[:, None] - 1
        axes.errorbar(
            100 * middle,
            place,
            xerr=100 * np.abs(ends.T - middle),
            fmt="o",
            color=COLOURS[stage],
            markersize=4,
            capsize=2.5,
            linewidth=1.2,
            label=stage,
        )
        for row, p in enumerate(rows):
            if p.figure.limit is not None and shift < 0:
                axes.barh(
                    row, 200 * p.figure.limit, 0.8, -100 * p.figure.limit, color="#eeeeee", zorder=0
                )
    axes.axvline(0, color=OBSERVED, linewidth=0.8)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("predicted against observed, % (grey: the limit set beforehand)")
    axes.legend(fontsize=8, frameon=False)
    _plain(axes)


def _forks(axes: Axes, comparison: Comparison) -> None:
    """Processes started by scale-ups over time."""
    for name, history, colour, style in _all(comparison):
        events = history.scale_events
        up = events[events["change"] > 0]
        axes.step(
            np.append(up["time"], history.end),
            np.append(np.cumsum(up["change"]), up["change"].sum()),
            style,
            where="post",
            color=colour,
            linewidth=1.3,
            label=name,
        )
    axes.set_xlabel("seconds after ready")
    axes.set_ylabel("processes scaled up, in all")
    axes.legend(fontsize=8, frameon=False)
    _plain(axes)


def _sojourns(axes: Axes, comparison: Comparison) -> None:
    """Distribution of the tasks' sojourn times."""
    for name, history, colour, style in _all(comparison):
        seconds = _sorted_sojourns(history)
        if len(seconds):
            share = np.arange(1, len(seconds) + 1) / len(seconds)
            axes.step(seconds, share, style, where="post", color=colour, linewidth=1.3, label=name)
    axes.set_xlabel("sojourn (publish to end), s")
    axes.set_ylabel("share of tasks")
    _plain(axes)


def _all(comparison: Comparison) -> list[tuple[str, History, str, str]]:
    examples = [
        (stage, result, COLOURS[stage], "--") for stage, result in comparison.examples.items()
    ]
    return [("observed", comparison.observed, OBSERVED, "-"), *examples]


def _sorted_sojourns(history: History) -> Floats:
    seconds = history.tasks["finished"] - history.tasks["sent"]
    return np.sort(seconds[~np.isnan(seconds)])


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
