"""Random quantities of a scenario: how many seconds a step takes, a pause lasts.

Every distribution is sampled by inverting its cumulative distribution function
(:meth:`ppf`, scipy's word for it) at a uniform number. One uniform number a
task and step, whatever the distribution, is what lets two scenarios that
differ in a distribution still use common random numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

Floats = NDArray[np.float64]

#: Sampled seconds are rounded to this many decimals (a nanosecond), so that the
#: last-bit differences between the mathematical libraries of two machines
#: cannot make two runs of one scenario and seed differ.
DECIMALS = 9

Mean = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Spread = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Bound = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class _Distribution(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def ppf(self, u: Floats) -> Floats:
        """Seconds at the quantiles ``u`` (each in [0, 1)); same shape, never negative."""
        seconds = np.maximum(np.asarray(self._quantile(u), dtype=np.float64), 0.0)
        return np.round(seconds, DECIMALS).astype(np.float64)

    def _quantile(self, u: Floats) -> Floats:
        raise AssertionError("each distribution defines its quantile function")

    @property
    def expectation(self) -> float:
        """Mean in seconds (of the untruncated normal, for a normal)."""
        raise AssertionError("each distribution defines its mean")


class Constant(_Distribution):
    """The same number of seconds every time. Written as a plain number."""

    kind: Literal["constant"] = "constant"
    value: Bound

    def _quantile(self, u: Floats) -> Floats:
        return np.full(np.shape(u), self.value)

    @property
    def expectation(self) -> float:
        """Mean in seconds."""
        return self.value


class Normal(_Distribution):
    """Normal with this mean and standard deviation; values below zero become zero."""

    kind: Literal["normal"]
    mean: Mean
    sd: Spread

    def _quantile(self, u: Floats) -> Floats:
        from scipy.special import ndtri

        return self.mean + self.sd * np.asarray(ndtri(_open(u)))

    @property
    def expectation(self) -> float:
        """Mean in seconds, before values below zero are cut."""
        return self.mean


class LogNormal(_Distribution):
    """Lognormal; ``mean`` and ``sd`` are those of the seconds, not of their logarithm."""

    kind: Literal["lognormal"]
    mean: Mean
    sd: Spread

    def _quantile(self, u: Floats) -> Floats:
        from scipy.special import ndtri

        variance = np.log1p((self.sd / self.mean) ** 2)
        z = np.asarray(ndtri(_open(u)))
        return np.asarray(np.exp(np.log(self.mean) - variance / 2 + np.sqrt(variance) * z))

    @property
    def expectation(self) -> float:
        """Mean in seconds."""
        return self.mean


class Gamma(_Distribution):
    """Gamma with this mean and standard deviation."""

    kind: Literal["gamma"]
    mean: Mean
    sd: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]

    def _quantile(self, u: Floats) -> Floats:
        from scipy.special import gammaincinv

        shape = (self.mean / self.sd) ** 2
        return np.asarray(gammaincinv(shape, u)) * self.mean / shape

    @property
    def expectation(self) -> float:
        """Mean in seconds."""
        return self.mean


class Exponential(_Distribution):
    """Exponential with this mean."""

    kind: Literal["exponential"]
    mean: Mean

    def _quantile(self, u: Floats) -> Floats:
        return -self.mean * np.log1p(-u)

    @property
    def expectation(self) -> float:
        """Mean in seconds."""
        return self.mean


class Uniform(_Distribution):
    """Uniform between ``low`` and ``high``."""

    kind: Literal["uniform"]
    low: Bound
    high: Bound

    def model_post_init(self, context: Any) -> None:
        """Refuse an empty interval."""
        if self.low > self.high:
            raise PydanticCustomError(
                "interval_order",
                "low must not be above high",
                {"remedy": f"write low = {self.high:g}, high = {self.low:g}"},
            )

    def _quantile(self, u: Floats) -> Floats:
        return self.low + (self.high - self.low) * u

    @property
    def expectation(self) -> float:
        """Mean in seconds."""
        return (self.low + self.high) / 2


class Empirical(_Distribution):
    """One of the given values, each as likely as the others (repeat one to weigh it)."""

    kind: Literal["empirical"]
    values: Annotated[tuple[Bound, ...], Field(min_length=1)]

    def _quantile(self, u: Floats) -> Floats:
        values = np.sort(np.asarray(self.values))
        return np.asarray(values[(u * len(values)).astype(np.intp)])

    @property
    def expectation(self) -> float:
        """Mean in seconds."""
        return float(np.mean(self.values))


def _open(u: Floats) -> Floats:
    """Uniform numbers in [0, 1) moved off zero, where a normal's quantile is infinite."""
    return np.maximum(u, 2.0**-54)


def _number_is_constant(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"kind": "constant", "value": value}
    return value


def _kind(value: Any) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return kind if isinstance(kind, str) else None


Seconds = Annotated[
    Annotated[Constant, Tag("constant")]
    | Annotated[Normal, Tag("normal")]
    | Annotated[LogNormal, Tag("lognormal")]
    | Annotated[Gamma, Tag("gamma")]
    | Annotated[Exponential, Tag("exponential")]
    | Annotated[Uniform, Tag("uniform")]
    | Annotated[Empirical, Tag("empirical")],
    Discriminator(
        _kind,
        custom_error_type="seconds",
        custom_error_message="must be a number of seconds or a distribution with a known kind",
    ),
    BeforeValidator(_number_is_constant),
]
"""A number of seconds (constant) or a table ``{ kind = ..., ... }`` naming a distribution."""
