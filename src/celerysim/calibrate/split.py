"""How much of a runtime is CPU and how much is waiting, as far as a log tells.

Runtimes answer to how many tasks share the cores. Hypotheses are compared by
the likelihood of the runtimes:

- the tasks do not feel each other, and their seconds are as logged;
- each name's tasks compute and then wait, or wait and then compute, and one of
  the two takes the same time for all of them (:mod:`.phases`);
- they compute and wait in turns, or in no known order (:mod:`.turns`).

The first one holds unless the best of the others explains a fifth of the variance of
the runtimes: :data:`GAIN_PER_TASK` in the log likelihood of a normal distribution. Without
a given number of cores all that could matter are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from celerysim.calibrate.phases import (
    STAMP_S,
    Body,
    Order,
    Phases,
    Runs,
    Spread,
    read_back,
)
from celerysim.calibrate.turns import read_back_in_turns
from celerysim.history import Floats

#: Log likelihood that sharing must gain for each task, and in all, to be believed.
GAIN_PER_TASK = 0.11  # -log(0.8) / 2: a fifth of the variance
GAIN_IN_ALL = 15.0
#: Hypotheses closer than this in log likelihood are not told apart.
APART = 5.0
#: Tasks to look at: more cost time and tell little.
MOST_TASKS = 900
#: A name's CPU seconds count as known when the log narrows them down to this share of a runtime.
NARROW = 0.25
_GRID = 7
_SWEEPS = 4
_ASCENTS = 3
_COARSE = 0.03
#: Sizes of the simplex a polish begins with (seconds): it begins anew, to get along a ridge.
_SIMPLEX = (0.05, -0.15)
#: Orders of so many names are tried in all combinations.
_NAMES_APART = 4
#: Shares of computing that the search in turns begins with.
_SHARES = (0.03, 0.2, 0.4, 0.7)
#: Beginnings of the search: the part of the shortest runtimes that is constant waiting.
_BEGINNINGS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.98)


@dataclass(frozen=True)
class Split:
    """What the log says about computing and waiting."""

    identified: bool
    cores: int | None  #: given, or found; None: the log does not tell
    cores_given: bool
    in_turns: bool  #: no order is known; otherwise ``bodies`` holds it
    bodies: tuple[Body, ...]
    shares: tuple[float, ...]  #: share of computing in the seconds alone, for each name
    ranges_s: tuple[tuple[float, float], ...]  #: mean CPU seconds: least and most the log allows
    gain: float  #: log likelihood gained over "as logged", for each task
    cores_gain: float  #: log likelihood the found cores have over the next best number
    order_gain: float  #: log likelihood the best order has over the next best

    def phases(self, runs: Runs) -> Phases:
        """Each task's own seconds by this split."""
        if not self.identified or self.cores is None:
            nothing = np.zeros(len(runs.starts))
            return Phases(nothing, runs.runtimes, nothing + 1.0, runs.runtimes, 0.0, 0.0)
        if self.in_turns:
            return read_back_in_turns(runs, np.array(self.shares), self.cores)
        return read_back(runs, list(self.bodies), self.cores)

    def known(self, name: int, runtime_s: float) -> bool:
        """Whether the CPU seconds of a name are narrowed down."""
        low, high = self.ranges_s[name]
        return high - low <= NARROW * runtime_s


def as_logged(names: int, cores: int | None) -> Split:
    """The split of a log that does not tell."""
    ranges = ((0.0, np.inf),) * names
    given = cores is not None
    return Split(False, cores, given, False, (), (0.0,) * names, ranges, 0.0, 0.0, 0.0)


