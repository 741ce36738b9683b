"""The report: what holds and what does not, written, checked, and refused when it is untrue."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from celerysim.errors import CelerysimError
from celerysim.scenario import Scenario, make_scenario, override
from celerysim.validate import Validation, load_catalogue, validate
from celerysim.validate.report import FILE, differences, report, write

CATALOGUE = """
[[groups]]
name = "right"
what = "The model's own run."
command = "celerysim record right.toml -o run-1"

[[groups]]
name = "wrong"
what = "A run with another keepalive."
command = "celerysim record wrong.toml -o run-1"
misses = { "processes forked" = "the keepalive was another" }
"""


def scenario() -> Scenario:
    return make_scenario(
        {
            "producer": {"kind": "batches", "batch_size": 4, "pause_s": 1.0, "max_tasks": 80},
            "tasks": {"profiles": {"short": {"steps": [{"io_s": 0.5}]}}},
            "worker": {"autoscale": [4, 0], "keepalive": 3.5, "prefetch_multiplier": 1},
        }
    )


@pytest.fixture
def folder(recorded: Callable[..., Path], tmp_path: Path) -> Path:
    traces = tmp_path / "traces"
    for name in ("right", "wrong"):
        (traces / name).mkdir(parents=True)
    (traces / "traces.toml").write_text(CATALOGUE)
    recorded(traces / "right" / "run-1", scenario())
    recorded(traces / "right" / "run-2", scenario())
    recorded(
        traces / "wrong" / "run-1", scenario(), real=override(scenario(), ["worker.keepalive=9.0"])
    )
    return tmp_path


def run(folder: Path) -> Validation:
    return validate(folder, replications=3, cell_replications=0, processes=1)


def test_each_claim_holds_or_misses(folder: Path) -> None:
    claims = run(folder).claims
    forks = {claim.subject: claim.holds for claim in claims if claim.figure == "processes forked"}
    assert forks == {"right/run-1": True, "right/run-2": True, "wrong/run-1": False}
    assert all(claim.holds for claim in claims if claim.subject.startswith("right"))
    assert {claim.basis for claim in claims} == {"predicted"}


def test_the_report_counts_and_explains(folder: Path) -> None:
    text = report(run(folder))
    assert "3 recorded runs of 2 scenarios" in text
    assert "| processes forked | 2 of 3 (67 %) |" in text
    assert (
        "- wrong, processes forked (replayed: run-1; predicted: run-1): the keepalive was another"
        in text
    )


def test_a_miss_without_a_cause_says_so(folder: Path) -> None:
    catalogue = folder / "traces" / "traces.toml"
    catalogue.write_text(CATALOGUE.split("misses")[0])
    assert "- wrong, processes forked (replayed: run-1; predicted: run-1): not explained" in report(
        run(folder)
    )


def test_what_is_written_holds_until_something_changes(folder: Path) -> None:
    validation = run(folder)
    paths = write(validation, folder)
    assert (folder / "traces" / "right" / "CARD.md") in paths
    assert (folder / "pictures" / "overview.png").stat().st_size > 10_000
    assert differences(run(folder), folder) == []
    path = folder / FILE
    path.write_text(path.read_text().replace("| 2 of 3 (67 %)", "| 3 of 3 (100 %)"))
    changed = differences(validation, folder)
    assert any("no longer: | processes forked | 3 of 3" in line for line in changed)
    assert any("now: | processes forked | 2 of 3" in line for line in changed)


def test_the_result_does_not_depend_on_the_processes(folder: Path) -> None:
    two = validate(folder, replications=3, cell_replications=0, processes=2)
    assert report(two) == report(run(folder))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("groups = 3", "traces.toml"),
        (CATALOGUE.replace("what", "why"), "why"),
        (CATALOGUE.replace('"right"', '"absent"'), "absent has no recording run-1"),
    ],
)
def test_a_wrong_catalogue_is_refused(folder: Path, text: str | None, message: str) -> None:
    path = folder / "traces" / "traces.toml"
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(CelerysimError, match=message) as error:
        load_catalogue(folder / "traces")
    assert "Remedy" in str(error.value)


def test_the_command_outside_a_checkout(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "celerysim.cli", "validate"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "Remedy: run it in a checkout" in done.stderr
