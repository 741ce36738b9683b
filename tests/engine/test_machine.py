"""The machine: processor sharing, exactly."""

from __future__ import annotations

import numpy as np
import pytest
import simpy

from celerysim.engine.machine import Machine


def finish_times(cores: int, jobs: list[tuple[float, float]], speed: float = 1.0) -> list[float]:
    """When each of the (arrival, cpu_s) jobs is done."""
    env = simpy.Environment()
    machine = Machine(env, cores, speed)
    done: dict[int, float] = {}

    def job(i: int, arrival: float, cpu_s: float):
        yield env.timeout(arrival)
        yield machine.work(cpu_s)
        done[i] = env.now

    for i, (arrival, cpu_s) in enumerate(jobs):
        env.process(job(i, arrival, cpu_s))
    env.run()
    return [done[i] for i in range(len(jobs))]


def test_alone_a_job_takes_its_cpu_seconds() -> None:
    assert finish_times(1, [(2.0, 0.75)]) == pytest.approx([2.75], abs=1e-9)


def test_speed_scales_every_job() -> None:
    assert finish_times(2, [(0.0, 1.0), (0.0, 3.0)], speed=2.0) == pytest.approx([0.5, 1.5])


def test_as_many_jobs_as_cores_do_not_disturb_each_other() -> None:
    assert finish_times(2, [(0.0, 1.0), (0.25, 1.0)]) == pytest.approx([1.0, 1.25])


def test_two_jobs_on_one_core_share_it() -> None:
    # alone for 1 s, then half speed each: the second needs 2 s for its 1, the first 1 more
    assert finish_times(1, [(0.0, 2.0), (1.0, 1.0)]) == pytest.approx([3.0, 3.0], abs=1e-9)


def test_three_jobs_on_two_cores_run_at_two_thirds() -> None:
    assert finish_times(2, [(0.0, 1.0)] * 3) == pytest.approx([1.5] * 3)


def test_work_that_is_withdrawn_frees_its_share() -> None:
    env = simpy.Environment()
    machine = Machine(env, 1)
    done = []

    def stays():
        yield machine.work(2.0)
        done.append(env.now)

    def leaves():
        piece = machine.work(5.0)
        yield env.timeout(1.0)
        machine.withdraw(piece)
        machine.withdraw(piece)  # a second time changes nothing

    env.process(stays())
    env.process(leaves())
    env.run()
    assert done == pytest.approx([2.5])
    assert machine.busy_core_s == pytest.approx(2.5)


def test_agrees_with_a_step_by_step_integration() -> None:
    """Against a brute-force simulation of sharing that advances from event to event."""
    rng = np.random.default_rng(3)
    for cores in (1, 2, 5):
        arrivals = np.sort(rng.uniform(0, 10, 40))
        sizes = rng.exponential(0.8, 40)
        jobs = list(zip(arrivals.tolist(), sizes.tolist()))
        assert finish_times(cores, jobs) == pytest.approx(brute_force(cores, jobs), abs=1e-7)


def brute_force(cores: int, jobs: list[tuple[float, float]]) -> list[float]:
    left = {i: size for i, (_, size) in enumerate(jobs)}
    done = [0.0] * len(jobs)
    now = 0.0
    while left:
        present = [i for i in left if jobs[i][0] <= now + 1e-12]
        coming = [jobs[i][0] for i in left if jobs[i][0] > now + 1e-12]
        rate = min(1.0, cores / len(present)) if present else 0.0
        steps = [left[i] / rate for i in present] + [t - now for t in coming]
        step = min(steps)
        for i in present:
            left[i] -= step * rate
        now += step
        for i in present:
            if left[i] <= 1e-12:
                done[i] = now
                del left[i]
    return done


def test_capacity_is_never_exceeded_and_no_core_idles_while_work_waits() -> None:
    env = simpy.Environment()
    machine = Machine(env, 3)

    def job(cpu_s: float):
        yield machine.work(cpu_s)

    for cpu_s in (1.0, 2.0, 3.0, 4.0, 5.0):
        env.process(job(cpu_s))
    env.run(until=4.0)
    assert machine.busy_core_s == pytest.approx(12.0)  # five jobs of 15 s: all three cores busy
