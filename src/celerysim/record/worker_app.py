"""The Celery app of a recorded worker; ``celery -A`` imports it, nothing else does.

Imports as little as it can: what a worker has in memory is what its forks
cost. Its settings come in the environment (:mod:`celerysim.record.command`).
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from celerysim.record import files
from celerysim.record.burn import burn
from celerysim.record.job import VARIABLE, load_job
from celerysim.record.messaging import make_app

job = load_job(os.environ.pop(VARIABLE))
app = make_app(job)
_signals = import_module("celery.signals")
# Its text has this machine's paths; a recording may well be made as root, in a container.
warnings.simplefilter("ignore", import_module("celery.platforms").SecurityWarning)
#: Memory that tasks leave behind (``rss_growth_kib``); a prefork child has its own.
_hoard: list[bytes] = []
#: First steps (``first_in_child_cpu_s``) that this process has done; a prefork child has its own.
_met: set[str] = set()


def _unpatched_sleep() -> Callable[[float], None]:
    """The sleep that holds the whole process, also where time.sleep yields to other greenlets."""
    patched_by = getattr(time.sleep, "__module__", None) or ""
    unpatched: Any = time.sleep
    if patched_by.startswith("gevent"):
        unpatched = import_module("gevent.monkey").get_original("time", "sleep")
    elif patched_by.startswith("eventlet"):
        unpatched = import_module("eventlet.patcher").original("time").sleep
    return cast("Callable[[float], None]", unpatched)


_blocking_sleep = _unpatched_sleep()


def task(steps: list[tuple[str, float]], rss_kib: float) -> None:
    """Compute and wait as ``steps`` say, then leave ``rss_kib`` KiB of memory behind."""
    for kind, seconds in steps:
        if kind == "cpu":
            burn(seconds, job.loops)
        elif kind == "block":
            _blocking_sleep(seconds)
        elif kind.startswith("first "):
            if kind not in _met:
                _met.add(kind)
                burn(seconds, job.loops)
        else:
            time.sleep(seconds)
    if rss_kib:
        # Ones, not zeros: the kernel gives memory only to pages that are written to.
        _hoard.append(b"\x01" * round(rss_kib * 1024))


#: Calls of ``Celery._get_backend``, and their CPU seconds.
_backends = [0, 0.0]


def _timed(make: Callable[[], Any]) -> Callable[[], Any]:
    """``make``, counting calls and CPU seconds.

    A green pool makes the result backend anew for every task, which takes the longer the more
    packages are installed: not a thing a scenario can know.
    """

    def timed() -> Any:
        began = time.thread_time()
        made = make()
        _backends[0] += 1
        _backends[1] += time.thread_time() - began
        return made

    return timed


app._get_backend = _timed(app._get_backend)

for _name in job.names:
    app.task(task, name=_name)


@_signals.worker_init.connect  # type: ignore[untyped-decorator, unused-ignore]
def _strategy(sender: Any, **_: Any) -> None:
    """Set ``-O fast``, which the command line refuses, before the pool is made."""
    if job.fast:
        sender.optimization = "fast"


@_signals.worker_ready.connect  # type: ignore[untyped-decorator, unused-ignore]
def _ready(**_: Any) -> None:
    """Tell the recorder; the very next thing the worker does is to log "ready."."""
    os.write(job.ready_fd, f"{os.getpid()} {time.time()!r} {time.monotonic()!r}\n".encode())
    os.close(job.ready_fd)


@_signals.worker_shutdown.connect  # type: ignore[untyped-decorator, unused-ignore]
def _costs(**_: Any) -> None:
    """Keep what was measured, in the recording's folder: the worker runs in it."""
    calls, seconds = _backends
    if calls:
        files.write_json(Path(files.COSTS), {"backend_s": seconds / calls})
