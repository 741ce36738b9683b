"""The formulas themselves, against published values and special cases."""

from __future__ import annotations

import pytest

from celerysim import simulate, theory
from celerysim.puzzle import rule
from celerysim.scenario import load_scenario


def test_erlang_c_with_one_server_is_the_load() -> None:
    assert theory.erlang_c(1, 0.7) == pytest.approx(0.7)


def test_erlang_c_two_servers_closed_form() -> None:
    # C(2, a) = a^2 / (2 + a)
    assert theory.erlang_c(2, 1.2) == pytest.approx(1.2**2 / 3.2)


def test_the_mean_of_m_m_1() -> None:
    assert theory.mmc_sojourn_s(1, 0.5, 1.0) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("publish_s", "low", "forks"),
    [(0.0005, 0, 28), (0.045, 0, 13), (0.05, 0, 31), (0.11, 0, 31), (0.13, 0, 34), (0.05, 2, 22)],
)
def test_the_rule_for_regular_batches_gives_the_forks_of_live_runs(
    publish_s: float, low: int, forks: int
) -> None:
    # forks counted in runs of real Celery 5.6.3 (0.045: computed by hand)
    resonance = theory.batch_resonance(
        batches=150,
        batch_size=4,
        interval_s=1.7 + 4 * publish_s,
        publish_s=publish_s,
        max_concurrency=4,
        min_concurrency=low,
        keepalive_s=30.0,
    )
    assert resonance.forks == forks


@pytest.mark.parametrize(
    "publish_s", [0.0, 0.013, 0.0435, 0.046, 0.077, 0.1, 0.118, 0.15, 0.165, 0.19]
)
@pytest.mark.parametrize("low", [0, 1, 3])
def test_the_engine_follows_the_rule(publish_s: float, low: int) -> None:
    scenario = load_scenario(
        "puzzle",
        [
            f"producer.publish_s={publish_s}",
            f"worker.autoscale=[4,{low}]",
            "tasks.profiles.short.steps=[{io_s=1.5}]",
        ],
    )
    assert simulate(scenario, levels=False).forks == rule(scenario).forks


def test_a_batch_smaller_than_the_pool_is_outside_the_rule() -> None:
    with pytest.raises(ValueError, match="at least max_concurrency"):
        theory.batch_resonance(
            batches=10, batch_size=2, interval_s=1.0, publish_s=0.0,
            max_concurrency=4, min_concurrency=0, keepalive_s=30.0,
        )  # fmt: skip
