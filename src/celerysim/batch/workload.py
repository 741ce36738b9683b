"""What is sent to the worker, and when: the random part of many replications at once.

The very numbers of :mod:`celerysim.engine.producer` and
:mod:`celerysim.engine.workload`, with a row a replication.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celerysim.batch.arrays import NEVER, Floats, Ints
from celerysim.batch.uniforms import Uniforms
from celerysim.engine.streams import BLOCK
from celerysim.scenario.distributions import DECIMALS, Constant, Seconds
from celerysim.scenario.schema import Batches, Poisson, Rate, Scenario, StepKind, Times

#: ``last`` of a run that a horizon ends.
ENDLESS = -1
#: The parts of a scenario that its load follows from.
DEPENDS_ON = ("producer", "tasks", "run")


class Load(NamedTuple):
    """The load of some replications of a scenario; a row each."""

    replications: Ints
    sent: Floats  #: when the broker has each message; NEVER beyond the last
    total: Ints  #: messages sent before the horizon
    last: Ints  #: number of tasks whose end ends the run, or ENDLESS
    profile: NDArray[np.int16]
    seconds: Floats  #: of each task's steps, coded as in celerysim.batch.tasks


def load(scenario: Scenario, replications: Ints) -> Load:
    """The load of these replications."""
    uniforms = Uniforms(scenario.run.seed, replications)
    horizon = scenario.run.horizon_s
    start = min(0.0, scenario.producer.start_s)
    blocks: list[Floats] = []
    clock = np.full(1, start)
    for times in _sent_times(scenario, uniforms):
        blocks.append(_as_scheduled(clock, times))
        clock = blocks[-1][:, -1]
        if horizon is not None and (clock >= horizon).all():
            break
    sent = np.concatenate(blocks, axis=1)
    if horizon is not None:
        # SimPy's run(until=...) waits for the time that is left
        sent[sent >= start + (horizon - start)] = NEVER
    count = np.count_nonzero(sent < NEVER, axis=1)
    sent = sent[:, : max(int(count.max()), 1)]
    total = np.broadcast_to(count, replications.shape)
    last = np.full_like(total, ENDLESS) if horizon is not None else total
    profile, seconds = _steps(scenario, uniforms, sent.shape[1])
    return Load(replications, sent, total, last, profile, seconds)


def _sent_times(scenario: Scenario, uniforms: Uniforms) -> Iterator[Floats]:
    """Blocks of ``sent_times``, NEVER where a row has no more; a single row if all are alike."""
    producer = scenario.producer
    left = producer.max_tasks
    clock: Floats | float = producer.start_s
    block = 0
    while left is None or left > 0:
        size = BLOCK if left is None else min(BLOCK, left)
        if isinstance(producer, Times):
            size = min(size, len(producer.times_s) - block * BLOCK)
            if size <= 0:
                break
        index = np.arange(block * BLOCK, block * BLOCK + size)
        publish = _sample(producer.publish_s, uniforms, "publish", block, size)
        match producer:
            case Batches():
                first = (index % producer.batch_size == 0) & (index > 0)
                pause = _sample(producer.pause_s, uniforms, "pause", block, size)
                sent, began = _in_sequence(clock, np.where(first, pause, 0.0), publish)
                head = index % producer.batch_size == 0
                began = np.maximum.accumulate(np.where(head, began, -np.inf), axis=1)
            case Poisson():
                gap = -np.log1p(-uniforms.draw("gap", block, size)) / producer.rate_per_s
                sent, began = _in_sequence(clock, np.round(gap, DECIMALS), publish)
            case Rate():
                due = np.round(producer.start_s + index / producer.rate_per_s, DECIMALS)
                sent, began = _on_schedule(clock, due, publish)
            case Times():
                due = np.asarray(producer.times_s[block * BLOCK : block * BLOCK + size])
                sent, began = _on_schedule(clock, producer.start_s + due, publish)
        clock = sent[:, -1:]
        if producer.duration_s is not None:
            late = began - producer.start_s >= producer.duration_s
            # nothing after the first message that is too late
            sent = np.where(np.logical_or.accumulate(late, axis=1), NEVER, sent)
            clock = np.where(late.any(axis=1, keepdims=True), NEVER, clock)
        yield sent
        if (np.asarray(clock) == NEVER).all():
            return
        if left is not None:
            left -= size
        block += 1


def _sample(seconds: Seconds, uniforms: Uniforms, name: str, block: int, size: int) -> Floats:
    """Seconds of tasks; constant ones need no random numbers."""
    if isinstance(seconds, Constant):
        return seconds.ppf(np.zeros((1, size)))
    return seconds.ppf(uniforms.draw(name, block, size))


def _in_sequence(clock: Floats | float, gap: Floats, publish: Floats) -> tuple[Floats, Floats]:
    """(sent, began) of publishes that each begin ``gap`` seconds after the one before is done."""
    sent = np.round(clock + np.cumsum(gap + publish, axis=1), DECIMALS)
    return sent, np.round(sent - publish, DECIMALS)


def _on_schedule(clock: Floats | float, due: Floats, publish: Floats) -> tuple[Floats, Floats]:
    """(sent, began) of publishes due at given times, each later when the one before still runs."""
    work = np.cumsum(publish, axis=1)
    idle_until = np.maximum.accumulate(np.maximum(due, clock) - (work - publish), axis=1)
    sent = np.round(idle_until + work, DECIMALS)
    return sent, np.round(sent - publish, DECIMALS)


def _as_scheduled(clock: Floats, times: Floats) -> Floats:
    """The times at which SimPy wakes a process that always waits for ``time - now``.

    ``now + (time - now)`` differs from ``time`` in the last bit now and then.
    """
    woken = np.empty_like(times)
    now = clock
    with np.errstate(invalid="ignore"):  # NEVER - NEVER
        for i in range(times.shape[1]):
            time = times[:, i]
            now = np.where(time > now, now + (time - now), now)
            woken[:, i] = now
    return woken


def _steps(scenario: Scenario, uniforms: Uniforms, size: int) -> tuple[NDArray[np.int16], Floats]:
    """Profile and coded steps of the first ``size`` tasks, as ``engine.workload.work``."""
    profiles = list(scenario.tasks.profiles.values())
    order = {name: i for i, name in enumerate(scenario.tasks.profiles)}
    weights = np.cumsum([profile.weight for profile in profiles])
    longest = max(len(profile.steps) for profile in profiles)
    rows = len(uniforms)
    chosen = np.zeros((rows, size), dtype=np.int16)
    seconds = np.full((rows, size, longest), np.nan)
    if scenario.tasks.trace:
        names, coded = _traced(scenario, size, longest)
        chosen[:] = [order[name] for name in names]
        seconds[:] = coded
        return chosen, seconds
    for block in range(-(-size // BLOCK)):
        part = slice(block * BLOCK, min(size, (block + 1) * BLOCK))
        count = part.stop - part.start
        if scenario.tasks.pattern:
            pattern = np.array([order[name] for name in scenario.tasks.pattern])
            chosen[:, part] = pattern[np.arange(part.start, part.stop) % len(pattern)]
        elif len(profiles) > 1:
            u = uniforms.draw("mix", block, count) * weights[-1]
            index = np.searchsorted(weights, u, side="right")
            chosen[:, part] = np.minimum(index, len(profiles) - 1)
        for place in range(longest):
            steps = [p.steps[place] if place < len(p.steps) else None for p in profiles]
            if all(step is None or isinstance(step.seconds, Constant) for step in steps):
                u = np.zeros((1, 1))
            else:
                u = uniforms.draw(f"step {place}", block, count)
            for i, step in enumerate(steps):
                if step is not None:
                    coded = step.seconds.ppf(u)
                    coded = coded if step.kind is StepKind.CPU else -coded
                    target = seconds[:, part, place]
                    if len(profiles) == 1:
                        target[:] = coded
                    else:
                        np.copyto(target, coded, where=chosen[:, part] == i)
    return chosen, seconds


def _traced(scenario: Scenario, size: int, longest: int) -> tuple[list[str], Floats]:
    """Names and coded steps of the first ``size`` tasks of ``tasks.trace``."""
    trace = scenario.tasks.trace or ()
    rows = [trace[i % len(trace)] for i in range(size)]
    coded = np.full((size, longest), np.nan)
    for i, (name, seconds) in enumerate(rows):
        for place, step in enumerate(scenario.tasks.profiles[name].steps):
            coded[i, place] = seconds[place] if step.kind is StepKind.CPU else -seconds[place]
    return [name for name, _ in rows], coded
