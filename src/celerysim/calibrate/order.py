"""In which order the tasks' names come: a pattern that repeats, or a mix.

A queue is first in, first out, so the order of "received" lines is the order of
sending (of messages that were not redelivered).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: A pattern holds for at least this share of the tasks, and is seen this often.
AGREEMENT = 0.99
REPETITIONS = 4
#: Longest pattern looked for.
LONGEST = 200


class NameOrder(NamedTuple):
    """The order of names."""

    pattern: tuple[int, ...] | None  #: indices of names, repeated; None: a mix
    weights: tuple[float, ...]  #: share of each name
    agreement: float  #: share of tasks that the pattern gets right
    repetitions: float  #: how often the pattern was seen
    chance: float  #: log10 of the chance that drawing by weight gives such an order
    dependence: float  #: how much likelier a name is after itself than in a mix (0: as in a mix)


def find_order(names: NDArray[np.intp], count: int) -> NameOrder:
    """The shortest pattern in ``names`` (indices below ``count``), or their mix."""
    n = len(names)
    weights = np.bincount(names, minlength=count) / max(n, 1)
    for period in range(1, min(LONGEST, n // REPETITIONS) + 1):
        if np.count_nonzero(names[period:] == names[:-period]) < 0.97 * (n - period):
            continue
        places = np.arange(n) % period
        counts = np.zeros((period, count), dtype=np.intp)
        np.add.at(counts, (places, names), 1)
        pattern = counts.argmax(axis=1)
        agreement = float(np.mean(pattern[places] == names))
        if agreement < AGREEMENT:
            continue
        repeated = names[period:][pattern[places[period:]] == names[period:]]
        chance = float(np.log10(weights[repeated]).sum())
        if chance < -3.0 or count == 1:
            return NameOrder(
                tuple(pattern.tolist()), tuple(weights), agreement, n / period, chance, 0.0
            )
    same = float(np.mean(names[1:] == names[:-1])) if n > 1 else 0.0
    return NameOrder(None, tuple(weights), 0.0, 0.0, 0.0, same - float((weights**2).sum()))
