"""What scaling does: churn, and tasks lost with the children it kills.

Rules: ``celery/worker/autoscale.py`` (a pool shrinks only when the last
scale-up is older than the keepalive) and ``billiard/pool.py: Pool.shrink`` (a
child is spared only once it has accepted a job).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from celerysim.history import Outcome, Trigger
from celerysim.inspection.finding import Finding, percent, seconds, several, times
from celerysim.inspection.view import View

#: A pool that grows back within this time (seconds) should not have shrunk.
REGROWN_S = 10.0
#: A lost task belongs to the scale-down at most this long (seconds) before it.
LOST_AFTER_S = 1.0
#: A message this young (seconds) may have been handed to a child that has not accepted it yet.
HANDED_OVER_S = 0.05
_LIMITS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, REGROWN_S)
#: Cycles have a period if this share of the gaps lies this near (relative) to their median.
_MOSTLY, _NEAR = 0.75, 0.05


@dataclass(frozen=True)
class Cycle:
    """The pool shrank and grew back."""

    shrunk_at: float
    replaced_after_s: tuple[float, ...]  #: for each process grown back, the time it was missing


def cycles(view: View) -> list[Cycle]:
    """Shrinks with what grew back within :data:`REGROWN_S`; shrinks in a row are one."""
    found: list[Cycle] = []
    missing: list[float] = []  # when each process was killed that has not grown back
    shrunk_at, grown = 0.0, True
    for time, change in view.scale_events[["time", "change"]].tolist():
        if change < 0:
            if grown:
                shrunk_at, grown = time, False
                missing.clear()
            missing += [time] * -change
            continue
        back = [time - missing.pop() for _ in range(min(change, len(missing)))]
        back = [gap for gap in back if gap <= REGROWN_S]
        if back and grown and found:
            last = found[-1]
            found[-1] = Cycle(last.shrunk_at, (*last.replaced_after_s, *back))
        elif back:
            found.append(Cycle(shrunk_at, tuple(back)))
        grown = True
    return found


def churn(view: View) -> Finding | None:
    """The pool shrinks and grows back at once, over and over."""
    found = cycles(view)
    forks = len(view.children)
    if len(found) < 2 or not forks:
        return None
    gaps = np.concatenate([cycle.replaced_after_s for cycle in found])
    limit_s = next(
        limit for limit in _LIMITS_S if np.mean(gaps < limit) >= 0.8 or limit == REGROWN_S
    )
    replaced = min(int(np.count_nonzero(gaps < limit_s)), forks)
    periods = np.array([b.shrunk_at - a.shrunk_at for a, b in pairwise(found)])
    period_s = float(np.median(periods))
    steady = np.abs(periods - period_s) <= _NEAR * period_s
    regular = len(found) > 2 and float(steady.mean()) >= _MOSTLY
    rhythm = f"every {seconds(period_s)}"
    if not regular:
        rhythm = f"{times(len(found))} in {seconds(view.duration_s)}"
    peak = _peak(view)
    return Finding(
        "churn",
        f"the pool shrinks and regrows {rhythm}; {percent(replaced / forks)} of the "
        f"{several(forks, 'fork')} replaced a child killed under {_limit(limit_s)} before",
        {
            "cycles": len(found),
            "period_s": period_s,
            "regular": regular,
            "forks": forks,
            "replaced": replaced,
            "replaced_share": replaced / forks,
            "replaced_under_s": limit_s,
            "replaced_after_median_s": float(np.median(gaps)),
            "regrows_to": peak,
        },
        _churn_remedy(view, peak),
    )


def lost_at_scale_down(view: View) -> Finding | None:
    """Tasks were lost right after a scale-down: it killed their children."""
    lost = view.tasks[view.tasks["outcome"] == Outcome.LOST]["finished"]
    downs = _downs(view)["time"]
    if not len(lost) or not len(downs):
        return None
    before = np.searchsorted(downs, lost, side="right") - 1
    after_s = np.where(before >= 0, lost - downs[np.maximum(before, 0)], np.inf)
    near = after_s <= LOST_AFTER_S
    count = int(np.count_nonzero(near))
    if not count:
        return None
    hit = len(np.unique(before[near]))
    return Finding(
        "lost_at_scale_down",
        f"scale-downs killed the children of {count} of {several(len(lost), 'lost task')}, "
        f"declared lost up to {seconds(float(after_s[near].max()))} later ({hit} of "
        f"{several(len(downs), 'scale-down')} did that)",
        {
            "lost": len(lost),
            "lost_at_scale_down": count,
            "scale_downs": len(downs),
            "scale_downs_that_lost": hit,
            "latest_s": float(after_s[near].max()),
        },
        _RISK_REMEDY,
    )


def exposed_at_scale_down(view: View) -> Finding | None:
    """Scale-downs came just after messages whose tasks had not begun: they could have been lost."""
    downs, tasks = _downs(view), view.tasks
    if not len(downs) or lost_at_scale_down(view) is not None:
        return None
    received = tasks["received"]
    order = np.argsort(received, kind="stable")
    order = order[: np.count_nonzero(~np.isnan(received))]
    sorted_received, started = received[order], tasks["started"][order]
    exposed, youngest_s = 0, np.inf
    for event in downs:
        time = float(event["time"])
        first, last = np.searchsorted(sorted_received, [time - HANDED_OVER_S, time])
        if event["trigger"] == Trigger.MESSAGE:  # that message is not handed over yet
            last = min(last, int(event["received"]) - 1)
        # it began after the shrink, and soon: there was a child for it
        begun = started[first:last]
        handed = (begun > time) & (begun < time + 1.0)
        if handed.any():
            exposed += 1
            youngest_s = min(youngest_s, float((time - sorted_received[first:last][handed]).min()))
    if not exposed:
        return None
    return Finding(
        "exposed_at_scale_down",
        f"at {exposed} of {several(len(downs), 'scale-down')} a task received up to "
        f"{seconds(HANDED_OVER_S)} before had not begun: a child that has been handed a task and "
        "has not accepted it yet is not spared. No task was lost here",
        {
            "scale_downs": len(downs),
            "exposed": exposed,
            "handed_over_s": HANDED_OVER_S,
            "closest_s": max(youngest_s, 0.0),
        },
        _RISK_REMEDY,
    )


_RISK_REMEDY = (
    "with Celery's defaults such a task is acknowledged and gone. task_acks_late together with "
    "task_reject_on_worker_lost puts it back into the queue (it may then run twice); a fixed "
    "--concurrency kills no child"
)


def _churn_remedy(view: View, peak: int | None) -> str:
    remedy = (
        "a larger AUTOSCALE_KEEPALIVE (environment, default 30 s): the pool cannot shrink until "
        "the last scale-up is older than that"
    )
    autoscale = view.history.settings.get("autoscale")
    if autoscale and peak:
        ends = f"--autoscale={autoscale[0]},{peak}"
        if peak >= autoscale[0]:
            ends = f"--concurrency={peak} instead of --autoscale={autoscale[0]},{autoscale[1]}"
        remedy += f"; or {ends}, which keeps the {peak} it grows back to anyway"
    return remedy


def _limit(limit_s: float) -> str:
    return f"{limit_s:g} s" if limit_s >= 1 else f"{limit_s * 1000:g} ms"


def _peak(view: View) -> int | None:
    """The largest size the pool grows to; None if not known."""
    ups = view.scale_events[view.scale_events["change"] > 0]
    known = ups[ups["processes"] >= 0]
    if not len(known):
        return None
    return int((known["processes"] + known["change"]).max())


def _downs(view: View) -> np.ndarray:
    downs = view.scale_events[view.scale_events["change"] < 0]
    return downs[np.argsort(downs["time"], kind="stable")]
