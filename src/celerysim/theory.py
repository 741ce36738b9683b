"""Formulas that a simulation can be held against, with their sources."""

from __future__ import annotations

import math
from typing import NamedTuple


class Resonance(NamedTuple):
    """How a pool under regular batches shrinks and grows back."""

    cycle_batches: int | None  #: batches from one shrink to the next; None: it never shrinks
    trigger_message: int  #: the message of the batch (from 1) at which the pool shrinks
    forks_per_cycle: int  #: processes killed, then forked anew
    forks: int  #: in all, the initial ones included


def batch_resonance(
    *,
    batches: int,
    batch_size: int,
    interval_s: float,
    publish_s: float,
    max_concurrency: int,
    min_concurrency: int,
    keepalive_s: float,
) -> Resonance:
    """Forks of an autoscaled worker under batches that are all done before the next one.

    ``interval_s`` is the time from a batch's start to the next one's, publishing
    included; messages of a batch come ``publish_s`` apart. The last scale-up of a
    batch is at message ``max_concurrency``; the pool shrinks at the first later
    message whose age exceeds the keepalive (strictly) while it is larger than
    the messages then received. Derived from celery/worker/autoscale.py (5.6.3);
    holds for ``batch_size >= max_concurrency`` and while the keepalive timer
    itself never shrinks the pool.
    """
    size = max_concurrency
    if batch_size < size:
        raise ValueError("batch_resonance needs batches of at least max_concurrency messages")
    if size - max(1, min_concurrency) <= 0:
        return Resonance(None, 0, 0, size)
    last_up_s = (size - 1) * publish_s
    cycle = max(math.floor((keepalive_s + last_up_s) / interval_s), 1) - 1
    while True:
        cycle += 1
        for message in range(1, batch_size + 1):
            age_s = cycle * interval_s + (message - 1) * publish_s - last_up_s
            if age_s > keepalive_s:
                lost = size - max(message, min_concurrency)
                if lost > 0:
                    forks = size + lost * ((batches - 1) // cycle)
                    return Resonance(cycle, message, lost, forks)
                break  # as many reserved as processes: the next batch's first message shrinks


def erlang_c(servers: int, offered_load: float) -> float:
    """Probability that an arrival waits in M/M/c.

    ``offered_load`` = arrival rate x mean service time, below ``servers``.
    (A. K. Erlang, 1917; computed through the Erlang B recursion.)
    """
    blocking = 1.0
    for c in range(1, servers + 1):
        blocking = offered_load * blocking / (c + offered_load * blocking)
    rho = offered_load / servers
    return blocking / (1.0 - rho * (1.0 - blocking))


def mmc_sojourn_s(servers: int, rate_per_s: float, service_s: float) -> float:
    """Mean time in an M/M/c system, waiting included."""
    load = rate_per_s * service_s
    return service_s + erlang_c(servers, load) * service_s / (servers - load)


def mm1_ps_sojourn_s(rate_per_s: float, service_s: float) -> float:
    """Mean time in an M/G/1 processor-sharing system (L. Kleinrock, 1967)."""
    return service_s / (1.0 - rate_per_s * service_s)


def mmc_ps_sojourn_s(cores: int, rate_per_s: float, service_s: float) -> float:
    """Mean time in an M/M/c processor-sharing system.

    Each of n jobs advances at rate min(1, c / n); with exponential work the
    number of jobs is the birth-death process of M/M/c, so by Little's law the
    mean is that of M/M/c.
    """
    return mmc_sojourn_s(cores, rate_per_s, service_s)
