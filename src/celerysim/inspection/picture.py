"""The picture of an inspection: every child and task, or, of many hours, an overview.

Pools without child processes have no bars either: they get the overview.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from celerysim import plots
from celerysim.errors import LogError
from celerysim.history import History
from celerysim.inspection.finding import time_unit
from celerysim.inspection.inspection import Inspection
from celerysim.inspection.sections import throughput
from celerysim.inspection.view import View

#: More tasks, or more children, than this are no longer bars that can be told apart.
MOST_TASKS, MOST_CHILDREN = 4000, 200
_BINS = 240


def picture(inspection: Inspection, title: str = "") -> Any:
    """Draw an inspection; a matplotlib figure, for :func:`celerysim.plots.save`.

    Raises:
        LogError: no time passes in the log.
    """
    view = View(inspection.history)
    if not view.duration_s > 0:
        raise LogError(
            f"{inspection.source}: no time passes in it, so there is nothing to draw. Remedy: give "
            "a log with time stamps and more than one moment."
        )
    if 0 < len(view.children) <= MOST_CHILDREN and len(view.tasks) <= MOST_TASKS:
        return plots.run_picture(_drawable(view), title)
    return overview_picture(throughput(view, _BINS), title)


def overview_picture(bins: Mapping[str, Any], title: str = "") -> Any:
    """Throughput, levels and forks, each as one value for every piece of time."""
    width = float(bins["bin_s"])
    unit_s, unit = time_unit(width * len(bins["bins"]))

    def column(name: str) -> Any:
        return np.array([entry[name] for entry in bins["bins"]], dtype=np.float64)

    edges = np.append(column("start_s"), column("start_s")[-1:] + width) / unit_s
    figure = plots._figure(12.0, 7.0)
    rates, levels, forks = figure.subplots(
        3, 1, sharex=True, gridspec_kw={"height_ratios": [2.0, 2.0, 1.0]}
    )
    rates.stairs(column("received") / width, edges, color="#7b1fa2", label="received")
    rates.stairs(column("per_s"), edges, color=plots.BUSY, label="finished")
    rates.set_ylabel("tasks/s")
    rates.set_title(title, loc="left", fontsize=10)
    levels.stairs(column("pool"), edges, color="#444444", ls="--", label="processes in the pool")
    levels.stairs(
        column("running"), edges, fill=True, color=plots.BUSY, alpha=0.5, label="tasks running"
    )
    levels.stairs(column("waiting"), edges, color=plots.STARTING, label="tasks waiting inside")
    levels.set_ylabel("number, mean")
    forks.stairs(column("forks"), edges, fill=True, color=plots.UP, label="forks")
    forks.set_ylabel("forks")
    forks.set_xlim(edges[0], edges[-1])
    forks.set_xlabel(f'{unit} after "ready", each step {width:g} s')
    for axes in (rates, levels, forks):
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7, frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    plots._plain(rates, levels, forks)
    return figure


def _drawable(view: View) -> History:
    """The history with each child number used once, and scale events inside its time only.

    Numbers begin anew after a restart; stamps lie outside where the clock jumps.
    """
    history, events = view.history, view.scale_events
    inside = (events["time"] >= history.start) & (events["time"] <= history.end)
    history = replace(history, scale_events=events[inside])
    children, tasks = view.children, view.tasks
    if len(np.unique(children["number"])) == len(children):
        return history
    children, tasks = children.copy(), tasks.copy()
    children["number"] = np.arange(1, len(children) + 1)
    tasks["child"] = np.where(view.child_rows >= 0, view.child_rows + 1, -1)
    return replace(history, children=children, tasks=tasks)
