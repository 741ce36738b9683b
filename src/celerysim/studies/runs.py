"""The runs a study is made of, on one process or several of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from typing import Any, TypeVar

from celerysim.engine.simulation import simulate
from celerysim.metrics import over_replications, summary
from celerysim.scenario import Scenario
from celerysim.sweep.local import InlineExecutor, executor_for

T = TypeVar("T")
Progress = Callable[[int, int], None]


def replicate_all(
    scenarios: Sequence[Scenario],
    replications: int,
    *,
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> list[dict[str, Any]]:
    """The statistics of each scenario, as ``run --json`` with several replications.

    Replication r has the same random numbers in all of them. Arguments as for
    :func:`~celerysim.studies.tables.tables`.
    """
    jobs = [(scenario, r) for scenario in scenarios for r in range(replications)]
    summaries = run_all(run_one, jobs, processes, progress)
    return [
        over_replications(summaries[first : first + replications])
        for first in range(0, len(summaries), replications)
    ]


def run_one(scenario: Scenario, replication: int) -> dict[str, Any]:
    """The summary of one run."""
    return summary(simulate(scenario, replication=replication, levels=False))


def run_all(
    work: Callable[..., T], jobs: Sequence[tuple[Any, ...]], processes: int, progress: Progress
) -> list[T]:
    """``work(*job)`` of each job, in the jobs' order; ``progress`` gets (jobs done, in all)."""
    with executor_for(processes, len(jobs)) as executor:
        futures = []
        for job in jobs:
            futures.append(executor.submit(work, *job))
            if isinstance(executor, InlineExecutor):
                progress(len(futures), len(jobs))
        if not isinstance(executor, InlineExecutor):
            for done, future in enumerate(as_completed(futures), 1):
                future.result()  # an error is told now, not after the others
                progress(done, len(jobs))
        return [future.result() for future in futures]
