"""Real runs beside their predictions: forks equal, the log possible, throughput right.

Keepalive and all times of the puzzle divided by ten. A fork does not get ten times
quicker with them, so the sleep is shorter still, and the publishing times are in the
middle of stretches where a few tenths of a millisecond change nothing: between 28
and 31, and 31 and 34, the predicted count depends on less than a message takes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from celerysim.compare import Comparison, compare
from celerysim.conform import conform
from celerysim.record import record
from celerysim.scenario import make_scenario

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("nothing_left")]

#: Seconds of a publish, and the forks of the puzzle at a tenth of its times.
LADDER = {0.002: 28, 0.0105: 31, 0.0145: 34}
TENTH = (
    "machine.cores=2",
    "worker.keepalive=3.0",
    "producer.pause_s=0.17",
    "tasks.profiles.short.steps=[{cpu_s=0.005},{io_s=0.05}]",
)


def test_the_ladder(tmp_path: Path, broker_url: str) -> None:
    """All three at once: together they compute a third of one core."""
    running = []
    for publish_s in LADDER:
        command = [
            sys.executable,
            "-m",
            "celerysim.cli",
            "record",
            "puzzle",
            "--broker",
            broker_url,
        ]
        for override in (*TENTH, f"producer.publish_s={publish_s}"):
            command += ["--set", override]
        folder = tmp_path / str(publish_s)
        running.append(subprocess.Popen([*command, "-o", str(folder)], stdout=subprocess.DEVNULL))
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    found = {publish_s: compare(tmp_path / str(publish_s), replications=20) for publish_s in LADDER}
    for publish_s, forks in LADDER.items():
        comparison = found[publish_s]
        assert comparison.prediction("predicted", "forks").interval == (forks, forks)
        # Given when the messages really came: on a busy machine a late publisher changes the count.
        assert comparison.prediction("replayed", "forks").inside, publish_s
        assert_right(comparison)


@pytest.mark.parametrize(("pool", "concurrency"), [("prefork", 2), ("gevent", 8), ("threads", 8)])
def test_a_pool_behind_a_queue(
    pool: str, concurrency: int, tmp_path: Path, broker_url: str
) -> None:
    scenario = make_scenario(
        {
            "producer": {
                "kind": "batches",
                "batch_size": 200,
                "pause_s": 1.0,
                "max_tasks": 200,
                "start_s": -1.0,
            },
            "tasks": {
                "profiles": {
                    "request": {
                        "steps": [
                            {"cpu_s": {"kind": "lognormal", "mean": 0.02, "sd": 0.01}},
                            {"io_s": {"kind": "lognormal", "mean": 0.1, "sd": 0.05}},
                        ]
                    }
                }
            },
            "worker": {"pool": pool, "concurrency": concurrency},
            "machine": {"cores": 2},
        }
    )
    record(scenario, tmp_path / "r", broker_url=broker_url)
    comparison = compare(tmp_path / "r", replications=20)
    assert comparison.prediction("predicted", "tasks").observed == 200
    if pool == "prefork":
        assert comparison.prediction("predicted", "forks").inside
    assert_right(comparison)


def assert_right(comparison: Comparison) -> None:
    """The log is one that Celery's rules allow; throughput within 5 %.

    Of one of the runs: with threads it has two values, by which of two steps the worker started
    first (celerysim.engine.gossip).
    """
    worker = comparison.recording.scenario.worker
    if worker.autoscale is not None:
        verdict = conform(comparison.observed, keepalive=worker.keepalive)
        assert verdict.accepted, verdict
    throughput = comparison.prediction("replayed", "throughput_per_s")
    assert throughput.observed is not None
    assert abs(throughput.values / throughput.observed - 1).min() < 0.05
