"""One run: build the rooms, wire them, start them, advance, and collect the result.

Read this first; each room says which part of Celery it models.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from celerysim.engine.autoscaler import CeleryAutoscaler, Policy
from celerysim.engine.blocking_loop import BlockingLoop, GreenConsumer
from celerysim.engine.broker import Broker
from celerysim.engine.consumer import Consumer
from celerysim.engine.gossip import Gossip
from celerysim.engine.hub import EventletHub, GeventHub
from celerysim.engine.in_process import InProcessConsumer, InProcessPool, WorkerDied
from celerysim.engine.interpreter_lock import InterpreterLock
from celerysim.engine.job import Job
from celerysim.engine.machine import Machine
from celerysim.engine.pool.green import EventletPool, GeventPool
from celerysim.engine.pool.prefork import PreforkPool
from celerysim.engine.pool.solo import SoloPool
from celerysim.engine.pool.threads import ThreadsPool
from celerysim.engine.producer import sent_times
from celerysim.engine.recorder import Recorder
from celerysim.engine.run_queues import RunQueues
from celerysim.engine.streams import Streams
from celerysim.engine.supervisor import Supervisor
from celerysim.engine.workload import draws, kinds, work
from celerysim.history import Level
from celerysim.result import Result
from celerysim.scenario.schema import Scenario


def simulate(
    scenario: Scenario,
    *,
    replication: int = 0,
    levels: bool = True,
    policy: Policy | None = None,
) -> Result:
    """Run one replication of ``scenario`` with the reference engine.

    Replications differ in their random numbers only. ``levels=False`` leaves
    the level changes out of the result, which saves memory. ``policy``
    replaces Celery's autoscaler (only with ``worker.autoscale``).

    The run ends at ``run.horizon_s``; without it when every task is finished or
    lost, or with the worker's death (which only ``threads`` with autoscale knows;
    the level PROCESSES is 0 from then on).
    """
    start = min(0.0, scenario.producer.start_s)
    env = simpy.Environment(initial_time=start)
    recorder = Recorder(env, levels=levels)
    worker = scenario.worker
    if not worker.autoscale:
        policy = None
    elif policy is None:
        policy = CeleryAutoscaler(worker.max_concurrency, worker.min_concurrency, worker.keepalive)

    streams = Streams(scenario.run.seed, replication)
    machine = _machine(env, scenario, streams)
    broker = Broker(env, recorder, worker.prefetch_count, scenario.costs.deliver_s)
    env.process(_produce(env, scenario, streams, broker, recorder))
    life = env.process(_worker(env, scenario, streams, machine, broker, recorder, policy))
    env.run(until=scenario.run.horizon_s or recorder.all_done | life)
    return Result.of(
        scenario,
        replication=replication,
        tables=recorder.tables(),
        start=start,
        end=env.now,
        busy_core_s=machine.busy_core_s,
    )


def _machine(env: simpy.Environment, scenario: Scenario, streams: Streams) -> Machine:
    """What the worker's work runs on: the cores, or with threads the interpreter lock."""
    machine = scenario.machine
    if scenario.worker.pool == "threads":
        return InterpreterLock(env, streams, machine.speed)
    if machine.cores == 1 or machine.scheduling == "processor sharing":  # the same on one core
        return Machine(env, machine.cores, machine.speed)
    return RunQueues(
        env,
        machine.cores,
        machine.speed,
        machine.balance_s,
        late_share=machine.late_wakeup_share,
        late_s=machine.late_wakeup_s,
        uniforms=streams.sequence("late wake-ups"),
    )


def _worker(
    env: simpy.Environment,
    scenario: Scenario,
    streams: Streams,
    machine: Machine,
    broker: Broker,
    recorder: Recorder,
    policy: Policy | None,
) -> Generator[simpy.Event, Any, None]:
    """Come up at time zero, with the loop, consumer and pool of ``worker.pool``, and run."""
    yield env.timeout(-env.now)
    supervisor = Supervisor(env)
    consumer: Consumer
    pool: PreforkPool | InProcessPool
    match scenario.worker.pool:
        case "prefork":
            consumer = Consumer(env, scenario, machine, broker, supervisor, recorder, policy)
            pool = PreforkPool(env, scenario, machine, supervisor, recorder, consumer, streams)
        case "threads" | "solo" as kind:
            consumer = InProcessConsumer(
                env, scenario, machine, broker, supervisor, recorder, policy
            )
            inline = ThreadsPool if kind == "threads" else SoloPool
            pool = inline(env, scenario, machine, recorder, consumer)
        case "gevent" | "eventlet" as kind:
            hub = (GeventHub if kind == "gevent" else EventletHub)(env, scenario, machine)
            supervisor = BlockingLoop(env, hub)
            consumer = GreenConsumer(env, scenario, machine, broker, supervisor, recorder, policy)
            green = GeventPool if kind == "gevent" else EventletPool
            pool = green(env, scenario, machine, hub, recorder, consumer)
    if scenario.worker.pool != "prefork":  # whose children wake the loop before it matters
        Gossip(env, scenario, supervisor, streams).start()
    consumer.start(pool)
    try:
        yield from supervisor.run(pool)
    except WorkerDied:
        recorder.level(Level.PROCESSES, 0)


def _produce(
    env: simpy.Environment, scenario: Scenario, streams: Streams, broker: Broker, recorder: Recorder
) -> Generator[simpy.Event, Any, None]:
    """Put each message into the broker at its time."""
    profiles = kinds(scenario)
    for times, (chosen, seconds), numbers in zip(
        sent_times(scenario, streams),
        work(scenario, streams),
        draws(scenario, streams),
        strict=False,
    ):
        recorder.expect(chosen[: len(times)])
        for time, profile, row, draw in zip(times.tolist(), chosen, seconds, numbers, strict=False):
            if time > env.now:
                yield env.timeout(time - env.now)
            broker.publish(Job(recorder.sent(), profiles[profile], row, draw))
    recorder.nothing_more_to_send()
