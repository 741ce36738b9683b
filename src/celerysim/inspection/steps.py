"""Numbers that change over time in steps, and sums over time of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celerysim.history import Floats


@dataclass(frozen=True)
class Steps:
    """``values[i]`` from ``times[i]`` on (seconds, ascending); 0 before the first."""

    times: Floats
    values: Floats

    @classmethod
    def of_spans(cls, begin: Floats, end: Floats) -> Steps:
        """How many of the spans from ``begin`` to ``end`` are open at each time."""
        times = np.concatenate([end, begin])  # at one instant, ends come first
        changes = np.repeat([-1.0, 1.0], [len(end), len(begin)])
        order = np.argsort(times, kind="stable")
        return cls(times[order], np.cumsum(changes[order]))

    def at(self, when: Floats) -> Floats:
        """The values at the times ``when``."""
        values = np.concatenate([[0.0], self.values])
        chosen: Floats = values[np.searchsorted(self.times, when, side="right")]
        return chosen


@dataclass(frozen=True)
class Clock:
    """The time from ``edges[0]`` to ``edges[-1]``, in pieces in which nothing changes."""

    edges: Floats

    @classmethod
    def over(cls, start: float, end: float, *steps: Steps) -> Clock:
        """The pieces between ``start`` and ``end`` (seconds) in which none of ``steps`` changes."""
        times = np.concatenate([[start, max(start, end)], *(s.times for s in steps)])
        return cls(np.unique(np.clip(times, start, max(start, end))))

    @property
    def lengths(self) -> Floats:
        """Seconds of each piece."""
        return np.diff(self.edges)

    @property
    def total_s(self) -> float:
        """Seconds in all."""
        return float(self.edges[-1] - self.edges[0])

    def values(self, steps: Steps) -> Floats:
        """The value in each piece."""
        return steps.at(self.edges[:-1])

    def integral(self, values: Floats | NDArray[np.bool_]) -> float:
        """The sum over time of ``values``, one for each piece."""
        return float((self.lengths * values).sum())

    def until(self, values: Floats | NDArray[np.bool_], when: Floats) -> Floats:
        """The sums over time of ``values`` from the start to each of the times ``when``."""
        sums = np.concatenate([[0.0], np.cumsum(self.lengths * values)])
        result: Floats = np.interp(when, self.edges, sums)
        return result

    def quantile(self, values: Floats, share: float) -> float:
        """The value that is not exceeded for ``share`` of the time."""
        if not len(values):
            return 0.0
        order = np.argsort(values, kind="stable")
        passed = np.cumsum(self.lengths[order])
        place = int(np.searchsorted(passed, share * passed[-1]))
        return float(values[order][min(place, len(values) - 1)])
