"""The batch engine gives the reference engine's results, event for event, on random scenarios.

Each example is run the way the engine chooses, or with one of its short cuts closed:
``exact`` keeps it off the quick way for ample machines, and then times are equal to the
last bit; ``long`` keeps it off the express lanes.

CELERYSIM_EXAMPLES sets the examples of each test (default 100).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import accumulate
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from celerysim import Scenario, make_scenario
from celerysim.batch.fleet import Fleet
from celerysim.scenario.costs import Costs

EXAMPLES = int(os.environ.get("CELERYSIM_EXAMPLES", "100"))
COSTS = [name for name in Costs.model_fields if name.endswith("_s")]
WAYS = st.sampled_from(["chosen", "exact", "long", "exact long"])

exponential = st.just({"kind": "exponential", "mean": 0.15})
lognormal = st.just({"kind": "lognormal", "mean": 0.3, "sd": 0.3})
continuous = exponential | lognormal | st.just({"kind": "uniform", "low": 0.0, "high": 0.4})
grid = st.sampled_from([0.0, 0.002, 0.05, 0.1, 0.5, 1.0])
steps = st.lists(
    st.builds(
        lambda kind, seconds: {kind: seconds},
        st.sampled_from(["cpu_s", "io_s", "block_s"]),
        grid | continuous | st.just({"kind": "empirical", "values": [0.0, 0.1, 0.2, 0.5]}),
    ),
    min_size=1,
    max_size=3,
)


def seconds(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: round(x, 6))


def all_costs(each: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, float]]:
    return st.fixed_dictionaries(dict.fromkeys(COSTS, each))


@st.composite
def producers(draw: st.DrawFn, endless: bool) -> dict[str, Any]:
    kind = draw(st.sampled_from(["batches", "rate", "poisson", "times"]))
    producer: dict[str, Any] = {
        "kind": kind,
        "start_s": draw(st.sampled_from([0.0, 0.0, -1.0, -0.3, 0.5])),
        "publish_s": draw(
            st.sampled_from([0.0, 0.0005, 0.02, {"kind": "uniform", "low": 0.0, "high": 0.1}])
        ),
    }
    if kind == "times":
        times = st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0, 1.05, 2.0, 3.0, 4.0, 5.0, 7.5])
        return producer | {"times_s": sorted(draw(st.lists(times, min_size=1, max_size=30)))}
    if kind == "batches":
        producer["batch_size"] = draw(st.integers(1, 9))
        producer["pause_s"] = draw(st.sampled_from([0.1, 0.5, 2.0]) | exponential)
    else:
        producer["rate_per_s"] = draw(st.sampled_from([0.5, 3.0, 10.0, 25.0]))
    limits = draw(st.sampled_from(["max", "duration", "both", "none" if endless else "both"]))
    if limits in ("max", "both"):
        producer["max_tasks"] = draw(st.integers(1, 60))
    if limits in ("duration", "both"):
        producer["duration_s"] = draw(st.sampled_from([0.2, 1.0, 3.0]))
    return producer


def finish(draw: st.DrawFn, raw: dict[str, Any], cores: st.SearchStrategy[int]) -> Scenario:
    """Draw what all scenarios have: a machine and a seed."""
    raw["machine"] = {
        "cores": draw(cores),
        "speed": draw(st.sampled_from([1.0, 1.0, 2.0, 0.7])),
        "scheduling": draw(st.sampled_from(["run queues", "run queues", "processor sharing"])),
        "balance_s": draw(st.sampled_from([0.14, 0.14, 0.003, 0.01, 0.05, 0.1, 0.5, 5.0, 1e5])),
    }
    raw["run"] = raw.get("run", {}) | {"seed": draw(st.integers(0, 2**20))}
    return make_scenario(raw)


@st.composite
def anything(draw: st.DrawFn, ample: bool) -> Scenario:
    """Anything in the support: simultaneous events, no costs or odd ones, one core or many.

    ``ample``: with more cores than processes and no cost of zero seconds.
    """
    high = draw(st.integers(1, 6))
    horizon = draw(st.sampled_from([None, None, 4.0, 12.0, 0.05, 1.0]))
    worker: dict[str, Any] = {
        "prefetch_multiplier": draw(st.integers(0, 4)),
        "task_acks_late": draw(st.booleans()),
        "keepalive": draw(st.sampled_from([0.02, 0.25, 1.0, 3.0, 5.0, 1e5])),
    }
    if draw(st.sampled_from([True, True, False])):
        worker["autoscale"] = [high, draw(st.integers(0, high))]
    else:
        worker["concurrency"] = high
    if horizon and draw(st.booleans()):
        worker["proc_alive_timeout"] = draw(st.sampled_from([0.2, 0.05]))
    few = st.sampled_from([0.0005, 0.001, 0.002, 0.01, 0.05] + [0.0] * (not ample))
    cost = st.just({}) | all_costs(few) | all_costs(seconds(0.00001, 0.2))
    if not ample:
        cost |= all_costs(st.just(0.0))
    names = draw(st.sampled_from([["a"], ["a", "b"]]))
    first = st.sampled_from([0.0, 0.0, 0.1, 0.05])
    tasks: dict[str, Any] = {
        "profiles": {
            name: {"steps": draw(steps), "first_in_child_cpu_s": draw(first)} for name in names
        }
    }
    if len(names) == 2 and draw(st.booleans()):
        tasks["pattern"] = ["a", "b", "b"]
    missed = draw(st.sampled_from([0.0, 0.0, 0.5, 1.0]))
    raw = {
        "producer": draw(producers(horizon is not None)),
        "tasks": tasks,
        "worker": worker,
        "run": {"horizon_s": horizon} if horizon else {},
        "costs": draw(cost) | {"exit_missed_share": missed},
    }
    return finish(draw, raw, st.sampled_from([7, 8, 20] if ample else [1, 2, 3, 4, 8]))


@st.composite
def churning(draw: st.DrawFn) -> Scenario:
    """Bursts, a short keepalive and slow dispatch: children die with jobs written to them."""
    high = draw(st.integers(2, 6))
    times, time = [], 0.2
    for _ in range(draw(st.integers(2, 8))):
        for _ in range(draw(st.integers(1, high + 1))):
            time += draw(st.sampled_from([0.0, 0.0, 0.003, 0.005, 0.0123]))
            times.append(round(time, 6))
        time += draw(st.sampled_from([0.3, 0.45, 0.6, 0.7137]))
    raw = {
        "producer": {"kind": "times", "times_s": times},
        "tasks": {"profiles": {"a": {"steps": draw(steps)}}},
        "worker": {
            "autoscale": [high, draw(st.integers(0, high - 1))],
            "keepalive": draw(st.sampled_from([0.05, 0.1, 0.25, 0.31])),
            "prefetch_multiplier": draw(st.integers(0, 4)),
            "task_acks_late": draw(st.booleans()),
        },
        "costs": draw(all_costs(seconds(0.0001, 0.03) | st.just(0.0)))
        | {
            "dispatch_s": draw(st.sampled_from([0.0, 0.01, 0.02, 0.0313])),
            "child_accept_s": draw(st.sampled_from([0.0, 0.0003, 0.02, 0.0517])),
        },
    }
    return finish(draw, raw, st.sampled_from([1, 2, 3, 8]))


@st.composite
def crowded(draw: st.DrawFn) -> Scenario:
    """More children than cores, at work: equal pieces, CPU steps back to back, small costs."""
    cores = draw(st.integers(1, 4))
    high = draw(st.integers(cores, 8))
    length = grid | st.sampled_from([0.1, 0.1, 0.5]) | continuous
    cpu = st.builds(lambda seconds: {"cpu_s": seconds}, length)
    mostly_cpu = st.lists(cpu | cpu | cpu | steps.map(lambda some: some[0]), min_size=1, max_size=4)
    gaps = st.lists(st.sampled_from([0.0] * 4 + [0.003, 0.05, 0.1, 1.0]), min_size=1, max_size=60)
    worker: dict[str, Any] = {"prefetch_multiplier": draw(st.integers(0, 4))}
    if draw(st.booleans()):
        worker["autoscale"] = [high, draw(st.integers(0, high))]
        worker["keepalive"] = draw(st.sampled_from([0.05, 0.1, 0.3, 1.0, 1e5]))
    else:
        worker["concurrency"] = high
    few = st.sampled_from([0.0, 0.0005, 0.002, 0.01])
    raw = {
        "producer": {
            "kind": "times",
            "times_s": [round(time, 6) for time in accumulate(draw(gaps))],
        },
        "tasks": {"profiles": {"a": {"steps": draw(mostly_cpu)}}},
        "worker": worker,
        "costs": draw(st.just({}) | all_costs(st.just(0.0)) | all_costs(few)),
    }
    return finish(draw, raw, st.just(cores))


def compare(same: Callable[..., None], scenario: Scenario, way: str) -> None:
    """Two replications, the given way."""
    exact = "exact" in way
    event(way)
    with ExitStack() as closed:
        if exact:
            closed.enter_context(patch("celerysim.batch.simulation.ample", lambda *_: False))
        if "long" in way:
            fleet = partial(Fleet, express=False)
            closed.enter_context(patch("celerysim.batch.simulation.Fleet", fleet))
        same(scenario, replications=2, tolerance_s=0.0 if exact else 1e-9)


examples = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@examples
@given(scenario=anything(ample=False), way=WAYS)
def test_anything(same: Callable[..., None], scenario: Scenario, way: str) -> None:
    compare(same, scenario, way)


@examples
@given(scenario=anything(ample=True), way=st.sampled_from(["chosen", "long"]))
def test_ample_machines(same: Callable[..., None], scenario: Scenario, way: str) -> None:
    compare(same, scenario, way)


@examples
@given(scenario=crowded(), way=WAYS)
def test_crowded_machines(same: Callable[..., None], scenario: Scenario, way: str) -> None:
    compare(same, scenario, way)


@examples
@given(scenario=churning(), way=WAYS)
def test_dying_children(same: Callable[..., None], scenario: Scenario, way: str) -> None:
    compare(same, scenario, way)
