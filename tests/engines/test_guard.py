"""The quick way gives up where rounding could decide, and only there.

Every scenario here has more cores than processes and the default costs, so that the quick way
is open; what it gives up is run the exact way, and the result is the reference's all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from celerysim import Scenario, load_scenario, make_scenario, simulate
from celerysim.batch.fleet import Fleet
from celerysim.batch.guard import ample
from celerysim.batch.workload import load

Same = Callable[..., None]


def scenario(times: list[float], **rest: Any) -> Scenario:
    raw: dict[str, Any] = {
        "producer": {"kind": "times", "times_s": times},
        "tasks": {"profiles": {"a": {"steps": [{"io_s": 0.5}]}}},
        "machine": {"cores": 20},
    }
    return make_scenario(raw | rest)


def given_up(scenario: Scenario, replications: int = 1) -> int:
    """How many replications the quick way gives up."""
    assert ample(scenario, 1)
    lanes = np.arange(replications)
    content = load(scenario, lanes)
    fleet = Fleet(replications, [scenario], content.sent.shape[1] + 1, ample=True)
    fleet.begin(lanes, scenario, content, lanes)
    fleet.advance(replications)
    return int(np.count_nonzero(fleet.guard.doubtful))


AUTOSCALE = {"autoscale": [3, 0], "keepalive": 4.0}


@pytest.mark.parametrize(
    ("case", "doubt"),
    [
        # a message is delivered when a timer is due
        (scenario([4.9995], worker={"concurrency": 1}), True),
        # ... or only sent
        (scenario([5.0], worker={"concurrency": 1}), False),
        # a timer at the horizon
        (scenario([1.0], run={"horizon_s": 10.0}), True),
        (scenario([1.0], run={"horizon_s": 10.1}), False),
        # a burst: all messages are delivered at one instant, and received one after the other
        (scenario([1.0] * 9, worker={"concurrency": 3}), False),
        # three children are terminated, and reaped, at one instant
        (scenario([1.0] * 3 + [6.0], worker=AUTOSCALE, run={"horizon_s": 14.3}), False),
        # both timers at one instant: there is nothing to maintain
        (scenario([1.0] * 3, worker={"autoscale": [3, 0]}, run={"horizon_s": 61.0}), False),
    ],
)
def test_what_is_given_up(case: Scenario, doubt: bool, same: Same) -> None:
    assert given_up(case) == doubt
    same(case)


@pytest.mark.parametrize(("later_s", "doubt"), [(-0.001, False), (0.0, True), (0.001, False)])
def test_an_age_of_just_the_keepalive_is_given_up(later_s: float, doubt: bool, same: Same) -> None:
    worker = {"autoscale": [2, 0], "keepalive": 4.0}
    two = simulate(scenario([1.0, 1.0], worker=worker))
    costs = scenario([1.0]).costs
    due_s = two.scale_events["time"][-1] + 4.0 - costs.deliver_s - costs.receive_s
    case = scenario([1.0, 1.0, round(due_s + later_s, 9)], worker=worker)
    assert given_up(case) == doubt
    same(case)


def test_results_written_at_one_instant_are_given_up(same: Same) -> None:
    # the second job is written a dispatch later than the first; its task is that much shorter
    dispatch_s = scenario([1.0]).costs.dispatch_s
    steps = {"a": {"steps": [{"io_s": 0.5}]}, "b": {"steps": [{"io_s": 0.5 - dispatch_s}]}}
    case = scenario(
        [1.0] * 6, tasks={"profiles": steps, "pattern": ["a", "b"]}, worker={"concurrency": 2}
    )
    assert given_up(case) == 1
    same(case)


def test_hardly_any_run_of_the_puzzle_is_given_up() -> None:
    assert given_up(load_scenario("puzzle")) == 0
    random = load_scenario(
        "puzzle",
        [
            "producer.publish_s={kind='uniform', low=0.03, high=0.07}",
            "tasks.profiles.short.steps=[{cpu_s={kind='lognormal', mean=0.05, sd=0.02}}, "
            "{io_s={kind='lognormal', mean=1.5, sd=0.3}}]",
        ],
    )
    assert given_up(random, 200) <= 4


@pytest.mark.parametrize(
    "change",
    [
        "machine.cores=4",  # four children and the supervisor
        "costs.dispatch_s=0",
        "machine.speed=0.1",
    ],
)
def test_the_quick_way_is_closed(change: str) -> None:
    assert ample(load_scenario("puzzle"), 600)
    assert not ample(load_scenario("puzzle", [change]), 600)


def test_long_runs_take_the_exact_way() -> None:
    assert not ample(load_scenario("puzzle"), 20_000)
