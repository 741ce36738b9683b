"""Every shape of line that occurs in worker logs, F1 to F26; all values are invented."""

import json
import math

import pytest

from celerysim.trace import events as ev
from celerysim.trace.layouts import seconds
from celerysim.trace.reader import LogReader

ID = "7d3c1e52-0f6b-4c1a-9a51-3a2d9f0c5b11"
TIME = seconds("2026-03-02 08:15:01,204")
MAIN = "[2026-03-02 08:15:01,204: INFO/MainProcess] "
CHILD = "[2026-03-02 08:15:01,204: INFO/ForkPoolWorker-3] "


def read(*lines, worker=None):
    """The events of the lines, and the reader that counted them."""
    reader = LogReader(worker)
    events = list(reader.events("\n".join(lines).split("\n")))
    counts = reader.counts
    parts = (counts.understood, counts.output, counts.continuation, counts.unexplained)
    assert sum(parts) + counts.other_worker == counts.total
    return events, reader


def only(*lines):
    """The one event of lines that must all be accounted for."""
    events, reader = read(*lines)
    assert reader.counts.unexplained == 0, reader.counts.samples
    (event,) = events
    return event


# --- F1-F4: received ---


def test_f1_received_since_5_1():
    event = only(f"{MAIN}Task shop.mail.send[{ID}] received")
    assert event == ev.Received(TIME, "", "shop.mail.send", ID, "")


@pytest.mark.parametrize(
    ("tail", "eta"),
    [
        ("  ", ""),
        ("", ""),
        ("  ETA:[2026-03-02 09:00:00.000001+00:00] ", "2026-03-02 09:00:00.000001+00:00"),
        ("   expires:[2026-03-02 10:00:00+00:00]", ""),
        (
            "  ETA:[2026-03-02 09:00:00+00:00]  expires:[2026-03-02 10:00:00+00:00] ",
            "2026-03-02 09:00:00+00:00",
        ),
    ],
)
def test_f2_received_in_4_with_eta_and_expires(tail, eta):
    event = only(f"{MAIN}Received task: shop.mail.send[{ID}]{tail}")
    assert event == ev.Received(TIME, "", "shop.mail.send", ID, eta)


def test_f3_received_in_3_1():
    line = f"{MAIN}Received task: a.b[{ID}] eta:[2026-03-02 09:00:00] expires:[2026-03-02 10:00:00]"
    assert only(line) == ev.Received(TIME, "", "a.b", ID, "2026-03-02 09:00:00")


def test_f4_received_up_to_3_0():
    event = only(f"{MAIN}Got task from broker: a.b[{ID}] eta:[2026-03-02 09:00:00]")
    assert event == ev.Received(TIME, "", "a.b", ID, "2026-03-02 09:00:00")


# --- F5-F8: start and end of tasks ---


def test_f5_accepted_and_its_long_neighbour():
    head = "[2026-03-02 08:15:01,204: DEBUG/MainProcess] "
    event = only(f"{head}Task accepted: shop.mail.send[{ID}] pid:4711")
    assert event == ev.Accepted(TIME, "", "shop.mail.send", ID, 4711)
    apply = (
        f"{head}TaskPool: Apply <function fast_trace_task at 0x7f> (args:('a.b', '{ID}', {{'k': "
    )
    assert only(apply + "'[(\"") == ev.Applied(TIME, "", "a.b", ID)
    assert isinstance(only(apply[:100]), ev.Note)


@pytest.mark.parametrize(
    ("text", "runtime"),
    [
        ("0.5120981s: None", 0.5120981),
        ("4.1e-05s: 'x'", 4.1e-05),
        ("1404.13s: [1, 2, 3]", 1404.13),
        ("12s", 12.0),
        ("12s:", 12.0),
        ("0.5s: {'text': 'Task a.b[id] succeeded in 9.9s: None'}", 0.5),
        ("0.5s: [{'a': [1, [2, 3]]}, '...", 0.5),
        ("0.5s: '" + "long " * 500 + "...", 0.5),
    ],
)
def test_f6_succeeded_with_any_runtime_and_result(text, runtime):
    event = only(f"{CHILD}Task a.b[{ID}] succeeded in {text}")
    assert event == ev.Succeeded(TIME, "", "ForkPoolWorker-3", "a.b", ID, runtime)


