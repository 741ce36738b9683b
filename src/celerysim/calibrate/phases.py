"""When did the tasks of a log compute? Each task's own seconds, read back through shared cores.

A log tells when a task began and ended, so which tasks were there at any time
is known. If each computes first and then waits (or the other way round), and
one of the two takes the same time for all tasks of a name, the other follows
for each task: the computing ones share the cores as in
:mod:`celerysim.engine.machine`, and the CPU work a task got done is the
integral of its rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celerysim.history import Floats

#: Spread below this (seconds) is that of the stamps, not of the tasks.
STAMP_S = 0.0005
#: Passes until CPU stretches of a fixed size and the rate they cause agree, within so much.
_PASSES = 60
_AGREE_S = 3e-4
_AGREE = 0.1
_STEP = 0.75
#: Share of tasks that may be anything, so that a few odd ones do not decide.
_ODD = 0.02


class Order(Enum):
    """In which order a task computes and waits."""

    CPU_FIRST = "computes, then waits"
    WAIT_FIRST = "waits, then computes"


class Spread(Enum):
    """Which of a task's seconds differ from task to task; the others are constant."""

    CPU = "cpu_s"
    IO = "io_s"


class Body(NamedTuple):
    """A hypothesis about the tasks of one name."""

    order: Order
    spread: Spread
    constant_s: float  #: the seconds of the part that does not differ


@dataclass(frozen=True)
class Runs:
    """Tasks that were seen to start and to end, in columns."""

    starts: Floats
    ends: Floats
    names: NDArray[np.intp]  #: index of each task's name

    @property
    def runtimes(self) -> Floats:
        """Seconds from start to end."""
        return np.asarray(self.ends - self.starts)

    def running(self) -> int:
        """Most tasks running at once."""
        marks = np.concatenate([self.starts, self.ends])
        steps = np.repeat([1, -1], len(self.starts))
        order = np.lexsort((steps, marks))  # at one instant, ends come first
        return int(np.cumsum(steps[order]).max(initial=0))


class Phases(NamedTuple):
    """What a hypothesis makes of a log."""

    cpu_s: Floats  #: CPU seconds of each task
    io_s: Floats  #: its seconds of waiting
    slowdown: Floats  #: how many times longer than alone it computed
    own: Floats  #: of these, the seconds that differ from task to task
    log_own_per_s: float  #: logarithm of how much of them a second of runtime is, over all tasks
    log_likelihood: float  #: of the runtimes


class _Progress:
    """The rate at which a computing task advances, over time, and its integral."""

    def __init__(self, begin: Floats, end: Floats, cores: int) -> None:
        marks = np.concatenate([begin, np.maximum(begin, end)])
        order = np.argsort(marks, kind="stable")
        self._times = marks[order]
        computing = np.cumsum(np.repeat([1, -1], len(begin))[order])
        self._rate = np.minimum(1.0, cores / np.maximum(computing, 1))
        done = np.cumsum(self._rate[:-1] * np.diff(self._times))
        self._done = np.concatenate([[0.0], done])

    def done(self, times: Floats) -> Floats:
        """CPU seconds a task that computes all the time has got done by ``times``."""
        return np.asarray(np.interp(times, self._times, self._done))

    def when(self, done: Floats) -> Floats:
        """The times by which such a task has got ``done``; the inverse of :meth:`done`."""
        return np.asarray(np.interp(done, self._done, self._times))

    def rate(self, times: Floats) -> Floats:
        """The rate just before ``times``."""
        place = np.searchsorted(self._times, times - 1e-9, side="right") - 1
        return np.asarray(self._rate[np.maximum(place, 0)])


