"""The parts of a calibration: each on data made for it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from celerysim.calibrate import calibrate
from celerysim.calibrate.arrivals import Arrivals, fit_process
from celerysim.calibrate.order import find_order
from celerysim.calibrate.phases import Body, Order, Runs, Spread, read_back
from celerysim.calibrate.shapes import fit_shape
from celerysim.calibrate.split import fit_split
from celerysim.calibrate.text import calibration_report
from celerysim.calibrate.toml import to_toml
from celerysim.calibrate.turns import slowdowns
from celerysim.engine.simulation import simulate
from celerysim.errors import LogError
from celerysim.export.worker_log import worker_log
from celerysim.history import History
from celerysim.scenario import load_scenario, make_scenario
from celerysim.trace import Trace, read_log

RNG = np.random.default_rng(5)


def as_log(history: History) -> Trace:
    return read_log(line.encode() + b"\n" for line in worker_log(history))


def tasks_on_two_cores(cores: int = 2, concurrency: int = 6) -> History:
    return simulate(
        make_scenario(
            {
                "producer": {"kind": "poisson", "rate_per_s": 3.0, "max_tasks": 400},
                "tasks": {
                    "profiles": {
                        "resize": {
                            "steps": [
                                {"cpu_s": {"kind": "gamma", "mean": 0.5, "sd": 0.05}},
                                {"io_s": 0.7},
                            ]
                        }
                    }
                },
                "worker": {"concurrency": concurrency},
                "machine": {"cores": cores},
            }
        )
    )


# order


def test_a_pattern_is_found_and_its_shortest_form() -> None:
    order = find_order(np.array([0, 0, 1] * 40), 2)
    assert order.pattern == (0, 0, 1)
    assert order.agreement == 1.0
    assert order.chance < -10


def test_a_pattern_survives_a_few_exceptions() -> None:
    names = np.array([0, 0, 1] * 200)
    names[[100, 400]] = 1 - names[[100, 400]]
    assert find_order(names, 2).pattern == (0, 0, 1)


def test_a_random_mix_is_no_pattern() -> None:
    order = find_order(RNG.choice(3, size=500, p=[0.6, 0.3, 0.1]), 3)
    assert order.pattern is None
    assert order.weights == pytest.approx((0.6, 0.3, 0.1), abs=0.08)


# shapes


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("normal", RNG.normal(2.0, 0.4, 3000)),
        ("lognormal", RNG.lognormal(-1.0, 0.6, 3000)),
        ("gamma", RNG.gamma(2.0, 0.3, 3000)),
        ("constant", np.full(100, 0.25)),
        ("empirical", np.concatenate([RNG.normal(1, 0.05, 500), RNG.normal(3, 0.05, 500)])),
    ],
)
def test_a_distribution_is_recognised(kind: str, values: Any) -> None:
    shape = fit_shape(values)
    assert shape.kind == kind
    assert shape.mean == pytest.approx(values.mean())


# arrivals


def arrivals(times: Any) -> Arrivals:
    times = np.asarray(times, dtype=np.float64)
    no = np.zeros(len(times), dtype=bool)
    return Arrivals(np.arange(len(times)), times, times, no, no, 0, False, float(times[-1]))


def test_batches_are_found_with_their_pause_and_publishing() -> None:
    times = [10.1 * i + 0.02 * j + 0.02 for i in range(30) for j in range(5)]
    process = fit_process([arrivals(times)])
    assert process.kind == "batches"
    assert process.producer["batch_size"] == 5
    assert process.producer["pause_s"] == pytest.approx(10.0, abs=1e-3)
    assert process.producer["publish_s"] == pytest.approx(0.02, abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "gaps"),
    [
        ("poisson", RNG.exponential(0.5, 800)),
        ("rate", np.full(300, 0.4)),
        ("batches", RNG.gamma(9.0, 0.1, 800)),  # one message a batch: gaps of another distribution
        ("times", np.repeat(RNG.exponential(0.5, 200), 3) + RNG.exponential(0.02, 600)),
    ],
)
def test_a_process_of_single_messages_is_recognised(kind: str, gaps: Any) -> None:
    assert fit_process([arrivals(np.cumsum(gaps))]).kind == kind


def test_a_full_window_leaves_the_arrivals_open() -> None:
    log = arrivals(np.arange(100.0))
    log.held[5:] = True
    process = fit_process([log])
    assert process.kind == "saturated"
    assert "when messages were sent" in process.unknown[0]


# computing and waiting


def test_own_seconds_are_read_back_through_shared_cores() -> None:
    history = tasks_on_two_cores()
    tasks = history.tasks
    runs = Runs(tasks["started"], tasks["finished"], tasks["profile"].astype(np.intp))
    phases = read_back(runs, [Body(Order.CPU_FIRST, Spread.CPU, 0.7)], 2)
    assert phases.cpu_s.mean() == pytest.approx(0.5, rel=0.02)
    assert phases.cpu_s.std() == pytest.approx(0.05, rel=0.2)
    assert phases.slowdown.max() > 1.5


def test_slowdown_without_waiting_is_tasks_over_cores() -> None:
    assert slowdowns(1.0, 0.0, 2, 6)[[1, 2, 4, 6]] == pytest.approx([1, 1, 2, 3])


def test_slowdown_is_that_of_the_machine_repair_queue() -> None:
    """M/M/1//2, equal means: throughput 4/5 a second, so a response of 2 / (4/5) - 1 = 1.5 s."""
    assert slowdowns(1.0, 1.0, 1, 2)[2] == pytest.approx(1.5)


