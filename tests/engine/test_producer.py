"""The producer's times and the tasks' content."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from celerysim import make_scenario
from celerysim.engine.producer import sent_times
from celerysim.engine.streams import BLOCK, Streams
from celerysim.engine.workload import work

TASKS = {"profiles": {"a": {"steps": [{"io_s": 1.0}]}}}


def times(n: int | None = None, **producer: Any) -> np.ndarray:
    scenario = make_scenario({"producer": producer, "tasks": TASKS, "run": {"horizon_s": 1e9}})
    blocks = sent_times(scenario, Streams(1))
    if n is None:
        return np.concatenate(list(blocks))
    return np.concatenate(list(islice(blocks, n // BLOCK + 1)))[:n]


def test_batches_pause_after_the_last_publish() -> None:
    sent = times(kind="batches", batch_size=2, pause_s=1.0, publish_s=0.1, max_tasks=5)
    assert sent.tolist() == pytest.approx([0.1, 0.2, 1.3, 1.4, 2.5])


def test_a_batch_that_began_in_time_is_completed() -> None:
    sent = times(kind="batches", batch_size=3, pause_s=1.0, publish_s=0.1, duration_s=1.35)
    # batches begin at 0 and 1.3; the next would at 2.6
    assert len(sent) == 6


def test_batches_go_on_across_blocks_of_random_numbers() -> None:
    n = 3 * BLOCK
    sent = times(n, kind="batches", batch_size=3, pause_s=0.5, publish_s=0.25)
    assert np.diff(sent).tolist() == pytest.approx(([0.25, 0.25, 0.75] * BLOCK)[: n - 1])


def test_a_rate_does_not_drift() -> None:
    sent = times(2 * BLOCK + 2, kind="rate", rate_per_s=3.0, publish_s=0.01)
    assert sent[-1] == pytest.approx((2 * BLOCK + 1) / 3.0 + 0.01, abs=1e-8)


def test_a_publish_that_takes_longer_than_the_schedule_delays_the_next() -> None:
    sent = times(kind="times", times_s=[0.0, 0.1, 5.0], publish_s=1.0)
    assert sent.tolist() == pytest.approx([1.0, 2.0, 6.0])


def test_a_poisson_process_has_exponential_gaps() -> None:
    gaps = np.diff(times(40_000, kind="poisson", rate_per_s=4.0))
    assert gaps.mean() == pytest.approx(0.25, rel=4 / 200)  # four standard errors
    assert np.mean(gaps > 0.25) == pytest.approx(np.exp(-1), abs=4 * 0.0024)


def test_start_s_shifts_everything() -> None:
    assert times(kind="times", times_s=[0.0, 1.0], start_s=-2.0).tolist() == [-2.0, -1.0]


def test_a_pattern_repeats_and_weights_are_met() -> None:
    profiles = {
        "a": {"steps": [{"io_s": 1.0}], "weight": 3.0},
        "b": {"steps": [{"cpu_s": 2.0}, {"io_s": 0.5}]},
    }
    data = {"producer": {"kind": "rate", "rate_per_s": 1.0, "max_tasks": 10}}
    patterned = make_scenario(data | {"tasks": {"profiles": profiles, "pattern": ["b", "a", "a"]}})
    chosen, seconds = next(work(patterned, Streams(1)))
    assert chosen[:6] == [1, 0, 0, 1, 0, 0]
    assert list(seconds)[:2] == [(2.0, 0.5), (1.0, 0.0)]
    weighted = make_scenario(data | {"tasks": {"profiles": profiles}})
    share = np.mean(np.array(next(work(weighted, Streams(1)))[0]) == 0)
    assert share == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / BLOCK))


def test_streams_differ_by_seed_replication_name_and_block_and_by_nothing_else() -> None:
    first = Streams(1).uniform("gap", 0)
    assert (Streams(1).uniform("gap", 0) == first).all()
    for other in (
        Streams(2).uniform("gap", 0),
        Streams(1, replication=1).uniform("gap", 0),
        Streams(1).uniform("pause", 0),
        Streams(1).uniform("gap", 1),
    ):
        assert not (other == first).any()


def test_a_task_keeps_its_numbers_when_a_distribution_changes() -> None:
    """Common random numbers: the same task is long under either distribution."""
    rows = []
    for kind in ("gamma", "lognormal"):
        step = {"io_s": {"kind": kind, "mean": 1.0, "sd": 0.3}}
        scenario = make_scenario(
            {
                "producer": {"kind": "rate", "rate_per_s": 1.0, "max_tasks": 10},
                "tasks": {"profiles": {"a": {"steps": [step]}}},
            }
        )
        rows.append(np.array(list(next(work(scenario, Streams(1)))[1]))[:, 0])
    assert (np.argsort(rows[0]) == np.argsort(rows[1])).all()
