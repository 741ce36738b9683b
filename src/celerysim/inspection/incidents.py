"""What a log tells beside its rows: starts, stops, broken connections, dead children, errors.

A trace has no place for these, so they are noted while the log is read. Memory
is bounded: of each kind the first :data:`KEPT` are kept, all are counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from celerysim.trace import events as ev
from celerysim.trace.lives import child_number

#: Incidents of one kind, error texts, and pairs of task name and error that are kept.
KEPT = 10_000
_TEXT = 200  # characters of an error that are kept
_ERROR = re.compile(r"raised \w+: ([\w.]+)|(ignored|reject|INTERNAL ERROR)")

READY, SHUTDOWN, CONNECTION_LOST = "ready", "shutdown", "connection_lost"
EXITED, MEMORY_LIMIT, HANDLER_ERROR = "exited", "memory_limit", "handler_error"


class Incident(NamedTuple):
    """One incident. ``time`` is in seconds on the clock of the rows."""

    time: float
    kind: str
    worker: str
    child: int  #: the k of ForkPoolWorker-k; 0: the main process, -1: another
    text: str  #: host name, way of shutdown, exit status, ``used/limit`` KiB, class of the error


class Incidents:
    """Notes incidents as a log's events go by; times are absolute seconds until :meth:`since`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()  #: incidents of each kind
        self.errors: dict[str, str] = {}  #: task id to the error it ended with
        self.error_counts: Counter[tuple[str, str]] = Counter()  #: (task name, error): tasks
        self._noted: list[tuple[float, str, str, int, str]] = []
        self._last: dict[str, float] = {}  # of each worker, its last stamp

    def watch(self, events: Iterable[ev.Event]) -> Iterator[ev.Event]:
        """Pass ``events`` on, noting what they tell."""
        frequent = (ev.Received, ev.Succeeded)
        for event in events:
            time = event[0]
            if time == time:
                self._last[event[1]] = time
            if type(event) not in frequent:
                self._note(event)
            yield event

    def since(self, zero: float) -> tuple[Incident, ...]:
        """The incidents in time order, in seconds since ``zero``."""
        found = [
            Incident(round(time - zero, 6), kind, worker, child, text)
            for time, kind, worker, child, text in self._noted
        ]
        return tuple(sorted(found, key=lambda incident: incident.time))

    def _note(self, event: ev.Event) -> None:
        match event:
            case ev.Ready():
                self._keep(event, READY, 0, event.hostname)
            case ev.Shutdown():
                self._keep(event, SHUTDOWN, 0, event.how)
            case ev.ConnectionLost():
                self._keep(event, CONNECTION_LOST, 0, "")
            case ev.Exited():
                self._keep(event, EXITED, child_number(event.process), event.status)
            case ev.MemoryLimit():
                amounts = f"{event.used}/{event.limit}"
                self._keep(event, MEMORY_LIMIT, child_number(event.process), amounts)
            case ev.HandlerError():
                self._keep(event, HANDLER_ERROR, 0, event.error)
            case ev.Failed():
                match = _ERROR.match(event.error)
                kind = (match[1] or match[2]) if match else event.error.partition(":")[0]
                self._error(event.name, event.id, kind, event.error)
            case ev.TimeLimit(hard=True):
                text = f"hard time limit of {event.seconds:g} s"
                self._error(event.name, event.id, "TimeLimitExceeded", text)

    def _keep(self, event: ev.Event, kind: str, child: int, text: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] > KEPT:
            return
        time = event.time
        if time != time:  # no stamp: as of the worker's last line
            time = self._last.get(event.worker, max(self._last.values(), default=math.nan))
        self._noted.append((time, kind, event.worker, child, text[:_TEXT]))

    def _error(self, name: str, id: str, kind: str, text: str) -> None:
        if len(self.errors) < KEPT:
            self.errors[id] = " ".join(text.split())[:_TEXT]
        pair = (name, kind[:_TEXT])
        if pair in self.error_counts or len(self.error_counts) < KEPT:
            self.error_counts[pair] += 1
