"""Shared by the tests that hold the batch engine against the reference engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from celerysim import Result, Scenario, simulate
from celerysim.batch import simulate_many
from celerysim.metrics import summary

TOLERANCE_S = 1e-9


def assert_same(reference: Result, batch: Result, tolerance_s: float = TOLERANCE_S) -> None:
    """The same tasks, scale events and children; times equal within the tolerance."""
    for name in ("tasks", "scale_events", "children"):
        expected, found = getattr(reference, name), getattr(batch, name)
        assert len(found) == len(expected), name
        for column in expected.dtype.names:
            if expected[column].dtype.kind == "f":
                # seconds of work are sums, added up in another order
                slack = max(tolerance_s, TOLERANCE_S if column == "busy_s" else 0.0)
                np.testing.assert_allclose(
                    found[column], expected[column], rtol=0, atol=slack, err_msg=f"{name}.{column}"
                )
            else:
                np.testing.assert_array_equal(
                    found[column], expected[column], err_msg=f"{name}.{column}"
                )
    assert abs(batch.end - reference.end) <= tolerance_s
    assert batch.busy_core_s == pytest.approx(reference.busy_core_s, abs=1e-8)


def assert_same_numbers(reference: Any, batch: Any) -> None:
    """The same summary."""
    assert batch.keys() == reference.keys()
    for key, value in reference.items():
        if isinstance(value, dict):
            assert_same_numbers(value, batch[key])
        else:
            assert batch[key] == (None if value is None else pytest.approx(value, abs=1e-8)), key


def check(scenario: Scenario, *, replications: int = 1, tolerance_s: float = TOLERANCE_S) -> None:
    """The batch engine gives what the reference engine gives."""
    batch = simulate_many([scenario], replications, tables=True)
    for replication in range(replications):
        reference = simulate(scenario, replication=replication, levels=False)
        assert_same(reference, batch.result_of(replication), tolerance_s)
        if reference.end > reference.start:
            assert_same_numbers(summary(reference), batch[replication])


@pytest.fixture(scope="session")
def same() -> Callable[..., None]:
    return check
