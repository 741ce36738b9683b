"""Writing a history in forms that other tools read."""

from pathlib import Path

from celerysim.export.rows import write_csv, write_json_lines
from celerysim.export.trace_events import write_trace_events
from celerysim.export.worker_log import write_worker_log
from celerysim.history import History


def write_results(
    history: History,
    *,
    log: Path | None = None,
    trace: Path | None = None,
    rows: Path | None = None,
) -> None:
    """Write what was asked for: worker log, trace events, rows (``.csv`` or JSON lines)."""
    if log is not None:
        write_worker_log(history, log)
    if trace is not None:
        write_trace_events(history, trace)
    if rows is not None:
        (write_csv if rows.suffix == ".csv" else write_json_lines)(history, rows)


__all__ = [
    "write_csv",
    "write_json_lines",
    "write_results",
    "write_trace_events",
    "write_worker_log",
]
