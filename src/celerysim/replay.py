"""Replaying a worker log: the scale events Celery's rule gives for the log's own task times.

The log's received and finished times are taken as given and run through
:class:`~celerysim.engine.autoscaler.CeleryAutoscaler`, on every message and on
the keepalive timer, whose phase counts from "ready". What comes out is laid
beside the log's "Scaling" lines.

"succeeded" is written by the child, before the supervisor reads the result.
Where the two could be told apart only by guessing, one order is taken: the
supervisor sees a result :data:`RESULT_LAG_S` after it was logged.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from celerysim.engine.autoscaler import CeleryAutoscaler, ScaleState
from celerysim.errors import LogError
from celerysim.history import SCALE_DTYPE, History, Outcome, Table, Trigger, table

#: Seconds from a child's log line to the supervisor having read the result.
RESULT_LAG_S = 0.001
#: Scale events of log and model belong together when no further apart than this (seconds).
TOLERANCE_S = 0.010
#: Celery's default for AUTOSCALE_KEEPALIVE, which no log states.
DEFAULT_KEEPALIVE_S = 30.0


@dataclass(frozen=True)
class Pair:
    """A scale event of the log beside the model's; one of them may be missing."""

    logged: dict[str, Any] | None
    modelled: dict[str, Any] | None

    @property
    def equal(self) -> bool:
        """Same change, at most :data:`TOLERANCE_S` apart."""
        if self.logged is None or self.modelled is None:
            return False
        near = abs(self.logged["time"] - self.modelled["time"]) <= TOLERANCE_S
        return near and bool(self.logged["change"] == self.modelled["change"])


@dataclass(frozen=True)
class Replay:
    """The verdict on one log."""

    pairs: tuple[Pair, ...]
    lost: int  #: tasks the log shows as lost (``WorkerLostError``)

    @property
    def equal(self) -> bool:
        """Whether every scale event of the log is the model's, and none is missing."""
        return all(pair.equal for pair in self.pairs)

    def as_json(self) -> dict[str, Any]:
        """The verdict as plain values."""
        return {
            "equal": self.equal,
            "lost": self.lost,
            "scale_events": [
                {"log": pair.logged, "model": pair.modelled, "equal": pair.equal}
                for pair in self.pairs
            ],
        }

    @property
    def differences(self) -> list[Pair]:
        """The pairs that are not equal."""
        return [pair for pair in self.pairs if not pair.equal]


def replay(history: History, *, keepalive: float = DEFAULT_KEEPALIVE_S) -> Replay:
    """Lay the model's scale events beside those of a log (or of a simulated run).

    Raises:
        LogError: the worker's autoscale setting is not known, or it has no event loop.
    """
    autoscale = history.settings.get("autoscale")
    if not autoscale:
        raise LogError(
            "the log does not say how the worker was scaled: no banner with "
            '"concurrency: {min=..., max=...}" was found. Remedy: give a log that begins with the '
            "worker's start, of a worker run with --autoscale."
        )
    if history.settings.get("pool", "prefork") != "prefork":
        raise LogError(
            f"the worker's pool is {history.settings['pool']}; only prefork has an autoscaler on "
            "the event loop, which is what is replayed. Remedy: give a log of a prefork worker."
        )
    policy = CeleryAutoscaler(autoscale[0], autoscale[1], keepalive)
    modelled = scale_events(history, policy)
    return Replay(
        tuple(_pairs(_rows(history.scale_events), _rows(modelled))), history.count(Outcome.LOST)
    )


def scale_events(history: History, policy: CeleryAutoscaler) -> Table:
    """The scale events that ``policy`` gives for the history's received and finished times."""
    tasks = history.tasks
    received = tasks["received"][~np.isnan(tasks["received"])]
    finished = tasks["finished"][~np.isnan(tasks["finished"])]
    lag = np.where(tasks["outcome"] == Outcome.LOST, 0.0, RESULT_LAG_S)
    lag = lag[~np.isnan(tasks["finished"])]
    timer, message, result = 0, 1, 2
    agenda = [
        *((time, message) for time in received.tolist()),
        *((time, result) for time in (finished + lag).tolist()),
        (policy.keepalive, timer),
    ]
    heapify(agenda)
    state = ScaleState(policy.min_concurrency, 0, None)
    found: list[tuple[float, int, int, int, int, int]] = []
    messages = 0
    while agenda and agenda[0][0] <= history.end:
        time, kind = heappop(agenda)
        processes, reserved, _ = state
        if kind == result:
            state = state._replace(reserved=max(reserved - 1, 0))
            continue
        if kind == message:
            reserved += 1
            messages += 1
        else:
            heappush(agenda, (time + policy.keepalive, timer))
        decision = policy(ScaleState(processes, reserved, state.last_scale_up), time)
        if decision.change:
            trigger = Trigger.MESSAGE if kind == message else Trigger.TIMER
            found.append((time, decision.change, trigger, processes, reserved, messages))
        state = ScaleState(processes + decision.change, reserved, decision.last_scale_up)
    return table(SCALE_DTYPE, found)


def _rows(events: Table) -> list[dict[str, Any]]:
    return [
        {
            "time": time,
            "change": change,
            "trigger": Trigger(trigger).name.lower(),
            "processes": processes,
            "reserved": reserved,
        }
        for time, change, trigger, processes, reserved, _ in events.tolist()
    ]


def _pairs(logged: list[dict[str, Any]], modelled: list[dict[str, Any]]) -> list[Pair]:
    """Both lists in time order, side by side where they agree in change and time."""
    pairs: list[Pair] = []
    i = j = 0
    while i < len(logged) or j < len(modelled):
        left = logged[i] if i < len(logged) else None
        right = modelled[j] if j < len(modelled) else None
        pair = Pair(left, right)
        if not pair.equal and left is not None and right is not None:
            apart = left["time"] - right["time"]
            if abs(apart) > TOLERANCE_S:  # the earlier one stands alone
                pair = Pair(left, None) if apart < 0 else Pair(None, right)
        pairs.append(pair)
        i += pair.logged is not None
        j += pair.modelled is not None
    return pairs
