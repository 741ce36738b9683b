"""The recorder: counts and rows of what happened to workers and children.

Rows of scale events and of children are kept only when tables are wanted; what
a summary needs is counted in any case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim.batch.arrays import Floats, Ints, Lanes
from celerysim.history import CHILD_DTYPE, SCALE_DTYPE, Table, Trigger


class Recorder:
    """Writes down what happens, by run."""

    def __init__(self, lanes: int, *, tables: bool) -> None:
        self._tables = tables
        self.run = np.zeros(lanes, dtype=np.int64)  #: the run in each lane
        self.scale_ups = np.zeros(lanes, dtype=np.int64)
        self.scale_downs = np.zeros(lanes, dtype=np.int64)
        self.life_s = np.zeros(lanes)
        self.cut_s = np.zeros(lanes)
        self._scale: list[tuple[Ints, Table]] = []
        self._children: list[tuple[Ints, Table]] = []

    def reset(self, lanes: Lanes, runs: Ints) -> None:
        """These runs begin."""
        self.run[lanes] = runs
        self.scale_ups[lanes] = self.scale_downs[lanes] = 0
        self.life_s[lanes] = self.cut_s[lanes] = 0.0

    def scaled(
        self,
        lanes: Lanes,
        time: Floats,
        change: Ints,
        trigger: Trigger,
        processes: Ints,
        reserved: Ints,
        received: Ints,
    ) -> None:
        """The autoscaler logs "Scaling up" or "Scaling down"."""
        self.scale_ups[lanes] += change > 0
        self.scale_downs[lanes] += change < 0
        if self._tables:
            rows = np.empty(lanes.size, dtype=SCALE_DTYPE)
            rows["time"], rows["change"], rows["trigger"] = time, change, trigger
            rows["processes"], rows["reserved"] = processes, reserved
            rows["received"] = received
            self._scale.append((self.run.take(lanes), rows))

    def left(self, lanes: Lanes, end: Floats, cut_s: Floats, **columns: NDArray[Any]) -> None:
        """Children are reaped, or the run ends at ``end`` while they live ("exited" is NaN).

        ``cut_s``: seconds they spent in a task that did not end; the others are
        added when the run's tasks are known.
        """
        self.life_s[lanes] += np.maximum(end - columns["forked"], 0.0)
        self.cut_s[lanes] += cut_s
        if self._tables:
            rows = np.zeros(lanes.size, dtype=CHILD_DTYPE)
            rows["busy_s"] = cut_s
            for name, column in columns.items():
                rows[name] = column
            self._children.append((self.run.take(lanes), rows))

    def scale_tables(self, runs: int) -> list[Table]:
        """The scale events of each run, in the order of time."""
        return _by_run(self._scale, runs, SCALE_DTYPE, None)

    def child_tables(self, runs: int) -> list[Table]:
        """The children of each run, in the order of their numbers."""
        return _by_run(self._children, runs, CHILD_DTYPE, "number")


def _by_run(
    parts: list[tuple[Ints, Table]], runs: int, dtype: np.dtype[np.void], key: str | None
) -> list[Table]:
    if not parts:
        return [np.empty(0, dtype=dtype)] * runs
    run = np.concatenate([r for r, _ in parts])
    rows = np.concatenate([t for _, t in parts])
    order = np.lexsort((rows[key], run)) if key else np.argsort(run, kind="stable")
    bounds = np.searchsorted(run[order], np.arange(1, runs))
    return np.split(rows[order], bounds)
