"""Invented worker logs, whose truth is known because a test says it."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest

from celerysim.inspection import ObservedTrace, read_observed
from celerysim.inspection.findings import findings
from celerysim.inspection.view import View

EPOCH = datetime.datetime(2026, 3, 2, 8, 15)


class WorkerLog:
    """Lines of a worker log; times are seconds after the first "ready"."""

    _count = 0  # of all logs together: no id is used twice

    def __init__(self, concurrency: str = "4 (prefork)", transport: str = "amqp") -> None:
        self._head = [
            " -------------- celery@h v5.6.3 (recovery)",
            f"- *** --- * --- .> transport:   {transport}://localhost//",
            f"- *** --- * --- .> concurrency: {concurrency}",
        ]
        self._lines: list[tuple[float, str]] = []
        self.main(0.0, "celery@h ready.")

    def line(self, time: float, process: str, text: str, level: str = "INFO") -> None:
        moment = EPOCH + datetime.timedelta(milliseconds=round(time * 1000))
        stamp = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03}"
        self._lines.append((time, f"[{stamp}: {level}/{process}] {text}"))

    def main(self, time: float, text: str, level: str = "INFO") -> None:
        self.line(time, "MainProcess", text, level)

    def bare(self, time: float, text: str) -> None:
        self._lines.append((time, text))

    def received(self, time: float, name: str = "a.b", id: str | None = None) -> str:
        WorkerLog._count += 1
        id = id or f"id-{self._count}"
        self.main(time, f"Task {name}[{id}] received")
        return id

    def task(
        self, received: float, started: float, runtime: float, child: int = 1, name: str = "a.b"
    ) -> str:
        """A task that succeeds in child number ``child``."""
        id = self.received(received, name)
        text = f"Task {name}[{id}] succeeded in {runtime}s: None"
        self.line(started + runtime, f"ForkPoolWorker-{child}", text)
        return id

    def failed(self, received: float, finished: float, error: str, name: str = "a.b") -> None:
        id = self.received(received, name)
        text = f"Task {name}[{id}] raised unexpected: {error}"
        self.line(finished, "ForkPoolWorker-1", text, "ERROR")

    def scaled(self, time: float, change: int) -> None:
        direction = "up" if change > 0 else "down"
        self.main(time, f"Scaling {direction} {abs(change)} processes.")

    def lines(self) -> list[str]:
        return self._head + [text for _, text in sorted(self._lines, key=lambda line: line[0])]

    def trace(self) -> ObservedTrace:
        return read_observed(self.lines())

    def view(self) -> View:
        return View(self.trace())

    def found(self) -> set[str]:
        """The names of all findings."""
        return {finding.name for finding in findings(self.view())}


@pytest.fixture(scope="session")
def worker_log() -> Callable[..., WorkerLog]:
    return WorkerLog


@pytest.fixture
def steady() -> Callable[..., WorkerLog]:
    """A quiet worker: four processes, each three quarters busy, no waits to speak of."""

    def build(**options: str) -> WorkerLog:
        log = WorkerLog(**options)
        for k in range(200):
            log.task(k * 0.5, k * 0.5 + 0.001, 1.5, child=1 + k % 4)
        return log

    return build
