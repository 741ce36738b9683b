"""Each finding on an invented log that shows it, and on one that nearly does."""

from pathlib import Path

import pytest

from celerysim.inspection import read_observed
from celerysim.inspection.findings import FINDINGS, ends, pool, scaling, waits, worker
from celerysim.inspection.view import View


def test_a_quiet_log_has_no_findings(steady):
    assert steady().found() == set()


def test_an_empty_history_has_no_findings(worker_log):
    assert worker_log().found() == set()


# --- scaling ---


def churning(worker_log, period=30.0, cycles=4, back_s=0.005):
    """--autoscale=4,1: grows to 4, then loses and regains 3 every ``period`` seconds."""
    log = worker_log("{min=1, max=4} (prefork)")
    child = 1
    for k in range(cycles + 1):
        at = 1 + k * period
        if k:
            log.received(at, id=f"first-{k}")
            log.scaled(at, -3)
        log.scaled(at + back_s, 3)
        for step in range(10):  # the oldest three are killed each time
            for c in range(child, child + 4):
                when = at + 0.1 + step * (period - 1) / 10
                log.task(when, when + 0.001, (period - 1) / 20, child=c)
        child += 3
    return log


def test_churn_is_told_with_its_period_and_the_forks_that_replaced_a_child(worker_log):
    log = churning(worker_log)
    found = scaling.churn(log.view())
    assert found.text == (
        "the pool shrinks and regrows every 30.0 s; 75 % of the 16 forks replaced a child killed "
        "under 10 ms before"
    )
    assert found.numbers["cycles"] == 4
    assert found.numbers["replaced"] == 12
    assert found.numbers["replaced_after_median_s"] == pytest.approx(0.005)
    assert "AUTOSCALE_KEEPALIVE" in found.remedy
    assert "--concurrency=4 instead of --autoscale=4,1" in found.remedy


def test_churn_without_a_period_is_counted(worker_log):
    log = worker_log("{min=1, max=8} (prefork)")
    log.scaled(1, 2)
    for at in (40, 100, 260):
        log.scaled(at, -1)
        log.scaled(at + 0.3, 1)
    log.task(270, 270, 1, child=6)
    found = scaling.churn(log.view())
    assert found.text.startswith("the pool shrinks and regrows 3 times in 271.0 s; 50 % of the 6")
    assert found.numbers["regular"] is False
    assert found.remedy.endswith("--autoscale=8,3, which keeps the 3 it grows back to anyway")


@pytest.mark.parametrize("back_s", [15.0, 29.0])
def test_a_pool_that_shrinks_for_long_does_not_churn(worker_log, back_s):
    assert "churn" not in churning(worker_log, back_s=back_s).found()


def test_shrinking_once_is_no_churn(worker_log):
    assert "churn" not in churning(worker_log, cycles=1).found()


def lost(log, time, job):
    error = f"WorkerLostError('Worker exited prematurely: signal 15 (SIGTERM) Job: {job}.')"
    log.main(time, f"Task handler raised error: {error}", "ERROR")


def with_a_lost_task(worker_log, after_s):
    log = worker_log("{min=1, max=4} (prefork)")
    log.scaled(0.5, 3)
    log.task(1, 1.001, 1, child=1)
    log.task(1.2, 1.201, 1, child=2)
    log.received(40, "mail", id="poor")
    log.scaled(40.01, -3)
    lost(log, 40.01 + after_s, job=2)
    return log


def test_a_task_lost_with_a_child_that_a_scale_down_killed(worker_log):
    found = scaling.lost_at_scale_down(with_a_lost_task(worker_log, 0.2).view())
    assert found.text == (
        "scale-downs killed the children of 1 of 1 lost task, declared lost up to 200 ms later "
        "(1 of 1 scale-down did that)"
    )
    assert "task_reject_on_worker_lost" in found.remedy


def test_a_task_lost_long_after_a_scale_down_is_not_put_down_to_it(worker_log):
    assert "lost_at_scale_down" not in with_a_lost_task(worker_log, 5).found()


