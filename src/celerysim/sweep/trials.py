"""Settings tried by a search, each with the same replications, and what they gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim.engines import Engine, Wanted, choose
from celerysim.errors import ScenarioError
from celerysim.scenario import Scenario, make_scenario
from celerysim.sweep.axes import Point, Step
from celerysim.sweep.chunk import Job, Values, cut
from celerysim.sweep.crew import Crew
from celerysim.sweep.table import Table

Floats = NDArray[np.float64]
#: A setting's overrides, which tell it apart.
Setting = tuple[str, ...]


class Trials:
    """Runs settings of ``base`` that it has not run before, and remembers all.

    A setting that is no scenario is remembered as such and never run. ``tried``
    is called with the number of settings run so far.
    """

    def __init__(
        self,
        base: Scenario,
        statistics: tuple[str, ...],
        crew: Crew,
        engine: Wanted,
        tried: Callable[[int], None],
    ) -> None:
        self.statistics = statistics
        self.points: dict[Setting, Point] = {}  #: by overrides, in the order first asked for
        self._base = base.model_dump(mode="json", exclude_none=True)
        self._crew = crew
        self._engine = engine
        self._tried = tried
        self._scenarios: list[Scenario] = []
        self._engines: list[Engine] = []
        self._refused: dict[Setting, ScenarioError] = {}
        self._found: dict[Job, Values] = {}

    def run(self, steps: Iterable[Step], replications: Iterable[int]) -> None:
        """Run these replications of these settings, less what was run before.

        Raises:
            ScenarioError: no setting asked for so far is a scenario.
        """
        wanted = dict.fromkeys(
            Job(point.number, replication)
            for point in map(self._point, steps)
            if point is not None
            for replication in replications
        )
        if not self.points:
            raise next(iter(self._refused.values()))
        missing = [job for job in wanted if job not in self._found]
        chunks = cut(missing, self._scenarios, self._engines, self.statistics, self._crew.count)
        for outcome in self._crew.run(chunks):
            self._found.update(outcome.rows)
            self._tried(len({job.point for job in self._found}))

    def values(self, setting: Setting, statistic: str, replications: Iterable[int]) -> Floats:
        """A statistic of a setting that was run, an entry a replication; NaN: not known."""
        point, column = self.points[setting].number, self.statistics.index(statistic)
        return np.array([self._found[Job(point, r)][column] for r in replications])

    def mean(self, setting: Setting, statistic: str, replications: Iterable[int]) -> float:
        """A statistic's mean; NaN when any replication could not compute it."""
        return float(self.values(setting, statistic, replications).mean())

    def table(self, replications: Sequence[int], provenance: Mapping[str, Any]) -> Table:
        """These replications of all settings."""
        found = {job: v for job, v in self._found.items() if job.replication in replications}
        return Table.of(list(self.points.values()), found, self.statistics, provenance)

    def _point(self, step: Step) -> Point | None:
        """The setting's place in the table; None if it is no scenario."""
        setting = step.overrides
        if setting not in self.points and setting not in self._refused:
            try:
                scenario = make_scenario(self._base, setting, source="a setting of the search")
            except ScenarioError as error:
                self._refused[setting] = error
                return None
            point = Point(len(self.points), step.coordinates, setting)
            self._engines.append(choose(scenario, self._engine, f"setting {point}"))
            self._scenarios.append(scenario)
            self.points[setting] = point
        return self.points.get(setting)
