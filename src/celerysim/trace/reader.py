"""Lines in, events out, every line accounted for.

The plain layout's "received" and "succeeded" lines are nearly all of a big
log, so :class:`LogReader` takes each of them with one match; the rest goes
the long way through wrappers, layouts and grammar. Both ways give the same
events.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from celerysim.trace import events as ev
from celerysim.trace.banner import is_traceback, parse_bare
from celerysim.trace.celery_log import NUMBER, is_complete, is_open, parse
from celerysim.trace.containers import tail_file, unwrap
from celerysim.trace.layouts import Record, find_records, seconds
from celerysim.trace.structured import find_structured, is_event_stream, unpack

MAX_SAMPLES = 10
SAMPLE_LENGTH = 200
_MAX_PARTIAL = 1 << 20  # characters of a line in pieces
_MAX_PARTIALS = 16  # lines in pieces at a time, one a worker
_HALF_DAY = 43200.0
_DAY = 86400.0

_FAST = re.compile(
    r"(?:([A-Za-z][\w.-]{0,100}?) *\| )?"  # docker compose
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d):([0-5]\d),(\d{3}): INFO/([A-Za-z]+(?:-\d+)?)\] "
    r"Task ([^\[]{1,300})\[([^\]]{1,300})\] "
    # "[2026-" in the result may begin a second record on the line: the long way looks.
    r"(?:received\s*\Z|succeeded in " + NUMBER + "s"
    r"(?:: ([^\[]*(?:\[(?!\d{4}-)[^\[]*)*))?\Z)",
    re.ASCII,
)


@dataclass
class LineCounts:
    """What became of every line.

    ``total = understood + output + continuation + unexplained + other_worker``.
    ``samples`` holds the first :data:`MAX_SAMPLES` unexplained lines, each
    with its number (from 1) and its text, cut to :data:`SAMPLE_LENGTH`
    characters.
    """

    total: int = 0
    understood: int = 0  #: Celery's own messages
    output: int = 0  #: stamped records of the application: its logging, redirected prints
    continuation: int = 0  #: tracebacks, multi-line texts, banner art, blank lines
    unexplained: int = 0
    other_worker: int = 0  #: lines of workers that were not asked for
    cut: int = 0  #: of all these: longer than 1 MiB, only the beginning was read
    samples: list[tuple[int, str]] = field(default_factory=list)


class LogReader:
    """Turns the lines of one log into events, counting what it does not understand.

    Args:
        worker: Only this worker's lines, by the name its wrapper gives; None: all.
    """

    def __init__(self, worker: str | None = None) -> None:
        self.counts = LineCounts()
        self.workers: set[str] = set()  #: names of those of whom a line was understood
        self.stream_events = 0  #: records of Celery's event stream
        self._wanted = worker
        self._number = 0
        self._label = ""  # the worker of lines whose wrapper names none
        self._open: dict[str, bool] = {}  # may unstamped lines belong to a worker's last record?
        self._partial: dict[str, str] = {}  # by worker: the beginning of a line in pieces
        self._offset = 0.0  # what the log's clock is ahead of the wrapper's
        self._day = self._last_clock = 0.0  # for stamps without a date

    def events(self, lines: Iterable[str]) -> Iterator[ev.Event]:
        """Yield the events of ``lines``, in order."""
        match, new = _FAST.match, tuple.__new__
        wanted = self._wanted
        number = fast = 0
        results: dict[str, str | None] = {}  # of each worker's last line, if that was a fast one
        for number, line in enumerate(lines, 1):
            plain = match(line)
            if plain is None or self._partial:
                label = None
            else:
                label, minute, second, milli, process, name, id, runtime, result = plain.groups()
                if label is None:
                    label = self._label
            if label is None or (wanted is not None and wanted != label):
                self._number = number
                self._flush(fast, results)
                fast = 0
                yield from self._slow(line)
                continue
            fast += 1
            results[label] = result
            time = _minute(minute) + _SECOND[second] + _MILLI[milli]
            # tuple.__new__ makes a named tuple in half the time its own constructor takes.
            if runtime is None:
                yield new(ev.Received, (time, label, name, id, ""))
            else:
                yield new(ev.Succeeded, (time, label, process, name, id, float(runtime)))
        self._flush(fast, results)
        self.counts.total = number
        for beginning in self._partial.values():  # of lines whose end never came
            self.counts.continuation -= 1
            self._unexplained(beginning)

    def _flush(self, fast: int, results: dict[str, str | None]) -> None:
        """Account for the fast lines since the last slow one."""
        self.counts.understood += fast
        for label, result in results.items():
            self.workers.add(label)
            self._open[label] = result is not None and not is_complete(result)
        results.clear()

    def _slow(self, line: str) -> Iterator[ev.Event]:
        raw = line.rstrip()
        named, outer, text, partial = unwrap(raw)
        worker = named or self._label
        if self._wanted in (None, worker):
            text = (self._partial.pop(worker, "") + text)[:_MAX_PARTIAL]
            if partial and len(self._partial) < _MAX_PARTIALS:
                self._partial[worker] = text
                self.counts.continuation += 1
                return
        text = text.rstrip()
        records = find_structured(worker, text) or find_records(worker, text)
        if records:
            yield from self._stamped(records, outer, raw)
        elif file := tail_file(text):
            self._label = file
            self.counts.continuation += 1
        else:
            if named and named not in self.workers and not _is_bare(text):
                # Not a wrapper after all: "total | 12" is a table in a task's output.
                worker, text = self._label, raw
            yield from self._bare(worker, text)

    def _stamped(self, records: list[Record], outer: str, raw: str) -> Iterator[ev.Event]:
        kinds = set()
        for record in records:
            record = self._on_the_clock(unpack(record), outer)
            if not self._is_wanted(record):
                kinds.add("other_worker")
                continue
            event = parse(record)
            if event is None:
                continue
            self._open[record.worker] = is_open(record, event)
            self.stream_events += is_event_stream(record)
            kinds.add("output" if isinstance(event, ev.Output) else "understood")
            yield event
        # One line counts once, as the best of what it holds.
        if "understood" in kinds:
            self._understood(records[-1].worker)
        elif "output" in kinds:
            self.counts.output += 1
        elif kinds:
            self.counts.other_worker += 1
        else:
            self._unexplained(raw)

    def _bare(self, worker: str, text: str) -> Iterator[ev.Event]:
        """A line without a stamp."""
        if self._wanted not in (None, worker):
            self.counts.other_worker += 1
            return
        events = parse_bare(worker, text) if text else []
        if events:
            self._understood(worker)
            yield from events
        elif events is not None or self._open.get(worker):
            self.counts.continuation += 1
        elif is_traceback(text):
            self._open[worker] = True
            self.counts.continuation += 1
        else:
            self._unexplained(text)

    def _on_the_clock(self, record: Record, outer: str) -> Record:
        """Give a record without a full stamp the best time there is."""
        time = record.time
        wrapper = seconds(outer) if outer else math.nan
        dated = time == time and not 0 <= time < _DAY
        if dated and wrapper == wrapper:
            self._offset = time - wrapper
        elif wrapper == wrapper:
            time = wrapper + self._offset
        elif time == time and not dated:
            # No date: a clock that falls by hours has passed midnight.
            if time < self._last_clock - _HALF_DAY:
                self._day += _DAY
            self._last_clock = time
            time += self._day
        return record if time == record.time else record._replace(time=time)

    def _understood(self, worker: str) -> None:
        self.counts.understood += 1
        self.workers.add(worker)

    def _is_wanted(self, record: Record) -> bool:
        """Whether the record is of a worker asked for, or tells what a client has sent."""
        wanted = self._wanted in (None, record.worker)
        return wanted or (record.text == "task-sent" and is_event_stream(record))

    def _unexplained(self, text: str) -> None:
        self.counts.unexplained += 1
        if len(self.counts.samples) < MAX_SAMPLES:
            self.counts.samples.append((self._number, text[:SAMPLE_LENGTH]))


def _is_bare(text: str) -> bool:
    """Whether a text without a stamp is a worker's beyond doubt."""
    return not text or parse_bare("", text) is not None or is_traceback(text)


_SECOND = {f"{second:02}": float(second) for second in range(60)}
_MILLI = {f"{milli:03}": milli / 1000 for milli in range(1000)}


@lru_cache(maxsize=1 << 12)
def _minute(stamp: str) -> float:
    return seconds(stamp + ":00")
