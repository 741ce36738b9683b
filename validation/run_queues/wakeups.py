"""How long a process that wakes up waits for a core while all cores compute.

    python wakeups.py --json wakeups.json      # a minute and a half, on an idle machine

n processes compute without end; one more sleeps, and notes how late it is when it wakes up, then
computes for a moment, as a worker's supervisor does.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import time
from pathlib import Path
from statistics import quantiles
from typing import Any

LATE_S = 0.0003  #: later than this: it did not get a core at once


def compute() -> None:
    x = 0
    while True:
        for i in range(2000):
            x += i & 3


def sleeper(samples: int, work_s: float) -> list[float]:
    late = []
    for _ in range(samples):
        wait = 0.02 + random.random() * 0.02
        due = time.monotonic() + wait
        time.sleep(wait)
        late.append(time.monotonic() - due)
        end = time.thread_time() + work_s
        while time.thread_time() < end:
            pass
    return late


def measure(processes: int, samples: int, work_s: float) -> dict[str, Any]:
    others = [multiprocessing.Process(target=compute, daemon=True) for _ in range(processes)]
    for process in others:
        process.start()
    time.sleep(0.5)
    late = sleeper(samples, work_s)
    for process in others:
        process.kill()
    waited = [seconds for seconds in late if seconds > LATE_S]
    tenths = quantiles(waited, n=10) if len(waited) > 1 else []
    return {
        "computing": processes,
        "work_s": work_s,
        "samples": samples,
        "share_late": len(waited) / samples,
        "late_ms_tenths": [round(1000 * seconds, 2) for seconds in tenths],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    rows = []
    for processes in (cores - 1, cores, cores + 1, 2 * cores, 4 * cores):
        rows.append(measure(processes, arguments.samples, 0.0003))
        print(rows[-1], flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"cores": cores, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
