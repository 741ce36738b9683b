"""What all rooms of the batch engine are made of: arrays with one place a lane.

A *lane* is one run in progress. ``lanes`` is always an array of lane numbers in
which none occurs twice; a room's method does the same thing in all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Lanes = NDArray[np.intp]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: One value for all lanes, or one a lane.
Value = float | Floats
Whole = int | Ints

#: The time of what is not going to happen.
NEVER = float("inf")


def at(value: Value, lanes: Lanes) -> Value:
    """The value in these lanes."""
    return value if isinstance(value, float) else value.take(lanes)


def whole_at(value: Whole, lanes: Lanes) -> Whole:
    """The whole number in these lanes."""
    return value if isinstance(value, int) else value.take(lanes)


class Ring:
    """A queue a lane: rows of plain numbers, first in, first out. Grows when a lane needs it."""

    def __init__(self, lanes: int, *dtypes: Any, capacity: int = 8) -> None:
        self._lanes = lanes
        self._capacity = capacity
        self._columns = [np.zeros(capacity * lanes, dtype=dtype) for dtype in dtypes]
        self.head = np.zeros(lanes, dtype=np.int64)
        self.tail = np.zeros(lanes, dtype=np.int64)

    def reset(self, lanes: Lanes) -> None:
        """Empty the queues."""
        self.head[lanes] = self.tail[lanes] = 0

    def push(self, lanes: Lanes, *values: Any) -> None:
        """Append a row in each lane."""
        tail = self.tail.take(lanes)
        if len(lanes) and (tail - self.head.take(lanes)).max() >= self._capacity:
            self._grow()
        place = (tail & (self._capacity - 1)) * self._lanes + lanes
        for column, value in zip(self._columns, values, strict=True):
            column[place] = value
        self.tail[lanes] = tail + 1

    def front(self, lanes: Lanes) -> list[NDArray[Any]]:
        """The first row of each lane, column by column."""
        place = (self.head.take(lanes) & (self._capacity - 1)) * self._lanes + lanes
        return [column.take(place) for column in self._columns]

    def drop(self, lanes: Lanes) -> None:
        """Remove the first row of each lane."""
        self.head[lanes] += 1

    def filled(self, lanes: Lanes) -> Bools:
        """Whether there is a row."""
        return self.head.take(lanes) < self.tail.take(lanes)

    def _grow(self) -> None:
        """Twice the capacity."""
        old, new = self._capacity, 2 * self._capacity
        lane = np.arange(self._lanes)
        columns = [np.zeros(new * self._lanes, dtype=c.dtype) for c in self._columns]
        for k in range(old):
            number = self.head + k
            source = (number & (old - 1)) * self._lanes + lane
            target = (number & (new - 1)) * self._lanes + lane
            for before, after in zip(self._columns, columns, strict=True):
                after[target] = before.take(source)
        self._columns, self._capacity = columns, new