@pytest.mark.parametrize(
    ("received", "started", "exposed"),
    [
        (39.98, 40.1, True),  # handed to a child of the shrunk pool
        (39.98, 39.99, False),  # had begun
        (39.9, 40.1, False),  # that long ago it had been accepted or waited for another reason
        (39.98, 45.0, False),  # there was no child for it
    ],
)
def test_a_task_just_handed_over_at_a_scale_down_is_a_risk(worker_log, received, started, exposed):
    log = worker_log("{min=1, max=4} (prefork)")
    log.scaled(0.5, 3)
    log.task(received, started, 1)
    log.received(40, id="trigger")
    log.scaled(40.001, -2)
    found = scaling.exposed_at_scale_down(log.view())
    assert (found is not None) is exposed
    if found:
        assert found.numbers["exposed"] == 1
        assert found.numbers["closest_s"] == pytest.approx(0.021)


def test_the_message_that_triggers_a_scale_down_is_not_at_risk(worker_log):
    log = worker_log("{min=1, max=4} (prefork)")
    log.scaled(0.5, 3)
    log.task(40, 40.1, 1)
    log.scaled(40.001, -2)
    assert scaling.exposed_at_scale_down(log.view()) is None


# --- waits ---


def test_a_slow_name_that_blocks_the_others_is_named(worker_log):
    log = worker_log("2 (prefork)")
    for k in range(5):
        base = k * 100.0
        for child in (1, 2):
            log.task(base, base + 0.001, 60, child, "report.build")
        for j in range(20):  # received behind the two reports, run when they are done
            log.task(base + 1, base + 60.1 + j // 2 * 0.5, 0.5, 1 + j % 2, "mail.send")
    found = waits.blocking_name(log.view())
    assert found.text.startswith(
        "report.build runs for 60.0 s in the median, 120 times the others' 500 ms; 100 other tasks "
        "waited 59.0 s in the median while it held half of a full pool or more"
    )
    assert "task_routes" in found.remedy
    assert found.numbers["name"] == "report.build"


def test_a_slow_name_beside_free_processes_blocks_nobody(worker_log):
    log = worker_log("4 (prefork)")
    for k in range(5):
        log.task(k * 100.0, k * 100 + 0.001, 60, 1, "report.build")
        for j in range(20):
            log.task(k * 100 + j * 4.0, k * 100 + j * 4.0 + 0.001, 0.5, 2, "mail.send")
    assert "blocking_name" not in log.found()


def test_equal_names_block_nobody(worker_log):
    log = worker_log("1 (prefork)")
    for k in range(30):
        log.task(0.0, k * 2.0, 2, 1, "one" if k % 2 else "other")
    assert "blocking_name" not in log.found()


def test_tasks_that_wait_beside_an_idle_process(worker_log):
    log = worker_log("2 (prefork)")
    for k in range(20):
        log.task(k * 10.0, k * 10 + 3.0, 1)
    found = waits.waits_while_idle(log.view())
    assert found.text == (
        "20 tasks of 20 waited inside the worker for 3.00 s in the median while a process was idle "
        "(100 % of all waiting there)"
    )
    assert "-O fair" in found.remedy


def test_tasks_that_wait_for_a_busy_pool_do_not_count(worker_log):
    log = worker_log("1 (prefork)")
    for k in range(20):
        log.task(k * 2.0, k * 2 + (2.0 if k else 0.0), 2)
    assert "waits_while_idle" not in log.found()


def test_with_several_workers_the_remedy_is_a_smaller_prefetch(worker_log):
    one, other = worker_log("1 (prefork)"), worker_log("1 (prefork)")
    for k in range(20):
        one.task(0.0, k * 3.0, 3)
    lines = [f"w_1 | {line}" for line in one.lines()] + [f"w_2 | {line}" for line in other.lines()]
    found = waits.waits_while_idle(View(read_observed(lines)))
    assert found.numbers["workers"] == 2
    assert "worker_prefetch_multiplier=1" in found.remedy


def test_deep_prefetch(worker_log):
    log = worker_log("2 (prefork)")
    for k in range(40):
        log.task(0.0, k // 2 * 1.0, 1, 1 + k % 2)
    found = waits.deep_prefetch(log.view())
    assert found.numbers["waiting_max"] == 38
    assert found.text.startswith("up to 38 tasks waited inside the worker for 2 processes, 9.50 s")
    assert "worker_prefetch_multiplier=1" in found.remedy


def test_prefetching_one_task_a_process_is_not_deep(worker_log):
    log = worker_log("2 (prefork)")
    for k in range(40):
        log.task(max(k // 2 - 1, 0) * 1.0, k // 2 * 1.0, 1, 1 + k % 2)
    assert "deep_prefetch" not in log.found()


# --- the pool ---


def test_idle_processes(worker_log):
    log = worker_log("8 (prefork)")
    for k in range(100):
        log.task(k * 2.0, k * 2.0, 1, 1 + k % 2)
    found = pool.idle(log.view())
    assert found.numbers["idle_share"] == pytest.approx(1 - 100 / (8 * 199))
    assert found.numbers["busy_max"] == 1
    assert found.remedy.startswith("--concurrency 1 instead of 8")


def test_a_short_log_says_nothing_of_a_pool(worker_log):
    log = worker_log("8 (prefork)")
    for k in range(20):
        log.task(k * 2.0, k * 2.0, 1)
    assert "idle" not in log.found()


def test_a_full_pool(worker_log):
    log = worker_log("2 (prefork)")
    for k in range(100):
        log.task(max(k // 2 - 0.5, 0) * 2.0, k // 2 * 2.0, 2, 1 + k % 2)
    found = pool.all_busy(log.view())
    assert found.numbers["all_busy_share"] == pytest.approx(1.0)
    assert found.numbers["waiting_mean"] == pytest.approx(0.98)
    assert log.found() == {"all_busy"}


# --- how tasks end ---


def test_failures_with_the_most_frequent_error(steady):
    log = steady()
    for k in range(20):
        log.failed(k * 5.0, k * 5.0 + 0.1, "ConnectionError('boom')", "shop.pay")
    log.failed(50.0, 50.1, "ValueError('x')")
    found = ends.failures(log.view())
    assert found.text == (
        "21 of 221 tasks that ended failed (10 %), most of them shop.pay (20); the most frequent "
        "error is ConnectionError in 20"
    )
    assert log.found() == {"failures"}


def test_few_failures_are_no_finding(steady):
    log = steady()
    for k in range(5):
        log.failed(k * 5.0, k * 5.0 + 0.1, "ValueError('x')")
    assert log.found() == set()


def test_retries(steady):
    log = steady()
    for k in range(20):
        id = log.received(k * 5.0, "shop.pay")
        log.line(k * 5.0 + 0.1, "ForkPoolWorker-1", f"Task shop.pay[{id}] retry: Retry in 10s")
    found = ends.retries(log.view())
    assert found.text.startswith("20 of 220 attempts ended in a retry (9 %), most of them of shop")
    assert log.found() == {"retries"}


@pytest.mark.parametrize(
    ("transport", "word"), [("redis", "visibility_timeout"), ("amqp", "consumer_timeout")]
)
def test_redeliveries_and_the_transport_s_remedy(steady, transport, word):
    log = steady(transport=transport)
    for time in (10, 30, 60):
        log.received(time, id="again")
    log.line(70, "ForkPoolWorker-1", "Task a.b[again] succeeded in 1.0s: None")
    found = ends.redeliveries(log.view())
    assert found.numbers == {"redelivered": 1, "redeliveries": 2, "tasks": 201}
    assert word in found.remedy
    assert log.found() == {"redeliveries"}


def test_a_task_that_never_ends(steady):
    log = steady()
    log.received(1, "shop.hang")
    log.main(100, "mingle: all alone")
    found = ends.unfinished(log.view())
    assert found.text.startswith("1 task had not ended when the log does, received up to 1")
    assert found.numbers["name"] == "shop.hang"


def test_tasks_at_work_at_the_end_are_not_stuck(steady):
    log = steady()
    log.received(100, "late")
    assert log.found() == set()


# --- all of them ---


def test_every_finding_has_a_docstring_and_is_listed_once():
    assert len(set(FINDINGS)) == len(FINDINGS)
    assert all(find.__doc__ for find in FINDINGS)
    modules = (scaling, waits, pool, ends, worker)
    public = {
        name
        for module in modules
        for name, value in vars(module).items()
        if getattr(value, "__annotations__", {}).get("return") == "Finding | None"
    }
    assert public == {find.__name__ for find in FINDINGS}


def test_every_finding_is_in_the_documentation():
    text = (Path(__file__).parents[3] / "docs" / "inspect.md").read_text(encoding="utf-8")
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert listed == [find.__name__ for find in FINDINGS]
