"""What the supervisor's own work costs, as far as a log's stamps show it.

A log has whole milliseconds, so only what is long or repeated can be seen: the
fork, which holds up the next message of a burst; the time a message takes, which
spaces the messages that waited behind a fork; and, while a prefetch window of late
acknowledgements is full, the way from a result to the message it lets in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from celerysim.calibrate.arrivals import Arrivals
from celerysim.history import Floats, History
from celerysim.scenario.costs import Costs

#: A scale-up held up the next message by a fork if it came within this (seconds).
_FORK_S = (0.005, 0.3)
#: Messages of one burst are no further apart than this (seconds).
_BURST_S = 0.004
_LEAST_SPACINGS = 10
#: A held-back message comes within this time of the result that lets it in (seconds).
_LET_IN_S = 0.01
_LEAST_LET_IN = 50


class Cost(NamedTuple):
    """A cost and what it rests on."""

    seconds: float
    samples: int
    spread_s: float  #: median distance from it


@dataclass(frozen=True)
class FittedCosts:
    """The costs a log shows; the others keep the measured defaults."""

    fork: Cost | None
    receive: Cost | None
    child_start: Cost | None
    deliver: Cost | None

    @property
    def named(self) -> dict[str, Cost | None]:
        """Under the scenario's names."""
        return {
            "fork_s": self.fork,
            "receive_s": self.receive,
            "child_start_s": self.child_start,
            "deliver_s": self.deliver,
        }

    def table(self) -> dict[str, float]:
        """As in a scenario file."""
        return {key: round(cost.seconds, 6) for key, cost in self.named.items() if cost is not None}


def fit_costs(histories: list[History], arrivals: list[Arrivals], late: bool) -> FittedCosts:
    """The costs that the logs show together; ``late``: acknowledgements surely are."""
    forks, spacings, starts = [], [], []
    for history in histories:
        received = np.sort(history.tasks["received"][~np.isnan(history.tasks["received"])])
        behind = _behind_forks(history, received)
        forks += [gap / change for _, change, gap in behind]
        for place, *_ in behind:
            burst = received[place:]
            far = np.flatnonzero(np.diff(burst) > _BURST_S)
            length = int(far[0]) if len(far) else len(burst) - 1
            spacings += np.diff(burst[: length + 1]).tolist()
        starts += _child_starts(history, received, behind)
    receive = _cost(spacings, np.mean) if len(spacings) >= _LEAST_SPACINGS else None
    fork = _cost(forks, _shortest)  # the others had to share the cores
    child_start = _cost(starts, np.median) if len(starts) >= 3 else None
    let_in = [gap for h, a in zip(histories, arrivals, strict=True) for gap in _let_in(h, a)]
    deliver = _cost(let_in, np.mean) if late and len(let_in) >= _LEAST_LET_IN else None
    return FittedCosts(fork, receive, child_start, deliver)


def _shortest(gaps: list[float]) -> float:
    return float(np.quantile(gaps, 0.1))


def _let_in(history: History, arrivals: Arrivals) -> list[float]:
    """Seconds a message took to the worker after a result had made room for it.

    "succeeded" to "received", less the child's report, the supervisor's handling of
    the result and of the message (the defaults).
    """
    received = history.tasks["received"][arrivals.rows][arrivals.held & ~arrivals.blocked]
    finished = np.sort(history.tasks["finished"][~np.isnan(history.tasks["finished"])])
    before = np.searchsorted(finished, received, side="right")
    gaps = (received - finished[np.maximum(before - 1, 0)])[before > 0]
    costs = Costs()
    known = costs.child_report_s + costs.result_s + costs.receive_s
    return [max(gap - known, 0.0) for gap in gaps.tolist() if gap < _LET_IN_S]


def _behind_forks(history: History, received: Floats) -> list[tuple[int, int, float]]:
    """(place of the message, processes added, gap) for messages that waited for a fork."""
    found = []
    for time, change, place in history.scale_events[["time", "change", "received"]].tolist():
        if change <= 0 or place >= len(received) or place < 1:
            continue
        gap = float(received[place]) - time
        shrunk = history.scale_events["time"][history.scale_events["change"] < 0]
        just_shrunk = bool(np.any((shrunk <= time) & (shrunk > time - 0.5)))
        per_fork = gap / change
        if _FORK_S[0] <= per_fork and gap <= _FORK_S[1] and not just_shrunk:
            # a message that was not waiting comes when it comes: believe only bursts
            near = place + 1 < len(received) and received[place + 1] - received[place] < _BURST_S
            before = time - received[place - 1] < _BURST_S
            burst = place >= 2 and received[place - 1] - received[place - 2] < _BURST_S
            if before and (near or burst):
                found.append((place, change, gap))
    return found


def _child_starts(
    history: History,
    received: Floats,
    behind: list[tuple[int, int, float]],
) -> list[float]:
    """Seconds from a fork's end to the new child's first task, which had waited for it.

    The forks at "ready" do not count: the loop's first turn holds everything up then.
    """
    tasks = history.tasks
    begun: dict[int, float] = {}
    for child, started in zip(tasks["child"].tolist(), tasks["started"].tolist(), strict=True):
        if child > 0 and started == started:
            begun[child] = min(started, begun.get(child, np.inf))
    found = []
    for place, change, _ in behind:
        done = float(received[place])
        if change == 1 and done > 1.0:
            after = [time - done for time in begun.values() if -0.002 < time - done < 0.5]
            found += after[:1]
    costs = Costs()
    return [max(wait - costs.child_accept_s, 0.0) for wait in found]


def _cost(values: list[float], centre: Callable[[list[float]], Any]) -> Cost | None:
    if not values:
        return None
    middle = float(centre(values))
    return Cost(middle, len(values), float(np.median(np.abs(np.array(values) - middle))))
