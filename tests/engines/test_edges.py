"""Edge cases first: each is one scenario on which both engines must agree to the last bit.

``make`` sets every cost to zero unless given, so that most events of these scenarios are
simultaneous and only SimPy's order of scheduling tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from celerysim import Scenario, load_scenario, make_scenario, simulate
from celerysim.batch import simulate_many
from celerysim.history import Outcome

Make = Callable[..., Scenario]
Same = Callable[..., None]

LOSING_TIMES = [1.0, 1.0, 1.0, 9.0, 9.005]
#: Three processes; the second message after the pause shrinks the pool while the first one's job
#: is written to a child whose acceptance the supervisor has not read.
LOSING: dict[str, Any] = {
    "autoscale": [3, 0],
    "keepalive": 8.0,
    "costs": {"receive_s": 0.001, "dispatch_s": 0.01, "child_exit_s": 0.1},
}
#: The same, but the child has not even read the job.
PUT_BACK: dict[str, Any] = LOSING | {
    "costs": {"dispatch_s": 0.01, "child_accept_s": 0.05, "child_exit_s": 0.1}
}
HALF = ("io_s", 0.5)


@pytest.fixture
def exactly(make: Make, same: Same) -> Callable[..., None]:
    def compare(times: list[float], *steps: tuple[str, float], **rest: Any) -> None:
        same(make(times, *steps, **rest), tolerance_s=0.0)

    return compare


def test_nothing_is_sent_before_the_horizon(exactly: Same) -> None:
    exactly([5.0], horizon_s=1.0, autoscale=[2, 1])


@pytest.mark.parametrize("start_s", [0.0, -1.0])
def test_no_task_at_all(same: Same, start_s: float) -> None:
    # the first message would come after the producer's time
    producer = {"kind": "poisson", "rate_per_s": 0.001, "duration_s": 0.01, "start_s": start_s}
    tasks = {"profiles": {"a": {"steps": [{"io_s": 1.0}]}}}
    same(make_scenario({"producer": producer, "tasks": tasks}))


def test_one_task(exactly: Same) -> None:
    exactly([0.0], ("cpu_s", 0.3), concurrency=1, cores=1)


def test_steps_of_no_length(exactly: Same) -> None:
    exactly([0.0, 0.0, 1.0], ("cpu_s", 0.0), ("io_s", 0.0), ("cpu_s", 0.0), concurrency=2)


@pytest.mark.parametrize("cores", [1, 2, 64])
@pytest.mark.parametrize("late", [False, True])
def test_everything_at_once(exactly: Same, cores: int, late: bool) -> None:
    times = [1.0] * 9 + [2.0] * 9
    exactly(times, ("cpu_s", 0.25), ("io_s", 0.25), concurrency=4, cores=cores, task_acks_late=late)


@pytest.mark.parametrize("cores", [2, 3, 4])
@pytest.mark.parametrize("balance_s", [0.003, 0.14, 0.25, 100.0])
def test_crowded_cores(make: Make, same: Same, cores: int, balance_s: float) -> None:
    """Pieces that end at one instant, steps back to back, more children than cores."""
    times = [1.0] * 9 + [1.1, 1.2] + [2.0] * 9
    steps = [("cpu_s", 0.25), ("cpu_s", 0.25), ("io_s", 0.1), ("cpu_s", 0.0), ("cpu_s", 0.125)]
    case = make(times, *steps, concurrency=6, cores=cores)
    machine = case.machine.model_copy(update={"balance_s": balance_s})
    same(case.model_copy(update={"machine": machine}), tolerance_s=0.0)


@pytest.mark.parametrize(
    ("third", "cpu_s"), [(1.109, 0.356), (1.277, 0.361), (1.135, 0.338), (1.2, 0.3)]
)
def test_an_alarm_set_before_the_crowd_rings_for_nothing(
    make: Make, same: Same, third: float, cpu_s: float
) -> None:
    """The second piece's core has an alarm of its own, mostly later by a rounding."""
    steps = {"a": 0.9, "b": cpu_s, "c": 0.7}
    profiles = {name: {"steps": [{"cpu_s": seconds}]} for name, seconds in steps.items()}
    case = make([1.0, 1.1, third], profiles=profiles, pattern=list(steps), concurrency=3, cores=2)
    machine = case.machine.model_copy(update={"speed": 0.7, "balance_s": 100.0})
    same(case.model_copy(update={"machine": machine}), tolerance_s=0.0)


@pytest.mark.parametrize("cores", [2, 3])
def test_children_leave_crowded_cores(make: Make, exactly: Same, cores: int) -> None:
    costs = {"child_term_s": 0.3, "child_exit_s": 0.1, "receive_s": 0.01, "fork_s": 0.05}
    rest: dict[str, Any] = {"autoscale": [6, 0], "keepalive": 0.5, "cores": cores, "costs": costs}
    times = [1.0] * 6 + [2.5, 2.51, 4.0, 4.0, 4.0, 4.5]
    assert (simulate(make(times, ("cpu_s", 0.4), **rest)).scale_events["change"] < 0).any()
    exactly(times, ("cpu_s", 0.4), **rest)


