"""A finding: one thing a log shows, in plain words and in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """What was found; ``remedy`` is empty where none follows from Celery's rules."""

    name: str
    text: str
    numbers: dict[str, Any]  #: what the text rests on, under names that carry their unit
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        """The finding as plain values."""
        remedy = self.remedy or None
        return {"name": self.name, "text": self.text, "numbers": self.numbers, "remedy": remedy}


def times(count: int) -> str:
    """``once``, ``twice``, ``7 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def seconds(value: float) -> str:
    """A duration for people: ``5 ms``, ``1.70 s``, ``30.0 s``, ``12 min``, ``3.5 h``."""
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 10:
        return f"{value:.2f} s"
    if value < 600:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def percent(share: float) -> str:
    """A share as whole per cent, which never claims all or nothing wrongly."""
    if 0 < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1:
        return "over 99 %"
    return f"{share * 100:.0f} %"


def several(count: int, noun: str) -> str:
    """``1 task``, ``3 tasks``, ``2 children``."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural(noun)}"


def plural(noun: str) -> str:
    """``tasks``, ``processes``, ``children``."""
    if noun == "child":
        return "children"
    return noun + ("es" if noun.endswith("s") else "s")


def time_unit(duration_s: float) -> tuple[float, str]:
    """What to count a duration in: seconds of one unit, and its name."""
    if duration_s < 600:
        return 1.0, "seconds"
    return (60.0, "minutes") if duration_s < 3 * 3600 else (3600.0, "hours")