def test_f6_succeeded_in_the_main_process_in_3_1():
    assert only(f"{MAIN}Task a.b[{ID}] succeeded in 0.5s: None").process == "MainProcess"


def test_f6_the_further_lines_of_a_result_are_continuation():
    success = f"{CHILD}Task a.b[{ID}] succeeded in 0.5s:    x  y"
    _, reader = read(success, "0  1  2", "1  3  4")
    assert (reader.counts.understood, reader.counts.continuation) == (1, 2)


def test_f6_a_line_after_a_whole_result_belongs_to_nothing():
    _, reader = read(f"{CHILD}Task a.b[{ID}] succeeded in 0.5s: 'x'", "stray text")
    assert reader.counts.unexplained == 1
    assert reader.counts.samples == [(2, "stray text")]


@pytest.mark.parametrize(
    "end",
    [
        "raised unexpected: ValueError('x')",
        "raised unexpected: ValueError('x',)",
        "raised expected: KeyError('k')",
        "raised exception: OSError()",
        "INTERNAL ERROR: RuntimeError('[')",
        "ignored",
        "reject requeue=False: no",
    ],
)
def test_f7_failed_with_its_traceback(end):
    head = "[2026-03-02 08:15:01,204: ERROR/ForkPoolWorker-3] "
    event = only(
        f"{head}Task a.b[{ID}] {end}",
        *(
            "Traceback (most recent call last):",
            '  File "a.py", line 3, in b',
            "    raise x",
            "E: x",
        ),
    )
    assert event == ev.Failed(TIME, "", "ForkPoolWorker-3", "a.b", ID, end)


@pytest.mark.parametrize(
    "reason", ["Retry in 10s", "Retry in 10s: ConnectionError('boom')", "Retry at 2026-03-02 09:00"]
)
def test_f8_retry(reason):
    event = only(f"{CHILD}Task a.b[{ID}] retry: {reason}")
    assert event == ev.Retried(TIME, "", "ForkPoolWorker-3", "a.b", ID, reason)


# --- F9-F12: losses, limits, scaling, memory ---


@pytest.mark.parametrize(
    ("quoted", "process", "status"),
    [
        ("'signal 9 (SIGKILL)'", "ForkPoolWorker-3", "signal 9 (SIGKILL)"),
        ("'exitcode 2'", "ForkPoolWorker-3", "exitcode 2"),
        ("exitcode -9", "Worker-5", "exitcode -9"),
    ],
)
def test_f9_a_child_exits(quoted, process, status):
    head = "[2026-03-02 08:15:01,204: ERROR/MainProcess] "
    event = only(f"{head}Process '{process}' pid:4711 exited with {quoted}")
    assert event == ev.Exited(TIME, "", process, 4711, status)


@pytest.mark.parametrize(
    ("tail", "job"),
    [(" Job: 3.')", 3), (" Job: 3.',)", 3), (".')", -1), ('",)', -1)],
)
def test_f9_a_worker_is_lost(tail, job):
    text = (
        "Task handler raised error: WorkerLostError('Worker exited prematurely: signal 9 (SIGKILL)"
    )
    event = only(f"[2026-03-02 08:15:01,204: ERROR/MainProcess] {text}{tail}")
    assert event == ev.HandlerError(TIME, "", "WorkerLostError", job)


def test_f10_time_limits():
    warning, error = (f"[2026-03-02 08:15:01,204: {x}/MainProcess] " for x in ("WARNING", "ERROR"))
    soft = only(f"{warning}Soft time limit (20s) exceeded for a.b[{ID}]")
    assert soft == ev.TimeLimit(TIME, "", "a.b", ID, 20.0, hard=False)
    hard = only(f"{error}Hard time limit (30.5s) exceeded for a.b[{ID}]")
    assert hard == ev.TimeLimit(TIME, "", "a.b", ID, 30.5, hard=True)
    event = only(f"{error}Task handler raised error: TimeLimitExceeded(30)")
    assert event == ev.HandlerError(TIME, "", "TimeLimitExceeded", -1)


