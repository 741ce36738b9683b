"""How far a recording is, from a log that is still being written."""

from __future__ import annotations

from pathlib import Path

from celerysim.record.progress import LogProgress

S = "[2026-11-30 21:02:37,9%02d: INFO/MainProcess] "
LOG = "".join(
    f"{text}\n"
    for text in [
        " -------------- celerysim@localhost v5.6.3",
        S % 1 + "celerysim@localhost ready.",
        *(S % i + f"Task my task[{i}] received" for i in range(2, 9)),
        S % 10 + "Task my task[2] succeeded in 0.1s: None",
        S % 11 + "Task my task[3] raised unexpected: ValueError('Task x[1] received')",
        "Traceback (most recent call last):",
        "ValueError: Task x[1] received",
        S % 12 + "Task my task[4] retry: Retry in 1s",
        S % 13 + "Soft time limit (1.0s) exceeded for my task[5]",
        S % 14 + "Hard time limit (2.0s) exceeded for my task[5]",
        S % 14 + "Task handler raised error: TimeLimitExceeded(2.0)",
        S % 15 + "Task handler raised error: WorkerLostError('signal 9 (SIGKILL) Job: 4.')",
        "billiard.exceptions.WorkerLostError: signal 9 (SIGKILL) Job: 4.",
    ]
)


def test_each_task_is_counted_once_however_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    path.write_text(LOG)
    progress = LogProgress(path)
    progress.update()
    assert (progress.received, progress.over) == (7, 5)


def test_lines_that_arrive_in_pieces_are_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    progress = LogProgress(path)
    progress.update()  # not there yet
    with path.open("w") as file:
        for start in range(0, len(LOG), 37):
            file.write(LOG[start : start + 37])
            file.flush()
            progress.update()
    assert (progress.received, progress.over) == (7, 5)
    assert progress.lines == LOG.count("\n")


def test_the_tail_is_what_was_said_last(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\n\n  three\n\n")
    assert LogProgress(path).tail(2) == "two | three"
    assert LogProgress(tmp_path / "none").tail() == ""
