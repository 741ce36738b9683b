"""The scenario: everything a run depends on, as frozen models that refuse unknown fields.

Settings of Celery's keep Celery's names, units and defaults (5.6.3); our own
fields carry their unit in the name. The text beneath a field is its
documentation, here and in the generated reference.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from celerysim.scenario.base import Count, Duration, Model, Positive, Second, Share, refuse
from celerysim.scenario.costs import Costs
from celerysim.scenario.distributions import Seconds

# --- producer ---------------------------------------------------------------------------------


class _Producer(Model):
    start_s: Second = 0.0
    """Seconds after the worker's "ready" at which publishing starts; negative: before it, so that
    the first messages wait in the queue when the worker comes up."""
    publish_s: Seconds = Field(default=0, validate_default=True)
    """Seconds one publish takes; the broker has the message at the end of them."""
    max_tasks: Count | None = None
    """Stop after this many tasks."""
    duration_s: Positive | None = None
    """Stop this many seconds after ``start_s``; a batch that began before is completed."""


class Batches(_Producer):
    """``batch_size`` messages one after the other, then a pause, and again."""

    kind: Literal["batches"] = "batches"
    batch_size: Count
    """Messages in a batch."""
    pause_s: Seconds
    """Seconds slept after a batch; the time between batches is this plus the publishing."""


class Rate(_Producer):
    """A message every ``1 / rate_per_s`` seconds, on a schedule that does not drift."""

    kind: Literal["rate"]
    rate_per_s: Positive
    """Messages a second."""


class Poisson(_Producer):
    """Exponential times between messages: a Poisson process."""

    kind: Literal["poisson"]
    rate_per_s: Positive
    """Mean messages a second."""


class Times(_Producer):
    """Messages at given times."""

    kind: Literal["times"]
    times_s: Annotated[tuple[Second, ...], Field(min_length=1)]
    """Seconds after ``start_s`` at which publishing each message begins, in ascending order."""

    @field_validator("times_s")
    @classmethod
    def _ascending(cls, times_s: tuple[float, ...]) -> tuple[float, ...]:
        if any(b < a for a, b in pairwise(times_s)):
            raise refuse("times_s must be in ascending order", "sort the times")
        return times_s


Producer = Annotated[Batches | Rate | Poisson | Times, Field(discriminator="kind")]


# --- tasks ------------------------------------------------------------------------------------


class StepKind(IntEnum):
    """What a task does in a step."""

    IO = 0  #: waits, and lets others run
    CPU = 1  #: computes
    BLOCK = 2  #: waits without letting the other greenlets of its process run


class Step(Model):
    """One stretch of a task: computing or waiting. Exactly one field is given."""

    cpu_s: Seconds | None = None
    """Seconds of CPU work, at machine speed 1; shares the cores with everything else. Python code:
    in a ``threads`` worker it holds the interpreter lock."""
    io_s: Seconds | None = None
    """Seconds of waiting that use no CPU: a sleep, a query, a request."""
    block_s: Seconds | None = None
    """Seconds of waiting in a call that is not patched for greenlets, such as a blocking database
    driver: holds up a whole ``gevent`` or ``eventlet`` worker, and is like ``io_s`` elsewhere."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(seconds is not None for seconds in (self.cpu_s, self.io_s, self.block_s)) != 1:
            raise refuse(
                "a step is one of cpu_s, io_s and block_s",
                "write { cpu_s = 0.1 }, { io_s = 1.5 } or { block_s = 0.2 }",
            )
        return self

    @property
    def kind(self) -> StepKind:
        """What the task does in this step."""
        if self.cpu_s is not None:
            return StepKind.CPU
        return StepKind.IO if self.io_s is not None else StepKind.BLOCK

    @property
    def is_cpu(self) -> bool:
        """Whether the step computes."""
        return self.kind is StepKind.CPU

    @property
    def seconds(self) -> Seconds:
        """The step's duration."""
        given = (self.cpu_s, self.io_s, self.block_s)
        return next(seconds for seconds in given if seconds is not None)


class Aftermath(Model):
    """What a task leaves behind in its process: some later tasks there compute more slowly."""

    factor: Positive
    """CPU seconds of a slow task, relative to what its steps say: 1.05 is 5 % more."""
    share: Share
    """How many of the tasks of other profiles that come later in the same process are slow. (Each
    task has one number that decides it, so what is slow after one profile is after another.)"""
    share_after_idle: Share
    """The same of tasks that compute first thing after the process has been idle."""
    idle_s: Positive = 5.0
    """Seconds without a task from which on a process counts as idle."""


class Profile(Model):
    """What one kind of task does."""

    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    """The steps, in order."""
    weight: Positive = 1.0
    """How often this profile is drawn, relative to the others; unused with ``tasks.pattern``."""
    first_in_child_cpu_s: Duration = 0.0
    """Seconds of CPU work that the first such task of each process does before its steps: an
    import, a connection, a table that it leaves to the next ones. Children forked later pay too."""
    aftermath: Aftermath | None = None
    """What such a task does to those that follow in its process, for as long as that lives."""
    rss_growth_kib: Duration = 0.0
    """Resident memory (KiB) that each such task leaves behind in its child process."""


