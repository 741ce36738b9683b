"""Which distribution some seconds have.

The criterion: no spread beyond that of the log's stamps is a constant; else
normal, lognormal and gamma are fitted by maximum likelihood, and the likeliest
is taken if it is nowhere further from the data than a test at about one per
cent allows (Kolmogorov's distance; Lilliefors' bounds for fitted parameters lie
below :data:`KOLMOGOROV`). Otherwise the values themselves are taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from celerysim.calibrate.phases import STAMP_S
from celerysim.history import Floats

#: Greatest accepted distance of the distribution functions, times sqrt(n).
KOLMOGOROV = 1.36
#: An empirical distribution keeps at most this many values (evenly spaced quantiles).
MOST_VALUES = 100
#: Fewer values than this do not tell a shape.
_FEW = 8
_DIGITS = 6


class Shape(NamedTuple):
    """A distribution and how it fits."""

    seconds: Any  #: as in a scenario file: a number, or a table with its kind
    distance: float  #: Kolmogorov's; 0 for values taken as they are
    mean: float
    sd: float
    tasks: int

    @property
    def kind(self) -> str:
        """Its name in a scenario file."""
        return str(self.seconds["kind"]) if isinstance(self.seconds, dict) else "constant"


def fit_shape(values: Floats) -> Shape:
    """The distribution of ``values`` (seconds; those below zero count as zero)."""
    values = np.maximum(values[~np.isnan(values)], 0.0)
    count = len(values)
    mean = float(values.mean()) if count else 0.0
    sd = float(values.std(ddof=1)) if count > 1 else 0.0
    if count < _FEW or sd <= STAMP_S or mean <= 0.0:
        return Shape(round(mean, _DIGITS), 0.0, mean, sd, count)
    likeliest = max(_candidates(values, mean, sd), key=lambda fit: fit[0])
    _, kind, fitted_mean, fitted_sd, distance = likeliest
    if distance * np.sqrt(count) > KOLMOGOROV:
        return Shape({"kind": "empirical", "values": _quantiles(values)}, 0.0, mean, sd, count)
    seconds = {
        "kind": kind,
        "mean": round(fitted_mean, _DIGITS),
        "sd": max(round(fitted_sd, _DIGITS), 10.0**-_DIGITS),
    }
    return Shape(seconds, distance, mean, sd, count)


def _candidates(
    values: Floats, mean: float, sd: float
) -> list[tuple[float, str, float, float, float]]:
    """(log likelihood, kind, mean, sd, distance) of each."""
    from scipy.special import gammainc, gammaln, ndtr

    ordered = np.sort(values)
    n = len(ordered)
    found = [
        (
            -0.5 * n * (np.log(2 * np.pi * ordered.var()) + 1),
            "normal",
            mean,
            sd,
            _distance(ndtr((ordered - mean) / sd)),
        )
    ]
    if ordered[0] <= 0.0:
        return found
    logs = np.log(ordered)
    mu, variance = float(logs.mean()), float(logs.var())
    if variance < 1e-12:
        return found
    lognormal_mean = float(np.exp(mu + variance / 2))
    found.append(
        (
            float(-0.5 * n * (np.log(2 * np.pi * variance) + 1) - logs.sum()),
            "lognormal",
            lognormal_mean,
            lognormal_mean * float(np.sqrt(np.expm1(variance))),
            _distance(ndtr((logs - mu) / np.sqrt(variance))),
        )
    )
    # maximum likelihood of the shape, within 1.5 % by a formula: Minka, Estimating a Gamma (2002)
    gap = float(np.log(mean) - mu)
    if gap > 1e-9:
        shape = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
        scale = mean / shape
        likelihood = (shape - 1) * logs.sum() - ordered.sum() / scale
        likelihood -= n * (shape * np.log(scale) + float(gammaln(shape)))
        found.append(
            (
                float(likelihood),
                "gamma",
                mean,
                mean / float(np.sqrt(shape)),
                _distance(np.asarray(gammainc(shape, ordered / scale))),
            )
        )
    return found


def _distance(fitted: Floats) -> float:
    """Kolmogorov's distance of a fitted distribution function, at the sorted values."""
    n = len(fitted)
    above = np.arange(1, n + 1) / n - fitted
    below = fitted - np.arange(n) / n
    return float(max(above.max(), below.max()))


def _quantiles(values: Floats) -> list[float]:
    count = min(len(values), MOST_VALUES)
    quantiles = np.quantile(values, (np.arange(count) + 0.5) / count)
    return [round(value, _DIGITS) for value in quantiles.tolist()]
