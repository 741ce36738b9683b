"""The producer: when each message is in the broker.

Models a publishing process (``apply_async`` one after the other) that is not
slowed by the worker: times are known before the run, as numpy arrays, a block
of tasks at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from celerysim.engine.streams import BLOCK, Floats, Streams
from celerysim.scenario.distributions import DECIMALS
from celerysim.scenario.schema import Batches, Poisson, Rate, Scenario, Times


def sent_times(scenario: Scenario, streams: Streams) -> Iterator[Floats]:
    """Seconds after "ready" at which the broker has each message, ascending.

    Yields arrays of :data:`~celerysim.engine.streams.BLOCK` consecutive tasks
    (the last one shorter), without end when the producer has none.
    """
    producer = scenario.producer
    left = producer.max_tasks
    clock = producer.start_s
    block = 0
    while left is None or left > 0:
        index = np.arange(block * BLOCK, (block + 1) * BLOCK)
        publish = producer.publish_s.ppf(streams.uniform("publish", block))
        match producer:
            case Batches():
                first = (index % producer.batch_size == 0) & (index > 0)
                pause = producer.pause_s.ppf(streams.uniform("pause", block))
                sent, began = _in_sequence(clock, np.where(first, pause, 0.0), publish)
                # a batch that began in time is completed: each task counts from its batch's start
                # (a batch that reaches in from the block before began in time, else it was cut)
                head = index % producer.batch_size == 0
                began = np.maximum.accumulate(np.where(head, began, -np.inf))
            case Poisson():
                gap = -np.log1p(-streams.uniform("gap", block)) / producer.rate_per_s
                sent, began = _in_sequence(clock, np.round(gap, DECIMALS), publish)
            case Rate():
                began = np.round(producer.start_s + index / producer.rate_per_s, DECIMALS)
                sent, began = _on_schedule(clock, began, publish)
            case Times():
                due = np.asarray(producer.times_s[block * BLOCK : (block + 1) * BLOCK])
                if not len(due):
                    return
                sent, began = _on_schedule(clock, producer.start_s + due, publish[: len(due)])
        if left is not None:
            sent, began = sent[:left], began[:left]
            left -= len(sent)
        if producer.duration_s is not None:
            late = np.flatnonzero(began - producer.start_s >= producer.duration_s)
            if len(late):
                yield sent[: late[0]]
                return
        yield sent
        clock = float(sent[-1])
        block += 1


def _in_sequence(clock: float, gap: Floats, publish: Floats) -> tuple[Floats, Floats]:
    """(sent, began) of publishes that each begin ``gap`` seconds after the one before is done."""
    sent = np.round(clock + np.cumsum(gap + publish), DECIMALS)
    return sent, np.round(sent - publish, DECIMALS)


def _on_schedule(clock: float, due: Floats, publish: Floats) -> tuple[Floats, Floats]:
    """(sent, began) of publishes due at given times, each later when the one before still runs."""
    work = np.cumsum(publish)
    idle_until = np.maximum.accumulate(np.maximum(due, clock) - (work - publish))
    sent = np.round(idle_until + work, DECIMALS)
    return sent, np.round(sent - publish, DECIMALS)
