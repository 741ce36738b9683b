"""One run: build the rooms, wire them, start them, advance, and collect the result.

Read this first; each room says which part of Celery it models.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from celerysim.engine.autoscaler import CeleryAutoscaler, Policy
from celerysim.engine.broker import Broker
from celerysim.engine.consumer import Consumer
from celerysim.engine.job import Job
from celerysim.engine.machine import Machine
from celerysim.engine.pool.prefork import PreforkPool
from celerysim.engine.producer import sent_times
from celerysim.engine.recorder import Recorder
from celerysim.engine.streams import Streams
from celerysim.engine.supervisor import Supervisor
from celerysim.engine.workload import kinds, work
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

    The run ends at ``run.horizon_s``, or when every task is finished or lost.
    """
    start = min(0.0, scenario.producer.start_s)
    env = simpy.Environment(initial_time=start)
    recorder = Recorder(env, levels=levels)
    worker = scenario.worker
    if worker.autoscale and policy is None:
        policy = CeleryAutoscaler(worker.max_concurrency, worker.min_concurrency, worker.keepalive)

    machine = Machine(env, scenario.machine.cores, scenario.machine.speed)
    broker = Broker(env, recorder, worker.prefetch_count, scenario.costs.deliver_s)
    supervisor = Supervisor(env)
    consumer = Consumer(
        env,
        scenario,
        machine,
        broker,
        supervisor,
        recorder,
        policy if worker.autoscale else None,
    )

    env.process(_produce(env, scenario, Streams(scenario.run.seed, replication), broker, recorder))

    def come_up() -> Generator[simpy.Event, Any, None]:
        yield env.timeout(-start)
        pool = PreforkPool(env, scenario, machine, supervisor, recorder, consumer)
        consumer.start(pool)
        yield from supervisor.run(pool)

    env.process(come_up())
    env.run(until=scenario.run.horizon_s or recorder.all_done)
    return Result.of(
        scenario,
        replication=replication,
        tables=recorder.tables(),
        start=start,
        end=env.now,
        busy_core_s=machine.busy_core_s,
    )


def _produce(
    env: simpy.Environment, scenario: Scenario, streams: Streams, broker: Broker, recorder: Recorder
) -> Generator[simpy.Event, Any, None]:
    """Put each message into the broker at its time."""
    profiles = kinds(scenario)
    for times, (chosen, seconds) in zip(
        sent_times(scenario, streams), work(scenario, streams), strict=False
    ):
        for time, profile, row in zip(times.tolist(), chosen, seconds, strict=False):
            if time > env.now:
                yield env.timeout(time - env.now)
            broker.publish(Job(recorder.sent(profile), profiles[profile], row))
    recorder.nothing_more_to_send()
