"""Measure what a real Celery prefork worker spends on each step of a task and of a child's life.

Starts prefork workers on RabbitMQ (own queues with unique names, deleted at the end), times the
steps inside their processes (see probes.py), and prints one table: wall and CPU seconds of each
step. Linux, Python 3.11 or newer; run it on an idle machine:

    python measure.py --repeat 2 --json costs.json [--broker amqp://guest:guest@127.0.0.1:5672//]
"""

import argparse
import contextlib
import json
import os
import platform
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from analysis import Samples, analyse, startup_timeline, summary
from probes import Log, Row, app, wrap

PROBES = Path(__file__).with_name("probes.py")
Phase = dict[str, Any]

LIGHT: Phase = {"n": 300, "batch": 1, "pause": 0.05, "sleep": 0.01}
BURST: Phase = {"batch": 8, "sleep": 0.25}
RUNS: list[tuple[list[str], list[Phase]]] = [  # worker options and the phases of their load
    (
        ["-c", "8"],
        [LIGHT | {"name": "fixed light"}, BURST | {"name": "fixed burst", "n": 320, "pause": 0.4}],
    ),
    (
        ["--autoscale=8,4"],
        [
            LIGHT | {"name": "scaled light", "n": 200},
            BURST | {"name": "scaled burst of 5", "n": 40, "batch": 5, "pause": 4.2},
            BURST | {"name": "scaled burst of 8", "n": 96, "pause": 4.2},
            BURST | {"name": "scaled tight", "n": 240, "pause": 0.7},
        ],
    ),
]


def send(phases: list[Phase], env: dict[str, str]) -> list[Row]:
    """Run a publisher process; its rows."""
    command = [sys.executable, str(PROBES), "publish", json.dumps(phases)]
    out = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [tuple(json.loads(line)) for line in out.splitlines()]


def watch(pids_fd: int, zombies: dict[int, float], stop: threading.Event) -> None:
    """Note when each child becomes a zombie: its pidfd turns readable in exit_notify()."""
    poller = select.poll()
    owner: dict[int, int] = {}
    poller.register(pids_fd, select.POLLIN)
    while not stop.is_set():
        for fd, _ in poller.poll(200):
            if fd != pids_fd:
                zombies[owner.pop(fd)] = time.monotonic()
                poller.unregister(fd)
                os.close(fd)
                continue
            for pid in map(int, os.read(fd, 4096).split()):
                with contextlib.suppress(ProcessLookupError):
                    owner[child := os.pidfd_open(pid)] = pid
                    poller.register(child, select.POLLIN)


def run_worker(
    options: list[str],
    phases: list[Phase],
    env: dict[str, str],
    *,
    preload: bool = False,
) -> tuple[int, list[Row], list[Row], dict[int, float]]:
    """Run one worker under the load; its pid, its rows, the published rows, children's ends."""
    sent = send(phases, env) if preload else []
    read_fd, write_fd = os.pipe()
    zombies: dict[int, float] = {}
    stop = threading.Event()
    watcher = threading.Thread(target=watch, args=(read_fd, zombies, stop))
    with tempfile.TemporaryFile("a+") as rows, tempfile.NamedTemporaryFile("w+") as log:
        env = env | {"COSTS_FD": str(rows.fileno()), "COSTS_PIDS": str(write_fd)}
        worker = subprocess.Popen(
            [
                sys.executable,
                str(PROBES),
                "worker",
                "-l",
                "INFO",
                "-n",
                env["COSTS_QUEUE"],
                *options,
            ],
            env=env,
            pass_fds=(rows.fileno(), write_fd),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        watcher.start()
        try:
            for _ in range(300):
                text = Path(log.name).read_text()
                if worker.poll() is not None:
                    raise RuntimeError(f"the worker ended at once:\n{text}")
                if " ready." in text:
                    break
                time.sleep(0.1)
            time.sleep(1.5)
            sent = sent or send(phases, env)
            time.sleep(1.0)
        finally:
            worker.send_signal(signal.SIGTERM)
            try:
                worker.wait(20)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
            stop.set()
            watcher.join()
            os.close(read_fd)
            os.close(write_fd)
        rows.seek(0)
        return worker.pid, [tuple(json.loads(line)) for line in rows], sent, zombies


def machine(broker: str) -> dict[str, Any]:
    """What the figures depend on; no host name."""
    with open("/proc/cpuinfo") as info:
        model = next(
            (line.split(":")[1].strip() for line in info if line.startswith("model name")),
            "unknown",
        )
    with app.connection(broker) as connection:
        rabbitmq = connection.default_channel.connection.client.connection.server_properties[
            "version"
        ]
    noop = wrap(lambda: None, "noop")
    start = time.perf_counter()
    for _ in range(10_000):
        noop()
    overhead, Log.rows = (time.perf_counter() - start) / 10_000, []
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
        "rabbitmq": rabbitmq,
        "load average before": os.getloadavg()[0],
        "seconds one probe adds": overhead,
        **{name: version(name) for name in ("celery", "kombu", "billiard", "amqp")},
    }


