"""Which engine runs a scenario, and running it there: the one place that knows both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

from celerysim.engine.simulation import simulate
from celerysim.errors import CelerysimError
from celerysim.metrics import summary
from celerysim.scenario import Scenario

#: What can be asked for; ``auto`` is the batch engine for many runs of what it supports.
Wanted = Literal["auto", "reference", "batch"]
#: What runs in the end.
Engine = Literal["reference", "batch"]


#: Runs below which ``auto`` takes the reference engine: the batch engine is quick with many only.
WORTH_BATCH = 500


def for_runs(wanted: Wanted, runs: float) -> Wanted:
    """What is wanted, for so many runs in one go: ``auto`` is the reference engine for few."""
    return "reference" if wanted == "auto" and runs < WORTH_BATCH else wanted


def choose(scenario: Scenario, wanted: Wanted, where: str = "scenario") -> Engine:
    """The engine that runs ``scenario``.

    Raises:
        CelerysimError: ``batch`` is wanted and does not support it; the message
            says why, and names the scenario as ``where``.
    """
    if wanted == "reference":
        return "reference"
    reasons = refusals(scenario)
    if not reasons:
        return "batch"
    if wanted == "auto":
        return "reference"
    raise CelerysimError(
        f"{where}: the batch engine cannot run it: {'; '.join(reasons)}. "
        "Remedy: use the engine auto or reference, or change the scenario."
    )


def refusals(scenario: Scenario) -> list[str]:
    """What keeps the batch engine from running it; empty when nothing does."""
    batch = _batch()
    if batch is None:
        return ["this installation has no batch engine"]
    return list(batch.unsupported(scenario))


def summaries(engine: Engine, runs: Sequence[tuple[Scenario, int]]) -> list[Mapping[str, Any]]:
    """The summary (:func:`celerysim.metrics.summary`) of each run: a scenario, a replication."""
    if engine == "batch":
        scenarios, replications = zip(*runs, strict=True)
        return list(_batch().simulate_many(scenarios, replications))
    return [
        summary(simulate(scenario, replication=replication, levels=False))
        for scenario, replication in runs
    ]


def _batch() -> Any:
    """The batch engine's package, None where there is none."""
    try:
        batch = import_module("celerysim.batch")
    except ImportError:
        return None
    return batch if hasattr(batch, "simulate_many") else None
