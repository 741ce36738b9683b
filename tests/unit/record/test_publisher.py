"""When the publisher publishes, on a clock that only its own sleeps and publishes move."""

from __future__ import annotations

from typing import Any

import pytest

from celerysim.record.plan import Message, messages
from celerysim.record.publisher import Pacer
from celerysim.scenario import Scenario, make_scenario


class FakeTime:
    """A clock; each publish takes ``cost``, each sleep ``late`` longer than asked."""

    def __init__(self, cost: float = 0.001, late: float = 0.0, startup: float = 2.5) -> None:
        self.now = 100.0
        self.cost, self.late, self.startup = cost, late, startup
        self.sent: list[tuple[float, float]] = []
        self.zeros = 0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.late

    def publish(self, message: Message) -> None:
        begin = self.now
        self.now += self.cost
        self.sent.append((begin, self.now))

    def wait_for_zero(self) -> float:
        self.zeros += 1
        self.now += self.startup  # the worker starts meanwhile
        return self.now


def scenario(**producer: Any) -> Scenario:
    tasks = {"profiles": {"a": {"steps": [{"io_s": 0.1}]}}}
    return make_scenario({"producer": producer, "tasks": tasks})


def run(time: FakeTime, **producer: Any) -> list[float]:
    """Ends of the publishes, in seconds after "ready"."""
    made = scenario(**producer)
    pacer = Pacer(made, time.publish, time.wait_for_zero, time.clock, time.sleep)
    pacer.run(messages(made))
    assert time.zeros == 1
    return [end - 102.5 for _, end in time.sent]


def test_a_schedule_does_not_drift_however_late_each_sleep_is() -> None:
    time = FakeTime(late=0.002)
    ends = run(time, kind="rate", rate_per_s=10.0, publish_s=0.01, max_tasks=200)
    due = [0.1 * i + 0.01 for i in range(200)]
    assert all(0 <= end - at < 0.006 for end, at in zip(ends, due, strict=True))


def test_a_schedule_catches_up_after_a_slow_publish() -> None:
    time = FakeTime(cost=0.35)
    ends = run(time, kind="times", times_s=[0.0, 0.1, 0.2, 5.0])
    # The first three follow each other; the fourth is in time, sent early by what one takes.
    assert ends == pytest.approx([0.35, 0.70, 1.05, 5.0])


def test_batches_are_relative_so_publishing_and_lateness_add_up() -> None:
    time = FakeTime(cost=0.001, late=0.002)
    ends = run(time, kind="batches", batch_size=2, pause_s=1.0, publish_s=0.0, max_tasks=6)
    # Each batch: two publishes of 1 ms; each pause 1 s and 2 ms.
    assert ends == pytest.approx([0.001, 0.002, 1.005, 1.006, 2.009, 2.010])


def test_a_publish_occupies_at_least_publish_s_and_ends_with_it() -> None:
    ends = run(FakeTime(), kind="batches", batch_size=2, pause_s=1.0, publish_s=0.05, max_tasks=4)
    # The first one shows what a publish takes.
    assert ends == pytest.approx([0.051, 0.101, 1.151, 1.201], abs=1e-6)


def test_a_publish_that_takes_longer_than_publish_s_is_not_cut() -> None:
    ends = run(
        FakeTime(cost=0.02), kind="batches", batch_size=2, pause_s=1.0, publish_s=0.001, max_tasks=4
    )
    assert ends == pytest.approx([0.021, 0.041, 1.061, 1.081], abs=0.002)


def test_a_batch_that_began_in_time_is_completed() -> None:
    producer = {"kind": "batches", "batch_size": 3, "pause_s": 0.9, "publish_s": 0.1}
    # Batches begin at 0, 1.2 and 2.4.
    assert len(run(FakeTime(), **producer, duration_s=2.3)) == 6
    assert len(run(FakeTime(), **producer, duration_s=2.5)) == 9


def test_messages_due_before_ready_are_sent_before_the_worker_starts() -> None:
    time = FakeTime(startup=2.5)
    run(time, kind="times", times_s=[0.0, 0.5, 2.5, 3.0], start_s=-2.0)
    begins = [begin - 100.0 for begin, _ in time.sent]
    # Two at their pace; then the worker takes 2.5 s to be ready, and its "ready" is zero.
    assert begins[:2] == pytest.approx([0.0, 0.5], abs=0.002)
    assert begins[2:] == pytest.approx([0.501 + 2.5 + 0.5, 0.501 + 2.5 + 1.0], abs=0.003)


def test_a_positive_start_counts_from_ready() -> None:
    ends = run(FakeTime(), kind="batches", batch_size=1, pause_s=1.0, max_tasks=2, start_s=3.0)
    assert ends == pytest.approx([3.001, 4.002])


def test_nothing_to_publish_still_waits_for_the_worker() -> None:
    assert run(FakeTime(), kind="times", times_s=[5.0], duration_s=1.0) == []
