"""Replaying logs: real ones when they are here, simulated ones always."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from celerysim import LogError, load_scenario, read_log, simulate
from celerysim.export import write_worker_log
from celerysim.history import History
from celerysim.replay import replay


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> History:
    path = tmp_path_factory.mktemp("replay") / "worker.log"
    write_worker_log(simulate(load_scenario("puzzle")), path)
    return read_log(path)


def test_a_simulated_log_replays_equal(simulated: History) -> None:
    verdict = replay(simulated)
    assert len(verdict.pairs) == 40
    assert verdict.equal


def test_another_keepalive_does_not(simulated: History) -> None:
    assert not replay(simulated, keepalive=28.0).equal


@pytest.mark.parametrize("alteration", ["moved", "removed", "resized"])
def test_an_altered_log_does_not(simulated: History, alteration: str) -> None:
    events = simulated.scale_events.copy()
    if alteration == "moved":
        events["time"][12] += 0.5
    elif alteration == "removed":
        events = np.delete(events, 12)
    else:
        events["change"][12] += 1
    assert not replay(replace(simulated, scale_events=events)).equal


def test_a_log_without_autoscale_or_with_another_pool_is_refused(simulated: History) -> None:
    with pytest.raises(LogError, match="does not say how the worker was scaled"):
        replay(replace(simulated, settings={"concurrency": 4}))
    with pytest.raises(LogError, match="only prefork"):
        replay(replace(simulated, settings={"autoscale": [4, 0], "pool": "gevent"}))


def test_reference_logs_of_the_schedule_load_replay_equal(reference: Path) -> None:
    logs = sorted((reference / "prefork_logs").glob("schedule_autoscale_*.log.gz"))
    assert len(logs) == 24
    for log in logs:
        verdict = replay(read_log(log))
        assert verdict.equal, (log.name, verdict.differences)