@pytest.mark.parametrize(
    ("text", "change"),
    [("up 4", 4), ("down 3", -3), ("down -3", 3), ("up 1", 1)],
)
def test_f11_scaling_keeps_the_signed_number(text, change):
    assert only(f"{MAIN}Scaling {text} processes.") == ev.Scaled(TIME, "", change)


def test_f11_a_refused_scale_down_is_a_note():
    text = "Autoscaler won't scale down: all processes busy."
    assert isinstance(only(f"[2026-03-02 08:15:01,204: DEBUG/MainProcess] {text}"), ev.Note)


@pytest.mark.parametrize(
    ("head", "used", "limit"),
    [("WARNING/ForkPoolWorker-2", 155256, 150000), ("ERROR/PoolWorker-5", 150000, 150000)],
)
def test_f12_memory_limit(head, used, limit):
    text = f"child process exiting after exceeding memory limit ({used}KiB / {limit}KiB)"
    event = only(f"[2026-03-02 08:15:01,204: {head}] {text}")
    assert event == ev.MemoryLimit(TIME, "", head.split("/")[1], used, limit)


# --- F13-F15: process names, life cycle, broker ---


@pytest.mark.parametrize(
    "process", ["Worker-7", "PoolWorker-7", "ForkPoolWorker-7", "SpawnPoolWorker-1", "MainProcess"]
)
def test_f13_process_names(process):
    line = f"[2026-03-02 08:15:01,204: INFO/{process}] Task a.b[{ID}] succeeded in 1.0s: None"
    assert only(line).process == process


def test_f13_beat():
    line = "[2026-03-02 08:15:01,204: INFO/Beat] Scheduler: Sending due task x (a.b)"
    assert isinstance(only(line), ev.Note)


BANNER = r"""
 -------------- celery@h v5.6.3 (recovery)
--- ***** -----
-- ******* ---- Linux-6.8.0-x86_64-with-glibc2.39 2026-03-02 08:15:00
- *** --- * ---
- ** ---------- [config]
- ** ---------- .> app:         shop:0x7ad76f82d7c0
- ** ---------- .> transport:   amqp://guest:**@localhost:5672//
- ** ---------- .> results:     disabled://
- *** --- * --- .> concurrency: {min=3, max=10} (prefork)
-- ******* ---- .> task events: OFF (enable -E to monitor tasks in this worker)
--- ***** -----
 -------------- [queues]
                .> celery           exchange=celery(direct) key=celery


[tasks]
  . shop.mail.send
"""


def test_f14_life_cycle():
    events, reader = read(
        *BANNER.split("\n"),
        f"{MAIN}mingle: all alone",
        f"{MAIN}celery@h ready.",
        *("", "worker: Hitting Ctrl+C again will terminate all running tasks!"),
        "worker: Warm shutdown (MainProcess)",
        "worker: Cold shutdown (MainProcess)",
        "Restoring 31 unacknowledged message(s)",
    )
    assert reader.counts.unexplained == 0, reader.counts.samples
    settings = {event.key: event.value for event in events if isinstance(event, ev.Setting)}
    assert settings["concurrency"] == "{min=3, max=10} (prefork)"
    assert settings["transport"] == "amqp://guest:**@localhost:5672//"
    assert (settings["hostname"], settings["version"]) == ("celery@h", "5.6.3")
    assert ev.Ready(TIME, "", "celery@h") in events
    assert [event.how for event in events if isinstance(event, ev.Shutdown)] == ["Warm", "Cold"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("consumer: Connection to broker lost. Trying to re-establish...", ev.ConnectionLost),
        ("basic.qos: prefetch_count->40", ev.Prefetch),
        ("QoS: Disabled: prefetch_count exceeds 65535", ev.Note),
        ("missed heartbeat from celery@other", ev.Note),
        ("Timed out waiting for UP message from <ForkProcess(PoolWorker-4)>", ev.Note),
        ("Unrecoverable error: PreconditionFailed(406, 'PRECONDITION_FAILED')", ev.Note),
    ],
)
def test_f15_broker_lines(text, kind):
    level = "DEBUG" if kind is ev.Prefetch else "WARNING"
    assert isinstance(only(f"[2026-03-02 08:15:01,204: {level}/MainProcess] {text}"), kind)


