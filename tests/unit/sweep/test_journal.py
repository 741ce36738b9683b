"""The journal: what is kept over a crash, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from celerysim import CelerysimError, Scenario
from celerysim.sweep import Table, sweep
from celerysim.sweep.chunk import LEAST_TASKS, Job, Row
from celerysim.sweep.journal import Journal
from celerysim.sweep.study import run_experiment

ROWS = [Row(Job(0, 0), (3, 0.1 + 0.2)), Row(Job(1, 0), (4, math.nan))]


def written(path: Path, *chunks: list[Row], finished: bool = False) -> None:
    with Journal(path, "f") as journal:
        for chunk in chunks:
            journal.append(chunk)
        if finished:
            journal.finish()


def resumed(path: Path) -> dict[Job, tuple[float, ...]]:
    with Journal(path, "f", resume=True) as journal:
        return journal.rows


def test_rows_come_back_to_the_last_bit(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, ROWS)
    rows = resumed(path)
    assert rows[Job(0, 0)] == (3, 0.1 + 0.2)
    assert isinstance(rows[Job(0, 0)][0], int)
    assert math.isnan(rows[Job(1, 0)][1])


def test_a_line_cut_short_anywhere_is_dropped_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, ROWS[:1], ROWS[1:])
    whole = path.read_bytes()
    second = whole[:-1].rindex(b"\n") + 1
    for length in range(second, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert set(resumed(path)) == {Job(0, 0)}
    path.write_bytes(whole)
    assert set(resumed(path)) == {Job(0, 0), Job(1, 0)}


def test_a_damaged_line_in_the_middle_costs_its_own_runs_only(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, ROWS[:1], ROWS[1:])
    header, first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + first.replace(b"3", b"5") + second)
    assert set(resumed(path)) == {Job(1, 0)}


def test_an_unfinished_journal_is_never_thrown_away(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, ROWS)
    with pytest.raises(CelerysimError, match=r"an interrupted sweep is here.*--resume"):
        Journal(path, "f")
    assert len(resumed(path)) == 2


def test_a_finished_journal_is_begun_anew_or_read(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, ROWS, finished=True)
    with Journal(path, "f", resume=True) as journal:
        assert len(journal.rows) == 2
        journal.finish()
    with Journal(path, "other") as journal:
        assert journal.rows == {}


def test_another_sweeps_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, ROWS)
    with pytest.raises(CelerysimError, match="is of another sweep"):
        Journal(path, "other", resume=True)


def test_two_sweeps_cannot_write_into_one_folder(tmp_path: Path) -> None:
    with (
        Journal(tmp_path / "j", "f"),
        pytest.raises(CelerysimError, match="another sweep is writing here"),
    ):
        Journal(tmp_path / "j", "f")


def test_resuming_nothing_begins(tmp_path: Path) -> None:
    assert resumed(tmp_path / "new" / "j") == {}


class Interrupted(BaseException):
    """Stands for Ctrl-C."""


def interrupted_at(runs: int, sweep_: Callable[..., object]) -> None:
    def stop(done: int, total: int) -> None:
        if done >= runs:
            raise Interrupted

    with pytest.raises(Interrupted):
        sweep_(progress=stop)


def test_an_interrupted_sweep_goes_on_where_it_was(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LEAST_TASKS, "reference", 100)

    def run(path: Path, **options: object) -> Table:
        axes = {"worker.keepalive": [2.0, 600.0]}
        return sweep(scenario, axes, 5, engine="reference", journal=path, **options)

    path = tmp_path / "j"
    whole = run(tmp_path / "whole")
    interrupted_at(4, partial(run, path, processes=1))
    interrupted_at(8, partial(run, path, resume=True, processes=2))
    seen: list[int] = []
    table = run(path, resume=True, progress=lambda done, total: seen.append(done))
    assert seen[0] >= 8  # all that was done before is still done
    assert (table.rows == whole.rows).all()


def test_more_replications_add_to_those_there_are(write: Callable[..., Path]) -> None:
    folder = write("replications = 2\n[[axes]]\nfield='worker.keepalive'\nvalues=[5, 60]\n")
    run_experiment(folder, engine="reference")
    seen: list[int] = []
    more = run_experiment(
        folder, replications=3, resume=True, engine="reference",
        progress=lambda done, total: seen.append(done),
    )  # fmt: skip
    assert seen[0] == 4
    fewer = run_experiment(folder, replications=1, resume=True, engine="reference")
    assert (len(more.table.rows), len(fewer.table.rows)) == (6, 2)


def test_a_changed_experiment_is_not_resumed(write: Callable[..., Path]) -> None:
    folder = write("replications = 2\n[[axes]]\nfield='worker.keepalive'\nvalues=[5, 60]\n")
    run_experiment(folder, engine="reference")
    file = folder / "sweep.toml"
    file.write_text(file.read_text().replace("mean = 2.0", "mean = 2.5"))
    with pytest.raises(CelerysimError, match="is of another sweep"):
        run_experiment(folder, resume=True, engine="reference")
