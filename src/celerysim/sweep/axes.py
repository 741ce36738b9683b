"""Axes: what varies in a sweep. Each becomes steps; the product of all axes' steps are the points.

A step is a group of overrides, written as on the command line
(``worker.keepalive=600``), and the coordinates by which the table tells it apart.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from celerysim.errors import Problem
from celerysim.sweep.problems import Strict, problem, refuse

#: What a coordinate can be in the table.
Value = bool | int | float | str
Number = (
    Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True, allow_inf_nan=False)]
)

#: Significant digits (at least) of the inner values of a logarithmic range: readable, and the same
#: whatever the last bits of a machine's logarithm.
DIGITS = 4
#: Decimals of the values of a linear range; hides 0.1 + 0.2.
DECIMALS = 9


class Step(NamedTuple):
    """One place on an axis."""

    coordinates: dict[str, Value]
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """One place in the product of all axes."""

    number: int
    coordinates: Mapping[str, Value]
    overrides: tuple[str, ...]

    def __str__(self) -> str:
        """The coordinates, as in an override."""
        return ", ".join(f"{name}={value}" for name, value in self.coordinates.items())


class Range(Strict):
    """Evenly spaced values, both ends included; whole numbers when everything given is whole."""

    low: Number = Field(alias="from")
    """The first value."""
    high: Number = Field(alias="to")
    """The last value (with ``step``: not above it)."""
    step: Number | None = None
    """From one value to the next."""
    points: Annotated[int, Field(ge=2, strict=True)] | None = None
    """How many values, instead of ``step``."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.low >= self.high:
            raise refuse("from must be below to", "swap them")
        if (self.step is None) == (self.points is None):
            raise refuse("a range has either step or points", "give one of them")
        if self.step is not None and self.step <= 0:
            raise refuse("step must be greater than 0", "give a positive step")
        return self

    def values(self) -> list[Value]:
        """The values, ascending."""
        if self.points is not None:
            spaced = np.linspace(self.low, self.high, self.points).tolist()
            return [round(value, DECIMALS) for value in spaced]
        assert self.step is not None
        count = math.floor((self.high - self.low) / self.step + 1e-9) + 1
        values = [self.low + i * self.step for i in range(count)]
        return [v if isinstance(v, int) else round(v, DECIMALS) for v in values]


