"""The comparison of pools as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from celerysim.studies.pools import PoolResult
from celerysim.studies.shares import RULE_OF_THUMB, ShareSweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "prefork": "#2f6f9f",
    "gevent": "#2e7d32",
    "eventlet": "#8bc34a",
    "threads": "#f0b429",
    "solo": "#8d6e63",
}
_STYLES = ("-", "--", ":", "-.")


def pools_picture(results: Sequence[PoolResult], title: str = "") -> Figure:
    """Throughput, sojourn (mean, p95), cores used and memory; a bar for each pool and size."""
    figure = _figure(12.0, 1.2 + 0.34 * len(results))
    panels = figure.subplots(1, 4, sharey=True)
    labels = [result.label for result in results]
    colours = [COLOURS[result.pool] for result in results]
    for axes, path, name in zip(
        panels,
        ("throughput_per_s", "sojourn_s.mean", "cores_used", "memory_mib"),
        ("tasks a second", "sojourn: mean (bar), p95 (dot), s", "cores used", "memory, MiB"),
        strict=True,
    ):
        axes.barh(labels, [result.figure(path) or 0.0 for result in results], color=colours)
        axes.set_xlabel(name, fontsize=8)
        _plain(axes)
    p95 = [result.figure("sojourn_s.p95") or 0.0 for result in results]
    panels[1].plot(p95, labels, "o", color="#444444", markersize=4)
    panels[0].invert_yaxis()
    figure.suptitle(title, fontsize=10)
    return figure


def share_picture(sweep: ShareSweep, title: str = "") -> Figure:
    """The compared figure against the share of CPU; a line for each pool and size."""
    figure = _figure(9.0, 5.0)
    axes = figure.subplots()
    axes.axvspan(*RULE_OF_THUMB, color="#eeeeee", label="rule of thumb: prefork from here")
    sizes = list(dict.fromkeys(result.size for result in sweep.results[0]))
    for place, first in enumerate(sweep.results[0]):
        values = [row[place].figure(sweep.compare) for row in sweep.results]
        axes.plot(
            sweep.shares,
            [float("nan") if value is None else value for value in values],
            _STYLES[sizes.index(first.size) % len(_STYLES)],
            color=COLOURS[first.pool],
            label=first.label,
            linewidth=1.2,
        )
    axes.set_xlabel("share of CPU in a task's duration")
    axes.set_ylabel(sweep.compare)
    axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(fontsize=7, frameon=False, ncols=2)
    _plain(axes)
    return figure


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure  # not pyplot: no display, no global state

    return Figure(figsize=(width, height), layout="constrained")


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
