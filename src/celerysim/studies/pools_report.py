"""The comparison of pools as text."""

from __future__ import annotations

from collections.abc import Sequence

from celerysim.report import columns
from celerysim.studies.pools import PoolResult
from celerysim.studies.shares import LEVEL, RULE_OF_THUMB, Crossing, ShareSweep

_COLUMNS = (
    ("tasks/s", "throughput_per_s", "{:.3f}"),
    ("sojourn mean", "sojourn_s.mean", "{:.2f}"),
    ("median", "sojourn_s.median", "{:.2f}"),
    ("p90", "sojourn_s.p90", "{:.2f}"),
    ("p95", "sojourn_s.p95", "{:.2f}"),
    ("finished", "tasks", "{:.0f}"),
    ("lost", "lost", "{:.0f}"),
    ("cores used", "cores_used", "{:.2f}"),
    ("tasks/s a core", "throughput_per_core", "{:.2f}"),
    ("memory MiB", "memory_mib", "{:.0f}"),
)


def pools_report(title: str, results: Sequence[PoolResult]) -> str:
    """A row for each pool and size."""
    rows = [["", *(head for head, _, _ in _COLUMNS)]]
    for result in results:
        figures = ((result.figure(path), form) for _, path, form in _COLUMNS)
        rows.append([result.label, *(_text(value, form) for value, form in figures)])
    return "\n".join([title, "", *columns(rows)])


def share_report(title: str, sweep: ShareSweep) -> str:
    """The compared figure by share of CPU, and the crossing points."""
    rows = [["CPU", *(result.label for result in sweep.results[0])]]
    for share, row in zip(sweep.shares, sweep.results, strict=True):
        rows.append([f"{share:.1%}", *(_text(r.figure(sweep.compare), "{:.3f}") for r in row)])
    low, high = RULE_OF_THUMB
    lines = [f"{title}: {sweep.compare} by the tasks' share of CPU", "", *columns(rows), ""]
    lines.append(f"Where the leader changes (level: within {LEVEL:.0%})")
    lines += [f"  {_crossing(crossing)}" for crossing in sweep.crossings]
    for (size, (a, b)), leaders in sweep.leaders.items():
        if len(set(leaders)) == 1:
            first = leaders[0]
            text = (
                f"{a} and {b} are level"
                if first is None
                else f"{first} is ahead of {b if first == a else a}"
            )
            lines.append(f"  size {size}, at every share: {text}")
    return "\n".join(
        [*lines, "", f"The published rule of thumb: above {low:.0%} to {high:.0%} choose prefork."]
    )


def _crossing(crossing: Crossing) -> str:
    a, b = crossing.pools
    if crossing.after is None:
        event = f"{a} and {b} draw level"
    else:
        event = f"{crossing.after} gets ahead of {b if crossing.after == a else a}"
    return f"size {crossing.size}, between {crossing.low:.1%} and {crossing.high:.1%}: {event}"


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
