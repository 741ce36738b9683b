"""A history as a Celery worker log, in the layout of Celery 5.6 at level INFO.

Real log tools read it, celerysim's own reader included. Task ids are made from
the task's number, so equal runs give equal logs.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

from celerysim._version import __version__
from celerysim.history import History, Outcome

#: "ready" in a simulated log. An arbitrary, fixed moment: equal runs give equal logs.
EPOCH = datetime.datetime(2026, 1, 1)


def write_worker_log(history: History, path: Path) -> None:
    """Write ``history`` as a worker log; times are :data:`EPOCH` plus the run's seconds."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in worker_log(history))


def worker_log(history: History) -> Iterator[str]:
    """The lines of the log."""
    yield from _banner(history)
    lines = _lines(history)
    # stable: what happens at one instant keeps the order the worker logs it in
    lines.sort(key=lambda line: (line[0], line[1]))
    for time, _, level, process, message in lines:
        yield f"[{_stamp(time)}: {level}/{process}] {message}"
    yield ""
    yield "worker: Warm shutdown (MainProcess)"


def _banner(history: History) -> Iterator[str]:
    settings = history.settings
    autoscale = settings.get("autoscale")
    if autoscale:
        concurrency = f"{{min={autoscale[1]}, max={autoscale[0]}}}"
    else:
        concurrency = str(settings.get("concurrency", 0))
    started = _stamp(min(history.start, 0.0)).partition(",")[0]
    yield " "
    yield " -------------- celery@celerysim v5.6.3 (recovery)"
    yield "--- ***** ----- "
    yield f"-- ******* ---- celerysim-{__version__} {started}"
    yield "- *** --- * --- "
    yield "- ** ---------- [config]"
    yield "- ** ---------- .> app:         celerysim:0x0"
    yield "- ** ---------- .> transport:   amqp://guest:**@localhost:5672//"
    yield "- ** ---------- .> results:     disabled://"
    yield f"- *** --- * --- .> concurrency: {concurrency} ({settings.get('pool', 'prefork')})"
    yield "-- ******* ---- .> task events: OFF (enable -E to monitor tasks in this worker)"
    yield "--- ***** ----- "
    yield " -------------- [queues]"
    yield "                .> celery           exchange=celery(direct) key=celery"
    yield "                "
    yield ""
    yield "[tasks]"
    for name in history.names:
        yield f"  . {name}"
    yield ""


def _lines(history: History) -> list[tuple[float, int, str, str, str]]:
    """(time, rank among equal times, level, process, message) of every line."""
    main = "MainProcess"
    lines = [
        (0.0, 0, "INFO", main, "celery@celerysim ready."),
    ]
    for number, row in enumerate(history.tasks.tolist()):
        profile, _sent, received, started, finished, child, outcome, _deliveries = row
        identity = history.ids[number] if history.ids else _identity(number)
        task = f"Task {history.names[profile]}[{identity}]"
        process = f"ForkPoolWorker-{child}" if child > 0 else main
        if received == received:
            lines.append((received, 2, "INFO", main, f"{task} received"))
        if outcome == Outcome.SUCCEEDED:
            runtime = repr(finished - started)
            lines.append((finished, 1, "INFO", process, f"{task} succeeded in {runtime}s: None"))
        elif outcome == Outcome.FAILED:
            message = f"{task} raised unexpected: SoftTimeLimitExceeded()"
            lines.append((finished, 1, "ERROR", process, message))
        elif outcome == Outcome.LOST:
            lost = "WorkerLostError('Worker exited prematurely: signal 15 (SIGTERM) Job: %d.')"
            message = f"Task handler raised error: {lost % number}"
            lines.append((finished, 1, "ERROR", main, message))
    for time, change, *_ in history.scale_events.tolist():
        direction = "up" if change > 0 else "down"
        lines.append((time, 3, "INFO", main, f"Scaling {direction} {abs(change)} processes."))
    return lines


def _identity(number: int) -> str:
    """A task id that looks like Celery's (a UUID) and names the task's number."""
    return f"00000000-0000-4000-8000-{number:012d}"


def _stamp(time: float) -> str:
    moment = EPOCH + datetime.timedelta(milliseconds=int(time * 1000 + 1e-6))
    return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"
