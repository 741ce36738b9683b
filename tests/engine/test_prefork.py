"""The prefork worker, rule by rule, with exact times.

Every cost is zero unless a test gives it. The loop's first turn blocks for a
tenth of a second when no message waits (``_quick_drain``), so tests publish
later than that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from celerysim import Result, Scenario, simulate
from celerysim.history import Level, Outcome, Trigger

Make = Callable[..., Scenario]
EXACT = 1e-9


def column(result: Any, name: str) -> list[float]:
    return result.tasks[name].tolist()


def events(result: Any) -> list[tuple[float, int]]:
    return [(round(t, 6), n) for t, n in result.scale_events[["time", "change"]].tolist()]


# --- the order of received, reserved, autoscale, dispatch (worker/strategy.py) ---


def test_a_message_is_counted_as_reserved_before_it_is_dispatched(make: Make) -> None:
    result = simulate(make([1.0, 1.0, 1.0], ("io_s", 5.0), autoscale=[3, 0]))
    assert result.scale_events["reserved"].tolist() == [1, 2, 3]
    assert result.scale_events["processes"].tolist() == [0, 1, 2]


def test_the_first_message_of_a_batch_sees_itself_and_what_still_runs(make: Make) -> None:
    # three run until 6.0; at 5.0 one more is received: qty = 4
    result = simulate(make([1.0, 1.0, 1.0, 5.0], ("io_s", 5.0), autoscale=[8, 0]))
    assert result.scale_events["reserved"].tolist() == [1, 2, 3, 4]


# --- the keepalive (worker/autoscale.py) ---


def test_an_age_equal_to_the_keepalive_does_not_shrink(make: Make) -> None:
    # scale-ups at 1.0; a message at 5.0 is 4.0 old: not more than the keepalive
    at = simulate(make([1.0, 1.0, 5.0], ("io_s", 0.5), autoscale=[2, 0], keepalive=4.0))
    after = simulate(make([1.0, 1.0, 5.001], ("io_s", 0.5), autoscale=[2, 0], keepalive=4.0))
    assert events(at) == [(1.0, 1), (1.0, 1)]
    assert events(after)[2:] == [(5.001, -1)]


def test_scaling_down_does_not_refresh_the_time_stamp(make: Make) -> None:
    # the shrink at 6.0 (to 1, by a message) leaves the stamp at 1.0, so the timer at 8.0 shrinks on
    result = simulate(
        make([1.0, 1.0, 1.0, 6.0], ("io_s", 0.5), autoscale=[3, 0], keepalive=4.0, horizon_s=9.0)
    )
    assert events(result)[3:] == [(6.0, -2), (8.0, -1)]
    assert result.scale_events["trigger"].tolist()[3:] == [Trigger.MESSAGE, Trigger.TIMER]


def test_the_timers_phase_counts_from_ready(make: Make) -> None:
    result = simulate(
        make([0.5, 0.5], ("io_s", 0.1), autoscale=[2, 0], keepalive=4.0, horizon_s=20.0)
    )
    # at 4.0 the scale-up is 3.5 s old, at 8.0 it is 7.5
    assert events(result)[2:] == [(8.0, -2)]


def test_a_timer_and_a_message_at_the_same_instant(make: Make) -> None:
    # poll returns with what can be read, even at its time-out: the message comes first, and the
    # timer finds one process and one reserved task
    result = simulate(
        make([0.5, 0.5, 8.0], ("io_s", 0.1), autoscale=[2, 0], keepalive=4.0, horizon_s=9.0)
    )
    assert events(result)[2:] == [(8.0, -1)]
    assert result.scale_events["trigger"].tolist()[2:] == [Trigger.MESSAGE]


# --- growing (billiard Pool.grow, maintain_pool) ---


def test_forks_block_the_supervisor_one_after_the_other(make: Make) -> None:
    result = simulate(
        make([1.0, 1.0, 1.0], ("io_s", 5.0), autoscale=[3, 0], costs={"fork_s": 0.03})
    )
    # each message of the batch is received when the fork before it is done
    assert column(result, "received") == pytest.approx([1.0, 1.03, 1.06], abs=EXACT)
    assert result.children["forked"].tolist() == pytest.approx([1.03, 1.06, 1.09], abs=EXACT)


def test_a_child_is_used_only_after_it_has_reported_that_it_is_up(make: Make) -> None:
    result = simulate(
        make([1.0], ("io_s", 5.0), autoscale=[1, 0], costs={"fork_s": 0.03, "child_start_s": 0.05})
    )
    assert result.children["up"][0] == pytest.approx(1.08, abs=EXACT)
    assert column(result, "started") == pytest.approx([1.08], abs=EXACT)


def test_a_child_that_does_not_report_in_time_is_killed_and_replaced(make: Make) -> None:
    result = simulate(
        make([1.0], ("io_s", 1.0), autoscale=[1, 0], costs={"child_start_s": 2.0},
             proc_alive_timeout=1.5, horizon_s=8.0)
    )  # fmt: skip
    assert result.children["terminated"][:2].tolist() == pytest.approx([2.5, 4.0], abs=EXACT)
    assert np.isnan(result.children["up"]).all()


def test_a_grow_after_a_shrink_forks_nothing_until_the_old_children_are_reaped(
    make: Make,
) -> None:
    # at 6.0 a message shrinks 3 to 1, at 6.2 two more grow it back; the terminated children are
    # gone at 6.5, and only then two new ones are forked
    result = simulate(
        make([1.0] * 3 + [6.0, 6.2, 6.2], ("io_s", 0.5), autoscale=[3, 0], keepalive=4.0,
             costs={"child_exit_s": 0.5})
    )  # fmt: skip
    assert events(result)[3:] == [(6.0, -2), (6.2, 1), (6.2, 1)]
    assert result.children["forked"].tolist()[3:] == pytest.approx([6.5, 6.5], abs=EXACT)


def test_jobs_put_back_go_to_the_head_the_last_one_first(make: Make) -> None:
    """_put_back appends each to the left, so two jobs of dying children change places."""
    result = simulate(
        make([1.0] * 3 + [6.0, 6.2, 6.2], ("io_s", 0.5), autoscale=[3, 0], keepalive=4.0,
             costs={"child_exit_s": 0.5, "fork_s": 0.05})
    )  # fmt: skip
    # children 1 and 2 die; the jobs of 6.0 and 6.2 were written to them; 4 takes the place of 1
    assert result.tasks["child"].tolist()[3:] == [5, 4, 3]


def test_reaping_a_child_blocks_the_supervisor(make: Make) -> None:
    # process_flush_queues waits for silence, twice (celery/concurrency/asynpool.py)
    result = simulate(
        make([1.0, 1.0, 6.0, 6.2], ("io_s", 0.1), autoscale=[2, 1], keepalive=4.0,
             costs={"child_exit_s": 0.19, "reap_s": 0.5})
    )  # fmt: skip
    # the shrink is at 6.0, the exit at 6.19, the reap lasts until 6.69
    assert column(result, "received")[3] == pytest.approx(6.69, abs=EXACT)


@pytest.mark.parametrize(("cores", "gone"), [(64, 6.1), (1, 6.3)])
def test_exiting_children_share_the_cores(cores: int, gone: float, make: Make) -> None:
    """Freeing a process's memory is work of the kernel, on a core (validation/costs)."""
    result = simulate(
        make([1.0] * 4 + [6.0], ("io_s", 0.4), autoscale=[4, 0], keepalive=3.0, cores=cores,
             costs={"child_exit_s": 0.1})
    )  # fmt: skip
    assert events(result)[4:] == [(6.0, -3)]
    assert result.children["exited"][:3].tolist() == pytest.approx([gone] * 3, abs=EXACT)


