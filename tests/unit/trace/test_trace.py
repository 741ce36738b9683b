"""What a trace is made of: rows, children, scale events, settings, warnings, errors."""

import gzip
import io
import json
from datetime import datetime

import numpy as np
import pytest

from celerysim.errors import LogError
from celerysim.history import Level, Outcome, Trigger
from celerysim.trace import read_events, read_log

BANNER = """
 -------------- celery@h v5.6.3 (recovery)
- *** --- * --- .> transport:   redis://localhost:6379/0
- *** --- * --- .> concurrency: {concurrency}
"""


def log(*records, concurrency="{min=1, max=4} (prefork)", ready=True):
    """Lines of a log from records "seconds process level? text", after a banner."""
    lines = BANNER.format(concurrency=concurrency).split("\n") if concurrency else []
    if ready:
        lines.append(stamped(0, "MainProcess", "celery@h ready."))
    return lines + [stamped(*record) for record in records]


def stamped(second, process, text, level="INFO"):
    minute, second = divmod(second, 60)
    stamp = f"2026-03-02 08:{15 + int(minute):02}:{int(second):02},{round(second % 1 * 1000):03}"
    return f"[{stamp}: {level}/{process}] {text}"


def received(second, id, name="a.b"):
    return (second, "MainProcess", f"Task {name}[{id}] received")


def succeeded(second, id, runtime, child=1, name="a.b"):
    return (second, f"ForkPoolWorker-{child}", f"Task {name}[{id}] succeeded in {runtime}s: None")


# --- tasks ---


def test_a_task_has_one_row_with_times_since_ready():
    trace = read_log(log(received(1, "x"), succeeded(3.5, "x", 2.25, child=2)))
    (row,) = trace.tasks
    assert (row["received"], row["started"], row["finished"]) == (1.0, 1.25, 3.5)
    assert np.isnan(row["sent"])
    assert (row["child"], row["outcome"], row["deliveries"]) == (2, Outcome.SUCCEEDED, 1)
    assert (trace.names, trace.ids) == (("a.b",), ("x",))
    assert trace.epoch == datetime(2026, 3, 2, 8, 15)
    assert (trace.start, trace.end) == (0.0, 3.5)
    assert trace.warnings == ()


def test_the_run_begins_with_ready_unless_tasks_come_before():
    early = stamped(-1, "MainProcess", "mingle: all alone")
    assert read_log([early, *log(received(1, "x"))]).start == 0.0
    before = stamped(-1, "MainProcess", "Task a.b[w] received")
    trace = read_log([before, *log(received(1, "x"))])
    assert (trace.start, trace.tasks["received"].tolist()) == (-1.0, [-1.0, 1.0])


def test_rows_are_in_order_of_reception():
    trace = read_log(
        log(
            received(1, "x", "f"), received(2, "y", "g"), succeeded(3, "y", 1), succeeded(4, "x", 1)
        )
    )
    assert trace.ids == ("x", "y")
    assert [trace.names[k] for k in trace.tasks["profile"]] == ["f", "g"]


def test_the_accepted_line_gives_the_start():
    trace = read_log(
        log(
            received(1, "x"),
            (1.5, "MainProcess", "Task accepted: a.b[x] pid:7", "DEBUG"),
            succeeded(4, "x", 2),
        )
    )
    assert trace.tasks["started"].tolist() == [1.5]


def test_without_ready_the_clock_starts_at_the_first_stamp():
    trace = read_log(log(received(1, "x"), succeeded(3, "x", 1), ready=False, concurrency=""))
    assert trace.tasks["received"].tolist() == [0.0]
    assert trace.settings == {}
    assert len(trace.levels) == 0
    assert [warning.split(":")[0] for warning in trace.warnings] == [
        "the log has no start-up banner",
        'the log has no "ready." line',
    ]


def test_an_end_logged_twice_is_one_end():
    echo = json.dumps({"event": "task_succeeded", "task_id": "x"})
    for ends in (
        (succeeded(3, "x", 1), (3.001, "ForkPoolWorker-1", echo)),
        ((3, "ForkPoolWorker-1", echo), succeeded(3.001, "x", 1.001)),
    ):
        trace = read_log(log(received(1, "x"), *ends))
        assert trace.tasks["started"].tolist() == [2.0]
        assert trace.children["tasks"].tolist() == [1]
        assert trace.level(Level.RESERVED)[1].tolist() == [0, 1, 0]


