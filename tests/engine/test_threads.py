"""The thread worker, rule by rule, with exact times; every cost is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simpy

from celerysim import Scenario, simulate
from celerysim.engine import gossip, interpreter_lock
from celerysim.engine.streams import Streams
from celerysim.engine.supervisor import Activity
from celerysim.history import Level, Outcome

Make = Callable[..., Scenario]
ALONE = {"gossip": False, "heartbeat": False}


def column(result: Any, name: str) -> list[float]:
    return [round(float(x), 6) for x in result.tasks[name]]


def test_the_lock_goes_round_every_five_milliseconds(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter_lock, "WAKE_UP_S", 0.0)
    # 0-5 A, 5-10 B, 10-13 A and done, then B alone: until 13 + 3 ms
    result = simulate(make([1.0, 1.0], ("cpu_s", 0.008), pool="threads", cores=64))
    assert column(result, "finished") == [1.013, 1.016]
    assert result.busy_core_s == pytest.approx(0.016)


def test_a_moment_s_work_waits_five_milliseconds_for_a_thread_that_computes(make: Make) -> None:
    profiles = {
        "computes": {"steps": [{"cpu_s": 0.1}]},
        "moment": {"steps": [{"cpu_s": 0.0001}]},
    }
    load = make([1.0, 1.002], profiles=profiles, pattern=["computes", "moment"], pool="threads")
    assert column(simulate(load), "finished") == [1.10016, 1.0071]  # and 60 us to wake up


def test_the_lock_often_goes_back_to_the_thread_that_had_it_before(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four threads that compute for 0.1 s: always to and fro ends two of them early."""
    load = make([1.0] * 4, ("cpu_s", 0.1), pool="threads", concurrency=4)
    monkeypatch.setattr(interpreter_lock, "WAKE_UP_S", 0.0)
    monkeypatch.setattr(interpreter_lock, "BACK_SHARE", 1.0)
    monkeypatch.setattr(interpreter_lock, "BACK_AGAIN_SHARE", 1.0)
    ends = sorted(column(simulate(load), "finished"))
    assert ends[1] <= 1.22
    assert ends[3] == 1.4
    monkeypatch.setattr(interpreter_lock, "BACK_SHARE", 0.0)
    monkeypatch.setattr(interpreter_lock, "BACK_AGAIN_SHARE", 0.0)
    assert sorted(column(simulate(load), "finished"))[1] > 1.3


