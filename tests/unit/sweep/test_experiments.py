"""The experiments kept in the repository: every point is a scenario, and one of them runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from celerysim import simulate
from celerysim.metrics import summary
from celerysim.scenario import load_scenario, override
from celerysim.studies.shares import LEVEL, share_sweep
from celerysim.sweep.experiment import base_scenario, load_experiment
from celerysim.sweep.plan import make_plan
from celerysim.sweep.statistics import measure

FOLDERS = sorted(
    path.parent for path in (Path(__file__).parents[3] / "experiments").glob("*/sweep.toml")
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_kept_experiments_are_sound_and_answered(folder: Path) -> None:
    experiment, path = load_experiment(folder)
    plan = make_plan(base_scenario(experiment, path.parent), experiment, "reference")
    first = override(plan.scenarios[0], ["run.horizon_s=60"])
    assert measure(summary(simulate(first)), plan.statistics)
    answer = (folder / "README.md").read_text(encoding="utf-8")
    for picture in experiment.pictures:
        assert f"result/{picture.file}" in answer
        assert (folder / "result" / picture.file).stat().st_size > 10_000


def test_there_are_experiments() -> None:
    assert len(FOLDERS) >= 5


@pytest.mark.parametrize(
    ("worker", "statistic", "level_at", "behind_from"),
    [  # as experiments/cpu-share/README.md names them
        ("gevent(8), 1 core", "throughput_per_s", 0.16, 0.18),
        ("gevent(100), 1 core", "throughput_per_s", 0.16, 0.18),
        ("threads(8), 1 core", "throughput_per_s", 0.14, 0.16),
        ("prefork(8), 1 core", "throughput_per_s", 0.14, 0.16),
        ("gevent(8), 1 core", "sojourn_s.p95", 0.02, 0.04),
        ("gevent(100), 1 core", "sojourn_s.p95", 0.1, 0.12),
        ("threads(8), 1 core", "sojourn_s.p95", 0.02, 0.04),
        ("prefork(8), 1 core", "sojourn_s.p95", 0.02, 0.04),
    ],
)
def test_the_crossings_of_cpu_share_are_where_its_answer_says(
    worker: str, statistic: str, level_at: float, behind_from: float
) -> None:
    (folder,) = (folder for folder in FOLDERS if folder.name == "cpu-share")
    with (folder / "result" / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    worse = {}  # by which share of the better figure, at each share of CPU
    for row in rows:
        if row["worker"] == worker:
            (best,) = (
                float(other[statistic])
                for other in rows
                if other["worker"] == "prefork(8), 4 cores"
                and other["cpu_share"] == row["cpu_share"]
            )
            own = float(row[statistic])
            low, high = (own, best) if statistic == "throughput_per_s" else (best, own)
            worse[float(row["cpu_share"])] = (high - low) / max(own, best)
    assert all(loss <= LEVEL for share, loss in worse.items() if share <= level_at)
    assert all(loss > LEVEL for share, loss in worse.items() if share >= behind_from)


def test_the_scenario_beside_cpu_share_can_be_swept_by_pools() -> None:
    (folder,) = (folder for folder in FOLDERS if folder.name == "cpu-share")
    scenario = load_scenario(folder / "full-queue.toml", ["run.horizon_s=20"])
    found = share_sweep(scenario, [0.0, 0.5], pools_=["prefork", "gevent"], sizes=[8])
    assert [crossing.after for crossing in found.crossings] == ["prefork"]
