"""The worker's command line, environment and settings, as the scenario asks.

Everything that Celery's command line can say is said there, so that the
recorded command can be repeated by hand; the rest goes to the app
(:mod:`celerysim.record.worker_app`) through one environment variable.
"""

from __future__ import annotations

import sys
import uuid

from celerysim.record.errors import RecordError
from celerysim.record.job import VARIABLE, Job
from celerysim.scenario.schema import Scenario

APP = "celerysim.record.worker_app"


def refuse_unreal(scenario: Scenario) -> None:
    """Refuse what no real worker, or not ours, can be told.

    Raises:
        RecordError: names every such setting with its remedy.
    """
    problems = []
    if scenario.worker.idealised:
        problems.append(
            "worker.idealised = true: real acknowledgements lag. "
            "Remedy: set worker.idealised=false."
        )
    if scenario.worker.write_order is not None:
        problems.append(
            f"worker.write_order = {list(scenario.worker.write_order)}: a real worker follows its "
            "file descriptors. Remedy: leave it out."
        )
    for name, profile in scenario.tasks.profiles.items():
        if profile.aftermath is not None:
            problems.append(
                f"tasks.profiles.{name}.aftermath: real processes are as slow as they are. "
                "Remedy: leave it out."
            )
    if scenario.broker.gossiping_workers:
        problems.append(
            f"broker.gossiping_workers = {scenario.broker.gossiping_workers}: the recorded worker "
            "is alone, so that nothing but the scenario wakes it. "
            "Remedy: set broker.gossiping_workers=0."
        )
    if problems:
        raise RecordError("cannot be recorded: " + "\n  ".join(["", *problems]).lstrip())


def make_job(scenario: Scenario, run: uuid.UUID, broker_url: str, loops: int, fd: int) -> Job:
    """The job of recording ``scenario``; ``loops`` is calibrated, ``fd`` hears "ready"."""
    worker = scenario.worker
    return Job(
        run=str(run),
        broker_url=broker_url,
        names=tuple(scenario.tasks.profiles),
        loops=loops,
        ready_fd=fd,
        # Celery 5.6.3 knows the strategy (celery/concurrency/asynpool.py: SCHED_STRATEGIES), but
        # its -O takes only "default" and "fair": the app sets it.
        fast=worker.optimization == "fast",
        conf={
            "worker_prefetch_multiplier": worker.prefetch_multiplier,
            "task_acks_late": worker.task_acks_late,
            "task_reject_on_worker_lost": worker.task_reject_on_worker_lost,
            "worker_proc_alive_timeout": worker.proc_alive_timeout,
        },
    )


def command(scenario: Scenario, job: Job, *, events: bool = False) -> list[str]:
    """The worker's command line; ``events`` adds ``-E``."""
    worker = scenario.worker
    line = [sys.executable, "-m", "celery", "-A", APP, "worker", "-P", str(worker.pool)]
    line += ["-n", job.hostname, "-Q", job.queue, "-l", "INFO"]
    if worker.autoscale is None:
        line.append(f"--concurrency={worker.concurrency}")
    else:
        line.append("--autoscale={},{}".format(*worker.autoscale))
    if worker.optimization != "fast":
        line += ["-O", "fair"]
    memory = worker.max_memory_per_child
    options = {
        "--max-tasks-per-child": worker.max_tasks_per_child,
        "--max-memory-per-child": None if memory is None else round(memory),
        "--time-limit": worker.time_limit,
        "--soft-time-limit": worker.soft_time_limit,
    }
    line += [f"{name}={value}" for name, value in options.items() if value is not None]
    line += [f"--without-{name}" for name in ("gossip", "heartbeat") if not getattr(worker, name)]
    return [*line, "-E"] if events else line


def worker_variables(scenario: Scenario, job: Job) -> dict[str, str]:
    """The worker's environment variables; its log is in UTC."""
    # celery/worker/autoscale.py reads it with float() at import.
    variables = {"AUTOSCALE_KEEPALIVE": repr(scenario.worker.keepalive), "TZ": "UTC"}
    hub = scenario.worker.hub
    if scenario.worker.pool == "gevent":
        variables["GEVENT_BACKEND"] = hub
    elif scenario.worker.pool == "eventlet":
        variables["EVENTLET_HUB"] = {"epoll": "epolls", "select": "selects"}.get(hub, hub)
    return {**variables, VARIABLE: job.dump()}
