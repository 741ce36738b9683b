"""what-if on a simulated log predicts what the simulation gives under the changed settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from celerysim.calibrate.check import figures
from celerysim.engine.simulation import simulate
from celerysim.errors import ScenarioError
from celerysim.export.worker_log import worker_log
from celerysim.history import History
from celerysim.report import what_if_report
from celerysim.scenario import make_scenario, override
from celerysim.trace import Trace, read_log
from celerysim.what_if import WhatIf, what_if


def as_log(history: History) -> Trace:
    return read_log(line.encode() + b"\n" for line in worker_log(history))


def system(**worker: Any) -> dict[str, Any]:
    """Two kinds of tasks, 2 cores, an open load that keeps a pool of four busy for two thirds."""
    return {
        "producer": {"kind": "poisson", "rate_per_s": 2.6, "max_tasks": 500},
        "tasks": {
            "profiles": {
                "resize": {
                    "steps": [
                        {"cpu_s": {"kind": "lognormal", "mean": 0.5, "sd": 0.1}},
                        {"io_s": 0.3},
                    ]
                },
                "mail": {
                    "steps": [{"io_s": {"kind": "gamma", "mean": 1.0, "sd": 0.3}}, {"cpu_s": 0.1}],
                    "weight": 0.5,
                },
            }
        },
        "worker": worker,
        "machine": {"cores": 2},
    }


def predicted_and_true(
    change: str, worker: dict[str, Any], cores: int | None = 2
) -> tuple[WhatIf, dict[str, Any]]:
    scenario = make_scenario(system(**worker))
    answer = what_if(as_log(simulate(scenario)), [change], cores=cores)
    return answer, figures(simulate(override(scenario, [change])), sent=False)


@pytest.mark.parametrize(
    ("change", "worker"),
    [
        ("worker.concurrency=8", {"concurrency": 4}),
        ("worker.concurrency=3", {"concurrency": 4}),
        ("machine.cores=4", {"concurrency": 4}),
        ("worker.keepalive=600", {"autoscale": [4, 1]}),
        ("worker.autoscale=[8,2]", {"autoscale": [4, 1]}),
    ],
)
def test_the_changed_outcome_is_predicted(change: str, worker: dict[str, Any]) -> None:
    answer, true = predicted_and_true(change, worker)
    after = answer.after
    assert after["throughput_per_s"] == pytest.approx(true["throughput_per_s"], rel=0.01)
    assert after["sojourn_s"]["mean"] == pytest.approx(true["sojourn_s"]["mean"], rel=0.04)
    assert after["sojourn_s"]["p95"] == pytest.approx(true["sojourn_s"]["p95"], rel=0.15)
    assert after["forks"] == pytest.approx(true["forks"], rel=0.1, abs=1)


def test_the_model_of_before_is_near_the_log() -> None:
    answer, _ = predicted_and_true("worker.concurrency=8", {"concurrency": 4})
    assert answer.before["throughput_per_s"] == pytest.approx(
        answer.log["throughput_per_s"], rel=0.01
    )
    assert answer.before["sojourn_s"]["mean"] == pytest.approx(
        answer.log["sojourn_s"]["mean"], rel=0.02
    )


def test_it_says_whether_runtimes_answer_to_the_change() -> None:
    told, _ = predicted_and_true("machine.cores=4", {"concurrency": 4})
    assert told.notes[0].startswith("runtimes answer to the change")
    assert told.after["runtime_s"]["mean"] < 0.96 * told.before["runtime_s"]["mean"]
    untold, _ = predicted_and_true("machine.cores=4", {"concurrency": 2})  # never more than cores
    assert untold.notes[0].startswith("runtimes are taken as logged")


def test_the_truth_of_a_full_window_lies_between_both_bounds() -> None:
    """A saturated worker with a prefetch window holds messages back; four are not enough for it."""
    scenario = make_scenario(
        {
            "producer": {"kind": "poisson", "rate_per_s": 2.6, "max_tasks": 300},
            "tasks": {"profiles": {"mail": {"steps": [{"io_s": 1.8}]}}},
            "worker": {"concurrency": 4, "prefetch_multiplier": 1, "task_acks_late": True},
        }
    )
    change = "worker.concurrency=8"
    answer = what_if(as_log(simulate(scenario)), [change])
    true = figures(simulate(override(scenario, [change])), sent=False)
    assert answer.after_latest is not None
    bounds = answer.after_latest["throughput_per_s"], answer.after["throughput_per_s"]
    assert bounds[0] <= true["throughput_per_s"] * 1.001
    assert true["throughput_per_s"] <= bounds[1] * 1.001
    assert any("held back" in note for note in answer.notes)


def test_known_times_of_sending_are_used() -> None:
    scenario = make_scenario(system(concurrency=4))
    result = simulate(scenario)
    answer = what_if(result, ["worker.concurrency=4"], cores=2)
    broker = answer.before["broker_wait_s"]["mean"]
    assert broker == pytest.approx(answer.log["broker_wait_s"]["mean"], abs=0.01)


def test_tasks_without_a_runtime_take_the_middle_ones() -> None:
    scenario = make_scenario(system(concurrency=4, time_limit=2.0) | {"run": {"horizon_s": 100}})
    log = as_log(simulate(scenario))
    answer = what_if(log, ["worker.concurrency=8"], cores=2)
    received = int(np.count_nonzero(~np.isnan(log.tasks["received"])))
    assert answer.after["tasks"] + answer.after["lost"] == received


def test_a_wrong_change_is_refused() -> None:
    log = as_log(simulate(make_scenario(system(concurrency=4))))
    with pytest.raises(ScenarioError, match=r"worker\.conc"):
        what_if(log, ["worker.conc=8"], cores=2)


def test_the_report_has_a_column_for_each() -> None:
    answer, _ = predicted_and_true("worker.concurrency=8", {"concurrency": 4})
    text = what_if_report("worker.log", answer)
    assert text.count("model") >= 2
    assert "worker.concurrency=8" in text
    assert answer.as_json()["changes"] == ["worker.concurrency=8"]
