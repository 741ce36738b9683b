"""Damaged logs: never a traceback, every line accounted for, bounded time and memory."""

import gzip
import io
import json
import random
import time
import tracemalloc

import pytest

from celerysim.errors import LogError
from celerysim.trace import read_log
from celerysim.trace.source import MAX_LINE

ID = "7d3c1e52-0f6b-4c1a-9a51-3a2d9f0c5b"
PLAIN = [
    " -------------- celery@h v5.6.3 (recovery)",
    "- *** --- * --- .> concurrency: {min=1, max=4} (prefork)",
    "[2026-03-02 08:15:00,000: INFO/MainProcess] celery@h ready.",
    *(
        line
        for k in range(10, 20)
        for line in (
            f"[2026-03-02 08:15:{k},204: INFO/MainProcess] Task a.b[{ID}{k}] received",
            f"[2026-03-02 08:15:{k},205: INFO/MainProcess] Scaling up 1 processes.",
            f"[2026-03-02 08:15:{k},206: DEBUG/MainProcess] Task accepted: a.b[{ID}{k}] pid:47{k}",
            f"[2026-03-02 08:15:{k},909: INFO/ForkPoolWorker-{k % 4}] Task a.b[{ID}{k}] "
            "succeeded in 0.7s: {'rows': [1, 2]}",
        )
    ),
    f"[2026-03-02 08:16:00,204: ERROR/ForkPoolWorker-2] Task a.b[{ID}10] raised unexpected: E()",
    "Traceback (most recent call last):",
    '  File "a.py", line 3, in b',
    "[2026-03-02 08:16:01,204: ERROR/MainProcess] Process 'ForkPoolWorker-2' pid:4711 exited "
    "with 'signal 9 (SIGKILL)'",
    "[2026-03-02 08:16:01,204: ERROR/MainProcess] Task handler raised error: WorkerLostError('Work"
    "er exited prematurely: signal 9 (SIGKILL) Job: 3.')",
    f"[2026-03-02 08:16:02,204: ERROR/MainProcess] Hard time limit (30s) exceeded for a.b[{ID}11]",
]
OTHER = [
    f"worker_1  | [2026-03-02 08:15:01,204: INFO/MainProcess] Task a.b[{ID}30] received",
    "2026-03-02T08:15:01.204512345Z stderr P "
    f"[2026-03-02 08:15:01,204: INFO/MainProcess] Task a[{ID}",
    "2026-03-02T08:15:01.204512345Z stderr F ] received",
    "Mar 02 08:15:01 host celery[812]: "
    f"[2026-03-02 08:15:01,204: INFO/MainProcess] Task a[{ID}] recei",
    json.dumps(
        {"event": f"Task a.b[{ID}] succeeded in 0.1s: None", "timestamp": "2026-03-02T08:15:01Z"}
    ),
    json.dumps({"type": "task-received", "uuid": ID, "name": "a", "timestamp": 1772439300.5}),
    f"2026-05-20T15:07:46.952568Z [info     ] Task a.b[{ID}] received   [celery.worker] k=v",
    "==> worker.log <==",
    f"11:27:04 [WARNING] celery.worker: Task a.b[{ID}] received",
]


def damaged(data, rng):
    """The data after a few random injuries."""
    for _ in range(rng.randint(1, 6)):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        match rng.randrange(9):
            case 0:  # cut out
                data = data[:a] + data[b:]
            case 1:  # cut off
                data = data[: max(a, 200)]
            case 2:  # twice
                data = data[:a] + data[a : a + 300] + data[a:]
            case 3:  # other bytes
                data = data[:a] + rng.randbytes(rng.randint(1, 40)) + data[a:]
            case 4:  # a hole
                data = data[:a] + bytes(rng.randint(1, 400)) + data[a:]
            case 5:  # line ends lost
                data = data[:a] + data[a : a + 400].replace(b"\n", b"") + data[a + 400 :]
            case 6:  # digits multiplied
                data = data[:a] + b"9" * rng.randint(1, 30) + data[a:]
            case 7:  # brackets and quotes
                data = (
                    data[:a]
                    + rng.choice([b"[", b"]", b"'", b'"', b"{", b"\\", b"|"]) * 3
                    + data[a:]
                )
            case 8:  # exchanged
                data = data[b:] + data[a:b] + data[:a]
    return data


