"""Real worker logs of Celery 5.6.3 with the prefork pool, read beside an independent count."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from celerysim.history import Outcome
from celerysim.trace import read_log

LOGS = sorted((Path(__file__).parents[4] / "shared/reference/prefork_logs").glob("*.log.gz"))
pytestmark = pytest.mark.skipif(not LOGS, reason="the reference logs are not here")


@pytest.fixture(scope="module", params=LOGS, ids=lambda path: path.name.split(".")[0])
def pair(request):
    return read_log(request.param), gzip.decompress(request.param.read_bytes()).decode()


def test_no_line_is_unexplained(pair):
    trace, text = pair
    counts = trace.line_counts
    assert (counts.unexplained, counts.output, counts.cut) == (0, 0, 0)
    assert counts.total == text.count("\n")
    lost = trace.count(Outcome.LOST)
    assert [warning[:12] for warning in trace.warnings] == [f"{lost} lost tasks"][: lost > 0]


def test_tasks_and_scale_lines_equal_a_plain_search(pair):
    trace, text = pair
    received = re.findall(r"INFO/MainProcess\] Task .*\[(.*)\] received$", text, re.M)
    assert list(trace.ids) == received
    ends = re.findall(r"ForkPoolWorker-(\d+)\] Task .*\[(.*)\] succeeded in ([\d.]+)s", text)
    assert trace.count(Outcome.SUCCEEDED) == len(ends)
    lost = len(re.findall(r"MainProcess\] Task handler raised error: WorkerLostError", text))
    assert trace.count(Outcome.LOST) == lost
    assert len(trace.tasks) == len(ends) + lost
    scaling = re.findall(r"Scaling (up|down) (\d+) processes", text)
    changes = [int(number) * (1 if way == "up" else -1) for way, number in scaling]
    assert trace.scale_events["change"].tolist() == changes
    rows = dict(zip(trace.ids, trace.tasks, strict=True))
    for child, id, runtime in ends:
        row = rows[id]
        assert row["child"] == int(child)
        assert row["finished"] - row["started"] == pytest.approx(float(runtime), abs=2e-6)
    highest = max(int(child) for child, _, _ in ends)
    assert trace.children["number"].tolist() == list(range(1, max(highest, trace.forks) + 1))
    assert trace.children["tasks"].sum() == len(ends)


def test_the_banner_gives_the_settings(pair):
    trace, _ = pair
    kind, size = re.search(r"_(autoscale|concurrency)_(\d)_", trace.source).groups()
    size = int(size)
    expected = [size, size // 2] if kind == "autoscale" else size
    assert trace.settings[kind] == expected
    assert (trace.settings["pool"], trace.settings["broker_transport"]) == ("prefork", "amqp")


def test_the_target_follows_the_rule_of_the_autoscaler(pair):
    trace, _ = pair
    if "autoscale" not in trace.settings:
        assert len(trace.scale_events) == 0
        return
    highest, lowest = trace.settings["autoscale"]
    events = trace.scale_events
    after = events["processes"] + events["change"]
    assert np.array_equal(after, np.clip(events["reserved"], lowest, highest))
