"""Executors on this machine: spawned processes that never outlive their parent, and none at all."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class InlineExecutor(Executor):
    """Does the work at once, in this process."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """A future that is already done."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # Ctrl-C is not the work's, it goes through
            future.set_exception(error)
        return future


class LocalExecutor(ProcessPoolExecutor):
    """A pool of spawned processes on a leash.

    The standard pool's processes wait for ever when their parent is killed, and
    finish their work when it is interrupted. These end as soon as the other end
    of a pipe closes, which the kernel does for a dead parent.
    """

    def __init__(self, processes: int) -> None:
        context = get_context("spawn")  # no forked threads or locks; the same on every system
        self._held, self._leash = context.Pipe(duplex=False)
        super().__init__(
            processes, mp_context=context, initializer=_on_leash, initargs=(self._held,)
        )

    def kill(self) -> None:
        """End all processes now."""
        self._leash.close()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As the standard pool's; the leash is let go when all have ended."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            self._leash.close()
            self._held.close()


def executor_for(processes: int, jobs: int) -> Executor:
    """An executor of ``processes`` (0: one a core) and no more than there are jobs."""
    processes = min(processes or os.cpu_count() or 1, jobs)
    return InlineExecutor() if processes <= 1 else LocalExecutor(processes)


def _on_leash(held: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent decides

    def watch() -> None:
        held.poll(None)  # returns at the end of the pipe; nothing is ever sent
        os._exit(1)

    Thread(target=watch, daemon=True).start()
