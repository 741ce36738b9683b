"""An inspection as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from celerysim.inspection.finding import time_unit
from celerysim.inspection.inspection import Inspection
from celerysim.report import columns

#: Rows of a table that are printed; ``--json`` has them all.
SHOWN = 16
_WIDTH = 98
#: A scale-down this long (seconds) before a task's end is shown before any other scale event.
_NEAR_S = 1.0


def inspection_report(source: str, inspection: Inspection) -> str:
    """What was found first, then what it rests on."""
    parts = [
        _head(source, inspection),
        _findings(inspection),
        _warnings(inspection),
        _names(inspection),
        _throughput(inspection),
        _children(inspection),
        _scale_events(inspection),
        _troubles(inspection),
        _repeats(inspection),
        _lines(inspection),
    ]
    blocks = ["\n".join(lines) for part in parts if (lines := list(part))]
    return "\n\n".join(blocks)


def _head(source: str, inspection: Inspection) -> Iterator[str]:
    yield source
    settings = ", ".join(f"{key} {_plain(value)}" for key, value in inspection.settings.items())
    figures = inspection.summary
    rows = [
        ("settings in the log" if inspection.source else "settings", settings or "none"),
        ('"ready" at', inspection.epoch or "-"),
        ("duration", f"{_value(figures['duration_s'], '{:.1f}')} s"),
        ("tasks finished", f"{figures['tasks']}, {_rate(figures['throughput_per_s'])}"),
        ("tasks lost", str(figures["lost"])),
        (
            "processes forked",
            f"{figures['forks']} ({_value(inspection.forks_per_hour, '{:.0f}')} an hour after "
            "the start)",
        ),
    ]
    for label, text in rows:
        yield from textwrap.wrap(
            text, _WIDTH, initial_indent=f"  {label:<22}", subsequent_indent=" " * 24
        )


def _findings(inspection: Inspection) -> Iterator[str]:
    yield "Findings"
    if not inspection.findings:
        yield "  nothing that stands out"
    for finding in inspection.findings:
        yield from _wrapped(finding.text, "- ")
        if finding.remedy:
            yield from _wrapped(f"remedy: {finding.remedy}", "  ")


def _warnings(inspection: Inspection) -> Iterator[str]:
    if inspection.warnings:
        yield "What the reader of the log noticed"
        for warning in inspection.warnings:
            yield from _wrapped(warning, "- ")


def _names(inspection: Inspection) -> Iterator[str]:
    if not inspection.names:
        return
    yield "Tasks by name (seconds; wait: inside the worker)"
    head = ["", "tasks", "failed", "run median", "p95", "p99", "wait median", "p95", "of running"]
    rows = [head]
    for entry in inspection.names[:SHOWN]:
        runtime, wait = entry["runtime_s"], entry["worker_wait_s"]
        rows.append(
            [
                entry["name"][:60],
                str(entry["tasks"]),
                str(entry["failed"] + entry["lost"]),
                *(_value(runtime[key], "{:.3f}") for key in ("median", "p95", "p99")),
                *(_value(wait[key], "{:.3f}") for key in ("median", "p95")),
                _percent(entry["running_share"]),
            ]
        )
    yield from columns(rows)
    yield from _more(len(inspection.names) - SHOWN, "name")


def _throughput(inspection: Inspection) -> Iterator[str]:
    bins = inspection.throughput["bins"]
    if not bins:
        return
    width = inspection.throughput["bin_s"]
    unit_s, unit = time_unit(width * len(bins))
    yield f"Over time, each line {width / unit_s:g} {unit} (running, waiting, pool: means)"
    rows = [
        [
            f"from {unit[0]}",
            "received",
            "finished",
            "tasks/s",
            "running",
            "waiting",
            "pool",
            "forks",
        ]
    ]
    rows += [
        [
            f"{entry['start_s'] / unit_s:g}",
            str(entry["received"]),
            str(entry["finished"]),
            f"{entry['per_s']:.3f}",
            *(f"{entry[key]:.1f}" for key in ("running", "waiting", "pool")),
            str(entry["forks"]),
        ]
        for entry in bins
    ]
    yield from columns(rows)


def _children(inspection: Inspection) -> Iterator[str]:
    found = inspection.children
    if not found["count"]:
        return
    inferred = " (lives are inferred)" if found["inferred"] else ""
    idle = _percent(inspection.summary["child_idle_share"])
    yield (
        f"Children: {found['count']}, {found['alive_at_end']} alive at the end, "
        f"{found['without_task']} without a task, idle {idle} of their life{inferred}"
    )
    rows = [["", "forked", "exited", "life s", "tasks", "idle"]]
    rows += [
        [
            str(row["number"]),
            _value(row["forked"], "{:.2f}"),
            _value(row["exited"], "{:.2f}"),
            f"{row['life_s']:.2f}",
            str(row["tasks"]),
            _percent(row["idle_share"]),
        ]
        for row in found["rows"][:SHOWN]
    ]
    yield from columns(rows)
    yield from _more(found["count"] - SHOWN, "child")


def _scale_events(inspection: Inspection) -> Iterator[str]:
    rows = inspection.scale_events["by_trigger"]
    if not rows:
        return
    inferred = " (inferred)" if inspection.scale_events["trigger_inferred"] else ""
    yield f"Scale events by what triggered them{inferred}"
    yield from columns(
        [
            ["", "events", "processes"],
            *(
                [
                    f"{row['direction']}, {row['trigger']}",
                    str(row["events"]),
                    str(row["processes"]),
                ]
                for row in rows
            ),
        ]
    )


def _troubles(inspection: Inspection) -> Iterator[str]:
    found = inspection.troubles
    if not found["rows"]:
        return
    yield f"Lost tasks: {found['lost']}, failed: {found['failed']}"
    for entry in found["errors"][:SHOWN]:
        yield from _wrapped(f"{entry['tasks']} x {entry['name']}: {entry['error']}", "")
    for row in found["rows"][:SHOWN]:
        yield from _wrapped(_trouble(row), "- ")
    yield from _more(found["lost"] + found["failed"] - SHOWN, "task")


def _trouble(row: Mapping[str, Any]) -> str:
    times = f"received {_value(row['received'], '{:.3f}')}, {row['outcome']} {row['finished']:.3f}"
    text = f"{row['name']}[{row['id']}]: {times}"
    if row["child"] is not None:
        text += f", child {row['child']}"
    if row["error"]:
        text += f", {row['error']}"
    event, down = row["scale_event_before"], row["scale_down_before"]
    if down and down["seconds_before"] <= _NEAR_S:
        event = down
    if event:
        text += (
            f"; scaled {event['change']:+d} by {event['trigger']} {event['seconds_before']:.3f} s "
            "before"
        )
        if event["killed"]:
            text += f", which killed {_numbers(event['killed'])}"
    return text


def _repeats(inspection: Inspection) -> Iterator[str]:
    found = inspection.repeats
    if found["retried"] or found["redelivered"]:
        yield (
            f"Attempts that ended in a retry: {found['retried']}; tasks received more than once: "
            f"{found['redelivered']} ({found['redeliveries']} times too often)"
        )


def _lines(inspection: Inspection) -> Iterator[str]:
    counts = inspection.lines
    if counts is None:
        return
    yield (
        f"Lines: {counts['total']}; Celery's {counts['understood']}, the application's "
        f"{counts['output']}, continued {counts['continuation']}, not understood "
        f"{counts['unexplained']}, of other workers {counts['other_worker']}"
    )
    for sample in counts["samples"]:
        yield f"  line {sample['line']}: {sample['text']!r}"


def _more(count: int, noun: str) -> Iterator[str]:
    if count > 0:
        yield f"  ... and {count} more ({noun} by {noun} in --json)"


def _numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return f"{shown} and {len(numbers) - 10} more" if len(numbers) > 10 else shown


def _wrapped(text: str, mark: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=f"  {mark}", subsequent_indent="  " + " " * len(mark)
    )


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _value(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.0f} %"


def _rate(per_s: float | None) -> str:
    return "-" if per_s is None else f"{per_s:.3f} tasks/s"
