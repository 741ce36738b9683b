"""When children of a log were forked and killed, inferred from what a log does show.

A worker log at INFO shows neither. It shows when each child finished tasks, the
"Scaling" lines, and that the pool numbers its children in the order of their
forks. So:

- the initial pool is forked with the worker's start;
- a "Scaling up n" forks the next n numbers, as long as the log does not show
  one of them at work before it; a number that it shows earlier replaced a child
  that had left by itself (a limit, a crash) and is born with its first task;
- a "Scaling down n" kills the n oldest children that are never seen again
  (billiard walks the pool oldest first and skips active children);
- a child that had left by itself is the one last seen before its replacement.

Where the log says it ("exited with", simulated runs), that counts. With several
workers in one log, "Scaling" lines tell of no child: a life is then what was
seen of it, or lasts to the end if nothing was ever scaled down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from celerysim.history import Floats, History, Level, Table
from celerysim.inspection.incidents import READY
from celerysim.inspection.reading import ObservedTrace
from celerysim.trace import Trace

#: Stamps of child and supervisor at one instant differ by this much (seconds).
_TIE_S = 0.002
#: A child that has exited is replaced, and its replacement has begun a task, within this time.
_REPLACED_S = 10.0


@dataclass(frozen=True)
class Lives:
    """The children of a history, each with its birth and death."""

    children: Table  #: as :attr:`History.children`; ``exited`` NaN: alive at the end
    rows: NDArray[np.int64]  #: for each task, its child's row; -1: none
    killed: dict[int, tuple[int, ...]]  #: row of a scale-down to the numbers it killed
    inferred: bool


def lives(history: History) -> Lives:
    """The children of ``history`` with ``forked`` and ``exited`` filled in, as far as known."""
    children = history.children.copy()
    groups = list(_groups(children["number"]))
    rows = _task_rows(history, groups)
    if not isinstance(history, Trace) or not np.isnan(children["forked"]).any():
        return Lives(children, rows, {}, False)  # known, or inferred before
    seen = np.clip(_seen(history, rows), history.start, history.end)  # a damaged runtime is far off
    killed: dict[int, tuple[int, ...]] = {}
    if len(history.workers) > 1:
        _as_seen(history, children, seen)
        return Lives(children, rows, {}, True)
    begins = _begins(history, groups, seen)
    for group, begin, end in zip(groups, begins, [*begins[1:], np.inf], strict=True):
        events = np.flatnonzero(
            (history.scale_events["time"] >= begin) & (history.scale_events["time"] < end)
        )
        part = _Group(history, children[group], seen[group], events, max(begin, history.start))
        part.follow()
        killed |= part.killed
        if end < np.inf:  # a restart ends them all
            alive = np.isnan(part.children["exited"])
            part.children["exited"][alive] = np.maximum(end, part.children["forked"][alive])
        children[group] = part.children
    return Lives(children, rows, killed, True)


class _Group:
    """The children of one life of one worker, oldest first."""

    def __init__(
        self,
        history: History,
        children: Table,
        seen: Floats,
        events: NDArray[np.int64],
        begin: float,
    ) -> None:
        self.children = children
        self.killed: dict[int, tuple[int, ...]] = {}
        self._scale = history.scale_events
        self._events = events
        self._begin = begin
        self._last = np.where(np.isnan(seen[:, 1]), -np.inf, seen[:, 1])
        # A child is forked before any of its own, and of later numbers, is seen at work.
        first = np.where(np.isnan(seen[:, 0]), np.inf, seen[:, 0])
        self._latest = np.minimum.accumulate(first[::-1])[::-1]
        self._initial = _initial(history) if len(children) and children["number"][0] == 1 else 0
        self._replacements: list[int] = []

    def follow(self) -> None:
        """Fill in births, then deaths."""
        self._births()
        self._deaths()

    def _births(self) -> None:
        times, changes = self._scale["time"][self._events], self._scale["change"][self._events]
        slots = iter(np.repeat(times, np.maximum(changes, 0)).tolist())
        slot = next(slots, np.inf)
        born = self.children["forked"]
        for i in range(len(born)):
            if i < self._initial:
                born[i] = self._begin
            elif slot <= self._latest[i] + _TIE_S:
                born[i] = slot
                slot = next(slots, np.inf)
            else:
                born[i] = self._latest[i]
                self._replacements.append(i)

    def _deaths(self) -> None:
        """Walk through time, keeping the list of those alive, oldest first."""
        born, gone = self.children["forked"], self.children["exited"]
        scale = self._scale
        downs = [e for e in self._events.tolist() if scale["change"][e] < 0]
        agenda = [(float(born[i]), False, i) for i in self._replacements]
        agenda += [(float(scale["time"][event]), True, event) for event in downs]
        exits = deque(np.sort(gone[~np.isnan(gone)]).tolist())
        alive: list[int] = []
        coming = 0
        for time, is_shrink, which in sorted(agenda):
            while coming < len(born) and born[coming] <= time + _TIE_S:
                alive.append(coming)
                coming += 1
            youngest = len(born) if is_shrink else which
            alive = [i for i in alive if np.isnan(gone[i]) or gone[i] > time]
            idle = [
                i
                for i in alive
                if i < youngest and np.isnan(gone[i]) and self._last[i] <= time + _TIE_S
            ]
            if is_shrink:
                chosen = idle[: -int(scale["change"][which])]
                gone[chosen] = time
                self.killed[which] = tuple(self.children["number"][chosen].tolist())
            elif idle and not _is_explained(time, exits):
                left = max(idle, key=lambda i: self._last[i])
                gone[left] = max(self._last[left], born[left])


def _is_explained(time: float, exits: deque[float]) -> bool:
    """Whether a child known to have exited is what a replacement at ``time`` replaced."""
    while exits and exits[0] < time - _REPLACED_S:
        exits.popleft()
    if exits and exits[0] <= time + _TIE_S:
        exits.popleft()
        return True
    return False


def _initial(history: History) -> int:
    """The size of the pool at the worker's start; 0 if the log does not show the start."""
    if not len(history.level(Level.RESERVED)[0]):
        return 0
    settings = history.settings
    if settings.get("autoscale"):
        return int(settings["autoscale"][1])
    return int(settings.get("concurrency", 0))


