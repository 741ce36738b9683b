"""Tasks whose order of computing and waiting is not known: how much sharing slows them down.

If tasks compute and wait in turns, or in an order of which nothing is known, m
running tasks on c cores are a closed queueing network: c cores that are shared
and a place to wait in. Its mean slowdown depends on the mean seconds only, not
on how they are distributed or cut up (Baskett, Chandy, Muntz and Palacios,
1975), so the birth-death process of the machine-repair problem gives it. A log
that shows how many tasks ran at any time then tells the share of computing,
provided that the number changes.
"""

from __future__ import annotations

import numpy as np

from celerysim.calibrate.phases import Phases, Runs, spread_likelihood
from celerysim.history import Floats


def slowdowns(cpu_s: float, io_s: float, cores: int, most: int) -> Floats:
    """Mean slowdown of computing while m tasks run, for m = 0 .. ``most``.

    ``cpu_s`` and ``io_s`` are the mean seconds of computing and waiting of a task.
    """
    factors = np.ones(most + 1)
    for m in range(cores + 1, most + 1):
        computing = np.arange(m + 1)
        busy = np.minimum(computing, cores)
        if io_s < 1e-9 * cpu_s:
            factors[m] = m / cores
            continue
        # balance of neighbours: (m - k) / io_s up from k, busy(k + 1) / cpu_s down to it
        steps = np.log((m - computing[:-1]) / io_s * cpu_s / busy[1:])
        weights = np.concatenate([[0.0], np.cumsum(steps)])
        chances = np.exp(weights - weights.max())
        throughput = float((chances * busy).sum() / chances.sum()) / cpu_s
        factors[m] = max((m / throughput - io_s) / cpu_s, 1.0)
    return factors


def read_back_in_turns(runs: Runs, shares: Floats, cores: int) -> Phases:
    """Each task's seconds if a name's tasks compute for this share of their time alone.

    The likelihood is that of the runtimes, as in
    :func:`~celerysim.calibrate.phases.read_back`.
    """
    marks = np.concatenate([runs.starts, runs.ends])
    order = np.argsort(marks, kind="stable")
    times = marks[order]
    running = np.cumsum(np.repeat([1, -1], len(runs.starts))[order])
    most = int(running.max(initial=0))
    mine = np.maximum(shares[runs.names], 1e-6)
    alone = runs.runtimes
    speed_at_end = np.ones(len(alone))
    for _ in range(2):  # the slowdown depends on the seconds alone, and these on the slowdown
        cpu_s, io_s = float((mine * alone).mean()), float(((1 - mine) * alone).mean())
        factor = slowdowns(cpu_s, io_s, cores, most)[running]
        for name, part in enumerate(shares):
            chosen = runs.names == name
            speed = 1.0 / (part * factor + 1.0 - part)
            done = np.concatenate([[0.0], np.cumsum(speed[:-1] * np.diff(times))])
            began, ended = (np.interp(t[chosen], times, done) for t in (runs.starts, runs.ends))
            alone = alone.copy()
            alone[chosen] = ended - began
            last = np.maximum(np.searchsorted(times, runs.ends[chosen]) - 1, 0)
            speed_at_end[chosen] = speed[last]
    likelihood = sum(spread_likelihood(alone[runs.names == name]) for name in range(len(shares)))
    own_per_s = float(np.log(speed_at_end).sum())
    held_up_s = runs.runtimes - alone
    slowdown = 1.0 + np.maximum(held_up_s, 0.0) / np.maximum(mine * alone, 1e-9)
    return Phases(
        mine * alone, (1 - mine) * alone, slowdown, alone, own_per_s, likelihood + own_per_s
    )