@pytest.mark.parametrize("seed", range(8))
def test_damaged_logs_are_read_or_refused_and_every_line_is_counted(seed):
    rng = random.Random(seed)
    for _ in range(300):
        lines = PLAIN + rng.sample(OTHER, rng.randint(0, 3)) + PLAIN[3:9]
        if rng.random() < 0.3:
            rng.shuffle(lines)
        data = damaged("\n".join(lines).encode(), rng)
        if rng.random() < 0.1:
            data = damaged(gzip.compress(data), rng)
        try:
            trace = read_log(io.BytesIO(data))
        except LogError:
            continue
        counts = trace.line_counts
        parts = (counts.understood, counts.output, counts.continuation, counts.unexplained)
        assert sum(parts) == counts.total
        assert len(trace.children) < 1000
        assert len(trace.tasks) == len(trace.ids)
        assert all(len(text) <= 200 for _, text in counts.samples)


def test_bytes_that_are_not_utf8():
    data = "\n".join(PLAIN).encode().replace(b"a.b", b"a.\xff\xfe")
    trace = read_log(io.BytesIO(data))
    assert trace.names == ("a.\ufffd\ufffd",)
    assert trace.line_counts.unexplained == 0


def test_a_hole_of_zeros_before_a_log_that_was_truncated_while_open():
    trace = read_log(io.BytesIO(bytes(3_000_000) + "\n".join(PLAIN).encode()))
    assert len(trace.tasks) == 10


def test_lines_beyond_the_limit_are_cut_and_counted():
    long = PLAIN[6][:-1] + "x" * (3 * MAX_LINE)
    trace = read_log([*PLAIN, long, PLAIN[3]])
    assert trace.line_counts.cut == 1
    assert "1 lines are longer than 1 MiB" in trace.warnings[0]
    assert trace.tasks["deliveries"].max() == 2  # the line after it has been read


HOSTILE = {
    "brackets": "[" * MAX_LINE,
    "open tasks": "Task a[" * (MAX_LINE // 7),
    "stamps": "[2026-03-02 08:15:01,204: INFO/MainProcess] " * (MAX_LINE // 45),
    "half stamps": "2026-03-02 08:15:01,204 " * (MAX_LINE // 24),
    "json depth": '{"a":' * (MAX_LINE // 5),
    "json list": '{"event": ' + "[" * (MAX_LINE // 2),
    "json digits": '{"timestamp": ' + "9" * (MAX_LINE // 2) + "}",
    "blanks": "a" + " " * MAX_LINE + "b",
    "bars": "a | " * (MAX_LINE // 4),
    "dashes": " -" * (MAX_LINE // 2),
    "colours": "\x1b[1;33m" * (MAX_LINE // 7),
    "bare colours": "[1;33m" * (MAX_LINE // 6),
    "structlog": "2026-03-02T08:15:01Z [info ] " + " [a.b]" * (MAX_LINE // 6),
    "pairs": "2026-03-02T08:15:01Z [info ] " + " a='" * (MAX_LINE // 4),
    "dots": "a." * (MAX_LINE // 2),
    "result": PLAIN[6] + "[" * MAX_LINE,
    "result of stamps": PLAIN[6] + "[2026-" * (MAX_LINE // 6),
    "zeros": "\0" * MAX_LINE,
    "levels": "INFO " * (MAX_LINE // 5),
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE.keys())
def test_megabyte_lines_take_bounded_time(line):
    begin = time.perf_counter()
    read_log([*PLAIN, line, PLAIN[0] + line, PLAIN[3][:44] + line])
    assert time.perf_counter() - begin < 3.0


def test_memory_does_not_grow_with_a_line():
    line = b"x" * (1 << 16)
    blocks = ("\n".join(PLAIN) + "\n").encode()

    class Endless(io.RawIOBase):
        left = 500

        def read(self, size=-1):
            self.left -= 1
            return blocks if self.left == 499 else line if self.left > 0 else b""

    tracemalloc.start()
    trace = read_log(Endless())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert trace.line_counts.cut == 1
    assert peak < 12 * MAX_LINE