def test_a_job_may_be_written_to_a_dying_child_and_is_put_back_when_it_is_reaped(
    make: Make,
) -> None:
    # The terminated child 1 is up and not busy as far as the supervisor knows, so the message that
    # caused the shrink is written to it; it is still reserved when the next one is received.
    result = simulate(
        make([1.0, 1.0, 6.0, 6.3], ("io_s", 0.1), autoscale=[2, 1], keepalive=4.0,
             costs={"child_exit_s": 0.5})
    )  # fmt: skip
    assert events(result) == [(1.0, 1), (6.0, -1), (6.3, 1)]
    assert result.tasks["child"].tolist() == [1, 2, 2, 2]
    assert column(result, "started")[2] == pytest.approx(6.5, abs=EXACT)


# --- shrinking (billiard Pool.shrink) ---


def test_shrink_terminates_the_oldest_inactive_children_first(make: Make) -> None:
    result = simulate(
        make([1.0] * 4, ("io_s", 0.5), autoscale=[4, 1], keepalive=4.0, horizon_s=9.0)
    )
    gone = result.children[~np.isnan(result.children["terminated"])]
    assert gone["number"].tolist() == [1, 2, 3]


def test_shrink_skips_children_that_work(make: Make) -> None:
    # child 1 runs the long task: children 2 and 3 go
    result = simulate(
        make([1.0] * 4, profiles={"long": {"steps": [{"io_s": 20.0}]},
                                  "short": {"steps": [{"io_s": 0.5}]}},
             pattern=["long", "short", "short", "short"],
             autoscale=[4, 0], keepalive=4.0, horizon_s=9.0)
    )  # fmt: skip
    assert events(result)[4:] == [(8.0, -3)]
    gone = result.children[~np.isnan(result.children["terminated"])]
    assert gone["number"].tolist() == [2, 3, 4]