class Tasks(Model):
    """The mix of tasks."""

    profiles: Annotated[dict[str, Profile], Field(min_length=1)]
    """Task name to profile."""
    pattern: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Task names in the order they are sent, repeated; without it names are drawn by weight."""
    trace: Annotated[tuple[tuple[str, tuple[Duration, ...]], ...], Field(min_length=1)] | None = (
        None
    )
    """Task by task, in the order they are sent, repeated: a name and the seconds of each of its
    profile's steps. Replaces ``pattern``, the weights and the seconds in ``profiles``."""

    @field_validator("pattern")
    @classmethod
    def _known(
        cls, pattern: tuple[str, ...] | None, info: ValidationInfo
    ) -> tuple[str, ...] | None:
        profiles = info.data.get("profiles")  # absent when it is wrong itself
        for name in pattern or ():
            if profiles is not None and name not in profiles:
                raise refuse(
                    f"pattern names '{name}', which is no profile",
                    f"add [tasks.profiles.{name}] or use one of {', '.join(profiles)}",
                )
        return pattern

    @field_validator("trace")
    @classmethod
    def _fits(
        cls, trace: tuple[tuple[str, tuple[float, ...]], ...] | None, info: ValidationInfo
    ) -> tuple[tuple[str, tuple[float, ...]], ...] | None:
        profiles = info.data.get("profiles")
        for name, seconds in trace or ():
            if profiles is None:
                break
            if name not in profiles:
                raise refuse(f"trace names '{name}', which is no profile", "add it to profiles")
            if len(seconds) != len(profiles[name].steps):
                raise refuse(
                    f"trace gives {len(seconds)} seconds to a task '{name}'",
                    f"give {len(profiles[name].steps)}, one for each of its profile's steps",
                )
        return trace


# --- broker, worker, machine, run ---------------------------------------------------------------


class Broker(Model):
    """The message broker: RabbitMQ, one classic queue."""

    kind: Literal["rabbitmq"] = "rabbitmq"
    """The transport modelled."""
    gossiping_workers: Annotated[int, Field(ge=0, strict=True)] = 0
    """Other workers with gossip on this broker. Each sends an event every two seconds (when within
    them is random), which wakes this worker if it gossips too, and so lets waiting acknowledgements
    out (green, threads)."""


