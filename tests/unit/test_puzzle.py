"""The riddle: forks of real Celery runs, none of them used to set a constant."""

from __future__ import annotations

import pytest

from celerysim.puzzle import puzzle


@pytest.mark.parametrize(
    ("publish_s", "low", "keepalive", "forks"),
    [
        (0.05, 0, 30.0, 31),
        (0.0005, 0, 30.0, 28),
        (0.11, 0, 30.0, 31),
        (0.13, 0, 30.0, 34),
        (0.05, 2, 30.0, 22),
        (0.05, 0, 600.0, 4),
    ],
)
def test_forks_of_live_runs(publish_s: float, low: int, keepalive: float, forks: int) -> None:
    answer = puzzle(publish_s=publish_s, min_concurrency=low, keepalive=keepalive)
    assert answer.forks == (forks,)
    assert answer.report["tasks"] == 600


def test_the_answer_says_why() -> None:
    answer = puzzle(replications=3)
    assert answer.estimate == pytest.approx(34.0)
    assert (answer.cycle.cycle_batches, answer.cycle.forks_per_cycle) == (16, 3)
    assert answer.cycle == answer.rule
    assert dict(answer.ladder)[0.0005] == 28
    assert answer.variants == {"keepalive=600": 4, "min=2": 22}
    assert answer.report["forks"]["values"] == [31, 31, 31]
