"""The published cells as scenarios, and the published figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from celerysim.studies.cells import (
    CELLS,
    Cell,
    calibration,
    forks_of_runs,
    medians,
    published,
    scenario_of,
)

GREEN = Cell("schedule", "gevent", 2)
PREFORK = Cell("schedule", "concurrency", 2)


def test_there_are_24() -> None:
    assert len(set(CELLS)) == 24
    assert Cell("cumulative", "autoscale", 8).name == "cumulative autoscale(8,4)"
    assert GREEN.label == "gevent(2)"


def test_exactly_two_cells_are_calibrated() -> None:
    assert [cell for cell in CELLS if cell.is_calibrated] == [PREFORK, GREEN]


def test_only_load_and_worker_differ_between_the_cells_of_one_family() -> None:
    families: dict[bool, list[dict[str, object]]] = {True: [], False: []}
    for cell in CELLS:
        scenario = scenario_of(cell)
        producer = scenario.producer.model_dump(exclude={"batch_size", "pause_s"})
        rest = {"tasks": scenario.tasks.profiles, "machine": scenario.machine}
        families[cell.is_green].append({**rest, "costs": scenario.costs, "producer": producer})
    for scenarios in families.values():
        assert all(scenario == scenarios[0] for scenario in scenarios)


def test_the_prefork_tasks_last_as_long_as_in_the_calibrating_cell() -> None:
    # mean runtimes in the logs of schedule concurrency(2), without the first batch
    logged = {
        "cpu then sleep": 1.6363,
        "sleep then cpu": 1.6189,
        "memory": 1.6735,
    }
    profiles = scenario_of(PREFORK).tasks.profiles
    aftermath = profiles["memory"].aftermath
    assert aftermath is not None
    slow = {  # all odd tasks and 144 of the 152 even ones come after a memory task in their child
        "cpu then sleep": aftermath.share_after_idle,
        "sleep then cpu": aftermath.share * 144 / 152,
        "memory": 0.0,
    }
    for name, mean_s in logged.items():
        longer = {True: 1 + slow[name] * (aftermath.factor - 1), False: 1.0}
        total = sum(s.seconds.expectation * longer[s.is_cpu] for s in profiles[name].steps)
        assert total == pytest.approx(mean_s, abs=0.0005)
    first_s = profiles["memory"].first_in_child_cpu_s  # 16 tasks of the same logs
    assert logged["memory"] + first_s == pytest.approx(1.7274, abs=0.0001)


def test_every_third_task_is_memory() -> None:
    names = scenario_of(Cell("cumulative", "concurrency", 4)).tasks.pattern
    assert names is not None
    assert [i for i, name in enumerate(names, 1) if name == "memory"] == [3, 6]
    assert names[:2] == ("cpu then sleep", "sleep then cpu")  # the index counts from 1: odd first


def test_the_worker_is_the_published_one() -> None:
    worker = scenario_of(Cell("schedule", "autoscale", 8)).worker
    assert (worker.pool, worker.autoscale, worker.prefetch_count) == ("prefork", (8, 4), 8)
    assert worker.task_acks_late
    green = scenario_of(GREEN).worker
    assert (green.pool, green.concurrency, green.autoscale) == ("gevent", 2, None)


def test_published_figures() -> None:
    cell = Cell("schedule", "autoscale", 8)
    assert published(cell)["forks"] == 43.75
    assert published(cell)["sojourn_s"] == {"mean": 1.87, "median": 1.85, "p90": 2.07, "p95": 2.15}
    assert medians(cell)["sojourn_s"]["mean"] == 1.872
    assert sorted(set(forks_of_runs(cell))) == [41, 42, 44]
    assert forks_of_runs(GREEN) == ()


def test_without_raw_data_the_row_stands_in_for_the_medians() -> None:
    sources = {cell.name: medians(cell)["source"] for cell in CELLS}
    assert [name for name, source in sources.items() if source != "runs"] == [
        "cumulative concurrency(8)"
    ]


def test_the_figures_are_those_of_the_shared_file(reference: Path) -> None:
    shared = json.loads((reference / "article_tables.json").read_text())
    row = shared["cumulative"]["eventlet(8)"]
    figures = published(Cell("cumulative", "eventlet", 8))
    assert [figures["tasks"], *figures["sojourn_s"].values()] == [row[i] for i in (2, 4, 8, 9, 10)]


def test_the_file_declares_its_cells() -> None:
    assert calibration()["calibrated_on"] == ["schedule concurrency(2)", "schedule gevent(2)"]
