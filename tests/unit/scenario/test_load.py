"""Scenarios: files, overrides, and errors that name path, value, rule and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from celerysim import ScenarioError, load_scenario, make_scenario
from celerysim.scenario import descriptions, override, shipped

GOOD: dict[str, Any] = {
    "producer": {"batch_size": 4, "kind": "batches", "pause_s": 1.0, "max_tasks": 8},
    "tasks": {"profiles": {"a": {"steps": [{"cpu_s": 0.1}, {"io_s": 0.2}]}}},
}


def problems(data: dict[str, Any], *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        make_scenario(data, overrides)
    return [str(problem) for problem in error.value.problems]


def test_defaults_are_celerys() -> None:
    worker = make_scenario(GOOD).worker
    assert worker.keepalive == 30.0
    assert worker.prefetch_multiplier == 4
    assert not worker.task_acks_late
    assert worker.optimization == "fair"
    assert worker.proc_alive_timeout == 4.0


def test_a_scenario_cannot_be_changed() -> None:
    scenario = make_scenario(GOOD)
    with pytest.raises(ValidationError, match="frozen"):
        scenario.run.seed = 5  # type: ignore[misc]


def test_overrides_are_toml_values_and_bare_words() -> None:
    scenario = make_scenario(
        GOOD,
        [
            "worker.keepalive=600",
            "worker.autoscale=[4,2]",
            "worker.optimization=fast",
            "tasks.profiles.a.steps.1.io_s=0.7",
            "producer.publish_s={kind='uniform', low=0.0, high=0.1}",
        ],
    )
    assert scenario.worker.keepalive == 600
    assert scenario.worker.autoscale == (4, 2)
    assert scenario.worker.optimization == "fast"
    assert scenario.tasks.profiles["a"].steps[1].seconds.expectation == 0.7
    assert scenario.producer.publish_s.expectation == pytest.approx(0.05)


def test_a_dumped_scenario_loads_again() -> None:
    scenario = load_scenario("puzzle", ["worker.time_limit=9"])
    assert make_scenario(scenario.model_dump(mode="json", exclude_none=True)) == scenario
    assert override(scenario, ["run.seed=7"]).run.seed == 7


@pytest.mark.parametrize("name", list(shipped()))
def test_every_shipped_scenario_loads_and_says_what_it_is_for(name: str) -> None:
    load_scenario(name)
    assert "Covers:" in descriptions()[name]
    assert "Answers:" in descriptions()[name]


def test_all_problems_are_reported_at_once() -> None:
    found = problems(
        GOOD,
        "worker.keepalive=0",
        "worker.autoscale=[2,4]",
        "machine.core=2",
        "tasks.pattern=['z']",
        "worker.time_limit=1",
        "worker.soft_time_limit=2",
    )
    assert len(found) == 5


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ("worker.prefetch_multiplyer=1", "worker.prefetch_multiplyer", "'prefetch_multiplier'"),
        ("nonsense=1", "nonsense", "producer, tasks, broker"),
        ("worker.keepalive=0", "worker.keepalive", "greater than 0"),
        ("worker.keepalive='30'", "worker.keepalive", "number"),
        ("worker.keepalive=true", "worker.keepalive", "number"),
        ("worker.concurrency=2.5", "worker.concurrency", "whole number"),
        ("worker.autoscale=[2,4]", "worker.autoscale", "write autoscale = [4, 2]"),
        ("worker.autoscale=[0,0]", "worker.autoscale.0", "at least 1"),
        ("worker.write_order=[2,2]", "worker.write_order", "write write_order = [2, 1]"),
        ("worker.optimization=slow", "worker.optimization", "'fair' or 'fast'"),
        ("worker.task_acks_late=2", "worker.task_acks_late", "true or false"),
        ("worker.soft_time_limit=9", "worker.soft_time_limit", None),
        ("producer.pause_s=-1", "producer.pause_s.value", "at least 0"),
        ("producer.pause_s=nan", "producer.pause_s.value", "finite"),
        ("producer.kind=stream", "producer", "'batches', 'rate', 'poisson', 'times'"),
        ("producer.batch_size=0", "producer.batch_size", "at least 1"),
        ("tasks.profiles={}", "tasks.profiles", "at least 1"),
        ("tasks.pattern=['b']", "tasks.pattern", "add [tasks.profiles.b]"),
        ("tasks.profiles.a.steps=[{}]", "tasks.profiles.a.steps.0", "write { cpu_s = 0.1 }"),
        ("tasks.profiles.a.steps=[]", "tasks.profiles.a.steps", "at least 1"),
        ("tasks.profiles.a.aftermath=3", "tasks.profiles.a.aftermath", "must be a table"),
        (
            "tasks.profiles.a.aftermath={factor=1.1, share=0.1, share_after_idle=0.1, idle=3.0}",
            "tasks.profiles.a.aftermath.idle",
            "did you mean 'idle_s'",
        ),
        ("worker.write_order=3", "worker.write_order", "must be a list"),
        ("run.horizon_s=0", "run.horizon_s", "greater than 0"),
        ("run.seed=-1", "run.seed", "at least 0"),
        ("costs.fork_s=-0.1", "costs.fork_s", "at least 0"),
        ("machine.cores=0", "machine.cores", "at least 1"),
    ],
)
def test_bad_values_are_named_with_rule_and_remedy(
    change: str, path: str, words: str | None
) -> None:
    extra = ["worker.time_limit=5"] if words is None else []
    found = problems(GOOD, change, *extra)
    assert len(found) == 1
    assert found[0].startswith(f"{path} = ")
    assert "Remedy: " in found[0]
    assert (words or "lower soft_time_limit") in found[0]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("{kind='normal', mean=0.1}", "sd"),
        ("{kind='normal', mean=-0.1, sd=0.1}", "greater than 0"),
        ("{kind='uniform', low=2.0, high=1.0}", "write low = 1, high = 2"),
        ("{kind='empirical', values=[]}", "at least 1"),
        ("{kind='weibull', mean=0.1}", "kinds: normal"),
        ("'fast'", "kinds: normal"),
    ],
)
def test_bad_distributions(kind: str, words: str) -> None:
    assert words in problems(GOOD, f"producer.pause_s={kind}")[0]


def test_a_producer_that_never_stops_needs_a_horizon() -> None:
    endless = GOOD | {"producer": {"kind": "rate", "rate_per_s": 2.0}}
    assert "give producer.max_tasks" in problems(endless)[0]
    make_scenario(endless, ["run.horizon_s=10"])


def test_times_must_ascend() -> None:
    data = GOOD | {"producer": {"kind": "times", "times_s": [1.0, 0.5]}}
    assert "sort the times" in problems(data)[0]


def test_a_missing_section_is_named() -> None:
    assert problems({"tasks": GOOD["tasks"]})[0].startswith("producer = (missing)")


@pytest.mark.parametrize("key", ['"my.tasks.add"', "'my.tasks.add'"])
def test_a_key_with_dots_is_written_in_quotes(key: str) -> None:
    tasks = {"profiles": {"my.tasks.add": {"steps": [{"io_s": 1.0}]}}}
    scenario = make_scenario(GOOD | {"tasks": tasks}, [f"tasks.profiles.{key}.weight=2.5"])
    assert scenario.tasks.profiles["my.tasks.add"].weight == 2.5


def test_an_error_names_a_key_with_dots_as_set_takes_it() -> None:
    tasks = {"profiles": {"my.task": {"steps": [{"io_s": 1.0}]}}}
    (found,) = problems(GOOD | {"tasks": tasks}, "tasks.profiles.'my.task'.weight=0")
    assert found.startswith('tasks.profiles."my.task".weight = 0')


def test_a_key_in_quotes_is_taken_as_it_is() -> None:
    tasks = {"profiles": {name: {"steps": [{"io_s": 1.0}]} for name in ("a", " a ", "a=b")}}
    changes = ['tasks.profiles." a ".weight=2', 'tasks.profiles."a=b".weight=3']
    found = make_scenario(GOOD | {"tasks": tasks}, changes).tasks.profiles
    assert {name: profile.weight for name, profile in found.items()} == {"a": 1, " a ": 2, "a=b": 3}


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "a b", '"a', 'a."b', "'a'b"])
def test_what_is_no_path(path: str) -> None:
    assert "dotted.path=value" in problems(GOOD, f"{path}=1")[0]


def test_an_override_that_is_none() -> None:
    assert "dotted.path=value" in problems(GOOD, "worker.keepalive")[0]
    assert "shorten the path" in problems(GOOD, "tasks.profiles.a.steps.0.cpu_s.x=1")[0]
    assert "entries 0 to 1" in problems(GOOD, "tasks.profiles.a.steps.5.io_s=1")[0]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[worker\nkeepalive = 3")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(bytes(range(256)))
    for source, words in (
        (broken, "not valid TOML"),
        (binary, "cannot be read"),
        (tmp_path, "is a folder"),
        (tmp_path / "none.toml", "is no file and no shipped scenario"),
        ("puzle", "did you mean 'puzzle'"),
    ):
        with pytest.raises(ScenarioError, match=words):
            load_scenario(source)
