"""In which order a green hub runs what has become ready while a greenlet computed.

Greenlets "early" and "late" sleep for 20 and 30 ms, "reader" waits for a socket
with a time-out of 25 ms. After 10 ms a greenlet computes until 50 ms, then
writes to the socket and spawns "new". Prints who runs, in order, for each hub:

    gevent    new early late reader:data
    eventlet  reader:data early late new

    python hub_order.py
"""

from __future__ import annotations

import subprocess
import sys
import time


def main() -> None:
    for library in sys.argv[1:]:
        print(f"{library:10}" + " ".join(_order(library)))
    if not sys.argv[1:]:
        for library in ("gevent", "eventlet"):  # each in a process of its own
            subprocess.run([sys.executable, __file__, library], check=True)


def _order(library: str) -> list[str]:
    if library == "gevent":
        import gevent as green
        from gevent import socket
    else:
        import eventlet as green
        from eventlet.green import socket

    one, two = socket.socketpair()
    one.settimeout(0.025)
    order: list[str] = []

    def sleeper(name: str, seconds: float) -> None:
        green.sleep(seconds)
        order.append(name)

    def reader() -> None:
        try:
            one.recv(1)
            order.append("reader:data")
        except TimeoutError:
            order.append("reader:time-out")

    def computing() -> None:
        green.sleep(0.01)
        until = time.monotonic() + 0.04
        while time.monotonic() < until:
            pass
        two.send(b"x")
        green.spawn(order.append, "new")

    for function, *arguments in (
        (sleeper, "late", 0.03),
        (sleeper, "early", 0.02),
        (reader,),
        (computing,),
    ):
        green.spawn(function, *arguments)
    green.sleep(0.2)
    return order


if __name__ == "__main__":
    main()
