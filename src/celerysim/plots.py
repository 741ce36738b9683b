"""Pictures. Each function draws one onto a new figure and returns it; ``save`` writes a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from celerysim.errors import CelerysimError
from celerysim.history import Floats, History, Level, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BUSY, IDLE, STARTING, LEAVING, LOST = "#2f6f9f", "#d5dde3", "#f0b429", "#8d6e63", "#c62828"
UP, DOWN = "#2e7d32", "#c62828"


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's ending (png, svg, pdf).

    Raises:
        CelerysimError: the ending is none that matplotlib writes, or the file
            cannot be written.
    """
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        raise CelerysimError(
            f"{path}: pictures are written as {', '.join(sorted(known))}, by the file's ending. "
            f"Remedy: name it {path.stem}.png."
        )
    try:
        figure.savefig(path, dpi=140)
    except OSError as error:
        raise CelerysimError(
            f"{path}: cannot be written ({error.strerror}). Remedy: name a file in a folder that "
            "exists and that you may write to."
        ) from error


def run_picture(history: History, title: str = "") -> Figure:
    """Children as bars over time (busy, idle, starting, leaving), scale events, and the queue."""
    children = history.children
    born, died = history.lives()
    lanes = _lanes(born, died)
    rows = int(lanes.max(initial=0)) + 1
    figure = _figure(12.0, min(3.2 + 0.28 * rows + 2.0, 14.0))
    top, bottom = figure.subplots(
        2, 1, sharex=True, gridspec_kw={"height_ratios": [max(rows * 0.28, 1.6) + 0.6, 2.0]}
    )
    up = children["up"]
    leaving = children["terminated"]
    lane_of = {int(n): int(lane) for n, lane in zip(children["number"], lanes, strict=True)}

    _bars(top, lanes, born, died, IDLE, "idle")
    known = up > born
    _bars(top, lanes[known], born[known], up[known], STARTING, "starting", edge=1.2)
    gone = ~np.isnan(leaving)
    _bars(top, lanes[gone], leaving[gone], died[gone], LEAVING, "leaving", edge=1.2)
    tasks = history.tasks
    ran = ~np.isnan(tasks["started"]) & np.isin(tasks["child"], list(lane_of))
    begin = tasks["started"][ran]
    end = np.nan_to_num(tasks["finished"][ran], nan=history.end)
    lane = np.array([lane_of[int(n)] for n in tasks["child"][ran]], dtype=np.intp)
    lost = tasks["outcome"][ran] == Outcome.LOST
    _bars(top, lane[~lost], begin[~lost], end[~lost], BUSY, "running a task", 0.55)
    _bars(top, lane[lost], begin[lost], end[lost], LOST, "task lost", 0.55, 1.2)
    if rows <= 12 and len(children) <= 80:
        span = history.end - history.start
        for number, x, y, width in zip(children["number"], born, lanes, died - born, strict=True):
            if width > span / 120:
                top.text(x, y + 0.42, f" {number}", fontsize=6, color="#555555", va="top")
    _scale_marks(top, history, rows)
    top.set_ylim(rows - 0.4, -1.5)
    top.set_yticks(range(rows), [str(i + 1) for i in range(rows)] if rows <= 24 else [""] * rows)
    top.set_ylabel("child process (place in the pool)")
    top.set_title(title, loc="left", fontsize=10)
    top.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=7, fontsize=7, frameon=False)

    for level, colour, label in (
        (Level.READY, "#7b1fa2", "ready in the queue"),
        (Level.RESERVED, BUSY, "reserved (received, not finished)"),
        (Level.PROCESSES, "#444444", "processes (the pool's target)"),
    ):
        times, values = history.level(level)
        if len(times):
            x = np.append(times, history.end)
            y = np.append(values, values[-1])
            style = "--" if level is Level.PROCESSES else "-"
            bottom.step(x, y, where="post", color=colour, label=label, linewidth=0.9, ls=style)
    bottom.set_xlabel('seconds after "ready"')
    bottom.set_ylabel("number")
    bottom.set_ylim(bottom=0)
    bottom.set_xlim(history.start, history.end)
    if bottom.get_legend_handles_labels()[0]:
        bottom.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=7, frameon=False
        )
    bottom.yaxis.get_major_locator().set_params(integer=True)
    _plain(top, bottom)
    return figure