def test_who_lets_the_lock_go_mostly_takes_it_back(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receiving three messages while another thread computes: in one turn, or each in one."""
    profiles = {"computes": {"steps": [{"cpu_s": 9.0}]}, "waits": {"steps": [{"io_s": 1.0}]}}
    load = make(
        [1.0, 2.0, 2.0, 2.0],
        profiles=profiles,
        pattern=["computes", "waits", "waits", "waits"],
        pool="threads",
        costs={"receive_s": 0.001},
    )
    monkeypatch.setattr(interpreter_lock, "LOST_SHARE", 0.0)
    kept = column(simulate(load), "received")[1:]
    monkeypatch.setattr(interpreter_lock, "LOST_SHARE", 1.0)
    lost = column(simulate(load), "received")[1:]
    assert np.diff(kept).tolist() == pytest.approx([0.001, 0.001])
    assert np.diff(lost).tolist() == pytest.approx([0.006, 0.006])


@pytest.mark.parametrize("start", [0.1, 0.5, 0.8])
def test_wanting_the_lock_in_the_moment_its_holder_ends(start: float) -> None:
    """The holder's rest is a last bit below zero then, at each of these starts."""
    env = simpy.Environment()
    lock = interpreter_lock.InterpreterLock(env, Streams(1, 0))
    ends = []

    def compute(begin: float) -> Activity:
        yield env.timeout(begin)
        yield lock.work(0.3)
        ends.append(env.now)

    env.process(compute(start + 0.3))  # created first: runs before the holder's alarm
    env.process(compute(start))
    env.run()
    assert ends == pytest.approx([start + 0.3, start + 0.6], abs=0.0001)


def test_threads_wait_beside_each_other(make: Make) -> None:
    steps = {"waits": {"steps": [{"io_s": 1.0}]}, "blocks": {"steps": [{"block_s": 1.0}]}}
    result = simulate(make([1.0, 1.0], profiles=steps, pattern=["waits", "blocks"], pool="threads"))
    assert column(result, "finished") == [2.0, 2.0]


def test_the_first_of_a_kind_pays_once_in_the_process(make: Make) -> None:
    lazy = {"a": {"steps": [{"io_s": 0.5}], "first_in_child_cpu_s": 0.25}}
    result = simulate(make([1.0, 1.0, 3.0], profiles=lazy, pool="threads", concurrency=2))
    assert column(result, "finished") == [1.75, 1.5, 3.5]


def test_the_worker_s_own_process_has_an_aftermath_too(make: Make) -> None:
    profiles = {
        "m": {
            "steps": [{"io_s": 1.0}],
            "aftermath": {"factor": 2.0, "share": 0.0, "share_after_idle": 1.0, "idle_s": 2.0},
        },
        "c": {"steps": [{"cpu_s": 0.5}]},
    }
    # 2.0: "m" is running, so the process is not idle; 6.0: it has been for 3.5 s
    times, pattern = [1.0, 1.5, 6.0], ["m", "c", "c"]
    result = simulate(
        make(times, profiles=profiles, pattern=pattern, pool="threads", concurrency=2)
    )
    assert column(result, "finished") == pytest.approx([2.0, 2.0, 7.0], abs=1e-6)


def test_jobs_queue_without_limit_and_start_in_order(make: Make) -> None:
    result = simulate(
        make([1.0] * 5, ("io_s", 1.0), pool="threads", concurrency=2, prefetch_multiplier=0)
    )
    assert column(result, "received") == [1.0] * 5
    assert column(result, "started") == [1.0, 1.0, 2.0, 2.0, 3.0]


def test_a_threads_ack_does_not_wake_the_poller(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # done at 1.5; the next turn of the loop is that of the heartbeat at 2.0
    late = {"concurrency": 1, "prefetch_multiplier": 1, "task_acks_late": True}
    monkeypatch.setattr(gossip, "HEART_FIRST_SHARE", 0.0)
    result = simulate(make([1.0, 1.1], ("io_s", 0.5), pool="threads", gossip=False, **late))
    assert column(result, "received") == [1.0, 2.0]
    # Heart was started before Mingle waited its second: heartbeats at 0.99, 2.99, ...
    monkeypatch.setattr(gossip, "HEART_FIRST_SHARE", 1.0)
    result = simulate(make([1.0, 1.1], ("io_s", 0.5), pool="threads", gossip=False, **late))
    assert column(result, "received") == [1.0, 2.99]
    # without any timer before, poll gives up after ten seconds
    result = simulate(make([1.0, 1.1], ("io_s", 0.5), pool="threads", **ALONE, **late))
    assert column(result, "received") == [1.0, 11.0]


def test_without_gossip_and_heartbeat_poll_and_the_amqp_heartbeat_let_acks_out(make: Make) -> None:
    """Poll gives up after ten seconds; the connection is looked at every 20 (60 over 3.0)."""
    late = {"concurrency": 1, "prefetch_multiplier": 1, "task_acks_late": True}
    result = simulate(make([1.0] * 5, ("io_s", 0.5), pool="threads", **ALONE, **late))
    # recorded: 1.00, 11.02, 20.01, then 28.99 (a frame of the broker's), 39.00, 40.01, 50.02
    assert column(result, "received") == [1.0, 11.0, 20.0, 30.0, 40.0]


@pytest.mark.parametrize(
    ("options", "per_s"), [(ALONE, 0.2), ({}, 1.2), ({"idealised": True}, 4.0)]
)
def test_two_slots_of_half_seconds_with_late_acks(
    make: Make, options: dict[str, bool], per_s: float
) -> None:
    # measured with Celery: 0.2 without gossip, mingle and heartbeat, about 1.2 with the defaults
    result = simulate(
        make(
            [0.2] * 500,
            ("io_s", 0.5),
            pool="threads",
            concurrency=2,
            prefetch_multiplier=1,
            task_acks_late=True,
            horizon_s=110.0,
            **options,
        )
    )
    done = np.count_nonzero(result.tasks["finished"] > 10.0)
    assert done / 100.0 == pytest.approx(per_s, rel=0.02)


def test_autoscale_ends_the_worker_at_the_first_scale_up(make: Make) -> None:
    # no grow in this pool: the second message kills the worker, the first one's thread goes on
    scenario = make(
        [1.0, 1.0, 3.0], ("io_s", 0.5), pool="threads", autoscale=[2, 1], horizon_s=10.0
    )
    result = simulate(scenario)
    assert result.scale_events["change"].tolist() == [1]
    assert result.tasks["outcome"].tolist() == [
        Outcome.SUCCEEDED,
        Outcome.RESERVED,
        Outcome.QUEUED,
    ]
    times, values = result.level(Level.PROCESSES)
    assert (times.tolist(), values.tolist()) == ([0.0, 1.0], [1, 0])


def test_a_run_without_horizon_ends_with_the_worker(make: Make) -> None:
    result = simulate(make([1.0, 1.0, 3.0], ("io_s", 0.5), pool="threads", autoscale=[2, 1]))
    assert result.end == 1.0


@pytest.mark.parametrize(
    "limits", [{"time_limit": 1.0}, {"soft_time_limit": 1.0}, {"max_tasks_per_child": 1}]
)
def test_limits_do_nothing(make: Make, limits: dict[str, Any]) -> None:
    result = simulate(make([1.0, 1.0], ("io_s", 3.0), pool="threads", **limits))
    assert column(result, "finished") == [4.0, 4.0]
