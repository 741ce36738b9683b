"""Real runs, short ones: every pool, every way to be interrupted, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from celerysim.history import Outcome
from celerysim.record import Recording, load_recording, record
from celerysim.record.processes import environment
from celerysim.scenario import Scenario, make_scenario

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("nothing_left")]

SHORT: list[dict[str, float]] = [{"cpu_s": 0.005}, {"io_s": 0.1}]


def scenario(
    steps: list[dict[str, float]] = SHORT,
    producer: dict[str, Any] | None = None,
    run: dict[str, Any] | None = None,
    profile: dict[str, Any] | None = None,
    **worker: Any,
) -> Scenario:
    batches = {"kind": "batches", "batch_size": 4, "pause_s": 0.2, "publish_s": 0.005}
    return make_scenario(
        {
            "producer": batches | {"max_tasks": 12} | (producer or {}),
            "tasks": {"profiles": {"short": {"steps": steps} | (profile or {})}},
            "worker": worker,
            "machine": {"cores": 1},
            "run": run or {},
        }
    )


def test_a_prefork_run(tmp_path: Path, broker_url: str) -> None:
    made = scenario(
        autoscale=[4, 0], keepalive=3.0, prefetch_multiplier=1, producer={"max_tasks": 120}
    )
    told: list[float] = []
    recording = record(
        made,
        tmp_path / "r",
        broker_url=broker_url,
        progress=lambda part, text: told.append(part),
    )
    assert (recording.status, recording.reason) == ("complete", "")
    assert recording.scenario == made
    assert told == sorted(told)
    assert told[-1] == 1.0

    trace = recording.trace()
    assert trace.count(Outcome.SUCCEEDED) == len(trace.tasks) == len(recording.publishes) == 120
    assert trace.names == ("short",)
    # Two shrinks after keepalive in 6 s; the smallest possible ones have one process each.
    assert 4 + 1 <= trace.forks <= 4 + 3 * 2
    wait = trace.tasks["received"] - trace.tasks["sent"]
    assert (wait >= 0).all()
    runtime = trace.tasks["finished"] - trace.tasks["started"]
    assert runtime.min() >= 0.105 - 0.001

    # Real publishing: never quicker than asked, and its lateness adds up.
    ends = recording.publishes["end"].reshape(-1, 4)
    assert np.diff(ends, axis=1).min() >= 0.004
    assert (ends[:, -1] - recording.publishes["planned"].reshape(-1, 4)[:, -1] > -0.002).all()

    samples = recording.samples()
    running = [sample for sample in samples if sample.children]
    assert len(running) >= recording.end - 2
    assert max(len(sample.children) for sample in running) >= 4
    assert samples[-1].ready == 0
    if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1:
        assert recording.machine["worker_cores"] == 1
    text = "".join(p.read_text() for p in recording.folder.iterdir() if p.suffix != ".log")
    assert socket.gethostname() in ("localhost", *text.split()) or (
        socket.gethostname() not in text.replace(recording.machine["kernel"], "")
    )


@pytest.mark.parametrize("pool", ["gevent", "eventlet", "threads", "solo"])
def test_the_other_pools(pool: str, tmp_path: Path, broker_url: str) -> None:
    steps = [*SHORT, {"block_s": 0.05}]
    made = scenario(steps, pool=pool, concurrency=4)
    recording = record(made, tmp_path / "r", broker_url=broker_url)
    assert (recording.status, recording.reason) == ("complete", "")
    trace = recording.trace()
    assert trace.settings["pool"] == pool
    assert trace.count(Outcome.SUCCEEDED) == 12
    runtime = np.sort(trace.tasks["finished"] - trace.tasks["started"])
    assert runtime[0] >= 0.155 - 0.001
    first = trace.tasks[:4]
    if pool in ("gevent", "eventlet"):
        # All four sleep at once, then block one after the other, each holding up the next.
        spread = first["finished"].max() - first["finished"].min()
        assert 3 * 0.05 - 0.002 <= spread < 0.4
    elif pool == "threads":
        assert first["finished"].max() - first["started"].min() < 2 * 0.155
    else:
        assert first["finished"].max() - first["started"].min() >= 4 * 0.155 - 0.004


def test_a_packed_recording_is_the_same(tmp_path: Path, broker_url: str) -> None:
    short = tmp_path / "short.toml"
    short.write_text(
        "[producer]\nkind = 'batches'\nbatch_size = 4\npause_s = 0.2\nmax_tasks = 8\n"
        "[tasks.profiles.short]\nsteps = [{ io_s = 0.1 }]\n[machine]\ncores = 1\n"
    )
    command = [sys.executable, "-m", "celerysim.cli", "record", str(short), "--compress"]
    command += ["--broker", broker_url, "-o", str(tmp_path / "r")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "worker.log.gz" in done.stdout
    assert not (tmp_path / "r" / "worker.log").exists()
    recording = load_recording(tmp_path / "r")
    assert recording.trace().count(Outcome.SUCCEEDED) == len(recording.publishes) == 8


def test_settings_reach_the_worker(tmp_path: Path, broker_url: str) -> None:
    made = scenario(
        optimization="fast",
        concurrency=2,
        max_tasks_per_child=3,
        task_acks_late=True,
        soft_time_limit=30.0,
    )
    recording = record(made, tmp_path / "r", broker_url=broker_url, events=True)
    assert recording.complete, recording.reason
    assert recording.trace().count(Outcome.SUCCEEDED) == 12
    assert recording.trace().forks >= 12 // 3
    kinds = [
        json.loads(line)["type"] for line in (tmp_path / "r/events.jsonl").read_text().splitlines()
    ]
    assert kinds.count("task-succeeded") == 12


def test_memory_is_left_behind_and_sampled(tmp_path: Path, broker_url: str) -> None:
    made = scenario(concurrency=1, profile={"rss_growth_kib": 10_000.0}, producer={"max_tasks": 24})
    recording = record(made, tmp_path / "r", broker_url=broker_url)
    assert recording.complete, recording.reason
    sizes = [child.rss_kib for sample in recording.samples() for child in sample.children]
    # 24 tasks of 0.1 s: the samples of the first and the last second are many tasks apart.
    assert max(sizes) - min(sizes) > 100_000


def test_messages_sent_before_the_worker_wait_in_the_queue(tmp_path: Path, broker_url: str) -> None:
    producer = {"kind": "times", "times_s": [0.0, 0.2, 1.5], "start_s": -1.0}
    made = make_scenario(
        {
            "producer": producer,
            "tasks": {"profiles": {"short": {"steps": SHORT}}},
            "machine": {"cores": 1},
        }
    )
    recording = record(made, tmp_path / "r", broker_url=broker_url)
    assert recording.complete, recording.reason
    early, second, late = recording.publishes["end"].tolist()
    assert early < second < 0
    assert 0.5 <= late < 0.6
    assert recording.trace().tasks["received"][0] > -0.01


def test_the_horizon_ends_the_run_and_the_log(tmp_path: Path, broker_url: str) -> None:
    made = scenario(
        [{"io_s": 0.7}],
        producer={"max_tasks": None},
        run={"horizon_s": 2.0},
        concurrency=1,
        prefetch_multiplier=1,
    )
    recording = record(made, tmp_path / "r", broker_url=broker_url)
    assert recording.complete
    assert 2.0 <= recording.end < 2.3
    trace = recording.trace()
    assert trace.end <= 2.3
    assert trace.count(Outcome.QUEUED) > 0


def test_a_worker_that_dies_by_itself(tmp_path: Path, broker_url: str) -> None:
    # celery/concurrency/thread.py has no grow: the first scale-up ends the worker.
    made = scenario(pool="threads", autoscale=[4, 1], producer={"max_tasks": 200})
    recording = record(made, tmp_path / "r", broker_url=broker_url)
    assert recording.status == "interrupted"
    assert "the worker has ended (exit status 1)" in recording.reason
    assert len(recording.publishes) > 0


def test_lost_tasks_do_not_keep_the_recording_waiting(tmp_path: Path, broker_url: str) -> None:
    made = scenario([{"io_s": 3.0}], time_limit=0.5, concurrency=4)
    recording = record(made, tmp_path / "r", broker_url=broker_url)
    assert recording.complete
    assert recording.end < 10
    assert recording.trace().count(Outcome.FAILED) == 12


RECORD = """
import sys
from celerysim.record import record
from celerysim.scenario import load_scenario
scenario = load_scenario("puzzle", ["machine.cores=1", "producer.pause_s=0.2",
    "tasks.profiles.short.steps=[{io_s=0.1}]", "worker.autoscale=[4,4]"])
