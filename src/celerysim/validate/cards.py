"""Data cards: what a group of recordings is, when and on what it was made, with which versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from celerysim.record import Recording
from celerysim.validate.catalogue import Group

FILE = "CARD.md"

_MACHINE = (
    ("cpu_model", "CPU"),
    ("cores", "cores"),
    ("worker_cores", "cores for the worker"),
    ("memory_kib", "memory (KiB)"),
    ("system", "system"),
    ("kernel", "kernel"),
    ("python", "Python"),
)


def card(group: Group, recordings: Sequence[Recording]) -> str:
    """The data card of a group, as Markdown."""
    lines = [f"# {group.name}", "", group.what, "", f"    {group.command}", ""]
    lines += ["| run | ready (UTC) | seconds | messages | status | seed | load before |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for recording in recordings:
        ready = datetime.fromtimestamp(recording.epoch, UTC)
        lines.append(
            f"| {recording.folder.name} | {ready:%Y-%m-%d %H:%M:%S} | {recording.end:.1f} "
            f"| {len(recording.publishes)} | {recording.status} | {recording.scenario.run.seed} "
            f"| {recording.machine.get('load_average_before', 0):.2f} |"
        )
    first = recordings[0]
    machine = "; ".join(
        f"{label} {first.machine[key]}" for key, label in _MACHINE if key in first.machine
    )
    versions = ", ".join(f"{name} {version}" for name, version in first.versions.items())
    lines += ["", f"Machine: {machine}.", "", f"Versions: {versions}."]
    lines += ["", f"Broker: {first.details.get('broker', {}).get('product', 'unknown')}, local."]
    notes = sorted({note for r in recordings for note in r.details.get("notes", [])})
    lines += [f"- {note}" for note in notes]
    return "\n".join(lines) + "\n"