def read_back(runs: Runs, bodies: list[Body], cores: int, least_s: float = STAMP_S) -> Phases:
    """Each task's seconds of CPU and of waiting if the names' bodies are ``bodies``.

    The likelihood is that of the runtimes: of the seconds that differ from task
    to task (normal or lognormal for each name, whichever fits; spreads below
    ``least_s`` count as that), times how much of them a second of runtime is.
    """
    first = np.array([body.order is Order.CPU_FIRST for body in bodies])[runs.names]
    on_cpu = np.array([body.spread is Spread.CPU for body in bodies])[runs.names]
    constant = np.array([body.constant_s for body in bodies])[runs.names]
    # Where the waiting is constant, the stretch of computing is known at once. A constant too long
    # for a task turns its stretch round: it then has less than no CPU seconds, or waiting.
    begin = np.where(first, runs.starts, runs.starts + constant)
    end = np.where(first, runs.ends - constant, runs.ends)
    fixed = ~on_cpu
    begin = np.where(fixed & ~first, runs.ends - constant, begin)
    end = np.where(fixed & first, runs.starts + constant, end)
    progress = _Progress(begin, end, cores)
    ahead, back = np.flatnonzero(fixed & first), np.flatnonzero(fixed & ~first)
    for _ in range(_PASSES if fixed.any() else 0):
        until = progress.when(progress.done(runs.starts[ahead]) + constant[ahead])
        since = progress.when(progress.done(runs.ends[back]) - constant[back])
        moved_s = max(
            np.abs(until - end[ahead]).max(initial=0.0),
            np.abs(since - begin[back]).max(initial=0.0),
        )
        end[ahead] += _STEP * (until - end[ahead])
        begin[back] += _STEP * (since - begin[back])
        progress = _Progress(begin, end, cores)
        if moved_s < max(_AGREE_S, _AGREE * least_s):
            break
    got = progress.done(end) - progress.done(begin)
    cpu_s = np.where(on_cpu, got, constant)
    io_s = np.where(on_cpu, constant, np.where(first, runs.ends - end, begin - runs.starts))
    own = np.where(on_cpu, cpu_s, io_s)
    likelihood = sum(
        spread_likelihood(own[runs.names == name], least_s) for name in range(len(bodies))
    )
    # seconds of CPU, or of waiting before it, for one of runtime (the determinant of a map that is
    # triangular in the order of ends, and of begins)
    by_end = np.log(progress.rate(end))
    by_begin = np.log(progress.rate(begin + 2e-9))
    own_per_s = float(by_end[on_cpu | ~first].sum() - by_begin[fixed & ~first].sum())
    slowdown = np.where(got > 0, (end - begin) / np.where(got > 0, got, 1.0), 1.0)
    return Phases(cpu_s, io_s, np.maximum(slowdown, 1.0), own, own_per_s, likelihood + own_per_s)


def spread_likelihood(seconds: Floats, least_s: float = STAMP_S) -> float:
    """Log likelihood of seconds under the best normal or lognormal distribution.

    A share of :data:`_ODD` may lie anywhere between the least and the most.
    """
    if len(seconds) < 2:
        return 0.0
    span = max(float(np.ptp(seconds)), STAMP_S)
    normal = _normal(seconds, least_s)
    best = float(np.log((1 - _ODD) * np.exp(normal) + _ODD / span).sum())
    positive = seconds > STAMP_S
    if positive.mean() > 1 - _ODD:
        logs = np.log(seconds[positive])
        density = np.zeros(len(seconds))
        least_sd = least_s / float(np.exp(np.median(logs)))
        density[positive] = np.exp(_normal(logs, least_sd) - logs)
        best = max(best, float(np.log((1 - _ODD) * density + _ODD / span).sum()))
    return best


def _normal(values: Floats, least_sd: float) -> Floats:
    """Log densities under the normal distribution of the values that are not odd."""
    middle = float(np.median(values))
    sd = max(1.4826 * float(np.median(np.abs(values - middle))), least_sd)
    usual = values[np.abs(values - middle) < 4 * sd]
    middle, sd = float(usual.mean()), max(float(usual.std()), least_sd)
    return np.asarray(-0.5 * ((values - middle) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi)))
