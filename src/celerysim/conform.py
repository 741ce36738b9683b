"""Is this log possible for a Celery worker as modelled?

The log's received and finished times are taken as given. What it does not tell
is left open, and every way it may have been is followed:

- a result is read by the supervisor at some time within :attr:`Limits.tie_s`
  after the child logged it, or later while the supervisor is held up by forking
  and reaping around a scale event;
- the keepalive timer's phase lies within what "ready" allows, and each run of
  it may be late, which shifts all later runs;
- with a prefetch window that the log shows to be full, a message cannot be
  received before an earlier result was read;
- stamps are whole milliseconds, so an age within :attr:`Limits.stamp_s` of the
  keepalive may count as passed or not.

The log is accepted when some order explains every "Scaling" line, direction,
size and time, and no line is missing. All orders advance together as a set of
distinct states (only the number of results read matters, not which), so the
cost is bounded. When the set runs empty, the first line that no order explains
is named with the state before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from celerysim.engine.autoscaler import CeleryAutoscaler, ScaleState
from celerysim.errors import LogError
from celerysim.history import History, Outcome
from celerysim.replay import DEFAULT_KEEPALIVE_S


@dataclass(frozen=True)
class Limits:
    """How far a log may leave things open; seconds."""

    tie_s: float = 0.002  #: from a "succeeded" line to the supervisor having read the result
    line_s: float = 0.010  #: from what causes a "Scaling" line to its stamp
    stamp_s: float = 0.002  #: two stamps of whole milliseconds, and the work between them
    ready_s: float = 0.050  #: the timer starts this much before or after the "ready" line
    late_s: float = 0.005  #: a run of the timer on a worker that has nothing else to do
    held_up_s: float = 0.300  #: the supervisor forks and reaps this long around scale events


class _State(NamedTuple):
    """Where the worker may be, between two lines of the log."""

    processes: int
    read: int  #: results the supervisor has read, the oldest first
    last_scale_up: float | None
    timer_from: float  #: the timer's next run is due between these
    timer_to: float


class _Line(NamedTuple):
    """A line of the supervisor: a message received (change 0) or a scale event."""

    time: float
    change: int


@dataclass(frozen=True)
class Verdict:
    """Whether a log is possible."""

    file: str
    accepted: bool
    scale_lines: int
    ambiguous: int  #: lines before which more than one state was possible
    first_violation: dict[str, Any] | None  #: the line no order explains, and the states before it

    def as_json(self) -> dict[str, Any]:
        """The verdict as plain values."""
        return {
            "file": self.file,
            "accepted": self.accepted,
            "scale_lines": self.scale_lines,
            "ambiguous": self.ambiguous,
            "first_violation": self.first_violation,
        }


def conform(
    history: History,
    *,
    source: str = "",
    keepalive: float = DEFAULT_KEEPALIVE_S,
    limits: Limits | None = None,
) -> Verdict:
    """Decide whether ``history`` (a worker log) is possible for Celery's autoscaler.

    Raises:
        LogError: the log does not show how the worker was scaled.
    """
    autoscale = history.settings.get("autoscale")
    if not autoscale:
        raise LogError(
            f'{source or "the log"}: no banner with "concurrency: {{min=..., max=...}}" was '
            "found, so there is no autoscaler to check. Remedy: give a log that begins with the "
            "start of a worker run with --autoscale."
        )
    policy = CeleryAutoscaler(autoscale[0], autoscale[1], keepalive)
    return _Search(history, policy, limits or Limits()).run(source)


class _Search:
    """The set of states a log allows, line by line."""

    def __init__(self, history: History, policy: CeleryAutoscaler, limits: Limits) -> None:
        self._policy = policy
        self._limits = limits
        self._lines = list(_lines(history))
        tasks = history.tasks
        finished = tasks["finished"]
        done = ~np.isnan(finished) & ~np.isnan(tasks["received"])
        lost = tasks["outcome"][done] == Outcome.LOST
        order = np.argsort(finished[done], kind="stable")
        self._finished: list[float] = finished[done][order].tolist()
        # a lost task's line is written by the supervisor itself: it knows at once
        self._own: list[bool] = lost[order].tolist()
        self._changes_at = np.sort(history.scale_events["time"])
        # only how many are read matters, so deadlines may be sorted on their own
        self._deadlines = sorted(
            time if own else time + limits.tie_s + self._held_up(time)
            for time, own in zip(self._finished, self._own, strict=True)
        )
        self._window = window(history, policy.max_concurrency)

    def run(self, source: str) -> Verdict:
        limits, keepalive = self._limits, self._policy.keepalive
        phase = (keepalive - limits.ready_s, keepalive + limits.ready_s + limits.late_s)
        states = {_State(self._policy.min_concurrency, 0, None, *phase)}
        received = ambiguous = 0
        previous = -np.inf
        skip = False
        for number, line in enumerate(self._lines):
            if skip:  # explained together with the message before it
                skip = False
                continue
            before = states
            states = _merged(self._timer_in_silence(states, received, previous, line.time))
            if line.change:
                states = set(self._timer_scales(states, received, line))
                explained = 1
            else:
                received += 1
                follower = self._lines[number + 1] if number + 1 < len(self._lines) else None
                scaled, silent = self._message(states, received, line, follower)
                if scaled and follower is not None:
                    # the line right behind belongs to the message in some orders, to the timer in
                    # others: bring those behind it as well
                    later = self._timer_in_silence(silent, received, line.time, follower.time)
                    scaled |= set(self._timer_scales(later, received, follower))
                states, skip = (scaled, True) if scaled else (silent, False)
                explained = 1 + skip
            if not states:
                return Verdict(
                    source, False, self._scale_lines(), ambiguous,
                    self._violation(number, line, before, received),
                )  # fmt: skip
            ambiguous += len({(s.processes, s.read) for s in states}) > 1
            previous = self._lines[number + explained - 1].time
        return Verdict(source, True, self._scale_lines(), ambiguous, None)

    # one line

    def _message(
        self, states: Iterable[_State], received: int, line: _Line, follower: _Line | None
    ) -> tuple[set[_State], set[_State]]:
        """The states after a message: those whose decision is the line behind it, and the others.

        A decision to scale without a line behind it is impossible.
        """
        near = follower is not None and follower.change and self._near(follower.time, line.time)
        scaled: set[_State] = set()
        silent: set[_State] = set()
        for state in states:
            for read in self._read_by(state, line.time):
                reserved = received - read
                if self._window and reserved > self._window:
                    continue  # the broker would not have delivered it yet
                for change in self._changes(state, reserved, line.time):
                    if change == 0:
                        silent.add(state._replace(read=read))
                    elif near and follower is not None and change == follower.change:
                        scaled.add(self._after(state._replace(read=read), change, follower.time))
        return scaled, silent

    def _timer_scales(
        self, states: Iterable[_State], received: int, line: _Line
    ) -> Iterator[_State]:
        """The states in which the timer, running now, decides what the line says."""
        limits = self._limits
        for state in states:
            if state.timer_from - limits.line_s > line.time:
                continue
            if self._latest(state) + limits.line_s < line.time:
                continue
            for read in self._read_by(state, line.time):
                if line.change in self._changes(state, received - read, line.time):
                    after = self._after(state._replace(read=read), line.change, line.time)
                    yield self._rearmed(after, line.time, line.time)

    def _timer_in_silence(
        self, states: Iterable[_State], received: int, previous: float, now: float
    ) -> Iterator[_State]:
        """The states at ``now``: the timer may have run since the line before without scaling."""
        pending = list(states)
        while pending:
            state = pending.pop()
            latest = self._latest(state)
            if state.timer_from <= now:
                begin, end = max(state.timer_from, previous), min(latest, now)
                if begin <= end:
                    for read in self._read_between(state, begin, end):
                        if self._can_be_silent(state, received - read, begin, end):
                            after = state._replace(read=max(read, state.read))
                            pending.append(self._rearmed(after, begin, end))
            if latest >= now:  # it need not have run yet
                yield state

    # what is open

    def _changes(self, state: _State, reserved: int, now: float) -> set[int]:
        """What the autoscaler may decide, given how exactly stamps tell an age."""
        view = ScaleState(state.processes, reserved, state.last_scale_up)
        step = self._limits.stamp_s
        return {self._policy(view, now + shift).change for shift in (-step, 0.0, step)}

    def _can_be_silent(self, state: _State, reserved: int, begin: float, end: float) -> bool:
        return 0 in self._changes(state, reserved, begin) | self._changes(state, reserved, end)

    def _read_by(self, state: _State, now: float) -> range:
        """How many results may have been read at ``now``."""
        return self._read_between(state, now, now)

    def _read_between(self, state: _State, begin: float, end: float) -> range:
        must = int(np.searchsorted(self._deadlines, begin, side="left"))
        may = int(np.searchsorted(self._finished, end + 0.001, side="left"))
        return range(max(must, state.read), max(may, must, state.read) + 1)

    def _near(self, later: float, earlier: float) -> bool:
        return -0.001 <= later - earlier <= self._limits.line_s

    def _latest(self, state: _State) -> float:
        """When the timer will have run, at the latest: it waits while the supervisor is held up."""
        return state.timer_to + self._held_up(state.timer_to)

    def _held_up(self, time: float) -> float:
        """How much longer something due at ``time`` may wait for forks and reaps around it."""
        held_up_s = self._limits.held_up_s
        first, last = np.searchsorted(self._changes_at, [time - held_up_s, time + 0.002])
        return held_up_s if first < last else 0.0

    def _after(self, state: _State, change: int, time: float) -> _State:
        """The state after scaling; scaling up moves the time stamp."""
        last = time if change > 0 else state.last_scale_up
        return state._replace(processes=state.processes + change, last_scale_up=last)

    def _rearmed(self, state: _State, begin: float, end: float) -> _State:
        """The timer enters itself anew when it is done: relative to its own run, and no earlier."""
        keepalive = self._policy.keepalive
        return state._replace(
            timer_from=begin + keepalive, timer_to=end + keepalive + self._limits.late_s
        )

    # reports

    def _scale_lines(self) -> int:
        return sum(1 for line in self._lines if line.change)

    def _violation(
        self, number: int, line: _Line, before: Iterable[_State], received: int
    ) -> dict[str, Any]:
        states = sorted(before, key=lambda s: (s.processes, s.read))[:5]
        follower = self._lines[number + 1] if number + 1 < len(self._lines) else None
        named = line
        if not line.change and follower is not None and follower.change:
            named = follower  # the message itself is possible; the line behind it is not
        return {
            "time": named.time,
            "line": f"Scaling {'up' if named.change > 0 else 'down'} {abs(named.change)} processes."
            if named.change
            else "a message was received and no Scaling line followed",
            "states_before": [
                {
                    "processes": s.processes,
                    "reserved": [received - n for n in reversed(self._read_by(s, named.time))],
                    "last_scale_up": s.last_scale_up,
                    "timer_due": [s.timer_from, s.timer_to],
                }
                for s in states
            ],
        }


def window(history: History, max_concurrency: int) -> int | None:
    """The prefetch window a log shows to be full, None when it shows none.

    With results counted as soon as they are logged, a full window keeps the
    reserved tasks at one number, reached over and over, and each further message
    comes right after a result. Only a multiple of the pool's maximum can be a window.
    """
    tasks = history.tasks
    received = np.sort(tasks["received"][~np.isnan(tasks["received"])])
    finished = np.sort(tasks["finished"][~np.isnan(tasks["finished"])])
    reserved = np.arange(1, len(received) + 1) - np.searchsorted(finished, received, side="right")
    if not len(reserved):
        return None
    highest = int(reserved.max())
    full = reserved == highest
    before = np.searchsorted(finished, received, side="right") - 1
    since = np.where(before >= 0, received - finished[np.maximum(before, 0)], np.inf)
    pressed = full & (since < 0.02)
    if highest % max_concurrency or np.count_nonzero(pressed) < 20:
        return None
    return highest


def _merged(states: Iterable[_State]) -> set[_State]:
    """States that differ only in timer windows that touch, as one with the window of all."""
    merged: list[_State] = []
    for state in sorted(states, key=lambda s: (s.processes, s.read, s.last_scale_up or 0.0, s[3:])):
        last = merged[-1] if merged else None
        if last and last[:3] == state[:3] and state.timer_from <= last.timer_to:
            merged[-1] = last._replace(timer_to=max(last.timer_to, state.timer_to))
        else:
            merged.append(state)
    return set(merged)


def _lines(history: History) -> Iterator[_Line]:
    """Messages and scale events in the order of the log."""
    received = history.tasks["received"]
    messages = np.sort(received[~np.isnan(received)]).tolist()
    passed = 0
    for time, change, before in history.scale_events[["time", "change", "received"]].tolist():
        for message in messages[passed:before]:
            yield _Line(message, 0)
        passed = max(passed, before)
        yield _Line(time, change)
    for message in messages[passed:]:
        yield _Line(message, 0)
