"""When messages came: what a log tells about it, and the process that fits.

"received" is not when a message was sent. While the prefetch window is full the
broker holds messages back, and each comes right after a result; all the log
tells is that such a message was sent after the one before it and before it was
received. Messages that came with "ready" had waited for the worker.

Processes are tried in this order, on what is not held back: batches (equal
sizes, gaps inside and between clearly apart), a steady rate, a Poisson process
(the gaps' distribution by Lilliefors' test, and no correlation), independent
gaps of another distribution, and else the times themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim.calibrate.shapes import fit_shape
from celerysim.history import Floats, History
from celerysim.scenario.costs import Costs

#: A message that comes within this time of a result, the window full, was held back (seconds).
HELD_S = 0.02
#: Above this share of held-back messages the arrivals cannot be told: the queue is never empty.
SATURATED = 0.5
#: Above this share the gaps between the others no longer show the gaps' distribution.
_TESTABLE = 0.05
#: Messages that come with "ready" had waited; this long before it is when they are taken as sent.
BEFORE_READY_S = 0.05
#: Messages no further apart than this may come as fast as the worker reads them (seconds); the
#: model has the reading's own time, so their spacing is not counted as publishing too.
READING_S = 0.0015
#: Lilliefors' bound (1 %) for exponential distributions, times sqrt(n).
_EXPONENTIAL = 1.308
_FEW = 8
_DIGITS = 6


@dataclass(frozen=True)
class Arrivals:
    """The messages of one log, in the order they came."""

    rows: NDArray[np.intp]  #: the messages' rows in the history's tasks
    earliest: Floats  #: seconds at which each was in the broker, at the earliest
    latest: Floats
    held: NDArray[np.bool_]  #: held back by the prefetch window
    blocked: NDArray[np.bool_]  #: received after the supervisor scaled, and so perhaps late
    waited: int  #: messages that were in the queue when the worker came up
    known: bool  #: the log has the times of sending
    end: float  #: of the log

    @property
    def held_share(self) -> float:
        """Share of messages that were held back."""
        return float(self.held.mean()) if len(self.held) else 0.0


@dataclass(frozen=True)
class Process:
    """The producer of a scenario, and how well it fits."""

    producer: dict[str, Any]
    text: str  #: what was fitted, in one sentence
    residuals: dict[str, float] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()  #: what the log does not tell

    @property
    def kind(self) -> str:
        """``batches``, ``rate``, ``poisson``, ``times``, or ``saturated``."""
        saturated = "queue that never runs dry" in self.text
        return "saturated" if saturated else str(self.producer["kind"])


def read_arrivals(history: History, window: int | None) -> Arrivals:
    """What ``history`` tells about when its messages came; ``window`` is its prefetch window."""
    tasks = history.tasks
    rows = np.flatnonzero(~np.isnan(tasks["received"]))
    known = len(rows) > 0 and float(np.mean(np.isnan(tasks["sent"][rows]))) < 0.1
    sent = np.where(np.isnan(tasks["sent"]), tasks["received"], tasks["sent"])
    rows = rows[np.argsort((sent if known else tasks["received"])[rows], kind="stable")]
    sent, received = sent[rows], tasks["received"][rows]
    scaled = np.sort(history.scale_events["time"])
    blocked = np.searchsorted(scaled, received + 1e-6) > np.searchsorted(scaled, received - 0.15)
    held = np.zeros(len(received), dtype=bool)
    waited = _waited(received, blocked)
    if known:
        return Arrivals(rows, sent, sent, held, blocked & False, 0, True, history.end)
    if window:
        finished = np.sort(tasks["finished"][~np.isnan(tasks["finished"])])
        before = np.searchsorted(finished, received, side="right")
        lately = before - np.searchsorted(finished, received - HELD_S, side="right")
        # reserved before those results were logged and this message came
        reserved = np.arange(len(received)) - before + lately
        held = (reserved >= window) & (lately > 0)
    costs = Costs()
    latest = received - (costs.deliver_s + costs.receive_s)
    latest[:waited] = -BEFORE_READY_S
    earliest = np.where(held, -np.inf, latest)
    earliest = np.maximum.accumulate(np.where(np.isneginf(earliest), -BEFORE_READY_S, earliest))
    return Arrivals(rows, earliest, latest, held, blocked, waited, False, history.end)


def _waited(received: Floats, blocked: NDArray[np.bool_]) -> int:
    """How many messages came in one go with "ready"."""
    if not len(received) or received[0] > 0.02:
        return 0
    gap = np.diff(received) > np.where(blocked[1:], 0.1, 0.005)
    return int(np.argmax(gap)) + 1 if gap.any() else len(received)


def fit_process(logs: list[Arrivals]) -> Process:
    """The process that fits the arrivals of all ``logs``; length and start are the first's."""
    first = logs[0]
    if first.held_share > SATURATED:
        return _saturated(first)
    unknown = []
    if first.held_share > 0.01:
        unknown.append(
            f"{first.held_share:.0%} of the messages were held back by the full prefetch window: "
            "when they were sent is not known (taken: with the message before)"
        )
    for fit in (_batches, _single):
        process = fit(logs)
        if process is not None:
            return Process(
                process.producer, process.text, process.residuals, (*unknown, *process.unknown)
            )
    start = float(min(first.earliest[0], 0.0)) if len(first.earliest) else 0.0
    times = np.round(first.earliest - start, _DIGITS).astype(np.float64)
    return Process(
        {"kind": "times", "start_s": round(start, _DIGITS), "times_s": times.tolist()},
        f"the {len(times)} times of the log: no batches, and gaps that depend on each other",
        {},
        (*unknown, "what rule the arrivals follow"),
    )


