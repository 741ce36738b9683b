"""A Celery prefork worker that times its own steps, and the publisher that feeds it.

`probes.py worker OPTIONS` runs Celery's worker with the patches of `instrument()`;
`probes.py publish PLAN` sends the load. `measure.py` starts both. A recorded row is
(pid, start, CPU at start, label, wall, CPU, notes...), times from time.monotonic() and
time.process_time(); rows stay in memory and are written when a child waits or a process ends.
"""

import atexit
import gc
import json
import logging
import os
import resource
import sys
import time
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, ClassVar

from celery import Celery

ACK, READY, DEATH, UP = 0, 1, 4, 15  # what a child reports (billiard.pool, celery asynpool)
Row = tuple[Any, ...]
Note = Callable[..., Row]
app = Celery("costs", set_as_current=True)
app.conf.update(
    broker_url=os.environ.get("COSTS_BROKER", ""),
    task_default_queue=os.environ.get("COSTS_QUEUE", "costs"),
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


class Log:
    """Rows of this process; `busy`: wall, CPU and poll seconds within the current hub tick."""

    rows: ClassVar[list[Row]] = []
    inherited: ClassVar[list[Row]] = []  # of the supervisor, in a child; freeing them costs time
    depth = 0
    busy: ClassVar[list[float]] = [0.0, 0.0, 0.0]
    wait_cpu = 0.0  # a child's CPU time when it last began to wait for a job

    @classmethod
    def flush(cls) -> None:
        """Append the rows to the common file and forget them."""
        pid, rows, cls.rows = os.getpid(), cls.rows, []
        if rows:
            os.write(
                int(os.environ["COSTS_FD"]),
                "".join(json.dumps((pid, *r)) + "\n" for r in rows).encode(),
            )


def wrap(function: Callable[..., Any], label: str, note: Note = lambda result, *args: ()) -> Any:
    """Return `function` with its wall and CPU time recorded under `label`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        start, cpu, result = time.monotonic(), time.process_time(), None
        Log.depth += 1
        try:
            result = function(*args, **kwargs)
            return result
        finally:
            Log.depth -= 1
            wall, cpu_used = time.monotonic() - start, time.process_time() - cpu
            Log.rows.append((start, cpu, label, wall, cpu_used, *note(result, *args)))
            if not Log.depth:
                Log.busy[0] += wall
                Log.busy[1] += cpu_used

    return call


def patch(owner: Any, name: str, label: str, note: Note = lambda result, *args: ()) -> None:
    """Record every call of `owner.name`."""
    setattr(owner, name, wrap(getattr(owner, name), label, note))


def after(owner: Any, name: str, then: Callable[..., object]) -> None:
    """Call `then(self, result)` after each call of the method `owner.name`."""
    original = getattr(owner, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        then(self, result)
        return result

    setattr(owner, name, call)


@app.task(name="costs.work")  # type: ignore[untyped-decorator, unused-ignore]
def work(sleep: float) -> None:
    """The measured task: sleeps, and records when its body ran."""
    wrap(time.sleep, "body")(sleep)


def instrument() -> None:
    """Patch billiard, kombu and celery in this process (its children inherit it)."""
    asynpool, bpool = import_module("celery.concurrency.asynpool"), import_module("billiard.pool")
    popen = import_module("billiard.popen_fork").Popen
    hub = import_module("kombu.asynchronous.hub").Hub
    epoll, pool = import_module("kombu.utils.eventio")._epoll, asynpool.AsynPool

    # the broker's side: frames, task handler, acknowledgements
    patch(import_module("amqp").Connection, "drain_events", "drain")
    consumer = import_module("celery.worker.consumer.consumer").Consumer
    make_handler = consumer.create_task_handler
    consumer.create_task_handler = lambda self: wrap(
        make_handler(self), "handle", lambda _, message: (message.headers["id"],)
    )
    patch(import_module("kombu.message").Message, "ack_log_error", "ack")
    patch(import_module("kombu.common").QoS, "update", "qos update")
    patch(import_module("celery.worker.loops"), "_quick_drain", "quick drain")
    patch(import_module("celery.worker.autoscale").Autoscaler, "maybe_scale", "scale")
    patch(logging.StreamHandler, "emit", "log", lambda _, handler, record: (str(record.msg)[:60],))

    # the hub: what a tick costs besides the callbacks recorded here
    create_loop, poll = hub.create_loop, epoll.poll

    def timed_loop(self: Any) -> Iterator[None]:
        inner = create_loop(self)
        while True:
            Log.busy, start, cpu = [0.0, 0.0, 0.0], time.monotonic(), time.process_time()
            if next(inner, StopIteration) is StopIteration:
                return
            wall, cpu_used = time.monotonic() - start, time.process_time() - cpu
            Log.rows.append(
                (start, cpu, "tick", wall - Log.busy[0] - Log.busy[2], cpu_used - Log.busy[1])
            )
            yield

    def timed_poll(self: Any, timeout: float) -> Any:
        start = time.monotonic()
        events = poll(self, timeout)
        Log.busy[2] += time.monotonic() - start
        return events

    hub.create_loop, epoll.poll = timed_loop, timed_poll

    # the pool's supervisor side: writes, messages of children, forks, terminations, reaping
    def writes(self: Any, _: Any) -> None:
        loop = import_module("kombu.asynchronous").get_event_loop()
        write, buffer = loop.consolidate_callback, self.outbound_buffer
        before = [0]

        def counted(fds: Any) -> None:
            before[0] = len(buffer)
            write(fds)

        loop.consolidate_callback = wrap(counted, "dispatch", lambda *_: (before[0] - len(buffer),))

    after(pool, "_create_write_handlers", writes)

    def sends(self: Any, process: Any) -> None:
        process.send_job_offset = wrap(
            process.send_job_offset, "send", lambda _, buf, offset: (process.pid, len(buf))
        )

    after(asynpool.Worker, "contribute_to_object", sends)

    def states(self: Any, _: Any) -> None:
        for state, handler in self.state_handlers.items():
            self.state_handlers[state] = wrap(
                handler, "state", lambda _, job, *a, s=state: (s, job)
            )

    after(asynpool.ResultHandler, "__init__", states)
    make_reader = asynpool.ResultHandler._make_process_result
    asynpool.ResultHandler._make_process_result = lambda self, hub: wrap(
        make_reader(self, hub), "result"
    )
    patch(
        pool,
        "_create_worker_process",
        "fork",
        lambda worker, self, i: (worker and worker.pid, len(self._pool) - 1),
    )
    vars(asynpool)["gc"] = types.SimpleNamespace(collect=wrap(gc.collect, "gc"))
    patch(popen, "_launch", "launch", lambda _, self, obj: (self.pid,))
    after(
        popen,
        "_launch",
        lambda self, _: os.write(int(os.environ["COSTS_PIDS"]), b"%d\n" % self.pid),
    )
    patch(popen, "terminate", "terminate", lambda _, self: (self.pid,))
    patch(pool, "_join_exited_workers", "reap", lambda exits, *_, **__: (len(exits or ()),))
    patch(pool, "process_flush_queues", "flush")
    patch(asynpool, "_select", "select", lambda found, *_: (len(found[0]),))
    patch(pool, "_event_process_exit", "exit event", lambda _, self, hub, proc: (proc.pid,))
    wait = popen.poll

    def timed_wait(self: Any, flag: int = os.WNOHANG) -> Any:
        known, code = self.returncode, wait(self, flag)
        if known is None and code is not None:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            Log.rows.append(
                (time.monotonic(), 0.0, "waited", 0.0, used.ru_utime + used.ru_stime, self.pid)
            )
        return code

    popen.poll = timed_wait

    # the children
    start_child, make_methods = bpool.Worker.after_fork, asynpool.Worker._make_child_methods

    def child_begins(self: Any) -> None:
        Log.inherited, Log.rows, Log.depth = Log.rows, [], 0
        put = wrap(self.outq.put, "put", lambda _, message: (message[0], Log.wait_cpu))

        def put_and_save(message: Row) -> None:
            put(message)
            if message[0] == DEATH:
                Log.flush()

        self.outq.put = put_and_save
        start_child(self)

    def child_methods(self: Any) -> None:
        make_methods(self)
        receive = self.wait_for_job

        def wait_for_job() -> Any:
            Log.flush()
            Log.wait_cpu = time.process_time()
            return receive()

        self.wait_for_job = wait_for_job

    asynpool.Worker.after_fork, asynpool.Worker._make_child_methods = child_begins, child_methods
    atexit.register(Log.flush)


# ---------------------------------------------------------------- the publisher
def publish(phases: list[dict[str, Any]]) -> None:
    """Send the phases' tasks and print one JSON row a task: phase, id, start, wall, CPU."""
    for phase in phases:
        app.conf.broker_pool_limit = phase.get("pool_limit", 10)
        rows = []
        for k in range(phase["n"]):
            start, cpu = time.monotonic(), time.process_time()
            task_id = work.apply_async((phase["sleep"],)).id
            rows.append(
                (phase["name"], task_id, start, time.monotonic() - start, time.process_time() - cpu)
            )
            if k % phase["batch"] == phase["batch"] - 1:
                time.sleep(phase["sleep"] + phase["pause"])
        print("\n".join(map(json.dumps, rows)))


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        instrument()
        app.worker_main(sys.argv[1:])
    else:
        publish(json.loads(sys.argv[2]))
