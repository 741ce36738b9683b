"""What the publisher sends, and when: the scenario's producer and tasks, message by message.

The same random numbers as in a simulation of the scenario: message i of a
recording is task i of the simulation, with the same profile and steps.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import NamedTuple

from celerysim.engine.producer import sent_times
from celerysim.engine.streams import BLOCK, Streams
from celerysim.engine.workload import work
from celerysim.scenario.schema import Batches, Scenario, Step


class Message(NamedTuple):
    """One message to publish; times are in seconds."""

    number: int  #: from 0, in the order they are sent
    name: str  #: the profile's, and the Celery task's
    steps: tuple[tuple[str, float], ...]  #: ("cpu" | "io" | "block", seconds)
    rss_kib: float  #: resident memory it leaves behind (KiB)
    sent_s: float  #: after "ready": planned end of its publishing
    publish_s: float  #: its publishing occupies at least this
    pause_s: float  #: slept before it, counted from the end of the publish before
    first: bool  #: first of a batch; true for every message of a producer without batches


def messages(scenario: Scenario) -> Iterator[Message]:
    """The messages in the order they are sent; without end when the producer has none.

    A producer of batches is not cut at its ``duration_s``: its pauses are
    relative, so only the real clock can say which batch began in time.
    """
    streams = Streams(scenario.run.seed)
    producer = scenario.producer
    if isinstance(producer, Batches):
        endless = producer.model_copy(update={"duration_s": None})
        scenario = scenario.model_copy(update={"producer": endless})
    profiles = list(scenario.tasks.profiles.items())
    kinds = [tuple(step_kind(step) for step in profile.steps) for _, profile in profiles]
    speed = scenario.machine.speed
    content = work(scenario, streams)
    for block, sent in enumerate(sent_times(scenario, streams)):
        chosen, seconds = next(content)
        publish = producer.publish_s.ppf(streams.uniform("publish", block))
        pause = [0.0] * BLOCK
        if isinstance(producer, Batches):
            pause = producer.pause_s.ppf(streams.uniform("pause", block)).tolist()
        rows = zip(sent.tolist(), chosen, seconds, publish.tolist(), pause, strict=False)
        for place, (sent_s, profile, values, publish_s, pause_s) in enumerate(rows):
            number = block * BLOCK + place
            first = not isinstance(producer, Batches) or number % producer.batch_size == 0
            steps = tuple(
                (kind, value / speed if kind == "cpu" else value)
                for kind, value in zip(kinds[profile], values, strict=False)
            )
            name, settings = profiles[profile]
            if settings.first_in_child_cpu_s:
                steps = ((f"first {name}", settings.first_in_child_cpu_s / speed), *steps)
            yield Message(
                number=number,
                name=name,
                steps=steps,
                rss_kib=settings.rss_growth_kib,
                sent_s=sent_s,
                publish_s=publish_s,
                pause_s=pause_s if first and number else 0.0,
                first=first,
            )


def step_kind(step: Step) -> str:
    """What a step does: "cpu" computes, "io" waits, "block" waits and holds everything."""
    if step.is_cpu:
        return "cpu"
    return "block" if getattr(step, "block_s", None) is not None else "io"


def expected(scenario: Scenario) -> int | None:
    """How many messages will be published, None if only the run will tell."""
    producer = scenario.producer
    if producer.duration_s is not None:
        return None
    if producer.kind == "times":
        count = len(producer.times_s)
        return count if producer.max_tasks is None else min(count, producer.max_tasks)
    return producer.max_tasks


def task_id(index: int, run: uuid.UUID) -> str:
    """The id of message ``index``: shaped like a UUID, and begins with the index."""
    return f"{index:08d}{str(run)[8:]}"
