"""Why tasks wait inside the worker."""

from __future__ import annotations

import numpy as np

from celerysim.inspection.finding import Finding, percent, plural, seconds, several
from celerysim.inspection.steps import Steps
from celerysim.inspection.view import View

#: A task that waits this long (seconds) beside an idle process waits for no process.
IDLE_WAIT_S = 0.5
#: A task name is slow if it takes this many times what the others take, in the median.
SLOW_FACTOR = 5.0
#: Fewer tasks than this, or than this share of them, are no finding.
LEAST, LEAST_SHARE = 3, 0.01
#: Waiting tasks for each process from which on prefetching is deep.
DEEP = 2.0


def waits_while_idle(view: View) -> Finding | None:
    """Tasks wait in the worker although a process is idle."""
    wait_s = view.wait_s
    known = ~np.isnan(wait_s)
    if not known.any():
        return None
    idle = view.pool_now > view.running_now
    tasks = view.tasks[known]
    idle_s = view.clock.until(idle, tasks["started"]) - view.clock.until(idle, tasks["received"])
    affected = idle_s >= IDLE_WAIT_S
    count = int(np.count_nonzero(affected))
    if count < max(LEAST, LEAST_SHARE * len(tasks)):
        return None
    total_s, waited_s = float(idle_s[affected].sum()), float(wait_s[known].sum())
    workers = len(getattr(view.history, "workers", ()))
    remedy = (
        "is it an ETA, a countdown or a rate limit that they wait for? If not: -O fair (the "
        "default since Celery 4) hands a task only to a process that is not busy, -O fast and "
        "Celery 3 also to one that is"
    )
    if workers > 1:
        remedy = (
            "worker_prefetch_multiplier=1: a worker then reserves fewer tasks that another one, "
            "idle, could run"
        )
    return Finding(
        "waits_while_idle",
        f"{several(count, 'task')} of {len(tasks)} waited inside the worker for "
        f"{seconds(float(np.median(idle_s[affected])))} in the median while a {view.place} was "
        f"idle ({percent(total_s / waited_s)} of all waiting there)",
        {
            "tasks": count,
            "of": len(tasks),
            "idle_wait_median_s": float(np.median(idle_s[affected])),
            "idle_wait_s": total_s,
            "wait_s": waited_s,
            "workers": workers,
        },
        remedy,
    )


def deep_prefetch(view: View) -> Finding | None:
    """Many tasks are reserved for each process, and wait there longer than they run."""
    wait_s, runtime_s = view.wait_s[view.ended], view.runtime_s[view.ended]
    wait_s, runtime_s = wait_s[~np.isnan(wait_s)], runtime_s[~np.isnan(runtime_s)]
    if not view.pool_max or len(wait_s) < LEAST:
        return None
    deepest = float(view.waiting_now.max(initial=0.0))
    median_s, runs_s = float(np.median(wait_s)), float(np.median(runtime_s))
    if deepest < DEEP * view.pool_max or median_s < max(runs_s, 0.1):
        return None
    return Finding(
        "deep_prefetch",
        f"up to {deepest:.0f} tasks waited inside the worker for {view.pool_max} "
        f"{plural(view.place)}, {seconds(median_s)} in the median; they run for "
        f"{seconds(runs_s)}",
        {
            "waiting_max": int(deepest),
            "pool_max": view.pool_max,
            "worker_wait_median_s": median_s,
            "runtime_median_s": runs_s,
        },
        "worker_prefetch_multiplier=1 (default 4) leaves them in the queue, where another worker "
        "can take them and priorities hold; with a single worker the wait only moves there",
    )


def blocking_name(view: View) -> Finding | None:
    """One slow task name fills the pool, and the other tasks wait for it."""
    slow = _slow_name(view)
    if slow is None or not view.pool_max:
        return None
    tasks = view.tasks
    of_slow = tasks["profile"] == slow
    ran = of_slow & ~np.isnan(view.runtime_s)
    holding = Steps.of_spans(tasks["started"][ran], tasks["finished"][ran])
    held = view.clock.values(holding)
    blocked = (view.running_now >= view.pool_now) & (held >= np.maximum(view.pool_now / 2, 1))
    others = ~of_slow & ~np.isnan(view.wait_s)
    until = view.clock.until
    blocked_s = until(blocked, tasks["started"][others]) - until(blocked, tasks["received"][others])
    wait_s = view.wait_s[others]
    slow_s = float(np.median(view.runtime_s[ran]))
    other_s = float(np.nanmedian(view.runtime_s[~of_slow]))
    affected = blocked_s > other_s
    count = int(np.count_nonzero(affected))
    total_s = float(blocked_s[affected].sum())
    if count < max(LEAST, LEAST_SHARE * len(wait_s)) or total_s < 0.5 * float(wait_s.sum()):
        return None
    name = view.history.names[slow]
    return Finding(
        "blocking_name",
        f"{name} runs for {seconds(slow_s)} in the median, {slow_s / other_s:.0f} times the "
        f"others' {seconds(other_s)}; {several(count, 'other task')} waited "
        f"{seconds(float(np.median(blocked_s[affected])))} in the median while it held half of a "
        f"full pool or more ({percent(total_s / float(wait_s.sum()))} of their waiting)",
        {
            "name": name,
            "runtime_median_s": slow_s,
            "others_runtime_median_s": other_s,
            "blocked_tasks": count,
            "blocked_median_s": float(np.median(blocked_s[affected])),
            "blocked_s": total_s,
            "others_wait_s": float(wait_s.sum()),
        },
        f"give {name} a queue and a worker of its own (task_routes); with "
        "worker_prefetch_multiplier=1 fewer short tasks are reserved behind it",
    )


def _slow_name(view: View) -> int | None:
    """The slowest task name, if it is far slower than the others and not most of the tasks."""
    profile, runtime_s = view.tasks["profile"], view.runtime_s
    known = ~np.isnan(runtime_s)
    counts = np.bincount(profile[known], minlength=len(view.history.names))
    medians = [
        float(np.median(runtime_s[known & (profile == k)])) if counts[k] >= LEAST else 0.0
        for k in np.argsort(-counts)[:100]
    ]
    if len(medians) < 2:
        return None
    slow = int(np.argsort(-counts)[:100][int(np.argmax(medians))])
    others = runtime_s[known & (profile != slow)]
    if not len(others) or counts[slow] > len(others):
        return None
    other_s = float(np.median(others))
    return slow if other_s > 0 and max(medians) >= SLOW_FACTOR * other_s else None
