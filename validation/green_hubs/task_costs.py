"""CPU of a task beside its steps, in a worker that runs it in its own process.

Runs an empty task through Celery's own tracer, as the pool does, each in a new
greenlet (gevent, eventlet) or in a thread, after a pause as in a lightly loaded
worker. Prints the median microseconds from the pool's call to the task's first
line, from its last line to the log line "succeeded" (green: the result backend
is made anew here), and from there to the end.

    python task_costs.py [--tasks 100] [--pause 0.05]

Needs celery, gevent and eventlet. Each library runs in a process of its own.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import distributions
from itertools import pairwise
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--probe", choices=["gevent", "eventlet", "threads"])
    options = parser.parse_args()
    if options.probe:
        print(json.dumps(_probe(options.probe, options.tasks, options.pause)))
        return
    print(f"{len(list(distributions()))} distributions installed")
    print(f"{'':10}{'start':>8}{'to log':>8}{'end':>8}")
    for library in ("gevent", "eventlet", "threads"):
        command = [sys.executable, __file__, "--probe", library]
        sizes = ["--tasks", str(options.tasks), "--pause", str(options.pause)]
        output = subprocess.run([*command, *sizes], check=True, stdout=subprocess.PIPE).stdout
        print(f"{library:10}" + "".join(f"{1e6 * s:8.0f}" for s in json.loads(output)))


def _probe(library: str, tasks: int, pause: float) -> list[float]:
    run = _runner(library)
    from celery import Celery
    from celery.app import trace
    from celery.concurrency.base import apply_target

    app = Celery("costs", set_as_current=True)
    marks: list[float] = []

    class Log(logging.StreamHandler[Any]):
        def emit(self, record: logging.LogRecord) -> None:
            super().emit(record)
            marks.append(time.perf_counter())

    logger = logging.getLogger("celery.app.trace")
    logger.setLevel(logging.INFO)
    logger.addHandler(Log(io.StringIO()))
    trace._does_info = True

    @app.task(name="empty", ignore_result=True)
    def empty() -> None:
        marks.append(time.perf_counter())

    app.finalize()
    trace.setup_worker_optimizations(app)
    for task in app.tasks.values():
        task.__trace__ = trace.build_tracer(task.name, task, app.loader, "costs", app=app)
    body = json.dumps([[], {}, {}])
    request = {"id": "0", "task": "empty", "delivery_info": {}, "hostname": "costs"}

    def call() -> None:
        marks.append(time.perf_counter())
        arguments = ("empty", "0", dict(request), body, "application/json", "utf-8")
        apply_target(trace.fast_trace_task, arguments, {}, lambda result: None, pid=1)
        marks.append(time.perf_counter())

    rows = []
    for _ in range(tasks + 10):
        marks.clear()
        run(call)
        time.sleep(pause)
        rows.append([b - a for a, b in pairwise(marks)])
    return [statistics.median(column) for column in zip(*rows[10:], strict=True)]


def _runner(library: str) -> Callable[[Callable[[], None]], Any]:
    """What runs a function in a new greenlet or in a thread, and waits for it."""
    if library == "gevent":
        from gevent import monkey, spawn

        monkey.patch_all()
        return lambda function: spawn(function).join()
    if library == "eventlet":
        import eventlet

        eventlet.monkey_patch()
        return lambda function: eventlet.spawn(function).wait()
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(1)
    return lambda function: executor.submit(function).result()


if __name__ == "__main__":
    main()
