"""Finding a broker, without one: what is refused, and how the remedy reads."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from celerysim.record import brokers, extras, private_broker
from celerysim.record.errors import MissingExtraError, RecordError
from celerysim.scenario import load_scenario


@pytest.fixture
def dead_url() -> str:
    """An address nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return f"amqp://guest:secret@127.0.0.1:{port}//"


def test_a_given_broker_that_does_not_answer(dead_url: str) -> None:
    pytest.importorskip("kombu")
    with pytest.raises(RecordError, match=r"does not answer.*Remedy: install RabbitMQ") as caught:
        brokers.find_broker(dead_url)
    assert "secret" not in str(caught.value)


def test_a_broker_of_another_kind_is_refused() -> None:
    pytest.importorskip("kombu")
    with pytest.raises(RecordError, match="needs RabbitMQ") as caught:
        brokers.find_broker("redis://:secret@localhost:6379/0")
    assert "secret" not in str(caught.value)


def test_no_broker_at_all_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, dead_url: str
) -> None:
    pytest.importorskip("kombu")
    monkeypatch.setattr(brokers, "LOCAL_URL", dead_url)
    monkeypatch.setattr(brokers, "find_server", lambda: None)
    with pytest.raises(RecordError, match=r"no broker: .*apt install rabbitmq-server"):
        brokers.find_broker(None)


def test_a_server_that_does_not_start_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "rabbitmq-server"
    script.write_text("#!/bin/sh\necho cannot boot\nexit 9\n")
    script.chmod(0o755)
    monkeypatch.setattr(brokers, "find_server", lambda: script)
    with pytest.raises(RecordError, match=r"exit status 9\).*Remedy"):
        brokers.find_broker(brokers.PRIVATE)


def test_free_ports_differ() -> None:
    assert len(set(private_broker._free_ports(3))) == 3


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_installed", lambda name: name not in ("psutil", "gevent"))
    extras_needed = r"needs psutil, gevent.*pip install 'celerysim\[record\]'"
    with pytest.raises(MissingExtraError, match=extras_needed):
        extras.require("gevent")
    with pytest.raises(MissingExtraError, match=r"needs psutil, not"):
        extras.require("prefork")


def test_versions_name_celery_and_us() -> None:
    pytest.importorskip("celery")
    assert {"celerysim", "python", "celery", "kombu"} <= extras.versions().keys()


def test_too_many_cores_are_refused_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("psutil")
    from celerysim.record import record, recorder

    monkeypatch.setattr(recorder, "find_broker", lambda url: pytest.fail("looked for a broker"))
    folder = tmp_path / "r"
    with pytest.raises(RecordError, match="the scenario's machine has 4096 cores"):
        record(load_scenario("puzzle", ["machine.cores=4096"]), folder)
    assert not folder.exists()
