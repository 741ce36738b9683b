"""The experiments kept in the repository: every point is a scenario, and one of them runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from celerysim import simulate
from celerysim.metrics import summary
from celerysim.scenario import override
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
    assert len(FOLDERS) >= 4