def test_a_failed_task():
    error = (2, "ForkPoolWorker-1", "Task a.b[x] raised unexpected: ValueError('x')", "ERROR")
    trace = read_log([*log(received(1, "x"), error), "Traceback (most recent call last):", "V"])
    (row,) = trace.tasks
    assert (row["outcome"], row["finished"]) == (Outcome.FAILED, 2.0)
    assert np.isnan(row["started"])
    assert trace.line_counts.unexplained == 0


def test_tasks_that_do_not_end_stay_reserved_or_running():
    trace = read_log(
        log(
            *(received(1, "x"), received(1, "y")),
            (1.5, "MainProcess", "Task accepted: a.b[y] pid:7", "DEBUG"),
        )
    )
    assert trace.tasks["outcome"].tolist() == [Outcome.RESERVED, Outcome.RUNNING]


def test_a_redelivered_task_keeps_its_row_and_tells_of_its_last_run():
    trace = read_log(
        log(received(1, "x"), succeeded(3, "x", 2), received(9, "x"), succeeded(12, "x", 2.5, 2))
    )
    (row,) = trace.tasks
    assert row["deliveries"] == 2
    assert (row["received"], row["started"], row["finished"]) == (9.0, 9.5, 12.0)
    assert trace.children["tasks"].tolist() == [1, 1]


def test_the_attempt_after_a_retry_has_a_row_of_its_own():
    retry = (2, "ForkPoolWorker-1", "Task a.b[x] retry: Retry in 1s: E()")
    trace = read_log(log(received(1, "x"), retry, received(3, "x"), succeeded(4, "x", 1)))
    assert trace.ids == ("x", "x")
    assert trace.tasks["outcome"].tolist() == [Outcome.RETRIED, Outcome.SUCCEEDED]
    assert trace.tasks["deliveries"].tolist() == [1, 1]


def test_a_revoked_task():
    revoked = (2, "MainProcess", "Discarding revoked task: a.b[x]")
    assert read_log(log(received(1, "x"), revoked)).count(Outcome.REVOKED) == 1


def test_a_hard_time_limit_fails_the_task_and_tells_its_start():
    trace = read_log(
        log(
            received(1, "x"),
            (5, "MainProcess", "Hard time limit (3s) exceeded for a.b[x]", "ERROR"),
            (5, "MainProcess", "Task handler raised error: TimeLimitExceeded(3)", "ERROR"),
        )
    )
    (row,) = trace.tasks
    assert (row["started"], row["finished"], row["outcome"]) == (2.0, 5.0, Outcome.FAILED)
    assert trace.warnings == ()


LOST = "Task handler raised error: WorkerLostError('Worker exited prematurely: signal 9{}')"


def test_a_lost_task_is_found_by_its_job_number():
    lost = (3, "MainProcess", LOST.format(" (SIGKILL) Job: 1."), "ERROR")
    trace = read_log(log(received(1, "x"), received(1, "y"), received(1, "z"), lost))
    assert trace.tasks["outcome"].tolist() == [Outcome.RESERVED, Outcome.LOST, Outcome.RESERVED]
    assert trace.tasks["finished"][1] == 3.0


def test_a_lost_task_is_found_by_the_child_that_had_accepted_it():
    trace = read_log(
        log(
            *(received(1, "x"), received(1, "y")),
            (1.5, "MainProcess", "Task accepted: a.b[y] pid:7", "DEBUG"),
            (
                2,
                "MainProcess",
                "Process 'ForkPoolWorker-2' pid:7 exited with 'exitcode 2'",
                "ERROR",
            ),
            (2, "MainProcess", LOST.format(""), "ERROR"),
        )
    )
    assert trace.tasks["outcome"].tolist() == [Outcome.RESERVED, Outcome.LOST]
    assert trace.tasks["child"].tolist() == [-1, 2]


