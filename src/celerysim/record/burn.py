"""Burning CPU for a stated number of CPU seconds, in pure Python.

Real Python code holds the interpreter lock and gives it up only when another
thread has waited for it (5 ms); so does this. The clock is the thread's own
CPU clock: in a prefork child it equals the process's, with threads it leaves
out the others, with greenlets there is only one thread. Time the kernel or a
hypervisor gives to others does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: CPU seconds one chunk aims at: far below a millisecond, far above reading the clock (0.3 us).
CHUNK_S = 0.00005


def chunk(loops: int) -> None:
    """Compute for a while: ``loops`` rounds of pure Python."""
    x = 0
    for i in range(loops):
        x += i & 3


def calibrate(target_s: float = CHUNK_S) -> int:
    """How many loops take about ``target_s`` CPU seconds on this machine (at least 1).

    The fastest of several tries counts: a try can only be slowed, by caches
    and other work, never be too fast. Takes about 20 ms.
    """
    loops = 1000
    fastest = float("inf")
    for _ in range(30):
        start = time.thread_time()
        chunk(loops)
        fastest = min(fastest, time.thread_time() - start)
    return max(1, round(loops * target_s / max(fastest, 1e-9)))


def burn(seconds: float, loops: int, clock: Callable[[], float] = time.thread_time) -> None:
    """Use ``seconds`` of CPU time, in chunks of ``loops``; overshoots by one chunk at most."""
    end = clock() + seconds
    while clock() < end:
        chunk(loops)
