"""Experiment files: what they say, and what is wrong with bad ones, all at once, with a remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from celerysim import CelerysimError, Scenario, ScenarioError
from celerysim.sweep import ExperimentError, load_experiment, sweep
from celerysim.sweep.experiment import base_scenario, make_experiment
from celerysim.sweep.study import run_experiment

AXIS = {"field": "worker.keepalive", "values": [5, 30]}


def test_a_folder_stands_for_its_file(write: Callable[..., Path]) -> None:
    folder = write("question = 'Why?'\n")
    experiment, path = load_experiment(folder)
    assert experiment.question == "Why?"
    assert path == folder / "sweep.toml"
    assert load_experiment(path)[0] == experiment


def test_the_scenario_is_a_name_a_file_or_tables(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        "[producer]\nkind = 'rate'\nrate_per_s = 1.0\nmax_tasks = 7\n"
        "[tasks.profiles.a]\nsteps = [{ io_s = 1.0 }]\n"
    )

    def tasks(scenario: object, **fields: object) -> int | None:
        experiment = make_experiment({"scenario": scenario, **fields})
        return base_scenario(experiment, tmp_path).producer.max_tasks

    assert tasks("puzzle") == 600
    assert tasks("mine.toml") == 7
    assert tasks("mine.toml", set=["producer.max_tasks=9"]) == 9
    seeded = make_experiment({"scenario": "puzzle", "seed": 12})
    assert base_scenario(seeded, tmp_path).run.seed == 12


def test_what_pictures_and_precision_need_is_kept() -> None:
    experiment = make_experiment(
        {
            "scenario": "puzzle",
            "axes": [AXIS],
            "outputs": ["forks"],
            "until": {"statistic": "sojourn_s.mean", "half_width": 0.1},
            "pictures": [{"kind": "lines", "x": "worker.keepalive", "y": ["lost", "forks"]}],
        }
    )
    assert experiment.columns() == ("forks", "sojourn_s.mean", "lost")


PICTURE = {"kind": "lines", "x": "worker.keepalive", "y": ["forks"]}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"scenario": 3}, "scenario is a name, a path or a table"),
        ({"replication": 3}, "did you mean 'replications'?"),
        ({"replications": 0}, "at least 1"),
        ({"replications": 1.5}, "write a whole number"),
        ({"replications": 2, "until": {"statistic": "forks", "relative": 0.1}}, "exclude"),
        ({"until": {"statistic": "forks"}}, "either half_width or relative"),
        ({"until": {"statistic": "forks", "relative": 0.1, "at_most": 3}}, "at_least is above"),
        ({"until": {"statistic": "fork", "relative": 0.1}}, "did you mean 'forks'?"),
        ({"outputs": ["sojourn_s.p96"]}, "did you mean 'sojourn_s.p9"),
        ({"outputs": []}, "at least 1"),
        ({"axes": [AXIS, AXIS]}, "two axes set this field"),
        ({"axes": [{**AXIS, "vaules": [1]}]}, "axes.0.vaules"),
        ({"axes": [{"field": "a", "log": {"from": 1, "to": 5}}]}, "axes.0.log.points = (missing)"),
        ({"axes": [{"field": "a", "log": [1, 5]}]}, "write a table"),
        ({"axes": [{**AXIS, "name": "x"}, {"name": "x", "cases": {"a": []}}]}, "have this name"),
        ({"pictures": [{**PICTURE, "kind": "pie"}]}, "use one of 'lines', 'heatmap' or 'pareto'"),
        ({"pictures": [{**PICTURE, "x": "worker.keepalve"}]}, "did you mean 'worker.keepalive'?"),
        ({"pictures": [{**PICTURE, "y": ["fork"]}]}, "did you mean 'forks'?"),
        ({"pictures": [{**PICTURE, "log": ["x"]}]}, "does not show 'x'"),
        ({"pictures": [PICTURE, PICTURE]}, "the same file"),
        ({"pictures": [{**PICTURE, "file": "../a.png"}]}, "write file = 'a.png'"),
        ({"pictures": [{**PICTURE, "kind": "heatmap"}]}, "a heatmap has a value"),
        (
            {"axes": [AXIS, {"field": "machine.cores", "values": [1, 2]}], "pictures": [PICTURE]},
            "leaves out the axis machine.cores",
        ),
    ],
)
def test_bad_experiments_say_what_is_wrong_and_what_to_do(
    fields: dict[str, object], words: str
) -> None:
    with pytest.raises(ExperimentError) as caught:
        make_experiment({"scenario": "puzzle", "axes": [AXIS]} | fields)
    assert words in str(caught.value)
    assert all(found.remedy for found in caught.value.problems)


def test_everything_wrong_is_reported_at_once() -> None:
    with pytest.raises(ExperimentError) as caught:
        make_experiment({"scenario": "puzzle", "seed": -1, "outputs": ["x"], "axis": []})
    assert len(caught.value.problems) == 3


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"cannot be read.*folder with a sweep\.toml"):
        load_experiment(tmp_path)
    (tmp_path / "sweep.toml").write_text("[axes\n")
    with pytest.raises(ExperimentError, match="not valid TOML"):
        load_experiment(tmp_path)


def test_points_that_are_no_scenarios_are_refused_before_anything_runs(
    scenario: Scenario,
) -> None:
    with pytest.raises(ScenarioError) as caught:
        sweep(scenario, {"worker.keepalive": [5, 0, -1], "worker.keepalvie": [1, 2]})
    assert "greater than 0" in str(caught.value)
    assert "did you mean 'keepalive'?" in str(caught.value)
    assert len(caught.value.problems) == 2  # each kind of problem once


def test_an_axis_may_not_have_a_columns_name(scenario: Scenario) -> None:
    axis = {"field": "worker.keepalive", "values": [5], "name": "forks"}
    with pytest.raises(ExperimentError, match="is a column's name"):
        sweep(scenario, [axis], outputs=["forks"])


def test_the_batch_engine_refuses_by_name(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("celerysim.engines.refusals", lambda scenario: ["worker.pool = solo"])
    with pytest.raises(CelerysimError, match=r"point 0 \(worker\.keepalive=5\): .*solo"):
        sweep(scenario, {"worker.keepalive": [5]}, engine="batch")
    table = sweep(scenario, {"worker.keepalive": [5]}, engine="auto", processes=1)
    assert table.provenance["engines"] == ["reference"]


def test_ways_to_work_exclude_each_other(scenario: Scenario) -> None:
    with pytest.raises(CelerysimError, match="exclude each other"):
        sweep(scenario, {"worker.keepalive": [5]}, processes=2, dask="tcp://x:1")


def test_a_study_writes_what_it_says(write: Callable[..., Path]) -> None:
    folder = write(
        "question = 'What if?'\nreplications = 2\noutputs = ['forks', 'sojourn_s.p95']\n"
        "[[axes]]\nfield = 'worker.keepalive'\nvalues = [5, 600]\n"
        "[[pictures]]\nkind = 'lines'\nx = 'worker.keepalive'\ny = ['forks']\n"
    )
    study = run_experiment(folder, engine="reference")
    assert {"rows.csv", "summary.csv", "study.json", "picture.png"} <= set(study.files)
    lines = (folder / "result" / "rows.csv").read_text().splitlines()
    assert lines[0] == "point,worker.keepalive [s],replication,forks,sojourn_s.p95"
    assert len(lines) == 1 + 2 * 2
    assert study.as_json()["units"] == {"worker.keepalive": "s", "sojourn_s.p95": "s"}
    assert run_experiment(folder, replications=1, engine="reference").as_json()["runs"] == 2
