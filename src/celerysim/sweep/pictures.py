"""Pictures of a sweep: lines with bands, a heat map, a Pareto front. Each is a new figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celerysim.sweep.experiment import Picture
from celerysim.sweep.statistics import label
from celerysim.sweep.table import Rows, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

#: Told apart by people who see colours differently, and in grey (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
#: A heat map of at most this many cells has its numbers written into them.
NUMBERED_CELLS = 150
#: Texts beside a Pareto front, at most.
NAMED_POINTS = 9


def draw(table: Table, picture: Picture, question: str = "") -> Figure:
    """The picture of a table that an experiment describes."""
    title = "\n".join(textwrap.wrap(picture.title or question, 100))
    match picture.kind:
        case "lines":
            return lines(table, picture, title)
        case "heatmap":
            return heatmap(table, picture, title)
        case "pareto":
            return pareto(table, picture, title)


def lines(table: Table, picture: Picture, title: str) -> Figure:
    """Statistics against an axis, a panel each: the mean, and its 95 % interval as a band."""
    figure = _figure(9.0, 0.9 + 2.7 * len(picture.y))
    panels = figure.subplots(len(picture.y), 1, sharex=True, squeeze=False)[:, 0]
    for axes, statistic in zip(panels, picture.y, strict=True):
        logarithmic = statistic in picture.log
        # below zero a logarithmic scale has nothing to show: the band ends below the lowest mean
        floor = _lowest_positive(table.summary[statistic]) / 2 if logarithmic else -np.inf
        for line, (colour, name, rows) in enumerate(_groups(table.summary, picture.by)):
            rows = rows[np.argsort(_positions(rows[picture.x]), kind="stable")]
            x = _positions(rows[picture.x])
            # each thinner than the one before, so that equal lines are all seen
            axes.plot(x, rows[statistic], ".-", color=colour, label=name, markersize=4,
                      linewidth=max(2.8 - 0.7 * line, 0.8) if picture.by else 1.3)  # fmt: skip
            low = np.maximum(rows[statistic + ".low"], floor)
            high = np.maximum(rows[statistic + ".high"], floor)
            axes.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.set_ylabel(label(statistic), fontsize=9)
        _scale(axes, "x", picture.x, table, picture)
        _scale(axes, "y", statistic, table, picture)
        if not logarithmic:
            axes.set_ylim(bottom=min(0.0, table.summary[statistic].min()))
        _plain(axes)
    panels[-1].set_xlabel(label(picture.x), fontsize=9)
    panels[0].set_title(title, loc="left", fontsize=10)
    if picture.by:
        panels[0].legend(title=picture.by, fontsize=8, title_fontsize=8, frameon=False)
    return figure


def heatmap(table: Table, picture: Picture, title: str) -> Figure:
    """One statistic's mean as colour over two axes."""
    from matplotlib.colors import LogNorm

    assert picture.value is not None
    summary = table.summary
    x, across = np.unique(summary[picture.x], return_inverse=True)
    y, up = np.unique(summary[picture.y[0]], return_inverse=True)
    cells = np.full((len(y), len(x)), np.nan)
    cells[up, across] = summary[picture.value]
    figure = _figure(9.0, 5.6)
    axes = figure.subplots()
    mesh = axes.pcolormesh(
        _edges(x, picture.x in picture.log),
        _edges(y, picture.y[0] in picture.log),
        np.ma.masked_invalid(cells),
        cmap="viridis",
        norm=LogNorm() if picture.value in picture.log else None,
    )
    _scale(axes, "x", picture.x, table, picture)
    _scale(axes, "y", picture.y[0], table, picture)
    if cells.size <= NUMBERED_CELLS:
        shades: Floats = np.ma.filled(np.ma.asarray(mesh.norm(cells)), np.nan)
        for i, j in np.ndindex(cells.shape):
            axes.text(
                float(_positions(x)[j]), float(_positions(y)[i]), f"{cells[i, j]:.3g}",
                ha="center", va="center", fontsize=7,
                color="black" if shades[i, j] > 0.55 else "white",
            )  # fmt: skip
    axes.set_xlabel(label(picture.x), fontsize=9)
    axes.set_ylabel(label(picture.y[0]), fontsize=9)
    axes.set_title(title, loc="left", fontsize=10)
    axes.tick_params(labelsize=8)
    bar = figure.colorbar(mesh, ax=axes, label=label(picture.value))
    bar.ax.tick_params(labelsize=8)
    return figure


