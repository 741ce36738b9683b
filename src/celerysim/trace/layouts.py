"""Where a logger puts stamp, level, process and text in a line.

Celery's own layout (``worker_log_format``) is the common one; the others are
formats people set instead, each as seen in a public report.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

_EPOCH = datetime(1970, 1, 1)
_ISO = re.compile(
    r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_SYSLOG = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d", re.ASCII)
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Record(NamedTuple):
    """One record of a log.

    ``time`` is in seconds since 1970-01-01 on the clock of the log, NaN if
    the record has no stamp. ``worker`` is what the line's wrapper names
    (container or host), ``""`` without wrapper. ``level`` is upper case or
    ``""``; ``process`` is ``""`` where the layout does not show it.
    ``fields`` are the key-value pairs of a structured record.
    """

    time: float
    worker: str
    level: str
    process: str
    text: str
    fields: Mapping[str, Any] = _NO_FIELDS


_DATE = r"\d{4}-\d\d-\d\d[ T]"
_STAMP = rf"(?P<time>{_DATE}\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)?)"
_LEVEL = r"(?P<level>DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)"
_WORD = r"[^\s\[\]]{1,200}"
_CELERY = re.compile(
    rf"\[(?P<time>{_DATE}\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?): "
    rf"{_LEVEL}/(?P<process>[^\]\n]{{1,99}})\](?: |$)"
)
#: A text that can only be Celery's, whatever stands before it.
_OWN_WORDS = (
    r"(?:Task [^\[\]]{1,300}\[[^\[\]]{1,300}\] (?:received\b|succeeded in \d|raised |retry: )"
    r"|Received task: |Got task from broker: |Task accepted: |Scaling (?:up|down) -?\d+ processes)"
)

# Tried in this order; each must be strict enough not to take another's lines.
_LAYOUTS = [
    re.compile(pattern + "(?P<text>.*)", re.DOTALL)
    for pattern in [
        # The opening bracket is missing where a file begins in the middle of a line.
        _CELERY.pattern.replace(r"\[", r"\[?", 1),
        # [   ERROR/MainThread] text
        rf"\[ *{_LEVEL}/(?P<process>[^\]\n]{{1,99}})\] ",
        # 2026-01-26 16:37:07,678 [celeryd-task:15213] app[10.1.2.3] INFO celery.worker - text
        rf"{_STAMP} \[{_WORD}\] [^\s\[\]]+(?:\[[^\]]*\])? {_LEVEL} {_WORD} - ",
        # 2026-08-12 20:55:05,974 - celery.worker.job - ERROR - text
        rf"{_STAMP} - {_WORD} - {_LEVEL} - ",
        # 2026-08-12 20:55:05,974 - ERROR - text
        rf"{_STAMP} - {_LEVEL} - ",
        # [2026-08-22 21:53:21,203] [ERROR] [celery.worker.request] text
        rf"\[{_STAMP}\] \[{_LEVEL}\] (?:\[{_WORD}\] )?",
        # [2026-08-22 21:53:21,203] ERROR in request: text; ... ERROR [celery.worker:20] text
        rf"\[{_STAMP}\] {_LEVEL} (?:in {_WORD}: |\[{_WORD}\] |{_WORD}: )?",
        # ERROR 2026-08-22 21:03:58,666 [celery.worker.request] <140652> text; ... module 12 34 text
        rf"{_LEVEL} {_STAMP} (?:\[{_WORD}\]|[\w.]+)(?: <\d+>| \d+ \d+)? ",
        # 2026-11-20 18:40:54,258 5325 DEBUG bootsteps[262] text
        rf"{_STAMP} \d+ {_LEVEL} \w+\[\d+\] ",
        # 2026-11-17 10:16:16 59700 -0500 - HOST - 192/13 - celery/celery.worker - 3 - ERROR - text
        rf"{_STAMP} \d+ [+-]\d{{4}} - (?:{_WORD} - ){{1,6}}{_LEVEL} - ",
        # 2026-08-22 21:03:58,666 | INFO | celery.app.trace:info:128 - text
        rf"{_STAMP} \| {_LEVEL} +\| (?:{_WORD} - )?",
        # 2026-08-22 21:03:58,666 [INFO] celery.app.trace: text; the same without brackets
        rf"{_STAMP} \[?{_LEVEL}\]?:? +(?:\[{_WORD}\]:? |{_WORD}: |{_WORD} - )?",
        # 11:27:04 [WARNING] celery.worker.consumer.consumer: text
        rf"(?P<time>\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?) \[?{_LEVEL}\]? (?:{_WORD}: )?",
        # INFO [-/-/-/celery.worker.job] text
        rf"{_LEVEL} +\[{_WORD}\] ",
        # INFO:celery.worker.strategy:text
        rf"{_LEVEL}:{_WORD}?:(?! )",
        # Any other head that has a stamp, when the text is beyond doubt.
        rf"(?P<head>[^\n]{{0,200}}?{_STAMP}[^\n]{{0,200}}?)(?={_OWN_WORDS})",
    ]
]


# More records than this on one line is no log any more.
_MAX_RECORDS = 1000


def find_records(worker: str, text: str) -> list[Record]:
    """The records of a line without its wrappers: almost always one; none if it has no layout.

    Two processes that write at once, or one that dies, put several on a line.
    """
    records = []
    begins = [0, *islice(_inner_records(text), _MAX_RECORDS)]
    for begin, end in pairwise([*begins, len(text)]):
        record = _find_record(worker, text[begin:end].rstrip())
        if record is not None:
            records.append(record)
    return records


def _inner_records(text: str) -> Iterator[int]:
    """Where in a line further records in Celery's layout begin."""
    for match in _CELERY.finditer(text, 1):
        # Inside quotes it is a log quoted in a result, not a record of this log.
        if text[match.start() - 1] not in "'\"`" and text[match.start() - 2 :][:2] != "\\n":
            yield match.start()


def _find_record(worker: str, text: str) -> Record | None:
    for layout in _LAYOUTS:
        if match := layout.match(text):
            groups = match.groupdict()
            stamp = groups.get("time")
            time = seconds(stamp) if stamp else math.nan
            level, process = groups.get("level") or "", groups.get("process") or ""
            return Record(time, worker, level, process, match["text"])
    return None


@lru_cache(maxsize=1 << 12)
def seconds(stamp: str) -> float:
    """Seconds since 1970-01-01 of a stamp; NaN if it is no time.

    ``2026-03-02 08:15:01,204`` and its variants (``T``, a dot, no or more
    decimals); with a zone (``Z``, ``+01:00``) the result is UTC. A stamp
    without a date counts from 1970-01-01, syslog's without a year is in 1972
    (a leap year).
    """
    try:
        if match := _ISO.fullmatch(stamp):
            date, clock, decimals, zone = match.groups()
            moment = datetime.fromisoformat(f"{date or '1970-01-01'} {clock}")
        elif match := _SYSLOG.fullmatch(stamp):
            moment = datetime.strptime("1972 " + stamp, "%Y %b %d %H:%M:%S")
            decimals = zone = None
        else:
            return math.nan
    except ValueError:
        return math.nan
    whole = (moment - _EPOCH) / timedelta(seconds=1)
    if zone and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        whole -= (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60)
    return whole + (float(f"0.{decimals}") if decimals else 0.0)