def ladder_picture(
    publish_s: Sequence[float], forks: Sequence[int], chosen_s: float, title: str = ""
) -> Figure:
    """Forks against the time one publish takes."""
    figure = _figure(9.0, 4.2)
    axes = figure.subplots()
    axes.plot(publish_s, forks, drawstyle="steps-mid", color=BUSY, linewidth=1.2)
    axes.plot(publish_s, forks, ".", color=BUSY, markersize=3)
    axes.axvline(chosen_s, color=UP, linewidth=1.0, label=f"publish_s = {chosen_s:g}")
    axes.set_xlabel("seconds one publish takes")
    axes.set_ylabel("processes forked")
    axes.set_ylim(bottom=0)
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(fontsize=8, frameon=False)
    _plain(axes)
    return figure


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure  # not pyplot: no display, no global state

    return Figure(figsize=(width, height), layout="constrained")


def _bars(
    axes: Axes,
    lanes: NDArray[np.intp],
    begin: Floats,
    end: Floats,
    colour: str,
    label: str,
    height: float = 0.8,
    edge: float = 0.0,
) -> None:
    """Bars from ``begin`` to ``end``; an ``edge`` (points) keeps very short ones visible."""
    if len(lanes):
        axes.barh(
            lanes, np.maximum(end - begin, 0.0), left=begin, height=height, color=colour,
            edgecolor=colour, label=label, linewidth=edge,
        )  # fmt: skip


def _scale_marks(axes: Axes, history: History, rows: int) -> None:
    """Scale events as triangles above the bars; the number that belongs to each beside it."""
    events = history.scale_events
    for sign, marker, colour, y, label in (
        (1, "^", UP, -1.15, "scaling up"),
        (-1, "v", DOWN, -0.75, "scaling down"),
    ):
        chosen = events[np.sign(events["change"]) == sign]
        if len(chosen):
            axes.plot(
                chosen["time"], np.full(len(chosen), y), marker, color=colour, markersize=4,
                label=label, clip_on=False,
            )  # fmt: skip
            if len(chosen) <= 60 and sign < 0:
                axes.vlines(chosen["time"], y, rows - 0.4, color=colour, linewidth=0.5, alpha=0.5)
            for time, change in _gathered(history, sign) if len(chosen) <= 120 else ():
                axes.annotate(f"{change:+d}", (time, y), (4, 0), textcoords="offset points",
                              fontsize=6, va="center", color=colour)  # fmt: skip


def _gathered(history: History, sign: int) -> list[tuple[float, int]]:
    """Scale events of one direction, those too close to tell apart added up: (time, change)."""
    gap = (history.end - history.start) / 60
    found: list[tuple[float, int]] = []
    for time, change in history.scale_events[["time", "change"]].tolist():
        if np.sign(change) == sign:
            if found and time - found[-1][0] < gap:
                found[-1] = (found[-1][0], found[-1][1] + change)
            else:
                found.append((time, change))
    return found


def _lanes(born: Floats, died: Floats) -> NDArray[np.intp]:
    """For each child, the lowest place free when it was forked: bars never overlap."""
    free_from: list[float] = []
    lanes = np.zeros(len(born), dtype=np.intp)
    for i in np.argsort(born, kind="stable"):
        lane = next((k for k, t in enumerate(free_from) if t <= born[i]), len(free_from))
        if lane == len(free_from):
            free_from.append(0.0)
        free_from[lane] = died[i]
        lanes[i] = lane
    return lanes


def _plain(*all_axes: Axes) -> None:
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