class LogRange(Strict):
    """Values a constant factor apart, both ends included."""

    low: Number = Field(alias="from")
    """The first value, above zero."""
    high: Number = Field(alias="to")
    """The last value."""
    points: Annotated[int, Field(ge=2, strict=True)]
    """How many values (fewer when ``whole`` rounds some to the same number)."""
    whole: Annotated[bool, Field(strict=True)] = False
    """Round to whole numbers, for fields that take no others."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.low <= 0:
            raise refuse("a logarithmic range starts above 0", "raise from, or use range")
        if self.low >= self.high:
            raise refuse("from must be below to", "swap them")
        return self

    def values(self) -> list[Value]:
        """The values, ascending."""
        inner = np.geomspace(self.low, self.high, self.points)[1:-1].tolist()
        if self.whole:
            return list(dict.fromkeys(round(v) for v in (self.low, *inner, self.high)))
        # as many digits as keep neighbours well apart
        gap = (self.high / self.low) ** (1 / (self.points - 1)) - 1
        digits = max(DIGITS, math.ceil(-math.log10(gap)) + 2)
        return [float(self.low), *(float(f"{v:.{digits}g}") for v in inner), float(self.high)]


class Axis(Strict):
    """One axis: a field with ``values``, ``range`` or ``log``; a ``zip`` of such; or ``cases``."""

    field: str | None = None
    """Dotted path of the scenario's field, such as ``worker.keepalive``."""
    name: str | None = None
    """Name of the axis in the table and pictures [default: the field]."""
    values: Annotated[tuple[Any, ...], Field(min_length=1)] | None = None
    """The field's values."""
    range: Range | None = None
    """Evenly spaced values: ``{ from = 0, to = 0.2, step = 0.01 }`` (or ``points = 21``)."""
    log: LogRange | None = None
    """Values a constant factor apart: ``{ from = 1, to = 1200, points = 60 }``."""
    zip: Annotated[tuple[Axis, ...], Field(min_length=2)] | None = None
    """Axes of equal length whose values move together."""
    cases: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)] | None = None
    """Label to a group of overrides: ``slow = ["worker.keepalive=600", "machine.cores=2"]``."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        given = [
            kind
            for kind in ("values", "range", "log", "zip", "cases")
            if getattr(self, kind) is not None
        ]
        if len(given) != 1:
            raise refuse(
                f"an axis has one of values, range, log, zip and cases, not {len(given)}",
                "keep one of them; write two axes for a product",
            )
        match given[0]:
            case "cases":
                if self.field is not None or self.name is None:
                    raise refuse("cases have a name and no field", "give name = 'load', say")
            case "zip":
                self._sound_zip()
            case _:
                if self.field is None:
                    raise refuse("the axis names no field", "give field = 'worker.keepalive', say")
                texts = [toml_text(value) for value in self._values()]
                if twice := [text for text, n in Counter(texts).items() if n > 1]:
                    raise refuse(f"a value occurs twice: {', '.join(twice)}", "keep one of them")
        return self

    def _sound_zip(self) -> None:
        assert self.zip is not None
        if self.field is not None or self.name is not None:
            raise refuse("a zip has no field or name of its own", "name its members")
        if any(member.field is None for member in self.zip):
            raise refuse("members of a zip have values, range or log", "give them a field")
        lengths = [len(member._values()) for member in self.zip]
        if len(set(lengths)) > 1:
            raise refuse(
                f"what moves together must have as many values each, not {lengths}",
                "make the members equally long",
            )

    def _values(self) -> Sequence[Any]:
        if self.values is not None:
            return self.values
        chosen = self.range or self.log
        assert chosen is not None
        return chosen.values()

    def steps(self) -> list[Step]:
        """The places on the axis, in the order given."""
        if self.cases is not None:
            assert self.name is not None
            return [Step({self.name: label}, tuple(group)) for label, group in self.cases.items()]
        if self.zip is not None:
            together = zip(*(member.steps() for member in self.zip), strict=True)
            return [joined(steps) for steps in together]
        assert self.field is not None
        name = self.name or self.field
        return [step(self.field, value, name) for value in self._values()]

    def fields(self) -> Iterator[str]:
        """Dotted paths of everything the axis sets."""
        overrides = (override for step in self.steps() for override in step.overrides)
        yield from dict.fromkeys(override.partition("=")[0].strip() for override in overrides)

    def names(self) -> list[str]:
        """The columns by which the table tells the steps apart."""
        return list(self.steps()[0].coordinates)


def points(axes: Sequence[Axis]) -> list[Point]:
    """The product of all axes, the last one fastest; one point when there is no axis."""
    products = itertools.product(*(axis.steps() for axis in axes))
    return [Point(number, *joined(steps)) for number, steps in enumerate(products)]


def clashes(axes: Sequence[Axis]) -> list[Problem]:
    """What makes axes contradict each other: a field or a name that two of them have."""
    return [
        problem("axes", text, rule, remedy)
        for gather, rule, remedy in (
            (Axis.fields, "two axes set this field", "leave it to one axis, or zip them"),
            (Axis.names, "two axes have this name", "give one of them another name"),
        )
        for text, count in Counter(name for axis in axes for name in gather(axis)).items()
        if count > 1
    ]


def step(field: str, value: Any, name: str | None = None) -> Step:
    """The step that gives a field a value; the table has it under ``name`` [default: the field]."""
    shown = value if isinstance(value, bool | int | float | str) else toml_text(value)
    return Step({name or field: shown}, (f"{field}={toml_text(value)}",))


def toml_text(value: Any) -> str:
    """A value as TOML, for an override. Anything unknown is written as its text."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_text, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, np.generic):
        return toml_text(value.item())
    return str(value).lower() if isinstance(value, bool) else str(value)


def joined(steps: Iterable[Step]) -> Step:
    """Several axes' steps as one."""
    steps = list(steps)
    coordinates: dict[str, Value] = {}
    for step in steps:
        coordinates |= step.coordinates
    return Step(coordinates, tuple(o for step in steps for o in step.overrides))
