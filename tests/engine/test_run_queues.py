"""A run queue for each core, by hand-computed times.

The rules are those of kernel/sched/fair.c (6.x) as measured in validation/run_queues.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import simpy

from celerysim import Scenario, simulate
from celerysim.engine.run_queues import NEVER, RunQueues
from celerysim.scenario import override

EXACT = 1e-9


def end_times(
    pieces: list[tuple[float, ...]],
    cores: int = 2,
    speed: float = 1.0,
    balance_s: float = NEVER,
    arrivals: list[float] | None = None,
) -> list[float]:
    """When each process is done with its pieces of work, one after the other."""
    env = simpy.Environment()
    machine = RunQueues(env, cores, speed, balance_s)
    done: dict[int, float] = {}

    def process(number: int, arrival: float, own: tuple[float, ...]):
        yield env.timeout(arrival)
        for cpu_s in own:
            yield machine.work(cpu_s, number)
        done[number] = env.now

    for i, own in enumerate(pieces):
        env.process(process(i, arrivals[i] if arrivals else 0.0, own))
    env.run()
    assert machine.busy_core_s * speed == pytest.approx(sum(map(sum, pieces)), abs=1e-7)
    return [done[i] for i in range(len(pieces))]


def test_up_to_one_process_a_core_none_waits() -> None:
    assert end_times([(1.0,), (0.5,)]) == pytest.approx([1.0, 0.5], abs=EXACT)


def test_one_of_three_has_a_core_to_itself() -> None:
    # the first and the third share core 0 until the second is done; then each has a core
    assert end_times([(0.6,)] * 3) == pytest.approx([0.9, 0.6, 0.9], abs=EXACT)


def test_speed_scales_every_core() -> None:
    assert end_times([(1.2,)] * 3, speed=2.0) == pytest.approx([0.9, 0.6, 0.9], abs=EXACT)


def test_two_a_core_share_equally() -> None:
    assert end_times([(1.0,)] * 4) == pytest.approx([2.0] * 4, abs=EXACT)


def late(draws: list[float], kill_at: float | None = None) -> list[float | None]:
    """Ends of two computations of 1 s and of one of 0.1 s that wakes up beside them at 0.5 s."""
    env = simpy.Environment()
    machine = RunQueues(env, 2, late_share=0.3, late_s=0.004, uniforms=iter(draws))
    ends: list[float | None] = [None] * 3

    def process(number: int, arrival: float, cpu_s: float):
        yield env.timeout(arrival)
        piece = machine.work(cpu_s, number)
        if number == 2 and kill_at is not None:
            yield env.timeout(kill_at - arrival)
            machine.withdraw(piece)
            return
        yield piece
        ends[number] = env.now

    for number, (arrival, cpu_s) in enumerate([(0.0, 1.0), (0.0, 1.0), (0.5, 0.1)]):
        env.process(process(number, arrival, cpu_s))
    env.run()
    return ends


def test_some_of_those_that_wake_up_on_full_cores_are_late() -> None:
    at_once = [1.1, 1.0, 0.7]
    assert late([0.3]) == pytest.approx(at_once, abs=EXACT)
    # drawn below 0.3: late by half the mean and half of it, 4 ms
    assert late([0.29, 0.5]) == pytest.approx([1.1, 1.0, 0.704], abs=EXACT)
    # the wait is over when both others are done: nothing left to wait for
    assert late([0.0, 149.5]) == pytest.approx([1.0, 1.0, 1.2], abs=EXACT)
    # killed while it waits
    assert late([0.0, 0.5], kill_at=0.501) == [1.0, 1.0, None]


def test_late_work_goes_to_the_core_with_the_fewest() -> None:
    # three since 0 (cores 0, 1, 0); the fourth joins core 1 at 0.2, when that piece has 0.4 to do
    ends = end_times([(0.6,), (0.6,), (0.6,), (0.6,)], arrivals=[0.0, 0.0, 0.0, 0.2])
    # core 1: 0.4 shared until 1.0, then the fourth has 0.2 to do alone; core 0: until 1.2
    assert ends == pytest.approx([1.2, 1.0, 1.2, 1.2], abs=EXACT)


def test_a_difference_of_two_is_evened_out_at_once() -> None:
    # 0: a c e, 1: b d. At 0.4 b is done and a moves to d; d ends at 2.0, a at 2.0667, c and e,
    # each on its own core for the last 0.0333 s, at 2.1
    ends = end_times([(1.0,), (0.2,), (1.0,), (1.0,), (1.0,)])
    assert ends == pytest.approx([2.0 + 1 / 15, 0.4, 2.1, 2.0, 2.1], abs=EXACT)


def test_a_difference_of_one_is_turned_round_after_balance_s() -> None:
    # who shares: 0 2 | then 1 0 | 2 1 | 0 2 | 1 0 | 2 1 | 0 2, 0.2 s each: the second process is
    # done at 1.4 s, when the others have 0.1 s left
    ends = end_times([(1.0,)] * 3, balance_s=0.2)
    assert ends == pytest.approx([1.5, 1.4, 1.5], abs=EXACT)


def test_the_wait_for_balance_begins_anew_with_every_crowd() -> None:
    # crowded until 0.2, when the third is done, and from 0.3 on, the fourth beside the first: so
    # balance is due at 0.65, not at 0.35, and the second is alone on its core until its end
    ends = end_times(
        [(0.5,), (0.5,), (0.1,), (0.5,)], arrivals=[0.0, 0.0, 0.0, 0.3], balance_s=0.35
    )
    assert ends == pytest.approx([0.7, 0.5, 0.2, 0.9], abs=EXACT)


def test_a_process_that_goes_on_keeps_its_core() -> None:
    # the second one's pieces follow one another: it has core 1 to itself until 0.6
    ends = end_times([(1.0,), (0.2, 0.2, 0.2), (1.0,)])
    assert ends == pytest.approx([1.3, 0.6, 1.3], abs=EXACT)


def test_withdrawn_work_makes_room() -> None:
    env = simpy.Environment()
    machine = RunQueues(env, 2)
    ended = []
    for number in range(2):
        machine.work(1.0, number).callbacks.append(lambda _: ended.append(env.now))
    gone = machine.work(1.0, 2)  # on core 0, beside the first

    def kill():
        yield env.timeout(0.2)
        machine.withdraw(gone)
        machine.withdraw(gone)  # a second time changes nothing

    env.process(kill())
    env.run()
    assert ended == pytest.approx([1.0, 1.1], abs=EXACT)
    assert machine.busy_core_s == pytest.approx(2.1, abs=EXACT)


@pytest.mark.parametrize("cores", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_a_step_by_step_integration(cores: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrivals = np.sort(rng.uniform(0, 8, 40)).tolist()
    sizes = rng.exponential(0.5 * cores / 2, 40).tolist()
    ends = end_times([(size,) for size in sizes], cores, arrivals=arrivals)
    assert ends == pytest.approx(step_by_step(cores, arrivals, sizes), abs=1e-7)


def step_by_step(cores: int, arrivals: list[float], sizes: list[float]) -> list[float]:
    """The rules once more, from event to event, without clocks, heaps or alarms."""
    left = dict(enumerate(sizes))
    done = [0.0] * len(sizes)
    coming = list(range(len(sizes)))
    queues: list[list[int]] = []  # while crowded, in the order of coming there
    alone: list[int] = []  # while not
    now = 0.0
    while coming or alone or queues:
        rates = dict.fromkeys(alone, 1.0) | {i: 1.0 / len(q) for q in queues for i in q}
        steps = [left[i] / rate for i, rate in rates.items()]
        step = min(steps + [arrivals[i] - now for i in coming[:1]])
        now += step
        for i, rate in rates.items():
            left[i] -= step * rate
        for i in sorted(rates):
            if left[i] < 1e-10:
                done[i] = now
                for queue in (alone, *queues):
                    if i in queue:
                        queue.remove(i)
                if queues:
                    long, short = max(queues, key=len), min(queues, key=len)
                    if len(long) - len(short) > 1:
                        short.append(long.pop(0))
                    if sum(map(len, queues)) == cores:
                        alone, queues = sorted(i for queue in queues for i in queue), []
        if coming and arrivals[coming[0]] - now < 1e-12:
            i = coming.pop(0)
            if not queues and len(alone) == cores:
                alone, queues = [], [[j] for j in sorted(alone)]
            (min(queues, key=len) if queues else alone).append(i)
    return done


# --- in a worker ---


def test_children_have_run_queues(make: Callable[..., Scenario]) -> None:
    tasks = simulate(make([1.0] * 3, ("cpu_s", 0.1), concurrency=3, cores=2)).tasks
    assert sorted(tasks["finished"]) == pytest.approx([1.1, 1.15, 1.15], abs=EXACT)


@pytest.mark.parametrize("cores", [1, 2])
def test_processor_sharing_is_an_option(make: Callable[..., Scenario], cores: int) -> None:
    scenario = make([1.0] * 3, ("cpu_s", 0.1), concurrency=3, cores=cores)
    tasks = simulate(override(scenario, ["machine.scheduling='processor sharing'"])).tasks
    assert tasks["finished"] == pytest.approx([1.0 + 0.3 / cores] * 3, abs=EXACT)


def test_on_a_single_core_both_are_the_same(make: Callable[..., Scenario]) -> None:
    tasks = simulate(make([1.0] * 3, ("cpu_s", 0.1), concurrency=3, cores=1)).tasks
    assert tasks["finished"] == pytest.approx([1.3] * 3, abs=EXACT)
