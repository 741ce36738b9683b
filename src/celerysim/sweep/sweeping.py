"""The sweep itself: who works, what is kept, and the table in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from celerysim.engines import Wanted
from celerysim.errors import CelerysimError
from celerysim.scenario import Scenario, load_scenario
from celerysim.sweep import crew
from celerysim.sweep.axes import Axis
from celerysim.sweep.chunk import cut
from celerysim.sweep.crew import Crew, Hire
from celerysim.sweep.experiment import Until, make_experiment
from celerysim.sweep.journal import Journal
from celerysim.sweep.plan import Plan, make_plan
from celerysim.sweep.table import Table

#: Called with (runs done, runs in all).
Progress = Callable[[int, int], None]

#: Chunks' worth of work below which it is done in this process, unless processes are asked for:
#: they take a second to start.
WORTH_PROCESSES = 12


def sweep(
    scenario: Scenario | str | Path,
    axes: Sequence[Axis | Mapping[str, Any]] | Mapping[str, Sequence[Any]],
    replications: int | Until = 1,
    outputs: Sequence[str] = ("forks_per_hour", "sojourn_s.p95"),
    *,
    engine: Wanted = "auto",
    processes: int | None = None,
    dask: str | None = None,
    executor: Executor | None = None,
    journal: Path | None = None,
    resume: bool = False,
    progress: Progress = lambda done, total: None,
) -> Table:
    """Simulate a scenario at every point of the product of ``axes``.

    ``axes`` maps fields to values (``{"worker.keepalive": [5, 30, 600]}``), or
    lists axes as an experiment file has them. ``outputs`` names statistics. The
    work is done by ``processes`` of this machine (None: one a core, or this one
    alone when there is little to do), by the cluster of a ``dask`` scheduler's
    address, or by ``executor``; none of them changes any value. With a
    ``journal`` an interrupted sweep can be resumed.

    Processes are spawned: a script of your own needs ``if __name__ ==
    "__main__":`` around the call.

    Raises:
        ExperimentError: an axis or output is wrong.
        ScenarioError: a point is no scenario.
        CelerysimError: the engine refuses a point; the journal is another
            sweep's; workers are lost again and again.
    """
    base = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    if isinstance(axes, Mapping):
        axes = [{"field": field, "values": list(values)} for field, values in axes.items()]
    many = "until" if isinstance(replications, Until) else "replications"
    data: dict[str, Any] = {"axes": list(axes), "outputs": list(outputs), many: replications}
    experiment = make_experiment(data | {"scenario": {}}, source="sweep")
    plan = make_plan(base, experiment, engine)
    hire = hire_for(plan.size, processes=processes, dask=dask, executor=executor)
    if journal is None:
        return run_plan(plan, hire, progress=progress)
    with Journal(journal, plan.fingerprint(), resume=resume) as kept:
        table = run_plan(plan, hire, journal=kept, progress=progress)
        kept.finish()
    return table


def hire_for(
    size: float,
    *,
    processes: int | None = None,
    dask: str | None = None,
    executor: Executor | None = None,
) -> Hire:
    """Who is to do work of this size (:attr:`Plan.size`).

    Raises:
        CelerysimError: more than one of them is asked for.
    """
    if sum(wish is not None for wish in (processes, dask, executor)) > 1:
        raise CelerysimError(
            "processes, dask and executor exclude each other. Remedy: give one of them."
        )
    if executor is not None:
        return crew.given(executor)
    if dask is not None:
        return crew.dask(dask)
    if processes is None:
        processes = crew.cores() if size > WORTH_PROCESSES else 1
    return crew.local(processes)


def run_plan(
    plan: Plan,
    hire: Hire,
    *,
    journal: Journal | None = None,
    progress: Progress = lambda done, total: None,
) -> Table:
    """Do all runs of a plan that the journal does not have already, and gather the table.

    Each chunk's rows go into the journal as they come. To mark it finished is
    left to the caller, who may have more to do with the table first.
    """
    found = dict(journal.rows) if journal else {}
    with Crew(hire) as workers:
        while jobs := plan.missing(found):
            total = len(found) + len(jobs)
            progress(len(found), total)
            chunks = cut(jobs, plan.scenarios, plan.engines, plan.statistics, workers.count)
            for outcome in workers.run(chunks):
                if journal:
                    journal.append(outcome.rows)
                found.update(outcome.rows)
                progress(len(found), total)
    return Table.of(plan.points, plan.results(found), plan.statistics, plan.provenance())
