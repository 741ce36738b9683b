"""What must hold in every run, on scenarios that hypothesis draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celerysim import Result, make_scenario, simulate
from celerysim.history import Level, Outcome
from celerysim.scenario.costs import Costs

COSTS = [name for name in Costs.model_fields if name.endswith("_s")]
seconds = st.sampled_from([0.0, 0.001, 0.01, 0.05, 0.3])
steps = st.lists(
    st.one_of(
        st.builds(lambda s: {"cpu_s": s}, st.sampled_from([0.0, 0.002, 0.05, 0.4])),
        st.builds(lambda s: {"io_s": s}, st.sampled_from([0.0, 0.003, 0.1, 1.0])),
        st.just({"cpu_s": {"kind": "exponential", "mean": 0.1}}),
        st.just({"io_s": {"kind": "lognormal", "mean": 0.3, "sd": 0.3}}),
    ),
    min_size=1,
    max_size=3,
)
producers = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.just("batches"),
            "batch_size": st.integers(1, 9),
            "pause_s": st.sampled_from([0.1, 0.5, 1.0, 2.0]),
            "publish_s": st.sampled_from([0.0, 0.0005, 0.02]),
            "max_tasks": st.integers(1, 80),
        }
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("poisson"),
            "rate_per_s": st.sampled_from([0.5, 3.0, 20.0]),
            "max_tasks": st.integers(1, 80),
            "start_s": st.sampled_from([0.0, -1.0]),
        }
    ),
)


@st.composite
def scenarios(draw: st.DrawFn) -> Any:
    high = draw(st.integers(1, 6))
    worker: dict[str, Any] = {
        "prefetch_multiplier": draw(st.integers(0, 3)),
        "task_acks_late": draw(st.booleans()),
        "task_reject_on_worker_lost": draw(st.booleans()),
        "optimization": draw(st.sampled_from(["fair", "fast"])),
        "keepalive": draw(st.sampled_from([0.25, 1.0, 3.0])),
    }
    if draw(st.booleans()):
        worker["autoscale"] = [high, draw(st.integers(0, high))]
    else:
        worker["concurrency"] = high
    if draw(st.booleans()):
        worker["max_tasks_per_child"] = draw(st.integers(1, 5))
    if draw(st.booleans()):
        worker["time_limit"] = draw(st.sampled_from([0.05, 0.5, 5.0]))
    names = draw(st.sampled_from([["a"], ["a", "b"]]))
    return make_scenario(
        {
            "producer": draw(producers),
            "tasks": {"profiles": {name: {"steps": draw(steps)} for name in names}},
            "worker": worker,
            "machine": {"cores": draw(st.integers(1, 4))},
            "run": {
                "seed": draw(st.integers(0, 2**20)),
                **draw(st.sampled_from([{}, {"horizon_s": 4.0}])),
            },
            "costs": draw(
                st.one_of(
                    st.just({}),
                    st.fixed_dictionaries(dict.fromkeys(COSTS, seconds)),
                )
            ),
        }
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_invariants(scenario: Any) -> None:
    result = simulate(scenario)
    every_task_has_an_end(result)
    levels_stay_within_their_bounds(result)
    times_are_in_order(result)
    no_child_runs_two_tasks(result)
    work_is_conserved(result)


def every_task_has_an_end(result: Result) -> None:
    assert result.scenario is not None
    counts = [result.count(outcome) for outcome in Outcome]
    assert sum(counts) == len(result.tasks)
    assert result.count(Outcome.RETRIED) == result.count(Outcome.REVOKED) == 0
    if result.scenario.run.horizon_s is None:
        assert len(result.tasks) == result.scenario.producer.max_tasks
        ended = {Outcome.SUCCEEDED, Outcome.FAILED, Outcome.LOST}
        assert set(result.tasks["outcome"].tolist()) <= ended


def levels_stay_within_their_bounds(result: Result) -> None:
    assert result.scenario is not None
    worker = result.scenario.worker
    processes = result.level(Level.PROCESSES)[1]
    assert processes.min() >= worker.min_concurrency
    assert processes.max() <= worker.max_concurrency
    for level in Level:
        assert (result.level(level)[1] >= 0).all()
    if worker.prefetch_count:
        assert (result.level(Level.UNACKED)[1] <= worker.prefetch_count).all()


def times_are_in_order(result: Result) -> None:
    tasks = result.tasks
    for before, after in (("sent", "received"), ("received", "started"), ("started", "finished")):
        both = ~np.isnan(tasks[before]) & ~np.isnan(tasks[after])
        assert (tasks[after][both] >= tasks[before][both] - 1e-9).all()
    assert (np.diff(tasks["sent"]) >= 0).all()


def no_child_runs_two_tasks(result: Result) -> None:
    tasks = result.tasks[~np.isnan(result.tasks["started"]) & ~np.isnan(result.tasks["finished"])]
    for child in set(tasks["child"].tolist()):
        mine = np.sort(tasks[tasks["child"] == child], order="started")
        # a lost task ends for the supervisor later than for its child: it is the child's last
        ran = mine[mine["outcome"] == Outcome.SUCCEEDED]
        assert (ran["started"][1:] >= ran["finished"][:-1] - 1e-9).all()


def work_is_conserved(result: Result) -> None:
    """Cores never do more than they can; children are busy as long as their tasks ran."""
    assert result.scenario is not None
    cores = result.scenario.machine.cores
    assert result.busy_core_s <= cores * (result.end - result.start) + 1e-6
    done = result.tasks[result.tasks["outcome"] == Outcome.SUCCEEDED]
    if result.scenario.run.horizon_s is None and result.count(Outcome.SUCCEEDED) == len(
        result.tasks
    ):
        ran_s = (done["finished"] - done["started"]).sum()
        redelivered = (done["deliveries"] > 1).any()
        if not redelivered:
            assert abs(result.children["busy_s"].sum() - ran_s) < 1e-6
