"""The tasks' own content: which profile each task is, and how long its steps take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, repeat
from typing import NamedTuple

import numpy as np

from celerysim.engine.streams import BLOCK, Streams
from celerysim.scenario.schema import Aftermath, Scenario, StepKind


class Kind(NamedTuple):
    """What all tasks of one profile share."""

    name: str
    steps: tuple[StepKind, ...]
    rss_growth_kib: float
    first_in_child_cpu_s: float = 0.0
    aftermath: Aftermath | None = None


def kinds(scenario: Scenario) -> tuple[Kind, ...]:
    """The profiles of a scenario, in the file's order."""
    return tuple(
        Kind(
            name,
            tuple(step.kind for step in profile.steps),
            profile.rss_growth_kib,
            profile.first_in_child_cpu_s,
            profile.aftermath,
        )
        for name, profile in scenario.tasks.profiles.items()
    )


def draws(scenario: Scenario, streams: Streams) -> Iterator[Iterable[float]]:
    """Blocks of each task's own number in [0, 1), which decides whether it is a slow one."""
    if any(profile.aftermath is not None for profile in scenario.tasks.profiles.values()):
        return (streams.uniform("aftermath", block).tolist() for block in count())
    return repeat([0.0] * BLOCK)


def work(
    scenario: Scenario, streams: Streams
) -> Iterator[tuple[list[int], Iterable[tuple[float, ...]]]]:
    """Blocks of tasks: for each task the index of its profile and the seconds of its steps.

    The rows of seconds are at least as long as the profile; places beyond a
    profile's own steps are zero.
    """
    profiles = list(scenario.tasks.profiles.values())
    order = {name: i for i, name in enumerate(scenario.tasks.profiles)}
    weights = np.cumsum([profile.weight for profile in profiles])
    longest = max(len(profile.steps) for profile in profiles)
    block = 0
    trace = scenario.tasks.trace
    while trace:
        rows = [trace[i % len(trace)] for i in range(block * BLOCK, (block + 1) * BLOCK)]
        yield [order[name] for name, _ in rows], [seconds for _, seconds in rows]
        block += 1
    while True:
        if scenario.tasks.pattern:
            pattern = np.array([order[name] for name in scenario.tasks.pattern])
            chosen = pattern[np.arange(block * BLOCK, (block + 1) * BLOCK) % len(pattern)]
        elif len(profiles) == 1:
            chosen = np.zeros(BLOCK, dtype=np.intp)
        else:
            u = streams.uniform("mix", block) * weights[-1]
            chosen = np.minimum(np.searchsorted(weights, u, side="right"), len(profiles) - 1)
        seconds = np.zeros((BLOCK, longest))
        for place in range(longest):
            u = streams.uniform(f"step {place}", block)
            for i, profile in enumerate(profiles):
                if place < len(profile.steps):
                    mine = chosen == i
                    seconds[mine, place] = profile.steps[place].seconds.ppf(u[mine])
        yield chosen.tolist(), zip(*(column.tolist() for column in seconds.T), strict=True)
        block += 1
