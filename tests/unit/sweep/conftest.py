"""Small scenarios and experiments for the tests of sweeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from celerysim import Scenario, make_scenario

#: Poisson arrivals that wait: every replication differs, and the pool grows and shrinks.
SCENARIO = """
[scenario.producer]
kind = "poisson"
rate_per_s = 1.0
max_tasks = 150

[scenario.tasks.profiles.task]
steps = [{ io_s = { kind = "exponential", mean = 2.0 } }]

[scenario.worker]
autoscale = [4, 0]
prefetch_multiplier = 1
keepalive = 10
"""


@pytest.fixture
def scenario() -> Scenario:
    return make_scenario(
        {
            "producer": {"kind": "poisson", "rate_per_s": 1.0, "max_tasks": 150},
            "tasks": {"profiles": {"task": {"steps": [{"io_s": EXPONENTIAL}]}}},
            "worker": {"autoscale": [4, 0], "prefetch_multiplier": 1, "keepalive": 10.0},
        }
    )


EXPONENTIAL = {"kind": "exponential", "mean": 2.0}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write an experiment on :data:`SCENARIO` into a folder of its own; the folder."""

    def build(text: str, name: str = "study") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "sweep.toml").write_text(text + SCENARIO, encoding="utf-8")
        return folder

    return build
