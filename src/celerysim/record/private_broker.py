"""A RabbitMQ of our own: free ports, own data, own node name; gone when stopped."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
import uuid
from pathlib import Path

from celerysim.record.errors import RecordError
from celerysim.record.processes import Leashed, describe

#: Seconds a node may take to start; 5 to 10 are usual.
START_S = 90.0
#: Where RabbitMQ's own script may be. Debian's /usr/sbin/rabbitmq-server is a wrapper that changes
#: the user and with it loses our environment: the script it wraps comes first.
_PLACES = (
    "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "/usr/local/sbin/rabbitmq-server",
    "/opt/homebrew/sbin/rabbitmq-server",
    "/usr/sbin/rabbitmq-server",
)


def find_server() -> Path | None:
    """RabbitMQ's start script, None if it is not installed."""
    found = shutil.which("rabbitmq-server")
    for place in (*_PLACES, found):
        if place and os.access(place, os.X_OK):
            return Path(place)
    return None


class PrivateBroker:
    """A ``rabbitmq-server`` that ends with this process, its data with it.

    Args:
        server: RabbitMQ's start script.
    """

    def __init__(self, server: Path) -> None:
        self.port, distribution, epmd = _free_ports(3)
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        folder = Path(tempfile.mkdtemp(prefix="celerysim-broker-"))
        self._log = folder / "output"
        (folder / "rabbitmq.conf").write_text(f"listeners.tcp.local = 127.0.0.1:{self.port}\n")
        (folder / "enabled_plugins").write_text("[].\n")
        # An empty file instead of the system's, which would name the system's node.
        (folder / "rabbitmq-env.conf").write_text("")
        env = {key: value for key, value in os.environ.items() if not key.startswith("RABBITMQ_")}
        env |= {
            "HOME": str(folder),  # Erlang's cookie
            "ERL_EPMD_PORT": str(epmd),  # an epmd of our own: it dies on our leash
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"celerysim-{uuid.uuid4().hex[:8]}@localhost",
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "config"),
            "RABBITMQ_SCHEMA_DIR": str(folder / "schema"),
            "RABBITMQ_DIST_PORT": str(distribution),
            "ERL_FLAGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        with self._log.open("wb") as output:
            self._process = Leashed(
                [str(server)], env=env, cwd=folder, stdout=output, remove=folder
            )

    @property
    def running(self) -> bool:
        """Whether the server's process is there."""
        return self._process.status is None

    def wait_until_up(self) -> None:
        """Wait until it takes connections.

        Raises:
            RecordError: it ended, or takes too long; quotes what it said.
        """
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if not self.running:
                raise RecordError(
                    f"the private rabbitmq-server ended at its start "
                    f"({describe(self._process.status or 0)}): {self._output()} Remedy: see that "
                    "rabbitmq-server runs here at all, or give a broker's address."
                )
            if _answers(self.port):
                return
            time.sleep(0.2)
        raise RecordError(
            f"the private rabbitmq-server does not answer after {START_S:g} s: {self._output()} "
            "Remedy: give a broker's address."
        )

    def stop(self) -> None:
        """Kill it; its data is deleted, there is nothing to save."""
        self._process.kill()

    def _output(self) -> str:
        try:
            return " ".join(self._log.read_text(errors="replace").split())[-400:]
        except OSError:
            return ""


def _free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _answers(port: int) -> bool:
    """Whether an AMQP server takes connections: it greets a protocol header with a frame."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2.0) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            return connection.recv(1) == b"\x01"
    except OSError:
        return False
