"""Documentation that is generated is the generated one, and what README shows works."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import celerysim
from celerysim import make_scenario, simulate
from celerysim.scenario.reference import markdown

ROOT = Path(__file__).parents[2]


def test_the_scenario_reference_is_up_to_date() -> None:
    # to renew it: celerysim fields > docs/scenario.md
    assert (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8") == markdown()


def test_every_field_is_documented() -> None:
    for line in markdown().splitlines():
        if line.startswith("| `"):
            assert not line.endswith("|  |"), line


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_readmes_scenario_runs() -> None:
    (scenario,) = blocks("toml")
    result = simulate(make_scenario(tomllib.loads(scenario), ["producer.max_tasks=50"]))
    assert len(result.tasks) == 50


def test_the_readmes_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("4\n")


def test_every_public_name_loads_and_is_documented() -> None:
    for name in celerysim.__all__:
        value = getattr(celerysim, name)
        assert isinstance(value, str) or value.__doc__, name


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (document.parent / link).exists(), f"{document.name}: {link}"
