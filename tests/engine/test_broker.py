"""RabbitMQ: order, window, requeue."""

from __future__ import annotations

import pytest
import simpy

from celerysim.engine.broker import Broker
from celerysim.engine.job import Job
from celerysim.engine.recorder import Recorder
from celerysim.engine.workload import Kind

KIND = Kind("task", (), 0.0)


def broker(prefetch_count: int, deliver_s: float = 0.0):
    env = simpy.Environment()
    recorder = Recorder(env)
    queue = Broker(env, recorder, prefetch_count, deliver_s)
    delivered: list[tuple[float, int]] = []
    recorder.expect([0] * 6)
    jobs = [Job(recorder.sent(), KIND, ()) for _ in range(6)]
    queue.consume(lambda job: delivered.append((env.now, job.index)))
    return env, queue, jobs, delivered


def test_delivers_in_order_up_to_the_prefetch_count() -> None:
    _, queue, jobs, delivered = broker(2)
    for job in jobs:
        queue.publish(job)
    assert [i for _, i in delivered] == [0, 1]
    queue.ack(jobs[0])
    assert [i for _, i in delivered] == [0, 1, 2]


def test_a_prefetch_count_of_zero_is_no_limit() -> None:
    _, queue, jobs, delivered = broker(0)
    for job in jobs:
        queue.publish(job)
    assert len(delivered) == 6


def test_a_requeued_message_goes_to_the_head() -> None:
    _, queue, jobs, delivered = broker(1)
    for job in jobs[:3]:
        queue.publish(job)
    queue.requeue(jobs[0])
    assert [i for _, i in delivered] == [0, 0]


def test_delivery_takes_its_time_and_holds_its_place_in_the_window() -> None:
    env, queue, jobs, delivered = broker(1, deliver_s=0.25)
    queue.publish(jobs[0])
    queue.publish(jobs[1])
    env.run(until=1.0)
    assert delivered == [(0.25, 0)]
    queue.ack(jobs[0])
    env.run()
    assert delivered == [(0.25, 0), (pytest.approx(1.25), 1)]


def test_nothing_is_delivered_before_consume() -> None:
    env = simpy.Environment()
    recorder = Recorder(env)
    queue = Broker(env, recorder, 4, 0.0)
    queue.publish(Job(recorder.sent(), KIND, ()))
    delivered: list[int] = []
    queue.consume(lambda job: delivered.append(job.index))
    assert delivered == [0]
