"""When a recorded worker's cores were full: as many tasks computed as there are cores.

A log shows when tasks ran, and what each was told to do; what a task took longer than
that, it computed more slowly. Seconds after "ready" throughout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from celerysim.history import Floats


class FullCores:
    """The times at which at least ``cores`` tasks computed.

    Args:
        started: When each task started; NaN: not known.
        runtimes: How long each ran; NaN: not known.
        steps: What each was told: ("cpu" | "io" | "block", seconds).
        cores: The worker's cores.
    """

    def __init__(
        self,
        started: Floats,
        runtimes: Floats,
        steps: Sequence[tuple[tuple[str, float], ...]],
        cores: int,
    ) -> None:
        self._cores = cores
        begins: list[float] = []
        ends: list[float] = []
        for start, runtime, told in zip(started.tolist(), runtimes.tolist(), steps, strict=True):
            cpu_s = sum(seconds for kind, seconds in told if kind == "cpu")
            if not cpu_s or np.isnan(start + runtime):
                continue
            waits_s = sum(seconds for kind, seconds in told if kind != "cpu")
            slower = max((runtime - waits_s) / cpu_s, 0.0)
            time = start
            for kind, seconds in told:
                if kind == "cpu":
                    begins.append(time)
                    time += seconds * slower
                    ends.append(time)
                else:
                    time += seconds
        self._begins, self._ends = np.sort(begins), np.sort(ends)

    def at(self, times: Floats) -> NDArray[np.bool_]:
        """Whether they were full at each of ``times``; a task that ends then is not counted."""
        computing = np.searchsorted(self._begins, times, "right") - np.searchsorted(
            self._ends, times, "right"
        )
        return np.asarray(computing >= self._cores)
