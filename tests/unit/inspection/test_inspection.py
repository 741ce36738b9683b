"""An inspection as a whole: its parts, its JSON, its text, its picture."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest

from celerysim import LogError, load_scenario, read_log, simulate
from celerysim.export import write_worker_log
from celerysim.inspection import inspect, inspection_report, picture, read_observed
from celerysim.inspection.sections import bin_width
from celerysim.metrics import summary
from celerysim.plots import save


@pytest.fixture(scope="module")
def puzzle():
    return simulate(load_scenario("puzzle"))


@pytest.fixture(scope="module")
def puzzle_log(puzzle, tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "worker.log"
    write_worker_log(puzzle, path)
    return path


def test_reading_for_inspection_gives_the_same_rows(puzzle_log):
    observed, plain = read_observed(puzzle_log), read_log(puzzle_log)
    assert str(observed.tasks) == str(plain.tasks)
    assert observed.ids == plain.ids
    assert observed.settings == plain.settings
    assert observed.line_counts == plain.line_counts
    assert observed.scale_events.tolist() == plain.scale_events.tolist()
    assert [incident.kind for incident in observed.incidents] == ["ready", "shutdown"]


def test_a_simulated_run_and_its_log_give_the_same_answer(puzzle, puzzle_log):
    log, run = inspect(read_observed(puzzle_log)), inspect(puzzle)
    for key in ("forks", "scale_ups", "scale_downs", "tasks", "lost"):
        assert log.summary[key] == run.summary[key]
    assert log.summary["runtime_s"]["median"] == pytest.approx(
        run.summary["runtime_s"]["median"], abs=1e-3
    )
    assert log.forks_per_hour == pytest.approx(run.forks_per_hour, rel=1e-3)
    assert [f.name for f in log.findings] == [f.name for f in run.findings] == ["churn"]
    assert log.findings[0].text == run.findings[0].text
    by_trigger = [
        [(row["direction"], row["events"]) for row in found.scale_events["by_trigger"]]
        for found in (log, run)
    ]
    assert by_trigger[0] == by_trigger[1]


def test_the_json_is_plain_and_holds_the_keys_of_a_summary(puzzle, puzzle_log):
    for history in (puzzle, read_observed(puzzle_log), read_log(puzzle_log)):
        data = inspect(history).as_json()
        again = json.loads(json.dumps(data, allow_nan=False))
        assert summary(history).keys() <= again.keys()
        assert again["findings"][0]["numbers"]["forks"] == 31


def test_names_are_counted_by_what_became_of_them(worker_log):
    log = worker_log("2 (prefork)")
    for k in range(4):
        log.task(k, k + 0.5, 2, 1, "slow")
        log.task(k, k + 0.25, 0.5, 2, "quick")
    log.failed(5, 6, "ValueError('x')", "quick")
    log.received(7, "quick")
    slow, quick = inspect(log.trace()).names
    assert (slow["name"], slow["tasks"], slow["succeeded"]) == ("slow", 4, 4)
    assert (quick["tasks"], quick["failed"], quick["unfinished"]) == (6, 1, 1)
    assert slow["runtime_s"]["median"] == 2
    assert slow["worker_wait_s"]["median"] == 0.5
    assert slow["running_share"] == pytest.approx(8 / 10)


def test_throughput_adds_up(worker_log):
    log = worker_log("1 (prefork)")
    for k in range(100):
        log.task(k, k, 0.5)
    found = inspect(log.trace()).throughput
    assert found["bin_s"] == 5
    assert len(found["bins"]) == 20
    assert sum(entry["received"] for entry in found["bins"]) == 100
    assert sum(entry["finished"] for entry in found["bins"]) == 100
    assert found["bins"][3]["running"] == pytest.approx(0.5)
    assert found["bins"][3]["pool"] == 1


@pytest.mark.parametrize(
    ("duration_s", "width"), [(1, 0.1), (300, 15), (301, 30), (86400, 7200), (86400 * 100, 432000)]
)
def test_pieces_of_time_are_round(duration_s, width):
    assert bin_width(duration_s) == width


def test_scale_events_are_counted_by_trigger(worker_log):
    log = worker_log("{min=1, max=4} (prefork)")
    log.received(1)
    log.scaled(1.001, 2)
    log.received(2)
    log.scaled(2.001, 1)
    log.scaled(40, -3)
    assert inspect(log.trace()).scale_events == {
        "trigger_inferred": True,
        "by_trigger": [
            {"direction": "up", "trigger": "message", "events": 2, "processes": 3},
            {"direction": "down", "trigger": "timer", "events": 1, "processes": 3},
        ],
    }


def test_a_lost_task_is_shown_with_what_surrounded_it(worker_log):
    log = worker_log("{min=1, max=4} (prefork)")
    log.received(0.5, id="a")
    log.scaled(0.501, 3)
    log.line(2, "ForkPoolWorker-4", "Task a.b[a] succeeded in 1.0s: None")
    log.received(40, "mail", id="poor")
    log.scaled(40.001, -3)
    log.scaled(40.002, 1)
    text = "WorkerLostError('Worker exited prematurely: signal 15 (SIGTERM) Job: 1.')"
    log.main(40.2, f"Task handler raised error: {text}", "ERROR")
    log.failed(41, 42, "ValueError('no such   address')")
    found = inspect(log.trace())
    poor, failed = found.troubles["rows"]
    assert (poor["id"], poor["outcome"], poor["error"]) == ("poor", "lost", "WorkerLostError")
    assert (poor["received"], poor["finished"]) == (40, 40.2)
    assert poor["scale_event_before"]["change"] == 1
    assert poor["scale_down_before"]["killed"] == [2, 3, 4]  # the first is seen later
    assert poor["scale_down_before"]["seconds_before"] == pytest.approx(0.199)
    assert failed["error"] == "raised unexpected: ValueError('no such address')"
    assert found.troubles["errors"] == [{"name": "a.b", "error": "ValueError", "tasks": 1}]
    report = inspection_report("worker.log", found)
    assert "mail[poor]: received 40.000, lost 40.200, WorkerLostError; scaled -3 by" in report


def test_nothing_is_dropped_silently(worker_log):
    log = worker_log("1 (prefork)")
    log.bare(1, "what is this?")
    for k in range(40):
        log.task(k, k, 0.1, 1, f"name-{k}")
    found = inspect(log.trace())
    assert found.lines["unexplained"] == 1
    report = inspection_report("worker.log", found)
    assert "line 7: 'what is this?'" in report
    assert "1 of 85 lines were not understood" in " ".join(report.split())
    assert "... and 24 more (name by name in --json)" in report
    assert len(found.as_json()["names"]) == 40


def test_a_report_says_what_the_log_cannot_tell(worker_log):
    log = worker_log("1 (prefork)")
    log.task(1, 1, 1)
    trace = read_observed(log.lines()[4:])
    report = " ".join(inspection_report("cut.log", inspect(trace)).split())
    assert "the log has no start-up banner" in report
    assert "settings in the log none" in report
    assert "nothing that stands out" in report


def test_a_log_without_tasks_or_time_is_inspected_too():
    lines = ["[2026-03-02 08:15:01,204: INFO/MainProcess] celery@h ready."]
    found = inspect(read_observed(lines))
    json.dumps(found.as_json(), allow_nan=False)
    assert "tasks finished        0" in inspection_report("x", found)
    event = {"type": "task-received", "timestamp": 1772439300.0, "uuid": "x", "name": "a"}
    event["hostname"] = "celery@h"
    json.dumps(inspect(read_observed([json.dumps(event)])).as_json(), allow_nan=False)


@pytest.mark.parametrize("pool", ["4 (thread)", "100 (gevent)", "1 (solo)"])
def test_pools_without_children(worker_log, pool):
    log = worker_log(pool)
    for k in range(100):
        id = log.received(k)
        log.main(k + 0.5, f"Task a.b[{id}] succeeded in 0.5s: None")
    found = inspect(log.trace())
    assert found.children["count"] == 0
    assert found.throughput["bins"][2]["pool"] == int(pool.split()[0])
    inspection_report("worker.log", found)


def test_the_picture_shows_each_child_where_it_lived(puzzle_log, tmp_path: Path):
    figure = picture(inspect(read_observed(puzzle_log)), "puzzle")
    assert len(figure.axes) == 2
    assert len(figure.axes[0].get_yticks()) == 4  # four places for 31 children
    save(figure, tmp_path / "bars.png")


def test_the_picture_of_many_hours_is_an_overview(worker_log, tmp_path: Path):
    log = worker_log("2 (prefork)")
    for k in range(5000):
        log.task(k * 8.0, k * 8.0, 4)
    figure = picture(inspect(log.trace()), "long")
    assert len(figure.axes) == 3
    assert figure.axes[2].get_xlabel() == 'hours after "ready", each step 300 s'
    save(figure, tmp_path / "overview.png")


def test_the_picture_keeps_children_of_two_lives_apart(worker_log, tmp_path: Path):
    log = worker_log("2 (prefork)")
    for start in (0, 100):
        log.task(start + 1, start + 1, 1, 1)
        log.task(start + 1, start + 1, 1, 2)
    log.main(99, "celery@h ready.")
    figure = picture(inspect(log.trace()))
    assert len(figure.axes[0].get_yticks()) == 2
    save(figure, tmp_path / "restart.svg")


def test_a_log_in_which_no_time_passes_cannot_be_drawn(worker_log):
    with pytest.raises(LogError, match="Remedy: give a log with time stamps"):
        picture(inspect(worker_log().trace()))


def test_damaged_logs_are_inspected_all_the_same(puzzle_log):
    rng = random.Random(5)
    lines = puzzle_log.read_bytes().split(b"\n")
    for _ in range(60):
        begin, end = sorted(rng.sample(range(len(lines)), 2))
        piece = lines[begin:end]
        if rng.random() < 0.5:
            rng.shuffle(piece)
        data = bytearray(b"\n".join(piece))
        for _ in range(min(rng.choice([0, 20, 400]), len(data))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            found = inspect(read_observed(io.BytesIO(bytes(data))))
        except LogError:
            continue
        json.dumps(found.as_json(), allow_nan=False)
        inspection_report("damaged.log", found)


def test_reference_logs(reference: Path) -> None:
    """What the published runs show: churn of 30 s, and two logs with lost tasks."""
    logs = sorted((reference / "prefork_logs").glob("*.log.gz"))
    assert len(logs) == 96
    lost = []
    for path in logs:
        found = inspect(read_observed(path))
        assert found.lines is not None
        assert found.lines["unexplained"] == 0
        names = {finding.name for finding in found.findings}
        kind, scaling, _, run = path.name.removesuffix(".log.gz").split("_")
        assert ("idle" in names) is (kind == "schedule")
        assert ("all_busy" in names) is (kind == "cumulative")
        if scaling == "concurrency":
            assert "churn" not in names
        elif kind == "schedule":
            churn = next(finding for finding in found.findings if finding.name == "churn")
            assert churn.numbers["period_s"] == pytest.approx(30.0, abs=0.1)
            assert churn.numbers["regular"]
        if "lost_at_scale_down" in names:
            lost.append(run)
        assert not names - {"idle", "all_busy", "churn", "lost_at_scale_down"}
    assert lost == ["run03", "run06"]