def fit_split(runs: Runs, names: int, cores: int | None = None) -> Split:
    """Find the split that explains the runtimes, or say that the log does not tell."""
    unknown = as_logged(names, cores)
    most = runs.running()
    candidates = [cores] if cores is not None else _candidates(most)
    found = [_fit(runs, names, c) for c in candidates if c < most]
    if not found or len(runs.starts) < 20 * names:
        return unknown
    explained = [_explained(fit.phases(runs), runs, names) for fit in found]
    ranking = np.argsort(explained)[::-1]
    best, gained = found[ranking[0]], explained[ranking[0]]
    apart = gained - explained[ranking[1]] if len(found) > 1 else np.inf
    needed = max(GAIN_PER_TASK * len(runs.starts), GAIN_IN_ALL)
    if gained < needed or (cores is None and apart < needed):
        return unknown
    phases = best.phases(runs)
    total = phases.cpu_s + phases.io_s
    shares = [float(phases.cpu_s[m].sum() / total[m].sum()) for m in _masks(runs, names)]
    ranges = [best.range_of(runs, name) for name in range(names)]
    return Split(
        identified=True,
        cores=best.cores,
        cores_given=cores is not None,
        in_turns=not best.bodies,
        bodies=tuple(best.bodies),
        shares=tuple(shares if best.bodies else best.values),
        ranges_s=tuple(ranges),
        gain=gained / len(runs.starts),
        cores_gain=float(apart),
        order_gain=best.order_gain,
    )


@dataclass
class _Fit:
    """The best hypothesis for one number of cores: an order (``bodies``), or in turns."""

    cores: int
    bodies: list[Body]
    values: list[float] = field(default_factory=list)  #: in turns: the names' shares
    likelihood: float = -np.inf
    least_s: float = STAMP_S  #: smaller spreads count as this: a coarse search sees farther
    order_gain: float = 0.0
    slowdowns: list[float] = field(default_factory=list)
    alternatives: list[_Fit] = field(default_factory=list)  #: other orders and spreads tried

    def phases(self, runs: Runs) -> Phases:
        if self.bodies:
            return read_back(runs, self.bodies, self.cores, self.least_s)
        return read_back_in_turns(runs, np.array(self.values), self.cores)

    def range_of(self, runs: Runs, name: int) -> tuple[float, float]:
        """Mean CPU seconds of a name at which the likelihood is within :data:`APART`."""
        mine = runs.names == name
        kept: list[float] = []
        trials = [self.with_value(name, value) for value in _grid(self, runs, name, 4 * _GRID)]
        if self.bodies:
            self.note_slowdowns(runs)
            trials += [self.shifted(shift_s) for shift_s in self.shifts(4 * _GRID)]
            trials += [
                fit for fit in self.alternatives if fit.likelihood >= self.likelihood - APART
            ]
        for trial in (fit.phases(runs) for fit in trials):
            if trial.log_likelihood >= self.likelihood - APART:
                kept.append(float(trial.cpu_s[mine].mean()))
        kept.append(float(self.phases(runs).cpu_s[mine].mean()))
        return min(kept), max(kept)

    def shifts(self, size: int) -> Floats:
        """Seconds by which the waiting of all names together may be longer, computing shorter."""
        waits = [b.constant_s for b in self.bodies if b.spread is Spread.CPU]
        works = [
            b.constant_s * slow
            for b, slow in zip(self.bodies, self.slowdowns, strict=True)
            if b.spread is Spread.IO
        ]
        span = max([*waits, *works])
        return np.linspace(-min([*waits, span]), min([*works, span]), size)

    def shifted(self, wait_s: float) -> _Fit:
        """All names with ``wait_s`` more of waiting: what the log tells apart least."""
        bodies = []
        for body, slow in zip(self.bodies, self.slowdowns, strict=True):
            change = wait_s if body.spread is Spread.CPU else -wait_s / slow
            bodies.append(body._replace(constant_s=max(body.constant_s + change, 0.0)))
        return replace(self, bodies=bodies)

    def note_slowdowns(self, runs: Runs) -> None:
        """Keep how much each name's computing is held up, for :meth:`shifted`."""
        slowdown = self.phases(runs).slowdown
        self.slowdowns = [
            float(slowdown[mine].mean()) if mine.any() else 1.0
            for mine in _masks(runs, len(self.bodies))
        ]

    @property
    def numbers(self) -> list[float]:
        """The number that is fitted for each name: constant seconds, or in turns the share."""
        return [body.constant_s for body in self.bodies] or self.values

    def with_numbers(self, numbers: list[float]) -> _Fit:
        """The same hypothesis with other numbers."""
        numbers = [max(number, 0.0) for number in numbers]
        if not self.bodies:
            return replace(self, values=[min(number, 1.0) for number in numbers])
        pairs = zip(self.bodies, numbers, strict=True)
        return replace(self, bodies=[body._replace(constant_s=s) for body, s in pairs])

    def with_value(self, name: int, value: float) -> _Fit:
        """The same with another number for one name."""
        numbers = list(self.numbers)
        numbers[name] = value
        return self.with_numbers(numbers)