def test_a_revoked_task_takes_no_job_number():
    lost = (3, "MainProcess", LOST.format(" Job: 1."), "ERROR")
    revoked = (1, "MainProcess", "Discarding revoked task: a.b[x]")
    trace = read_log(log(received(1, "x"), revoked, received(1, "y"), received(1, "z"), lost))
    assert trace.tasks["outcome"].tolist() == [Outcome.REVOKED, Outcome.RESERVED, Outcome.LOST]


def test_a_debug_log_shows_the_job_numbers_also_with_an_eta():
    apply = "TaskPool: Apply <function f at 0x7f> (args:('a.b', '{}', {{'lang': 'py'"
    trace = read_log(
        log(
            (1, "MainProcess", "Received task: a.b[y]  ETA:[2026-03-02 09:00:00+00:00] "),
            received(1, "x"),
            (1, "MainProcess", apply.format("x"), "DEBUG"),
            (2, "MainProcess", apply.format("y"), "DEBUG"),
            (3, "MainProcess", LOST.format(" Job: 1."), "ERROR"),
        )
    )
    assert trace.tasks["outcome"].tolist() == [Outcome.LOST, Outcome.RESERVED]
    assert trace.warnings == ()


def test_a_loss_the_log_does_not_name_is_not_guessed():
    eta = (1, "MainProcess", "Received task: a.b[y]  ETA:[2026-03-02 09:00:00+00:00] ")
    lost = (3, "MainProcess", LOST.format(" Job: 0."), "ERROR")
    trace = read_log(log(eta, received(1, "x"), lost))
    assert trace.count(Outcome.LOST) == 0
    assert trace.warnings == ("1 task handler errors do not tell which task they hit",)


def test_an_end_without_a_reception_is_counted():
    trace = read_log(log(succeeded(3, "x", 1)))
    assert trace.lost_lines == 1
    assert np.isnan(trace.tasks["received"][0])
    assert trace.tasks["deliveries"][0] == 0


# --- scale events and levels ---


def scaling(second, text):
    return (second, "MainProcess", f"Scaling {text} processes.")


def test_a_scale_line_right_after_a_reception_was_caused_by_the_message():
    trace = read_log(
        log(
            *(received(1, "x"), received(1.001, "y"), scaling(1.004, "up 1")),
            *(received(2, "z"), scaling(2.006, "up 1")),
            *(received(3, "u"), (3.001, "MainProcess", "mingle: x"), scaling(3.002, "up 1")),
            scaling(40, "down 2"),
        )
    )
    assert trace.scale_events["change"].tolist() == [1, 1, 1, -2]
    assert trace.scale_events["time"].tolist() == [1.004, 2.006, 3.002, 40.0]
    message, timer = Trigger.MESSAGE, Trigger.TIMER
    assert trace.scale_events["trigger"].tolist() == [message, timer, timer, timer]


def test_a_line_of_a_child_between_does_not_matter():
    trace = read_log(log(received(1, "x"), succeeded(1.002, "o", 1), scaling(1.003, "up 1")))
    assert trace.scale_events["trigger"].tolist() == [Trigger.MESSAGE]


def test_a_green_pool_only_scales_by_its_timer():
    trace = read_log(
        log(received(1, "x"), scaling(1, "up 1"), concurrency="{min=1, max=4} (gevent)")
    )
    assert trace.scale_events["trigger"].tolist() == [Trigger.TIMER]


def test_target_and_reserved_follow_the_log():
    trace = read_log(
        log(
            *(received(1, "x"), received(2, "y"), scaling(2, "up 1")),
            *(succeeded(3, "x", 1), scaling(40, "down 1")),
        )
    )
    assert trace.scale_events["processes"].tolist() == [1, 2]
    assert trace.scale_events["reserved"].tolist() == [2, 1]
    times, values = trace.level(Level.PROCESSES)
    assert (times.tolist(), values.tolist()) == ([0.0, 2.0, 40.0], [1, 2, 1])
    times, values = trace.level(Level.RESERVED)
    assert (times.tolist(), values.tolist()) == ([0.0, 1.0, 2.0, 3.0], [0, 1, 2, 1])


