"""What the batch engine can run, and how it refuses the rest: by name."""

from __future__ import annotations

from celerysim.batch.run_queues import crowds
from celerysim.errors import Problem, ScenarioError
from celerysim.scenario.schema import Scenario

_REMEDY = "use the reference engine (celerysim.simulate, --engine reference)"


def unsupported(scenario: Scenario) -> list[str]:
    """What keeps the batch engine from running ``scenario``: dotted path, value and reason."""
    return [f"{p.path} = {p.value}: {p.rule}" for p in problems(scenario)]


def require(scenario: Scenario, source: str = "scenario") -> None:
    """Refuse a scenario that cannot be run.

    Raises:
        ScenarioError: naming every field that stands in the way.
    """
    found = problems(scenario)
    if found:
        raise ScenarioError(source, found)


def problems(scenario: Scenario) -> list[Problem]:
    """One problem a field."""
    worker = scenario.worker
    found: list[Problem] = []

    def refuse(path: str, value: object, reason: str) -> None:
        found.append(Problem(path, str(value), f"the batch engine {reason}", _REMEDY))

    if worker.pool != "prefork":
        refuse("worker.pool", worker.pool, "has prefork workers only")
    if worker.optimization != "fair":
        refuse("worker.optimization", worker.optimization, "writes jobs to idle children only")
    if worker.write_order is not None:
        refuse("worker.write_order", list(worker.write_order), "writes to children by their places")
    for name in ("time_limit", "soft_time_limit"):
        if (value := getattr(worker, name)) is not None:
            refuse(f"worker.{name}", value, "has no time limits")
    for name in ("max_tasks_per_child", "max_memory_per_child"):
        if (value := getattr(worker, name)) is not None:
            refuse(f"worker.{name}", value, "has no children that leave by themselves")
    if worker.task_acks_late and worker.task_reject_on_worker_lost:
        refuse("worker.task_reject_on_worker_lost", True, "delivers each message once")
    for name, profile in scenario.tasks.profiles.items():
        if profile.aftermath is not None:
            path = f"tasks.profiles.{name}.aftermath"
            refuse(path, f"factor {profile.aftermath.factor:g}", "has tasks that leave nothing")
    late_share = scenario.machine.late_wakeup_share
    if late_share and crowds(scenario):
        refuse("machine.late_wakeup_share", late_share, "draws no numbers in the order of events")
    return found
