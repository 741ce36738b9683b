"""Shared by all tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from celerysim.scenario import Scenario, make_scenario
from celerysim.scenario.costs import Costs

#: Real logs and published tables, present on the project's own machines only.
REFERENCE = Path(__file__).parents[2] / "shared" / "reference"

ZERO_COSTS = {name: 0.0 for name in Costs.model_fields if name.endswith("_s")}


@pytest.fixture(scope="session")
def reference() -> Path:
    if not REFERENCE.is_dir():
        pytest.skip("the reference logs are not on this machine")
    return REFERENCE


@pytest.fixture(scope="session")
def make() -> Callable[..., Scenario]:
    """A scenario from explicit publish times and steps; every cost zero unless given."""

    def build(
        times: list[float],
        *steps: tuple[str, float],
        profiles: dict[str, Any] | None = None,
        pattern: list[str] | None = None,
        cores: int = 64,
        horizon_s: float | None = None,
        costs: dict[str, float] | None = None,
        **worker: Any,
    ) -> Scenario:
        tasks: dict[str, Any] = {
            "profiles": profiles
            or {"task": {"steps": [{kind: seconds} for kind, seconds in steps or (("io_s", 1.0),)]}}
        }
        if pattern:
            tasks["pattern"] = pattern
        return make_scenario(
            {
                "producer": {"kind": "times", "times_s": times},
                "tasks": tasks,
                "worker": worker,
                "machine": {"cores": cores},
                "run": {} if horizon_s is None else {"horizon_s": horizon_s},
                "costs": ZERO_COSTS | (costs or {}),
            }
        )

    return build
