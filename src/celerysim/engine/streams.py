"""Random numbers: one named stream for each source, addressed by task, not by order of events.

Task i always gets the numbers at place i of each stream, however the worker's
events interleave. That is what makes runs reproducible, lets two scenarios
share their random numbers (common random numbers), and lets a vectorised
engine use the very same ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Numbers are drawn in blocks of this many consecutive tasks.
BLOCK = 4096


class Streams:
    """The streams of one replication.

    ``seed`` is the scenario's ``run.seed``. The generator is numpy's Philox,
    keyed by seed, replication, stream name and block, so any block can be
    drawn without drawing those before it.
    """

    def __init__(self, seed: int, replication: int = 0) -> None:
        self.seed = seed
        self.replication = replication

    def uniform(self, name: str, block: int) -> Floats:
        """The ``block``-th :data:`BLOCK` uniform numbers in [0, 1) of the stream ``name``."""
        sequence = np.random.SeedSequence(
            self.seed, spawn_key=(self.replication, zlib.crc32(name.encode()), block)
        )
        return np.random.Generator(np.random.Philox(sequence)).random(BLOCK)

    def sequence(self, name: str) -> Iterator[float]:
        """The uniform numbers of a stream one by one, for what happens in no order known before."""
        for block in count():
            yield from self.uniform(name, block).tolist()
