"""What a search is asked: the settings it may turn, and the limits it has to keep.

Both are written as on the command line: ``worker.keepalive=5:600`` and
``sojourn_s.p95<3``.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from celerysim.errors import Problem
from celerysim.scenario import Scenario
from celerysim.sweep.axes import Step, step
from celerysim.sweep.problems import ExperimentError, nearest, problem
from celerysim.sweep.statistics import UNITS

Numbers = TypeVar("Numbers", float, NDArray[np.float64])

#: Significant digits of a setting tried: nobody sets a keepalive of 31.41592 s.
DIGITS = 4


@dataclass(frozen=True)
class Knob:
    """A field and what it may be: between two numbers, or one of several values."""

    field: str
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    logarithmic: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def discrete(self) -> bool:
        """Whether the place on the scale is a whole number."""
        return bool(self.choices) or (self.whole and not self.logarithmic)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the scale that a search moves on."""
        if self.choices:
            return 0.0, float(len(self.choices) - 1)
        return (
            (math.log(self.low), math.log(self.high)) if self.logarithmic else (self.low, self.high)
        )

    @property
    def count(self) -> float:
        """How many values there are."""
        if self.choices:
            return len(self.choices)
        return self.high - self.low + 1 if self.whole else math.inf

    def all_steps(self) -> list[Step]:
        """A step for every value, where the number of them is finite."""
        values = self.choices or range(int(self.low), int(self.high) + 1)
        return [step(self.field, value) for value in values]

    def step(self, place: float) -> Step:
        """The step for a place on the scale."""
        return step(self.field, self._value(place))

    def _value(self, place: float) -> Any:
        if self.choices:
            return self.choices[round(place)]
        number = math.exp(place) if self.logarithmic else place
        if self.whole:
            return min(max(round(number), int(self.low)), int(self.high))
        return min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)


@dataclass(frozen=True)
class Limit:
    """A statistic's mean has to stay below (or above) a bound."""

    statistic: str
    below: bool
    bound: float

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.statistic}{'<' if self.below else '>'}{self.bound:g}"

    def excess(self, value: Numbers) -> Numbers:
        """How far a value is on the wrong side; negative on the right one."""
        return value - self.bound if self.below else self.bound - value


def read_goals(
    scenario: Scenario, minimise: str, subject_to: Sequence[str], over: Sequence[str]
) -> tuple[list[Limit], list[Knob]]:
    """The limits and knobs of a search.

    Raises:
        ExperimentError: any of them makes no sense; everything wrong at once.
    """
    problems: list[Problem] = []
    if minimise not in UNITS:
        problems.append(_unknown("minimise", minimise, minimise))
    limits = [_limit(text) for text in subject_to]
    knobs = [_knob(text, scenario) for text in over]
    if not over:
        remedy = "give over = worker.keepalive=5:600, say"
        problems.append(problem("over", "(missing)", "there is nothing to search over", remedy))
    fields = [knob.field for knob in knobs if isinstance(knob, Knob)]
    problems += [
        problem("over", field, "is given twice", "give each field once")
        for field in sorted({field for field in fields if fields.count(field) > 1})
    ]
    problems += [found for found in (*limits, *knobs) if isinstance(found, Problem)]
    if problems:
        raise ExperimentError("optimise", problems)
    return (
        [limit for limit in limits if isinstance(limit, Limit)],
        [knob for knob in knobs if isinstance(knob, Knob)],
    )


def _limit(text: str) -> Limit | Problem:
    match = re.fullmatch(r"\s*([\w.]+)\s*([<>])=?\s*(\S+)\s*", text)
    bound = _number(match[3]) if match else None
    if match is None or bound is None:
        return problem(
            "subject_to", text, "must read statistic<number or statistic>number",
            "write 'sojourn_s.p95<3', say",
        )  # fmt: skip
    if match[1] not in UNITS:
        return _unknown("subject_to", text, match[1])
    return Limit(match[1], match[2] == "<", bound)


def _knob(text: str, scenario: Scenario) -> Knob | Problem:
    field, equals, rest = text.partition("=")
    field = field.strip()
    if not equals or not field:
        return _bad_knob(text, "must read field=low:high or field=one|other")
    if "|" in rest:
        choices = tuple(_toml(choice) for choice in rest.split("|"))
        return Knob(field, choices=choices)
    low_text, _, high_text = rest.partition(":")
    high_text, _, scale = high_text.partition(":")
    low, high = _number(low_text), _number(high_text)
    if low is None or high is None or scale not in ("", "log"):
        return _bad_knob(text, "must read field=low:high, field=low:high:log or field=one|other")
    if low >= high:
        return _bad_knob(text, "low must be below high")
    if scale and low <= 0:
        return _bad_knob(text, "a logarithmic scale starts above 0")
    now = _now(scenario, field)
    # a field that is not set does not tell whether it takes fractions; the way it is written does
    written_whole = low.is_integer() and high.is_integer() and "." not in rest
    whole = isinstance(now, int) or (now is None and written_whole)
    if whole and not (low.is_integer() and high.is_integer()):
        return _bad_knob(text, "this field takes whole numbers")
    return Knob(field, low, high, whole, bool(scale))


def _bad_knob(text: str, rule: str) -> Problem:
    return problem("over", text, rule, "write worker.keepalive=5:600, say")


def _unknown(path: str, text: str, name: str) -> Problem:
    return problem(path, text, f"there is no statistic '{name}'", nearest(name, UNITS))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _toml(text: str) -> Any:
    """A value of a choice; a bare word is a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def _now(scenario: Scenario, field: str) -> Any:
    """The field's present value; None when it is not set or there is none."""
    node: Any = scenario.model_dump(mode="json")
    for key in field.split("."):
        if isinstance(node, dict):
            node = node.get(key)
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node
