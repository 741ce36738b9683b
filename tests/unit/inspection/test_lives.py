"""Children's births and deaths, inferred from a log, against a simulation that knows them."""

import numpy as np
import pytest

from celerysim import load_scenario, simulate
from celerysim.export import write_worker_log
from celerysim.inspection import inspect, read_observed
from celerysim.inspection.lives import lives

#: A scale event's line comes before the fork and the reaping it causes: seconds.
FORK_S, REAP_S, START_S = 0.14, 0.14, 0.25


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["worker.autoscale=[4,2]"],
        ["worker.autoscale=[8,0]", "producer.publish_s=0.3"],
        ["worker.autoscale=[4,3]", "producer.publish_s=0.13"],
        ["worker.autoscale=[4,4]", "worker.max_tasks_per_child=7"],
        ["worker.max_tasks_per_child=10"],
    ],
)
def test_births_and_deaths_are_those_of_the_simulation(changes, tmp_path):
    truth = simulate(load_scenario("puzzle", changes))
    write_worker_log(truth, tmp_path / "worker.log")
    log = read_observed(tmp_path / "worker.log")
    inferred = lives(log).children
    count = min(len(inferred), truth.forks)
    assert truth.forks - count <= 4  # forked last, they never logged a line
    known, found = truth.children[:count], inferred[:count]
    recycled = any("max_tasks" in change for change in changes)
    assert np.abs(found["forked"] - known["forked"]).max() < (START_S if recycled else FORK_S)
    gone = ~np.isnan(known["exited"]) & ~np.isnan(found["exited"])
    assert np.count_nonzero(np.isnan(known["exited"]) != np.isnan(found["exited"])) <= 1
    assert np.abs(found["exited"] - known["exited"])[gone].max() < REAP_S
    idle = [inspect(history).summary["child_idle_share"] for history in (log, truth)]
    assert idle[0] == pytest.approx(idle[1], abs=0.02)


def test_a_scale_down_kills_the_oldest_that_are_never_seen_again(worker_log):
    log = worker_log("{min=1, max=4} (prefork)")
    log.scaled(1, 3)
    for child in (1, 2, 3, 4):
        log.task(2, 2, 1, child)
    log.scaled(40, -2)
    log.task(50, 50, 1, 2)  # so it was not the second
    log.task(50, 50, 1, 4)
    found = lives(log.trace())
    assert found.killed == {1: (1, 3)}
    assert found.children["forked"].tolist() == [0, 1, 1, 1]
    np.testing.assert_equal(found.children["exited"], [40, np.nan, 40, np.nan])


def test_a_restart_ends_all_children_and_numbers_begin_anew(worker_log):
    log = worker_log("2 (prefork)")
    for start in (0, 100):
        for child in (1, 2):
            log.task(start + 1, start + 1, 1, child)
    log.main(99, "celery@h ready.")
    found = lives(log.trace())
    assert found.children["number"].tolist() == [1, 2, 1, 2]
    assert found.children["forked"].tolist() == [0, 0, 99, 99]
    np.testing.assert_equal(found.children["exited"], [99, 99, np.nan, np.nan])
    assert found.rows.tolist() == [0, 1, 2, 3]


def test_a_child_that_exited_is_replaced_when_the_log_says_so(worker_log):
    log = worker_log("2 (prefork)")
    log.task(1, 1, 1, 1)
    log.task(1, 1, 1, 2)
    log.main(5, "Process 'ForkPoolWorker-1' pid:7 exited with 'signal 9 (SIGKILL)'", "ERROR")
    log.task(6, 6, 1, 3)
    log.task(6, 6, 1, 2)
    children = lives(log.trace()).children
    assert children["forked"].tolist() == [0, 0, 6]
    np.testing.assert_equal(children["exited"], [5, np.nan, np.nan])


def test_without_the_worker_s_start_children_are_born_when_first_at_work(worker_log):
    log = worker_log("2 (prefork)")
    log.task(3, 4, 1, 7)
    log.task(3, 5, 1, 8)
    log.task(9, 9, 1, 7)
    trace = read_observed(log.lines()[4:])  # no banner, no "ready."
    assert lives(trace).children["forked"].tolist() == [1, 2]


def test_children_of_several_workers_live_as_long_as_they_are_seen(worker_log):
    one, other = worker_log("{min=1, max=2} (prefork)"), worker_log("{min=1, max=2} (prefork)")
    for log in (one, other):
        log.task(1, 1, 1, 1)
        log.task(2, 2, 1, 2)
        log.scaled(40, -1)
    other.main(50, "mingle: all alone")
    lines = [f"w_1 | {line}" for line in one.lines()] + [f"w_2 | {line}" for line in other.lines()]
    found = lives(read_observed(lines))
    assert found.inferred
    assert found.children["exited"].tolist() == [2, 3, 2, 3]
    assert found.rows.tolist() == [-1] * 4
