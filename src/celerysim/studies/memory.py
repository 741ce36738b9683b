"""Resident memory of a worker, by pool and size: a plain sum, from figures a user can replace.

Defaults: a process is ``costs.child_rss_kib``; a greenlet and a thread that wait
twenty calls deep were measured on Python 3.11 (docs/pools.md). Memory that forked
children still share with their parent counts in each, so prefork's is an upper bound;
what the tasks themselves hold is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from celerysim.errors import CelerysimError
from celerysim.scenario import Scenario

KIB_PER_MIB = 1024.0


@dataclass(frozen=True)
class Memory:
    """What each part of a worker occupies (KiB)."""

    process_kib: float | None = None  #: a process; None: the scenario's ``costs.child_rss_kib``
    greenlet_kib: float = 10.0
    thread_kib: float = 19.0

    def __post_init__(self) -> None:
        for name in ("process_kib", "greenlet_kib", "thread_kib"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value < float("inf"):
                raise CelerysimError(
                    f"{name} = {value}: is no size. Remedy: give KiB, such as 60000."
                )

    def worker_mib(self, scenario: Scenario, pool: str, size: int) -> float:
        """MiB of a whole worker: its main process, and its children, greenlets or threads."""
        process_kib = self.process_kib
        if process_kib is None:
            process_kib = scenario.costs.child_rss_kib
        each = {
            "prefork": process_kib,
            "gevent": self.greenlet_kib,
            "eventlet": self.greenlet_kib,
            "threads": self.thread_kib,
            "solo": 0.0,
        }[pool]
        return (process_kib + size * each) / KIB_PER_MIB