def test_a_log_without_receptions_does_not_tell_what_made_it_scale():
    assert read_log(log(scaling(1, "up 1"))).scale_events["trigger"].tolist() == [Trigger.UNKNOWN]


def test_levels_begin_anew_with_the_worker():
    first = log(received(1, "x"), scaling(1, "up 9"))
    again = [stamped(30, "MainProcess", "celery@h ready.")]
    trace = read_log([*first, *BANNER.format(concurrency="3 (prefork)").split("\n"), *again])
    assert trace.level(Level.RESERVED)[1].tolist() == [0, 1, 0, 0]
    assert trace.level(Level.PROCESSES)[1].tolist() == [1, -1, 0, 3]


def test_a_target_beyond_the_bounds_is_not_believed():
    trace = read_log(log(scaling(1, "up 9"), scaling(2, "down 9")))
    assert trace.scale_events["processes"].tolist() == [1, -1]


# --- children ---


def test_children_have_their_tasks_and_busy_time():
    trace = read_log(
        log(
            *(received(1, "x"), received(1, "y"), received(1, "z")),
            *(succeeded(3, "x", 2), succeeded(4, "y", 1), succeeded(5, "z", 1.5, child=2)),
            concurrency="2 (prefork)",
        )
    )
    assert trace.children["number"].tolist() == [1, 2]
    assert trace.children["tasks"].tolist() == [2, 1]
    assert trace.children["busy_s"].tolist() == [3.0, 1.5]
    assert trace.children_seen.tolist() == [[3.0, 4.0], [5.0, 5.0]]


def test_children_that_never_log_a_line_were_forked_all_the_same():
    trace = read_log(log(received(1, "x"), succeeded(2, "x", 1, child=5)))
    assert trace.forks == 5
    assert read_log(log(concurrency="8 (prefork)")).forks == 8
    assert read_log(log(concurrency="8 (gevent)")).forks == 0


def test_a_child_number_beyond_reason_does_not_invent_children():
    trace = read_log(log(received(1, "x"), succeeded(2, "x", 1, child=900_000_000)))
    assert trace.children["number"].tolist() == [900_000_000]


def test_a_restart_begins_the_numbers_anew():
    once = log(received(1, "x"), succeeded(2, "x", 1))
    again = [line.replace("08:15:", "08:16:").replace("[x]", "[y]") for line in once]
    trace = read_log(once + again)
    assert trace.children["number"].tolist() == [1, 1]
    assert any("started 2 times" in warning for warning in trace.warnings)


def test_a_number_used_again_after_its_exit_shows_a_restart():
    gone = (3, "MainProcess", "Process 'ForkPoolWorker-1' pid:7 exited with 'exitcode 1'", "ERROR")
    trace = read_log(
        log(
            *(received(1, "x"), succeeded(2, "x", 1), gone, received(9, "y")),
            succeeded(12, "y", 1),
            concurrency="1 (prefork)",
        )
    )
    assert trace.children["number"].tolist() == [1, 1]
    assert trace.children["exited"].tolist()[0] == 3.0


def test_the_memory_limit_ends_a_child():
    text = "child process exiting after exceeding memory limit (155256KiB / 150000KiB)"
    trace = read_log(
        log(
            *(received(1, "x"), (2, "ForkPoolWorker-1", text, "WARNING"), succeeded(2, "x", 1)),
        )
    )
    assert trace.children["terminated"][0] == 2.0


def test_celery_3_1_logs_success_in_the_main_process_and_the_child_is_not_known():
    success = (2, "MainProcess", "Task a.b[x] succeeded in 1.0s: None")
    trace = read_log(log(received(1, "x"), success))
    assert trace.tasks["child"].tolist() == [-1]
    trace = read_log(log(received(1, "x"), success, concurrency="4 (solo)"))
    assert trace.tasks["child"].tolist() == [0]