def test_children_are_killed_while_they_start_on_crowded_cores(make: Make, exactly: Same) -> None:
    rest: dict[str, Any] = {
        "autoscale": [5, 0], "costs": {"child_start_s": 2.0, "fork_s": 0.01}, "cores": 2,
        "proc_alive_timeout": 1.5, "horizon_s": 8.0,
    }  # fmt: skip
    assert simulate(make([1.0] * 5, ("cpu_s", 1.0), **rest)).forks > 5  # some were killed
    exactly([1.0] * 5, ("cpu_s", 1.0), **rest)


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_the_first_task_of_a_kind_pays_once_in_each_child(exactly: Same, cores: int) -> None:
    profiles = {
        "a": {"steps": [{"io_s": 0.1}], "first_in_child_cpu_s": 0.2},
        "b": {"steps": [{"cpu_s": 0.1}, {"io_s": 0.2}], "first_in_child_cpu_s": 0.05},
        "c": {"steps": [{"cpu_s": 0.3}]},
    }
    exactly(
        [1.0] * 9 + [4.0] * 5, profiles=profiles, pattern=["a", "b", "b", "a", "c"], cores=cores,
        autoscale=[3, 1], keepalive=1.0, costs={"child_exit_s": 0.1},
    )  # fmt: skip


def test_one_core_for_everything(exactly: Same) -> None:
    costs = dict.fromkeys(("receive_s", "dispatch_s", "accept_s", "result_s", "fork_s"), 0.01)
    exactly([0.5] * 6, ("cpu_s", 0.2), HALF, cores=1, autoscale=[3, 0], costs=costs)


@pytest.mark.parametrize("later", [5.0, 5.0 + 1e-9, 5.001])
def test_the_keepalive_just_passed_or_not(exactly: Same, later: float) -> None:
    exactly([1.0, 1.0, later], HALF, autoscale=[2, 0], keepalive=4.0)


def test_a_timer_and_a_message_at_the_same_instant(exactly: Same) -> None:
    exactly([0.5, 0.5, 8.0], ("io_s", 0.1), autoscale=[2, 0], keepalive=4.0, horizon_s=9.0)


def test_both_timers_at_the_same_instant(exactly: Same) -> None:
    exactly([0.5] * 3, HALF, autoscale=[3, 0], keepalive=5.0, horizon_s=21.0)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("losing", "lost"), [(LOSING, 1), (PUT_BACK, 0)])
def test_a_child_dies_with_a_job(
    make: Make, exactly: Same, losing: dict[str, Any], lost: int, late: bool
) -> None:
    result = simulate(make(LOSING_TIMES, HALF, **losing))
    assert result.count(Outcome.LOST) == lost  # else the test is about nothing
    assert (result.scale_events["change"] < 0).any()
    exactly(LOSING_TIMES, HALF, task_acks_late=late, **losing)


def test_a_task_that_had_ended_is_not_lost(exactly: Same) -> None:
    exactly(LOSING_TIMES, ("io_s", 0.001), **LOSING)


def test_several_jobs_are_put_back_at_once(make: Make, exactly: Same) -> None:
    times = [1.0] * 6 + [9.0, 9.001, 9.002, 9.003]
    rest: dict[str, Any] = {
        "autoscale": [6, 0],
        "keepalive": 8.0,
        "costs": {"dispatch_s": 0.002, "child_accept_s": 0.05, "child_exit_s": 0.1},
    }
    assert (simulate(make(times, HALF, **rest)).scale_events["change"] < 0).any()
    exactly(times, HALF, **rest)


def test_all_busy_nothing_shrinks(exactly: Same) -> None:
    exactly([1.0] * 2, ("io_s", 50.0), autoscale=[2, 0], keepalive=4.0)


@pytest.mark.parametrize("multiplier", [0, 1, 2])
@pytest.mark.parametrize("late", [False, True])
def test_the_prefetch_window(exactly: Same, multiplier: int, late: bool) -> None:
    exactly(
        [1.0] * 12, ("io_s", 1.0), concurrency=2, prefetch_multiplier=multiplier,
        task_acks_late=late, costs={"deliver_s": 0.001},
    )  # fmt: skip


def test_a_window_that_is_full_while_the_job_is_not_accepted_yet(same: Same) -> None:
    # an express lane must not take the message that is sent while the child wakes up
    producer = {
        "kind": "batches", "publish_s": 0.02, "duration_s": 0.2, "batch_size": 2, "pause_s": 0.1,
    }  # fmt: skip
    costs = {
        "deliver_s": 0.001, "receive_s": 0.002, "dispatch_s": 0.001, "accept_s": 0.001,
        "result_s": 0.001, "child_accept_s": 0.01, "child_report_s": 0.02,
    }  # fmt: skip
    steps = [{"cpu_s": {"kind": "exponential", "mean": 0.1}}]
    same(
        make_scenario(
            {
                "producer": producer,
                "tasks": {"profiles": {"a": {"steps": steps}}},
                "worker": {"autoscale": [1, 0], "prefetch_multiplier": 1},
                "machine": {"cores": 7},
                "run": {"seed": 2},
                "costs": costs,
            }
        )
    )


