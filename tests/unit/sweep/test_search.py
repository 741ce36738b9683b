"""The search for the best settings, on questions whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from celerysim import Scenario, ScenarioError, load_scenario
from celerysim.sweep import ExperimentError, optimise
from celerysim.sweep.goals import Limit, read_goals
from celerysim.sweep.optimum import Optimum, Verdict
from celerysim.sweep.report import optimum_report
from celerysim.theory import batch_resonance


def rule(keepalive: float) -> int:
    """Forks of the puzzle by the rule for regular batches."""
    return batch_resonance(
        batches=150, batch_size=4, interval_s=1.9, publish_s=0.05, max_concurrency=4,
        min_concurrency=0, keepalive_s=keepalive,
    ).forks  # fmt: skip


def found(over: str, *limits: str, budget: int = 60) -> Optimum:
    return optimise(
        "puzzle", minimise="forks", subject_to=limits, over=[over],
        replications=1, fresh=2, budget=budget, engine="reference", processes=1,
    )  # fmt: skip


def test_few_settings_are_all_tried() -> None:
    best = found("worker.keepalive=20.0:40.0", "forks>30", budget=12)
    assert len(best.tried.summary) >= 10  # a field that takes fractions is never tried in full
    # whole numbers are: 20 to 26 processes at most
    best = found("machine.cores=4:8")
    assert best.tried.summary["machine.cores"].tolist() == [4, 5, 6, 7, 8]


def test_the_least_forks_above_a_limit_are_those_of_the_rule() -> None:
    known = min(n for n in map(rule, np.linspace(5, 600, 2000).tolist()) if n > 30)
    best = found("worker.keepalive=5:600", "forks>30")
    assert best.objective.mean == known == 31
    assert rule(float(best.settings["worker.keepalive"])) == 31
    assert best.sure


def test_without_a_limit_the_pool_that_never_shrinks_is_best() -> None:
    best = found("worker.keepalive=5:600:log", budget=40)
    assert best.objective.mean == 4
    assert best.trade_off == []
    assert best.picture().kind == "lines"


def test_choices_and_two_fields_at_once(scenario: Scenario) -> None:
    best = optimise(
        scenario, minimise="sojourn_s.mean",
        over=["worker.concurrency=1:6", "worker.autoscale=[2, 0]|[6, 6]"],
        subject_to=["forks<7"], replications=2, fresh=5, engine="reference", processes=1,
    )  # fmt: skip
    assert best.settings["worker.autoscale"] == "[6, 6]"  # six processes from the start, no forks
    assert len(best.tried.summary) == 12


def test_settings_that_are_no_scenario_are_passed_over() -> None:
    # max below min is refused by the schema; the search goes on with the rest
    best = optimise(
        "puzzle", minimise="forks", over=["worker.autoscale.1=0:9"],
        replications=1, fresh=2, engine="reference", processes=1,
    )  # fmt: skip
    assert best.tried.summary["worker.autoscale.1"].tolist() == [0, 1, 2, 3, 4]
    assert best.settings["worker.autoscale.1"] in (3, 4)


def test_an_unknown_field_is_the_schemas_error() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'keepalive'"):
        found("worker.keepalvie=5:600")


def test_a_limit_nothing_keeps_is_reported_as_broken() -> None:
    best = found("worker.keepalive=5:600", "sojourn_s.mean<0.5", budget=20)
    assert not best.sure
    assert best.verdicts[0].kept is False
    assert "BROKEN" in optimum_report("puzzle", best)


def test_the_same_search_gives_the_same_answer() -> None:
    one, two = (found("worker.keepalive=5:600", budget=30).as_json() for _ in range(2))
    assert one == two


def test_the_answer_is_judged_on_fresh_random_numbers(scenario: Scenario) -> None:
    best = optimise(
        scenario, minimise="forks_per_hour", subject_to=["sojourn_s.mean<2.9"],
        over=["worker.keepalive=2:300"], replications=3, fresh=12, budget=40,
        engine="reference", processes=1,
    )  # fmt: skip
    assert best.objective.low < best.objective.mean < best.objective.high
    assert (best.verdicts[0].kept is True) == best.sure
    assert best.tried.summary["replications"].tolist() == [3] * len(best.tried.summary)
    alike = best.as_good["worker.keepalive"]
    assert best.settings["worker.keepalive"] in alike
    report = optimum_report("mine", best)
    assert "12 fresh replications" in report
    front = [row["forks_per_hour"] for row in best.trade_off]
    assert front == sorted(front)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([2.8, 2.81, 2.79, 2.8], True),
        ([3.2, 3.21, 3.19, 3.2], False),
        ([2.0, 3.9, 2.1, 3.8], None),
        ([3.0, 3.0], None),
        ([math.nan, 2.0], None),
    ],
)
def test_a_limit_is_kept_broken_or_too_close_to_tell(values: list[float], kept: bool) -> None:
    assert Verdict.of(Limit("sojourn_s.p95", True, 3.0), np.array(values)).kept is kept


def test_confidence_is_what_it_says() -> None:
    # at the limit itself "kept" is wrong; it may be said in 5 of 100 cases
    random = np.random.default_rng(1)
    limit = Limit("sojourn_s.p95", True, 0.0)
    said = [Verdict.of(limit, random.normal(size=10)).kept is True for _ in range(2000)]
    assert abs(np.mean(said) - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 2000)  # 4 standard errors


@pytest.mark.parametrize(
    ("minimise", "subject_to", "over", "words"),
    [
        ("fork", [], ["worker.keepalive=5:600"], "did you mean 'forks'?"),
        ("forks", ["sojourn_s.p95"], ["worker.keepalive=5:600"], "statistic<number"),
        ("forks", ["sojourn<3"], ["worker.keepalive=5:600"], "no statistic 'sojourn'"),
        ("forks", ["lost<x"], ["worker.keepalive=5:600"], "statistic<number"),
        ("forks", [], [], "nothing to search over"),
        ("forks", [], ["worker.keepalive"], "must read field=low:high"),
        ("forks", [], ["worker.keepalive=600:5"], "low must be below high"),
        ("forks", [], ["worker.keepalive=0:5:log"], "starts above 0"),
        ("forks", [], ["worker.keepalive=1:5:lin"], "field=low:high:log"),
        ("forks", [], ["machine.cores=1.5:4"], "takes whole numbers"),
        ("forks", [], ["worker.keepalive=1:5", "worker.keepalive=2:3"], "given twice"),
    ],
)
def test_goals_that_make_no_sense(
    minimise: str, subject_to: list[str], over: list[str], words: str
) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_goals(load_scenario("puzzle"), minimise, subject_to, over)
    assert words in str(caught.value)


def test_fields_that_take_fractions_are_known_as_such() -> None:
    knobs = read_goals(
        load_scenario("puzzle"), "forks", [],
        ["worker.keepalive=5:600", "machine.cores=1:8", "worker.max_tasks_per_child=10:500:log",
         "producer.publish_s=0.0:1"],
    )[1]  # fmt: skip
    assert [knob.whole for knob in knobs] == [False, True, True, False]
    assert knobs[0].step(31.41592).overrides == ("worker.keepalive=31.42",)
    assert knobs[2].step(math.log(70.4)).overrides == ("worker.max_tasks_per_child=70",)
