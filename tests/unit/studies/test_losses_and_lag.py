"""The loss at scale-down, and the price of waiting acknowledgements."""

from __future__ import annotations

import pytest

from celerysim.studies.ack_lag import ack_lag, published_advantage
from celerysim.studies.losses import clopper_pearson, losses


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [  # tables of the exact binomial interval
        (3, 20, 0.0321, 0.3789),
        (0, 20, 0.0, 0.1684),
        (20, 20, 0.8316, 1.0),
        (10, 20, 0.2720, 0.7280),
    ],
)
def test_exact_interval(successes: int, trials: int, low: float, high: float) -> None:
    assert clopper_pearson(successes, trials) == pytest.approx((low, high), abs=1e-4)


def test_losses_beside_what_was_observed() -> None:
    found = losses(3).as_json()
    assert found["observed"]["probability"] == 0.15
    assert found["simulated"] == {
        "lost": 0, "runs": 3, "probability": 0.0, "ci95": pytest.approx([0.0, 0.708], abs=1e-3)
    }  # fmt: skip
    assert found["forks"] == [44, 44, 44]


def test_a_shrink_within_a_batch_loses_a_task() -> None:
    # as in the two logs where the age passed the keepalive within a batch: 2 of 2 lost a task
    found = losses(1, overrides=["worker.keepalive=30.011"])
    assert found.lost == 1
    assert found.forks[0] < 44


def test_the_published_advantage_of_prefork() -> None:
    assert published_advantage(8) == pytest.approx(0.175)
    assert published_advantage(2) < 0  # two greenlets do more on one core than a child does


def test_the_lag_costs_most_where_slots_are_few() -> None:
    found = ack_lag(1)
    cost = {
        size: found.idealised[f"gevent({size})"] / found.lagging[f"gevent({size})"] - 1.0
        for size in (2, 4, 8)
    }
    assert cost[2] > 0.2 > cost[4] > 0.1 > cost[8] > 0.0
    advantage = found.as_json()["prefork_advantage_a_core"]["gevent(8)"]
    assert 0.1 < advantage["idealised"] < advantage["simulated"] < 0.3
