"""Celery's events of a worker (``-E``), written down as they come."""

from __future__ import annotations

import contextlib
import json
import socket
from importlib import import_module
from typing import Any, TextIO

from celerysim.record.job import Job


class EventCapture:
    """Writes every event of the recording's worker, one JSON object a line.

    Args:
        connection: An open ``kombu.Connection``, closed with this.
        job: The recording.
        file: Where to write.
    """

    def __init__(self, connection: Any, job: Job, file: TextIO) -> None:
        kombu = import_module("kombu")
        self._file = file
        self._connection = connection
        exchange = kombu.Exchange(job.event_exchange, type="topic", auto_delete=True)
        queue = kombu.Queue(
            f"{job.queue}.eventlog", exchange, routing_key="#", exclusive=True, auto_delete=True
        )
        consumer = kombu.Consumer(connection, [queue], callbacks=[self._write], no_ack=True)
        consumer.consume()

    def poll(self) -> None:
        """Write what has arrived; does not wait."""
        with contextlib.suppress(socket.timeout):
            while True:
                self._connection.drain_events(timeout=0.001)

    def close(self) -> None:
        """Close the connection; the queue goes with it."""
        with contextlib.suppress(Exception):  # the broker may be gone, in any state
            self._connection.collect(socket_timeout=1)

    def _write(self, body: Any, message: Any) -> None:
        for event in body if isinstance(body, list) else [body]:
            self._file.write(json.dumps(event) + "\n")
        self._file.flush()
