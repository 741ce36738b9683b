"""How well the pool is used."""

from __future__ import annotations

import numpy as np

from celerysim.inspection.finding import Finding, percent, plural, several
from celerysim.inspection.view import View

#: Fewer ended tasks, or a shorter time (seconds), say nothing about a pool.
LEAST_TASKS, LEAST_S = 10, 60.0
#: A pool idle or busy for this share of its time is worth a word.
IDLE_SHARE, BUSY_SHARE = 0.5, 0.8


def idle(view: View) -> Finding | None:
    """Processes are idle most of their life."""
    clock = view.clock
    slots_s = clock.integral(view.pool_now)
    if not _is_long_enough(view) or slots_s <= 0:
        return None
    running = np.minimum(view.running_now, view.pool_now)
    share = 1.0 - clock.integral(running) / slots_s
    if share < IDLE_SHARE:
        return None
    peak = int(view.running_now.max(initial=0))
    usual = int(clock.quantile(view.running_now, 0.95))
    mean = slots_s / clock.total_s
    many = plural(view.place)
    busiest = f"{peak} at most"
    if usual < peak:
        busiest += f", {usual} or fewer for 95 % of the time"
    return Finding(
        "idle",
        f"{many} were idle {percent(share)} of the time: {mean:.1f} of them in the mean, "
        f"{clock.integral(running) / clock.total_s:.1f} busy, {busiest}",
        {
            "idle_share": share,
            "pool_mean": mean,
            "busy_mean": clock.integral(running) / clock.total_s,
            "busy_max": peak,
            "busy_p95": usual,
            "pool_max": view.pool_max,
        },
        _idle_remedy(view, peak, usual),
    )


def all_busy(view: View) -> Finding | None:
    """All processes are busy most of the time: the pool is the bottleneck."""
    clock = view.clock
    if not _is_long_enough(view):
        return None
    full = (view.pool_now > 0) & (view.running_now >= view.pool_now)
    share = clock.integral(full) / clock.total_s
    if share < BUSY_SHARE:
        return None
    waiting = clock.integral(view.waiting_now) / clock.total_s
    mean = clock.integral(view.pool_now) / clock.total_s
    return Finding(
        "all_busy",
        f"every {view.place} was busy {percent(share)} of the time ({mean:.1f} of them in the "
        f"mean), with {waiting:.1f} tasks waiting inside the worker: what is in the queue waits "
        "for a free one",
        {"all_busy_share": share, "pool_mean": mean, "waiting_mean": waiting},
        "more of them help as far as tasks wait for something else than a core; where they "
        "compute, a larger pool only makes each task slower, and another machine helps",
    )


def _idle_remedy(view: View, peak: int, usual: int) -> str:
    size = view.pool_max
    if not size or view.history.settings.get("pool", "prefork") not in ("prefork", "threads"):
        return ""
    autoscale = view.history.settings.get("autoscale")
    option = "--autoscale's maximum" if autoscale else "--concurrency"
    if peak < size:
        return f"{option} {max(peak, 1)} instead of {size} would have run the same tasks at once"
    if usual < size and not autoscale:
        return (
            f"if memory is short: --concurrency={max(usual, 1)} would have been full 5 % of the "
            f"time or less, and bursts would wait; {several(size, view.place)} cost little else"
        )
    return ""


def _is_long_enough(view: View) -> bool:
    return int(np.count_nonzero(view.ended)) >= LEAST_TASKS and view.clock.total_s >= LEAST_S
