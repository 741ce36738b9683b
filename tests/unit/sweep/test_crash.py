"""Sweeps killed at random moments: nothing is lost but the work in flight, no process stays."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

#: As an experiment of the user's: two processes, chunks of a few runs.
RUN = """
import sys
from pathlib import Path
from celerysim.sweep.chunk import LEAST_TASKS
from celerysim.sweep.study import run_experiment

if __name__ == "__main__":
    LEAST_TASKS["reference"] = 400
    run_experiment(sys.argv[1], out=Path(sys.argv[2]), processes=2, engine="reference",
                   resume="resume" in sys.argv)
"""
EXPERIMENT = """
replications = 20
outputs = ["forks", "forks_per_hour", "worker_wait_s.p95"]
[[axes]]
field = "worker.keepalive"
log = { from = 1, to = 600, points = 12 }
[[pictures]]
kind = "lines"
x = "worker.keepalive"
y = ["forks_per_hour"]
log = ["worker.keepalive", "forks_per_hour"]
"""
KILLS = 4
RESULTS = ("rows.csv", "summary.csv", "study.json", "picture.png")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "run.py"
    path.write_text(RUN)
    return path


def test_killed_at_random_moments_the_result_is_the_same_to_the_byte(
    write: Callable[..., Path], script: Path, tmp_path: Path
) -> None:
    folder = write(EXPERIMENT)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run([sys.executable, script, folder, whole], check=True)
    seed = random.randrange(10**6)
    print("seed of the moments:", seed)  # pytest shows it when the test fails
    moments = random.Random(seed)
    journal = broken / "journal.jsonl"
    final = (whole / "journal.jsonl").stat().st_size
    killed = 0
    while killed < KILLS:
        size = journal.stat().st_size if journal.exists() else 0
        target = moments.uniform(size, size + (final - size) / 3)  # some bytes further, and die
        process = subprocess.Popen([sys.executable, script, folder, broken, "resume"])
        while process.poll() is None and (not journal.exists() or journal.stat().st_size <= target):
            time.sleep(0.002)
        process.kill()
        assert process.wait() == -signal.SIGKILL, "it was done before it could be killed"
        killed += 1
    assert not (broken / "rows.csv").exists()
    subprocess.run([sys.executable, script, folder, broken, "resume"], check=True)
    for name in RESULTS:
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name


def test_ctrl_c_ends_at_once_and_can_be_resumed(
    write: Callable[..., Path], script: Path, tmp_path: Path
) -> None:
    folder, out = write(EXPERIMENT), tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, script, folder, out], stderr=subprocess.PIPE, text=True
    )
    journal = out / "journal.jsonl"
    while not journal.exists() or journal.stat().st_size < 2000:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=20)[1]
    assert process.returncode != 0
    assert errors.strip().endswith("KeyboardInterrupt")
    assert "Process Spawn" not in errors  # the parent's one traceback, none of the children's
    subprocess.run([sys.executable, script, folder, out, "resume"], check=True)


def test_a_terminated_command_leaves_no_semaphores(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    folder, out = write(EXPERIMENT), tmp_path / "out"
    command = [sys.executable, "-m", "celerysim.cli", "sweep", str(folder), "--processes", "2"]
    command += ["--engine", "reference", "--replications", "500", "--out", str(out)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    journal = out / "journal.jsonl"
    while not journal.exists() or journal.stat().st_size < 2000:
        assert process.poll() is None, "it was done before it could be terminated"
        time.sleep(0.01)
    process.terminate()
    errors = process.communicate(timeout=20)[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert "interrupted; go on with --resume" in errors
    assert "leaked" not in errors


def test_processes_end_with_their_parent() -> None:
    code = (
        "import os, time\n"
        "from celerysim.sweep.local import LocalExecutor\n"
        "if __name__ == '__main__':\n"
        "    pool = LocalExecutor(2)\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    pool.submit(time.sleep, 60)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    for _ in range(200):
        if not alive(child):
            return
        time.sleep(0.05)
    pytest.fail("a process outlived its parent by ten seconds")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    # a dead child whose new parent has not looked yet is still listed
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
