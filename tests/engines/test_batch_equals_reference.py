"""The batch engine gives the reference engine's results, event for event, on random scenarios."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from celerysim import Result, Scenario, ScenarioError, load_scenario, make_scenario, simulate
from celerysim.batch import simulate_many, unsupported
from celerysim.metrics import summary
from celerysim.scenario.costs import Costs

COSTS = [name for name in Costs.model_fields if name.endswith("_s")]
GROUPS, EACH = 12, 20


def random_scenario(rng: np.random.Generator) -> Scenario:
    """Anything in the batch engine's support, simultaneous events and odd costs included."""
    high = int(rng.integers(1, 7))
    worker: dict[str, Any] = {
        "prefetch_multiplier": int(rng.integers(0, 4)),
        "task_acks_late": bool(rng.random() < 0.5),
        "keepalive": float(rng.choice([0.25, 1.0, 3.0, 10.0])),
    }
    if rng.random() < 0.7:
        worker["autoscale"] = [high, int(rng.integers(0, high + 1))]
    else:
        worker["concurrency"] = high
    producer: dict[str, Any] = {"max_tasks": int(rng.integers(1, 120))}
    kind = rng.choice(["batches", "poisson", "rate"])
    if kind == "batches":
        producer |= {
            "kind": "batches",
            "batch_size": int(rng.integers(1, 10)),
            "pause_s": float(rng.choice([0.1, 0.5, 1.0, 2.0])),
            "publish_s": float(rng.choice([0.0, 0.0005, 0.02])),
        }
    else:
        producer |= {
            "kind": str(kind),
            "rate_per_s": float(rng.choice([0.5, 3.0, 20.0])),
            "start_s": float(rng.choice([0.0, -1.0])),
        }
    seconds: list[Any] = [
        0.0, 0.05, 0.3, {"kind": "exponential", "mean": 0.2},
        {"kind": "lognormal", "mean": 0.3, "sd": 0.2},
    ]  # fmt: skip
    steps = [
        {str(rng.choice(["cpu_s", "io_s"])): seconds[rng.integers(len(seconds))]}
        for _ in range(rng.integers(1, 4))
    ]
    costs: dict[str, float] = {}
    if rng.random() < 0.4:
        costs = {name: float(rng.choice([0.0, 0.001, 0.01, 0.05])) for name in COSTS}
    if rng.random() < 0.1:
        costs["exit_missed_share"] = 0.5
    machine: dict[str, Any] = {"cores": int(rng.integers(1, 5))}
    if 1 < machine["cores"] <= high:  # the other rule is the reference engine's alone
        machine["scheduling"] = "processor sharing"
    run: dict[str, Any] = {"seed": int(rng.integers(2**20))}
    if rng.random() < 0.2:
        run["horizon_s"] = 4.0
    return make_scenario(
        {
            "producer": producer,
            "tasks": {"profiles": {"a": {"steps": steps}}},
            "worker": worker,
            "machine": machine,
            "run": run,
            "costs": costs,
        }
    )


@pytest.mark.parametrize("group", range(GROUPS))
def test_equal_event_for_event(group: int) -> None:
    rng = np.random.default_rng(group)
    scenarios = [random_scenario(rng) for _ in range(EACH)]
    numbers = rng.integers(0, 5, EACH).tolist()
    together = simulate_many(scenarios, numbers, tables=True)
    for run, (scenario, number) in enumerate(zip(scenarios, numbers, strict=True)):
        reference = simulate(scenario, replication=number)
        assert_equal(reference, together.result_of(run))
        assert_same_numbers(summary(reference), together[run])


def assert_equal(reference: Result, batch: Result) -> None:
    assert len(batch.tasks) == len(reference.tasks)
    for name in ("profile", "child", "outcome", "deliveries"):
        assert (batch.tasks[name] == reference.tasks[name]).all(), name
    for name in ("sent", "received", "started", "finished"):
        np.testing.assert_allclose(batch.tasks[name], reference.tasks[name], rtol=0, atol=1e-9)
    assert batch.forks == reference.forks
    for name in ("change", "trigger", "processes", "reserved"):
        assert (batch.scale_events[name] == reference.scale_events[name]).all(), name
    np.testing.assert_allclose(
        batch.scale_events["time"], reference.scale_events["time"], rtol=0, atol=1e-9
    )


def assert_same_numbers(reference: Any, batch: Any) -> None:
    assert batch.keys() == reference.keys()
    for key, value in reference.items():
        if isinstance(value, dict):
            assert_same_numbers(value, batch[key])
        else:
            assert batch[key] == (None if value is None else pytest.approx(value, abs=1e-9)), key


def test_replications_differ_as_the_references_do() -> None:
    scenario = load_scenario(
        "puzzle",
        [
            "producer.publish_s={kind='uniform', low=0.03, high=0.07}",
            "producer.max_tasks=200",
        ],
    )
    forks = [int(run["forks"]) for run in simulate_many([scenario], 30)]
    assert forks == [simulate(scenario, replication=i, levels=False).forks for i in range(30)]
    assert len(set(forks)) > 1


def test_memory_in_progress_is_bounded_and_changes_nothing() -> None:
    scenario = load_scenario("puzzle", ["producer.max_tasks=60"])
    whole = list(simulate_many([scenario], 40))
    pieces = list(simulate_many([scenario], 40, max_memory_mb=0.1))
    assert whole == pieces


@pytest.mark.parametrize(
    "change",
    [
        "worker.optimization=fast",
        "worker.time_limit=5",
        "worker.soft_time_limit=5",
        "worker.max_tasks_per_child=3",
        "worker.max_memory_per_child=90000",
        "worker.pool=gevent",
        "machine.scheduling='run queues'",
        "tasks.profiles.short.first_in_child_cpu_s=0.1",
    ],
)
def test_what_it_does_not_support_is_refused_by_name(change: str) -> None:
    field = change.partition("=")[0]
    cores = (
        ["machine.cores=4"] if field == "machine.scheduling" else []
    )  # 4 children and the parent
    scenario = load_scenario("puzzle", [change, *cores])
    assert [reason.partition(" = ")[0] for reason in unsupported(scenario)] == [field]
    with pytest.raises(ScenarioError, match=f"{field}.*Remedy"):
        simulate_many([scenario], 2)
