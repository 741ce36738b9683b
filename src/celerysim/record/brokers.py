"""Finding a broker, and what the recorder asks of it: queue lengths and cleaning up."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import Any, NamedTuple

from celerysim.record.errors import RecordError
from celerysim.record.job import Job
from celerysim.record.private_broker import PrivateBroker, find_server

LOCAL_URL = "amqp://guest:guest@127.0.0.1:5672//"
#: A value of ``broker_url``: start a private broker even if one answers on localhost.
PRIVATE = "private"
_TIMEOUT_S = 5.0
_SCHEMES = ("amqp", "amqps", "pyamqp")
_HOW_TO_GET_ONE = (
    "Remedy: install RabbitMQ (apt install rabbitmq-server; a private one is then started when "
    "needed), or start one (docker run -p 5672:5672 rabbitmq:3), or give the address of one "
    "(amqp://user:password@host:5672//)."
)


class QueueState(NamedTuple):
    """What a passive declare tells of a queue; how many are unacked it does not."""

    ready: int
    consumers: int


class Broker:
    """A RabbitMQ that answers.

    Args:
        url: Its address.
        private: The process, when it is ours to stop.
    """

    def __init__(self, url: str, private: PrivateBroker | None = None) -> None:
        self.url = url
        self.private = private
        self._connection: Any = None
        connection = self._open()
        properties = connection.connection.server_properties
        self.product = f"{properties.get('product', '?')} {properties.get('version', '?')}"
        self.errors: tuple[type[BaseException], ...] = (
            OSError,
            *connection.connection_errors,
            *connection.channel_errors,
        )

    def queue_state(self, job: Job) -> QueueState | None:
        """Length of the recording's queue; None when there is no such queue.

        Raises:
            self.errors: the broker does not answer (any more).
        """
        queue = import_module("kombu").Queue(job.queue)
        try:
            channel = self._open().default_channel
            _, ready, consumers = queue(channel).queue_declare(passive=True)
        except import_module("amqp.exceptions").NotFound:
            return None
        return QueueState(ready, consumers)

    def connection(self) -> Any:
        """A new, open ``kombu.Connection`` that gives up after some seconds.

        Raises:
            Exception: whatever the transport raises when nobody answers.
        """
        limits = {"read_timeout": _TIMEOUT_S, "write_timeout": _TIMEOUT_S}
        connection = import_module("kombu").Connection(
            self.url, connect_timeout=_TIMEOUT_S, heartbeat=0, transport_options=limits
        )
        connection.ensure_connection(max_retries=1, interval_start=0)
        return connection

    def remove(self, job: Job) -> None:
        """Delete the recording's queues and exchanges, those still there."""
        with contextlib.suppress(*self.errors):
            channel = self._open().default_channel
            for queue in (job.queue, job.pidbox):
                channel.queue_delete(queue)  # RabbitMQ: no error if there is none
            for exchange in job.exchanges:
                channel.exchange_delete(exchange)

    def close(self) -> None:
        """Close the connection and stop a private broker."""
        if self._connection is not None:
            with contextlib.suppress(Exception):  # it may be gone, in any state
                self._connection.collect(socket_timeout=1)
        if self.private is not None:
            self.private.stop()

    def _open(self) -> Any:
        if self._connection is None or not self._connection.connected:
            self._connection = self.connection()
        return self._connection


def find_broker(url: str | None) -> Broker:
    """The broker to use: of ``url``, else on localhost, else a private one.

    Raises:
        RecordError: there is none; says how to get one.
    """
    if url == PRIVATE:
        return _start_private()
    if url is not None:
        if url.partition("://")[0] not in _SCHEMES:
            raise RecordError(
                f"broker {_mask(url)}: recording needs RabbitMQ. Remedy: give an address "
                "amqp://user:password@host:5672//."
            )
        try:
            return Broker(url)
        except Exception as error:
            raise RecordError(
                f"broker {_mask(url)} does not answer: {error}. {_HOW_TO_GET_ONE}"
            ) from error
    try:
        return Broker(LOCAL_URL)
    except Exception:
        return _start_private()


def _start_private() -> Broker:
    server = find_server()
    if server is None:
        raise RecordError(
            f"no broker: none answers on 127.0.0.1:5672 and there is no program rabbitmq-server. "
            f"{_HOW_TO_GET_ONE}"
        )
    private = PrivateBroker(server)
    try:
        private.wait_until_up()
        return Broker(private.url, private)
    except BaseException:
        private.stop()
        raise


def _mask(url: str) -> str:
    """The address without its password."""
    return str(import_module("kombu.utils.url").maybe_sanitize_url(url))
