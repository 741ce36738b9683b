"""The simulated tables: their shape, and the limits that hold, with few replications.

Cells outside their limits are named in docs/tables.md; the same names are here, so
that a better model shows.
"""

from __future__ import annotations

import numpy as np
import pytest

from celerysim.errors import ScenarioError
from celerysim.history import Outcome
from celerysim.studies.cells import CELLS, Cell, scenario_of
from celerysim.studies.limits import misses
from celerysim.studies.purge import simulate_purged
from celerysim.studies.tables import FIGURES, CellResult, biases, tables
from celerysim.studies.tables_report import tables_report

SMALL = [Cell("schedule", "autoscale", 2), Cell("schedule", "gevent", 2)]

#: Each with its missing mechanism, docs/tables.md.
MISSES = {
    "cumulative autoscale(4,2)",
    "cumulative autoscale(8,4)",
    "cumulative concurrency(4)",
    "cumulative concurrency(8)",
}


def error(results: list[CellResult], name: str, *figure: str) -> float:
    (value,) = (r.error(figure) for r in results if r.cell.name == name)
    assert value is not None
    return value


def test_the_json_has_24_cells_with_the_keys_of_run(all_cells: list[CellResult]) -> None:
    rows = [result.as_json() for result in all_cells]
    assert [(r["load"], r["pool"], r["size"]) for r in rows] == [
        (load, pool, size)
        for load in ("cumulative", "schedule")
        for pool in ("autoscale", "concurrency", "gevent", "eventlet")
        for size in (2, 4, 8)
    ]
    for row in rows:
        simulated = row["simulated"]
        assert set(simulated["tasks"]) == {"mean", "ci95", "values"}
        assert len(simulated["tasks"]["values"]) == 3
        assert set(simulated["sojourn_s"]) == {"mean", "median", "p90", "p95", "p99"}
        for figures in (row["published"], row["medians"]):
            assert set(figures) >= {"forks", "tasks", "throughput_per_s", "sojourn_s"}
            assert set(figures["sojourn_s"]) == {"mean", "median", "p90", "p95"}
        assert set(row["errors"]["medians"]) == {".".join(figure) for figure in FIGURES}


def test_what_misses_is_known(all_cells: list[CellResult]) -> None:
    outside = {result.cell.name for result in all_cells if misses(result)}
    assert outside <= MISSES


def test_forks_of_the_schedule(all_cells: list[CellResult]) -> None:
    forks = {r.cell.name: r.simulated["forks"]["values"] for r in all_cells}
    assert forks["schedule autoscale(2,1)"] == [11, 11, 11]
    assert forks["schedule autoscale(4,2)"] == [22, 22, 22]
    assert forks["schedule autoscale(8,4)"] == [44, 44, 44]
    assert forks["schedule concurrency(8)"] == [8, 8, 8]
    assert forks["cumulative gevent(8)"] == [0, 0, 0]


@pytest.mark.parametrize("pool", ["gevent", "eventlet"])
@pytest.mark.parametrize("load", ["cumulative", "schedule"])
@pytest.mark.parametrize("size", [2, 4])
def test_green_cells(all_cells: list[CellResult], pool: str, load: str, size: int) -> None:
    name = f"{load} {pool}({size})"
    assert error(all_cells, name, "tasks") == pytest.approx(0.0, abs=0.01)
    assert error(all_cells, name, "sojourn_s", "mean") == pytest.approx(0.0, abs=0.02)
    for quantile in ("median", "p90", "p95"):
        assert error(all_cells, name, "sojourn_s", quantile) == pytest.approx(0.0, abs=0.04)


@pytest.mark.parametrize("pool", ["autoscale(2,1)", "concurrency(2)", "concurrency(4)"])
def test_scheduled_prefork_cells(all_cells: list[CellResult], pool: str) -> None:
    assert error(all_cells, f"schedule {pool}", "tasks") == 0.0
    assert error(all_cells, f"schedule {pool}", "sojourn_s", "mean") == pytest.approx(0.0, abs=0.02)
    for quantile in ("median", "p90", "p95"):
        found = error(all_cells, f"schedule {pool}", "sojourn_s", quantile)
        assert found == pytest.approx(0.0, abs=0.04)


def test_there_is_no_bias_in_tasks(all_cells: list[CellResult]) -> None:
    assert biases(all_cells)["tasks"] == pytest.approx(0.0, abs=0.005)
    assert biases(all_cells)["sojourn_s.mean"] == pytest.approx(0.0, abs=0.03)


def test_two_processes_give_the_same(all_cells: list[CellResult]) -> None:
    alone = tables(2, cells=SMALL)
    together = tables(2, cells=SMALL, processes=2)
    assert [r.as_json() for r in alone] == [r.as_json() for r in together]
    assert alone[0].simulated["tasks"]["values"] == [60, 60]


def test_progress_comes_to_its_end() -> None:
    seen: list[tuple[int, int]] = []
    tables(2, cells=SMALL, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_the_report_names_every_cell_and_what_misses(all_cells: list[CellResult]) -> None:
    text = tables_report(all_cells)
    for cell in CELLS:
        assert cell.label in text
    assert "bias" in text
    assert "concurrency(2) (calibrated)" in text
    assert "outside their limits" in text


def test_overrides_reach_every_cell() -> None:
    (result,) = tables(1, cells=SMALL[:1], overrides=["worker.keepalive=1000"])
    assert result.simulated["forks"]["values"] == [2]


def test_a_wrong_override_is_told_at_once() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'keepalive'"):
        tables(1, cells=SMALL, overrides=["worker.keepaliv=3"])


# --- the purge ---


def test_what_the_worker_has_at_the_purge_finishes_and_the_queue_is_gone() -> None:
    cell = Cell("cumulative", "gevent", 8)
    scenario = scenario_of(cell, ["producer.duration_s=40.0"])
    result = simulate_purged(scenario, drain_s=2.0)
    published = 25 * 8  # batches begin every 1.6048 s, the last one before 40 s
    purge = -0.25 + 25 * (1.6 + 8 * 0.0006)
    assert len(result.tasks) < published
    assert (result.tasks["outcome"] == Outcome.SUCCEEDED).all()
    assert result.end >= purge + 2.0
    late = result.tasks["received"] > purge
    assert np.count_nonzero(late) <= 8  # sent to the worker, which was computing


def test_with_an_empty_queue_the_purge_changes_nothing() -> None:
    scenario = scenario_of(Cell("schedule", "concurrency", 2), ["producer.duration_s=30.0"])
    result = simulate_purged(scenario, drain_s=2.5)
    assert len(result.tasks) == 6
    assert result.end == pytest.approx(-0.147 + 3 * (10.0 + 2 * 0.0006) + 2.5)
