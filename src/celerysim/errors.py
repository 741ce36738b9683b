"""The errors a user can cause. Each message names what is wrong and what to do."""

from __future__ import annotations

from dataclasses import dataclass


class CelerysimError(Exception):
    """Base of every error that input, not a defect, has caused."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a scenario: where, what was found, the rule it breaks, the remedy."""

    path: str
    value: str
    rule: str
    remedy: str

    def __str__(self) -> str:
        """One line: path, value, rule and remedy."""
        return f"{self.path} = {self.value}: {self.rule}. Remedy: {self.remedy}."


class ScenarioError(CelerysimError):
    """A scenario cannot be used; ``problems`` holds everything wrong with it at once."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n  ".join([f"{source}: {count}", *map(str, problems)]))


class LogError(CelerysimError):
    """A worker log cannot be used; the message names the file, the problem and the remedy."""
