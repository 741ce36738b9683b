"""What waiting acknowledgements cost in the published cells, and prefork's advantage a core.

Why they wait: :mod:`~celerysim.studies.ack_lag`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celerysim.studies.cells import CELLS, SIZES, Cell, published
from celerysim.studies.runs import Progress
from celerysim.studies.tables import REPLICATIONS, CellResult, tables

#: The published saturated cells, on which the price shows.
LOAD = "cumulative"
#: Cores a prefork worker had; a green one uses one.
PREFORK_CORES = 2
GREEN = ("gevent", "eventlet")


@dataclass(frozen=True)
class PublishedAckLag:
    """Tasks a second of the cumulative cells."""

    lagging: dict[str, float]  #: of green cells, as Celery does it
    idealised: dict[str, float]  #: the same with ``worker.idealised``
    prefork: dict[str, float]  #: of the fixed prefork cells

    def advantage(self, size: int, pool: str = "gevent", *, idealised: bool = False) -> float:
        """Prefork's throughput a core, relative to a green pool's of one size, less 1."""
        green = (self.idealised if idealised else self.lagging)[Cell(LOAD, pool, size).label]
        return self.prefork[f"concurrency({size})"] / PREFORK_CORES / green - 1.0

    def gain(self, label: str) -> float:
        """How much more a green cell gets done without the lag, less 1."""
        return self.idealised[label] / self.lagging[label] - 1.0

    def published_without(self, size: int, pool: str = "gevent") -> float:
        """The published :meth:`advantage`, had the green pool gained what it gains here."""
        gain = self.gain(Cell(LOAD, pool, size).label)
        return (1.0 + published_advantage(size, pool)) / (1.0 + gain) - 1.0

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "throughput_per_s": {
                "prefork": self.prefork, "green": self.lagging, "idealised": self.idealised
            },
            "gain": {label: self.gain(label) for label in self.lagging},
            "prefork_advantage_a_core": {
                f"{pool}({size})": {
                    "published": published_advantage(size, pool),
                    "published_without": self.published_without(size, pool),
                    "simulated": self.advantage(size, pool),
                    "idealised": self.advantage(size, pool, idealised=True),
                }
                for pool in GREEN
                for size in SIZES
            },
        }  # fmt: skip


def published_ack_lag(
    replications: int = REPLICATIONS,
    *,
    overrides: Sequence[str] = (),
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> PublishedAckLag:
    """Simulate the cumulative cells, the green ones also with immediate acknowledgements.

    Arguments and errors as for :func:`~celerysim.studies.tables.tables`.
    """
    cells = [c for c in CELLS if c.load == LOAD and c.pool != "autoscale"]
    green = [cell for cell in cells if cell.is_green]
    total = (len(cells) + len(green)) * replications

    def shifted(by: int) -> Progress:
        return lambda done, _: progress(by + done, total)

    real = tables(
        replications,
        cells=cells,
        overrides=overrides,
        processes=processes,
        progress=shifted(0),
    )
    ideal = tables(
        replications,
        cells=green,
        overrides=[*overrides, "worker.idealised=true"],
        processes=processes,
        progress=shifted(len(cells) * replications),
    )
    return PublishedAckLag(
        lagging=_throughputs([result for result in real if result.cell.is_green]),
        idealised=_throughputs(ideal),
        prefork=_throughputs([result for result in real if not result.cell.is_green]),
    )


def published_advantage(size: int, pool: str = "gevent") -> float:
    """:meth:`PublishedAckLag.advantage` of the published figures: 17 % for eight and gevent."""
    prefork = published(Cell(LOAD, "concurrency", size))["throughput_per_s"]
    green = published(Cell(LOAD, pool, size))["throughput_per_s"]
    return float(prefork / PREFORK_CORES / green - 1.0)


def _throughputs(results: Sequence[CellResult]) -> dict[str, float]:
    return {r.cell.label: float(r.simulated["throughput_per_s"]["mean"]) for r in results}
