"""What the user of a trace should know about its log, one sentence each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from celerysim.trace.builder import Builder
from celerysim.trace.reader import LogReader
from celerysim.trace.source import Source

_DAY_S = 86400.0
_NO_YEAR = 1972  # the year given to stamps without one


def remarks(source: Source, reader: LogReader, builder: Builder) -> Iterator[str]:
    """Yield what is odd or missing, the gravest first."""
    yield from _damage(source, reader)
    yield from _missing(builder)
    yield from _workers(builder)
    yield from _clock(builder)


def moment(time: float) -> datetime | None:
    """Absolute seconds as a date and time; None if it is none."""
    try:
        return datetime(1970, 1, 1) + timedelta(seconds=time)
    except (ValueError, OverflowError):  # NaN, or far off
        return None


def _damage(source: Source, reader: LogReader) -> Iterator[str]:
    counts = reader.counts
    if source.damage:
        yield f"{source.damage}; the rest is missing"
    if source.cut_lines:
        yield f"{source.cut_lines} lines are longer than 1 MiB; only their beginning was read"
    if counts.unexplained:
        number, text = counts.samples[0]
        lines = f"{counts.unexplained} of {counts.total} lines"
        yield f"{lines} were not understood, the first is line {number}: {text!r}"


def _missing(builder: Builder) -> Iterator[str]:
    lives = [life for worker in builder.workers.values() for life in worker.lives]
    if not any(life.settings for life in lives):
        yield "the log has no start-up banner: concurrency, autoscale and pool are not known"
    if math.isnan(builder.ready):
        yield 'the log has no "ready." line: time 0 is its first stamp, levels are not known'
    if builder.lost_lines:
        yield f'{builder.lost_lines} tasks end in the log without a "received" line'
    if builder.by_number:
        yield (
            f"{builder.by_number} lost tasks are told by the pool's job number, which is right "
            "if no task before them had an ETA"
        )
    if builder.unnamed:
        yield f"{builder.unnamed} task handler errors do not tell which task they hit"


def _workers(builder: Builder) -> Iterator[str]:
    names = sorted(name for name in builder.worker_names() if name)
    if len(names) > 1:
        several = f"{len(names)} workers ({', '.join(names[:10])})"
        yield f"lines of {several} are taken together; read one of them with worker=..."
    elif len(builder.hostnames) > 1:
        hosts = ", ".join(sorted(builder.hostnames)[:10])
        yield f"several workers wrote this log ({hosts}) and its lines do not tell whose they are"
    starts = max(builder.hostnames.values(), default=0)
    if starts > 1:
        yield f"the worker started {starts} times in this log; child numbers begin anew each time"
    settings = [life.settings for worker in builder.workers.values() for life in worker.lives]
    sizes = {
        str([found.get(key) for key in ("pool", "concurrency", "autoscale")])
        for found in settings
        if found
    }
    if len(sizes) > 1:
        yield "the banners in this log differ in pool or size; the settings are the first one's"


def _clock(builder: Builder) -> Iterator[str]:
    if math.isnan(builder.first):
        yield "no line has a time stamp: there are no times"
    elif builder.first < _DAY_S:
        yield "the time stamps have no date: the epoch is not known"
    elif getattr(moment(builder.first), "year", 0) == _NO_YEAR:
        yield "the time stamps have no year: it is given as 1972"
    if builder.jumps:
        times = f"{builder.jumps} times" if builder.jumps > 1 else "once"
        yield (
            f"the clock jumps back {times}, first after {moment(builder.before_jump)} (daylight "
            "saving, or logs joined together): times across it are not comparable"
        )
