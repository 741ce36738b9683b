"""Live tests run real Celery on a real broker, only when asked to: CELERYSIM_LIVE=1.

Asked to, a missing broker or package is a failure, never a skip.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("CELERYSIM_LIVE") == "1":
        return
    skip = pytest.mark.skip(reason="needs real Celery and RabbitMQ; run with CELERYSIM_LIVE=1")
    for item in items:
        if item.get_closest_marker("live"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def broker_url() -> Iterator[str]:
    """A broker for the whole session: RabbitMQ on localhost, else a private one."""
    from celerysim.record.brokers import find_broker

    broker = find_broker(None)
    yield broker.url
    broker.close()


@pytest.fixture
def nothing_left(
    broker_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Whatever the test starts is gone soon after it: processes, queues, exchanges, folders."""
    mark = f"celerysim-test-{uuid.uuid4()}"
    monkeypatch.setenv("CELERYSIM_TEST", mark)
    folders = _broker_folders()
    yield
    deadline = time.monotonic() + 10
    while left := [*_processes(mark), *(_broker_folders() - folders)]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.1)
    for path in tmp_path.glob("*/record.json"):
        assert not _broker_objects(broker_url, json.loads(path.read_text())["run"])


def _processes(mark: str) -> list[str]:
    """Command lines of the processes that inherited ``mark`` in their environment."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("CELERYSIM_TEST") == mark:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def _broker_objects(broker_url: str, run: str) -> list[str]:
    """The queues and exchanges of a recording that the broker still has."""
    import amqp
    import kombu

    from celerysim.record.job import Job

    job = Job(run, broker_url, ())
    found = []
    with kombu.Connection(broker_url) as connection:
        for kind, names in (
            ("queue", (job.queue, job.pidbox, f"{job.queue}.eventlog")),
            ("exchange", job.exchanges),
        ):
            for name in names:
                try:
                    with connection.channel() as channel:
                        if kind == "queue":
                            channel.queue_declare(name, passive=True)
                        else:
                            channel.exchange_declare(name, "direct", passive=True)
                    found.append(name)
                except amqp.NotFound:
                    continue
    return found


def _broker_folders() -> set[str]:
    """Data folders of private brokers."""
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("celerysim-")}