def pareto(table: Table, picture: Picture, title: str) -> Figure:
    """Two statistics against each other, less being better; the points that none beats joined."""
    figure = _figure(8.5, 5.4)
    axes = figure.subplots()
    statistic = picture.y[0]
    for colour, name, rows in _groups(table.summary, picture.by):
        x, y = rows[picture.x], rows[statistic]
        axes.errorbar(
            x, y, xerr=_reach(rows, picture.x), yerr=_reach(rows, statistic),
            fmt="none", ecolor=colour, alpha=0.3, elinewidth=0.8,
        )  # fmt: skip
        axes.plot(x, y, ".", color=colour, alpha=0.35, markersize=5)
        best = front(x, y)
        axes.plot(x[best], y[best], ".-", color=colour, label=name, markersize=6, linewidth=1.2)
        if picture.value:
            named = best[:: -(-len(best) // NAMED_POINTS)]
            for i in named:
                text = rows[picture.value][i]
                text = f"{text:.4g}" if isinstance(text, np.floating) else str(text)
                axes.annotate(text, (x[i], y[i]), (4, 4), textcoords="offset points",
                              fontsize=7, color=colour)  # fmt: skip
    _scale(axes, "x", picture.x, table, picture)
    _scale(axes, "y", statistic, table, picture)
    axes.set_xlabel(label(picture.x), fontsize=9)
    axes.set_ylabel(label(statistic), fontsize=9)
    axes.set_title(title, loc="left", fontsize=10)
    note = f"numbers: {label(picture.value)}" if picture.value else None
    if picture.by or note:
        handles, texts = axes.get_legend_handles_labels()
        axes.legend(handles if picture.by else [], texts if picture.by else [], title=note,
                    fontsize=8, title_fontsize=8, frameon=False)  # fmt: skip
    _plain(axes)
    return figure


def front(x: Floats, y: Floats) -> NDArray[np.intp]:
    """The places of the points that no other beats in both (less is better), by ascending x.

    Of equal points one is kept; those with a NaN are no candidates.
    """
    best: list[int] = []
    lowest = np.inf
    for i in np.lexsort((y, x)):
        if y[i] < lowest and not np.isnan(x[i]):
            best.append(int(i))
            lowest = float(y[i])
    return np.array(best, dtype=np.intp)


def _groups(summary: Rows, by: str | None) -> Iterator[tuple[str, str | None, Rows]]:
    """A colour, a name and the rows of each line, in the order of the points."""
    if by is None:
        yield COLOURS[0], None, summary
        return
    for i, value in enumerate(dict.fromkeys(summary[by].tolist())):
        yield COLOURS[i % len(COLOURS)], str(value), summary[summary[by] == value]


def _reach(rows: Rows, statistic: str) -> Floats:
    """How far the interval of a mean reaches down and up."""
    mean, low, high = (rows[statistic + part] for part in ("", ".low", ".high"))
    return np.array([mean - low, high - mean])


def _positions(values: NDArray[Any]) -> Floats:
    """Numbers as they are; labels one after the other."""
    if values.dtype.kind in "US":
        order = {value: place for place, value in enumerate(dict.fromkeys(values.tolist()))}
        return np.array([order[value] for value in values.tolist()], dtype=np.float64)
    return values.astype(np.float64)


def _edges(values: NDArray[Any], logarithmic: bool) -> Floats:
    """The borders of cells around ascending values."""
    centres = _positions(values)
    centres = np.log(centres) if logarithmic else centres
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    inner = (centres[1:] + centres[:-1]) / 2
    edges = np.concatenate([[2 * centres[0] - inner[0]], inner, [2 * centres[-1] - inner[-1]]])
    return np.exp(edges) if logarithmic else edges


def _scale(axes: Axes, which: str, name: str, table: Table, picture: Picture) -> None:
    """A logarithmic scale where wanted, with plain numbers; labels where there are no numbers."""
    from matplotlib.ticker import StrMethodFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    if name in picture.log:
        axes.set(**{f"{which}scale": "log"})
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    if table.rows[name].dtype.kind == "U":
        texts = list(dict.fromkeys(table.rows[name].tolist()))
        axis.set_ticks(range(len(texts)), texts)


def _lowest_positive(values: Floats) -> float:
    return float(values[values > 0].min(initial=np.inf))


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure  # not pyplot: no display, no global state

    return Figure(figsize=(width, height), layout="constrained")


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