def _groups(numbers: NDArray[np.int32]) -> Iterator[slice]:
    """Runs of ascending numbers: each is a life of a worker."""
    if len(numbers):
        cuts = [0, *(np.flatnonzero(np.diff(numbers) <= 0) + 1).tolist(), len(numbers)]
        yield from (slice(a, b) for a, b in pairwise(cuts))


def _task_rows(history: History, groups: list[slice]) -> NDArray[np.int64]:
    """For each task the row of its child."""
    tasks = history.tasks
    rows = np.full(len(tasks), -1, dtype=np.int64)
    if not groups or (isinstance(history, Trace) and len(history.workers) > 1):
        return rows
    ran = np.flatnonzero(tasks["child"] > 0)
    when = np.nan_to_num(tasks["finished"][ran], nan=np.inf)
    ends = [np.inf] * len(groups)
    if isinstance(history, Trace) and len(groups) > 1:
        seen = history.children_seen[:, 1]
        last = [np.fmax.reduce(seen[group], initial=-np.inf) for group in groups]
        ends = [*np.maximum.accumulate(last)[:-1].tolist(), np.inf]
    begin = -np.inf
    for group, end in zip(groups, ends, strict=True):
        numbers = history.children["number"][group]
        chosen = ran[(when > begin) & (when <= end)]
        place = np.searchsorted(numbers, tasks["child"][chosen])
        fits = place < len(numbers)
        fits[fits] = numbers[place[fits]] == tasks["child"][chosen][fits]
        rows[chosen[fits]] = group.start + place[fits]
        begin = end
    return rows


def _seen(history: Trace, rows: NDArray[np.int64]) -> Floats:
    """First and last time each child was seen or at work."""
    seen = history.children_seen.copy()
    known = (rows >= 0) & ~np.isnan(history.tasks["started"])
    np.fmin.at(seen[:, 0], rows[known], history.tasks["started"][known])
    return seen


def _begins(history: Trace, groups: list[slice], seen: Floats) -> list[float]:
    """When each life began: at a "ready." line between the groups, else when first seen."""
    incidents = history.incidents if isinstance(history, ObservedTrace) else ()
    ready = [incident.time for incident in incidents if incident.kind == READY]
    begins = [-np.inf]
    for before, group in pairwise(groups):
        last = float(np.fmax.reduce(seen[before, 1], initial=begins[-1]))
        first = float(np.fmin.reduce(seen[group, 0], initial=np.inf))
        first = first if np.isfinite(first) else last
        begins.append(max((t for t in ready if last - 1.0 <= t <= first + 1.0), default=first))
    return begins


def _as_seen(history: History, children: Table, seen: Floats) -> None:
    unknown = np.isnan(children["forked"])
    children["forked"][unknown] = np.where(np.isnan(seen[:, 0]), history.start, seen[:, 0])[unknown]
    if np.any(history.scale_events["change"] < 0):
        unknown = np.isnan(children["exited"]) & ~np.isnan(seen[:, 1])
        children["exited"][unknown] = seen[unknown, 1]
