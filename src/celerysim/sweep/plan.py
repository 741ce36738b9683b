"""A sweep made ready: every point checked, its engine chosen, and what is left to do known."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from celerysim._version import __version__
from celerysim.engines import Engine, Wanted, choose, for_runs
from celerysim.errors import Problem, ScenarioError
from celerysim.scenario import Scenario, make_scenario
from celerysim.sweep.axes import Point, points
from celerysim.sweep.chunk import Job, Values, work
from celerysim.sweep.experiment import Experiment, Until
from celerysim.sweep.problems import ExperimentError, problem
from celerysim.sweep.table import mean_and_interval

#: Problems shown of many points; they tend to be alike.
MOST_PROBLEMS = 10


@dataclass(frozen=True)
class Plan:
    """All points of an experiment; ``scenarios`` and ``engines`` are by point."""

    experiment: Experiment
    base: Scenario
    points: tuple[Point, ...]
    scenarios: tuple[Scenario, ...]
    engines: tuple[Engine, ...]

    @property
    def statistics(self) -> tuple[str, ...]:
        """The columns of results."""
        return self.experiment.columns()

    @property
    def size(self) -> float:
        """Work before the first look at the results, in chunks as small as chunks get."""
        return self.experiment.at_once * work(self.scenarios, self.engines)

    def missing(self, found: Mapping[Job, Values]) -> list[Job]:
        """The runs to do next, given those done; none when the sweep is complete."""
        return [job for job in self._wanted(found) if job not in found]

    def results(self, found: Mapping[Job, Values]) -> dict[Job, Values]:
        """The runs that make up the result; a journal may hold more."""
        return {job: found[job] for job in self._wanted(found)}

    def _wanted(self, found: Mapping[Job, Values]) -> list[Job]:
        return [
            Job(point, replication)
            for point in range(len(self.points))
            for replication in range(self._count(point, found))
        ]

    def _count(self, point: int, found: Mapping[Job, Values]) -> int:
        """How many replications of a point are wanted, as far as the results tell.

        With ``until`` only the first so many are looked at, never all that
        happen to be there. So the number does not depend on which process was
        quick, nor on a crash.
        """
        until, count = self.experiment.until, self.experiment.at_once
        while until and count < until.at_most:
            jobs = [Job(point, replication) for replication in range(count)]
            if any(job not in found for job in jobs):
                break
            column = self.statistics.index(until.statistic)
            more = _more(until, np.array([found[job][column] for job in jobs]))
            if not more:
                break
            count = min(more, until.at_most)
        return count

    def fingerprint(self) -> str:
        """Stands for everything the rows depend on; how many there are aside."""
        everything = {
            "version": __version__,
            "statistics": self.statistics,
            "points": [
                [engine, dict(point.coordinates), scenario.model_dump(mode="json")]
                for engine, point, scenario in zip(
                    self.engines, self.points, self.scenarios, strict=True
                )
            ],
        }
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()

    def provenance(self) -> dict[str, Any]:
        """What the results follow from, as plain values."""
        return {
            "celerysim": __version__,
            "engines": sorted(set(self.engines)),
            "scenario": self.base.model_dump(mode="json", exclude_none=True),
            "experiment": self.experiment.model_dump(
                mode="json", exclude_unset=True, by_alias=True, exclude={"scenario", "set", "seed"}
            ),
        }


def make_plan(base: Scenario, experiment: Experiment, engine: Wanted = "auto") -> Plan:
    """Check every point of an experiment on ``base``.

    Raises:
        ExperimentError: an axis has a column's name.
        ScenarioError: points are no scenarios; names the first of each kind of problem.
        CelerysimError: the engine ``batch`` is wanted and refuses a point.
    """
    taken = {"point", "replication", "replications", *experiment.columns()}
    if bad := [name for axis in experiment.axes for name in axis.names() if name in taken]:
        remedy = "give the axis another name"
        raise ExperimentError(
            "experiment", [problem("axes", name, "is a column's name", remedy) for name in bad]
        )
    places = points(experiment.axes)
    data = base.model_dump(mode="json", exclude_none=True)
    scenarios: list[Scenario] = []
    found: dict[tuple[str, str], Problem] = {}
    for point in places:
        try:
            scenarios.append(make_scenario(data, point.overrides))
        except ScenarioError as error:
            for p in error.problems:
                found.setdefault((p.path, p.rule), p)
    if found:
        raise ScenarioError("points of the sweep", list(found.values())[:MOST_PROBLEMS])
    wanted = for_runs(engine, len(places) * experiment.at_once)
    engines = [
        choose(scenario, wanted, f"point {point.number} ({point})")
        for point, scenario in zip(places, scenarios, strict=True)
    ]
    return Plan(experiment, base, tuple(places), tuple(scenarios), tuple(engines))


def _more(until: Until, values: np.ndarray[Any, np.dtype[np.float64]]) -> int:
    """How many replications to look at next; 0 when these are enough."""
    mean, _, high = mean_and_interval(values)
    half = high - mean
    wanted = until.half_width or (until.relative or 0.0) * abs(mean)
    if half <= wanted:
        return 0
    # what the half-width suggests, but at least a quarter more and at most as many again
    need = len(values) * (half / wanted) ** 2 if wanted and not math.isnan(half) else math.inf
    return math.ceil(max(1.25 * len(values), min(need, 2 * len(values))))
