"""The green workers, rule by rule, with exact times; and the published runs predicted.

Every cost is zero unless a test gives it. Times are whole milliseconds, to which
``epoll`` rounds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

from celerysim import Scenario, simulate
from celerysim.engine import gossip
from celerysim.engine.broker import Broker
from celerysim.engine.hub import EventletHub, GeventHub, Hub
from celerysim.engine.job import Job
from celerysim.engine.machine import Machine
from celerysim.engine.supervisor import Activity
from celerysim.history import Level, Outcome
from celerysim.scenario import make_scenario, override

Make = Callable[..., Scenario]
ALONE = {"gossip": False, "heartbeat": False}
EXACT = 1e-9

both = pytest.mark.parametrize("pool", ["gevent", "eventlet"])


def column(result: Any, name: str) -> list[float]:
    return [round(float(x), 6) for x in result.tasks[name]]


def events(result: Any) -> list[tuple[float, int, int]]:
    rows = result.scale_events[["time", "change", "processes"]].tolist()
    return [(round(t, 6), n, p) for t, n, p in rows]


# --- one core, which a greenlet keeps until it waits ---


@both
def test_a_cpu_step_delays_a_due_timer_by_exactly_its_length(make: Make, pool: str) -> None:
    # both sleep until 2.0; the first then computes for 0.7 s
    result = simulate(make([1.0, 1.0], ("io_s", 1.0), ("cpu_s", 0.7), pool=pool))
    assert column(result, "finished") == [2.7, 3.4]


@both
def test_nothing_is_received_while_a_task_computes(make: Make, pool: str) -> None:
    result = simulate(make([1.0, 1.5, 1.6], ("cpu_s", 1.0), pool=pool))
    assert column(result, "received") == [1.0, 2.0, 2.0]
    assert column(result, "started") == [1.0, 2.0, 3.0]


@both
def test_a_blocking_call_holds_everything_without_cpu(make: Make, pool: str) -> None:
    result = simulate(make([1.0, 1.1], ("block_s", 1.0), pool=pool))
    assert column(result, "finished") == [2.0, 3.0]
    assert result.busy_core_s == 0.0


@both
def test_waiting_tasks_overlap(make: Make, pool: str) -> None:
    result = simulate(make([1.0, 1.0, 1.0], ("io_s", 1.0), pool=pool))
    assert column(result, "finished") == [2.0, 2.0, 2.0]
    assert len(result.children) == 0


# --- the order of a hub (validation/green_hubs/hub_order.py shows the same with the real ones) ---


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (GeventHub, ["new", "early", "late", "reader:data"]),
        (EventletHub, ["reader:data", "early", "late", "new"]),
    ],
)
def test_what_became_ready_meanwhile_runs_in_the_librarys_order(
    make: Make, kind: type[Hub], expected: list[str]
) -> None:
    env = simpy.Environment()
    hub = kind(env, make([1.0], pool="gevent"), Machine(env, 1))
    order: list[str] = []

    def sleeper(name: str, seconds: float) -> Activity:
        yield from hub.sleep(seconds)
        order.append(name)

    def reader() -> Activity:
        readable = yield from hub.wait_readable(0.025)
        order.append("reader:data" if readable else "reader:time-out")

    def computing() -> Activity:
        yield from hub.sleep(0.01)
        yield env.timeout(0.04)
        hub.notify()
        hub.spawn(new())

    def new() -> Activity:
        order.append("new")
        yield from ()

    for greenlet in (sleeper("late", 0.03), sleeper("early", 0.02), reader(), computing()):
        hub.spawn(greenlet)
    env.process(hub.run())
    env.run(until=1.0)
    assert order == expected


@pytest.mark.parametrize("kind", [GeventHub, EventletHub])
def test_a_timer_runs_at_the_next_whole_millisecond(make: Make, kind: type[Hub]) -> None:
    env = simpy.Environment()
    hub = kind(env, make([1.0], pool="gevent"), Machine(env, 1))
    woken: list[float] = []

    def sleeper() -> Activity:
        yield from hub.sleep(0.0105)
        woken.append(env.now)

    hub.spawn(sleeper())
    env.process(hub.run())
    env.run(until=1.0)
    assert woken == pytest.approx([0.011], abs=EXACT)


@pytest.mark.parametrize(("kind", "cpu_s"), [("epoll", 0.0), ("poll", 0.2 + 0.1), ("select", 0.3)])
def test_a_turn_of_the_hub_costs_more_the_more_wait_except_with_epoll(
    make: Make, kind: str, cpu_s: float
) -> None:
    # the timer at 1.5 ends one task's sleep while two wait, that at 2.0 the other's while one does;
    # the turns of the two messages find nobody waiting
    profiles = {"short": {"steps": [{"io_s": 0.5}]}, "long": {"steps": [{"io_s": 1.0}]}}
    scenario = make(
        [1.0, 1.0],
        profiles=profiles,
        pattern=["short", "long"],
        pool="gevent",
        hub=kind,
        costs={"hub_waiting_s": 0.1},
        **ALONE,
    )
    assert simulate(scenario).busy_core_s == pytest.approx(cpu_s)


@both
def test_the_backend_is_made_anew_within_each_task(make: Make, pool: str) -> None:
    costs = {"task_start_s": 0.001, "backend_s": 0.01, "task_end_s": 0.1}
    result = simulate(make([1.0, 1.0], ("cpu_s", 1.0), pool=pool, costs=costs))
    assert column(result, "started") == [1.001, 2.112]
    assert column(result, "finished") == [2.011, 3.122]


# --- acknowledgements wait for the drain (worker/loops.py: synloop) ---


@both
@pytest.mark.parametrize("late", [True, False])
def test_an_ack_waits_for_the_drains_time_out(make: Make, pool: str, late: bool) -> None:
    result = simulate(
        make(
            [1.0, 1.1],
            ("io_s", 0.5),
            pool=pool,
            concurrency=1,
            prefetch_multiplier=1,
            task_acks_late=late,
            **ALONE,
        )
    )
    assert column(result, "received") == [1.0, 3.0]


@both
def test_a_message_lets_the_acks_out(make: Make, pool: str) -> None:
    # window of two: the message at 2.0 wakes the drain, and the ack of the first lets the third in
    result = simulate(
        make(
            [1.0, 2.0, 2.1],
            ("io_s", 0.5),
            pool=pool,
            concurrency=2,
            prefetch_multiplier=1,
            task_acks_late=True,
            **ALONE,
        )
    )
    assert column(result, "received") == [1.0, 2.0, 2.1]


@both
def test_pending_acks_go_out_newest_first(
    make: Make, pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    acked: list[int] = []
    ack = Broker.ack

    def spy(broker: Broker, job: Job) -> None:
        acked.append(job.index)
        ack(broker, job)

    monkeypatch.setattr(Broker, "ack", spy)
    profiles = {str(i): {"steps": [{"io_s": 0.1 * (i + 1)}]} for i in range(3)}
    simulate(
        make(
            [1.0] * 3,
            profiles=profiles,
            pattern=["0", "1", "2"],
            pool=pool,
            concurrency=3,
            task_acks_late=True,
            horizon_s=4.0,
            **ALONE,
        )
    )
    assert acked == [2, 1, 0]


def throughput(scenario: Scenario, others: int = 0) -> float:
    result = simulate(override(scenario, [f"broker.gossiping_workers={others}"]), levels=False)
    return float(np.count_nonzero(result.tasks["finished"] > 10.0)) / (result.end - 10.0)


@pytest.fixture
def half_seconds(make: Make) -> Callable[..., Scenario]:
    """Sleeps of 0.5 s for two slots with late acks, always enough in the queue."""
    return partial(
        make,
        [0.2] * 500,
        ("io_s", 0.5),
        concurrency=2,
        prefetch_multiplier=1,
        task_acks_late=True,
        horizon_s=110.0,
    )


@both
def test_two_slots_of_half_seconds_do_one_task_a_second(
    half_seconds: Callable[..., Scenario], pool: str
) -> None:
    # measured with Celery: 1.0 alone, with or without gossip
    assert throughput(half_seconds(pool=pool)) == pytest.approx(1.0, abs=0.02)
    assert throughput(half_seconds(pool=pool, **ALONE)) == pytest.approx(1.0, abs=0.02)
    assert throughput(half_seconds(pool=pool, **ALONE), others=1) == pytest.approx(1.0, abs=0.02)


@both
@pytest.mark.parametrize(
    ("after_own_s", "per_s"), [(0.4, 1.0), (0.6, 2.0), (1.0, 2.0), (1.4, 2.0), (1.6, 1.0)]
)
def test_an_event_of_another_worker_lets_acks_out_if_the_tasks_are_done_by_then(
    half_seconds: Callable[..., Scenario],
    pool: str,
    after_own_s: float,
    per_s: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # measured with Celery: 2.05 with another gossiping worker at an unknown place, and (threads)
    # as with none when it was 0.49 s after the worker's own events
    monkeypatch.setattr(gossip, "HEART_FIRST_SHARE", 0.0)  # own events at 2, 4, 6 s
    monkeypatch.setattr(gossip, "_uniforms", lambda _, count: [after_own_s / 2.0] * count)
    assert throughput(half_seconds(pool=pool), others=1) == pytest.approx(per_s, abs=0.04)


@both
def test_idealised_acks_have_no_lag(half_seconds: Callable[..., Scenario], pool: str) -> None:
    assert throughput(half_seconds(pool=pool, idealised=True)) == pytest.approx(4.0, abs=0.05)


# --- the pool (gevent.pool.Pool.spawn, eventlet.greenpool.GreenPool.spawn) ---


@both
def test_a_full_pool_blocks_the_consumer(make: Make, pool: str) -> None:
    result = simulate(make([1.0] * 3, ("io_s", 0.5), pool=pool, concurrency=1))
    assert column(result, "received") == [1.0, 1.0, 1.5]
    assert column(result, "started") == [1.0, 1.5, 2.0]


@both
def test_autoscale_runs_once_a_second_and_wakes_nobody(make: Make, pool: str) -> None:
    # a second task is received and blocks; the growth at 3.0 does not let it start
    result = simulate(make([2.2] * 2, ("io_s", 3.0), pool=pool, autoscale=[4, 1], horizon_s=9.0))
    assert events(result)[0] == (3.0, 1, 1)
    assert column(result, "started") == [2.2, 5.2]


def test_gevents_autoscaler_counts_running_greenlets_as_processes(make: Make) -> None:
    result = simulate(make([2.2] * 6, ("io_s", 3.0), pool="gevent", autoscale=[4, 1]))
    assert events(result) == [(3.0, 1, 1), (4.0, 1, 1), (5.0, 1, 1)]
    assert result.level(Level.PROCESSES)[1].tolist() == [1, 2, 3, 4]


def test_eventlets_autoscaler_grows_once_and_shrinks(make: Make) -> None:
    result = simulate(
        make(
            [2.2] * 2, ("io_s", 3.0), pool="eventlet", autoscale=[4, 1], keepalive=4.0, horizon_s=20
        )
    )
    assert events(result) == [(3.0, 1, 1), (8.0, -1, 2)]


@both
def test_with_a_minimum_of_zero_the_first_task_never_starts(make: Make, pool: str) -> None:
    # seen with Celery 5.6.3: growing the empty pool does not wake the consumer that waits for it
    result = simulate(make([2.2], ("io_s", 1.0), pool=pool, autoscale=[4, 0], horizon_s=60.0))
    assert result.tasks["outcome"].tolist() == [Outcome.RESERVED]
    assert len(result.scale_events) == (57 if pool == "gevent" else 1)


# --- limits ---


def test_gevent_raises_the_hard_limit_when_the_task_waits(make: Make) -> None:
    result = simulate(make([1.0], ("io_s", 0.2), ("io_s", 5.0), pool="gevent", time_limit=1.0))
    assert column(result, "finished") == [2.0]
    assert result.tasks["outcome"].tolist() == [Outcome.FAILED]


def test_gevent_raises_the_hard_limit_late_if_the_task_computes(make: Make) -> None:
    result = simulate(make([1.0], ("cpu_s", 3.0), ("io_s", 5.0), pool="gevent", time_limit=1.0))
    assert column(result, "finished") == [4.0]
    assert result.tasks["outcome"].tolist() == [Outcome.FAILED]


def test_a_process_is_idle_after_a_time_limit_too(make: Make) -> None:
    aftermath = {"factor": 2.0, "share": 0.0, "share_after_idle": 1.0, "idle_s": 2.0}
    profiles = {
        "m": {"steps": [{"io_s": 0.5}], "aftermath": aftermath},
        "slow": {"steps": [{"io_s": 9.0}]},
        "c": {"steps": [{"cpu_s": 0.5}]},
    }
    result = simulate(
        make([1.0, 2.0, 20.0], profiles=profiles, pattern=["m", "slow", "c"], pool="gevent",
             time_limit=1.5)
    )  # fmt: skip
    assert result.tasks["finished"][2] - result.tasks["started"][2] == pytest.approx(1.0, abs=EXACT)


def test_gevent_never_stops_a_task_that_does_not_wait(make: Make) -> None:
    result = simulate(make([1.0], ("cpu_s", 3.0), pool="gevent", time_limit=1.0))
    assert result.tasks["outcome"].tolist() == [Outcome.SUCCEEDED]


def test_a_task_within_its_limit_is_left_alone(make: Make) -> None:
    result = simulate(make([1.0, 5.0], ("io_s", 0.5), pool="gevent", time_limit=1.0))
    assert column(result, "finished") == [1.5, 5.5]
    assert result.count(Outcome.SUCCEEDED) == 2


@pytest.mark.parametrize(
    ("pool", "limits"),
    [
        ("eventlet", {"time_limit": 1.0}),
        ("gevent", {"soft_time_limit": 1.0}),
        ("gevent", {"max_tasks_per_child": 1}),
    ],
)
def test_other_limits_do_nothing(make: Make, pool: str, limits: dict[str, Any]) -> None:
    result = simulate(make([1.0, 1.0], ("io_s", 3.0), pool=pool, **limits))
    assert column(result, "finished") == [4.0, 4.0]


# --- the published runs; the tasks' times are read off one cell, schedule gevent(2) ---

COMPUTE = {"cpu_s": {"kind": "normal", "mean": 0.696, "sd": 0.017}}
COMPUTE_LAST = {"cpu_s": {"kind": "normal", "mean": 0.702, "sd": 0.018}}
GREEN_CELLS = {
    "producer": {"kind": "batches", "publish_s": 0.0006, "duration_s": 300.0, "start_s": -0.25},
    "tasks": {
        "profiles": {
            "cpu then sleep": {"steps": [COMPUTE, {"io_s": 1.0}]},
            "sleep then cpu": {"steps": [{"io_s": 1.0}, COMPUTE_LAST]},
            "memory": {
                "steps": [
                    *[{"cpu_s": 0.006}, {"io_s": 0.1}] * 10,
                    {"io_s": 0.6},
                    {"cpu_s": 0.0156},
                ]
            },
        },
        "pattern": [
            *("cpu then sleep", "sleep then cpu", "memory"),
            *("sleep then cpu", "cpu then sleep", "memory"),
        ],
    },
    "worker": {"prefetch_multiplier": 1, "task_acks_late": True},
    "run": {"horizon_s": 330.0},
    "costs": {"deliver_s": 0.0062, "receive_s": 0.0007},
}


@both
@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize(("load", "pause_s"), [("cumulative", 1.6), ("schedule", 5.0)])
def test_the_published_runs_come_out(
    reference: Path, pool: str, size: int, load: str, pause_s: float
) -> None:
    tables = json.loads((reference / "article_tables.json").read_text())["medians_over_runs"]
    tasks, mean, median, p90, *_ = tables[load][f"{pool}({size})"]
    batches = [f"producer.batch_size={size}", f"producer.pause_s={pause_s}"]
    worker = [f"worker.pool={pool}", f"worker.concurrency={size}"]
    scenario = make_scenario(GREEN_CELLS, [*batches, *worker])
    runs = [_published(simulate(scenario, replication=i), pause_s) for i in range(5)]
    found = np.median(runs, axis=0)
    assert found[0] == pytest.approx(tasks, rel=0.015)
    assert found[1] == pytest.approx(mean, rel=0.015)
    assert found[2] == pytest.approx(median, rel=0.025)
    assert found[3] == pytest.approx(p90, rel=0.015)


def _published(result: Any, pause_s: float) -> list[float]:
    """Tasks, and mean, median, 90 % quantile of the sojourn; the queue is purged at the end."""
    rows = result.tasks
    rows = rows[rows["received"] <= rows["sent"][-1] + pause_s]
    sojourn = rows["finished"] - rows["sent"]
    return [len(rows), sojourn.mean(), *np.quantile(sojourn, [0.5, 0.9])]