def _fit(runs: Runs, names: int, cores: int) -> _Fit:
    ordered, turns = _fit_orders(runs, names, cores), _fit_turns(runs, names, cores)
    best, other = (
        (ordered, turns) if ordered.likelihood >= turns.likelihood + APART else (turns, ordered)
    )
    best.order_gain = min(best.order_gain or np.inf, best.likelihood - other.likelihood)
    return best


def _fit_orders(runs: Runs, names: int, cores: int) -> _Fit:
    """The best order, spread and constant of each name, found from several beginnings."""
    masks = _masks(runs, names)
    least = [float(np.quantile(runs.runtimes[m], 0.05)) if m.any() else 0.0 for m in masks]
    load = np.argsort([-runs.runtimes[m].sum() for m in masks]).tolist()
    beginnings: list[_Fit] = []
    for orders in product(Order, repeat=min(names, _NAMES_APART)):
        each = [*orders, *[orders[-1]] * (names - len(orders))]
        fits = [
            _Fit(
                cores,
                [Body(o, Spread.CPU, part * s) for o, s in zip(each, least, strict=True)],
                least_s=_COARSE * float(np.median(runs.runtimes)),
            )
            for part in _BEGINNINGS
        ]
        for fit in fits:
            fit.likelihood = fit.phases(runs).log_likelihood
        beginnings.append(_polish(max(fits, key=_likelihood), runs))
    beginnings.sort(key=_likelihood, reverse=True)
    found = []
    for fit in (_ascend(fit, runs, load) for fit in beginnings[:_ASCENTS]):
        fit.least_s, fit.likelihood = STAMP_S, -np.inf
        found.append(_polish(_ascend(_polish(fit, runs), runs, load), runs))
    best = max(found, key=_likelihood)
    best.alternatives += [fit for fit in found if best.likelihood > fit.likelihood]
    return best


def _ascend(fit: _Fit, runs: Runs, load: list[int]) -> _Fit:
    """Improve name by name, the most heavily loaded first."""
    for _ in range(_SWEEPS):
        before = fit.likelihood
        fit.order_gain = np.inf
        fit.alternatives = []
        for name in load:
            tried: list[tuple[float, Body]] = []
            for order, spread in product(Order, Spread):
                fit.bodies[name] = Body(order, spread, 0.0)
                likelihood, constant_s = _climb(fit, runs, name)
                tried.append((likelihood, fit.bodies[name]._replace(constant_s=constant_s)))
            tried.sort(key=lambda item: item[0], reverse=True)
            fit.likelihood, fit.bodies[name] = tried[0]
            for likelihood, body in tried[1:]:
                bodies = [*fit.bodies[:name], body, *fit.bodies[name + 1 :]]
                fit.alternatives.append(
                    replace(fit, bodies=bodies, likelihood=likelihood, alternatives=[])
                )
            turned = max(lik for lik, body in tried if body.order is not tried[0][1].order)
            fit.order_gain = min(fit.order_gain, fit.likelihood - turned)
        if fit.likelihood < before + 1.0:
            break
    return fit