def measure_once(queue: str, env: dict[str, str]) -> tuple[Samples, list[list[tuple[float, str]]]]:
    """All runs once: samples, and timelines of workers that start with messages in the queue."""
    out: Samples = defaultdict(list)
    for options, phases in RUNS:
        analyse(*run_worker(options, phases, env | {"AUTOSCALE_KEEPALIVE": "2"}), out)
    timelines = []
    for _ in range(3):
        pid, rows, sent, zombies = run_worker(
            ["--autoscale=4,2"], [BURST | {"name": "start", "n": 4, "pause": 0}], env, preload=True
        )
        found: Samples = defaultdict(list)
        analyse(pid, rows, sent, zombies, found)
        out["quick_drain_s", "messages in queue"] += found["quick_drain_s", "messages in queue"]
        timelines.append(startup_timeline(pid, rows))
    for plan in (
        LIGHT | {"name": "warm connection", "pause": 0.002, "sleep": 0.0},
        LIGHT | {"name": "broker_pool_limit=None", "n": 100, "pool_limit": None, "sleep": 0.0},
    ):
        for name, _, _, wall, cpu in send([plan], env | {"COSTS_QUEUE": queue + "_publish"})[1:]:
            out["publish_s", name].append((wall, cpu))  # without the first, which imports
    return out, timelines


def main() -> None:
    """Measure, print the table, write the JSON file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--broker", default="amqp://guest:guest@127.0.0.1:5672//")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything started is stopped
    queue = f"costs_{uuid.uuid4().hex[:12]}"
    env = os.environ | {"COSTS_BROKER": options.broker, "COSTS_QUEUE": queue}
    report: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "machine": machine(options.broker)}
    try:
        repeats = [measure_once(queue, env) for _ in range(options.repeat)]
    finally:
        with app.connection(options.broker) as connection:
            for name in (queue, queue + "_publish"):
                connection.default_channel.queue_delete(name)
                connection.default_channel.exchange_delete(name)
    costs: dict[str, dict[str, Any]] = defaultdict(dict)
    print(
        f"| {'cost':44} | {'when':24} |     n | wall ms: median |    mean |     p10 |     p90 "
        "| CPU ms: median |    mean |     p10 |     p90 | wall medians of repeats |"
    )
    print("|" + "---|" * 12)
    for key in sorted({key for samples, _ in repeats for key in samples}):
        each = [summary(samples[key]) for samples, _ in repeats if samples[key]]
        found = summary([pair for samples, _ in repeats for pair in samples[key]])
        found["repeats"] = [(one.get("wall") or one["cpu"])["median"] for one in each]
        costs[key[0]][key[1]] = found
        scale = 1.0 if "(a count" in key[0] or "(a share" in key[0] else 1e3
        cells = [
            f"{found[kind][k] * scale:7.3f}" if kind in found else "      -"
            for kind in ("wall", "cpu")
            for k in ("median", "mean", "p10", "p90")
        ]
        print(
            f"| {key[0]:44} | {key[1]:24} | {found['n']:5} | {' | '.join(cells)} "
            f"| {', '.join(f'{v * scale:.3f}' for v in found['repeats'])} |"
        )
    report |= {
        "costs": costs,
        "start_with_4_messages_in_queue": [t for _, lines in repeats for t in lines],
    }
    for at, text in report["start_with_4_messages_in_queue"][-1]:
        print(f"{at * 1e3:9.2f} ms after ready: {text}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
