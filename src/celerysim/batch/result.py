"""What many runs gave: a summary each, and on request the whole history of any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from celerysim.batch.arrays import Lanes
from celerysim.batch.fleet import Fleet
from celerysim.batch.summary import as_mapping
from celerysim.engine.recorder import Tables
from celerysim.history import LEVEL_DTYPE, TASK_DTYPE, Outcome, Table
from celerysim.result import Result
from celerysim.scenario.schema import Scenario


@dataclass(frozen=True)
class BatchResult(Sequence[dict[str, Any]]):
    """The runs in the order asked for; as a sequence: their summaries as plain mappings.

    ``table`` is the same as one structured array, with a row a run, the place of
    its scenario among ``scenarios`` and its replication number.
    """

    scenarios: tuple[Scenario, ...]
    table: Table
    kept: dict[int, Result] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.table)

    @overload
    def __getitem__(self, run: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, run: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, run: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        """The summary of a run, with the keys of :func:`celerysim.metrics.summary`."""
        if isinstance(run, slice):
            return [as_mapping(row) for row in self.table[run]]
        return as_mapping(self.table[run])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The summaries, in order."""
        return map(as_mapping, self.table)

    def result_of(self, run: int) -> Result:
        """The history of a run, without its levels.

        Computed again unless ``simulate_many`` was called with ``tables=True``.
        """
        if run < 0:
            run += len(self)
        if run not in self.kept:
            from celerysim.batch.simulation import simulate_many

            row = self.table[run]
            scenario = self.scenarios[row["scenario"]]
            again = simulate_many([scenario], [int(row["replication"])], tables=True)
            self.kept[run] = again.kept[0]
        return self.kept[run]


def task_table(fleet: Fleet, lane: int) -> Table:
    """The tasks of a finished run, as the reference's recorder has them."""
    tasks = fleet.tasks
    sent = int(fleet.broker.published[lane])
    rows = np.empty(sent, dtype=TASK_DTYPE)
    for name in ("profile", "sent", "received", "started", "finished", "child"):
        rows[name] = getattr(tasks, name)[lane, :sent]
    rows["outcome"] = Outcome.QUEUED
    for time, outcome in (
        ("received", Outcome.RESERVED),
        ("started", Outcome.RUNNING),
        ("finished", Outcome.SUCCEEDED),
    ):
        rows["outcome"][~np.isnan(rows[time])] = outcome
    rows["outcome"][tasks.lost[lane, :sent]] = Outcome.LOST
    rows["deliveries"] = ~np.isnan(rows["received"])
    return rows


class Keeper:
    """Collects the tables of runs as they finish."""

    def __init__(self) -> None:
        self._tasks: dict[int, tuple[Table, float, float]] = {}

    def take(self, fleet: Fleet, lanes: Lanes) -> None:
        """Keep the tasks of finished runs."""
        busy_core_s = fleet.busy_core_s(lanes)
        for lane, busy_s in zip(lanes.tolist(), busy_core_s.tolist(), strict=True):
            run = int(fleet.recorder.run[lane])
            self._tasks[run] = (task_table(fleet, lane), float(fleet.clock.now[lane]), busy_s)

    def results(
        self, fleet: Fleet, runs: int, jobs: Sequence[tuple[Scenario, int]]
    ) -> dict[int, Result]:
        """The results of all runs of a fleet; ``jobs`` says what each run of all was."""
        scale_events = fleet.recorder.scale_tables(runs)
        children = fleet.recorder.child_tables(runs)
        results = {}
        for run, (tasks, end, busy_core_s) in self._tasks.items():
            scenario, replication = jobs[run]
            _credit(children[run], tasks)
            results[run] = Result.of(
                scenario,
                replication=replication,
                tables=Tables(
                    tasks, scale_events[run], children[run], np.empty(0, dtype=LEVEL_DTYPE)
                ),
                start=min(0.0, scenario.producer.start_s),
                end=end,
                busy_core_s=busy_core_s,
            )
        return results


def _credit(children: Table, tasks: Table) -> None:
    """Add the finished tasks to their children, whose rows are in the order of their numbers."""
    done = tasks[tasks["outcome"] == Outcome.SUCCEEDED]
    child = done["child"] - 1
    children["tasks"] += np.bincount(child, minlength=len(children)).astype(np.int32)
    seconds = done["finished"] - done["started"]
    children["busy_s"] += np.bincount(child, weights=seconds, minlength=len(children))
