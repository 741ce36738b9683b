"""The fast way through the plain layout is the slow way's equal, also on damaged lines."""

import random

from celerysim.trace.reader import LogReader

ID = "7d3c1e52-0f6b-4c1a-9a51-3a2d9f0c5b11"
LINES = [
    f"[2026-03-02 08:15:01,204: INFO/MainProcess] Task a.b[{ID}] received",
    f"[2026-03-02 08:15:01,204: INFO/ForkPoolWorker-3] Task a.b[{ID}] succeeded in 0.512s: None",
    f"[2026-03-02 08:15:01,204: INFO/MainProcess] Task a b[{ID}] succeeded in 4.1e-05s: [1, [2]]",
    f"[2026-03-02 08:15:59,204: INFO/Worker-3] Task a.b[{ID}] succeeded in 12s",
    f"worker-1  | [2026-03-02 08:15:01,204: INFO/MainProcess] Task a.b[{ID}] received",
    f"[2026-03-02 08:15:59,204: INFO/Worker-3] Task a.b[{ID}] succeeded in 1404.1s: '\x85\u2028é'",
    f"[2026-03-02 08:15:01,204: INFO/Worker-3] Task a[{ID}] succeeded in 1.0s: (x [2026-03-02 y",
]
# Colours are taken off the slow way only.
SLOW = "\x1b[0m"


def read(line):
    reader = LogReader()
    events = list(reader.events([line, "x"]))  # "x": does it belong to the line before?
    counts = reader.counts
    return repr(events), counts.understood, counts.output, counts.continuation, counts.unexplained


def test_both_ways_give_the_same_events_and_counts():
    for line in LINES:
        assert read(line) == read(SLOW + line)


def test_both_ways_agree_on_damaged_lines():
    rng = random.Random(5)
    for _ in range(20_000):
        line = rng.choice(LINES)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(line))
            piece = rng.choice(["", " ", "[", "]", ":", ",", "9", "e", ".", "s", "\r", "é", "\t"])
            line = line[:at] + piece + line[at + rng.randint(0, 2) :]
        assert read(line) == read(SLOW + line), line