def test_all_busy_nothing_shrinks(make: Make) -> None:
    result = simulate(make([1.0] * 2, ("io_s", 50.0), autoscale=[2, 0], keepalive=4.0))
    assert events(result) == [(1.0, 1), (1.0, 1)]


def test_a_partial_shrink_lowers_the_target_by_the_children_it_found(make: Make) -> None:
    """Only children without accepted jobs can go; the log still says how many were wanted."""
    # Pool.shrink on its own: three children, two with a job accepted, asked for two
    from celerysim.engine.pool.prefork import PreforkPool

    pool = bare_pool(make, PreforkPool, processes=3)
    children = pool._children
    children[0].active = children[2].active = 1
    pool.shrink(2)
    assert pool.num_processes == 2
    terminated = pool._recorder.tables().children["terminated"]
    assert np.flatnonzero(~np.isnan(terminated)).tolist() == [1]


def bare_pool(make: Make, cls: Any, processes: int) -> Any:
    import simpy

    from celerysim.engine.machine import Machine
    from celerysim.engine.recorder import Recorder
    from celerysim.engine.streams import Streams
    from celerysim.engine.supervisor import Supervisor

    class Nobody:
        def on_accepted(self, job: Any) -> None: ...
        def on_done(self, job: Any) -> None: ...
        def on_lost(self, job: Any) -> None: ...

    env = simpy.Environment()
    scenario = make([1.0], concurrency=processes)
    pool = cls(env, scenario, Machine(env, 8), Supervisor(env), Recorder(env), Nobody(), Streams(1))
    env.run(until=0.5)
    return pool


# --- acknowledgements and the prefetch window ---


def test_early_acks_let_twice_the_pool_be_reserved(make: Make) -> None:
    # acked when accepted: 2 run, 2 more fill the window, 2 wait in the broker
    result = simulate(make([1.0] * 6, ("io_s", 1.0), concurrency=2, prefetch_multiplier=1))
    reserved = result.level(Level.RESERVED)[1]
    assert reserved.max() == 4
    assert column(result, "received") == pytest.approx([1.0] * 4 + [2.0] * 2, abs=EXACT)


def test_late_acks_cap_running_and_waiting_together(make: Make) -> None:
    result = simulate(
        make([1.0] * 6, ("io_s", 1.0), concurrency=2, prefetch_multiplier=1, task_acks_late=True)
    )
    assert result.level(Level.RESERVED)[1].max() == 2
    assert column(result, "received") == pytest.approx([1, 1, 2, 2, 3, 3], abs=EXACT)


def test_the_window_is_the_pools_maximum_times_the_multiplier(make: Make) -> None:
    result = simulate(
        make([1.0] * 20, ("io_s", 1.0), autoscale=[3, 0], prefetch_multiplier=2,
             task_acks_late=True, horizon_s=1.5)
    )  # fmt: skip
    assert result.level(Level.UNACKED)[1].max() == 6
    assert result.count(Outcome.QUEUED) == 14


def test_a_multiplier_of_zero_takes_everything(make: Make) -> None:
    result = simulate(
        make([1.0] * 50, ("io_s", 1.0), concurrency=2, prefetch_multiplier=0, horizon_s=1.5)
    )
    assert result.count(Outcome.QUEUED) == 0
    assert result.count(Outcome.RUNNING) == 2


