"""When cores are full, by hand."""

from __future__ import annotations

import numpy as np

from celerysim.compare.full_cores import FullCores

NAN = float("nan")


def test_cores_are_full_while_as_many_tasks_compute() -> None:
    steps = [(("cpu", 1.0), ("io", 1.0)), (("io", 0.5), ("cpu", 1.0)), (("cpu", 1.0),)]
    # The first computes from 0 to 1, the second from 0.5 to 1.5; the third's end is not known.
    full = FullCores(np.array([0.0, 0.0, 0.0]), np.array([2.0, 1.5, NAN]), steps, cores=2)
    times = np.array([0.0, 0.49, 0.5, 0.99, 1.0, 1.4])
    assert full.at(times).tolist() == [False, False, True, True, False, False]


def test_what_took_longer_was_computed_more_slowly() -> None:
    # 3 s instead of 2: both computing steps took one and a half times as long
    steps = [(("cpu", 0.5), ("io", 0.0), ("cpu", 0.5), ("io", 1.0))]
    full = FullCores(np.array([0.0]), np.array([2.5]), steps, cores=1)
    assert full.at(np.array([1.4, 1.6])).tolist() == [True, False]


def test_tasks_that_only_wait_fill_nothing() -> None:
    full = FullCores(np.array([0.0]), np.array([2.0]), [(("io", 2.0),)], cores=1)
    assert not full.at(np.array([1.0])).any()
