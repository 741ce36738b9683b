"""The engine against queueing theory: means within four standard errors of the formula.

The expectation is computed by :mod:`celerysim.theory`, never taken from a run.
Each figure is the mean of independent replications, so its standard error is
theirs; with K = 4 a correct model fails one check in 16,000.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from celerysim import make_scenario, simulate, theory
from celerysim.scenario.costs import Costs

K = 4.0
REPLICATIONS = 24
TASKS = 6_000
WARM_UP = 1_000

ZERO = {name: 0.0 for name in Costs.model_fields if name.endswith("_s")}


def sojourns(rate_per_s: float, step: dict[str, Any], concurrency: int, cores: int) -> np.ndarray:
    """Mean sojourn of each replication, the first tasks left out."""
    scenario = make_scenario(
        {
            "producer": {"kind": "poisson", "rate_per_s": rate_per_s, "max_tasks": TASKS},
            "tasks": {"profiles": {"t": {"steps": [step]}}},
            "worker": {"concurrency": concurrency, "prefetch_multiplier": 0},
            "machine": {"cores": cores, "scheduling": "processor sharing"},
            "costs": ZERO,
        }
    )
    means = []
    for replication in range(REPLICATIONS):
        tasks = simulate(scenario, replication=replication, levels=False).tasks[WARM_UP:]
        means.append((tasks["finished"] - tasks["sent"]).mean())
    return np.array(means)


def assert_near(means: np.ndarray, expected: float) -> None:
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert abs(means.mean() - expected) < K * error
    assert error < 0.03 * expected  # else the comparison would say little


EXPONENTIAL = {"kind": "exponential", "mean": 1.0}


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("servers", [1, 4])
def test_a_fixed_pool_under_poisson_arrivals_is_m_m_c(servers: int, load: float) -> None:
    rate = load * servers
    means = sojourns(rate, {"io_s": EXPONENTIAL}, servers, cores=64)
    assert_near(means, theory.mmc_sojourn_s(servers, rate, 1.0))


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("size", ["exponential", "two values"])
def test_one_shared_core_is_m_g_1_processor_sharing(size: str, load: float) -> None:
    # insensitive: only the mean of the work counts
    two = {"kind": "empirical", "values": [0.2, 0.2, 0.2, 3.4]}
    step = {"cpu_s": EXPONENTIAL if size == "exponential" else two}
    means = sojourns(load, step, concurrency=200, cores=1)
    assert_near(means, theory.mm1_ps_sojourn_s(load, 1.0))


@pytest.mark.parametrize("load", [0.5, 0.8])
@pytest.mark.parametrize("cores", [2, 4])
def test_several_shared_cores_are_m_m_c_processor_sharing(cores: int, load: float) -> None:
    means = sojourns(load * cores, {"cpu_s": EXPONENTIAL}, concurrency=200, cores=cores)
    assert_near(means, theory.mmc_ps_sojourn_s(cores, load * cores, 1.0))