def test_f15_a_message_of_two_lines():
    event = only(
        f"{MAIN}Temporarily reducing the prefetch count to 1 to avoid over-fetching since 3 tasks",
        "The prefetch count will be gradually restored to 4 as the tasks complete processing.",
    )
    assert isinstance(event, ev.Note)


# --- F16-F17: containers and platforms ---


def test_f16_docker_compose_on_every_line():
    events, reader = read(
        f"worker_1       | {MAIN}Task a.b[{ID}] received",
        f"celery-slow_1  | {CHILD}Task a.b[{ID}] raised unexpected: E()",
        "celery-slow_1  | Traceback (most recent call last):",
        "celery-slow_1  | E",
        "worker_1       | ",
        'worker-1        | {"event": "celery@h ready.", "timestamp": "2026-03-02T08:15:01Z"}',
    )
    assert reader.counts.unexplained == 0, reader.counts.samples
    assert [event.worker for event in events] == ["worker_1", "celery-slow_1", "worker-1"]
    assert reader.counts.continuation == 3


def test_f16_one_worker_of_several():
    line = f"{MAIN}Task a.b[{ID}] received"
    events, reader = read(f"w_1 | {line}", f"w_2 | {line}", "w_2 | x", worker="w_1")
    assert [event.worker for event in events] == ["w_1"]
    assert reader.counts.other_worker == 2


def test_f16_a_table_in_a_result_is_no_container():
    success = f"{CHILD}Task a.b[{ID}] succeeded in 0.5s: name | rows"
    _, reader = read(success, "total | 12")
    assert reader.counts.continuation == 1


def test_f16_tail_names_the_file_of_the_lines_that_follow():
    line = f"{MAIN}Task a.b[{ID}] received"
    events, reader = read("==> w1.log <==", line, "", "==> w2.log <==", line)
    assert [event.worker for event in events] == ["w1.log", "w2.log"]
    assert reader.counts.continuation == 3


@pytest.mark.parametrize(
    ("prefix", "worker"),
    [
        ("Apr 08 11:11:08 api app/worker.1: ", "api/app/worker.1"),
        ("2026-03-02T15:15:01.204512+00:00 app[worker.1]: ", "app[worker.1]"),
        ("[2026-06-09 16:20:00.942315] [abcde] [c2] ", "abcde/c2"),
        ("Mar 02 08:15:01 host celery[812]: ", "host/celery"),
        ("2026-03-02T08:15:01+01:00 host celery[812]: ", "host/celery"),
        ("2026-03-02T08:15:01.204512345Z stderr F ", ""),
        ("2026-03-02T08:15:01.204512345Z ", ""),
        ("worker-1  | 2026-03-02T08:15:01.204512345Z ", "worker-1"),
        ("08:15:01 worker.1 | ", "worker.1"),
        ("[pod/worker-7d9f/celery] ", "pod/worker-7d9f/celery"),
        ("worker.log:12:", "worker.log"),
    ],
)
def test_f17_platform_prefixes_give_way_to_the_inner_clock(prefix, worker):
    event = only(f"{prefix}{MAIN}Task a.b[{ID}] received")
    assert event == ev.Received(TIME, worker, "a.b", ID, "")


def test_f17_partial_lines_are_joined():
    stamp = "2026-03-02T08:15:01.204512345Z stderr"
    events, reader = read(f"{stamp} P {MAIN}Task a.b[{ID[:9]}", f"{stamp} F {ID[9:]}] received")
    assert events == [ev.Received(TIME, "", "a.b", ID, "")]
    assert reader.counts.continuation == 1


