"""Reading a log for inspection: its trace, and the incidents that no row holds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from celerysim.inspection.incidents import Incident, Incidents
from celerysim.trace.builder import Builder
from celerysim.trace.reader import LogReader
from celerysim.trace.source import LogInput, Source
from celerysim.trace.trace import Trace, _check, _trace


@dataclass(frozen=True)
class ObservedTrace(Trace):
    """A trace with the incidents of its log."""

    incidents: tuple[Incident, ...] = ()  #: in time order; the first 10,000 of each kind
    incident_counts: Counter[str] = field(default_factory=Counter)  #: all of each kind
    errors: dict[str, str] = field(default_factory=dict)  #: task id to the error it ended with
    error_counts: Counter[tuple[str, str]] = field(default_factory=Counter)  #: (name, error): tasks


def read_observed(log: LogInput, *, worker: str | None = None) -> ObservedTrace:
    """Read a worker log or an event stream, as :func:`celerysim.trace.read_log` does.

    Args:
        log: A path (plain or gzip; ``"-"`` is standard input), an open binary
            file, or an iterable of lines.
        worker: Read only this worker's lines; None: all.

    Raises:
        LogError: As :func:`celerysim.trace.read_log`.
    """
    source = Source(log)
    reader = LogReader(worker)
    builder = Builder()
    incidents = Incidents()
    builder.consume(incidents.watch(reader.events(source.lines())))
    reader.counts.cut = source.cut_lines
    _check(source, reader, worker)
    if worker is None:
        for id, (name, time) in builder.sent.items():
            builder.rows.send(name, id, time)
    trace = _trace(source, reader, builder)
    zero = builder.first if math.isnan(builder.ready) else builder.ready
    return ObservedTrace(
        **vars(trace),
        incidents=incidents.since(zero),
        incident_counts=incidents.counts,
        errors=incidents.errors,
        error_counts=incidents.error_counts,
    )
