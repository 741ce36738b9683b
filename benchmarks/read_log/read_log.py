"""How fast read_log is, beside ``grep -c`` on the same file.

Run: ``python benchmarks/read_log/read_log.py [--tasks 500000]``. It writes a
worker log in the plain layout, as Celery 5.6 with eight prefork children and
bursts of tasks would, reads it, and prints lines per second, the ratio to
grep's, and the memory a task takes.
"""

import argparse
import random
import resource
import subprocess
import tempfile
import time
import uuid
from datetime import datetime, timedelta
from pathlib import Path

from celerysim.trace import read_log

CRI = "2026-03-02T08:15:01.204512345Z stderr F "
BANNER = """
 -------------- celery@bench v5.6.3 (recovery)
- ** ---------- .> transport:   amqp://guest:**@localhost:5672//
- *** --- * --- .> concurrency: {min=2, max=8} (prefork)

[2026-03-02 08:15:00,000: INFO/MainProcess] celery@bench ready.
"""


def write_log(path: Path, tasks: int, prefix: str = "") -> int:
    """Write a log of ``tasks`` tasks to ``path`` and return its number of lines."""
    with path.open("w") as file:
        return sum(file.write(f"{prefix}{line}\n") > 0 for line in log_lines(tasks))


def log_lines(tasks: int):
    """The lines of a log of ``tasks`` tasks."""
    rng = random.Random(1)
    now = datetime(2026, 3, 2, 8, 15, 1)
    yield from BANNER.splitlines()

    def stamp(process: str, text: str) -> str:
        at = now.strftime("%Y-%m-%d %H:%M:%S") + f",{now.microsecond // 1000:03}"
        return f"[{at}: INFO/{process}] {text}"

    for batch in range(0, tasks, 8):
        ids = [uuid.UUID(int=rng.getrandbits(128)) for _ in range(min(8, tasks - batch))]
        for id in ids:
            now += timedelta(milliseconds=rng.randint(0, 3))
            yield stamp("MainProcess", f"Task shop.mail.send[{id}] received")
        if batch % 160 == 0:
            yield stamp("MainProcess", "Scaling up 3 processes.")
            yield stamp("MainProcess", "Scaling down 3 processes.")
        for child, id in enumerate(ids, 1):
            now += timedelta(milliseconds=rng.randint(1, 40))
            text = f"Task shop.mail.send[{id}] succeeded in {rng.random():.16f}s: {{'sent': True}}"
            yield stamp(f"ForkPoolWorker-{child}", text)


def best(repeat: int, call) -> float:
    """The shortest of ``repeat`` runs of ``call``, in seconds."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for shape, prefix in (
            ("plain layout", ""),
            ("docker compose", "worker-1  | "),
            ("CRI", CRI),
        ):
            path = Path(folder) / "worker.log"
            tasks = given.tasks if not prefix else given.tasks // 10
            lines = write_log(path, tasks, prefix)
            size = path.stat().st_size
            grep = best(
                given.repeat,
                lambda path=path: subprocess.run(
                    ["grep", "-c", "succeeded in", str(path)], check=True, stdout=subprocess.PIPE
                ),
            )
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            trace = read_log(path)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            ours = best(given.repeat, lambda path=path: read_log(path))
            assert len(trace.tasks) == tasks
            assert trace.line_counts.unexplained == 0
            print(
                f"{shape}: {lines} lines, {size / 1e6:.0f} MB\n"
                f"  read_log  {lines / ours:>12,.0f} lines/s\n"
                f"  grep -c   {lines / grep:>12,.0f} lines/s\n"
                f"  read_log takes {ours / grep:.0f} times as long as grep -c"
            )
            if not prefix:
                print(f"  about {memory * 1024 / tasks:.0f} bytes a task at the peak")


if __name__ == "__main__":
    main()