def test_results_are_handled_before_a_later_message(make: Make) -> None:
    """The supervisor does one thing at a time, in order of arrival."""
    result = simulate(
        make([1.0, 2.05], ("io_s", 1.0), concurrency=1, task_acks_late=True,
             prefetch_multiplier=2, costs={"result_s": 0.2, "receive_s": 0.1})
    )  # fmt: skip
    # received at 1.1, ends at 2.1; the message of 2.05 is received by 2.15; result read by 2.35
    assert column(result, "received") == pytest.approx([1.1, 2.15], abs=EXACT)
    assert column(result, "started") == pytest.approx([1.1, 2.35], abs=EXACT)


# --- dispatch ---


def test_fair_dispatch_never_writes_to_a_busy_child(make: Make) -> None:
    profiles = {"long": {"steps": [{"io_s": 9.0}]}, "short": {"steps": [{"io_s": 1.0}]}}
    result = simulate(
        make([1.0] * 4, profiles=profiles, pattern=["long", "short", "short", "short"],
             concurrency=2)
    )  # fmt: skip
    assert column(result, "started") == pytest.approx([1.0, 1.0, 2.0, 3.0], abs=EXACT)


def test_fast_dispatch_lets_short_tasks_wait_behind_a_long_one(make: Make) -> None:
    # The semaphore lets two jobs in at a time. When the short one is done the next is written to
    # the first pipe in turn: the one whose child still runs the long task.
    profiles = {"long": {"steps": [{"io_s": 9.0}]}, "short": {"steps": [{"io_s": 1.0}]}}
    result = simulate(
        make([1.0] * 3, profiles=profiles, pattern=["long", "short", "short"],
             concurrency=2, optimization="fast")
    )  # fmt: skip
    assert column(result, "started") == pytest.approx([1.0, 1.0, 10.0], abs=EXACT)


def test_jobs_are_started_in_the_order_they_were_received(make: Make) -> None:
    result = simulate(make([1.0] * 9, ("io_s", 1.0), concurrency=2))
    assert column(result, "started") == sorted(column(result, "started"))


# --- losing a task at scale-down ---


def losing(make: Make, **worker: Any) -> Scenario:
    """Three processes; at 9.0 a job is written to child 1 while the next message arrives.

    The next message finds the keepalive passed and two tasks reserved: the pool shrinks by one,
    the oldest child without an *accepted* job, as far as the supervisor knows. Child 1 has read
    the job and begun, but its message is read only after the shrink.
    """
    return make(
        [1.0, 1.0, 1.0, 9.0, 9.005],
        ("io_s", 0.5),
        autoscale=[3, 0],
        keepalive=8.0,
        costs={"receive_s": 0.001, "dispatch_s": 0.01, "child_exit_s": 0.1},
        **worker,
    )


def test_a_job_written_but_not_yet_accepted_does_not_protect_its_child(make: Make) -> None:
    result = simulate(losing(make))
    assert events(result)[3:] == [(9.012, -1)]
    assert result.tasks["outcome"].tolist() == [3, 3, 3, Outcome.LOST, 3]
    assert result.tasks["child"][3] == 1
    # declared lost when its exit is reaped: SIGTERM at 9.012, the second one after the other job is
    # written at 9.022, then 0.1 s; not after the ten seconds of billiard's own pool
    assert column(result, "finished")[3] == pytest.approx(9.122, abs=EXACT)


def test_with_late_acks_a_lost_task_is_acked_all_the_same(make: Make) -> None:
    result = simulate(losing(make, task_acks_late=True))
    assert result.count(Outcome.LOST) == 1
    assert result.tasks["deliveries"].tolist() == [1, 1, 1, 1, 1]


def test_with_late_acks_and_reject_on_worker_lost_it_is_requeued_and_done(make: Make) -> None:
    result = simulate(losing(make, task_acks_late=True, task_reject_on_worker_lost=True))
    assert result.count(Outcome.LOST) == 0
    assert result.tasks["deliveries"].tolist() == [1, 1, 1, 2, 1]
    assert result.count(Outcome.SUCCEEDED) == 5


def test_reject_on_worker_lost_without_late_acks_does_nothing(make: Make) -> None:
    assert simulate(losing(make, task_reject_on_worker_lost=True)).count(Outcome.LOST) == 1


