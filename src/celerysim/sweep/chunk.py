"""Chunks: the runs that one process works off in one go, and their values.

How runs are cut into chunks, and where a chunk is run, has no influence on any
value: a run depends on its scenario and replication number alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from celerysim._version import __version__
from celerysim.engines import Engine, summaries
from celerysim.scenario import Scenario
from celerysim.scenario.schema import Batches, Times
from celerysim.sweep.statistics import measure

#: Tasks simulated in a chunk, at most: some seconds of work, or two minutes of the batch engine's,
#: which is what a crash costs. The batch engine is quicker the more runs it has at once.
MOST_TASKS = {"reference": 20_000, "batch": 20_000_000}
#: Smaller chunks are not worth handing to another process.
LEAST_TASKS = {"reference": 2_500, "batch": 500_000}
#: Chunks a process should get, so that all end at about the same time. The batch engine takes
#: hardly longer for twice the runs; its chunks are alike instead, with runs of all points.
SHARES = {"reference": 16, "batch": 1}


#: Of the wanted statistics, in their order.
Values = tuple[float, ...]


class Job(NamedTuple):
    """One run: a point of the sweep and a replication number."""

    point: int
    replication: int


class Row(NamedTuple):
    """What a run gave."""

    job: Job
    values: Values


@dataclass(frozen=True)
class Chunk:
    """Some runs on one engine; everything needed to do them elsewhere."""

    engine: Engine
    scenarios: Mapping[int, Scenario]  #: of each point among the jobs
    jobs: tuple[Job, ...]
    statistics: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """A chunk's rows, in the order of its jobs, and the version that computed them."""

    rows: tuple[Row, ...]
    version: str = __version__


def run_chunk(chunk: Chunk) -> Outcome:
    """Do the runs of a chunk."""
    try:
        found = summaries(chunk.engine, [(chunk.scenarios[p], r) for p, r in chunk.jobs])
    except Exception as error:
        first, last = chunk.jobs[0], chunk.jobs[-1]
        error.add_note(f"in a chunk of a sweep: {first} to {last}, {chunk.engine} engine")
        raise
    return Outcome(
        tuple(
            Row(job, measure(summary, chunk.statistics))
            for job, summary in zip(chunk.jobs, found, strict=True)
        )
    )


def cut(
    jobs: Sequence[Job],
    scenarios: Sequence[Scenario],
    engines: Sequence[Engine],
    statistics: tuple[str, ...],
    workers: int,
) -> list[Chunk]:
    """Cut jobs into chunks for ``workers`` processes; scenarios and engines are by point."""
    chunks = []
    sizes = [expected_tasks(scenario) for scenario in scenarios]
    ordered = sorted(jobs, key=lambda job: engines[job.point])
    for engine, group in groupby(ordered, key=lambda job: engines[job.point]):
        mine = list(group)
        if engine == "batch":
            mine.sort(key=lambda job: job.replication)
        fair = sum(sizes[job.point] for job in mine) / (SHARES[engine] * workers)
        limit = min(max(fair, LEAST_TASKS[engine]), MOST_TASKS[engine])
        chunks += [
            Chunk(engine, {p: scenarios[p] for p in {job.point for job in part}}, part, statistics)
            for part in _parts(mine, sizes, limit)
        ]
    return chunks


def work(scenarios: Sequence[Scenario], engines: Sequence[Engine]) -> float:
    """How much work a run of each scenario is, in chunks as small as chunks get."""
    return sum(
        expected_tasks(scenario) / LEAST_TASKS[engine]
        for scenario, engine in zip(scenarios, engines, strict=True)
    )


def expected_tasks(scenario: Scenario) -> float:
    """About how many tasks a run has."""
    producer, run = scenario.producer, scenario.run
    if isinstance(producer, Times):
        return len(producer.times_s)
    if isinstance(producer, Batches):
        interval_s = producer.pause_s.expectation
        interval_s += producer.batch_size * producer.publish_s.expectation
        rate_per_s = producer.batch_size / max(interval_s, 1e-6)
    else:
        rate_per_s = producer.rate_per_s
    limits = (
        producer.max_tasks,
        producer.duration_s and producer.duration_s * rate_per_s,
        run.horizon_s and run.horizon_s * rate_per_s,
    )
    return max(1.0, min(limit for limit in limits if limit is not None))


def _parts(jobs: Sequence[Job], sizes: Sequence[float], limit: float) -> Iterator[tuple[Job, ...]]:
    """Parts of as many tasks each, about ``limit`` at most."""
    tasks = np.array([sizes[job.point] for job in jobs])
    total = tasks.sum()
    count = math.ceil(total / limit - 1e-9)
    before = np.cumsum(tasks) - tasks
    part = np.minimum(before / total * count, count - 1).astype(int)
    for _, places in groupby(range(len(jobs)), key=part.__getitem__):
        yield tuple(jobs[place] for place in places)