def test_f17_a_partial_line_without_its_end_is_unexplained():
    events, reader = read(f"2026-03-02T08:15:01.2Z stderr P {MAIN}Task a.b[{ID}] recei")
    assert (events, reader.counts.unexplained) == ([], 1)


# --- F18-F20: other layouts ---


@pytest.mark.parametrize(
    ("head", "stamp"),
    [
        (
            "2026-01-26 16:37:07,678 [celeryd-task:15213] app[10.1.2.3] INFO "
            "celery.worker.strategy - ",
            "2026-01-26 16:37:07,678",
        ),
        ("2026-08-12 20:55:05,974 - celery.worker.job - ERROR - ", "2026-08-12 20:55:05,974"),
        ("[2026-08-22 21:53:21,203] [ERROR] [celery.worker.request] ", "2026-08-22 21:53:21,203"),
        (
            "ERROR 2026-08-22 21:03:58,666 [celery.worker.request] <140652> ",
            "2026-08-22 21:03:58,666",
        ),
        ("2026-11-20 18:40:54,258 5325 DEBUG bootsteps[262] ", "2026-11-20 18:40:54,258"),
        (
            "2026-11-17 10:16:16 59700 -0500 - HOST - 19206/1397 - celery/celery.worker.consumer"
            " - 3008 - INFO - ",
            "2026-11-17 10:16:16",
        ),
        ("11:27:04 [INFO] celery.worker.consumer.consumer: ", "11:27:04"),
        ("INFO [-/-/-/celery.worker.job] ", None),
        ("[   ERROR/MainThread] ", None),
        ("INFO:celery.worker.strategy:", None),
        ("[2026-08-22 21:53:21,203] INFO in strategy: ", "2026-08-22 21:53:21,203"),
        ("2026-08-22 21:53:21.203 | INFO     | celery:info:128 - ", "2026-08-22 21:53:21.203"),
        ("2026-08-22T21:53:21.203 INFO celery.app.trace: ", "2026-08-22 21:53:21.203"),
        ("<134>#7 2026-08-22 21:53:21.203 (worker) ~ ", "2026-08-22 21:53:21.203"),
    ],
)
def test_f18_other_layouts(head, stamp):
    event = only(f"{head}Received task: a.b[{ID}]")
    assert (event.name, event.id) == ("a.b", ID)
    assert event.time == seconds(stamp) if stamp else math.isnan(event.time)


def test_f18_a_debug_line_of_the_worker_with_a_bar_is_no_container():
    line = "2026-11-20 18:40:54,258 5325 DEBUG bootsteps[262] | Worker: Preparing bootsteps."
    assert isinstance(only(line), ev.Note)


@pytest.mark.parametrize("viewer", ["", "2026-05-20 17:07:47 | "])
@pytest.mark.parametrize("between", ["T", " "])
def test_f19_structlog_console(viewer, between):
    head = f"{viewer}2026-05-20{between}15:07:46.952568Z [info     ] "
    event = only(f"{head}Task a.b[{ID}] received   [celery.worker.strategy]")
    assert event == ev.Received(seconds("2026-05-20 15:07:46.952568"), "", "a.b", ID, "")


def test_f19_structlog_events_by_name():
    event = only(
        "2026-09-13T15:13:28.379227Z [info     ] task_succeeded   "
        f"[django_structlog.celery.receivers] task_id={ID} task_name='a b' pid=7"
    )
    assert isinstance(event, ev.Succeeded)
    assert (event.name, event.id) == ("a b", ID)
    assert math.isnan(event.runtime)


def test_f19_structlog_printed_in_a_task():
    head = "[2026-03-02 08:15:01,204: WARNING/ForkPoolWorker-3] 2026-03-02T08:15:01.2Z [info     ] "
    event = only(f"{head}task_succeeded   [django_structlog] task_id={ID}")
    assert (event[:5], event.time) == ((TIME, "", "ForkPoolWorker-3", "", ID), TIME)


