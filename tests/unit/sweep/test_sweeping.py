"""Sweeps: the table, common random numbers, precision, and that nothing depends on who works."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from pathlib import Path

import numpy as np
import pytest

from celerysim import CelerysimError, Scenario, simulate
from celerysim.metrics import summary
from celerysim.scenario import override
from celerysim.sweep import Table, Until, sweep
from celerysim.sweep.chunk import LEAST_TASKS, Job, cut, expected_tasks
from celerysim.sweep.experiment import make_experiment
from celerysim.sweep.local import InlineExecutor
from celerysim.sweep.plan import make_plan
from celerysim.sweep.statistics import UNITS, label, measure

KEEPALIVES = {"worker.keepalive": [2.0, 30.0, 600.0]}


def swept(scenario: Scenario, replications: int | Until = 4, **options: object) -> Table:
    outputs = ["forks", "forks_per_hour", "sojourn_s.mean", "runtime_s.mean"]
    return sweep(scenario, KEEPALIVES, replications, outputs, engine="reference", **options)


def test_auto_takes_the_batch_engine_for_many_runs_of_what_it_supports(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "celerysim.engines.refusals", lambda s: [] if s.worker.keepalive > 9 else ["x"]
    )
    experiment = {"scenario": "puzzle", "axes": [{"field": "worker.keepalive", "values": [5, 30]}]}

    def engines(replications: int, wanted: str) -> tuple[str, ...]:
        found = make_experiment(experiment | {"replications": replications})
        return make_plan(scenario, found, wanted).engines

    assert engines(1000, "auto") == ("reference", "batch")
    assert engines(2, "auto") == ("reference", "reference")
    assert engines(1000, "reference") == ("reference", "reference")


def test_every_statistic_of_a_run_can_be_a_column(scenario: Scenario) -> None:
    found = summary(simulate(scenario))
    names = {
        f"{key}.{part}" if part else key
        for key, value in found.items()
        for part in (value if isinstance(value, dict) else [""])
    }
    assert names | {"forks_per_hour"} == set(UNITS)
    values = measure(found, list(UNITS))
    assert values[list(UNITS).index("forks_per_hour")] == pytest.approx(
        3600 * found["forks"] / found["duration_s"]
    )


def test_names_carry_their_unit() -> None:
    assert label("worker.keepalive") == "worker.keepalive [s]"
    assert label("sojourn_s.p95") == "sojourn_s.p95"
    assert label("forks_per_hour") == "forks_per_hour"
    assert label("producer.rate_per_s") == "producer.rate_per_s"
    assert label("forks") == "forks"


def test_rows_are_what_single_runs_give(scenario: Scenario) -> None:
    table = swept(scenario)
    assert table.rows.dtype.names[:3] == ("point", "worker.keepalive", "replication")
    assert len(table.rows) == 3 * 4
    row = table.rows[(table.rows["point"] == 1) & (table.rows["replication"] == 2)][0]
    alone = summary(simulate(override(scenario, ["worker.keepalive=30"]), replication=2))
    assert row["forks"] == alone["forks"]
    assert row["sojourn_s.mean"] == alone["sojourn_s"]["mean"]


def test_points_share_their_random_numbers(scenario: Scenario) -> None:
    # tasks that only wait take as long at any keepalive: the same draws, replication by replication
    runtimes = swept(scenario).rows["runtime_s.mean"].reshape(3, 4)
    assert np.allclose(runtimes, runtimes[0], rtol=0, atol=1e-3)
    assert np.unique(np.round(runtimes[0], 3)).size == 4


def test_a_difference_is_much_surer_than_its_ends(scenario: Scenario) -> None:
    table = swept(scenario, 10)
    ends = [{"worker.keepalive": 2.0}, {"worker.keepalive": 600.0}]
    mean, low, high = table.difference("sojourn_s.mean", *ends)
    one, _, other = table.summary
    assert mean == pytest.approx(other["sojourn_s.mean"] - one["sojourn_s.mean"])
    alone = one["sojourn_s.mean.high"] - one["sojourn_s.mean.low"]
    assert (high - low) < alone / 5
    assert high < 0  # a longer keepalive is surely quicker, though the means' intervals overlap
    assert other["sojourn_s.mean.high"] > one["sojourn_s.mean.low"]


def test_the_summary_has_means_with_intervals(scenario: Scenario) -> None:
    table = swept(scenario)
    assert table.summary["replications"].tolist() == [4, 4, 4]
    for row, block in zip(table.summary, table.rows["sojourn_s.mean"].reshape(3, 4)):
        assert row["sojourn_s.mean"] == pytest.approx(block.mean())
        half = 3.182446 * block.std(ddof=1) / 2  # Student's t with 3 degrees of freedom
        assert row["sojourn_s.mean.high"] == pytest.approx(block.mean() + half, rel=1e-6)
    assert np.isnan(swept(scenario, 1).summary["forks.low"]).all()


def test_asking_for_what_the_table_has_not(scenario: Scenario) -> None:
    table = swept(scenario, 1)
    here = {"worker.keepalive": 2.0}
    with pytest.raises(CelerysimError, match="no 'lost'"):
        table.difference("lost", here, here)
    with pytest.raises(CelerysimError, match="no point"):
        table.difference("forks", here, {"worker.keepalive": 3.0})
    with pytest.raises(CelerysimError, match=r"has worker\.keepalive"):
        table.difference("forks", here, {})


def test_pandas_and_parquet(scenario: Scenario, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="celerysim[parquet] is not installed")
    table = swept(scenario, 2)
    frame = table.to_pandas()
    assert frame["forks"].tolist() == table.rows["forks"].tolist()
    assert frame.attrs["units"]["sojourn_s.mean"] == "s"
    table.write_parquet(tmp_path / "a.parquet")
    table.write_parquet(tmp_path / "b.parquet")
    read = parquet.read_table(tmp_path / "a.parquet")
    assert read.column("sojourn_s.mean").to_pylist() == table.rows["sojourn_s.mean"].tolist()
    assert read.schema.field("worker.keepalive").metadata == {b"unit": b"s"}
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_parquet_without_pyarrow_is_a_clear_error(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("celerysim.sweep.files.find_spec", lambda name: None)
    with pytest.raises(CelerysimError, match=r"pip install 'celerysim\[parquet\]'"):
        swept(scenario, 1).write_parquet(tmp_path / "a.parquet")


# --- replications until a mean is known well enough ---


def test_replications_go_on_until_the_interval_is_narrow(scenario: Scenario) -> None:
    until = Until(statistic="sojourn_s.mean", half_width=0.15, at_least=5, at_most=500)
    table = swept(scenario, until)
    half = table.summary["sojourn_s.mean.high"] - table.summary["sojourn_s.mean"]
    assert (half <= 0.15).all()
    counts = table.summary["replications"]
    assert counts.min() > 5
    assert counts.max() < 500


def test_replications_stop_at_the_limit(scenario: Scenario) -> None:
    until = Until(statistic="sojourn_s.mean", relative=1e-6, at_least=3, at_most=7)
    assert swept(scenario, until).summary["replications"].tolist() == [7, 7, 7]


# --- who works ---


def rows_csv(table: Table, path: Path) -> bytes:
    table.write_csv(path)
    return path.read_bytes()


def test_one_process_two_and_an_executor_give_the_same_bytes(
    scenario: Scenario, tmp_path: Path
) -> None:
    one = rows_csv(swept(scenario, processes=1), tmp_path / "one.csv")
    assert rows_csv(swept(scenario, processes=2), tmp_path / "two.csv") == one
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert rows_csv(swept(scenario, executor=executor), tmp_path / "given.csv") == one


def test_progress_counts_runs(scenario: Scenario) -> None:
    seen: list[tuple[int, int]] = []
    swept(scenario, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 12)
    assert seen[-1] == (12, 12)
    assert seen == sorted(seen)


def test_chunks_hold_every_run_once_and_no_more_than_their_share(scenario: Scenario) -> None:
    jobs = [Job(point, r) for point in range(5) for r in range(70)]
    chunks = cut(jobs, [scenario] * 5, ["reference"] * 5, ("forks",), workers=2)
    assert sorted(job for chunk in chunks for job in chunk.jobs) == jobs
    assert len(chunks) >= 8
    assert all(set(chunk.scenarios) == {job.point for job in chunk.jobs} for chunk in chunks)


@pytest.mark.parametrize(
    ("producer", "tasks"),
    [
        ({"kind": "times", "times_s": [1.0, 2.0]}, 2),
        ({"kind": "rate", "rate_per_s": 2.0, "duration_s": 30.0}, 60),
        ({"kind": "batches", "batch_size": 4, "pause_s": 1.6, "publish_s": 0.1, "max_tasks": 9}, 9),
        ({"kind": "batches", "batch_size": 4, "pause_s": 1.6, "publish_s": 0.1, "duration_s": 20.0},
         40),
    ],
)  # fmt: skip
def test_expected_tasks(scenario: Scenario, producer: dict[str, object], tasks: float) -> None:
    data = scenario.model_dump(mode="json", exclude_none=True) | {"producer": producer}
    assert expected_tasks(override(Scenario.model_validate(data), [])) == pytest.approx(tasks)


class Mortal(InlineExecutor):
    """An executor whose worker dies at its first call, like that of a process pool."""

    def __init__(self, deaths: int) -> None:
        self.deaths = deaths

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future:
        if self.deaths:
            self.deaths -= 1
            future: Future = Future()
            future.set_exception(BrokenProcessPool("killed"))
            return future
        return super().submit(fn, *args, **kwargs)


def test_a_lost_workers_runs_are_run_again(scenario: Scenario) -> None:
    whole = swept(scenario, processes=1)
    assert (swept(scenario, executor=Mortal(2)).rows == whole.rows).all()


def test_workers_that_die_again_and_again_are_an_error(scenario: Scenario) -> None:
    with pytest.raises(CelerysimError, match=r"died 4 times over the same runs.*memory"):
        swept(scenario, executor=Mortal(99))


def test_a_killed_process_of_the_local_pool_is_replaced(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LEAST_TASKS, "reference", 100)  # a chunk a run
    whole = swept(scenario, 12, processes=1)
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if 0 < done < total / 2 and not killed:
            child = active_children()[0]
            child.kill()
            killed.append(child.pid)

    assert (swept(scenario, 12, processes=2, progress=kill_one).rows == whole.rows).all()
    assert killed


def test_a_worker_of_another_version_is_refused(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("celerysim.sweep.crew.__version__", "0.0.1")
    with pytest.raises(CelerysimError, match="Remedy: install the same version everywhere"):
        swept(scenario, processes=1)


def test_a_defect_in_a_run_says_where(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("no")

    monkeypatch.setattr("celerysim.engines.simulate", broken)
    with pytest.raises(ZeroDivisionError) as caught:
        swept(scenario, processes=1)
    assert "Job(point=0, replication=0)" in caught.value.__notes__[0]
