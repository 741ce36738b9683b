"""Who does the work: any :class:`concurrent.futures.Executor`, with lost workers' chunks run again.

A *crew* keeps an executor busy. Only the few lines that hire one differ between
this process, the cores of this machine and a Dask cluster.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Self

from celerysim._version import __version__
from celerysim.errors import CelerysimError
from celerysim.sweep.chunk import Chunk, Outcome, run_chunk
from celerysim.sweep.local import InlineExecutor, LocalExecutor

#: A chunk whose worker dies this often is given up.
ATTEMPTS = 4
#: Seconds to wait for a cluster's scheduler.
PATIENCE_S = 10.0


@dataclass(frozen=True)
class Hired:
    """An executor at work."""

    executor: Executor
    workers: int  #: chunks that can run at the same time
    in_flight: int  #: chunks handed out and not yet done, at most
    lost: tuple[type[Exception], ...] = (BrokenExecutor,)  #: errors that mean a worker died


#: Hires an executor for as long as the context lasts. On an error it leaves without waiting.
Hire = Callable[[], AbstractContextManager[Hired]]


class Crew:
    """Works off chunks. Use as a context; the executor is hired when it is first needed."""

    def __init__(self, hire: Hire) -> None:
        self._hire = hire
        self._hired: Hired | None = None
        self._contract = ExitStack()

    def __enter__(self) -> Self:
        """Nothing is hired yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Dismiss the executor; on an error without waiting for it."""
        self._contract.__exit__(kind, error, trace)

    @property
    def count(self) -> int:
        """Chunks that can run at the same time."""
        return self._executor().workers

    def run(self, chunks: Sequence[Chunk]) -> Iterator[Outcome]:
        """The outcome of every chunk, in the order in which they get done.

        Raises:
            CelerysimError: workers die again and again, or are of another version.
        """
        waiting = deque(enumerate(chunks))
        flying: dict[Future[Outcome], tuple[int, Chunk]] = {}
        losses: Counter[int] = Counter()
        broken = False
        while waiting or flying:
            hired = self._executor()
            while waiting and len(flying) < hired.in_flight and not broken:
                try:
                    future = hired.executor.submit(run_chunk, waiting[0][1])
                except BrokenExecutor as error:  # a worker died since the last look
                    broken = True
                    _count_loss(losses, waiting[0][0], error)
                else:
                    flying[future] = waiting.popleft()
            for future in wait(flying, return_when=FIRST_COMPLETED).done if flying else ():
                number, chunk = flying.pop(future)
                try:
                    outcome = future.result()
                except hired.lost as error:
                    broken = broken or isinstance(error, BrokenExecutor)
                    _count_loss(losses, number, error)
                    waiting.appendleft((number, chunk))
                except CancelledError as error:
                    raise CelerysimError(
                        "the cluster's scheduler is gone. "
                        "Remedy: start it again and go on with --resume."
                    ) from error
                else:
                    _same_version(outcome)
                    yield outcome
            if broken and not flying:  # all futures of a broken executor fail at once
                self._contract.close()
                self._hired = None
                broken = False

    def _executor(self) -> Hired:
        if self._hired is None:
            self._hired = self._contract.enter_context(self._hire())
        return self._hired


def local(processes: int | None = None) -> Hire:
    """This machine: so many processes [default: one a core]; one is this process itself."""
    count = processes or cores()

    @contextmanager
    def hire() -> Iterator[Hired]:
        if count == 1:
            yield Hired(InlineExecutor(), workers=1, in_flight=1)
            return
        executor = LocalExecutor(count)
        try:
            yield Hired(executor, workers=count, in_flight=2 * count)
        except BaseException:
            executor.kill()
            raise
        finally:
            executor.shutdown(cancel_futures=True)

    return hire


def given(executor: Executor) -> Hire:
    """An executor of the caller's, who also shuts it down; workers die with it once and for all."""

    @contextmanager
    def hire() -> Iterator[Hired]:
        # it does not say how many workers it has: enough chunks to keep some dozens busy
        yield Hired(executor, workers=max(cores(), 16), in_flight=64)

    return hire


def dask(address: str) -> Hire:
    """A Dask cluster whose scheduler listens at ``address`` (``tcp://HOST:PORT``)."""

    @contextmanager
    def hire() -> Iterator[Hired]:
        try:
            distributed = import_module("distributed")  # whose functions have no types
        except ImportError as error:
            raise CelerysimError(
                "Dask is not installed. Remedy: pip install 'celerysim[dask]', here and on every "
                "worker."
            ) from error
        try:
            client = distributed.Client(address, timeout=PATIENCE_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise CelerysimError(
                f"{address}: no Dask scheduler answers. Remedy: start one with `dask scheduler`, "
                "and give the address that it prints."
            ) from error
        with client:
            threads = max(1, sum(client.ncores().values()))
            executor = client.get_executor(pure=False)
            try:
                # generous, because workers may join at any time
                yield Hired(executor, threads, max(4 * threads, 256), (distributed.KilledWorker,))
            finally:
                executor.shutdown(wait=False)

    return hire


def cores() -> int:
    """Cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _count_loss(losses: Counter[int], number: int, error: Exception) -> None:
    """One more worker has died over a chunk; too many of them are an error."""
    losses[number] += 1
    if losses[number] >= ATTEMPTS:
        raise CelerysimError(
            f"worker processes died {ATTEMPTS} times over the same runs. "
            "Remedy: look for a want of memory, use fewer processes; in a script of your own, "
            'start the sweep under `if __name__ == "__main__":`.'
        ) from error


def _same_version(outcome: Outcome) -> None:
    if outcome.version != __version__:
        raise CelerysimError(
            f"a worker runs celerysim {outcome.version}, this is {__version__}: results could "
            "differ. Remedy: install the same version everywhere."
        )
