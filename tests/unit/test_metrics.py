"""Statistics of a run: definitions, checked on histories made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from celerysim import load_scenario, simulate
from celerysim.history import (
    CHILD_DTYPE,
    LEVEL_DTYPE,
    SCALE_DTYPE,
    TASK_DTYPE,
    History,
    Outcome,
    table,
)
from celerysim.metrics import durations, interval, over_replications, summary

NAN = float("nan")


def history(**changes: Any) -> History:
    tasks = [
        (0, 0.0, 1.0, 2.0, 4.0, 1, Outcome.SUCCEEDED, 1),
        (0, 1.0, 1.5, 4.0, 5.0, 1, Outcome.FAILED, 1),
        (0, 2.0, 2.5, 5.0, 9.0, 1, Outcome.LOST, 1),
        (0, 3.0, NAN, NAN, NAN, -1, Outcome.QUEUED, 0),
    ]
    scale_events = [(1.0, 2, 0, 0, 2, 1), (3.0, -1, 1, 2, 1, 2), (4.0, 1, 0, 1, 2, 3)]
    children = [(1, 0.0, 0.1, NAN, NAN, 2, 3.0), (2, 2.0, 2.1, 4.0, 6.0, 0, 0.0)]
    fields: dict[str, Any] = {
        "tasks": table(TASK_DTYPE, tasks),
        "scale_events": table(SCALE_DTYPE, scale_events),
        "children": table(CHILD_DTYPE, children),
        "levels": table(LEVEL_DTYPE, []),
        "names": ("a",),
        "start": 0.0,
        "end": 10.0,
    }
    return History(**fields | changes)


def test_counts_and_waits() -> None:
    report = summary(history())
    assert report["forks"] == 2
    assert (report["scale_ups"], report["scale_downs"]) == (2, 1)
    assert (report["tasks"], report["lost"]) == (2, 1)
    assert report["throughput_per_s"] == pytest.approx(0.2)
    assert report["sojourn_s"]["mean"] == pytest.approx(4.0)
    assert report["broker_wait_s"]["mean"] == pytest.approx(0.75)
    assert report["worker_wait_s"]["mean"] == pytest.approx(1.75)
    assert report["runtime_s"]["mean"] == pytest.approx(1.5)


def test_children_share_of_life_in_tasks() -> None:
    report = summary(history())
    # lives of 10 and 4 seconds, 3 of them in tasks
    assert report["child_utilisation"] == pytest.approx(3 / 14)
    assert report["child_idle_share"] == pytest.approx(11 / 14)


def test_no_tasks_is_no_error() -> None:
    report = summary(history(tasks=table(TASK_DTYPE, [])))
    assert report["tasks"] == 0
    assert report["sojourn_s"]["p95"] is None


def test_quantiles_leave_out_what_is_not_known() -> None:
    assert durations(np.array([1.0, NAN, 3.0]))["median"] == 2.0


def test_an_interval_is_students() -> None:
    found = interval([1.0, 2.0, 3.0])
    # t(2, 0.975) = 4.3027, sd 1, n 3
    assert found["ci95"] == pytest.approx([2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5], abs=1e-4)
    assert interval([5.0])["ci95"] is None
    assert interval([None, None]) == {"mean": None, "ci95": None, "values": [None, None]}


def test_over_replications_keeps_the_keys() -> None:
    merged = over_replications([summary(history()), summary(history())])
    assert merged.keys() == summary(history()).keys()
    assert merged["sojourn_s"]["p90"]["values"] == [merged["sojourn_s"]["p90"]["mean"]] * 2


def test_tasks_sent_before_the_warm_up_do_not_count() -> None:
    scenario = load_scenario("puzzle", ["run.warm_up_s=100"])
    result = simulate(scenario)
    report = summary(result)
    late = result.tasks["sent"] >= 100.0
    assert report["tasks"] == late.sum()
    assert report["throughput_per_s"] == pytest.approx(late.sum() / (result.end - 100.0))
