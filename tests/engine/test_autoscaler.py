"""celery/worker/autoscale.py: the decision, against Celery's own class and by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from celerysim.engine.autoscaler import CeleryAutoscaler, Decision, Policy, ScaleState

SEQUENCES = 10_000
EVENTS = 24


class FakePool:
    """As much of a pool as the autoscaler touches."""

    def __init__(self, size: int) -> None:
        self.num_processes = size
        self.maintained = 0

    def grow(self, n: int) -> None:
        self.num_processes += n

    def shrink(self, n: int) -> None:
        self.num_processes -= n

    def maintain_pool(self) -> None:
        self.maintained += 1


class Reserved:
    """Stands for ``state.reserved_requests``: only its length is asked for."""

    def __init__(self) -> None:
        self.n = 0

    def __len__(self) -> int:
        return self.n


@pytest.fixture
def celery_run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[int, bool]]]:
    """Celery's own Autoscaler through a sequence of (now, reserved): its (size, maintained)."""
    autoscale = pytest.importorskip("celery.worker.autoscale")
    clock = {"now": 0.0}
    reserved = Reserved()
    monkeypatch.setattr(autoscale, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(autoscale.state, "reserved_requests", reserved)

    def run(
        high: int, low: int, keepalive: float, events: list[tuple[float, int, int]]
    ) -> list[tuple[int, bool]]:
        pool = FakePool(low)
        scaler = autoscale.Autoscaler(pool, high, low, keepalive=keepalive)
        seen = []
        for now, waiting, running in events:
            clock["now"], reserved.n = now, waiting + running
            before = pool.maintained
            scaler.maybe_scale()
            seen.append((pool.num_processes, pool.maintained > before))
        return seen

    return run


def our_run(
    policy: Policy, low: int, events: list[tuple[float, int, int]], *, running_counts: bool = True
) -> list[tuple[int, bool]]:
    size, last = low, None
    seen = []
    for now, waiting, running in events:
        qty = waiting + (running if running_counts else 0)
        decision = policy(ScaleState(size, qty, last), now)
        size += decision.change
        last = decision.last_scale_up
        seen.append((size, decision.maintain))
    return seen


def random_sequence(
    rng: np.random.Generator,
) -> tuple[int, int, float, list[tuple[float, int, int]]]:
    """Limits, keepalive, and (now, waiting, running); ages often equal the keepalive exactly."""
    high = int(rng.integers(1, 9))
    low = int(rng.integers(0, high + 1))
    keepalive = float(rng.choice([0.5, 1.0, 4.0]))
    steps = rng.choice([0.0, 0.25, 0.5, 1.0, 2.0, 4.0], EVENTS)
    times = 1.0 + np.cumsum(steps)  # multiples of a quarter: exact in binary
    waiting = rng.integers(0, 6, EVENTS)
    running = rng.integers(0, 6, EVENTS)
    return high, low, keepalive, list(zip(times.tolist(), waiting.tolist(), running.tolist()))


def disagreements(celery_run: Any, make_policy: Callable[..., Policy], **options: bool) -> int:
    rng = np.random.default_rng(20)
    count = 0
    for _ in range(SEQUENCES):
        high, low, keepalive, events = random_sequence(rng)
        theirs = celery_run(high, low, keepalive, events)
        ours = our_run(make_policy(high, low, keepalive), low, events, **options)
        count += theirs != ours
    return count


def test_decides_as_celerys_own_class_on_ten_thousand_random_sequences(celery_run: Any) -> None:
    assert disagreements(celery_run, CeleryAutoscaler) == 0


class NotStrict(CeleryAutoscaler):
    """Wrong: an age equal to the keepalive suffices."""

    def __call__(self, state: ScaleState, now: float) -> Decision:
        last = state.last_scale_up
        if last is not None and now - last == self.keepalive:
            decision = super().__call__(state._replace(last_scale_up=last - 1e-9), now)
            return decision._replace(last_scale_up=now if decision.change > 0 else last)
        return super().__call__(state, now)


class RefreshesOnScaleDown(CeleryAutoscaler):
    """Wrong: scaling down moves the time stamp."""

    def __call__(self, state: ScaleState, now: float) -> Decision:
        decision = super().__call__(state, now)
        return decision._replace(last_scale_up=now) if decision.change < 0 else decision


def test_the_comparison_notices_a_keepalive_that_is_not_strict(celery_run: Any) -> None:
    assert disagreements(celery_run, NotStrict) > SEQUENCES / 100


def test_the_comparison_notices_running_tasks_left_out(celery_run: Any) -> None:
    assert disagreements(celery_run, CeleryAutoscaler, running_counts=False) > SEQUENCES / 100


def test_the_comparison_notices_a_time_stamp_moved_by_scaling_down(celery_run: Any) -> None:
    assert disagreements(celery_run, RefreshesOnScaleDown) > SEQUENCES / 100


CELERY = CeleryAutoscaler(max_concurrency=8, min_concurrency=2, keepalive=30.0)


def test_scales_up_to_the_reserved_count_but_not_above_max() -> None:
    assert CELERY(ScaleState(2, 5, None), 1.0) == Decision(3, True, 1.0)
    assert CELERY(ScaleState(2, 50, None), 1.0) == Decision(6, True, 1.0)


def test_never_scales_down_before_the_first_scale_up() -> None:
    assert CELERY(ScaleState(5, 0, None), 1e6) == Decision(0, True, None)


def test_an_age_equal_to_the_keepalive_is_not_enough() -> None:
    assert CELERY(ScaleState(8, 3, 10.0), 40.0) == Decision(0, True, 10.0)
    assert CELERY(ScaleState(8, 3, 10.0), 40.0 + 1e-9) == Decision(-5, True, 10.0)


def test_a_refused_scale_down_still_maintains_the_pool() -> None:
    assert CELERY(ScaleState(8, 3, 10.0), 11.0).maintain


def test_nothing_to_do_does_not_maintain_the_pool() -> None:
    assert CELERY(ScaleState(4, 4, 10.0), 99.0) == Decision(0, False, 10.0)


def test_scaling_down_stops_at_min_and_keeps_the_time_stamp() -> None:
    assert CELERY(ScaleState(8, 0, 10.0), 99.0) == Decision(-6, True, 10.0)
