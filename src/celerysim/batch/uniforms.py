"""Uniform random numbers of many replications: those of :class:`engine.streams.Streams`.

A replication's stream is keyed by numpy's ``SeedSequence``; making one for every
stream takes longer than drawing from it. Here the same keys are computed for all
replications at once, and one Philox generator takes one key after the other.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from celerysim.batch.arrays import Bools, Floats, Ints, Lanes, Value
from celerysim.engine.streams import BLOCK, Streams

Words = NDArray[np.uint32]

# numpy/random/bit_generator.pyx: SeedSequence (after M. E. O'Neill's seed_seq_fe)
_POOL = 4
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_SHIFT = np.uint32(16)
_WORD = 2**32


class _Hash:
    """The hash whose constant changes with every use."""

    def __init__(self, constant: int, factor: int) -> None:
        self._constant = constant
        self._factor = factor

    def __call__(self, words: Words) -> Words:
        words = words ^ np.uint32(self._constant)
        self._constant = self._constant * self._factor % _WORD
        words = words * np.uint32(self._constant)
        return words ^ (words >> _SHIFT)


def _mix(x: Words, y: Words) -> Words:
    mixed: Words = _MIX_L * x - _MIX_R * y
    return mixed ^ (mixed >> _SHIFT)


def philox_keys(seed: int, spawn_key: list[Ints | int], size: int) -> NDArray[np.uint64]:
    """The key of ``Philox(SeedSequence(seed, spawn_key=...))``, a row for each of ``size`` keys.

    The parts of ``spawn_key`` are numbers below 2**32, or arrays of such.
    """
    seeds = [seed >> shift & 0xFFFFFFFF for shift in range(0, max(seed.bit_length(), 1), 32)]
    seeds += [0] * (_POOL - len(seeds))
    entropy = [np.full(size, part, dtype=np.uint32) for part in (*seeds, *spawn_key)]
    with np.errstate(over="ignore"):
        hashed = _Hash(_INIT_A, _MULT_A)
        pool = [hashed(words) for words in entropy[:_POOL]]
        for source in range(_POOL):
            for target in range(_POOL):
                if source != target:
                    pool[target] = _mix(pool[target], hashed(pool[source]))
        for words in entropy[_POOL:]:
            for target in range(_POOL):
                pool[target] = _mix(pool[target], hashed(words))
        hashed = _Hash(_INIT_B, _MULT_B)
        low, high, *rest = [hashed(words).astype(np.uint64) for words in pool]
    shift = np.uint64(32)
    return np.stack([low | high << shift, rest[0] | rest[1] << shift], axis=1)


class Uniforms:
    """The streams of several replications of one seed."""

    def __init__(self, seed: int, replications: Ints) -> None:
        self._seed = seed
        self._replications = replications

    def __len__(self) -> int:
        """Number of replications."""
        return len(self._replications)

    def draw(self, name: str, block: int, size: int) -> Floats:
        """The first ``size`` numbers of a block of a stream, a row a replication."""
        numbers = np.empty((len(self), size))
        stream = zlib.crc32(name.encode())
        keys = philox_keys(self._seed, [self._replications, stream, block], len(self))
        philox = np.random.Philox(0)
        state = philox.state  # at the beginning of its stream
        generator = np.random.Generator(philox)
        for row, key in zip(numbers, keys, strict=True):
            state["state"]["key"] = key
            philox.state = state
            generator.random(out=row)
        return numbers


class ExitNumbers:
    """The stream "exit" of each lane's run, addressed by a child's number."""

    def __init__(self) -> None:
        self._seed: dict[int, tuple[int, int]] = {}
        self._drawn: dict[tuple[int, int], Floats] = {}

    def reset(self, lanes: Lanes, seeds: list[tuple[int, int]]) -> None:
        """New runs, each with its (seed, replication), begin in these lanes."""
        for lane, seed in zip(lanes.tolist(), seeds, strict=True):
            self._seed[lane] = seed
        self._drawn.clear()

    def below(self, lanes: Lanes, number: Ints, share: Value) -> Bools:
        """Whether the number of each lane's child is below ``share``."""
        missed = np.zeros(lanes.size, dtype=np.bool_)
        shares = np.broadcast_to(np.asarray(share), lanes.shape)
        for i in np.flatnonzero(shares).tolist():
            missed[i] = self._number(int(lanes[i]), int(number[i])) < shares[i]
        return missed

    def _number(self, lane: int, number: int) -> float:
        block, place = divmod(number, BLOCK)
        if (lane, block) not in self._drawn:
            self._drawn[lane, block] = Streams(*self._seed[lane]).uniform("exit", block)
        return float(self._drawn[lane, block][place])
