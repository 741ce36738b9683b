"""A simulated log goes out and comes back: read, inspected and checked, it tells what happened.

(What calibration recovers is tested beside it: tests/unit/calibrate.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from celerysim import Scenario, make_scenario, read_log, simulate
from celerysim.conform import conform
from celerysim.export import write_worker_log
from celerysim.inspection import inspect
from celerysim.metrics import summary

SCENARIOS = 40


def random_scenario(number: int) -> Scenario:
    """An autoscaled worker under a random load, with the default costs."""
    rng = np.random.default_rng(number)
    high = int(rng.integers(1, 9))
    low = int(rng.integers(0, high + 1))
    io_s = float(rng.uniform(0.05, 2.0))
    producer: dict[str, Any] = {"max_tasks": 150}
    if rng.random() < 0.5:
        producer |= {
            "kind": "batches",
            "batch_size": int(rng.integers(1, 2 * high + 1)),
            "pause_s": float(rng.uniform(0.5, 4.0)),
            "publish_s": float(rng.choice([0.0005, 0.02, 0.05])),
        }
    else:
        producer |= {"kind": "poisson", "rate_per_s": float(rng.uniform(0.3, 0.9)) * high / io_s}
    io: Any = {"kind": "lognormal", "mean": io_s, "sd": 0.2 * io_s}
    return make_scenario(
        {
            "producer": producer,
            "tasks": {"profiles": {"t": {"steps": [{"cpu_s": 0.01}, {"io_s": io}]}}},
            "worker": {
                "autoscale": [high, low],
                "prefetch_multiplier": int(rng.integers(1, 4)),
                "task_acks_late": bool(rng.random() < 0.5),
                "keepalive": 30.0,
            },
            "machine": {"cores": int(rng.choice([2, 8]))},
            "run": {"seed": number},
        }
    )


@pytest.mark.parametrize("number", range(SCENARIOS))
def test_a_log_that_comes_back_tells_what_happened(number: int, tmp_path: Path) -> None:
    result = simulate(random_scenario(number))
    path = tmp_path / "worker.log"
    write_worker_log(result, path)
    log = read_log(path)
    verdict = conform(log)
    assert verdict.accepted, verdict.first_violation
    truth, told = summary(result), inspect(log).as_json()
    for key in ("scale_ups", "scale_downs", "tasks", "lost"):
        assert told[key] == truth[key], key
    # the last children may have been forked without ever logging a line
    idle = int((result.children["tasks"] == 0).sum())
    assert truth["forks"] - idle <= told["forks"] <= truth["forks"]
    # a log has whole milliseconds
    assert told["runtime_s"]["mean"] == pytest.approx(truth["runtime_s"]["mean"], abs=0.001)
    wait = truth["worker_wait_s"]["mean"]
    assert told["worker_wait_s"]["mean"] == pytest.approx(wait, abs=0.002)
