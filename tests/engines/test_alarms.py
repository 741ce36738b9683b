"""Alarms ring in the order of time, those of one time in the order in which they were set."""

from __future__ import annotations

import numpy as np
import pytest

from celerysim.batch.agenda import Agenda
from celerysim.batch.arrays import NEVER
from celerysim.batch.clock import Clock
from celerysim.batch.machine import Alarms
from celerysim.batch.run_queues import ManyAlarms

LANES = 5


@pytest.mark.parametrize("kind", [Alarms, ManyAlarms])
@pytest.mark.parametrize("seed", range(5))
def test_the_earliest_rings_first(kind: type[Alarms], seed: int) -> None:
    random = np.random.default_rng(seed)
    clock = Clock(LANES, 1, Agenda())
    alarms = kind(LANES, clock, clock.machine)
    expected: list[list[tuple[float, int]]] = [[] for _ in range(LANES)]  # (time, how many before)
    rung: list[list[tuple[float, int]]] = [[] for _ in range(LANES)]
    for step in range(400):
        lanes = np.flatnonzero(random.random(LANES) < 0.6)
        if step < 300 and random.random() < 0.6:
            times = random.integers(0, 6, lanes.size).astype(float)  # many at one time
            for lane, time in zip(lanes.tolist(), times.tolist(), strict=True):
                expected[lane].append((time, clock.tick()))
            alarms.add(lanes, times)
            continue
        lanes = np.array([lane for lane in lanes.tolist() if expected[lane]], dtype=np.intp)
        before = clock.order[clock.machine].take(lanes)
        for lane, order in zip(lanes.tolist(), before.tolist(), strict=True):
            first = min(expected[lane])
            expected[lane].remove(first)
            assert clock.time[clock.machine][lane] == first[0]
            later = [tick for time, tick in expected[lane] if time == first[0]]
            assert first[1] < order < min(later, default=NEVER)
            rung[lane].append(first)
        alarms.drop(lanes)
    assert all(rung)
