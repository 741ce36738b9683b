"""The 24 published cells: their scenarios, and what was published of them.

The figures, with their source, are in ``validation/reference/article_tables.json``;
what the scenarios are calibrated with, and on which two cells, is declared in
``calibration.toml`` beside it. Both come with the installed package.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from celerysim.scenario import Scenario, make_scenario

_PACKAGED = Path(__file__).parents[1] / "reference"  # in an installed wheel
_CHECKOUT = Path(__file__).parents[3] / "validation" / "reference"  # in an editable install

LOADS = ("cumulative", "schedule")
POOLS = ("autoscale", "concurrency", "gevent", "eventlet")
SIZES = (2, 4, 8)

#: A figure's place in a cell's row of the published tables.
_ROW = {"forks": 0, "duration_s": 1, "tasks": 2, "throughput_per_s": 3}
_ROW_SOJOURN = {"mean": 4, "median": 8, "p90": 9, "p95": 10}
#: The same in the rows of medians over runs.
_MEDIANS_SOJOURN = {"mean": 1, "median": 2, "p90": 3, "p95": 4}


@dataclass(frozen=True)
class Cell:
    """One load on one pool of one size."""

    load: str  #: one of LOADS
    pool: str  #: one of POOLS; the first two are prefork
    size: int

    @property
    def label(self) -> str:
        """The cell's name in the published tables: ``autoscale(8,4)``, ``gevent(2)``."""
        low = f",{self.size // 2}" if self.pool == "autoscale" else ""
        return f"{self.pool}({self.size}{low})"

    @property
    def name(self) -> str:
        """Load and label: ``schedule autoscale(8,4)``."""
        return f"{self.load} {self.label}"

    @property
    def is_green(self) -> bool:
        """Whether it is one process of greenlets, without forks."""
        return self.pool in ("gevent", "eventlet")

    @property
    def is_calibrated(self) -> bool:
        """Whether the calibration has used this cell; the others are predicted."""
        return self.name in calibration()["calibrated_on"]


#: All of them, in the order of the published tables.
CELLS = tuple(Cell(load, pool, size) for load, pool, size in product(LOADS, POOLS, SIZES))


def calibration() -> dict[str, Any]:
    """The calibration file's tables."""
    return _calibration()


def scenario_of(cell: Cell, overrides: Iterable[str] = ()) -> Scenario:
    """The cell as a scenario, with ``dotted.path=value`` overrides applied."""
    tables = calibration()
    common, own = tables["common"], tables[_family(cell)]
    if cell.pool == "autoscale":
        worker: dict[str, Any] = {"pool": "prefork", "autoscale": [cell.size, cell.size // 2]}
    else:
        pool = cell.pool if cell.is_green else "prefork"
        worker = {"pool": pool, "concurrency": cell.size}
    batches = {"batch_size": cell.size, "pause_s": own["pauses_s"][cell.load]}
    data = {
        "producer": {**common["producer"], **own["producer"], **batches},
        "tasks": {**common["tasks"], **own["tasks"]},
        "worker": {**common["worker"], **worker},
        "machine": common["machine"],
        "costs": own.get("costs", {}),
    }
    return make_scenario(data, overrides, source=cell.name)


def drain_s(cell: Cell) -> float:
    """Seconds between the purge of the queue and the end of a run."""
    return float(calibration()[_family(cell)]["drain_s"])


def published(cell: Cell) -> dict[str, Any]:
    """The cell's published row: means over runs, quantiles over all tasks of all runs."""
    row = _tables()[cell.load][cell.label]
    figures: dict[str, Any] = {key: row[place] for key, place in _ROW.items()}
    return figures | {"sojourn_s": {key: row[place] for key, place in _ROW_SOJOURN.items()}}


def medians(cell: Cell) -> dict[str, Any]:
    """The medians over runs, which single outlier runs do not move.

    ``source`` is ``runs``; without raw data (``cumulative concurrency(8)``) it is
    ``published row`` and the figures are that row's.
    """
    row = _tables()["medians_over_runs"][cell.load].get(cell.label)
    of_row = published(cell)
    if row is None:
        return {"source": "published row", **of_row}
    forks = forks_of_runs(cell)
    return {
        "source": "runs",
        "forks": median(forks) if forks else of_row["forks"],
        "tasks": row[0],
        "throughput_per_s": row[0] / of_row["duration_s"],
        "sojourn_s": {key: row[place] for key, place in _MEDIANS_SOJOURN.items()},
    }


def forks_of_runs(cell: Cell) -> tuple[int, ...]:
    """Forks of each of the real runs; empty where the pool does not scale."""
    return tuple(_tables()["forks_per_run"].get(cell.name, ()))


def _family(cell: Cell) -> str:
    return "green" if cell.is_green else "prefork"


def _folder() -> Path:
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


@cache
def _tables() -> dict[str, Any]:
    text = (_folder() / "article_tables.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


@cache
def _calibration() -> dict[str, Any]:
    return tomllib.loads((_folder() / "calibration.toml").read_text(encoding="utf-8"))
