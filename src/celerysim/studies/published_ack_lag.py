"""What the acknowledgements' waiting costs the green pools: throughput with and without it.

A green worker writes acknowledgements only between two ``drain_events``, which
return on a frame or after two seconds. ``worker.idealised`` acknowledges at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celerysim.studies.cells import CELLS, SIZES, Cell, published
from celerysim.studies.tables import REPLICATIONS, CellResult, Progress, tables

#: The published saturated cells, on which the price shows.
LOAD = "cumulative"
#: Cores a prefork worker had; a green one uses one.
PREFORK_CORES = 2


@dataclass(frozen=True)
class AckLag:
    """Tasks a second of the cumulative cells."""

    lagging: dict[str, float]  #: of green cells, as Celery does it
    idealised: dict[str, float]  #: the same with ``worker.idealised``
    prefork: dict[str, float]  #: of the fixed prefork cells

    def advantage(self, size: int, pool: str = "gevent", *, idealised: bool = False) -> float:
        """Prefork's throughput a core, relative to a green pool's of one size, less 1."""
        green = (self.idealised if idealised else self.lagging)[Cell(LOAD, pool, size).label]
        return self.prefork[f"concurrency({size})"] / PREFORK_CORES / green - 1.0

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "throughput_per_s": {
                "prefork": self.prefork, "green": self.lagging, "idealised": self.idealised
            },
            "prefork_advantage_a_core": {
                f"{pool}({size})": {
                    "published": published_advantage(size, pool),
                    "simulated": self.advantage(size, pool),
                    "idealised": self.advantage(size, pool, idealised=True),
                }
                for pool in ("gevent", "eventlet")
                for size in SIZES
            },
        }  # fmt: skip


def ack_lag(
    replications: int = REPLICATIONS,
    *,
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> AckLag:
    """Simulate the cumulative cells, the green ones also with immediate acknowledgements.

    Arguments as for :func:`~celerysim.studies.tables.tables`.
    """
    cells = [c for c in CELLS if c.load == LOAD and c.pool != "autoscale"]
    green = [cell for cell in cells if cell.is_green]
    total = (len(cells) + len(green)) * replications

    def shifted(by: int) -> Progress:
        return lambda done, _: progress(by + done, total)

    real = tables(replications, cells=cells, processes=processes, progress=shifted(0))
    ideal = tables(
        replications,
        cells=green,
        overrides=["worker.idealised=true"],
        processes=processes,
        progress=shifted(len(cells) * replications),
    )
    return AckLag(
        lagging=_throughputs([result for result in real if result.cell.is_green]),
        idealised=_throughputs(ideal),
        prefork=_throughputs([result for result in real if not result.cell.is_green]),
    )


def published_advantage(size: int, pool: str = "gevent") -> float:
    """:meth:`AckLag.advantage` of the published figures: 17 % for eight and gevent."""
    prefork = published(Cell(LOAD, "concurrency", size))["throughput_per_s"]
    green = published(Cell(LOAD, pool, size))["throughput_per_s"]
    return float(prefork / PREFORK_CORES / green - 1.0)


def _throughputs(results: Sequence[CellResult]) -> dict[str, float]:
    return {r.cell.label: float(r.simulated["throughput_per_s"]["mean"]) for r in results}
