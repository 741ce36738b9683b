"""A recording's folder: read back, joined with its log, packed, refused when it is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from celerysim.history import Outcome
from celerysim.record import RecordError, files, load_recording
from celerysim.scenario import make_scenario

EPOCH = 1_700_000_000.1234  # 2023-11-14 22:13:20.1234 UTC
SCENARIO = make_scenario(
    {
        "producer": {"kind": "times", "times_s": [0.0, 1.0, 2.0]},
        "tasks": {
            "profiles": {
                "never": {"steps": [{"io_s": 1.0}]},
                "short": {"steps": [{"cpu_s": 0.05}, {"io_s": 1.5}]},
            },
            "pattern": ["short", "short", "never"],
        },
        "worker": {"autoscale": [4, 0]},
    }
)
LOG = """
[2023-11-14 22:13:20,123: INFO/MainProcess] celerysim@localhost ready.
[2023-11-14 22:13:20,130: INFO/MainProcess] Task short[00000000-x] received
[2023-11-14 22:13:21,135: INFO/MainProcess] Task short[00000001-x] received
[2023-11-14 22:13:21,700: INFO/ForkPoolWorker-1] Task short[00000000-x] succeeded in 1.55s: None
"""
PUBLISHES = f"""{",".join(["index", "id", "profile", "planned_s", "begin", "end"])}
0,00000000-x,short,0.0,{EPOCH + 0.004:.6f},{EPOCH + 0.005:.6f}
1,00000001-x,short,1.0,{EPOCH + 1.011:.6f},{EPOCH + 1.013:.6f}
2,00000002-x,never,2.0,{EPOCH + 2.001:.6f},{EPOCH + 2.002:.6f}
"""
SAMPLES = f"""epoch,ready,unacked,consumers,worker,children
{EPOCH - 1:.3f},,,,,
{EPOCH + 1:.3f},3,,1,70:0.25:48000,71:0.02:39000 72:0.03:39500
"""


def write(folder: Path, **changes: Any) -> Path:
    folder.mkdir()
    details = {
        "format": 1,
        "status": "complete",
        "reason": "",
        "ready_epoch": EPOCH,
        "end_s": 5.0,
        "versions": {"celery": "5.6.3"},
    }
    files.write_json(folder / files.RECORD, details | changes)
    files.write_json(folder / files.MACHINE, {"cores": 2})
    data = SCENARIO.model_dump(mode="json", exclude_none=True)
    files.write_json(folder / files.SCENARIO, data)
    (folder / files.WORKER_LOG).write_text(LOG)
    (folder / files.PUBLISHES).write_text(PUBLISHES)
    (folder / files.SAMPLES).write_text(SAMPLES)
    return folder


def test_everything_comes_back(tmp_path: Path) -> None:
    recording = load_recording(write(tmp_path / "r"))
    assert recording.scenario == SCENARIO
    assert (recording.status, recording.complete, recording.end) == ("complete", True, 5.0)
    assert recording.epoch == EPOCH
    assert recording.machine == {"cores": 2}
    assert recording.versions == {"celery": "5.6.3"}
    assert recording.ids == ("00000000-x", "00000001-x", "00000002-x")
    assert recording.publishes["end"] == pytest.approx([0.005, 1.013, 2.002], abs=2e-6)
    assert recording.publishes["planned"].tolist() == [0.0, 1.0, 2.0]
    assert recording.publishes["profile"].tolist() == [1, 1, 0]


def test_samples(tmp_path: Path) -> None:
    before, after = load_recording(write(tmp_path / "r")).samples()
    assert (before.ready, before.worker, before.children) == (None, None, ())
    assert after.time == pytest.approx(1.0, abs=0.001)
    assert (after.ready, after.unacked) == (3, None)
    assert after.worker == (70, 0.25, 48000)
    assert [child.cpu_s for child in after.children] == [0.02, 0.03]


def test_the_trace_has_the_publish_times_on_the_logs_clock(tmp_path: Path) -> None:
    trace = load_recording(write(tmp_path / "r")).trace()
    # The log's zero is its "ready" line, 0.4 ms before the real one.
    assert trace.tasks["sent"] == pytest.approx([0.0054, 1.012, 2.0024], abs=1e-5)
    # The second publish returned 1.4 ms after the worker logged the message: it was there before.
    assert trace.tasks["sent"][1] == trace.tasks["received"][1]
    assert trace.ids == ("00000000-x", "00000001-x", "00000002-x")
    assert (trace.settings["autoscale"], trace.settings["keepalive"]) == ([4, 0], 30.0)
    assert "concurrency" not in trace.settings


def test_messages_never_received_are_in_the_trace_as_queued(tmp_path: Path) -> None:
    trace = load_recording(write(tmp_path / "r")).trace()
    last = trace.tasks[-1]
    assert trace.names[last["profile"]] == "never"
    assert last["outcome"] == Outcome.QUEUED
    assert np.isnan([last["received"], last["started"], last["finished"]]).all()
    assert trace.count(Outcome.QUEUED) == 1


def test_packed_files_read_the_same_and_pack_to_the_same_bytes(tmp_path: Path) -> None:
    plain = load_recording(write(tmp_path / "plain"))
    packed = write(tmp_path / "packed")
    files.compress(packed)
    again = write(tmp_path / "again")
    files.compress(again)
    assert not (packed / files.WORKER_LOG).exists()
    name = f"{files.WORKER_LOG}.gz"
    assert (packed / name).read_bytes() == (again / name).read_bytes()
    recording = load_recording(packed)
    assert recording.ids == plain.ids
    assert recording.samples() == plain.samples()
    assert recording.trace().tasks.tobytes() == plain.trace().tasks.tobytes()


def test_packing_cuts_this_machine_s_part_of_paths(tmp_path: Path) -> None:
    folder = write(tmp_path / "r")
    log = folder / files.WORKER_LOG
    line = '  File "/home/me/venv/lib/python3.11/site-packages/billiard/pool.py", line 1265, in f\n'
    log.write_text(log.read_text() + line)
    files.compress(folder)
    assert 'File "site-packages/billiard/pool.py", line 1265' in files.read_text(
        folder, files.WORKER_LOG
    )
    assert "/home/me" not in files.read_text(folder, files.WORKER_LOG)


def test_an_interrupted_record_without_ready_or_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", status="interrupted", reason="Ctrl-C", ready_epoch=None)
    (folder / files.PUBLISHES).unlink()
    (folder / files.SAMPLES).unlink()
    recording = load_recording(folder)
    assert (recording.status, recording.reason) == ("interrupted", "Ctrl-C")
    assert np.isnan(recording.epoch)
    assert len(recording.publishes) == 0
    assert recording.samples() == ()


def test_a_row_cut_off_by_a_kill_is_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "r")
    with (folder / files.PUBLISHES).open("a") as file:
        file.write("3,00000003-x,sho")
    assert len(load_recording(folder).ids) == 3


def test_a_folder_without_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"holds no recording: record\.json.*Remedy"):
        load_recording(tmp_path)
    (tmp_path / files.RECORD).write_text("{")
    with pytest.raises(RecordError, match="Remedy"):
        load_recording(tmp_path)


def test_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="format 99"):
        load_recording(write(tmp_path / "r", format=99))


def test_a_used_folder_is_never_overwritten(tmp_path: Path) -> None:
    folder = write(tmp_path / "r")
    before = json.loads((folder / files.RECORD).read_text())
    with pytest.raises(RecordError, match="not empty"):
        files.prepare(folder)
    assert json.loads((folder / files.RECORD).read_text()) == before
    with pytest.raises(RecordError, match="cannot be used"):
        files.prepare(folder / files.RECORD)
    files.prepare(tmp_path / "new" / "deep")
    assert (tmp_path / "new" / "deep").is_dir()


def test_the_costs_that_the_worker_measured(tmp_path: Path) -> None:
    folder = write(tmp_path / "r")
    assert load_recording(folder).costs == {}
    files.write_json(folder / files.COSTS, {"backend_s": 0.003, "something_new": 1})
    assert load_recording(folder).costs == {"backend_s": 0.003}


@pytest.mark.parametrize(
    "text", ['{"backend_s":', "[1]", "3", '{"backend_s": null}', '{"backend_s": -1}']
)
def test_damaged_costs_are_named_with_their_file(text: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "r")
    (folder / files.COSTS).write_text(text)
    with pytest.raises(RecordError, match=r"costs\.json cannot be read: .*Remedy: remove it"):
        _ = load_recording(folder).costs


def test_what_others_used_meanwhile(tmp_path: Path) -> None:
    cpu = {"seconds": 20.0, "own_s": 5.0, "other_s": 4.0, "stolen_s": 1.0}
    assert load_recording(write(tmp_path / "busy", cpu=cpu)).other_cores == 0.25
    assert np.isnan(load_recording(write(tmp_path / "old")).other_cores)
