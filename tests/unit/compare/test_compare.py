"""Comparing: a recording that the model itself made is predicted; a changed one is not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from celerysim.compare import FIGURES, Prediction, compare
from celerysim.compare.picture import compare_picture
from celerysim.compare.report import compare_report
from celerysim.compare.stages import Stage, runs
from celerysim.errors import CelerysimError
from celerysim.record import files, load_recording
from celerysim.scenario import Scenario, make_scenario, override
from celerysim.uncertainty import with_spread

Recorded = Callable[..., Path]


def scenario(*overrides: str, **worker: object) -> Scenario:
    made = make_scenario(
        {
            "producer": {
                "kind": "batches",
                "batch_size": 4,
                "pause_s": 1.7,
                "publish_s": 0.05,
                "max_tasks": 160,
            },
            "tasks": {
                "profiles": {
                    "short": {
                        "steps": [
                            {"cpu_s": {"kind": "lognormal", "mean": 0.1, "sd": 0.03}},
                            {"io_s": 1.0},
                        ]
                    }
                }
            },
            "worker": {"autoscale": [4, 0], "keepalive": 10.0, "prefetch_multiplier": 1} | worker,
            "machine": {"cores": 2},
        }
    )
    return override(made, overrides) if overrides else made


def test_a_run_of_the_model_itself_is_replayed(recorded: Recorded, tmp_path: Path) -> None:
    made = scenario("machine.cores=16")  # a replay has no CPU steps, so nobody shares a core there
    found = compare(recorded(tmp_path / "r", made), replications=5)
    for path in ("forks", "scale_ups", "scale_downs", "tasks", "lost"):
        assert found.prediction("replayed", path).inside
    for path in ("throughput_per_s", "sojourn_s.mean", "sojourn_s.p95", "runtime_s.mean"):
        error = found.prediction("replayed", path).error
        assert error is not None
        assert abs(error) < 0.01  # costs are drawn: a fork takes 23 to 40 ms, and tasks 1.1 s
    assert found.prediction("predicted", "sojourn_s.mean").inside


def test_the_recording_s_own_random_numbers_are_no_prediction(
    recorded: Recorded, tmp_path: Path
) -> None:
    found = compare(recorded(tmp_path / "r", scenario()), replications=30, stages=["predicted"])
    mean = found.prediction("predicted", "runtime_s.mean")
    assert len(mean.values) == 30
    assert mean.observed is not None
    # Replication 0 has them: it would equal the observed value to the log's resolution.
    assert np.abs(mean.values - mean.observed).min() > 1e-6


def test_the_two_stages_tell_the_model_s_error_from_the_load_s(
    recorded: Recorded, tmp_path: Path
) -> None:
    """A machine a fifth slower than the scenario says: the load is wrong, the model is not."""
    slow = scenario("machine.speed=0.8")
    found = compare(recorded(tmp_path / "r", scenario(), real=slow), replications=30)
    assert abs(found.prediction("replayed", "runtime_s.mean").error or 1) < 0.001
    predicted = found.prediction("predicted", "runtime_s.mean")
    assert predicted.error == pytest.approx(1.1 / 1.125 - 1, abs=0.01)
    assert not predicted.inside


def test_another_keepalive_is_outside_in_both_stages(recorded: Recorded, tmp_path: Path) -> None:
    folder = recorded(tmp_path / "r", scenario(), real=scenario("worker.keepalive=20.0"))
    found = compare(folder, replications=5)
    assert not found.prediction("replayed", "forks").inside
    assert not found.prediction("predicted", "forks").inside
    mended = compare(folder, replications=5, overrides=["worker.keepalive=20.0"])
    assert mended.prediction("replayed", "forks").inside


@pytest.mark.parametrize(
    ("pool", "tolerance"),
    [("gevent", 0.002), ("solo", 0.002), ("threads", 0.01)],  # there: some turns of 5 ms in 1.3 s
)
def test_pools_of_one_process_are_replayed_by_their_steps(
    pool: str, tolerance: float, recorded: Recorded, tmp_path: Path
) -> None:
    made = scenario("producer.max_tasks=40", autoscale=None, pool=pool)
    found = compare(recorded(tmp_path / "r", made), replications=3, stages=["replayed"])
    for path in ("throughput_per_s", "sojourn_s.mean", "runtime_s.p95"):
        assert abs(found.prediction("replayed", path).error or 1) < tolerance


def test_cpu_seconds_are_those_of_the_recording_s_machine(
    recorded: Recorded, tmp_path: Path
) -> None:
    """Half the speed: a step of 0.1 s takes 0.2 s, in the recording and in its replay."""
    made = scenario("producer.max_tasks=40", "machine.speed=0.5", autoscale=None, pool="solo")
    found = compare(recorded(tmp_path / "r", made), replications=3, stages=["replayed"])
    assert abs(found.prediction("replayed", "runtime_s.mean").error or 1) < 0.002


def test_a_first_task_s_extra_work_is_in_its_logged_runtime(
    recorded: Recorded, tmp_path: Path
) -> None:
    made = scenario("machine.cores=16", "tasks.profiles.short.first_in_child_cpu_s=0.5")
    found = compare(recorded(tmp_path / "r", made), replications=3, stages=["replayed"])
    assert abs(found.prediction("replayed", "runtime_s.mean").error or 1) < 0.001


def test_an_overridden_cost_has_its_spread_too(recorded: Recorded, tmp_path: Path) -> None:
    recording = load_recording(recorded(tmp_path / "r", scenario("producer.max_tasks=4")))
    made = runs("predicted", recording, recording.trace(), 50, ["costs.fork_s=0.3"])
    forks = [drawn.costs.fork_s for drawn, _ in made]
    assert 0.227 <= min(forks) < 0.25
    assert 0.37 < max(forks) <= 0.396


@pytest.mark.parametrize("stage", ["replayed", "predicted"])
def test_costs_that_the_worker_measured_are_used(
    stage: Stage, recorded: Recorded, tmp_path: Path
) -> None:
    made = scenario("producer.max_tasks=4", autoscale=None, pool="gevent")
    folder = recorded(tmp_path / "r", made)
    files.write_json(folder / files.COSTS, {"backend_s": 0.004})
    recording = load_recording(folder)
    for overrides, expected in ([], 0.004), (["costs.backend_s=0.1"], 0.1):
        ((drawn, _),) = runs(stage, recording, recording.trace(), 1, overrides)
        assert drawn.costs.backend_s == expected


def test_a_busy_machine_is_named(recorded: Recorded, tmp_path: Path) -> None:
    folder = recorded(tmp_path / "r", scenario("producer.max_tasks=4"))
    details = json.loads((folder / files.RECORD).read_text())
    for other_s, warned in (0.5, False), (3.0, True):
        cpu = {"seconds": 10.0, "own_s": 1.0, "other_s": other_s, "stolen_s": 0.0}
        files.write_json(folder / files.RECORD, details | {"cpu": cpu})
        text = compare_report(compare(folder, replications=1))
        assert ("something else used 0.30 cores" in text) == warned


def test_a_prediction_s_numbers() -> None:
    forks = next(figure for figure in FIGURES if figure.path == "forks")
    values = np.arange(100.0)
    p = Prediction(forks, 50.0, values)
    assert p.interval == (2.0, 97.0)  # the values at 2.5 % and 97.5 % of 0..99, to the outside
    assert (p.mean, p.median, p.bias) == (49.5, 49.5, -0.5)
    assert p.error == pytest.approx(-0.01)
    assert [Prediction(forks, x, values).inside for x in (1.0, 2.0, 97.0, 98.0)] == [
        False, True, True, False,
    ]  # fmt: skip
    none = Prediction(forks, None, values)
    assert (none.error, none.inside, none.bias) == (None, None, None)
    sojourn = next(figure for figure in FIGURES if figure.path == "sojourn_s.mean")
    assert Prediction(sojourn, 1.0, np.array([1.05])).within
    assert not Prediction(sojourn, 1.0, np.array([1.07])).within


def test_each_run_draws_costs_between_the_measured_percentiles() -> None:
    made = scenario("costs.fork_s=0.3")  # an app ten times the size
    drawn = [with_spread(made, number).costs for number in range(1, 200)]
    forks = [costs.fork_s for costs in drawn]
    assert 0.227 <= min(forks) < 0.235
    assert 0.385 < max(forks) <= 0.396
    assert {costs.receive_s for costs in drawn} == {made.costs.receive_s}
    assert with_spread(made, 1) == with_spread(made, 1)


def test_each_run_draws_an_order_of_pipes_unless_it_is_given() -> None:
    made = scenario()
    drawn = {with_spread(made, number).worker.write_order for number in range(1, 200)}
    assert len(drawn) == 24  # all orders of four places
    given = scenario(write_order=[4, 3, 2, 1])
    assert with_spread(given, 1).worker.write_order == (4, 3, 2, 1)
    green = scenario(autoscale=None, pool="gevent")
    assert with_spread(green, 1).worker.write_order is None


def test_a_recording_that_never_began_is_refused(recorded: Recorded, tmp_path: Path) -> None:
    folder = recorded(tmp_path / "r", scenario("producer.max_tasks=4"))
    details = json.loads((folder / files.RECORD).read_text())
    files.write_json(folder / files.RECORD, details | {"ready_epoch": None, "reason": "killed"})
    with pytest.raises(CelerysimError, match=r"never was ready \(killed\)"):
        compare(folder)


def test_report_and_picture(recorded: Recorded, tmp_path: Path) -> None:
    found = compare(recorded(tmp_path / "r", scenario()), replications=3)
    text = compare_report(found)
    assert "replayed: the observed arrivals and runtimes" in text
    assert "processes forked" in text
    assert "within 6 %" in text
    assert len(compare_picture(found, "title").axes) == 3


def test_the_command(recorded: Recorded, tmp_path: Path) -> None:
    folder = recorded(tmp_path / "r", scenario("producer.max_tasks=8"))
    command = [sys.executable, "-m", "celerysim.cli", "compare"]
    done = subprocess.run(
        [*command, str(folder), "--replications", "2", "--json", "--plot", str(tmp_path / "p.png")],
        capture_output=True,
        text=True,
        check=True,
    )
    stages = json.loads(done.stdout)["stages"]
    assert stages["replayed"]["forks"]["inside"] is True
    assert len(stages["predicted"]["forks"]["predicted"]["values"]) == 2
    assert (tmp_path / "p.png").stat().st_size > 10_000
    nothing = subprocess.run([*command, str(tmp_path / "no")], capture_output=True, text=True)
    assert nothing.returncode == 2
    assert "holds no recording" in nothing.stderr