def test_tasks_that_never_share_are_not_told_apart() -> None:
    history = tasks_on_two_cores(cores=8)
    runs = Runs(
        history.tasks["started"],
        history.tasks["finished"],
        history.tasks["profile"].astype(np.intp),
    )
    assert not fit_split(runs, 1, 8).identified


def test_the_cores_are_found_where_the_log_tells() -> None:
    fit = calibrate([as_log(tasks_on_two_cores())], replications=0)
    assert fit.split.cores in (2, None)
    if fit.split.cores:
        assert fit.profiles[0].cpu_s == pytest.approx(0.5, abs=0.1)
    else:
        assert any("give --cores" in text for text in fit.unknown)


# settings


def test_a_full_window_tells_prefetch_and_late_acks() -> None:
    scenario = make_scenario(
        {
            "producer": {"kind": "rate", "rate_per_s": 20.0, "max_tasks": 300},
            "tasks": {"profiles": {"mail": {"steps": [{"io_s": 0.5}]}}},
            "worker": {"concurrency": 4, "prefetch_multiplier": 1, "task_acks_late": True},
        }
    )
    worker = calibrate([as_log(simulate(scenario))], replications=0).scenario.worker
    assert worker.task_acks_late
    assert worker.prefetch_multiplier == 1


def test_an_equal_number_of_tasks_of_all_replaced_children_is_their_limit() -> None:
    scenario = make_scenario(
        {
            "producer": {"kind": "rate", "rate_per_s": 4.0, "max_tasks": 300},
            "tasks": {"profiles": {"mail": {"steps": [{"io_s": 0.5}]}}},
            "worker": {"concurrency": 4, "max_tasks_per_child": 10},
        }
    )
    fit = calibrate([as_log(simulate(scenario))], replications=0)
    assert fit.scenario.worker.max_tasks_per_child == 10


# the whole


def test_the_file_is_a_scenario_with_a_head_that_tells_its_origin(tmp_path: Path) -> None:
    fit = calibrate([as_log(tasks_on_two_cores())], sources=["worker.log"], cores=2)
    path = tmp_path / "scenario.toml"
    fit.write(path)
    assert load_scenario(path) == fit.scenario
    head = [line for line in path.read_text().splitlines() if line.startswith("#")]
    assert head[0].startswith("# Covers: the worker of worker.log")
    assert max(map(len, head)) <= 100
    report = calibration_report(fit)
    assert "What the log cannot tell" in report
    assert "Residuals" in report


def test_a_scenario_fitted_to_a_log_predicts_another_run() -> None:
    scenario = load_scenario("puzzle", ["producer.max_tasks=200"])
    logs = [as_log(simulate(scenario, replication=number)) for number in range(3)]
    fit = calibrate(logs[:1], predict=logs[1:])
    forks = next(row for row in fit.predicted if row.figure == "forks")
    assert forks.bias == 0.0


def test_a_log_of_several_workers_is_refused() -> None:
    log = as_log(tasks_on_two_cores())
    lines = [f"worker-{n} | {line}".encode() for n in (1, 2) for line in worker_log(log)]
    with pytest.raises(LogError, match="2 workers"):
        calibrate([read_log(lines)])


def test_a_log_without_tasks_is_refused() -> None:
    line = b"[2026-04-26 01:24:33,650: INFO/MainProcess] celery@worker-host ready.\n"
    with pytest.raises(LogError, match="fewer than two tasks"):
        calibrate([read_log([line])])


def test_toml_is_read_back_as_it_was() -> None:
    data = {
        "producer": {"kind": "times", "times_s": [0.1 * i for i in range(50)]},
        "tasks": {
            "pattern": ["a b", "c.d"],
            "profiles": {
                'odd "name"\n': {
                    "steps": [{"io_s": {"kind": "empirical", "values": [0.1] * 80}}, {"cpu_s": 1}]
                },
            },
        },
        "worker": {"autoscale": [4, 2], "task_acks_late": True, "pool": "prefork"},
    }
    assert tomllib.loads(to_toml(data, ["Covers: x" * 60])) == data