def _polish(fit: _Fit, runs: Runs) -> _Fit:
    """Improve all names' numbers together: longer waiting for all looks much like less work."""
    from scipy.optimize import minimize

    for size in _SIMPLEX:
        begin = np.array(fit.numbers)
        corners = begin + size * np.vstack([np.zeros(len(begin)), np.eye(len(begin))])
        found = minimize(
            _badness,
            begin,
            args=(fit, runs),
            method="Nelder-Mead",
            options={
                "maxfev": 60 * len(begin),
                "xatol": 1e-3,
                "fatol": 0.1,
                "initial_simplex": corners,
            },
        )
        if -found.fun > fit.likelihood:
            fit = fit.with_numbers(found.x.tolist())
            fit.likelihood = float(-found.fun)
    return fit


def _badness(numbers: Floats, fit: _Fit, runs: Runs) -> float:
    return -fit.with_numbers(numbers.tolist()).phases(runs).log_likelihood


def _likelihood(fit: _Fit) -> float:
    return fit.likelihood


def _fit_turns(runs: Runs, names: int, cores: int) -> _Fit:
    """The best share of computing of each name."""
    if names <= _NAMES_APART:
        beginnings = [_Fit(cores, [], list(v)) for v in product(_SHARES, repeat=names)]
    else:
        beginnings = [_Fit(cores, [], [share] * names) for share in _SHARES]
    for fit in beginnings:
        fit.likelihood = fit.phases(runs).log_likelihood
    beginnings.sort(key=_likelihood, reverse=True)
    return max((_polish(fit, runs) for fit in beginnings[:2]), key=_likelihood)


def _climb(fit: _Fit, runs: Runs, name: int) -> tuple[float, float]:
    """The best value of one name's number, the others' unchanged: a grid, then finer ones."""
    values = _grid(fit, runs, name, _GRID)

    def likelihood(value: float) -> float:
        return fit.with_value(name, value).phases(runs).log_likelihood

    return _maximum(likelihood, values)


def _maximum(function: Callable[[float], float], values: Floats) -> tuple[float, float]:
    tried = {float(v): function(float(v)) for v in values}
    step = float(values[1] - values[0])
    for _ in range(4):
        best = max(tried, key=tried.__getitem__)
        step /= 2.5
        for value in (best - step, best + step):
            if values[0] <= value <= values[-1]:
                tried.setdefault(value, function(value))
    best = max(tried, key=tried.__getitem__)
    return tried[best], best


def _grid(fit: _Fit, runs: Runs, name: int, size: int) -> Floats:
    """The values one name's number may have."""
    if not fit.bodies:
        return np.linspace(0.0, 1.0, size)
    mine = runs.runtimes[runs.names == name]
    top = float(np.quantile(mine, 0.05 if fit.bodies[name].spread is Spread.CPU else 0.5))
    return np.linspace(0.0, top, size) if top > 0 else np.array([0.0, 1e-9])


def _explained(phases: Phases, runs: Runs, names: int) -> float:
    """Log likelihood gained over runtimes as logged, by the spread that sharing explains."""
    gained = phases.log_own_per_s
    for mine in _masks(runs, names):
        if mine.sum() > 1:
            before, after = _spread_s(runs.runtimes[mine]), _spread_s(phases.own[mine])
            gained += float(mine.sum() * np.log(before / after))
    return gained


def _spread_s(seconds: Floats) -> float:
    """Standard deviation without the odd half per cent on either side, and not below a stamp's."""
    low, high = np.quantile(seconds, (0.005, 0.995))
    return max(float(np.clip(seconds, low, high).std()), STAMP_S)


def _masks(runs: Runs, names: int) -> list[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    return [runs.names == name for name in range(names)]


def _candidates(most: int) -> list[int]:
    return [c for c in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if c < most]
