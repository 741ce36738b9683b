"""How the kernel shares two cores among more computations than cores.

Wakes n processes, all waiting on a pipe, one after the other; each computes until it has used its
CPU seconds, and notes on which core it is. Prints when they end, beside the machines:
run queues for each core, and processor sharing. Linux, Python 3.11 or newer; on an idle machine:

    python measure.py [--rounds 10] [--json run_queues.json]
"""

import argparse
import ctypes
import json
import math
import os
import platform
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import simpy

from celerysim.engine.machine import Machine
from celerysim.engine.run_queues import RunQueues
from celerysim.scenario.schema import Machine as Settings

#: How the burners are modelled: the seconds of balance, None for processor sharing.
MODELS = {
    "run queues": Settings().balance_s,
    "never balanced": math.inf,
    "sharing": None,
}
BURNERS = (3, 4, 5, 8)
CPU_S = (0.6, 2.0)
CORES = 2

_getcpu = ctypes.CDLL(None).sched_getcpu


def burn(cpu_s: float) -> dict[str, Any]:
    """Compute for ``cpu_s`` seconds of CPU; when it began and ended, and the changes of core."""
    began = time.monotonic()
    limit = time.process_time() + cpu_s
    moves = [(began, _getcpu())]
    while time.process_time() < limit:
        for _ in range(500):  # some 10 microseconds
            pass
        core = _getcpu()
        if core != moves[-1][1]:
            moves.append((time.monotonic(), core))
    return {"began": began, "ended": time.monotonic(), "moves": moves}


def race(n: int, cpu_s: float, cores: list[int]) -> list[dict[str, Any]]:
    """What each of ``n`` burners reports, in the order in which they were woken; from the first."""
    starts, results, children = [], [], []
    for _ in range(n):
        (start, started), (result, resulted) = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            os.sched_setaffinity(0, cores)
            os.read(start, 1)
            os.write(resulted, json.dumps(burn(cpu_s)).encode())
            os._exit(0)
        starts.append(started)
        results.append(result)
        children.append(child)
    time.sleep(0.3)  # they all sleep now
    origin = time.monotonic()
    for started in starts:
        os.write(started, b"x")
    found = []
    for child, result in zip(children, results, strict=True):
        os.waitpid(child, 0)
        row = json.loads(os.read(result, 1 << 16))
        found.append(
            {
                "began": row["began"] - origin,
                "ended": row["ended"] - origin,
                "moves": [[at - origin, core] for at, core in row["moves"]],
            }
        )
    return found


def modelled(n: int, cpu_s: float, balance_s: float | None) -> list[float]:
    """When the burners end on the machine with run queues; None: with processor sharing."""
    env = simpy.Environment()
    cores = Machine(env, CORES) if balance_s is None else RunQueues(env, CORES, 1.0, balance_s)
    ends = []
    for number in range(n):
        cores.work(cpu_s, number).callbacks.append(lambda _: ends.append(env.now))
    env.run()
    return sorted(ends)


def between_moves(rounds: list[list[dict[str, Any]]]) -> list[float]:
    """Seconds between one change of core and the next, the start counting as one."""
    gaps = []
    for burners in rounds:
        moves = sorted(at for row in burners for at, _ in row["moves"][1:])
        gaps += [b - a for a, b in pairwise([0.0, *moves])]
    return gaps


def stolen() -> float:
    """Seconds the hypervisor has taken from this machine so far, all cores together."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    table = []
    for n in BURNERS:
        for cpu_s in CPU_S:
            before = stolen()
            rounds = [race(n, cpu_s, cores) for _ in range(options.rounds)]
            ends = [sorted(row["ended"] for row in burners) for burners in rounds]
            gaps = between_moves(rounds)
            medians = [statistics.median(column) for column in zip(*ends, strict=True)]
            row = {
                "burners": n,
                "cpu_s": cpu_s,
                "ends_s": [round(end, 3) for end in medians],
                "ends_of_rounds_s": [[round(end, 3) for end in round_] for round_ in ends],
                "moves": len(gaps),
                "between_moves_s": round(statistics.median(gaps), 3) if gaps else None,
                "stolen_s": round(stolen() - before, 2),
            }
            table.append(row)
            print(
                f"{n} burners of {cpu_s} s: {len(gaps) / options.rounds:.1f} moves a round, median "
                f"{row['between_moves_s']} s apart; stolen {row['stolen_s']} s in all"
            )
            print_row("measured", medians)
            for label, balance_s in MODELS.items():
                print_row(label, modelled(n, cpu_s, balance_s))
            sys.stdout.flush()
    if options.json:
        facts = {"kernel": platform.release(), "cpus": os.cpu_count(), "cores": CORES}
        lines = ",\n    ".join(json.dumps(row) for row in table)
        options.json.write_text(f'{json.dumps(facts)[:-1]},\n  "table": [\n    {lines}\n  ]\n}}\n')


def print_row(label: str, ends: list[float]) -> None:
    print(f"  {label:<16}" + "".join(f"{end:7.3f}" for end in ends))


if __name__ == "__main__":
    main()