def test_a_job_its_child_has_not_read_is_put_back_and_done_elsewhere(make: Make) -> None:
    # the child needs 0.05 s to read the job, and is terminated before
    scenario = make(
        [1.0, 1.0, 1.0, 9.0, 9.005], ("io_s", 0.5), autoscale=[3, 0], keepalive=8.0,
        costs={"dispatch_s": 0.01, "child_accept_s": 0.05, "child_exit_s": 0.1},
    )  # fmt: skip
    result = simulate(scenario)
    assert result.count(Outcome.LOST) == 0
    assert result.tasks["child"][3] != 1
    # TERM at 9.01; its message is read after the other job is written, at 9.02; reaped at 9.12 and
    # put back; written by 9.13, accepted by 9.18
    assert column(result, "started")[3] == pytest.approx(9.18, abs=EXACT)


def test_an_accepted_job_protects_its_child(make: Make) -> None:
    result = simulate(
        make([1.0, 1.0, 1.0, 9.0, 9.2], ("io_s", 0.5), autoscale=[3, 0], keepalive=8.1,
             costs={"dispatch_s": 0.01, "child_exit_s": 0.1})
    )  # fmt: skip
    assert events(result)[3:] == [(9.2, -1)]
    assert result.count(Outcome.LOST) == 0


# --- children that leave ---


def test_a_child_leaves_after_max_tasks_per_child_and_is_replaced(make: Make) -> None:
    result = simulate(
        make([1.0, 3.0, 5.0, 7.0, 9.0], ("io_s", 0.5), concurrency=1, max_tasks_per_child=2)
    )
    assert result.children["tasks"].tolist() == [2, 2, 1]
    assert column(result, "child") == [1, 1, 2, 2, 3]


def test_a_child_leaves_above_max_memory_per_child_after_the_task(make: Make) -> None:
    profiles = {"leaky": {"steps": [{"io_s": 0.5}], "rss_growth_kib": 400.0}}
    result = simulate(
        make([1.0, 3.0, 5.0, 7.0], profiles=profiles, concurrency=1, max_memory_per_child=1800,
             costs={"child_rss_kib": 1000.0})
    )  # fmt: skip
    # 1400, 1800 (not above), 2200: gone after the third
    assert column(result, "child") == [1, 1, 1, 2]


def test_a_recycled_child_waits_a_tenth_of_a_second_for_its_result_to_be_read(make: Make) -> None:
    result = simulate(
        make([1.0, 2.0], ("io_s", 0.5), concurrency=1, max_tasks_per_child=1,
             costs={"result_s": 0.001})
    )  # fmt: skip
    # Worker._ensure_messages_consumed looks at once, then every 0.1 s
    assert result.children["terminated"][0] == pytest.approx(1.6, abs=EXACT)


def test_a_dying_child_waits_for_the_supervisors_second_signal(make: Make) -> None:
    # the supervisor is busy forking for 0.3 s, so the exit of the terminated child is that late
    result = simulate(
        make([1.0, 1.0, 6.0, 6.0], ("io_s", 0.1), autoscale=[2, 0], keepalive=4.0,
             costs={"child_exit_s": 0.05, "receive_s": 0.3})
    )  # fmt: skip
    shrink = result.scale_events[2]
    assert shrink["change"] == -1
    # TERM at 6.3; DEATH is read after the next message is received, at 6.6; then 0.05 s
    assert result.children["terminated"][0] == pytest.approx(6.3, abs=EXACT)
    assert result.children["exited"][0] == pytest.approx(6.65, abs=EXACT)


def test_a_missed_exit_leaves_the_child_until_something_else_maintains_the_pool(
    make: Make,
) -> None:
    # the exit at 6.2 is seen before the kernel lets the child be reaped; the 5 s timer does it
    times = [1.0, 1.0, 6.0]
    seen, missed = (
        simulate(
            make(times, ("io_s", 0.1), autoscale=[2, 1], keepalive=4.0, horizon_s=12.0,
                 costs={"child_exit_s": 0.2, "exit_missed_share": share})
        )
        for share in (0.0, 1.0)
    )  # fmt: skip
    assert seen.children["exited"][0] == pytest.approx(6.2, abs=EXACT)
    assert missed.children["exited"][0] == pytest.approx(10.0, abs=EXACT)
    # the message that caused the shrink had been written to the dying child: it waits as long
    assert column(missed, "started")[2] == pytest.approx(10.0, abs=EXACT)


