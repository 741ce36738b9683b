"""Recording: a scenario run by real Celery on a real broker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from celerysim.record import files, machine
from celerysim.record.brokers import Broker, find_broker
from celerysim.record.burn import calibrate
from celerysim.record.command import command, make_job, refuse_unreal
from celerysim.record.disturbance import Meter
from celerysim.record.extras import require, versions
from celerysim.record.job import VARIABLE, Job
from celerysim.record.processes import environment
from celerysim.record.recording import FORMAT, Recording, load_recording
from celerysim.record.session import Progress, Session, Stopped
from celerysim.scenario.schema import Scenario

#: Written first: true until the recording says otherwise, whatever happens to this process.
_KILLED = "the recording process was killed, or still runs"


def record(
    scenario: Scenario,
    folder: str | Path,
    *,
    broker_url: str | None = None,
    events: bool = False,
    allow_fewer_cores: bool = False,
    progress: Progress | None = None,
) -> Recording:
    """Run ``scenario`` on real Celery and keep what happened in ``folder``.

    A worker with the scenario's settings and a publisher with its producer run
    as processes of their own. They, the queue and a private broker are gone
    when this returns or raises, and also when this process is killed; the
    record is kept, marked ``interrupted`` with the reason unless the run came
    to its end.

    Args:
        scenario: What to run. ``machine.cores`` pins the worker; ``machine.speed``
            divides the CPU seconds burnt; ``costs`` are the real ones.
        folder: A new or empty folder.
        broker_url: ``amqp://user:password@host:5672//``; "private" for a broker of our own;
            None: RabbitMQ on localhost if it answers, else a private one.
        events: Run the worker with ``-E`` and keep its events; costs the supervisor time.
        allow_fewer_cores: Record although this machine has fewer cores than the scenario's;
            for tasks that compute so little that they never wait for a core.
        progress: Called about once a second with the part done (0 to 1) and a line of text.

    Returns:
        The recording; ``status`` is "interrupted" when the worker died or the broker went.

    Raises:
        MissingExtraError: celery, psutil or the pool's package is not installed.
        RecordError: no broker, too few cores, or the folder is in use.
        KeyboardInterrupt: Ctrl-C; everything is stopped and the record kept before it is raised.
            ``SIGTERM`` does the same, then has the effect it had before (main thread only).
    """
    require(scenario.worker.pool)
    refuse_unreal(scenario)
    folder = Path(folder).absolute()
    wanted = scenario.machine.cores
    usable = machine.usable_cores()
    cores = machine.pin(wanted, usable, allow_fewer=allow_fewer_cores)
    if folder.exists():
        files.prepare(folder)  # refuse it before a broker is started
    with _sigterm_raises():
        broker = find_broker(broker_url)
        try:
            files.prepare(folder)
            loops = calibrate()
            facts = machine.describe(usable, cores, wanted=wanted, loops=loops)
            files.write_json(folder / files.MACHINE, facts)
            data = scenario.model_dump(mode="json", exclude_none=True)
            files.write_json(folder / files.SCENARIO, data)
            _run(scenario, folder, broker, loops, cores, events, progress)
        finally:
            broker.close()
    return load_recording(folder)


def _run(
    scenario: Scenario,
    folder: Path,
    broker: Broker,
    loops: int,
    cores: list[int],
    events: bool,
    progress: Progress | None,
) -> None:
    """Run the session and write record.json, before it and after it."""
    ready, telling = os.pipe()
    job = make_job(scenario, uuid.uuid4(), broker.url, loops, telling)
    details = _details(scenario, job, broker, events)
    session = Session(
        scenario, folder, broker, job, ready, cores=cores, events=events, progress=progress
    )
    status, reason = "interrupted", _KILLED
    janitor = _hire_janitor(job)
    meter = Meter()
    try:
        files.write_json(folder / files.RECORD, details)
        session.run()
        status, reason = "complete", ""
    except Stopped as stopped:
        reason = str(stopped)
    except KeyboardInterrupt:
        reason = "Ctrl-C"
        raise
    except _Terminated:
        reason = "SIGTERM"
        raise
    except BaseException as error:
        reason = repr(error)
        raise
    finally:
        session.close()
        os.close(ready)
        os.close(telling)
        broker.remove(job)
        janitor.communicate(b"done", timeout=10)
        details |= {
            "status": status,
            "reason": reason,
            "ready_epoch": session.ready_epoch,
            "ready_monotonic": session.ready_monotonic,
            "end_s": session.end_s,
            "cpu": meter.read(),
            "notes": [*details["notes"], *session.notes],
        }
        files.write_json(folder / files.RECORD, details)


def _hire_janitor(job: Job) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "celerysim.record.janitor"],
        env=environment(**{VARIABLE: job.dump()}),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _details(scenario: Scenario, job: Job, broker: Broker, events: bool) -> dict[str, Any]:
    """What record.json says at first."""
    return {
        "format": FORMAT,
        "status": "interrupted",
        "reason": _KILLED,
        "run": job.run,
        "started_epoch": time.time(),
        "ready_epoch": None,
        "ready_monotonic": None,
        "end_s": None,
        "cpu": None,
        # The interpreter's path tells who and where we are.
        "command": ["python", *command(scenario, job, events=events)[1:]],
        "broker": {"product": broker.product, "private": broker.private is not None},
        "versions": versions(),
        "notes": ["samples have no unacked count: AMQP does not tell it"],
    }


class _Terminated(BaseException):
    """SIGTERM was received."""


@contextlib.contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Turn SIGTERM into an exception; afterwards let it have its former effect."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no handler can be set here; the leashes still stop all processes
        return

    def handler(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: we are on our way out
        raise _Terminated

    former = signal.getsignal(signal.SIGTERM)
    if former is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGTERM, handler)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, former)
        os.kill(os.getpid(), signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, former)
