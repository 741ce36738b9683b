"""The same sweep on a Dask cluster, and with one of its workers killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from celerysim import CelerysimError, Scenario
from celerysim.sweep import Table, sweep
from celerysim.sweep.chunk import LEAST_TASKS

pytest.importorskip("distributed", reason="celerysim[dask] is not installed")
pytestmark = [
    # what tornado and Dask leave open when a client closes is not ours
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


class Cluster(NamedTuple):
    """A scheduler and two workers, each a process of its own, without nannies."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    file = tmp_path / "scheduler.json"

    def start(module: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(file)]
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--no-dashboard", *options],
            cwd=tmp_path, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        stack.callback(end, process)
        return process

    def end(process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    with ExitStack() as stack:
        start("dask_scheduler", "--port", "0")
        patience = time.monotonic() + 60
        while not file.exists() or not file.read_text().strip().endswith("}"):
            assert time.monotonic() < patience, "the scheduler does not start"
            time.sleep(0.05)
        workers = [start("dask_worker", "--nthreads", "1", "--no-nanny") for _ in range(2)]
        address = json.loads(file.read_text())["address"]
        from distributed import Client

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield Cluster(address, workers)


def swept(scenario: Scenario, **options: object) -> Table:
    axes = {"worker.keepalive": [2.0, 30.0, 600.0]}
    return sweep(scenario, axes, 40, ["forks", "sojourn_s.p95"], engine="reference", **options)


def test_a_cluster_gives_the_same_bytes(
    scenario: Scenario, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LEAST_TASKS, "reference", 500)
    swept(scenario, processes=1).write_csv(tmp_path / "here.csv")
    swept(scenario, dask=cluster.address).write_csv(tmp_path / "there.csv")
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_a_killed_workers_runs_are_run_again(
    scenario: Scenario, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LEAST_TASKS, "reference", 500)
    whole = swept(scenario, processes=1)
    victim = cluster.workers[0]

    def kill_one(done: int, total: int) -> None:
        if 0 < done < total / 2:
            victim.kill()

    table = swept(scenario, dask=cluster.address, progress=kill_one)
    assert victim.wait(10) == -9
    assert (table.rows == whole.rows).all()


def test_no_scheduler_is_a_clear_error(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("celerysim.sweep.crew.PATIENCE_S", 0.5)
    with pytest.raises(CelerysimError, match=r"no Dask scheduler answers.*dask scheduler"):
        swept(scenario, dask="tcp://127.0.0.1:1")
