"""One scenario on several pools and sizes, side by side.

Everything but ``worker.pool`` and ``worker.concurrency`` stays as it is;
``worker.autoscale`` is dropped, so that a size is a size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from celerysim.engine.simulation import simulate
from celerysim.errors import CelerysimError
from celerysim.metrics import over_replications, summary
from celerysim.scenario import Scenario, make_scenario
from celerysim.scenario.schema import Worker
from celerysim.studies.memory import Memory
from celerysim.studies.runs import Progress

#: Every pool that can be named.
KNOWN: tuple[str, ...] = get_args(Worker.model_fields["pool"].annotation)
POOLS = ("prefork", "gevent", "threads")
SIZES = (2, 4, 8)


@dataclass(frozen=True)
class PoolResult:
    """What one pool of one size did with the scenario."""

    pool: str
    size: int
    simulated: dict[str, Any]  #: as ``run --json`` with several replications
    cores_used: float  #: cores busy on average
    memory_mib: float  #: :class:`~celerysim.studies.memory.Memory`'s sum

    @property
    def label(self) -> str:
        """``gevent(8)``."""
        return f"{self.pool}({self.size})"

    @property
    def throughput_per_core(self) -> float | None:
        """Tasks a second, for each core used."""
        throughput = self.simulated["throughput_per_s"]["mean"]
        return float(throughput) / self.cores_used if self.cores_used and throughput else None

    def figure(self, path: str) -> float | None:
        """A figure's mean by its path, ``sojourn_s.p95``, or one of this class's own."""
        if path in ("cores_used", "memory_mib", "throughput_per_core"):
            own: float | None = getattr(self, path)
            return own
        value: Any = self.simulated
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, dict) or "mean" not in value:
            raise CelerysimError(
                f"there is no figure '{path}'. Remedy: use throughput_per_s, sojourn_s.p95, "
                "sojourn_s.mean, throughput_per_core, cores_used or another key of run --json."
            )
        mean: float | None = value["mean"]
        return mean

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "pool": self.pool,
            "size": self.size,
            "simulated": self.simulated,
            "cores_used": self.cores_used,
            "throughput_per_core": self.throughput_per_core,
            "memory_mib": self.memory_mib,
        }


def pools(
    scenario: Scenario,
    *,
    pools: Sequence[str] = POOLS,
    sizes: Sequence[int] = SIZES,
    replications: int = 1,
    memory: Memory | None = None,
    progress: Progress = lambda done, total: None,
) -> list[PoolResult]:
    """Simulate ``scenario`` on each pool and size; random numbers are the same for all.

    ``solo`` has one size only, and appears once. ``progress`` is called with
    (simulations done, in all).

    Raises:
        CelerysimError: a pool is unknown, or a size is no positive number.
    """
    pairs = _pairs(pools, sizes)
    found = []
    for place, (pool, size) in enumerate(pairs):
        chosen = on_pool(scenario, pool, size)
        summaries = []
        for replication in range(replications):
            result = simulate(chosen, replication=replication, levels=False)
            summaries.append(summary(result))
            progress(place * replications + replication + 1, len(pairs) * replications)
        found.append(_result(chosen, pool, size, summaries, memory or Memory()))
    return found


def on_pool(scenario: Scenario, pool: str, size: int) -> Scenario:
    """``scenario`` on a pool of a fixed size."""
    data = scenario.model_dump(mode="json", exclude_none=True)
    data["worker"].pop("autoscale", None)
    data["worker"] |= {"pool": pool, "concurrency": size}
    return make_scenario(data)


def _pairs(pools: Sequence[str], sizes: Sequence[int]) -> list[tuple[str, int]]:
    for pool in pools:
        if pool not in KNOWN:
            raise CelerysimError(
                f"there is no pool '{pool}'. Remedy: use some of {', '.join(KNOWN)}."
            )
    for size in sizes:
        if size < 1:
            raise CelerysimError(f"{size} is no size. Remedy: give numbers from 1, such as 2,4,8.")
    if not pools or not sizes:
        raise CelerysimError("no pool or no size is given. Remedy: name at least one of each.")
    wanted = [(pool, 1 if pool == "solo" else size) for pool in pools for size in sizes]
    return list(dict.fromkeys(wanted))


def _result(
    scenario: Scenario,
    pool: str,
    size: int,
    summaries: Sequence[dict[str, Any]],
    memory: Memory,
) -> PoolResult:
    merged = over_replications(summaries)
    share = merged["core_utilisation"]["mean"] or 0.0
    return PoolResult(
        pool=pool,
        size=size,
        simulated=merged,
        cores_used=share * scenario.machine.cores,
        memory_mib=memory.worker_mib(scenario, pool, size),
    )