@pytest.mark.parametrize("low", [0, 1, 3])
def test_min_up_to_max(exactly: Same, low: int) -> None:
    exactly([0.2] * 3 + [4.0] * 3, HALF, autoscale=[3, low], keepalive=1.0)


@pytest.mark.parametrize("start_s", [-2.0, -0.05, 0.0, 0.05, 0.1, 0.25])
def test_messages_about_the_start(same: Same, start_s: float) -> None:
    producer = {"kind": "rate", "rate_per_s": 20.0, "max_tasks": 20, "start_s": start_s}
    tasks = {"profiles": {"a": {"steps": [{"io_s": 0.3}]}}}
    same(
        make_scenario({"producer": producer, "tasks": tasks, "worker": {"autoscale": [4, 1]}}),
    )


def test_a_child_that_does_not_come_up_is_killed(exactly: Same) -> None:
    exactly(
        [1.0], ("io_s", 1.0), autoscale=[1, 0], costs={"child_start_s": 2.0},
        proc_alive_timeout=1.5, horizon_s=8.0,
    )  # fmt: skip


def test_more_timers_than_one_turn_runs(exactly: Same) -> None:
    exactly(
        [1.0] * 13, ("io_s", 0.1), autoscale=[13, 0], costs={"child_start_s": 9.0},
        proc_alive_timeout=2.0, horizon_s=8.0,
    )  # fmt: skip


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_missed_exits(exactly: Same, share: float) -> None:
    exactly(
        [1.0] * 3 + [6.0] * 2, ("io_s", 0.1), autoscale=[3, 1], keepalive=4.0, horizon_s=12.0,
        costs={"child_exit_s": 0.2, "exit_missed_share": share},
    )  # fmt: skip


def test_many_children(exactly: Same) -> None:
    exactly([1.0] * 90 + [3.0] * 90, HALF, autoscale=[70, 0], keepalive=1.5, cores=3)


def test_a_long_burst_is_read_faster_and_faster(exactly: Same) -> None:
    costs = {"receive_s": 0.001, "deliver_s": 0.001}
    exactly([1.0] * 200, ("io_s", 0.01), concurrency=2, prefetch_multiplier=0, costs=costs)


@pytest.mark.parametrize("horizon_s", [1.0, 1.5, 1.500001, 2.0])
def test_a_horizon_at_an_event(exactly: Same, horizon_s: float) -> None:
    exactly([1.0, 1.0], HALF, ("cpu_s", 0.5), autoscale=[2, 0], horizon_s=horizon_s)


def test_profiles_of_different_lengths_in_a_pattern(exactly: Same) -> None:
    profiles = {
        "short": {"steps": [{"io_s": 0.1}]},
        "long": {"steps": [{"cpu_s": 0.1}, {"block_s": 0.2}, {"cpu_s": 0.1}]},
    }
    exactly([1.0] * 10, profiles=profiles, pattern=["long", "short", "short"], concurrency=2)


def test_a_trace_of_tasks(same: Same) -> None:
    tasks = {
        "profiles": {
            "a": {"steps": [{"cpu_s": 0.0}, {"io_s": 0.0}]},
            "b": {"steps": [{"io_s": 0.0}]},
        },
        "trace": [["a", [0.1, 0.2]], ["b", [0.7]], ["a", [0.0, 0.4]]],
    }
    producer = {"kind": "rate", "rate_per_s": 5.0, "max_tasks": 30}
    same(make_scenario({"producer": producer, "tasks": tasks}))


@pytest.mark.parametrize("cores", [4, 8])
def test_more_tasks_than_a_block_of_random_numbers(same: Same, cores: int) -> None:
    profiles = {
        "a": {"steps": [{"cpu_s": {"kind": "exponential", "mean": 0.02}}]},
        "b": {"steps": [{"io_s": {"kind": "exponential", "mean": 0.2}}], "weight": 2},
    }
    same(
        make_scenario(
            {
                "producer": {"kind": "poisson", "rate_per_s": 30.0, "max_tasks": 4300},
                "tasks": {"profiles": profiles},
                "worker": {"autoscale": [5, 1], "keepalive": 2.0},
                "machine": {"cores": cores},
            }
        )
    )


def test_the_shipped_puzzles(same: Same) -> None:
    same(load_scenario("puzzle"))
    same(load_scenario("puzzle-2-cores", ["producer.max_tasks=200"]), replications=2)


def test_a_run_does_not_depend_on_its_company(make: Make) -> None:
    """Scenarios of all sizes in one call, in any order."""
    scenarios = [
        make([1.0] * n, HALF, concurrency=processes, cores=cores)
        for n, processes, cores in ((1, 1, 1), (40, 2, 64), (3, 9, 2), (40, 3, 1), (7, 2, 64))
    ]
    alone = [simulate_many([scenario])[0] for scenario in scenarios]
    assert list(simulate_many(scenarios)) == alone
    assert list(simulate_many(scenarios[::-1])) == alone[::-1]
