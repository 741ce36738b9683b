"""How long short bursts of computing take on cores that are full.

One process sleeps 0.1 s and computes for a few milliseconds of CPU, again and again, beside n
others that compute all the time on the same two cores. Prints quantiles of the bursts' wall
seconds. Linux, Python 3.11 or newer; on an idle machine, about a minute:

    python bursts.py [--bursts 50]
"""

import argparse
import os
import signal
import statistics
import time

CORES = 2
OTHERS = (0, 2, 3, 4, 8)
CPU_S = (0.0005, 0.002, 0.007, 0.02)


def compute(cpu_s: float) -> None:
    """Use ``cpu_s`` seconds of CPU."""
    limit = time.process_time() + cpu_s
    while time.process_time() < limit:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bursts", type=int, default=50)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    print("others  CPU ms   wall ms: mean, median, p10, p90")
    for n in OTHERS:
        children = []
        for _ in range(n):
            child = os.fork()
            if not child:
                compute(1e9)
            children.append(child)
        time.sleep(0.5)
        for cpu_s in CPU_S:
            walls = []
            for _ in range(options.bursts):
                time.sleep(0.1)
                began = time.monotonic()
                compute(cpu_s)
                walls.append(1000 * (time.monotonic() - began))
            tenths = statistics.quantiles(walls, n=10)
            figures = (statistics.mean(walls), statistics.median(walls), tenths[0], tenths[-1])
            print(f"{n:6}{1000 * cpu_s:8.1f}   " + "  ".join(f"{x:6.2f}" for x in figures))
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
