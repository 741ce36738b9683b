"""Real runs beside their predictions: forks equal, the log possible, throughput right.

The puzzle with about a quarter of its times. With a tenth, four forks of 30 to 75 ms take
longer than the interval of 170 ms, and they cannot get shorter with it. Sleep, pause and
publishing times are chosen so that the counts hold for forks of 20 to 110 ms and however
late exits and wake-ups are; above all, so that no age passes the keepalive within a batch.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from celerysim.compare import Comparison, compare
from celerysim.conform import Limits, conform
from celerysim.record import load_recording, record
from celerysim.scenario import make_scenario

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("nothing_left")]

#: Seconds of a publish, and the forks of the puzzle at a quarter of its times.
LADDER = {0.0083: 28, 0.0165: 31, 0.0344: 34}
QUARTER = (
    "machine.cores=2",
    "worker.keepalive=7.5",
    "producer.pause_s=0.4325",
    "tasks.profiles.short.steps=[{cpu_s=0.01},{io_s=0.26}]",
)
ATTEMPTS = 3
#: Of two cores, used by something else: then it is another load that is recorded. The broker and
#: the other two rungs of the ladder need less than half of it.
BUSY_CORES = 0.4


def tried(attempt: Callable[[Path], None], folder: Path) -> None:
    """Until it holds, three times at most: on a busy machine another load is recorded than the
    one predicted. A prediction that is wrong fails every time. If all the recordings
    that failed say that something else used the cores, nothing is known about the prediction."""
    disturbed = []
    for number in range(ATTEMPTS):
        try:
            return attempt(folder / str(number))
        except AssertionError:
            recordings = [path.parent for path in (folder / str(number)).rglob("record.json")]
            known = [load_recording(path).other_cores for path in recordings]
            # A recording that broke off does not know it, and excuses nothing.
            disturbed.append(max((cores for cores in known if cores >= 0), default=0.0))
            if number == ATTEMPTS - 1 and min(disturbed) <= BUSY_CORES:
                raise
    pytest.xfail(f"a busy machine: others used {disturbed} of its cores in {ATTEMPTS} attempts")


def test_the_ladder(tmp_path: Path, broker_url: str) -> None:
    """All three at once: together they compute a third of a core."""
    left = dict(LADDER)

    def attempt(folder: Path) -> None:
        folder.mkdir()
        running = [_recording(publish_s, folder, broker_url) for publish_s in left]
        assert [process.wait(timeout=180) for process in running] == [0] * len(left)
        for publish_s in list(left):
            _holds(compare(folder / str(publish_s), replications=20), left[publish_s])
            del left[publish_s]

    tried(attempt, tmp_path)


def _recording(publish_s: float, folder: Path, broker_url: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "celerysim.cli", "record", "puzzle", "--broker", broker_url]
    for override in (*QUARTER, f"producer.publish_s={publish_s}"):
        command += ["--set", override]
    return subprocess.Popen(
        [*command, "-o", str(folder / str(publish_s))], stdout=subprocess.DEVNULL
    )


def _holds(comparison: Comparison, forks: int) -> None:
    assert comparison.observed.forks == forks, comparison.recording.folder.name
    for stage in comparison.stages:
        prediction = comparison.prediction(stage, "forks")
        assert prediction.inside, (comparison.recording.folder.name, stage)
    assert prediction.median == forks
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
            "worker": {"pool": pool, "concurrency": concurrency}
            | ({"prefetch_multiplier": 0} if pool == "threads" else {}),
            "machine": {"cores": 2},
        }
    )

    def attempt(folder: Path) -> None:
        record(scenario, folder, broker_url=broker_url)
        comparison = compare(folder, replications=20)
        assert comparison.prediction("predicted", "tasks").observed == 200
        if pool == "gevent":
            assert comparison.recording.costs["backend_s"] > 0
        if pool == "prefork":
            assert comparison.prediction("predicted", "forks").inside
        assert_right(comparison)

    tried(attempt, tmp_path)


def assert_right(comparison: Comparison) -> None:
    """The log is one that Celery's rules allow; throughput within 5 %."""
    worker = comparison.recording.scenario.worker
    if worker.autoscale is not None:
        # Three workers and the tests share two cores: the supervisor writes and reads later.
        limits = Limits(tie_s=0.02, line_s=0.05)
        verdict = conform(comparison.observed, keepalive=worker.keepalive, limits=limits)
        assert verdict.accepted, verdict
    error = comparison.prediction("replayed", "throughput_per_s").error
    assert error == pytest.approx(0, abs=0.05)
