"""What ``celerysim.batch`` offers: many runs at once, their summaries, and its refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from celerysim import Scenario, ScenarioError, load_scenario, make_scenario, simulate
from celerysim.batch import simulate_many, unsupported
from celerysim.batch.simulation import Piece, lanes_for
from celerysim.batch.uniforms import Uniforms
from celerysim.batch.workload import load
from celerysim.engine.producer import sent_times
from celerysim.engine.streams import BLOCK, Streams
from celerysim.engine.workload import work
from celerysim.metrics import over_replications

RANDOM = (
    "producer.publish_s={kind='uniform', low=0.03, high=0.07}",
    "tasks.profiles.short.steps=[{cpu_s={kind='lognormal', mean=0.05, sd=0.02}}, "
    "{io_s={kind='lognormal', mean=1.5, sd=0.3}}]",
)


def puzzle(tasks: int, *changes: str) -> Scenario:
    return load_scenario("puzzle", [f"producer.max_tasks={tasks}", *RANDOM, *changes])


# --- refusals ---


@pytest.mark.parametrize(
    "change",
    [
        "worker.optimization=fast",
        "worker.time_limit=5",
        "worker.soft_time_limit=5",
        "worker.max_tasks_per_child=3",
        "worker.max_memory_per_child=90000",
        "worker.pool=gevent",
        "worker.write_order=[2,1,3,4]",
        "tasks.profiles.short.aftermath={factor=1.1,share=0.1,share_after_idle=0.2}",
    ],
)
def test_what_it_does_not_support_is_refused_by_name(change: str) -> None:
    scenario = load_scenario("puzzle", [change])
    field = change.partition("=")[0]
    assert [reason.partition(" = ")[0] for reason in unsupported(scenario)] == [field]
    with pytest.raises(ScenarioError, match=f"{field}.*Remedy"):
        simulate_many([scenario], 2)


def test_all_that_stands_in_the_way_is_named() -> None:
    changes = ["worker.time_limit=5", "worker.optimization=fast", "worker.max_tasks_per_child=3"]
    with pytest.raises(ScenarioError, match="scenario 1: 3 problems"):
        simulate_many([puzzle(5), load_scenario("puzzle", changes)])


def test_late_wakeups_matter_with_crowded_cores_only() -> None:
    late = "machine.late_wakeup_share=0.1"
    four = "machine.cores=4"  # and four children and the supervisor
    assert unsupported(puzzle(5, late, four))[0].startswith("machine.late_wakeup_share = 0.1")
    for cores in (1, 5):
        assert not unsupported(puzzle(5, late, f"machine.cores={cores}"))
    assert not unsupported(puzzle(5, late, four, "machine.scheduling='processor sharing'"))


def test_requeueing_lost_tasks_matters_with_late_acks_only() -> None:
    reject = "worker.task_reject_on_worker_lost=true"
    assert not unsupported(puzzle(5, reject))
    assert unsupported(puzzle(5, reject, "worker.task_acks_late=true"))


# --- many runs ---


def test_a_number_of_replications_of_every_scenario() -> None:
    scenarios = [puzzle(30), puzzle(30, "worker.keepalive=5")]
    result = simulate_many(scenarios, 3)
    assert result.table["scenario"].tolist() == [0, 0, 0, 1, 1, 1]
    assert result.table["replication"].tolist() == [0, 1, 2, 0, 1, 2]
    reference = [
        simulate(scenario, replication=i, levels=False).forks
        for scenario in scenarios
        for i in range(3)
    ]
    assert [run["forks"] for run in result] == reference


def test_a_replication_number_for_every_scenario() -> None:
    one, two = puzzle(30), puzzle(30, "worker.keepalive=5")
    result = simulate_many([one, two, one], [4, 0, 2])
    assert len(result) == 3
    assert result[2] == simulate_many([one], 3)[2]
    assert result[-1] == result[2]
    assert result[:2] == [result[0], result[1]]
    with pytest.raises(ValueError, match="2 scenarios, but 1 replication"):
        simulate_many([one, two], [0])


def test_replications_differ_as_the_references_do() -> None:
    scenario = puzzle(200)
    forks = [int(run["forks"]) for run in simulate_many([scenario], 30)]
    assert forks == [simulate(scenario, replication=i, levels=False).forks for i in range(30)]
    assert len(set(forks)) > 1


def test_no_runs() -> None:
    assert len(simulate_many([], 3)) == 0
    assert len(simulate_many([puzzle(5)], 0)) == 0


def test_summaries_can_be_summed_up_over_replications() -> None:
    merged = over_replications(list(simulate_many([puzzle(30)], 4)))
    assert len(merged["sojourn_s"]["p95"]["values"]) == 4


def test_warm_up_is_left_out(same: Callable[..., None]) -> None:
    same(puzzle(60, "run.warm_up_s=10"), replications=2)


def test_any_runs_history_can_be_had_afterwards() -> None:
    result = simulate_many([puzzle(40)], 3)
    reference = simulate(puzzle(40), replication=1)
    np.testing.assert_allclose(
        result.result_of(1).tasks["finished"], reference.tasks["finished"], rtol=0, atol=1e-9
    )
    assert result.result_of(-2) is result.result_of(1)


@pytest.mark.parametrize("max_memory_mb", [0.001, 0.1, 1.0])
def test_memory_in_progress_is_bounded_and_changes_nothing(max_memory_mb: float) -> None:
    scenarios = [puzzle(60), puzzle(20, "worker.keepalive=2"), puzzle(60, "machine.cores=2")]
    whole = simulate_many(scenarios, 30, tables=True)
    pieces = simulate_many(scenarios, 30, tables=True, max_memory_mb=max_memory_mb)
    assert list(whole) == list(pieces)
    for run in (0, 29, 47, 89):
        for name in ("tasks", "scale_events", "children"):
            one, two = (getattr(r.result_of(run), name) for r in (whole, pieces))
            assert one.tobytes() == two.tobytes()


def test_fewer_runs_are_in_progress_when_memory_is_short() -> None:
    pieces = [Piece(puzzle(600), np.arange(5000), np.arange(5000))]
    assert lanes_for(pieces, 1e9) == 5000
    assert lanes_for(pieces, 10.0) < 300
    assert lanes_for(pieces, 0.0) == 1


# --- the same random numbers ---


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**63 + 5, 2**100, 2**130 + 1])
def test_random_numbers_are_those_of_the_streams(seed: int) -> None:
    replications = np.array([0, 1, 12345, 2**32 - 1])
    drawn = Uniforms(seed, replications).draw("step 0", 3, 50)
    for row, replication in zip(drawn, replications.tolist()):
        assert row.tolist() == Streams(seed, replication).uniform("step 0", 3)[:50].tolist()


@pytest.mark.parametrize(
    "producer",
    [
        {"kind": "batches", "batch_size": 7, "pause_s": {"kind": "exponential", "mean": 1.0}},
        {"kind": "rate", "rate_per_s": 5.0, "publish_s": {"kind": "exponential", "mean": 0.3}},
        {"kind": "poisson", "rate_per_s": 5.0, "publish_s": 0.01},
        {"kind": "poisson", "rate_per_s": 5.0, "duration_s": 700.0, "max_tasks": 9000},
        {"kind": "batches", "batch_size": 50, "pause_s": 0.5, "duration_s": 41.2},
    ],
)
def test_messages_and_tasks_are_those_of_the_reference(producer: dict[str, object]) -> None:
    long = {"max_tasks": BLOCK + 100} if "duration_s" not in producer else {}
    profiles = {
        "a": {"steps": [{"cpu_s": {"kind": "exponential", "mean": 1.0}}]},
        "b": {"steps": [{"io_s": 1.0}, {"cpu_s": 2.0}], "weight": 3},
    }
    scenario = make_scenario(
        {"producer": producer | long | {"start_s": 0.5}, "tasks": {"profiles": profiles}}
    )
    replications = np.array([0, 6])
    content = load(scenario, replications)
    for row, replication in enumerate(replications.tolist()):
        streams = Streams(scenario.run.seed, replication)
        sent = np.concatenate(list(sent_times(scenario, streams)))
        n = int(content.total[row])
        times = np.broadcast_to(content.sent, (2, content.sent.shape[1]))[row, :n]
        np.testing.assert_allclose(times, sent, rtol=0, atol=1e-12)
        chosen, steps = next(work(scenario, streams))
        k = min(n, BLOCK)
        assert content.profile[row, :k].tolist() == chosen[:k]
        coded = np.nan_to_num(np.abs(content.seconds[row, :k]))
        np.testing.assert_array_equal(coded, np.array(list(steps))[:k])