# --- time limits ---


def test_a_soft_time_limit_ends_the_task_and_keeps_the_child(make: Make) -> None:
    result = simulate(make([1.0, 5.0], ("io_s", 3.0), concurrency=1, soft_time_limit=2.0))
    assert result.tasks["outcome"].tolist() == [Outcome.FAILED] * 2
    assert column(result, "finished") == pytest.approx([3.0, 7.0], abs=EXACT)
    assert result.forks == 1


def test_a_hard_time_limit_kills_the_child_and_blocks_the_supervisor_meanwhile(
    make: Make,
) -> None:
    result = simulate(
        make([1.0, 3.05], ("io_s", 9.0), concurrency=1, prefetch_multiplier=2, time_limit=2.0)
    )
    assert result.tasks["outcome"].tolist() == [Outcome.FAILED] * 2
    assert column(result, "finished")[0] == pytest.approx(3.0, abs=EXACT)
    # TimeoutHandler._trywaitkill waits 0.1 s between SIGTERM and SIGKILL
    assert column(result, "received")[1] == pytest.approx(3.1, abs=EXACT)
    assert result.forks >= 2


# --- the first turn of the loop ---


def test_the_first_turn_blocks_a_tenth_of_a_second_when_no_message_waits(make: Make) -> None:
    # asynloop: hub.call_soon(_quick_drain); a result cannot be read meanwhile, nor a child's "up"
    result = simulate(make([0.5], concurrency=1))
    assert result.children["up"][0] == pytest.approx(0.1, abs=EXACT)


def test_the_first_turn_reads_a_message_that_waits(make: Make) -> None:
    result = simulate(make([0.04], concurrency=1))
    assert column(result, "received") == pytest.approx([0.04], abs=EXACT)


def test_messages_waiting_at_the_start_are_received_before_the_loop_reads_any_child(
    make: Make,
) -> None:
    """Four messages wait for --autoscale=4,2: seen in real logs, 0.15 s from received to started.

    ``update_qos`` receives them all, forks included; then ``_quick_drain`` finds no frame and
    blocks; only then the children's "up" is read and jobs are written.
    """
    result = simulate(
        make([0.0] * 4, autoscale=[4, 2], prefetch_multiplier=1,
             costs={"fork_s": 0.025, "deliver_s": 0.001})
    )  # fmt: skip
    assert column(result, "received") == pytest.approx([0.001] * 3 + [0.026], abs=EXACT)
    assert column(result, "started") == pytest.approx([0.151] * 4, abs=EXACT)


# --- the first task of a kind in a child ---

LAZY = {
    "a": {"steps": [{"io_s": 0.5}], "first_in_child_cpu_s": 0.25},
    "b": {"steps": [{"io_s": 0.5}]},
}


def test_the_first_of_a_kind_in_each_child_pays_once(make: Make) -> None:
    # children 1 and 2 both meet "a" first at 1; at 3 they know it; "b" costs nothing
    times = [1.0, 1.0, 3.0, 3.0, 5.0]
    pattern = ["a", "a", "a", "a", "b"]
    result = simulate(make(times, profiles=LAZY, pattern=pattern, concurrency=2))
    assert column(result, "finished") == pytest.approx([1.75, 1.75, 3.5, 3.5, 5.5], abs=EXACT)


def test_a_child_forked_later_pays_too(make: Make) -> None:
    result = simulate(
        make([1.0, 3.0, 5.0], profiles=LAZY, pattern=["a"], concurrency=1, max_tasks_per_child=2)
    )
    assert column(result, "finished") == pytest.approx([1.75, 3.5, 5.75], abs=EXACT)


# --- the order in which children are written to ---


@pytest.mark.parametrize(
    ("order", "children"), [(None, [1, 2, 3]), ([3, 1, 2], [3, 1, 2]), ([2, 1], [2, 1, 3])]
)
def test_idle_children_are_written_to_in_the_order_of_their_pipes(
    order: list[int] | None, children: list[int], make: Make
) -> None:
    given = {} if order is None else {"write_order": order}
    result = simulate(make([1.0, 1.0, 1.0], ("io_s", 1.0), concurrency=3, **given))
    assert result.tasks["child"].tolist() == children


