"""The result of a simulated run: its history, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celerysim._version import __version__
from celerysim.history import History
from celerysim.scenario.schema import Scenario

if TYPE_CHECKING:
    from celerysim.engine.recorder import Tables


@dataclass(frozen=True)
class Result(History):
    """What happened in one simulated run, with everything needed to run it again."""

    scenario: Scenario | None = None
    seed: int = 0
    replication: int = 0
    version: str = __version__
    busy_core_s: float = 0.0
    """Core-seconds spent computing, by children and supervisor together."""

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        *,
        replication: int,
        tables: Tables,
        start: float,
        end: float,
        busy_core_s: float,
    ) -> Result:
        """The result of a run's tables."""
        return cls(
            tasks=tables.tasks,
            scale_events=tables.scale_events,
            children=tables.children,
            levels=tables.levels,
            names=tuple(scenario.tasks.profiles),
            start=start,
            end=end,
            settings=scenario.worker.model_dump(exclude_none=True),
            scenario=scenario,
            seed=scenario.run.seed,
            replication=replication,
            busy_core_s=busy_core_s,
        )

    @property
    def provenance(self) -> dict[str, Any]:
        """Version, seed, replication and scenario, as plain values."""
        assert self.scenario is not None
        return {
            "celerysim": self.version,
            "seed": self.seed,
            "replication": self.replication,
            "scenario": self.scenario.model_dump(mode="json", exclude_none=True),
        }
