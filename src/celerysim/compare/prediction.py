"""One figure: what was predicted, as a distribution, beside what was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from celerysim.compare.figures import Figure
from celerysim.history import Floats

#: Share of the predicted runs that the interval holds.
LEVEL = 0.95


@dataclass(frozen=True)
class Prediction:
    """The simulated values of a figure (one a replication) and the observed one.

    Two predictions that differ only in ``observed`` come from two recordings of
    one scenario.
    """

    figure: Figure
    observed: float | None
    values: Floats

    @property
    def mean(self) -> float | None:
        """Mean of the simulated values."""
        return float(self.values.mean()) if len(self.values) else None

    @property
    def median(self) -> float | None:
        """Median of the simulated values."""
        return float(np.median(self.values)) if len(self.values) else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The middle 95 % of the simulated values, both ends values that occurred."""
        if not len(self.values):
            return None
        tail = (1 - LEVEL) / 2
        low = np.quantile(self.values, tail, method="lower")
        high = np.quantile(self.values, 1 - tail, method="higher")
        return float(low), float(high)

    @property
    def error(self) -> float | None:
        """(predicted median - observed) / observed; of nothing observed, None."""
        if self.median is None or not self.observed:
            return None
        return self.median / self.observed - 1.0

    @property
    def bias(self) -> float | None:
        """Mean of the simulated values less the observed one, in the figure's unit."""
        if self.mean is None or self.observed is None:
            return None
        return self.mean - self.observed

    @property
    def inside(self) -> bool | None:
        """Whether the observed value lies in the interval."""
        if self.interval is None or self.observed is None:
            return None
        low, high = self.interval
        return low <= self.observed <= high

    @property
    def within(self) -> bool | None:
        """Whether the error is within the figure's limit; None where none is set."""
        if self.figure.limit is None or self.error is None:
            return None
        return abs(self.error) <= self.figure.limit

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "observed": self.observed,
            "predicted": {
                "mean": self.mean,
                "median": self.median,
                "interval": list(self.interval) if self.interval else None,
                "values": self.values.tolist(),
            },
            "error": self.error,
            "bias": self.bias,
            "inside": self.inside,
            "limit": self.figure.limit,
            "within_limit": self.within,
        }
