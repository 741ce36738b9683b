"""Many runs at once: cut into fleets, each of which keeps a bounded number of runs in progress."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from celerysim.batch.arrays import Ints
from celerysim.batch.fleet import Fleet
from celerysim.batch.guard import ample
from celerysim.batch.result import BatchResult, Keeper
from celerysim.batch.run_queues import crowds
from celerysim.batch.summary import SUMMARY_DTYPE, summarise, write
from celerysim.batch.support import require
from celerysim.batch.workload import DEPENDS_ON, Load, load
from celerysim.engine.simulation import simulate
from celerysim.metrics import summary
from celerysim.scenario.schema import Batches, Rate, Scenario, Times

#: Most runs in progress at once: more do not make a step cheaper.
MOST_LANES = 16384
#: Memory of a lane: its worker, and for each child and each task (47 bytes in the tables, the rest
#: while runs are loaded and summed up).
LANE_BYTES, CHILD_BYTES, TASK_BYTES, STEP_BYTES = 1500, 250, 70, 8


class Piece(NamedTuple):
    """Runs of one scenario."""

    scenario: Scenario
    runs: Ints  #: their places in the result
    replications: Ints


def simulate_many(
    scenarios: Sequence[Scenario],
    replications: Sequence[int] | int = 1,
    *,
    tables: bool = False,
    max_memory_mb: float = 1000.0,
) -> BatchResult:
    """Simulate many replications and parameter points together.

    ``replications`` is a number, and every scenario is run that often (all
    replications of the first scenario come first), or a replication number for
    each scenario. ``tables`` keeps every run's tasks, scale events and children
    for :meth:`BatchResult.result_of`; it costs about 50 bytes a task, on top of
    ``max_memory_mb``, which bounds the memory of the runs in progress.

    The results are those of :func:`celerysim.simulate`.

    Raises:
        ScenarioError: a scenario uses what the batch engine does not have.
    """
    scenarios = tuple(scenarios)
    if isinstance(replications, int):
        place = np.repeat(np.arange(len(scenarios)), replications)
        number = np.tile(np.arange(replications), len(scenarios))
    else:
        place, number = np.arange(len(scenarios)), np.asarray(replications, dtype=np.int64)
        if len(place) != len(number):
            raise ValueError(f"{len(place)} scenarios, but {len(number)} replication numbers")
    distinct: dict[int, int] = {}  # a scenario object to its first place
    first = np.array([distinct.setdefault(id(s), i) for i, s in enumerate(scenarios)], dtype=int)
    for i in distinct.values():
        require(scenarios[i], f"scenario {i}" if len(distinct) > 1 else "scenario")
    table = np.zeros(len(place), dtype=SUMMARY_DTYPE)
    table["scenario"], table["replication"] = place, number
    order = np.argsort(first[place], kind="stable") if len(place) else place
    bounds = np.flatnonzero(np.diff(first[place[order]])) + 1
    pieces = [
        Piece(scenarios[place[runs[0]]], runs, number[runs])
        for runs in np.split(order, bounds)
        if len(runs)
    ]
    result = BatchResult(scenarios, table)
    pieces.sort(key=_shape)
    for (quick, *_), alike in groupby(pieces, key=_shape):
        for piece in _run(list(alike), result, tables, max_memory_mb, quick):
            _run_alone(piece, result, tables)
    return result


def _run_alone(piece: Piece, result: BatchResult, tables: bool) -> None:
    """Run a piece in the reference engine, which decides where rounding does.

    Always there, however many runs there are: no figure of a run depends on its company.
    """
    for run, replication in zip(piece.runs.tolist(), piece.replications.tolist(), strict=True):
        history = simulate(piece.scenario, replication=replication, levels=False)
        write(summary(history), result.table[run])
        if tables:
            result.kept[run] = history


def _shape(piece: Piece) -> tuple[bool, bool, int, int, int]:
    """What runs go together: (on ample machines?, with run queues?, then about how many
    children, tasks, steps).
    """
    scenario = piece.scenario
    steps = max(len(p.steps) for p in scenario.tasks.profiles.values())
    tasks = expected_tasks(scenario)
    sizes = (scenario.worker.max_concurrency, tasks, steps)
    children, tasks, steps = (math.ceil(math.log2(size)) for size in sizes)
    return ample(scenario, expected_tasks(scenario)), crowds(scenario), children, tasks, steps


def expected_tasks(scenario: Scenario) -> int:
    """About how many tasks a run has."""
    producer = scenario.producer
    most = producer.max_tasks or 2**62
    if isinstance(producer, Times):
        return min(most, len(producer.times_s))
    if isinstance(producer, Batches):
        interval_s = producer.pause_s.expectation
        interval_s += producer.batch_size * producer.publish_s.expectation
        rate = producer.batch_size / max(interval_s, 1e-6)
    else:
        rate = producer.rate_per_s
    span_s = min(producer.duration_s or math.inf, scenario.run.horizon_s or math.inf)
    return max(1, int(min(most, 1 + rate * span_s)))


def room_for(scenario: Scenario) -> int:
    """Places for tasks that a run rarely exceeds: more than expected where they are random."""
    tasks, producer = expected_tasks(scenario), scenario.producer
    if tasks == producer.max_tasks or isinstance(producer, (Rate, Times)):
        return tasks
    together = producer.batch_size if isinstance(producer, Batches) else 1
    return tasks + math.ceil(4.0 * math.sqrt(tasks * together))


def lanes_for(pieces: Sequence[Piece], max_memory_mb: float) -> int:
    """How many runs may be in progress at once."""
    scenarios = [piece.scenario for piece in pieces]
    steps = max(len(p.steps) for s in scenarios for p in s.tasks.profiles.values())
    bytes_each = (
        LANE_BYTES
        + CHILD_BYTES * max(s.worker.max_concurrency for s in scenarios)
        + (TASK_BYTES + STEP_BYTES * steps) * max(map(room_for, scenarios))
    )
    runs = sum(len(piece.runs) for piece in pieces)
    return max(1, min(runs, MOST_LANES, int(max_memory_mb * 1e6 / bytes_each)))


class Loads:
    """Loads, of which the last one is kept: points of a sweep often share theirs."""

    def __init__(self) -> None:
        self._scenario: Scenario | None = None
        self._load: Load | None = None

    def of(self, scenario: Scenario, replications: Ints) -> Load:
        """The load of these replications."""
        if (
            self._load is None
            or self._scenario is None
            or any(getattr(scenario, p) != getattr(self._scenario, p) for p in DEPENDS_ON)
            or not np.array_equal(replications, self._load.replications)
        ):
            self._scenario, self._load = scenario, load(scenario, replications)
        return self._load


def _run(
    pieces: list[Piece], result: BatchResult, tables: bool, max_memory_mb: float, quick: bool
) -> list[Piece]:
    """Run the pieces in one fleet: as runs end, others begin in their lanes.

    Returns what the quick way could not decide.
    """
    lanes = lanes_for(pieces, max_memory_mb)
    scenarios = [piece.scenario for piece in pieces]
    width = max(map(room_for, scenarios)) + 1
    fleet = Fleet(lanes, scenarios, width, tables=tables, ample=quick)
    keeper = Keeper()
    doubtful: list[Ints] = []
    together = max(1, lanes // 8)
    loads = Loads()
    waiting = pieces[::-1]
    free = np.arange(lanes)
    while waiting or free.size < lanes:
        while waiting and free.size:
            scenario, runs, replications = waiting.pop()
            n = min(len(runs), free.size, together)
            if n < len(runs):
                waiting.append(Piece(scenario, runs[n:], replications[n:]))
            mine, free = free[:n], free[n:]
            fleet.begin(mine, scenario, loads.of(scenario, replications[:n]), runs[:n])
        done = fleet.advance(together if waiting else lanes - free.size)
        free = np.concatenate([free, done])
        doubt = fleet.guard.doubtful.take(done)
        doubtful.append(fleet.recorder.run.take(done[doubt]))
        done = done[~doubt]
        rows = result.table[fleet.recorder.run.take(done)]
        summarise(fleet, done, rows)
        result.table[fleet.recorder.run.take(done)] = rows
        if tables:
            keeper.take(fleet, done)
    if tables:
        jobs = [
            (result.scenarios[row["scenario"]], int(row["replication"])) for row in result.table
        ]
        result.kept.update(keeper.results(fleet, len(result), jobs))
    fleet.close()
    again = np.concatenate(doubtful)
    return [
        Piece(scenario, runs[some], replications[some])
        for scenario, runs, replications in pieces
        if (some := np.isin(runs, again)).any()
    ]
