"""What a run is written as, and that others can read it."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from celerysim import Result, load_scenario, read_log, simulate
from celerysim.export import write_csv, write_json_lines, write_trace_events, write_worker_log
from celerysim.history import Outcome


@pytest.fixture(scope="module")
def result() -> Result:
    return simulate(load_scenario("puzzle", ["producer.max_tasks=200"]))


def test_json_lines_hold_everything_and_its_provenance(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_json_lines(result, path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    head, rows = lines[0], lines[1:]
    assert head["seed"] == 1
    assert head["scenario"]["worker"]["autoscale"] == [4, 0]
    counts = {name: sum(row["table"] == name for row in rows) for name in ("tasks", "children")}
    assert counts == {"tasks": 200, "children": result.forks}
    assert rows[0]["outcome"] == "succeeded"


def test_csv_has_a_row_a_task(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    write_csv(result, path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 200
    assert float(rows[7]["finished"]) == result.tasks["finished"][7]


def test_a_worker_log_goes_out_and_comes_back(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    write_worker_log(result, path)
    trace = read_log(path)
    assert not trace.line_counts.unexplained
    assert len(trace.tasks) == 200
    assert trace.forks == result.forks
    assert trace.settings["autoscale"] == [4, 0]
    assert (trace.scale_events["change"] == result.scale_events["change"]).all()
    for name in ("received", "finished"):
        order = np.argsort(result.tasks["received"], kind="stable")
        # a log has whole milliseconds
        assert np.abs(trace.tasks[name] - result.tasks[name][order]).max() < 1.0001e-3


def test_a_lost_task_shows_in_the_log(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    lost = simulate(
        make([1.0, 1.0, 1.0, 9.0, 9.005], ("io_s", 0.5), autoscale=[3, 0], keepalive=8.0,
             costs={"receive_s": 0.001, "dispatch_s": 0.01, "child_exit_s": 0.1})
    )  # fmt: skip
    path = tmp_path / "worker.log"
    write_worker_log(lost, path)
    assert read_log(path).count(Outcome.LOST) == 1


def test_trace_events_are_of_the_format(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_trace_events(result, path)
    events = json.loads(path.read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "i", "C"}
    tasks = [e for e in events if e["ph"] == "X" and e["name"] == "short"]
    assert len(tasks) == 200
    assert all(e["dur"] >= 0 and e["pid"] == 1 for e in events if e["ph"] == "X")
    # slices of one child never overlap
    for thread in {e["tid"] for e in tasks}:
        mine = sorted((e["ts"], e["ts"] + e["dur"]) for e in tasks if e["tid"] == thread)
        assert all(a[1] <= b[0] + 1e-3 for a, b in pairwise(mine))