def _saturated(log: Arrivals) -> Process:
    supply = 3 * len(log.latest)
    return Process(
        {
            "kind": "batches",
            "batch_size": supply,
            "pause_s": 1,
            "start_s": -BEFORE_READY_S,
            "max_tasks": supply,
        },
        f"a queue that never runs dry: {log.held_share:.0%} of the messages were held back by the "
        "full prefetch window",
        {},
        (
            "when messages were sent, how fast, and how long they waited in the broker (taken: all "
            "before the worker came up)",
        ),
    )


def _batches(logs: list[Arrivals]) -> Process | None:
    """Batches of one size, if the arrivals come in such."""
    gaps = np.sort(np.concatenate([np.diff(log.earliest) for log in logs]))
    gaps = gaps[gaps > 0]
    if len(gaps) < 3:
        return None
    ratios = np.maximum(gaps[1:], 3e-4) / np.maximum(gaps[:-1], 3e-4)
    ratios[-2:] = 1.0  # of the large ones there are some
    place = int(np.argmax(ratios))
    thresholds = [gaps[0] / 2]
    if ratios[place] >= 3.0:
        thresholds.insert(0, float(np.sqrt(max(gaps[place], 3e-4) * gaps[place + 1])))
    for threshold in thresholds:
        process = _batches_apart(logs, threshold)
        if process is not None:
            return process
    return None


