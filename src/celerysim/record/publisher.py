"""The publishing process: ``python -m celerysim.record.publisher SCENARIO.json PUBLISH.csv``.

Speaks with the recorder in lines. Here to there: ``waiting`` (connected, and
everything due before "ready" is published), ``done COUNT LONGEST`` (published
messages, and the seconds of the longest task). There to here: ``zero T``
("ready" was at ``T`` on the monotonic clock, which all processes share).

:class:`Pacer` decides when to publish and can be run on any clock.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from celerysim.record.job import VARIABLE, Job, load_job
from celerysim.record.messaging import make_app
from celerysim.record.plan import Message, messages, task_id
from celerysim.scenario.load import make_scenario
from celerysim.scenario.schema import Batches, Scenario

COLUMNS = (
    "index",
    "id",
    "profile",
    "planned_s",
    "begin",
    "end",
    "begin_monotonic",
    "end_monotonic",
)
#: By how much the estimate of what a publish really takes may rise from one to the next.
_RISE = 1.05
#: Publishes before the first that counts.
WARM_UP = 5
#: Messages made before the run; making a block of 4096 later would hold up one publish by 30 ms.
PREPARED = 20_000


class Pacer:
    """Publishes messages at their times.

    A publish occupies at least ``publish_s``: the publisher sleeps first and
    sends so that the message is in the broker at the end of it, as the model
    has it. Producers of batches sleep their pauses relative to the real end
    of the batch, as a script does, so real publishing time and lateness add
    up; the others keep the planned times and catch up when late.

    Args:
        producer: The scenario's producer.
        publish: Sends one message.
        wait_for_zero: Called once, when everything due before "ready" has been sent; returns
            the monotonic time of "ready".
        clock: The monotonic clock (seconds).
        sleep: Sleeps for some seconds.
    """

    def __init__(
        self,
        scenario: Scenario,
        publish: Callable[[Message], None],
        wait_for_zero: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._producer = scenario.producer
        self._publish = publish
        self._wait_for_zero = wait_for_zero
        self._clock, self._sleep = clock, sleep
        self._zero: float | None = None  # real "ready", once known
        self._cost = 0.0  # what a quick publish really takes

    def run(self, plan: Iterable[Message]) -> None:
        """Publish the whole plan."""
        producer = self._producer
        relative = isinstance(producer, Batches)
        # Until "ready" has a time, it is as if it came start_s after now.
        zero = self._clock() - min(producer.start_s, 0.0)
        if producer.start_s >= 0:
            zero = self._zero = self._wait_for_zero()
        free = zero + producer.start_s  # when the publish before was over
        for message in plan:
            if relative:
                begin = free + message.pause_s
            else:
                begin = max(free, zero + message.sent_s - message.publish_s)
            if self._zero is None and begin + message.publish_s > zero:
                self._zero = self._wait_for_zero()
                begin += self._zero - zero
                zero = self._zero
            if relative:
                self._until(begin)
                # Lateness, of the sleep and of the publishes before, is the author's too.
                begin = max(begin, self._clock())
                elapsed = begin - (zero + producer.start_s)
                if message.first and elapsed >= (producer.duration_s or float("inf")):
                    break
            due = begin + message.publish_s
            self._until(due - self._cost)
            start = self._clock()
            self._publish(message)
            end = self._clock()
            # Follows the quick publishes: a slow one must not make the next ones early.
            self._cost = min(end - start, self._cost * _RISE or end - start)
            self._until(due)
            free = max(end, due)
        if self._zero is None:
            self._wait_for_zero()

    def _until(self, moment: float) -> None:
        while (left := moment - self._clock()) > 0:
            self._sleep(left)


class Publisher:
    """Sends messages to the queue and writes down when it did."""

    def __init__(self, job: Job, file: TextIO) -> None:
        self._app = make_app(job)
        self._run = uuid.UUID(job.run)
        self._writer = csv.writer(file)
        self._writer.writerow(COLUMNS)
        self._file = file
        # Without heartbeats: between two publishes nobody would answer them.
        self._connection = self._app.connection_for_write(heartbeat=0)
        self._connection.ensure_connection(max_retries=2, interval_start=0.2)
        self._producer = self._app.amqp.Producer(self._connection, auto_declare=False)
        self._queue = self._app.amqp.queues[job.queue]
        self._queue(self._connection.default_channel).declare()
        # The first publishes import and connect; these go to a queue that is not there.
        nowhere = import_module("kombu").Queue(f"{job.queue}.nowhere")
        for _ in range(WARM_UP):
            self._send(job.names[0], (), "warm-up", nowhere)
        self.count = 0
        self.longest_s = 0.0

    def publish(self, message: Message) -> None:
        """Send one message; note its times on both clocks (seconds)."""
        id = task_id(message.number, self._run)
        begin, begin_monotonic = time.time(), time.monotonic()
        self._send(message.name, (message.steps, message.rss_kib), id, self._queue)
        end, end_monotonic = time.time(), time.monotonic()
        self._writer.writerow(
            (
                message.number,
                id,
                message.name,
                f"{message.sent_s:.6f}",
                *(f"{t:.6f}" for t in (begin, end, begin_monotonic, end_monotonic)),
            )
        )
        self._file.flush()  # what was sent is on record, however this process ends
        self.count += 1
        self.longest_s = max(self.longest_s, sum(seconds for _, seconds in message.steps))

    def _send(self, name: str, arguments: tuple[Any, ...], id: str, queue: Any) -> None:
        self._app.send_task(
            name,
            arguments,
            task_id=id,
            queue=queue,
            declare=[],  # the queue is there
            producer=self._producer,
            retry=False,
            ignore_result=True,
        )


def _wait_for_zero() -> float:
    print("waiting", flush=True)
    line = sys.stdin.readline()
    if not line:
        raise SystemExit(1)  # the recorder is gone
    return float(line.split()[1])


def main() -> None:
    """Publish a scenario's messages."""
    scenario_path, csv_path = map(Path, sys.argv[1:])
    scenario = make_scenario(json.loads(scenario_path.read_text(encoding="utf-8")))
    with csv_path.open("w", encoding="utf-8", newline="") as file:
        publisher = Publisher(load_job(os.environ.pop(VARIABLE)), file)
        plan = messages(scenario)
        prepared = list(islice(plan, PREPARED))
        Pacer(scenario, publisher.publish, _wait_for_zero).run(chain(prepared, plan))
        print(f"done {publisher.count} {publisher.longest_s}", flush=True)


if __name__ == "__main__":
    main()
