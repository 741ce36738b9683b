"""Distributions: the moments and bounds they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from celerysim.scenario.distributions import Seconds

ADAPTER: TypeAdapter[Any] = TypeAdapter(Seconds)
U = (np.arange(200_000) + 0.5) / 200_000  # midpoints: integrates the quantile function


@pytest.mark.parametrize(
    ("spec", "mean", "sd"),
    [
        (0.25, 0.25, 0.0),
        ({"kind": "normal", "mean": 2.0, "sd": 0.1}, 2.0, 0.1),
        ({"kind": "lognormal", "mean": 2.0, "sd": 1.0}, 2.0, 1.0),
        ({"kind": "gamma", "mean": 2.0, "sd": 1.0}, 2.0, 1.0),
        ({"kind": "exponential", "mean": 2.0}, 2.0, 2.0),
        ({"kind": "uniform", "low": 1.0, "high": 4.0}, 2.5, 3.0 / 12**0.5),
        ({"kind": "empirical", "values": [1.0, 1.0, 4.0]}, 2.0, 2**0.5),
    ],
)
def test_mean_and_standard_deviation_are_those_given(spec: Any, mean: float, sd: float) -> None:
    distribution = ADAPTER.validate_python(spec)
    values = distribution.ppf(U)
    assert distribution.expectation == pytest.approx(mean)
    assert values.mean() == pytest.approx(mean, rel=2e-3)
    assert values.std() == pytest.approx(sd, rel=5e-3, abs=1e-12)


def test_a_normal_is_cut_at_zero() -> None:
    values = ADAPTER.validate_python({"kind": "normal", "mean": 0.1, "sd": 1.0}).ppf(U)
    assert values.min() == 0.0


def test_values_are_whole_nanoseconds() -> None:
    values = ADAPTER.validate_python({"kind": "gamma", "mean": 1.0, "sd": 0.5}).ppf(U)
    assert (values == np.round(values, 9)).all()


@pytest.mark.parametrize("u", [0.0, 1.0 - 2.0**-53])
def test_the_ends_of_the_unit_interval_are_finite(u: float) -> None:
    for kind in ("normal", "lognormal", "gamma"):
        distribution = ADAPTER.validate_python({"kind": kind, "mean": 1.0, "sd": 0.5})
        assert np.isfinite(distribution.ppf(np.array([u]))).all()
