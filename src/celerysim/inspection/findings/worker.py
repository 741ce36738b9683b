"""What happens to the worker and its children: restarts, lost connections, kills, recycling."""

from __future__ import annotations

from collections import Counter

import numpy as np

from celerysim.history import Level, Outcome
from celerysim.inspection.finding import Finding, percent, seconds, several, times
from celerysim.inspection.incidents import CONNECTION_LOST, EXITED, MEMORY_LIMIT, READY, SHUTDOWN
from celerysim.inspection.view import View

#: Fewer recycled children than this are no finding.
LEAST_RECYCLED = 3
#: Of the children that leave, the share that leaves after the same number of tasks.
SAME_SHARE = 0.8


def restarts(view: View) -> Finding | None:
    """A worker started more than once."""
    starts: dict[tuple[str, str], list[float]] = {}
    for incident in view.incidents(READY):
        starts.setdefault((incident.worker, incident.text), []).append(incident.time)
    again = sum(len(found) - 1 for found in starts.values())
    if not again:
        return None
    stops = view.incident_count(SHUTDOWN)
    silent = max(again - stops, 0)
    (_, host), found = max(starts.items(), key=lambda entry: len(entry[1]))
    text = f"the worker {host} became ready {times(len(found))} in {seconds(view.duration_s)}"
    if silent:
        text += f"; before {silent} of {several(again, 'restart')} there is no shutdown line"
    return Finding(
        "restarts",
        text,
        {"restarts": again, "without_shutdown": silent, "host": host, "starts": len(found)},
        "a worker that ends without a word was killed: look into the kernel's log (out of "
        "memory) and at the limits and probes of its container; what it had acknowledged early is "
        "lost"
        if silent
        else "",
    )


def connection_losses(view: View) -> Finding | None:
    """The connection to the broker broke."""
    count = view.incident_count(CONNECTION_LOST)
    if not count:
        return None
    at = [incident.time for incident in view.incidents(CONNECTION_LOST)]
    again = int(np.count_nonzero(view.tasks["deliveries"] > 1))
    text = f"the connection to the broker broke {times(count)}, first {seconds(max(at[0], 0.0))} in"
    if again:
        text += f"; {several(again, 'task')} came again"
    return Finding(
        "connection_losses",
        text,
        {"connection_losses": count, "first_s": at[0], "redelivered": again},
        "what is not acknowledged then is delivered again (late acknowledgement: all that run), so "
        "tasks must bear running twice; if it comes at regular times, look for idle time-outs of "
        "a proxy (broker_heartbeat) or the broker's consumer_timeout",
    )


def killed_children(view: View) -> Finding | None:
    """Children exited with an error or a signal."""
    count = view.incident_count(EXITED)
    if not count:
        return None
    statuses = Counter(incident.text for incident in view.incidents(EXITED))
    status, most = statuses.most_common(1)[0]
    lost = view.history.count(Outcome.LOST)
    return Finding(
        "killed_children",
        f"{several(count, 'child')} exited abnormally, {most} of them with {status}; "
        f"{several(lost, 'task')} lost in all",
        {"children": count, "by_status": dict(statuses.most_common()), "lost": lost},
        _exit_remedy(status),
    )


def memory_recycling(view: View) -> Finding | None:
    """Children leave because their memory exceeds ``max_memory_per_child``."""
    found = view.incidents(MEMORY_LIMIT)
    count = view.incident_count(MEMORY_LIMIT)
    if count < LEAST_RECYCLED:
        return None
    amounts = np.array([incident.text.split("/") for incident in found], dtype=np.float64)
    left = view.children[~np.isnan(view.children["terminated"])]
    each = float(np.median(left["tasks"])) if len(left) else None
    limit, used = float(np.median(amounts[:, 1])), float(np.median(amounts[:, 0]))
    per_hour = count / view.duration_s * 3600 if view.duration_s > 0 else None
    text = f"{count} children left for exceeding the memory limit of {_mib(limit)}"
    if each is not None:
        text += f", after {each:.0f} tasks in the median"
    text += f" with {_mib(used)} then"
    remedy = "each costs a fork and a start: raise --max-memory-per-child as far as memory allows"
    if each is not None and each <= 2:
        remedy = (
            "the limit is about what a child needs for one task, so nearly every task costs a "
            f"fork: raise --max-memory-per-child (KiB) well above {amounts[:, 0].max():.0f}"
        )
    return Finding(
        "memory_recycling",
        text,
        {
            "recycled": count,
            "recycled_per_hour": per_hour,
            "tasks_each_median": each,
            "limit_kib": limit,
            "used_median_kib": used,
            "used_max_kib": float(amounts[:, 0].max()),
        },
        remedy,
    )


def task_recycling(view: View) -> Finding | None:
    """Children leave after a fixed number of tasks."""
    settings = view.history.settings
    autoscale = settings.get("autoscale")
    initial = autoscale[1] if autoscale else settings.get("concurrency")
    if initial is None or not len(view.history.level(Level.RESERVED)[0]):
        return None  # how many children there were at the start is not known
    changes = view.scale_events["change"]
    grown = int(changes[changes > 0].sum())
    replaced = len(view.children) - int(initial) - grown
    if replaced < LEAST_RECYCLED or view.incident_count(MEMORY_LIMIT):
        return None
    shrunk = [number for numbers in view.killed.values() for number in numbers]
    left = ~np.isnan(view.children["exited"]) & ~np.isin(view.children["number"], shrunk)
    each = view.children["tasks"][left]
    counts = np.bincount(each[each > 0]) if (each > 0).any() else np.zeros(1, dtype=int)
    usual = int(counts.argmax())
    share = float(counts[usual] / len(each)) if len(each) else 0.0
    if share < SAME_SHARE:
        return None
    runtime = view.runtime_s[~np.isnan(view.runtime_s)]
    work_s = usual * float(np.median(runtime)) if len(runtime) else None
    return Finding(
        "task_recycling",
        f"{several(replaced, 'child')} replaced one that had left by itself, {percent(share)} of "
        f"them after {several(usual, 'task')}: --max-tasks-per-child",
        {
            "replaced": replaced,
            "tasks_each": usual,
            "share": share,
            "work_of_each_s": work_s,
        },
        f"a child works {seconds(work_s)} before it is forked anew; a larger number costs fewer "
        "forks"
        if work_s is not None and work_s < 60
        else "",
    )


def _exit_remedy(status: str) -> str:
    if "SIGKILL" in status or status.endswith("-9") or "signal 9" in status:
        return (
            "signal 9 mostly is the kernel, out of memory: fewer processes, --max-memory-per-child "
            "(looked at after a task only), or more memory"
        )
    if "SIGSEGV" in status or "signal 11" in status or status.endswith("-11"):
        return "signal 11 is a crash in compiled code: look at the libraries the tasks use"
    if "SIGTERM" in status or "signal 15" in status or status.endswith("-15"):
        return "signal 15 was sent to it: by a scale-down, revoke(terminate=True) or an operator"
    return ""


def _mib(kib: float) -> str:
    return f"{kib / 1024:.0f} MiB"