def test_a_place_keeps_its_pipe_when_its_child_is_new(make: Make) -> None:
    # child 2, in the first place to be written to, leaves after its task; 3 takes its place
    result = simulate(
        make([1.0, 3.0], ("io_s", 0.5), concurrency=2, write_order=[2, 1], max_tasks_per_child=1)
    )
    assert result.tasks["child"].tolist() == [2, 3]


# --- what a task leaves behind in its child ---

SLOWING = {
    "m": {
        "steps": [{"io_s": 0.5}],
        "aftermath": {"factor": 2.0, "share": 0.0, "share_after_idle": 1.0, "idle_s": 2.0},
    },
    "c": {"steps": [{"cpu_s": 0.5}]},
    "s": {"steps": [{"io_s": 0.25}, {"cpu_s": 0.5}]},
}


def durations(result: Result) -> list[float]:
    return (result.tasks["finished"] - result.tasks["started"]).tolist()


def test_what_computes_first_thing_after_idleness_is_slow_once_there_is_an_aftermath(
    make: Make,
) -> None:
    # idle before the third and the last "c" and before "s", which sleeps first; the one at 9.2 not
    pattern = ["c", "m", "c", "c", "s", "m", "c"]
    times = [1.0, 5.0, 8.5, 9.2, 13.0, 17.0, 20.0]
    result = simulate(make(times, profiles=SLOWING, pattern=pattern, concurrency=1))
    expected = [0.5, 0.5, 1.0, 0.5, 0.75, 0.5, 1.0]
    assert durations(result) == pytest.approx(expected, abs=1e-6)


def test_a_new_child_has_no_aftermath(make: Make) -> None:
    always = SLOWING["m"] | {"aftermath": {"factor": 2.0, "share": 1.0, "share_after_idle": 1.0}}
    result = simulate(
        make([1.0, 2.0, 4.0, 6.0], profiles=SLOWING | {"m": always}, pattern=["m", "c", "c", "c"],
             concurrency=1, max_tasks_per_child=2)
    )  # fmt: skip
    assert durations(result) == pytest.approx([0.5, 1.0, 0.5, 0.5], abs=1e-6)


def test_a_share_of_the_tasks_is_slow_the_same_ones_in_any_process(make: Make) -> None:
    some = SLOWING["m"] | {"aftermath": {"factor": 2.0, "share": 0.25, "share_after_idle": 1.0}}
    profiles = SLOWING | {"m": some}
    times = [1.0, 1.0] + [float(i) for i in range(3, 403)]
    pattern = ["m", "m"] + ["c"] * 400
    runs = [  # two children in turns, and one process that does everything
        simulate(make(times, profiles=profiles, pattern=pattern, concurrency=2, **worker))
        for worker in ({"write_order": [2, 1]}, {"pool": "threads"})
    ]
    slow = [[seconds > 0.75 for seconds in durations(run)] for run in runs]
    assert slow[0] == slow[1]
    assert sum(slow[0]) == pytest.approx(100, abs=35)  # four standard deviations


# --- cores ---


def test_children_share_the_cores(make: Make) -> None:
    result = simulate(make([1.0] * 4, ("cpu_s", 1.0), concurrency=4, cores=2))
    assert column(result, "finished") == pytest.approx([3.0] * 4, abs=1e-6)


def test_the_supervisors_work_shares_the_cores_too(make: Make) -> None:
    result = simulate(
        make([1.0, 1.5], ("cpu_s", 1.0), concurrency=2, cores=1, costs={"receive_s": 0.1})
    )
    # the second message's 0.1 s of receiving runs beside a task: 0.2 s on one core
    assert column(result, "received") == pytest.approx([1.1, 1.7], abs=1e-6)


# --- reproducibility ---


def test_same_scenario_and_seed_same_result_to_the_byte(make: Make) -> None:
    from celerysim import load_scenario

    scenario = load_scenario("puzzle", ["producer.publish_s={kind='uniform', low=0.04, high=0.06}"])
    one, two = simulate(scenario), simulate(scenario)
    for name in ("tasks", "scale_events", "children", "levels"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    other = simulate(scenario, replication=1)
    assert other.tasks.tobytes() != one.tasks.tobytes()
