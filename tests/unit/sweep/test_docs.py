"""What the documents on sweeps show works."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from celerysim.scenario import load_scenario
from celerysim.sweep.experiment import make_experiment
from celerysim.sweep.plan import make_plan
from celerysim.sweep.statistics import UNITS

DOCS = Path(__file__).parents[3] / "docs"


def blocks(name: str, language: str) -> list[str]:
    text = (DOCS / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_experiment_shown_is_sound() -> None:
    example, until = blocks("sweeps.md", "toml")
    experiment = make_experiment(tomllib.loads(example))
    plan = make_plan(load_scenario("puzzle", experiment.set), experiment, "reference")
    assert len(plan.points) == 7 * 2
    replaced = tomllib.loads(example.replace("replications = 20", ""))
    assert make_experiment(replaced | tomllib.loads(until)).until is not None


@pytest.mark.parametrize("name", ["sweeps.md", "cluster.md"])
def test_the_python_shown_runs(name: str, tmp_path: Path) -> None:
    import subprocess
    import sys

    (code,) = blocks(name, "python")
    script = tmp_path / "shown.py"
    script.write_text(code.replace("replications=20", "replications=2"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout
    if name == "sweeps.md":
        assert done.stdout.startswith("(-27.0, -27.0, -27.0)")


def test_every_statistic_is_documented() -> None:
    text = (DOCS / "sweeps.md").read_text(encoding="utf-8")
    for name in UNITS:
        for part in name.split("."):
            assert f"`{part}`" in text or f"`.{part}`" in text, name
