"""One recording under way: publisher and worker running, watched until the run is over."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TextIO

from celerysim.record import files
from celerysim.record.brokers import Broker, QueueState
from celerysim.record.command import command, worker_variables
from celerysim.record.events import EventCapture
from celerysim.record.job import VARIABLE, Job
from celerysim.record.plan import expected
from celerysim.record.processes import Leashed, describe, environment
from celerysim.record.progress import LogProgress
from celerysim.record.samples import Sampler
from celerysim.scenario.schema import Scenario

Progress = Callable[[float, str], object]

#: Seconds a process may take to get ready (the publisher on top of what start_s asks for).
START_S = 60.0
#: Seconds the worker gets for its warm shutdown once nothing is left to do.
STOP_S = 20.0
#: Tasks that have no end in the log are given up after this quiet time (s) beyond the longest task.
QUIET_S = 30.0


class Stopped(Exception):
    """The run cannot go on; the message says why."""


class Session:
    """Runs publisher and worker of one recording.

    Args:
        scenario: What to run.
        folder: Where the files go; scenario.json is there already.
        broker: The broker, which answers.
        job: What worker and publisher are told.
        ready: The reading end of the pipe whose writing end is ``job.ready_fd``.
        cores: Cores to pin the worker to; empty: not pinned.
        events: Whether to run the worker with ``-E`` and keep its events.
        progress: Called once a second with the part done (0 to 1) and a line of text.
    """

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        broker: Broker,
        job: Job,
        ready: int,
        *,
        cores: list[int],
        events: bool,
        progress: Progress | None,
    ) -> None:
        self._scenario, self._folder, self._broker, self._job = scenario, folder, broker, job
        self._cores, self._events, self._progress = cores, events, progress
        self._ready = ready
        self._files = contextlib.ExitStack()
        self._publisher: Leashed | None = None
        self._worker: Leashed | None = None
        self._capture: EventCapture | None = None
        self._heard = b""  # from the publisher, an unfinished line
        self._waiting = False
        self._published: int | None = None  # when it is done
        self._longest_s = 0.0
        self._worker_pid: int | None = None
        self._log = LogProgress(folder / files.WORKER_LOG)
        self._queue: QueueState | None = None
        self._next_second = 0.0
        self._quiet_since = 0.0
        self.ready_epoch: float | None = None  #: time.time() of "ready"
        self.ready_monotonic: float | None = None  #: and time.monotonic()
        self.end_s: float | None = None  #: seconds from "ready" to the end, or interruption
        self.notes: list[str] = []  #: what a reader of the recording should know

    # --- the run, from its beginning to its end ---

    def run(self) -> None:
        """Run until every task is done or the horizon is reached.

        Raises:
            Stopped: a process ended, or the broker is gone, before that.
        """
        self._sampler = Sampler(self._open(files.SAMPLES))
        patience = START_S + max(0.0, -self._scenario.producer.start_s)
        self._start_publisher()
        self._wait(lambda: self._waiting, patience, "the publisher is not ready")
        self._start_worker()
        self._wait(lambda: self._worker_pid is not None, START_S, "the worker is not ready")
        self._wait(self._over, None, "")
        self.end_s = self._elapsed()
        horizon = self._scenario.run.horizon_s
        if horizon is not None and self.end_s >= horizon:
            return  # what still runs is killed: the log ends at the horizon
        assert self._worker is not None
        if self._worker.terminate(STOP_S) is None:
            self.notes.append(f"the worker did not stop within {STOP_S:g} s and was killed")

    def close(self) -> None:
        """Kill what still runs; close the files. May be called at any moment, more than once."""
        if self.end_s is None and self.ready_monotonic is not None:
            self.end_s = self._elapsed()  # interrupted
        for process in (self._publisher, self._worker):
            if process is not None:
                process.kill()
        if self._capture is not None:
            self._capture.close()
        self._files.close()
        log = self._folder / files.PUBLISHER_LOG
        if log.is_file() and not log.stat().st_size:
            log.unlink()

    # --- starting ---

    def _start_publisher(self) -> None:
        with self._created(files.PUBLISHER_LOG) as log:
            self._publisher = Leashed(
                [
                    sys.executable,
                    "-m",
                    "celerysim.record.publisher",
                    str(self._folder / files.SCENARIO),
                    str(self._folder / files.PUBLISHES),
                ],
                env=environment(**{VARIABLE: self._job.dump()}),
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def _start_worker(self) -> None:
        if self._events:
            connection = self._broker.connection()
            self._capture = EventCapture(connection, self._job, self._open(files.EVENTS))
        with self._created(files.WORKER_LOG) as log:
            self._worker = Leashed(
                command(self._scenario, self._job, events=self._events),
                env=environment(**worker_variables(self._scenario, self._job)),
                cwd=self._folder,
                stdout=log,
                cores=self._cores,
                pass_fds=(self._job.ready_fd,),
            )

    @contextlib.contextmanager
    def _created(self, name: str) -> Iterator[IO[bytes]]:
        # Appending: supervisor and children write to one file, each line after all others.
        with (self._folder / name).open("ab") as file:
            yield file

    def _open(self, name: str) -> TextIO:
        path = self._folder / name
        return self._files.enter_context(path.open("w", encoding="utf-8", newline=""))

    # --- watching ---

    def _wait(self, done: Callable[[], bool], patience_s: float | None, complaint: str) -> None:
        deadline = None if patience_s is None else time.monotonic() + patience_s
        while not done():
            if deadline is not None and time.monotonic() > deadline:
                raise Stopped(f"{complaint} after {patience_s:g} s; log: {self._log.tail()}")
            self._tick()

    def _tick(self) -> None:
        """Wait a moment, hear the processes, look after everything once a second."""
        assert self._publisher is not None
        assert self._publisher.popen.stdout is not None
        said = self._publisher.popen.stdout.fileno()
        sources = [] if self._published is not None else [said]
        if self._worker_pid is None:
            sources.append(self._ready)
        readable, _, _ = select.select(sources, [], [], 0.1)
        if self._ready in readable:
            self._hear_worker()
        if said in readable:
            self._hear_publisher(os.read(said, 4096))
        self._check()
        if time.monotonic() >= self._next_second:
            self._each_second()

    def _hear_worker(self) -> None:
        pid, epoch, monotonic = os.read(self._ready, 4096).split()
        self._worker_pid = int(pid)
        self.ready_epoch, self.ready_monotonic = float(epoch), float(monotonic)
        self._next_second = self._quiet_since = self.ready_monotonic
        assert self._publisher is not None
        assert self._publisher.popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the next check says what happened
            self._publisher.popen.stdin.write(f"zero {self.ready_monotonic!r}\n".encode())
            self._publisher.popen.stdin.flush()

    def _hear_publisher(self, data: bytes) -> None:
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            word, *values = line.decode().split()
            self._waiting = True
            if word == "done":
                self._published, self._longest_s = int(values[0]), float(values[1])

    def _check(self) -> None:
        """Raise :class:`Stopped` if a process has ended that should not have."""
        if self._broker.private is not None and not self._broker.private.running:
            raise Stopped("the private broker has ended")
        for name, process, log in (
            ("worker", self._worker, files.WORKER_LOG),
            ("publisher", self._publisher, files.PUBLISHER_LOG),
        ):
            if process is None or process.status is None:
                continue
            if name == "publisher" and (self._published is not None or process.status == 0):
                continue
            self._look_at_queue()  # the broker's end explains the process's
            said = LogProgress(self._folder / log).tail()
            raise Stopped(f"the {name} has ended ({describe(process.status)}): {said}")

    def _each_second(self) -> None:
        self._next_second = max(self._next_second + 1.0, time.monotonic() + 0.5)
        before = self._log.lines
        self._log.update()
        if self._log.lines != before:
            self._quiet_since = time.monotonic()
        self._look_at_queue()
        self._sampler.write(self._queue, self._worker_pid)
        if self._capture is not None:
            self._capture.poll()
        if self._progress is not None:
            self._progress(*self._done())

    def _look_at_queue(self) -> None:
        try:
            self._queue = self._broker.queue_state(self._job)
        except self._broker.errors as error:
            raise Stopped(f"the broker does not answer any more: {error}") from error

    # --- how far it is ---

    def _elapsed(self) -> float:
        """Seconds since "ready"; 0 before it."""
        return time.monotonic() - self.ready_monotonic if self.ready_monotonic else 0.0

    def _over(self) -> bool:
        horizon = self._scenario.run.horizon_s
        if horizon is not None and self._elapsed() >= horizon:
            return True
        if self._published is None:
            return False
        log = self._log
        # A queue that is gone has lost its consumer: the worker, whose end is looked for elsewhere.
        if self._queue is None or self._queue.ready:
            return False
        if log.received >= self._published and log.over >= log.received:
            return True
        if time.monotonic() - self._quiet_since > QUIET_S + 2 * self._longest_s:
            missing = self._published - log.over
            self.notes.append(f"{missing} tasks have no end in the log; nothing happened any more")
            return True
        return False

    def _done(self) -> tuple[float, str]:
        """The part done, and a line of text."""
        if self._worker_pid is None:
            return 0.0, "starting the worker" if self._waiting else "starting the publisher"
        scenario, log = self._scenario, self._log
        total = self._published if self._published is not None else expected(scenario)
        horizon, duration = scenario.run.horizon_s, scenario.producer.duration_s
        parts = [
            log.over / total if total else 0.0,
            self._elapsed() / horizon if horizon is not None else 0.0,
            0.95 * self._elapsed() / duration if duration is not None and not total else 0.0,
        ]
        text = f"{log.over} of {total or '?'} tasks done, {self._sampler.children} children"
        return min(1.0, max(parts)), text
