"""The result of a sweep: one tidy table, a row a run, and what is computed from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim.errors import CelerysimError
from celerysim.metrics import interval
from celerysim.sweep import files
from celerysim.sweep.axes import Point, Value
from celerysim.sweep.chunk import Job, Values
from celerysim.sweep.problems import nearest
from celerysim.sweep.statistics import COUNTS, unit_of

Rows = NDArray[np.void]


@dataclass(frozen=True)
class Table:
    """Rows = point x replication, ordered by both; columns: where it is, and what came out.

    ``rows`` is a structured array with the fields ``point``, the ``axes``,
    ``replication`` and the ``statistics``. Replication r has the same random
    numbers at every point. What a run could not compute is NaN.
    """

    rows: Rows
    axes: tuple[str, ...]
    statistics: tuple[str, ...]
    provenance: Mapping[str, Any]  #: version, engines, base scenario and experiment

    @classmethod
    def of(
        cls,
        points: Sequence[Point],
        found: Mapping[Job, Values],
        statistics: tuple[str, ...],
        provenance: Mapping[str, Any],
    ) -> Table:
        """The table of the values found, whatever their order."""
        coordinates = {
            name: np.array([point.coordinates[name] for point in points])
            for name in points[0].coordinates
        }
        jobs = sorted(found)
        rows = np.empty(
            len(jobs),
            dtype=[
                ("point", np.int64),
                *((name, values.dtype) for name, values in coordinates.items()),
                ("replication", np.int64),
                *((name, np.int64 if name in COUNTS else np.float64) for name in statistics),
            ],
        )
        rows["point"] = [job.point for job in jobs]
        rows["replication"] = [job.replication for job in jobs]
        for name, values in coordinates.items():
            rows[name] = values[rows["point"]]
        for place, name in enumerate(statistics):
            rows[name] = [found[job][place] for job in jobs]
        return cls(rows, tuple(coordinates), statistics, provenance)

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column; empty: none."""
        return {name: unit_of(name) for name in self.rows.dtype.names or ()}

    @cached_property
    def summary(self) -> Rows:
        """One row a point: ``replications`` and, for each statistic, mean, ``.low`` and ``.high``.

        ``low`` and ``high`` bound the 95 % confidence interval of the mean
        (Student's); NaN when there are fewer than two replications.
        """
        begin = np.flatnonzero(np.diff(self.rows["point"], prepend=-1))
        dtype = [(name, self.rows.dtype[name]) for name in ("point", *self.axes)]
        dtype.append(("replications", np.dtype(np.int64)))
        for name in self.statistics:
            dtype += [(name + part, np.dtype(np.float64)) for part in ("", ".low", ".high")]
        summary = np.empty(len(begin), dtype=dtype)
        for name in ("point", *self.axes):
            summary[name] = self.rows[name][begin]
        end = np.append(begin[1:], len(self.rows))
        summary["replications"] = end - begin
        for name in self.statistics:
            for i, (first, last) in enumerate(zip(begin, end, strict=True)):
                mean, low, high = mean_and_interval(self.rows[name][first:last])
                summary[i][name], summary[i][name + ".low"], summary[i][name + ".high"] = (
                    mean, low, high,
                )  # fmt: skip
        return summary

    def difference(
        self, statistic: str, first: Mapping[str, Value], second: Mapping[str, Value]
    ) -> tuple[float, float, float]:
        """How much larger a statistic is at ``second`` than at ``first``: mean, low and high.

        The two are compared replication by replication. As both have the same
        random numbers, the interval is much narrower than either one's.
        ``first`` and ``second`` give every axis's value: ``{"worker.keepalive": 30}``.

        Raises:
            CelerysimError: there is no such point, or no such statistic.
        """
        if statistic not in self.statistics:
            raise CelerysimError(
                f"the table has no '{statistic}'. Remedy: {nearest(statistic, self.statistics)}"
            )
        one, other = self._at(first), self._at(second)
        both = np.intersect1d(one["replication"], other["replication"])
        return mean_and_interval(
            other[statistic][np.isin(other["replication"], both)]
            - one[statistic][np.isin(one["replication"], both)]
        )

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``, with the units in its ``attrs``.

        Raises:
            CelerysimError: pandas is missing.
        """
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise CelerysimError("pandas is not installed. Remedy: pip install pandas.") from error
        frame = pandas.DataFrame({name: self.rows[name] for name in self.rows.dtype.names or ()})
        frame.attrs["units"] = self.units
        return frame

    def write_csv(self, path: Path) -> None:
        """Write the rows as CSV."""
        files.write_csv(self.rows, path)

    def write_parquet(self, path: Path) -> None:
        """Write the rows as Parquet (needs ``celerysim[parquet]``)."""
        files.write_parquet(self.rows, path, self.provenance)

    def _at(self, coordinates: Mapping[str, Value]) -> Rows:
        if set(coordinates) != set(self.axes):
            raise CelerysimError(
                f"a point of this table has {', '.join(self.axes)}. Remedy: give each."
            )
        chosen = np.ones(len(self.rows), dtype=np.bool_)
        for name, value in coordinates.items():
            chosen &= self.rows[name] == value
        if not chosen.any():
            raise CelerysimError(
                f"the table has no point {dict(coordinates)}. Remedy: use values of its axes."
            )
        return self.rows[chosen]


def mean_and_interval(values: NDArray[Any]) -> tuple[float, float, float]:
    """Mean, low and high of its 95 % interval; NaN where there is nothing to compute it from."""
    known = interval(values[~np.isnan(values)].tolist())
    low, high = known["ci95"] or (np.nan, np.nan)
    return np.nan if known["mean"] is None else known["mean"], low, high
