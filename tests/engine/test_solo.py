"""The solo worker, rule by rule, with exact times; every cost is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celerysim import Scenario, simulate
from celerysim.history import Level, Outcome

Make = Callable[..., Scenario]


def column(result: Any, name: str) -> list[float]:
    return [round(float(x), 6) for x in result.tasks[name]]


def test_nothing_is_received_while_a_task_runs(make: Make) -> None:
    result = simulate(make([1.0, 1.2, 1.4], ("io_s", 1.0), pool="solo"))
    assert column(result, "received") == [1.0, 2.0, 3.0]
    assert column(result, "started") == [1.0, 2.0, 3.0]
    assert max(result.level(Level.RESERVED)[1]) == 1


def test_an_early_ack_is_written_after_the_task_all_the_same(make: Make) -> None:
    # it is put off to the loop's next turn, which begins when the task is done
    result = simulate(make([1.0], ("io_s", 1.0), pool="solo", horizon_s=3.0))
    times, values = result.level(Level.UNACKED)
    assert (times.tolist(), values.tolist()) == ([1.0, 2.0], [1, 0])


def test_concurrency_only_widens_the_prefetch_window(make: Make) -> None:
    result = simulate(make([1.0] * 9, ("io_s", 1.0), pool="solo", concurrency=2))
    assert max(result.level(Level.UNACKED)[1]) == 8
    assert column(result, "started") == [1.0 + k for k in range(9)]


def test_autoscale_does_nothing(make: Make) -> None:
    # seen with Celery 5.6.3: never more than one reserved task, for one process
    result = simulate(make([1.0] * 4, ("io_s", 1.0), pool="solo", autoscale=[4, 1]))
    assert len(result.scale_events) == 0
    assert result.count(Outcome.SUCCEEDED) == 4


def test_time_limits_do_nothing(make: Make) -> None:
    result = simulate(make([1.0], ("io_s", 3.0), pool="solo", time_limit=1.0))
    assert column(result, "finished") == [4.0]
