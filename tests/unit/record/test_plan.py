"""What is published: the very tasks a simulation of the scenario has."""

from __future__ import annotations

import uuid
from itertools import islice
from typing import Any

import numpy as np
import pytest

from celerysim.engine.producer import sent_times
from celerysim.engine.streams import BLOCK, Streams
from celerysim.record.plan import expected, messages, task_id
from celerysim.scenario import Scenario, make_scenario

TWO_PROFILES: dict[str, Any] = {
    "a": {"steps": [{"cpu_s": {"kind": "exponential", "mean": 0.1}}, {"io_s": 1.0}]},
    "b": {"steps": [{"io_s": 2.0}], "weight": 2.0, "rss_growth_kib": 100.0},
}


def scenario(tables: dict[str, Any] | None = None, **producer: Any) -> Scenario:
    base = {"kind": "rate", "rate_per_s": 10.0, "max_tasks": 50}
    return make_scenario(
        {"producer": producer or base, "tasks": {"profiles": TWO_PROFILES}, **(tables or {})}
    )


@pytest.mark.parametrize(
    "producer",
    [
        {"kind": "rate", "rate_per_s": 100.0, "max_tasks": BLOCK + 50, "publish_s": 0.001},
        {"kind": "poisson", "rate_per_s": 100.0, "duration_s": 3.0},
        {"kind": "times", "times_s": [0.0, 0.5, 0.5, 2.0]},
        {"kind": "batches", "batch_size": 4, "pause_s": 1.0, "publish_s": 0.05, "max_tasks": 10},
    ],
    ids=lambda producer: producer["kind"],
)
def test_planned_times_are_the_models(producer: dict[str, Any]) -> None:
    plan = list(messages(scenario(**producer)))
    sent = np.concatenate(list(sent_times(scenario(**producer), Streams(1))))
    assert [message.sent_s for message in plan] == sent.tolist()
    assert [message.number for message in plan] == list(range(len(sent)))


def test_batches_pause_once_a_batch_and_are_not_cut_by_the_plan() -> None:
    pause = {"kind": "uniform", "low": 1.0, "high": 2.0}
    plan = messages(scenario(kind="batches", batch_size=3, pause_s=pause, duration_s=0.5))
    seven = list(islice(plan, 7))
    assert [message.first for message in seven] == [True, False, False, True, False, False, True]
    paused = [message.number for message in seven if message.pause_s]
    assert paused == [3, 6]
    assert all(1.0 <= seven[number].pause_s < 2.0 for number in paused)


def test_what_a_childs_first_task_does_comes_before_its_steps() -> None:
    lazy = {"a": {"steps": [{"io_s": 1.0}], "first_in_child_cpu_s": 0.5}}
    first, *_ = messages(scenario({"tasks": {"profiles": lazy}, "machine": {"speed": 2.0}}))
    assert first.steps == (("first a", 0.25), ("io", 1.0))


def test_steps_memory_and_names_are_the_profiles() -> None:
    plan = list(messages(scenario()))
    for message in plan:
        if message.name == "b":
            assert message.steps == (("io", 2.0),)
            assert message.rss_kib == 100.0
        else:
            assert [kind for kind, _ in message.steps] == ["cpu", "io"]
            assert message.rss_kib == 0.0
    assert {message.name for message in plan} == {"a", "b"}


def test_a_faster_machine_burns_less_and_sleeps_the_same() -> None:
    normal = list(messages(scenario()))
    fast = list(messages(scenario({"machine": {"speed": 2.0}})))
    for one, other in zip(normal, fast, strict=True):
        for (kind, seconds), (_, faster) in zip(one.steps, other.steps, strict=True):
            assert faster == (seconds / 2 if kind == "cpu" else seconds)


def test_blocking_steps_are_told_from_waiting_ones() -> None:
    tasks = {"profiles": {"a": {"steps": [{"block_s": 0.1}, {"io_s": 0.1}]}}}
    plan = messages(scenario({"tasks": tasks}))
    assert [kind for kind, _ in next(plan).steps] == ["block", "io"]


@pytest.mark.parametrize(
    ("producer", "count"),
    [
        ({"kind": "rate", "rate_per_s": 1.0, "max_tasks": 7}, 7),
        ({"kind": "times", "times_s": [0.0, 1.0]}, 2),
        ({"kind": "times", "times_s": [0.0, 1.0, 2.0], "max_tasks": 1}, 1),
        ({"kind": "rate", "rate_per_s": 1.0, "duration_s": 7.0}, None),
    ],
)
def test_expected_number_of_messages(producer: dict[str, Any], count: int | None) -> None:
    assert expected(scenario(**producer)) == count


def test_task_ids_are_shaped_like_uuids_and_begin_with_the_number() -> None:
    id = task_id(12, uuid.UUID("01234567-89ab-4def-8123-456789abcdef"))
    assert id == "00000012-89ab-4def-8123-456789abcdef"
