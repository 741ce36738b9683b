"""CPU of one wake-up by a green hub, and how it grows with the greenlets that wait.

One greenlet sleeps a millisecond again and again while others wait, either in a
sleep or for a socket. Prints, for each hub and number of waiting greenlets, the
CPU microseconds of one such wake-up (process time, poll included).

    python hub_wakeups.py [--wakeups 300] [--waiting 0 10 100 400]

Needs gevent and eventlet. Each hub runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

HUBS = [
    *(("gevent", kind, {"GEVENT_BACKEND": kind}) for kind in ("epoll", "poll", "select")),
    *(
        ("eventlet", kind, {"EVENTLET_HUB": hub})
        for kind, hub in (("epoll", "epolls"), ("poll", "poll"), ("select", "selects"))
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wakeups", type=int, default=300)
    parser.add_argument("--waiting", type=int, nargs="+", default=[0, 10, 100, 400])
    parser.add_argument("--probe", choices=["gevent", "eventlet"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        print(json.dumps(_probe(options.probe, options.wakeups, options.waiting)))
        return
    counts = [str(n) for n in options.waiting]
    print(f"{'hub':18}{'waiting in':12}" + "".join(f"{n:>9}" for n in counts))
    for library, kind, settings in HUBS:
        command = [sys.executable, __file__, "--probe", library, "--wakeups", str(options.wakeups)]
        output = subprocess.run(
            [*command, "--waiting", *counts],
            env={**os.environ, **settings},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for place, costs in json.loads(output).items():
            print(f"{library + ' ' + kind:18}{place:12}" + "".join(f"{c:9.1f}" for c in costs))


def _probe(library: str, wakeups: int, waiting: list[int]) -> dict[str, list[float]]:
    if library == "gevent":
        import gevent as green
        from gevent import socket
    else:
        import eventlet as green
        from eventlet.green import socket

    def read(sock: socket.socket) -> None:
        sock.recv(1)

    results: dict[str, list[float]] = {"sleep": [], "socket": []}
    for n in waiting:
        for place, costs in results.items():
            pairs = [socket.socketpair() for _ in range(n if place == "socket" else 0)]
            others = (
                [green.spawn(read, one) for one, _ in pairs]
                if pairs
                else [green.spawn(green.sleep, 3600) for _ in range(n)]
            )
            green.sleep(0.01)
            costs.append(1e6 * _cpu_of_a_sleep(green.sleep, wakeups))
            for other in others:
                other.kill()
            green.sleep(0.01)
            for one, two in pairs:
                one.close()
                two.close()
    return results


def _cpu_of_a_sleep(sleep: Callable[[float], object], wakeups: int) -> float:
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        for _ in range(wakeups):
            sleep(0.001)
        best = min(best, (time.process_time() - began) / wakeups)
    return best


if __name__ == "__main__":
    main()
