"""A history as rows: JSON lines (everything, with provenance) or CSV (one table)."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

from celerysim.history import History, Level, Outcome, Table, Trigger
from celerysim.result import Result

#: Columns that hold a code, and what the codes mean.
_CODES: dict[str, type[IntEnum]] = {"outcome": Outcome, "trigger": Trigger, "level": Level}
#: Tables of a history, by the name used in files.
TABLES = ("tasks", "scale_events", "children", "levels")


def rows(history: History, name: str) -> Iterator[dict[str, Any]]:
    """The rows of one table as plain values: codes by name, profiles by task name, None for NaN."""
    table: Table = getattr(history, name)
    fields = table.dtype.names or ()
    for number, row in enumerate(table.tolist()):
        plain: dict[str, Any] = {}
        if name == "tasks":
            plain["id"] = history.ids[number] if history.ids else str(number)
        for field, value in zip(fields, row, strict=True):
            if field in _CODES:
                plain[field] = _CODES[field](value).name.lower()
            elif field == "profile":
                plain["name"] = history.names[value]
            else:
                plain[field] = None if isinstance(value, float) and math.isnan(value) else value
        yield plain


def write_json_lines(history: History, path: Path) -> None:
    """One JSON object a line: first the provenance, then every row with its ``table``."""
    head: dict[str, Any] = {"table": "run", "start": history.start, "end": history.end}
    if isinstance(history, Result):
        head |= history.provenance
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(head) + "\n")
        for name in TABLES:
            for row in rows(history, name):
                file.write(json.dumps({"table": name} | row) + "\n")


def write_csv(history: History, path: Path, table: str = "tasks") -> None:
    """One table as CSV, with a header of column names; times in seconds after "ready"."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer: csv.DictWriter[str] | None = None
        for row in rows(history, table):
            if writer is None:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
