"""What this machine can do, and what the record says about it."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from celerysim.record.errors import RecordError
from celerysim.record.machine import describe, pin, usable_cores


def test_too_many_cores_are_refused_with_reason_and_remedy() -> None:
    with pytest.raises(RecordError, match=r"8 cores, this one 2 .*machine\.cores=2"):
        pin(8, [0, 1], allow_fewer=False)


def test_fewer_cores_can_be_allowed() -> None:
    assert pin(8, [0, 1], allow_fewer=True) == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cannot pin here")
def test_a_bigger_machine_is_pinned_to_the_scenarios_cores() -> None:
    assert pin(2, [1, 3, 5, 7], allow_fewer=False) == [1, 3]


def test_all_cores_need_no_pinning() -> None:
    assert pin(4, [0, 1, 2, 3], allow_fewer=False) == []


@pytest.mark.parametrize(("text", "limit"), [("150000 100000", 1), ("max 100000", None)])
def test_a_containers_cpu_limit_counts(tmp_path: Path, text: str, limit: int | None) -> None:
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text(text)
    everything = len(usable_cores(tmp_path / "nothing"))
    assert len(usable_cores(tmp_path)) == (limit or everything)


def test_the_description_says_what_was_short_and_names_no_machine() -> None:
    pytest.importorskip("psutil")
    facts = describe([0, 1], [], wanted=8, loops=5)
    assert facts["fewer_cores_than_scenario"] is True
    assert (facts["usable_cores"], facts["worker_cores"], facts["scenario_cores"]) == (2, 2, 8)
    assert sys.version.split()[0] in facts["python"]
    name = socket.gethostname()
    assert name == "localhost" or name not in json.dumps(facts).replace(facts["kernel"], "")