# --- settings ---


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("8 (prefork)", {"concurrency": 8, "pool": "prefork"}),
        ("{min=3, max=10} (prefork)", {"autoscale": [10, 3], "pool": "prefork"}),
        ("4 (thread)", {"concurrency": 4, "pool": "threads"}),
        ("4 (processes)", {"concurrency": 4, "pool": "prefork"}),
        ("100 (gevent)", {"concurrency": 100, "pool": "gevent"}),
        ("1 (solo)", {"concurrency": 1, "pool": "solo"}),
        ("2 (celery.concurrency.prefork:TaskPool)", {"concurrency": 2, "pool": "prefork"}),
    ],
)
def test_settings_of_the_banner(text, settings):
    also = {"celery_version": "5.6.3", "broker_transport": "redis", "hostname": "celery@h"}
    assert read_log(log(concurrency=text)).settings == settings | also


def test_the_banner_of_3_1():
    lines = [
        " -------------- celery@h v3.1.17 (Cipater)",
        "---- **** ----- ",
        "--- * ***  * -- Linux-3.13.0-x86_64",
        "-- * - **** --- ",
        "- ** ---------- [config]",
        "- ** ---------- .> app:         shop:0x7f",
        "- ** ---------- .> transport:   amqp://guest:**@localhost:5672//",
        "- *** --- * --- .> concurrency: 4 (prefork)",
        "-- ******* ---- ",
        "--- ***** ----- [queues]",
        " -------------- .> celery           exchange=celery(direct) key=celery",
        "                ",
    ]
    trace = read_log(lines)
    assert trace.line_counts.unexplained == 0
    assert trace.settings["celery_version"] == "3.1.17"
    assert trace.settings["concurrency"] == 4


# --- several workers, clock jumps ---


def test_workers_can_be_told_apart():
    one = log(received(1, "x"), succeeded(2, "x", 1, child=3))
    two = log(received(1, "y"), succeeded(2, "y", 1), concurrency="1 (solo)")
    mixed = [line for a, b in zip(one, two, strict=True) for line in (f"w_1 | {a}", f"w_2 | {b}")]
    trace = read_log(mixed)
    assert trace.workers == ("w_1", "w_2")
    assert "2 workers (w_1, w_2)" in trace.warnings[0]
    alone = read_log(mixed, worker="w_2")
    assert (alone.ids, alone.settings["pool"], alone.warnings) == (("y",), "solo", ())
    assert alone.line_counts.other_worker == len(one)


def test_workers_of_one_file_without_prefix_are_noticed():
    other = stamped(0, "MainProcess", "celery@other ready.")
    (warning,) = read_log([*log(), other]).warnings
    assert "celery@h, celery@other" in warning


def test_an_unknown_worker_is_an_error_that_says_how_to_see_the_names():
    with pytest.raises(
        LogError, match=r"no line in it is from worker 'w_9'. Remedy: read all workers"
    ):
        read_log(["w_1 | " + line for line in log()], worker="w_9")


def test_a_clock_that_jumps_back_is_noticed():
    lines = [*log(received(3700 / 60, "x")), stamped(1, "MainProcess", "Task a.b[y] received")]
    (warning,) = read_log(lines).warnings
    assert warning.startswith("the clock jumps back once, first after 2026-03-02 08:16:01")


# --- inputs ---


LINES = log(received(1, "x"), succeeded(2, "x", 1))
TEXT = "\n".join(LINES).encode() + b"\n"


def test_every_kind_of_input_gives_the_same(tmp_path, monkeypatch):
    plain, packed = tmp_path / "worker.log", tmp_path / "worker.log.1"
    plain.write_bytes(TEXT)
    packed.write_bytes(gzip.compress(TEXT))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    with plain.open("rb") as binary, plain.open() as text:
        inputs = [plain, str(plain), packed, binary, text, "-", io.BytesIO(TEXT), LINES]
        inputs += [iter(TEXT.splitlines(keepends=True)), io.BytesIO(gzip.compress(TEXT))]
        inputs += [io.BytesIO(TEXT.decode().encode("utf-16"))]
        for given in inputs:
            trace = read_log(given)
            assert (trace.ids, trace.line_counts.unexplained) == (("x",), 0)
        assert not binary.closed


def test_the_source_is_named(tmp_path):
    path = tmp_path / "worker.log"
    path.write_bytes(TEXT)
    assert read_log(path).source == str(path)
    assert read_log(LINES).source == "log"


