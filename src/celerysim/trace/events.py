"""What a worker log can say: one typed event a record.

All events are named tuples that begin with ``time`` (seconds since
1970-01-01 on the log's own clock, NaN if the line has no stamp) and
``worker`` (the container or host a prefix names, ``""`` without prefix).
``process`` is the process name as logged (``ForkPoolWorker-3``,
``MainProcess``); ``name`` and ``id`` are the task's.
"""

from __future__ import annotations

from typing import NamedTuple


class Sent(NamedTuple):
    """A client published the task (event stream only; ``worker`` is the client's host)."""

    time: float
    worker: str
    name: str
    id: str


class Received(NamedTuple):
    """The supervisor received a task message; ``eta`` is ``""`` unless the line shows one."""

    time: float
    worker: str
    name: str
    id: str
    eta: str


class Applied(NamedTuple):
    """The supervisor handed the task to the pool (DEBUG), which numbers jobs in this order."""

    time: float
    worker: str
    name: str
    id: str


class Accepted(NamedTuple):
    """A child accepted the task (DEBUG): its start; ``pid`` is the child's."""

    time: float
    worker: str
    name: str
    id: str
    pid: int


class Succeeded(NamedTuple):
    """The task returned after ``runtime`` seconds (NaN if the line does not say)."""

    time: float
    worker: str
    process: str
    name: str
    id: str
    runtime: float


class Failed(NamedTuple):
    """The task raised, was rejected or ignored; ``error`` is the text after the id."""

    time: float
    worker: str
    process: str
    name: str
    id: str
    error: str


class Retried(NamedTuple):
    """The task asked for a retry; ``reason`` is the text after ``retry:``."""

    time: float
    worker: str
    process: str
    name: str
    id: str
    reason: str


class Revoked(NamedTuple):
    """The task was discarded, revoked or expired, before it ran."""

    time: float
    worker: str
    name: str
    id: str


class TimeLimit(NamedTuple):
    """A time limit of ``seconds`` ran out; a ``hard`` one ends the task and its child."""

    time: float
    worker: str
    name: str
    id: str
    seconds: float
    hard: bool


class HandlerError(NamedTuple):
    """``Task handler raised error``: names no task.

    ``error`` is the exception's class; ``job`` the pool's running number of
    the task (from 0, -1 if not given).
    """

    time: float
    worker: str
    error: str
    job: int


class Exited(NamedTuple):
    """A child left with an error; ``status`` such as ``signal 9 (SIGKILL)``."""

    time: float
    worker: str
    process: str
    pid: int
    status: str


class MemoryLimit(NamedTuple):
    """A child leaves after its task: ``used`` KiB are more than ``limit`` KiB."""

    time: float
    worker: str
    process: str
    used: int
    limit: int


class Scaled(NamedTuple):
    """The autoscaler's line: ``change`` processes asked for, negative for down."""

    time: float
    worker: str
    change: int


class Ready(NamedTuple):
    """The worker ``hostname`` (``celery@host``) begins to consume."""

    time: float
    worker: str
    hostname: str


class Shutdown(NamedTuple):
    """The worker begins to stop; ``how`` is ``Warm`` or ``Cold``."""

    time: float
    worker: str
    how: str


class ConnectionLost(NamedTuple):
    """The connection to the broker broke."""

    time: float
    worker: str


class Prefetch(NamedTuple):
    """The consumer's window became ``window`` messages (DEBUG)."""

    time: float
    worker: str
    window: int


class Setting(NamedTuple):
    """One line of the start-up banner: ``key`` such as ``concurrency``, ``value`` as printed."""

    time: float
    worker: str
    key: str
    value: str


class Note(NamedTuple):
    """Another message of Celery's own, without effect on the rows."""

    time: float
    worker: str
    process: str
    text: str


class Output(NamedTuple):
    """A stamped record of the application: its logging or a redirected print."""

    time: float
    worker: str
    process: str
    text: str


Event = (
    Sent
    | Received
    | Applied
    | Accepted
    | Succeeded
    | Failed
    | Retried
    | Revoked
    | TimeLimit
    | HandlerError
    | Exited
    | MemoryLimit
    | Scaled
    | Ready
    | Shutdown
    | ConnectionLost
    | Prefetch
    | Setting
    | Note
    | Output
)
