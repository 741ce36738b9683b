"""Does the same work take longer beside others, or after a pause?

*Full*: n processes each do a fixed piece of Python work again and again, all at once, on two cores;
seconds of both cores for a piece, n = 1, 2, 4, 8. What it costs beyond n = 2 is switching, colder
caches and the kernel's own work. *Pause*: one process does the piece after sleeping 0.1 s and 8 s,
by turns. Linux, Python 3.11 or newer; on an idle machine, about 4 minutes:

    python speed.py [--rounds 5] [--json speed.json]
"""

import argparse
import json
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

CORES = 2
PIECES = 4
PAUSES_S = (0.1, 8.0)


def work() -> int:
    """About 0.6 s of Python."""
    return sum(i * i for i in range(10_000_000))


def full(n: int, cores: list[int]) -> dict[str, float]:
    """Wall and CPU core-seconds for a piece, with ``n`` processes at once."""
    go, started = os.pipe()
    ends, ended = os.pipe()
    children = []
    for _ in range(n):
        child = os.fork()
        if not child:
            os.close(started)
            os.sched_setaffinity(0, cores)
            os.read(go, 1)  # until the other end is closed
            before = time.process_time()
            for _ in range(PIECES):
                work()
            row = [time.monotonic(), time.process_time() - before]
            os.write(ended, (json.dumps(row) + "\n").encode())
            os._exit(0)
        children.append(child)
    time.sleep(0.3)
    began = time.monotonic()
    os.close(started)
    for child in children:
        os.waitpid(child, 0)
    os.close(ended)
    with os.fdopen(ends) as file:
        rows = [json.loads(line) for line in file]
    os.close(go)
    wall = max(end for end, _ in rows) - began
    done = n * PIECES
    return {"wall": wall * min(n, CORES) / done, "cpu": sum(cpu for _, cpu in rows) / done}


def after(pause_s: float) -> dict[str, float]:
    """Wall and CPU seconds of a piece after a pause."""
    time.sleep(pause_s)
    began, before = time.monotonic(), time.process_time()
    work()
    return {"wall": time.monotonic() - began, "cpu": time.process_time() - before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    rows: dict[str, list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for n in (1, 2, 4, 8):
            rows.setdefault(f"{n} at once", []).append(full(n, cores))
        for pause_s in PAUSES_S:
            rows.setdefault(f"after {pause_s} s", []).append(after(pause_s))
            rows.setdefault(f"at once after that ({pause_s} s)", []).append(after(0.0))
    table: dict[str, Any] = {}
    for label, of_rounds in rows.items():
        table[label] = {key: [round(row[key], 4) for row in of_rounds] for key in ("wall", "cpu")}
        wall, cpu = (statistics.median(table[label][key]) for key in ("wall", "cpu"))
        spread = [f"{value:.4f}" for value in sorted(table[label]["wall"])]
        print(f"{label:<28}wall {wall:.4f}  cpu {cpu:.4f}  {' '.join(spread)}")
    if options.json:
        facts = {"kernel": platform.release(), "cpus": os.cpu_count(), "table": table}
        options.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
