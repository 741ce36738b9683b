"""Findings about the worker itself and its children, on invented logs that show them."""

from collections import Counter

from celerysim.inspection.findings import worker


def test_restarts_without_a_shutdown(steady):
    log = steady()
    log.main(110, "celery@h ready.")
    log.bare(120, "worker: Warm shutdown (MainProcess)")
    log.main(121, "celery@h ready.")
    found = worker.restarts(log.view())
    assert found.text.startswith("the worker celery@h became ready 3 times in ")
    assert found.text.endswith("before 1 of 2 restarts there is no shutdown line")
    assert "out of memory" in found.remedy
    assert log.found() == {"restarts"}


def test_lost_connections(steady):
    log = steady()
    for time in (20, 50):
        log.main(time, "consumer: Connection to broker lost. Trying to re-establish...", "WARNING")
    found = worker.connection_losses(log.view())
    assert found.text == "the connection to the broker broke twice, first 20.0 s in"
    assert log.found() == {"connection_losses"}


def test_killed_children_and_what_their_signal_means(steady):
    log = steady()
    text = "Process 'ForkPoolWorker-3' pid:11 exited with 'signal 9 (SIGKILL)'"
    log.main(99.9, text, "ERROR")
    found = worker.killed_children(log.view())
    assert found.text.startswith("1 child exited abnormally, 1 of them with signal 9 (SIGKILL)")
    assert "out of memory" in found.remedy
    assert log.found() == {"killed_children"}


def recycling(worker_log, tasks, limit=None):
    """Two processes; children leave after ``tasks`` tasks each."""
    log = worker_log("2 (prefork)")
    child, done = [1, 2], Counter()
    for k in range(120):
        c = child[k % 2]
        log.task(k * 0.5, k * 0.5, 0.9, c)
        done[c] += 1
        if done[c] == tasks:
            if limit:
                text = f"exceeding memory limit ({limit + 500}KiB / {limit}KiB)"
                process = f"ForkPoolWorker-{c}"
                log.line(k * 0.5 + 0.9, process, f"child process exiting after {text}", "WARNING")
            child[k % 2] = max(child) + 1
    return log


def test_children_that_leave_for_their_memory(worker_log):
    found = worker.memory_recycling(recycling(worker_log, 1, limit=150_000).view())
    assert found.numbers["recycled"] == 120
    assert found.numbers["tasks_each_median"] == 1
    assert "well above 150500" in found.remedy
    found = worker.memory_recycling(recycling(worker_log, 10, limit=150_000).view())
    assert found.text == (
        "12 children left for exceeding the memory limit of 146 MiB, after 10 tasks in the median "
        "with 147 MiB then"
    )


def test_children_that_leave_after_a_number_of_tasks(worker_log):
    log = recycling(worker_log, 10)
    found = worker.task_recycling(log.view())
    assert found.text.endswith("100 % of them after 10 tasks: --max-tasks-per-child")
    assert found.numbers["tasks_each"] == 10
    assert found.remedy.startswith("a child works 9.00 s before it is forked anew")
    assert "memory_recycling" not in log.found()