class Worker(Model):
    """One Celery worker: its command line and settings, under Celery's names and defaults."""

    pool: Literal["prefork", "gevent", "eventlet", "threads", "solo"] = "prefork"
    """``--pool``."""
    hub: Literal["epoll", "poll", "select"] = "epoll"
    """``GEVENT_BACKEND``, ``EVENTLET_HUB`` (environment): how a green hub waits."""
    concurrency: Count = 4
    """``--concurrency``: child processes, greenlets or threads (``solo`` always has one); ignored
    when ``autoscale`` is given. (Celery's default is the machine's number of cores.)"""
    autoscale: tuple[Count, Annotated[int, Field(ge=0, strict=True)]] | None = None
    """``--autoscale``: [max, min]."""
    keepalive: Positive = 30.0
    """``AUTOSCALE_KEEPALIVE`` (environment): seconds. Both the period of the autoscaler's timer
    and the age the last scale-up must exceed before the pool may shrink."""
    prefetch_multiplier: Annotated[int, Field(ge=0, strict=True)] = 4
    """``worker_prefetch_multiplier``; 0: no limit."""
    task_acks_late: bool = False
    """``task_acks_late``: acknowledge when the task is done, not when a child accepts it."""
    task_reject_on_worker_lost: bool = False
    """``task_reject_on_worker_lost``: with ``task_acks_late``, requeue a task whose child died."""
    optimization: Literal["fair", "fast"] = "fair"
    """``-O``: ``fair`` writes a job only to a child that is not busy, ``fast`` to any pipe. (The
    command line of Celery 5.6 no longer takes ``fast``; ``worker.optimization`` in an app does.)"""
    write_order: tuple[Count, ...] | None = None
    """``prefork``: the order in which children that can take a job are written to, by their places
    in the pool, [1, 2, 3, ...] unless given. In Celery it follows the numbers of the pipes' file
    descriptors, so it is the same for the life of a worker and depends on what else the app has
    open; it decides which child runs what, and how many tasks a shrink takes along. Places that it
    leaves out come last. Other pools have no such order."""
    max_tasks_per_child: Count | None = None
    """``--max-tasks-per-child``."""
    max_memory_per_child: Positive | None = None
    """``--max-memory-per-child`` (KiB): looked at after each task only."""
    time_limit: Positive | None = None
    """``--time-limit``: hard limit, seconds from acceptance; the child is killed. ``gevent`` raises
    it in the task when that next waits; the other pools ignore it."""
    soft_time_limit: Positive | None = None
    """``--soft-time-limit``: seconds from acceptance; raises inside the task. ``prefork`` only."""
    proc_alive_timeout: Positive = 4.0
    """``worker_proc_alive_timeout``: a child not up after this many seconds is killed."""
    gossip: bool = True
    """Unless ``--without-gossip``: receive the events of all workers on the broker."""
    heartbeat: bool = True
    """Unless ``--without-heartbeat``: send an event every two seconds."""
    idealised: bool = False
    """No setting of Celery's: acknowledge at once, without the lag of the green and thread pools
    (whose acknowledgements wait until the worker's loop turns for another reason)."""

    @field_validator("autoscale")
    @classmethod
    def _max_first(cls, autoscale: tuple[int, int] | None) -> tuple[int, int] | None:
        if autoscale and autoscale[0] < autoscale[1]:
            low, high = autoscale
            raise refuse(
                "autoscale is [max, min] and max is below min", f"write autoscale = [{high}, {low}]"
            )
        return autoscale

    @field_validator("write_order")
    @classmethod
    def _each_once(cls, order: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if order and sorted(order) != list(range(1, len(order) + 1)):
            raise refuse(
                "write_order has each of 1 to the number of places once",
                "write write_order = [2, 1] for a pool of two",
            )
        return order

    @field_validator("soft_time_limit")
    @classmethod
    def _below_hard_limit(cls, soft: float | None, info: ValidationInfo) -> float | None:
        hard = info.data.get("time_limit")
        if soft and hard and soft >= hard:
            raise refuse(
                "soft_time_limit must be below time_limit",
                "lower soft_time_limit or raise time_limit",
            )
        return soft

    @property
    def max_concurrency(self) -> int:
        """Most processes the pool may have."""
        return self.autoscale[0] if self.autoscale else self.concurrency

    @property
    def min_concurrency(self) -> int:
        """Processes the pool starts with."""
        return self.autoscale[1] if self.autoscale else self.concurrency

    @property
    def prefetch_count(self) -> int:
        """Most unacknowledged messages (celery/worker/components.py: Consumer); 0: no limit."""
        return self.max_concurrency * self.prefetch_multiplier


class Machine(Model):
    """The computer the worker runs on."""

    cores: Count = 4
    """Cores, shared by all runnable processes of the worker."""
    speed: Positive = 1.0
    """CPU speed relative to the machine on which ``cpu_s`` and ``costs`` were measured."""
    scheduling: Literal["run queues", "processor sharing"] = "run queues"
    """How more runnable processes than cores share them. ``run queues``: each core shares itself
    among its own, as Linux does. ``processor sharing``: all advance equally, an idealisation."""
    balance_s: Positive = 0.14
    """With ``run queues``: how long one core may have one process more than another before one is
    moved; a core that would idle is given one at once. The default was measured on a computer with
    two CPUs (``validation/run_queues``); Linux waits in proportion to the computer's CPUs."""
    late_wakeup_share: Share = 0.0
    """With ``run queues``: share of the wake-ups on cores that all compute which do not get one at
    once. Measured on Linux 6.18 (``validation/run_queues``): 0.10, 0.14, 0.22 and 0.40 with 2, 3, 4
    and 8 computing processes on two cores. Kernels differ, so the default leaves it out."""
    late_wakeup_s: Positive = 0.003
    """How late these are in the mean; uniform between half and one and a half of it."""


class Run(Model):
    """How long to simulate, and with which random numbers."""

    seed: Annotated[int, Field(ge=0, strict=True)] = 1
    """Seed of every random number of the run."""
    horizon_s: Positive | None = None
    """Stop this many seconds after "ready"; without it: when every task is done."""
    warm_up_s: Duration = 0.0
    """Tasks sent before this time are left out of the statistics of tasks."""


class Scenario(Model):
    """One system and one load."""

    producer: Producer
    """Who sends the tasks, and when."""
    tasks: Tasks
    """What the tasks do."""
    broker: Broker = Broker()
    """The broker between them."""
    worker: Worker = Worker()
    """The worker and its settings."""
    machine: Machine = Machine()
    """The machine it runs on."""
    run: Run = Field(default=Run(), validate_default=True)
    """Length and seed of the run."""
    costs: Costs = Costs()
    """What the worker's own work costs."""

    @field_validator("run")
    @classmethod
    def _ends(cls, run: Run, info: ValidationInfo) -> Run:
        producer = info.data.get("producer")  # absent when it is wrong itself
        if producer is None or producer.kind == "times" or run.horizon_s is not None:
            return run
        if producer.max_tasks is None and producer.duration_s is None:
            raise refuse(
                "the producer never stops and the run has no end",
                "give producer.max_tasks, producer.duration_s or run.horizon_s",
            )
        return run