def test_f20_json_lines():
    fields = {
        "event": f"Task a.b[{ID}] succeeded in 0.0007s: None",
        "logger": "celery.app.trace",
        "level": "info",
        "timestamp": "2026-03-02T08:15:01.204Z",
        "task_id": ID,
    }
    assert only(json.dumps(fields)) == ev.Succeeded(TIME, "", "", "a.b", ID, 0.0007)


@pytest.mark.parametrize("key", ["message", "msg", "event"])
def test_f20_json_with_other_keys(key):
    line = json.dumps({key: f"Task a.b[{ID}] received", "@timestamp": "2026-03-02T08:15:01.204Z"})
    assert only(line) == ev.Received(TIME, "", "a.b", ID, "")


def test_f20_json_events_by_name():
    line = json.dumps(
        {"event": "task_succeeded", "task_id": ID, "timestamp": "2026-03-02T08:15:01Z"}
    )
    event = only(line)
    assert isinstance(event, ev.Succeeded)
    assert event.id == ID


def test_f20_json_inside_celerys_prefix():
    inner = json.dumps({"event": f"Task a.b[{ID}] succeeded in 1.0s: None", "level": "warning"})
    event = only(f"{CHILD}{inner}")
    assert event == ev.Succeeded(TIME, "", "ForkPoolWorker-3", "a.b", ID, 1.0)


def test_f20_dockers_json_file():
    line = json.dumps(
        {"log": f"{MAIN}celery@h ready.\n", "stream": "stderr", "time": "2026-03-02T"}
    )
    assert only(line) == ev.Ready(TIME, "", "celery@h")


# --- F21-F24: colours, prints, damage, names ---


@pytest.mark.parametrize("escape", ["\x1b", "", "#033"])
def test_f21_colours(escape):
    text = f"Task a.b[{ID}] raised unexpected: E()"
    head = "[2026-03-02 08:15:01,204: ERROR/ForkPoolWorker-3] "
    event = only(
        f"{escape}[1;31m{head}{text}", "Traceback (most recent call last):", f"E{escape}[0m"
    )
    assert event.error == "raised unexpected: E()"
    event = only(f"{escape}[1;31m{head}{text}{escape}[0m")
    assert event.error == "raised unexpected: E()"


def test_f21_coloured_compose_names():
    event = only(f"\x1b[36mworker_1  |\x1b[0m {MAIN}Task a.b[{ID}] received")
    assert event.worker == "worker_1"


@pytest.mark.parametrize(
    "text", ["any text", f"Task a.b[{ID}] received", "Scaling up 3 processes.", "celery@h ready."]
)
def test_f22_a_redirected_print_is_output_whatever_it_says(text):
    event = only(f"[2026-03-02 08:15:01,204: WARNING/ForkPoolWorker-1] {text}")
    assert event == ev.Output(TIME, "", "ForkPoolWorker-1", text)


def test_f22_a_traceback_of_one_record_a_line():
    head = "[2026-03-02 08:15:01,204: WARNING/ForkPoolWorker-1] "
    _, reader = read(*(head + x for x in ("Traceback (most recent call last):", '  File "x"', "E")))
    assert reader.counts.output == 3


def test_f23_a_first_line_that_is_cut():
    assert isinstance(only("2026-07-27 16:01:23,768: WARNING/MainProcess] x"), ev.Output)
    _, reader = read(": INFO/MainProcess] Task a.b[c] received")
    assert reader.counts.unexplained == 1


@pytest.mark.parametrize(
    "line",
    [
        f"{MAIN}Task a.b[7d3c",
        f"{MAIN}Task a.b[{ID}] rec",
        f"{CHILD}Task a.b[{ID}] succeeded in 0.5",
        f"{CHILD}Task a.b[{ID}] succ",
        f"{MAIN}Scaling up 3 pro",
        f"{MAIN}Received task: a.b[7d3c",
        "[2026-03-02 08:15:01,204: INFO/MainPr",
    ],
)
def test_f23_a_last_line_that_is_cut_is_not_guessed_at(line):
    events, reader = read(line)
    assert events == []
    assert reader.counts.unexplained == 1


