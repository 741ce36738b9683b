"""The CPU burner: as much CPU time as asked, and nothing but Python."""

from __future__ import annotations

import time

from celerysim.record.burn import CHUNK_S, burn, calibrate, chunk


def test_uses_the_cpu_time_asked_for_and_less_than_a_millisecond_more() -> None:
    loops = calibrate()
    over = []
    for seconds in (0.002, 0.01, 0.03):
        start = time.thread_time()
        burn(seconds, loops)
        over.append(time.thread_time() - start - seconds)
    assert min(over) >= 0
    # One preemption in the middle of a chunk may add to one of them, hardly to all.
    assert sorted(over)[0] < 0.001


def test_one_chunk_is_far_shorter_than_a_millisecond() -> None:
    loops = calibrate()
    fastest = min(_cpu_of_chunk(loops) for _ in range(50))
    assert CHUNK_S / 4 < fastest < CHUNK_S * 4


def test_stops_at_the_first_reading_that_reaches_the_end() -> None:
    readings = iter([10.0, 10.2, 10.4, 10.5, 99.0])
    burn(0.5, 1, clock=lambda: next(readings))
    assert next(readings) == 99.0


def test_nothing_to_burn_is_no_work() -> None:
    readings = iter([1.0, 1.0])
    burn(0.0, 10**9, clock=lambda: next(readings))


def _cpu_of_chunk(loops: int) -> float:
    start = time.thread_time()
    chunk(loops)
    return time.thread_time() - start