def _batches_apart(logs: list[Arrivals], threshold: float) -> Process | None:
    heads = [np.flatnonzero(np.diff(log.earliest, prepend=-np.inf) > threshold) for log in logs]
    sizes = [np.diff(h) for h in heads]  # the last batch may have been cut
    size = int(np.bincount(np.concatenate(sizes)).argmax()) if any(map(len, sizes)) else 0
    agreement = float(np.mean(np.concatenate(sizes) == size)) if size else 0.0
    if size < 2 or agreement < 0.9 or sum(map(len, sizes)) < 3:
        return None
    intervals, inside = [], []
    for log, head, sizes_ in zip(logs, heads, sizes, strict=True):
        times = log.earliest[head]
        whole = (sizes_ == size) & ~log.held[head[1:]]
        whole[0] &= not log.waited
        intervals.append(np.diff(times)[whole])
        steps = np.diff(log.earliest)
        within = np.ones(len(steps), dtype=bool)
        within[head[1:] - 1] = False
        inside.append(steps[within & ~log.held[1:] & ~log.blocked[1:]])
    between = np.concatenate(intervals)
    spacing = np.concatenate(inside)
    if not len(between):
        return None
    spacing_s = float(spacing.mean()) if len(spacing) else 0.0
    publish_s = round(spacing_s, _DIGITS) if spacing_s > READING_S else 0.0
    period = float(between.mean())
    sd = float(between.std(ddof=1)) if len(between) > 1 else 0.0
    pause: Any = round(max(period - size * publish_s, 0.0), _DIGITS)
    if sd > max(0.003, 0.01 * period):
        pause = fit_shape(between - size * publish_s).seconds
    first = logs[0]
    start = float(first.earliest[0])
    if first.waited and len(heads[0]) > 1:
        start = min(start, float(first.earliest[heads[0][1]]) - period)
    unknown = []
    if not publish_s:
        unknown.append(
            f"how long one publish takes: the messages of a batch, {spacing_s * 1000:.2f} ms "
            "apart, come as fast as the worker reads them (taken: 0)"
        )
    return Process(
        {
            "kind": "batches",
            "batch_size": size,
            "pause_s": pause,
            "publish_s": publish_s,
            "start_s": round(start - publish_s, _DIGITS),
            "max_tasks": len(first.latest),
        },
        f"batches of {size} every {period:.4f} s (sd {sd:.4f} s over {len(between)} intervals; "
        f"{agreement:.0%} of the batches have that size)"
        + (f", {publish_s * 1000:.2f} ms a publish" if publish_s else ""),
        {"interval_sd_s": sd, "size_agreement": agreement, "drift_s": period - round(period, 1)},
        tuple(unknown),
    )


def _single(logs: list[Arrivals]) -> Process | None:
    """A renewal process: a steady rate, Poisson, or another distribution of the gaps."""
    first = logs[0]
    gaps = np.concatenate(
        [np.diff(log.earliest)[max(log.waited, 1) - 1 :] for log in logs if len(log.latest) > 1]
    )
    free = np.concatenate(
        [~(log.held[1:] | log.held[:-1])[max(log.waited, 1) - 1 :] for log in logs]
    )
    if np.count_nonzero(free) < _FEW:
        return None
    spans = sum(float(log.latest[-1] - log.latest[0]) for log in logs)
    rate = sum(len(log.latest) - 1 for log in logs) / spans
    known = gaps[free]
    variation = float(known.std() / known.mean())
    n = len(known)
    start = round(min(float(first.earliest[0]), 0.0), _DIGITS)
    correlation = float(np.corrcoef(known[1:], known[:-1])[0, 1]) if variation > 1e-6 else 0.0
    residuals = {"gap_variation": variation, "gap_correlation": correlation}
    if variation < max(0.02, 0.0015 * rate):
        steady = {
            "kind": "rate",
            "rate_per_s": round(rate, 9),
            "start_s": round(float(first.earliest[0]), _DIGITS),
            "max_tasks": len(first.latest),
        }
        return Process(steady, f"a message every {1 / rate:.4f} s ({rate:.4g}/s)", residuals)
    poisson = {
        "kind": "poisson",
        "rate_per_s": round(rate, 9),
        "start_s": start,
        "duration_s": round(float(first.latest[-1]) - start, _DIGITS),
    }
    error = rate / np.sqrt(len(first.latest))
    text = f"a Poisson process, {rate:.4g}/s (standard error {error:.2g})"
    if first.held_share > _TESTABLE and 0.5 < variation < 1.5:
        untested = "whether the arrivals are Poisson: too many were held back (taken: they are)"
        return Process(poisson, text, residuals, (untested,))
    if abs(correlation) > 3.0 / np.sqrt(n):
        return None
    ordered = np.sort(known)
    fitted = -np.expm1(-ordered / ordered.mean())
    distance = float(np.abs((np.arange(n) + 0.5) / n - fitted).max() + 0.5 / n)
    residuals["exponential_distance"] = distance
    if distance * np.sqrt(n) <= _EXPONENTIAL:
        return Process(poisson, text, residuals)
    renewal = {
        "kind": "batches",
        "batch_size": 1,
        "pause_s": fit_shape(known).seconds,
        "start_s": start,
        "max_tasks": len(first.latest),
    }
    text = f"independent gaps, mean {1 / rate:.4f} s, neither steady nor exponential"
    return Process(renewal, text, residuals)