def test_f23_padding_crlf_and_empty_records():
    assert only(f"{MAIN}Task a.b[{ID}] received{' ' * 60}\r").id == ID
    assert only(f"{CHILD}Task a.b[{ID}] succeeded in 1.5s: None{' ' * 60}\r").runtime == 1.5
    assert only("[2026-03-02 08:15:01,204: WARNING/ForkPoolWorker-1] ").text == ""


def test_f23_text_pasted_in_is_unexplained():
    line = f"{MAIN}Task a.b[{ID}] received"
    events, reader = read(line, '"celery.log" 1234L, 5678C', line)
    assert len(events) == 2
    assert reader.counts.samples == [(2, '"celery.log" 1234L, 5678C')]


@pytest.mark.parametrize(
    "first", [f"Task x.y[{ID}] received", f"Task x.y[{ID}] succeeded in 1.0s: None"]
)
def test_f23_two_records_on_one_line(first):
    events, _ = read(f"{MAIN}{first}{MAIN}Task a.b[{ID}] received")
    assert [event.name for event in events] == ["x.y", "a.b"]


def test_f23_output_without_a_line_end_before_a_record():
    assert only(f"50 %{MAIN}Task a.b[{ID}] received").name == "a.b"


def test_f23_a_log_quoted_in_a_result_is_no_second_record():
    quoted = f"{CHILD}Task a.b[{ID}] succeeded in 1.0s: '{MAIN}Task x.y[{ID}] received'"
    assert only(quoted).name == "a.b"


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("Text Alignment", ID),
        ("shop-mail/send", ID),
        ("a.b", "order-17"),
        ("a.b", "7d3c1e52"),
        ("päck.ümläut", "ключ"),
    ],
)
def test_f24_names_and_ids_of_any_kind(name, id):
    assert only(f"{MAIN}Task {name}[{id}] received")[2:4] == (name, id)
    assert only(f"{CHILD}Task {name}[{id}] succeeded in 1.0s: None")[3:5] == (name, id)


# --- F25-F26: time, airflow ---


@pytest.mark.parametrize(
    ("decimals", "fraction"),
    [(",204", 0.204), (".204", 0.204), ("", 0.0), (".204512", 0.204512)],
)
def test_f25_decimals_of_a_stamp(decimals, fraction):
    line = f"[2026-03-02 08:15:01{decimals}: INFO/MainProcess] Task a.b[{ID}] received"
    assert only(line).time == pytest.approx(TIME - 0.204 + fraction, abs=1e-6)


def test_f25_a_zone_makes_it_utc():
    assert seconds("2026-03-02T09:15:01.204+01:00") == TIME
    assert seconds("2026-03-02T08:15:01.204Z") == TIME


def test_f25_stamps_without_a_date_pass_midnight():
    head = "INFO celery.worker.strategy: "
    events, _ = read(f"23:59:59 {head}Task a[1] received", f"00:00:01 {head}Task a[2] received")
    assert events[1].time - events[0].time == 2.0


def test_f25_an_outer_stamp_serves_where_there_is_no_inner_one():
    events, _ = read(
        "2026-03-02T07:15:01.204Z stderr F "
        "[2026-03-02 08:15:01,204: INFO/MainProcess] Task a[1] received",
        "2026-03-02T07:15:01.204Z stderr F [   INFO/MainThread] Task a[2] received",
    )
    assert events[1].time == TIME


def test_f26_airflow():
    name = "airflow.executors.celery_executor.execute_command"
    events, reader = read(
        f"{MAIN}Task {name}[{ID}] received",
        f"{CHILD}Executing command in Celery: ['airflow', 'tasks', 'run', 'x']",
        f"{CHILD}Task {name}[{ID}] succeeded in 3.25s: None",
    )
    assert [type(event) for event in events] == [ev.Received, ev.Output, ev.Succeeded]
    assert events[0].name == name
    assert reader.counts.unexplained == 0
