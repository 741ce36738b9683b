"""Sweeps on the batch engine: close to the reference, and no run's values depend on the others."""

from __future__ import annotations

import numpy as np
import pytest

from celerysim import Scenario
from celerysim.scenario import override
from celerysim.sweep import Table, sweep
from celerysim.sweep.chunk import LEAST_TASKS, MOST_TASKS

pytest.importorskip("celerysim.batch.simulation", reason="there is no batch engine")

OUTPUTS = ["forks", "sojourn_s.mean", "sojourn_s.p95", "child_idle_share", "throughput_per_s"]


@pytest.fixture
def uneven(scenario: Scenario) -> Scenario:
    """Runs with different numbers of tasks."""
    data = scenario.model_dump(mode="json", exclude_none=True)
    del data["producer"]["max_tasks"]
    data["producer"]["duration_s"] = 100.0
    return override(Scenario.model_validate(data), [])


def swept(scenario: Scenario, engine: str) -> Table:
    axes = {"worker.keepalive": [2.0, 30.0, 600.0]}
    return sweep(scenario, axes, 8, OUTPUTS, engine=engine, processes=1)


def test_both_engines_fill_the_same_table(uneven: Scenario) -> None:
    batch, reference = swept(uneven, "batch"), swept(uneven, "reference")
    assert batch.provenance["engines"] == ["batch"]
    for name in batch.rows.dtype.names:
        assert np.allclose(batch.rows[name], reference.rows[name], rtol=0, atol=1e-9), name


def test_a_runs_values_do_not_depend_on_the_chunk_it_is_in(
    uneven: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = swept(uneven, "batch")
    monkeypatch.setitem(LEAST_TASKS, "batch", 200)
    monkeypatch.setitem(MOST_TASKS, "batch", 200)
    apart = swept(uneven, "batch")
    for name in OUTPUTS:
        assert (together.rows[name] == apart.rows[name]).all(), name
