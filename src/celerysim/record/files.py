"""The files of a recording's folder: names, reading them packed or not, writing them whole."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

from celerysim.record.errors import RecordError

RECORD = "record.json"
SCENARIO = "scenario.json"
MACHINE = "machine.json"
WORKER_LOG = "worker.log"
PUBLISHER_LOG = "publisher.log"
PUBLISHES = "publish.csv"
SAMPLES = "samples.csv"
EVENTS = "events.jsonl"
COSTS = "costs.json"
_INSTALLED = re.compile(rb"/[^\s\"']*/(?:site|dist)-packages/")
_PACKABLE = (WORKER_LOG, PUBLISHES, SAMPLES, EVENTS)


def prepare(folder: Path) -> None:
    """Make the folder for a recording.

    Raises:
        RecordError: it is no folder, holds something already, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except OSError as error:
        raise RecordError(
            f"{folder} cannot be used: {error.strerror}. Remedy: name a new folder."
        ) from error
    if occupied:
        raise RecordError(
            f"{folder} is not empty, and recordings are never overwritten. Remedy: name a new "
            "folder, or remove this one."
        )


def find(folder: Path, name: str) -> Path:
    """The file, packed or not; its plain path when it does not exist."""
    packed = folder / f"{name}.gz"
    return packed if packed.is_file() else folder / name


def read_text(folder: Path, name: str) -> str:
    """The text of a file, packed or not; empty when it does not exist."""
    path = find(folder, name)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ""
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file so that it is, at any moment, the old one or the new one."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    os.replace(fresh, path)


def compress(folder: Path) -> None:
    """Pack the big files of a recording with gzip; packing the same file gives the same bytes.

    What is packed is kept or passed on, so paths to installed packages (in tracebacks)
    lose the part that is this machine's.
    """
    for name in _PACKABLE:
        path = folder / name
        if path.is_file():
            data = _INSTALLED.sub(b"site-packages/", path.read_bytes())
            packed = gzip.compress(data, compresslevel=9, mtime=0)
            (folder / f"{name}.gz").write_bytes(packed)
            path.unlink()
