"""The arrows between packages that ARCHITECTURE.md promises."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "celerysim"

#: What each package may import of celerysim, besides itself.
FOUNDATION = {"errors", "_version", "history"}
ALLOWED = {
    "errors": set(),
    "_version": set(),
    "history": set(),
    "progress": set(),
    "theory": set(),
    "scenario": {"errors"},
    "result": FOUNDATION | {"scenario", "engine"},
    "engine": FOUNDATION | {"scenario", "result"},
    "uncertainty": {"scenario"},
    "metrics": FOUNDATION | {"scenario", "result"},
    "export": FOUNDATION | {"result"},
    "plots": FOUNDATION,
    "trace": FOUNDATION,
    "inspection": FOUNDATION | {"trace", "metrics", "report", "plots"},
    "calibrate": FOUNDATION
    | {"scenario", "engine", "result", "trace", "metrics", "conform", "replay", "theory", "report"},
    "what_if": FOUNDATION | {"scenario", "engine", "result", "calibrate"},
    "studies": FOUNDATION
    | {"scenario", "engine", "result", "metrics", "report", "sweep", "uncertainty"},
    "record": FOUNDATION | {"scenario", "engine", "trace"},
    "compare": FOUNDATION
    | {"scenario", "engine", "result", "trace", "record", "metrics", "report", "uncertainty"},
    "validate": FOUNDATION | {"compare", "record", "studies", "sweep", "plots"},
}
#: Modules that nobody outside these packages may load.
CONFINED = {
    "matplotlib": {"plots", "inspection", "sweep", "studies", "compare", "validate"},
    "typer": {"cli"},
    "simpy": {"engine"},
    "rich": {"progress"},
}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "celerysim":
                found |= {f"celerysim.{alias.name}" for alias in node.names}
    return found


def package_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_package_imports_only_what_it_may(path: Path) -> None:
    package = package_of(path)
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "celerysim" and package in ALLOWED and rest:
            target = rest.partition(".")[0]
            assert target == package or target in ALLOWED[package], f"{package} imports {name}"
        if top in CONFINED:
            assert package in CONFINED[top], f"{package} imports {name}"


def test_the_check_notices_a_forbidden_import(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("from celerysim.cli import app\nimport matplotlib.pyplot\n")
    assert imports(bad) == {"celerysim.cli", "matplotlib.pyplot"}
