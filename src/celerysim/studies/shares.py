"""From which share of CPU on is which pool ahead? Each task keeps its total duration.

The steps stay; those that compute are stretched or shrunk alike until they make up
the wanted share of the profile's mean duration, and so are those that wait. A
profile without a step of one sort gets one at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import inf
from typing import Any

from celerysim.errors import CelerysimError
from celerysim.scenario import Scenario, make_scenario
from celerysim.scenario.schema import Profile
from celerysim.studies.memory import Memory
from celerysim.studies.pools import POOLS, SIZES, PoolResult, pools
from celerysim.studies.runs import Progress

#: Two pools are level within this share of the better figure.
LEVEL = 0.02
#: The published rule of thumb: above this share of CPU choose prefork.
RULE_OF_THUMB = (0.10, 0.15)
#: Figures of which more is better; of the others, less.
_MORE_IS_BETTER = ("throughput_per_s", "throughput_per_core", "tasks")
_MOST_SHARES = 1000


@dataclass(frozen=True)
class Crossing:
    """Between two neighbouring shares of CPU the leader changes."""

    size: int
    pools: tuple[str, str]
    before: str | None  #: who leads below ``low``; None: they are level
    after: str | None  #: who leads from ``high`` on
    low: float
    high: float

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "size": self.size,
            "pools": list(self.pools),
            "before": self.before,
            "after": self.after,
            "between": [self.low, self.high],
        }


@dataclass(frozen=True)
class ShareSweep:
    """All pools at all shares, and where the leader changes."""

    compare: str  #: the figure by which they are compared
    shares: tuple[float, ...]
    results: tuple[tuple[PoolResult, ...], ...]  #: for each share, as :func:`pools` gives them

    @property
    def leaders(self) -> dict[tuple[int, tuple[str, str]], tuple[str | None, ...]]:
        """For each size and pair of pools, who leads at each share (None: they are level)."""
        found = {}
        first = self.results[0]
        for a, b in combinations(range(len(first)), 2):
            if first[a].size == first[b].size:
                pair = (first[a].pool, first[b].pool)
                found[first[a].size, pair] = tuple(
                    _leader(row[a], row[b], self.compare) for row in self.results
                )
        return found

    @property
    def crossings(self) -> tuple[Crossing, ...]:
        """Where the leader changes."""
        return tuple(
            Crossing(size, pair, before, after, low, high)
            for (size, pair), leaders in self.leaders.items()
            for (low, before), (high, after) in pairwise(zip(self.shares, leaders, strict=True))
            if before != after
        )

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "compare": self.compare,
            "rule_of_thumb": list(RULE_OF_THUMB),
            "crossings": [crossing.as_json() for crossing in self.crossings],
            "leaders": [
                {"size": size, "pools": list(pair), "leaders": list(leaders)}
                for (size, pair), leaders in self.leaders.items()
            ],
            "shares": [
                {"cpu_share": share, "pools": [result.as_json() for result in row]}
                for share, row in zip(self.shares, self.results, strict=True)
            ],
        }


def share_sweep(
    scenario: Scenario,
    shares: Sequence[float],
    *,
    pools_: Sequence[str] = POOLS,
    sizes: Sequence[int] = SIZES,
    compare: str = "throughput_per_s",
    replications: int = 1,
    memory: Memory | None = None,
    progress: Progress = lambda done, total: None,
) -> ShareSweep:
    """Simulate the pools at each share of CPU, and find where the leader changes.

    Raises:
        CelerysimError: a share is not within 0 and 1, the scenario's tasks are a
            trace, or ``compare`` is no figure; and as :func:`~celerysim.studies.pools.pools`.
    """
    rows = []
    for place, share in enumerate(shares):
        rows.append(
            tuple(
                pools(
                    with_share(scenario, share),
                    pools=pools_,
                    sizes=sizes,
                    replications=replications,
                    memory=memory,
                    progress=lambda done, total, place=place: progress(  # type: ignore[misc]
                        place * total + done, len(shares) * total
                    ),
                )
            )
        )
        rows[-1][0].figure(compare)  # an unknown figure is told after the first, not the last
    return ShareSweep(compare, tuple(shares), tuple(rows))


def with_share(scenario: Scenario, share: float) -> Scenario:
    """``scenario`` with ``share`` of every profile's mean duration spent computing."""
    if not 0.0 <= share <= 1.0:
        raise CelerysimError(f"{share:g} is no share of CPU. Remedy: give 0 to 1.")
    if scenario.tasks.trace:
        raise CelerysimError(
            "the tasks' seconds are a trace, task by task; their share of CPU cannot be varied. "
            "Remedy: remove tasks.trace."
        )
    data = scenario.model_dump(mode="json", exclude_none=True)
    for name, profile in scenario.tasks.profiles.items():
        data["tasks"]["profiles"][name]["steps"] = _steps(profile, share)
    return make_scenario(data)


def shares_of(text: str) -> tuple[float, ...]:
    """``0:1:0.05`` (from, to, step) as numbers, the last one included.

    Raises:
        CelerysimError: the text says something else.
    """
    try:
        low, high, step = (float(part) for part in text.split(":"))
        count = round((high - low) / step) if 0 < step < inf else -1
    except (ValueError, OverflowError):
        count = -1
    if not 0 <= count <= _MOST_SHARES or not 0 <= low <= high <= 1:
        raise CelerysimError(
            f"'{text}' is no range of shares. Remedy: write from:to:step within 0 and 1, such as "
            "0:1:0.05."
        )
    found = (round(low + i * step, 9) for i in range(count + 1))
    return tuple(share for share in found if share <= high)


def _steps(profile: Profile, share: float) -> list[dict[str, Any]]:
    cpu_s = sum(step.seconds.expectation for step in profile.steps if step.is_cpu)
    wait_s = sum(step.seconds.expectation for step in profile.steps if not step.is_cpu)
    total_s = cpu_s + wait_s
    steps = []
    for step in profile.steps:
        have, want = (cpu_s, share) if step.is_cpu else (wait_s, 1.0 - share)
        factor = want * total_s / have if have else 0.0
        ((key, seconds),) = step.model_dump(mode="json", exclude_none=True).items()
        steps.append({key: _stretched(seconds, factor) if factor else 0})
    if share and not cpu_s:
        steps.append({"cpu_s": share * total_s})
    if share < 1.0 and not wait_s:
        steps.append({"io_s": (1.0 - share) * total_s})
    return steps


def _stretched(seconds: Any, factor: float) -> Any:
    """A dumped distribution, all its seconds multiplied."""
    if isinstance(seconds, dict):
        return {k: v if k == "kind" else _stretched(v, factor) for k, v in seconds.items()}
    if isinstance(seconds, list):
        return [value * factor for value in seconds]
    return seconds * factor


def _leader(a: PoolResult, b: PoolResult, compare: str) -> str | None:
    """The better of two pools; None if they are level or nothing is known."""
    x, y = a.figure(compare), b.figure(compare)
    if x is None or y is None or abs(x - y) <= LEVEL * max(abs(x), abs(y)):
        return None
    return a.pool if (x > y) == (compare in _MORE_IS_BETTER) else b.pool