def test_a_gzip_file_of_several_members(tmp_path):
    half = len(TEXT) // 2
    data = gzip.compress(TEXT[:half]) + gzip.compress(TEXT[half:]) + bytes(512)
    trace = read_log(io.BytesIO(data))
    assert trace.ids == ("x",)
    assert trace.warnings == ()


def test_a_gzip_file_that_ends_early_gives_what_it_has():
    many = log(*(received(1, f"x{k}") for k in range(5000)))
    packed = gzip.compress("\n".join(many).encode())
    trace = read_log(io.BytesIO(packed[: len(packed) // 2]))
    assert 1000 < len(trace.tasks) < 5000
    assert "the gzip data ends early" in trace.warnings[0]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is empty"),
        (bytes(range(256)) * 40, "binary file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "binary file"),
        (b"hello\nworld\n", "no line in it is Celery's"),
        (gzip.compress(b""), "it is empty"),
        (gzip.compress(TEXT)[:12], "the gzip data ends early"),
        (b"\x1f\x8bnonsense", "the gzip data is damaged"),
    ],
)
def test_an_unusable_file_is_an_error_that_names_it(tmp_path, content, problem):
    path = tmp_path / "worker.log"
    path.write_bytes(content)
    with pytest.raises(LogError, match=problem) as caught:
        read_log(path)
    assert str(caught.value).startswith(str(path))
    assert "Remedy: " in str(caught.value)


def test_a_missing_file_and_a_directory_are_errors(tmp_path):
    with pytest.raises(LogError, match=r"no such file\. Remedy: check the path"):
        read_log(tmp_path / "none.log")
    with pytest.raises(LogError, match=r"is a directory\. Remedy: name one log file"):
        read_log(tmp_path)


# --- the event stream ---


def event(kind, second, **fields):
    return {"type": kind, "timestamp": 1772439300.0 + second, "hostname": "celery@h", **fields}


def stream(*events):
    return [json.dumps(event) for event in events]


def test_events_tell_when_tasks_were_sent_and_started():
    lines = stream(
        event("worker-online", 0),
        event("task-sent", 1, uuid="x", name="a.b", hostname="client@h"),
        event("task-received", 1.25, uuid="x", name="a.b", eta=None),
        event("task-started", 1.5, uuid="x", pid=7),
        event("task-succeeded", 4, uuid="x", runtime=2.4, result="None"),
        event("worker-heartbeat", 5, active=0),
        event("task-sent", 6, uuid="y", name="c", hostname="client@h"),
        event("worker-offline", 7),
    )
    trace = read_events(lines)
    row, waiting = trace.tasks
    times = [row[column] for column in ("sent", "received", "started", "finished")]
    assert times == [1.0, 1.25, 1.5, 4.0]
    assert (waiting["sent"], waiting["outcome"]) == (6.0, Outcome.QUEUED)
    assert trace.names == ("a.b", "c")
    assert trace.line_counts.unexplained == 0
    assert (trace.workers, trace.warnings[0][:28]) == (
        ("celery@h",),
        "the log has no start-up bann",
    )
    assert read_log(lines).ids == trace.ids


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("task-failed", Outcome.FAILED),
        ("task-retried", Outcome.RETRIED),
        ("task-revoked", Outcome.REVOKED),
        ("task-rejected", Outcome.FAILED),
    ],
)
def test_events_tell_how_tasks_end(kind, outcome):
    lines = stream(event("task-received", 1, uuid="x", name="a.b"), event(kind, 2, uuid="x"))
    assert read_events(lines).tasks["outcome"].tolist() == [outcome]


def test_events_of_one_worker():
    lines = stream(
        event("task-sent", 0, uuid="x", name="a", hostname="client@h"),
        event("task-sent", 0, uuid="y", name="a", hostname="client@h"),
        event("task-received", 1, uuid="x", name="a"),
        event("task-received", 1, uuid="y", name="a", hostname="celery@other"),
    )
    trace = read_events(lines, worker="celery@h")
    assert (trace.ids, trace.tasks["sent"].tolist()) == (("x",), [0.0])


def test_a_log_is_no_event_stream():
    with pytest.raises(LogError, match="no line in it is an event"):
        read_events(LINES)