say = lambda part, text: print(text, flush=True)
recording = record(scenario, sys.argv[1], broker_url=sys.argv[2], progress=say)
print("returned", recording.status, recording.reason, flush=True)
"""


#: What the progress says when tasks have been done.
RUNNING = "[1-9][0-9]* of 600 tasks done"


class Recorder:
    """A process that records; to be interrupted."""

    def __init__(self, folder: Path, broker_url: str) -> None:
        self.folder = folder
        self.said = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", RECORD, str(folder), broker_url],
            env=environment(),
            bufsize=0,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def wait_for(self, pattern: str) -> None:
        """Wait until it has said what ``pattern`` matches."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + 60
        while not re.search(pattern.encode(), self.said):
            left = max(0.0, deadline - time.monotonic())
            assert select.select([self.process.stdout], [], [], left)[0], self.said.decode()
            data = self.process.stdout.read(4096)
            assert data, self.said.decode()
            self.said += data

    def end(self) -> int:
        """Wait for its end; its status."""
        self.process.communicate(timeout=30)
        return self.process.returncode

    def recording(self) -> Recording:
        return load_recording(self.folder)


def victims(pattern: str) -> list[int]:
    """Processes of this test whose command line has ``pattern``."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            mine = process.environ().get("CELERYSIM_TEST") == os.environ["CELERYSIM_TEST"]
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if mine and pattern in line and "leash.py" not in line:
            found.append(process.pid)
    return found


@pytest.mark.parametrize("moment", ["starting the worker", RUNNING])
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGTERM, "SIGTERM"),
        (signal.SIGINT, "Ctrl-C"),
        (signal.SIGKILL, "the recording process was killed, or still runs"),
    ],
)
def test_a_recorder_that_is_stopped(
    number: signal.Signals, reason: str, moment: str, tmp_path: Path, broker_url: str
) -> None:
    with Recorder(tmp_path / "r", broker_url) as recorder:
        recorder.wait_for(moment)
        begin = time.monotonic()
        recorder.process.send_signal(number)
        # The signal keeps its meaning for whoever started the recorder.
        assert recorder.end() == -number
        assert time.monotonic() - begin < 5
    recording = recorder.recording()
    assert (recording.status, recording.reason) == ("interrupted", reason)
    if moment == RUNNING:
        assert len(recording.publishes) > 0
        assert recording.trace().forks == 4


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("-m celery ", "the worker has ended (killed by SIGKILL)"),
        ("celerysim.record.publisher", "the publisher has ended (killed by SIGKILL)"),
    ],
)
def test_a_process_that_is_killed(
    pattern: str, reason: str, tmp_path: Path, broker_url: str
) -> None:
    with Recorder(tmp_path / "r", broker_url) as recorder:
        recorder.wait_for(RUNNING)
        os.kill(min(victims(pattern)), signal.SIGKILL)
        assert recorder.end() == 0
    assert recorder.recording().status == "interrupted"
    assert reason in recorder.recording().reason


def test_a_private_broker(tmp_path: Path) -> None:
    recording = record(scenario(), tmp_path / "r", broker_url="private")
    assert recording.complete, recording.reason
    assert recording.details["broker"]["private"] is True
    assert recording.trace().count(Outcome.SUCCEEDED) == 12


def test_a_broker_that_goes_away(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r", "private") as recorder:
        recorder.wait_for(RUNNING)
        os.kill(victims("beam.smp")[0], signal.SIGKILL)
        assert recorder.end() == 0
    assert recorder.recording().status == "interrupted"
    assert "broker" in recorder.recording().reason


def test_killing_a_recorder_takes_its_private_broker(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r", "private") as recorder:
        recorder.wait_for(RUNNING)
        recorder.process.kill()
        assert recorder.end() == -signal.SIGKILL
    assert recorder.recording().status == "interrupted"
