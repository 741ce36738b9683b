"""Records of key-value pairs: JSON lines, structlog's console lines, Celery's event stream."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from celerysim.trace import events as ev
from celerysim.trace.layouts import Record, find_records, seconds

_TEXT_KEYS = ("event", "message", "msg", "log", "textPayload", "MESSAGE")
_TIME_KEYS = ("timestamp", "@timestamp", "time", "asctime", "ts", "datetime", "created")
_LEVEL_KEYS = ("level", "levelname", "severity", "log.level", "log_level")
_PROCESS_KEYS = ("processName", "process_name", "processname")

# 2026-05-20T15:07:46.952568Z [info     ] text   [celery.worker.strategy] key=value ...
_STRUCTLOG = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) "
    r"\[(?P<level>debug|info|warning|error|critical|exception) *\] (?P<text>.*)",
    re.DOTALL | re.IGNORECASE,
)
_LOGGER = re.compile(r"\s\[([\w.]{1,200})\](?=\s|$)")
_PAIR = re.compile(r"(?:^|\s)(\w{1,100})=('[^']*'|\"[^\"]*\"|\S+)")


def find_structured(worker: str, text: str) -> list[Record]:
    """The records of a JSON or structlog line; none if it is neither."""
    if text.startswith("{"):
        fields = _json(text)
        return [] if fields is None else _from_fields(worker, fields)
    if match := _STRUCTLOG.match(text):
        return [_from_console(worker, match)]
    return []


def unpack(record: Record) -> Record:
    """A record whose text is JSON or structlog's (printed within Celery's layout), unpacked.

    The outer stamp and process stay, being the log's own; text and level are
    the inner ones.
    """
    if match := _STRUCTLOG.match(record.text):
        inner = _from_console(record.worker, match)
        return record._replace(text=inner.text, level=inner.level, fields=inner.fields)
    fields = _json(record.text) if record.text.startswith("{") else None
    if fields is None:
        return record
    text = _first(fields, _TEXT_KEYS)
    level = _first(fields, _LEVEL_KEYS).upper() or record.level
    time = record.time if record.time == record.time else _time(fields)
    return record._replace(time=time, text=text or record.text, level=level, fields=fields)


def structured_event(record: Record) -> ev.Event | None:
    """The event a record's fields tell of (``task_succeeded``, ``task-received``); None: none."""
    fields = record.fields
    kind = record.text.replace("_", "-")
    make = _EVENTS.get(kind)
    if make is None or (kind.startswith("task") and not _task(fields)[1]):
        return None
    return make(record, fields)


def is_event_stream(record: Record) -> bool:
    """Whether the record is one of Celery's own monitoring events."""
    return record.fields.get("type") == record.text


def _json(text: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _from_fields(worker: str, fields: dict[str, Any]) -> list[Record]:
    text = _first(fields, _TEXT_KEYS).rstrip()
    time = _time(fields)
    kind = _string(fields.get("type"))
    if kind.startswith(("task-", "worker-")) and time == time:
        # Celery's event stream: each worker names itself.
        worker = _string(fields.get("hostname")) or worker
        return [Record(time, worker, "", "", kind, fields)]
    if not text and time != time:
        return []
    # docker's json-file driver and log services carry the whole plain line.
    if inner := find_records(worker, text):
        return inner
    level = _first(fields, _LEVEL_KEYS).upper()
    return [Record(time, worker, level, _first(fields, _PROCESS_KEYS), text, fields)]


def _from_console(worker: str, match: re.Match[str]) -> Record:
    text = match["text"]
    pairs = text
    if loggers := list(_LOGGER.finditer(text)):
        last = loggers[-1]
        text, pairs = text[: last.start()], text[last.end() :]
    fields = {key: value.strip("'\"") for key, value in _PAIR.findall(pairs)}
    return Record(seconds(match["time"]), worker, match["level"].upper(), "", text.rstrip(), fields)


def _first(fields: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((text for key in keys if (text := _string(fields.get(key)))), "")


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time(fields: Mapping[str, Any]) -> float:
    """Seconds since 1970-01-01, from a stamp or a number of (milli)seconds; NaN: none."""
    for key in _TIME_KEYS:
        value = fields.get(key)
        if isinstance(value, str) and (time := seconds(value)) == time:
            return time
        if isinstance(value, int | float) and not isinstance(value, bool) and 1e8 < value < 1e14:
            return float(value) if value < 1e11 else value / 1000
    return math.nan


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


# --- events by name; structlog spells them with "_", the event stream with "-" ---

_Make = Callable[[Record, Mapping[str, Any]], ev.Event]


def _task(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Name and id; ``""`` where the fields do not tell."""
    return _first(fields, ("task_name", "name", "task")), _first(
        fields, ("task_id", "uuid", "child_task_id")
    )


def _accepted(record: Record, fields: Mapping[str, Any]) -> ev.Event:
    pid = _number(fields.get("pid"))
    return ev.Accepted(record.time, record.worker, *_task(fields), int(pid) if 0 < pid < 1e9 else 0)


def _ended(kind: Any, reason: str) -> _Make:
    def make(record: Record, fields: Mapping[str, Any]) -> ev.Event:
        text = _first(fields, (reason,))
        event: ev.Event = kind(record.time, record.worker, record.process, *_task(fields), text)
        return event

    return make


def _succeeded(record: Record, fields: Mapping[str, Any]) -> ev.Event:
    runtime = _number(fields.get("runtime"))
    return ev.Succeeded(record.time, record.worker, record.process, *_task(fields), runtime)


_EVENTS: dict[str, _Make] = {
    "task-sent": lambda r, f: ev.Sent(r.time, r.worker, *_task(f)),
    "task-received": lambda r, f: ev.Received(r.time, r.worker, *_task(f), _first(f, ("eta",))),
    "task-started": _accepted,
    "task-succeeded": _succeeded,
    "task-failed": _ended(ev.Failed, "exception"),
    "task-rejected": _ended(ev.Failed, "exception"),
    "task-retried": _ended(ev.Retried, "exception"),
    "task-retrying": _ended(ev.Retried, "reason"),
    "task-revoked": lambda r, f: ev.Revoked(r.time, r.worker, *_task(f)),
    "worker-online": lambda r, f: ev.Ready(r.time, r.worker, _first(f, ("hostname",))),
    "worker-offline": lambda r, f: ev.Shutdown(r.time, r.worker, "Warm"),
    "worker-heartbeat": lambda r, f: ev.Note(r.time, r.worker, "MainProcess", "heartbeat"),
}
