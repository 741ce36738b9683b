"""The loss at scale-down, and the price of waiting acknowledgements."""

from __future__ import annotations

from typing import Any

import pytest

from celerysim.errors import CelerysimError
from celerysim.scenario import Scenario, load_scenario
from celerysim.studies.ack_lag import AckLag, ack_lag, others_of
from celerysim.studies.ack_lag_report import ack_lag_report, published_ack_lag_report
from celerysim.studies.losses import Losses, clopper_pearson, losses, published_losses
from celerysim.studies.losses_report import losses_report
from celerysim.studies.published_ack_lag import (
    PublishedAckLag,
    published_ack_lag,
    published_advantage,
)

# --- losses ---


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


def test_published_losses_beside_what_was_observed() -> None:
    found = published_losses(3, spread=False).as_json()
    assert found["observed"]["probability"] == 0.15
    assert found["simulated"] == {
        "lost": 0, "runs": 3, "probability": 0.0, "ci95": pytest.approx([0.0, 0.708], abs=1e-3)
    }  # fmt: skip
    assert found["forks"] == [44, 44, 44]
    assert found["tasks_lost"] == [0, 0, 0]


def test_a_run_whose_costs_are_not_the_others_loses_a_task() -> None:
    """With the scenario's costs the age never passes the keepalive within a batch."""
    assert sum(published_losses(10).tasks_lost) > 0
    assert sum(published_losses(10, spread=False).tasks_lost) == 0


def test_a_shrink_within_a_batch_loses_a_task() -> None:
    # as in the two logs where the age passed the keepalive within a batch: 2 of 2 lost a task
    found = published_losses(1, overrides=["worker.keepalive=30.011"], spread=False)
    assert found.simulated == (1, 1)
    assert found.forks[0] < 44


def test_losses_of_a_scenario_of_ones_own() -> None:
    quiet = load_scenario("puzzle", ["producer.max_tasks=80"])
    found = losses(quiet, 2, name="puzzle")
    assert found.simulated == (0, 2)
    assert found.observed is None
    assert found.as_json()["observed"] is None


def test_the_report_says_when_model_and_observation_cannot_be_reconciled() -> None:
    apart = losses_report(Losses("a cell", (0,) * 200, (44,) * 200, (3, 20)))
    assert "0.0% to 1.8%" in apart
    assert "3.2% to 37.9%" in apart
    assert "do not overlap" in apart
    near = losses_report(Losses("a cell", (0,) * 18 + (1, 2), (44,) * 20, (3, 20)))
    assert "10.0%" in near
    assert "0.15 (0 to 2)" in near
    assert "do not overlap" not in near


# --- the lag of acknowledgements ---


def threads(*overrides: str) -> Scenario:
    return load_scenario("threads-late-acks", ["run.horizon_s=110", *overrides])


@pytest.fixture(scope="module")
def lag() -> AckLag:
    return ack_lag(threads(), 6)


def per_s(lag: AckLag) -> dict[str, float]:
    return {variant.name: variant.throughput_per_s for variant in lag.variants}


def test_the_measured_figures_of_a_threads_worker(lag: AckLag) -> None:
    # measured with Celery, none used to calibrate: 0.2 a second, about 1.2, and 4 are possible
    found = per_s(lag)
    assert found["no gossip, no heartbeat"] == pytest.approx(0.2, rel=0.1)
    assert found["as it is"] == pytest.approx(1.2, rel=0.02)
    assert found["without the lag"] == pytest.approx(4.0, rel=0.02)
    assert lag.gain == pytest.approx(4.0 / 1.2 - 1.0, rel=0.03)


def test_others_that_gossip_let_acknowledgements_out_if_they_come_at_the_right_moment(
    lag: AckLag,
) -> None:
    found = per_s(lag)
    zero, one, two, five, ten = (
        found[f"gossip, {n} other worker{'' if n == 1 else 's'}"] for n in (0, 1, 2, 5, 10)
    )
    assert zero == found["as it is"] < one < two < five < ten < found["without the lag"]
    (luck,) = (v.range_per_s for v in lag.wakes if v.name == "gossip, 1 other worker")
    assert luck == pytest.approx((1.2, 2.0), rel=0.05)  # too early after an event, or well between


