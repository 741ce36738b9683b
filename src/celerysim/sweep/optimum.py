"""The answer of a search: the best settings, what they cost elsewhere, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim.sweep.axes import Value
from celerysim.sweep.experiment import Picture
from celerysim.sweep.goals import Limit
from celerysim.sweep.pictures import front
from celerysim.sweep.table import Table, mean_and_interval

#: Of the statement that a limit is kept, or broken.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % confidence interval, from fresh replications."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Estimate:
        """Of a statistic's values."""
        return cls(*mean_and_interval(values))

    def as_json(self) -> dict[str, Any]:
        """As ``run --json`` has it."""
        return {
            "mean": None if math.isnan(self.mean) else self.mean,
            "ci95": None if math.isnan(self.low) else [self.low, self.high],
        }


@dataclass(frozen=True)
class Verdict:
    """A limit at the best settings, on fresh random numbers."""

    limit: Limit
    estimate: Estimate
    kept: bool | None  #: with :data:`CONFIDENCE`, one-sided; None: too close to tell

    @classmethod
    def of(cls, limit: Limit, values: NDArray[np.float64]) -> Verdict:
        """Of the limited statistic's values, one a replication."""
        from scipy.special import stdtrit

        excess = limit.excess(values)
        reach = 0.0
        if len(excess) > 1:
            quantile = float(stdtrit(len(excess) - 1, CONFIDENCE))
            reach = quantile * float(excess.std(ddof=1)) / math.sqrt(len(excess))
        mean = float(excess.mean())
        kept = True if mean + reach < 0 else False if mean - reach > 0 else None
        return cls(limit, Estimate.of(values), kept)


@dataclass(frozen=True)
class Optimum:
    """The best settings found."""

    minimise: str
    settings: Mapping[str, Value]
    objective: Estimate
    verdicts: tuple[Verdict, ...]
    fresh: int  #: replications that ``objective`` and ``verdicts`` come from
    tried: Table  #: all settings tried; the replications that the search looked at

    @property
    def sure(self) -> bool:
        """Whether all limits are kept with :data:`CONFIDENCE`."""
        return all(verdict.kept for verdict in self.verdicts)

    @property
    def trade_off(self) -> list[dict[str, Value]]:
        """The settings tried that no other beats in both the objective and the first limit's
        statistic, by the objective; with the values of both. None without a limit."""
        if not self.verdicts:
            return []
        limit, summary = self.verdicts[0].limit, self.tried.summary
        sign = 1.0 if limit.below else -1.0
        best = front(summary[self.minimise], sign * summary[limit.statistic])
        names = (*self.tried.axes, self.minimise, limit.statistic)
        return [{name: summary[name][i].item() for name in names} for i in best]

    @property
    def as_good(self) -> dict[str, list[Value]]:
        """Of each field, the values in settings tried that are no worse as far as the runs tell:
        they keep the limits, and the interval of the difference to the best one, replication by
        replication, reaches zero."""
        summary = self.tried.summary
        best = {name: self.settings[name] for name in self.tried.axes}
        alike = []
        for row in summary:
            here = {name: row[name].item() for name in self.tried.axes}
            keeps = all(v.limit.excess(float(row[v.limit.statistic])) <= 0 for v in self.verdicts)
            mean, low, _ = self.tried.difference(self.minimise, best, here)
            if here == best or (keeps and (mean <= 0 or low <= 0)):
                alike.append(here)
        return {
            name: sorted({place[name] for place in alike}, key=lambda v: (isinstance(v, str), v))
            for name in self.tried.axes
        }

    def picture(self) -> Picture:
        """What was tried, as a picture of ``tried``: the trade-off; without a limit the objective
        over the first field."""
        field = self.tried.axes[0]
        if not self.verdicts:
            title = f"{self.minimise} of the settings tried"
            return Picture(kind="lines", x=field, y=(self.minimise,), title=title)
        statistic = self.verdicts[0].limit.statistic
        title = f"{self.minimise} against {statistic}: settings tried, and those none beats"
        return Picture(kind="pareto", x=self.minimise, y=(statistic,), value=field, title=title)

    def as_json(self) -> dict[str, Any]:
        """Everything but the rows, as plain values."""
        return {
            "minimise": self.minimise,
            "settings": dict(self.settings),
            "objective": self.objective.as_json(),
            "limits": [
                {"limit": str(verdict.limit), "kept": verdict.kept, **verdict.estimate.as_json()}
                for verdict in self.verdicts
            ],
            "sure": self.sure,
            "confidence": CONFIDENCE,
            "fresh_replications": self.fresh,
            "as_good": self.as_good,
            "settings_tried": len(self.tried.summary),
            "trade_off": self.trade_off,
            "provenance": dict(self.tried.provenance),
        }
