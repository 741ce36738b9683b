"""How tasks end: failed, retried, delivered again, or not at all."""

from __future__ import annotations

import numpy as np

from celerysim.history import Outcome
from celerysim.inspection.finding import Finding, percent, seconds, several, times
from celerysim.inspection.reading import ObservedTrace
from celerysim.inspection.view import View

#: Failures and retries below this share of what ended, or this number, are no finding.
LEAST_SHARE, LEAST = 0.05, 3
#: A task that has not ended is odd if it is older than this many times the oldest that did (s).
STUCK_FACTOR, STUCK_S = 3.0, 60.0


def failures(view: View) -> Finding | None:
    """A good part of the tasks fail."""
    outcome = view.tasks["outcome"]
    failed = outcome == Outcome.FAILED
    count, ended = int(np.count_nonzero(failed)), int(np.count_nonzero(view.ended))
    if count < max(LEAST, LEAST_SHARE * ended):
        return None
    by_name = np.bincount(view.tasks["profile"][failed])
    name = view.history.names[int(by_name.argmax())]
    error, with_error = _top_error(view)
    text = (
        f"{count} of {several(ended, 'task')} that ended failed ({percent(count / ended)}), most "
        f"of them {name} ({int(by_name.max())})"
    )
    if error:
        text += f"; the most frequent error is {error} in {with_error}"
    return Finding(
        "failures",
        text,
        {
            "failed": count,
            "ended": ended,
            "failed_share": count / ended,
            "name": name,
            "failed_of_name": int(by_name.max()),
            "error": error,
        },
    )


def retries(view: View) -> Finding | None:
    """A good part of the attempts end in a retry."""
    outcome = view.tasks["outcome"]
    retried = outcome == Outcome.RETRIED
    count = int(np.count_nonzero(retried))
    attempts = int(np.count_nonzero(view.ended)) + count
    if count < max(LEAST, LEAST_SHARE * attempts):
        return None
    by_name = np.bincount(view.tasks["profile"][retried])
    name = view.history.names[int(by_name.argmax())]
    return Finding(
        "retries",
        f"{count} of {several(attempts, 'attempt')} ended in a retry "
        f"({percent(count / attempts)}), most of them of {name} ({int(by_name.max())})",
        {
            "retried": count,
            "attempts": attempts,
            "retried_share": count / attempts,
            "name": name,
            "retried_of_name": int(by_name.max()),
        },
        "a task waiting for its retry is an unacknowledged ETA message in a worker: many or long "
        "retries widen the prefetch window, and with Redis a countdown longer than the "
        "visibility_timeout makes them run twice",
    )


def redeliveries(view: View) -> Finding | None:
    """Tasks were received more than once without a retry."""
    deliveries = view.tasks["deliveries"]
    count = int(np.count_nonzero(deliveries > 1))
    if not count:
        return None
    again = int((deliveries[deliveries > 1] - 1).sum())
    return Finding(
        "redeliveries",
        f"{several(count, 'task')} of {len(view.tasks)} came again, {times(again)} too often in "
        "all: they may have run more than once",
        {"redelivered": count, "redeliveries": again, "tasks": len(view.tasks)},
        _redelivery_remedy(str(view.history.settings.get("broker_transport", ""))),
    )


def unfinished(view: View) -> Finding | None:
    """Tasks received long before the end have not ended."""
    tasks = view.tasks
    stands = np.isin(tasks["outcome"], (Outcome.RESERVED, Outcome.RUNNING))
    age_s = view.history.end - tasks["received"][stands]
    took_s = (tasks["finished"] - tasks["received"])[view.ended]
    took_s = took_s[~np.isnan(took_s)]
    longest_s = float(took_s.max(initial=0.0))
    stuck = age_s > max(STUCK_S, STUCK_FACTOR * longest_s)
    count = int(np.count_nonzero(stuck))
    if not count or not len(took_s):
        return None
    oldest_s = float(age_s[stuck].max())
    name = view.history.names[int(np.bincount(tasks["profile"][stands][stuck]).argmax())]
    return Finding(
        "unfinished",
        f"{several(count, 'task')} had not ended when the log does, received up to "
        f"{seconds(oldest_s)} before, most of them {name}; the slowest of the others took "
        f"{seconds(longest_s)}",
        {
            "unfinished": count,
            "oldest_s": oldest_s,
            "slowest_ended_s": longest_s,
            "name": name,
        },
        "either they have an ETA or a rate limit, or they hang or were lost with the worker: "
        "--time-limit ends what hangs",
    )


def _redelivery_remedy(transport: str) -> str:
    if transport.startswith(("redis", "rediss", "sentinel")):
        return (
            "set broker_transport_options visibility_timeout above the longest task and countdown: "
            "Redis gives out again what is not acknowledged within it (default 1 h)"
        )
    return (
        "a broker gives out again what a lost connection or worker has not acknowledged; RabbitMQ "
        "also closes the channel over what is unacknowledged for longer than its consumer_timeout "
        "(30 min), which late acknowledgement and ETA can be"
    )


def _top_error(view: View) -> tuple[str | None, int]:
    history = view.history
    if not isinstance(history, ObservedTrace) or not history.error_counts:
        return None, 0
    totals: dict[str, int] = {}
    for (_, error), count in history.error_counts.items():
        totals[error] = totals.get(error, 0) + count
    error = max(totals, key=lambda e: totals[e])
    return error, totals[error]
