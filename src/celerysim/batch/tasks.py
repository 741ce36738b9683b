"""The tasks of each lane: what they are, and what became of them.

Two-dimensional tables, one row a lane and one column a task, addressed flat; a
task is known by its number in the order of sending. Steps are coded in one
number each: seconds of computing as they are, seconds of waiting with the sign
bit set, NaN beyond a task's last step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim.batch.arrays import NEVER, Floats, Ints, Lanes
from celerysim.batch.workload import Load

#: Each table: its name, what stands where nothing is known, its type.
TABLES: tuple[tuple[str, float, type], ...] = (
    ("sent", NEVER, np.float64),
    ("seconds", np.nan, np.float64),
    ("profile", 0, np.int16),
    ("received", np.nan, np.float64),
    ("started", np.nan, np.float64),
    ("finished", np.nan, np.float64),
    ("child", -1, np.int32),
    ("lost", False, np.bool_),
    ("duration", 0.0, np.float64),  # of the whole body, where nothing slows it down
)


class Tasks:
    """Tables of all lanes; wide enough for the longest run so far and a task that never comes."""

    sent: Floats
    seconds: Floats
    profile: NDArray[np.int16]
    received: Floats
    started: Floats
    finished: Floats
    child: NDArray[np.int32]
    lost: NDArray[np.bool_]
    duration: Floats

    def __init__(self, lanes: int, width: int, steps: int, *, durations: bool) -> None:
        self.steps = steps
        self._tables = TABLES if durations else TABLES[:-1]
        self.width = 0
        self.total = np.zeros(lanes, dtype=np.int64)  #: tasks the producer will send in time
        self.last = np.zeros(lanes, dtype=np.int64)  #: ends the run when finished; -1: none does
        self._lanes = lanes
        self._widen(width)

    def _widen(self, width: int) -> None:
        before, self.width = self.width, width
        for name, nothing, dtype in self._tables:
            depth = (self.steps,) if name == "seconds" else ()
            # not filled before a run needs it: memory that is not used is not taken
            table: NDArray[Any] = np.empty((self._lanes, width, *depth), dtype=dtype)
            if before:
                table[:, :before] = getattr(self, name)
                table[:, before:] = nothing
            setattr(self, name, table)
        self.flat_sent = self.sent.reshape(-1)
        self.flat_seconds = self.seconds.reshape(-1)
        self.flat_received = self.received.reshape(-1)
        self.flat_started = self.started.reshape(-1)
        self.flat_finished = self.finished.reshape(-1)
        self.flat_child = self.child.reshape(-1)
        self.flat_lost = self.lost.reshape(-1)
        if "duration" in vars(self):
            self.flat_duration = self.duration.reshape(-1)

    def reset(self, lanes: Lanes, load: Load, speed: float) -> None:
        """New runs begin in these lanes."""
        n = load.sent.shape[1]
        if n >= self.width:
            self._widen(n + 1)
        self.total[lanes] = load.total
        self.last[lanes] = load.last
        for name, nothing, _ in self._tables:
            table = getattr(self, name)
            if name == "seconds":  # this scenario's tasks may have fewer steps
                table[lanes] = nothing
                table[lanes, :n, : load.seconds.shape[2]] = load.seconds
            elif name in ("sent", "profile"):
                table[lanes, :n] = getattr(load, name)
                table[lanes, n:] = nothing
            elif name == "duration":
                table[lanes, :n] = _duration(load.seconds, speed)
            else:
                table[lanes] = nothing

    def step(self, lanes: Lanes, task: Ints, step: Ints | int) -> Floats:
        """Coded seconds of a step; NaN: there is none."""
        number = (lanes * self.width + task) * self.steps
        if isinstance(step, int):
            return self.flat_seconds.take(number + step)
        known = np.minimum(step, self.steps - 1)
        seconds = self.flat_seconds.take(number + known)
        seconds[step >= self.steps] = np.nan
        return seconds


def _duration(seconds: Floats, speed: float) -> Floats:
    """Of tasks with these coded steps."""
    total: Floats = np.zeros(seconds.shape[:-1])
    for step in range(seconds.shape[-1]):
        total += np.fmax(seconds[..., step], 0.0) / speed
        total += np.fmax(-seconds[..., step], 0.0)
    return total
