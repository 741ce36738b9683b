"""A worker log as a :class:`~celerysim.history.History`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from celerysim.history import CHILD_DTYPE, Floats, History, table
from celerysim.trace.builder import Builder
from celerysim.trace.lives import Child
from celerysim.trace.reader import LineCounts, LogReader
from celerysim.trace.remarks import moment, remarks
from celerysim.trace.source import LogInput, Source, unusable

_MOMENTS = ("sent", "received", "finished")


@dataclass(frozen=True)
class Trace(History):
    """What a worker log says, in the same rows as a simulated result.

    Times are seconds since the first "ready." line, or since the first
    stamped line if there is none. What a plain log does not tell is NaN or
    -1: ``sent`` always, ``started`` of tasks that did not succeed (unless the
    log has "Task accepted" lines), ``forked`` and ``up`` of children.

    - Tasks that were ignored or rejected count as failed.
    - A task received twice is one row (``deliveries`` 2); the next attempt
      after a retry is a new message and a new row with the same id.
    - A task that never ended is ``RUNNING`` if it was seen to start, else
      ``RESERVED``, which then means: received, perhaps running.
    - ``children`` has a row for each number the pool gave, also for those
      that never logged a line.
    - ``settings``: ``concurrency`` or ``autoscale`` (``[max, min]``),
      ``pool``, ``celery_version``, ``broker_transport``, ``hostname``, as far
      as the banner is in the log.
    """

    source: str = ""  #: what was read
    epoch: datetime | None = None  #: time 0 on the log's own clock; None: no stamps
    line_counts: LineCounts = field(default_factory=LineCounts)
    warnings: tuple[str, ...] = ()  #: what a reader of results should know, one sentence each
    lost_lines: int = 0  #: tasks that end in the log without a "received" line
    workers: tuple[str, ...] = ()  #: names of the workers in the log (``""``: lines without name)
    #: First and last time each child was seen, shape (children, 2), in the order of ``children``.
    children_seen: Floats = field(default_factory=lambda: np.empty((0, 2)))


def read_log(log: LogInput, *, worker: str | None = None) -> Trace:
    """Read a worker log, or a file of Celery's monitoring events.

    Args:
        log: A path (plain or gzip; ``"-"`` is standard input), an open
            binary file, or an iterable of lines.
        worker: Read only this worker's lines, by the name its prefix gives
            (``worker-1`` of docker compose, ``celery@host`` of an event);
            None: all lines.

    Raises:
        LogError: The log cannot be opened, is empty or binary, or has no line
            of Celery's (of this worker's).
    """
    trace, _ = _read(log, worker)
    return trace


def read_events(log: LogInput, *, worker: str | None = None) -> Trace:
    """Read Celery's event stream (``celery events``), one JSON object a line.

    Unlike a log it tells when tasks were sent and started. Arguments and
    errors are those of :func:`read_log`.

    Raises:
        LogError: As for :func:`read_log`, or no line is an event.
    """
    trace, reader = _read(log, worker)
    if not reader.stream_events:
        remedy = "write each event of app.events.Receiver as a line of JSON, or use read_log"
        raise unusable(trace.source, "no line in it is an event", remedy)
    return trace


def _read(log: LogInput, worker: str | None) -> tuple[Trace, LogReader]:
    source = Source(log)
    reader = LogReader(worker)
    builder = Builder()
    builder.consume(reader.events(source.lines()))
    reader.counts.cut = source.cut_lines
    _check(source, reader, worker)
    if worker is None:
        for id, (name, time) in builder.sent.items():
            builder.rows.send(name, id, time)
    return _trace(source, reader, builder), reader


def _check(source: Source, reader: LogReader, worker: str | None) -> None:
    """Refuse a log in which nothing was understood, and say what to do.

    Raises:
        LogError: No line is Celery's (or this worker's).
    """
    if reader.counts.understood:
        return
    remedy = "give the log of a worker run with --loglevel INFO"
    if source.damage:
        problem, remedy = source.damage, "get a whole copy of the file"
    elif not source.size:
        problem = "it is empty"
    elif reader.counts.other_worker:
        problem = f"no line in it is from worker {worker!r}"
        remedy = "read all workers (worker=None) to see their names"
    else:
        samples = reader.counts.samples[:1]
        first = "".join(f"; line {number} is {text!r}" for number, text in samples)
        problem = f"no line in it is Celery's{first}"
    raise unusable(source.name, problem, remedy)


def _trace(source: Source, reader: LogReader, builder: Builder) -> Trace:
    zero = builder.first if math.isnan(builder.ready) else builder.ready
    lives = [life for worker in builder.workers.values() for life in worker.lives]
    settings = next((life.settings for life in lives if life.settings), {})
    children = builder.children()
    tasks = builder.rows.table(zero)
    if settings.get("pool", "prefork") == "prefork":
        # Celery 3.1 logs in the main process what a child has done.
        tasks["child"][tasks["child"] == 0] = -1
    return Trace(
        tasks=tasks,
        scale_events=builder.scale_table(zero),
        children=table(CHILD_DTYPE, (_child_row(child, zero) for child in children)),
        levels=builder.level_table(zero),
        names=tuple(builder.rows.names),
        # What the worker logs before "ready." is its start-up, not the run.
        start=float(min(np.fmin.reduce(tasks[column], initial=0.0) for column in _MOMENTS)),
        end=round(builder.end - zero, 6),
        settings=settings,
        ids=tuple(builder.rows.ids),
        source=source.name,
        epoch=moment(zero),
        line_counts=reader.counts,
        warnings=tuple(remarks(source, reader, builder)),
        lost_lines=builder.lost_lines,
        workers=tuple(builder.worker_names()),
        children_seen=np.round(
            np.array([(c.first_seen, c.last_seen) for c in children]).reshape(-1, 2) - zero, 6
        ),
    )


def _child_row(child: Child, zero: float) -> tuple[float, ...]:
    terminated, exited = round(child.terminated - zero, 6), round(child.exited - zero, 6)
    return child.number, math.nan, math.nan, terminated, exited, child.tasks, child.busy_s