def test_the_remedies(lag: AckLag) -> None:
    found = per_s(lag)
    assert found["both"] == pytest.approx(4.0, rel=0.02)
    assert found["as it is"] < found["early acknowledgement"] < found["both"]
    assert found["as it is"] < found["prefetch multiplier 4"] < found["both"]


def test_a_remedy_that_the_scenario_has_is_not_offered() -> None:
    early = ack_lag(threads("worker.task_acks_late=false"), 1, others=[0])
    assert [remedy.name for remedy in early.remedies] == ["prefetch multiplier 4"]
    wide = ack_lag(threads("worker.prefetch_multiplier=0"), 1, others=[0])
    assert [remedy.name for remedy in wide.remedies] == ["early acknowledgement"]


def test_an_idealised_scenario_is_asked_about_as_celery_is() -> None:
    found = ack_lag(threads("worker.idealised=true"), 1, others=[0])
    assert found.lagging.throughput_per_s == pytest.approx(1.2, rel=0.02)


def test_gevent_with_a_full_window_waits_for_the_time_out() -> None:
    # measured with Celery: 1.0 a second alone; with another worker that gossips 2.05, and 1.0
    lag = ack_lag(threads("worker.pool=gevent"), 6, others=[1])
    found = per_s(lag)
    assert found["as it is"] == pytest.approx(1.0, rel=0.03)
    assert found["no gossip, no heartbeat"] == pytest.approx(1.0, rel=0.03)
    assert lag.wakes[-1].range_per_s == pytest.approx((1.0, 2.0), rel=0.03)


def test_solo_has_no_lag() -> None:
    assert ack_lag(threads("worker.pool=solo"), 1, others=[0]).gain == pytest.approx(0.0, abs=0.01)


def test_prefork_is_told_that_it_has_no_lag() -> None:
    with pytest.raises(CelerysimError, match=r"worker\.pool=gevent"):
        ack_lag(load_scenario("puzzle"))


def test_processes_do_not_matter(lag: AckLag) -> None:
    assert ack_lag(threads(), 6, processes=2).as_json() == lag.as_json()


def test_the_lags_report(lag: AckLag) -> None:
    text = ack_lag_report("mine", lag)
    assert "mine: what waiting acknowledgements cost a threads worker" in text
    assert "gain without the lag: +2" in text
    for variant in lag.variants:
        assert variant.name in text


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5"])
def test_how_many_others_must_be_numbers(text: str) -> None:
    assert others_of("0, 10") == (0, 10)
    with pytest.raises(CelerysimError, match="Remedy"):
        others_of(text)


# --- of the published cells ---


@pytest.fixture(scope="module")
def published() -> PublishedAckLag:
    return published_ack_lag(1)


def test_the_published_advantage_of_prefork() -> None:
    assert published_advantage(8) == pytest.approx(0.175)
    assert published_advantage(2) < 0  # two greenlets do more on one core than a child does


def test_the_lag_costs_most_where_slots_are_few(published: PublishedAckLag) -> None:
    cost = {size: published.gain(f"gevent({size})") for size in (2, 4, 8)}
    assert cost[2] > 0.2 > cost[4] > 0.04 > cost[8] > 0.0


def test_the_advantage_at_size_eight_is_not_the_lags_doing(published: PublishedAckLag) -> None:
    found: dict[str, Any] = published.as_json()["prefork_advantage_a_core"]["gevent(8)"]
    assert 0.1 < found["idealised"] < found["simulated"] < 0.3
    assert found["published_without"] == pytest.approx(
        1.175 / (1.0 + published.gain("gevent(8)")) - 1.0
    )


def test_the_published_report(published: PublishedAckLag) -> None:
    text = published_ack_lag_report(published)
    assert text.count("eventlet(8)") == 2
    assert "+17.5%" in text
