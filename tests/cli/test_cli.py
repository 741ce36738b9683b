"""The command line as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from celerysim.cli import app

runner = CliRunner()
COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]
assert len(COMMANDS) == len(set(COMMANDS))


def run(*arguments: str | Path) -> Result:
    return runner.invoke(app, [str(argument) for argument in arguments])


def printed_json(*arguments: str | Path) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# --- help ---


def test_help_lists_every_command() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert name in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"Example: celerysim {name}" in result.stdout


def test_help_loads_no_heavy_module() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom celerysim.cli import app\n"
        "CliRunner().invoke(app, ['--help'])\n"
        "print(sorted({'numpy', 'scipy', 'matplotlib', 'simpy', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version() -> None:
    assert run("--version").stdout.startswith("celerysim 0.")


# --- puzzle ---


def test_puzzle_prints_forks_and_why_and_draws_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("puzzle")
    assert result.exit_code == 0
    assert "processes forked        31" in result.stdout
    assert "4 + 3 x floor(149 / 16) = 31" in result.stdout
    assert (tmp_path / "puzzle.png").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("options", "forks"),
    [
        ([], 31),
        (["--publish-s", "0.0005"], 28),
        (["--publish-s", "0.11"], 31),
        (["--publish-s", "0.13"], 34),
        (["--min", "2"], 22),
        (["--keepalive", "600"], 4),
    ],
)
def test_puzzle_json(options: list[str], forks: int, tmp_path: Path) -> None:
    answer = printed_json("puzzle", *options)
    assert answer["forks"] == forks
    assert answer["tasks"] == 600
    assert set(answer["sojourn_s"]) == {"mean", "median", "p90", "p95", "p99"}


# --- run ---


def test_run_reports_the_agreed_keys() -> None:
    one = printed_json("run", "puzzle", "--set", "producer.max_tasks=40")
    assert {
        "forks", "scale_ups", "scale_downs", "tasks", "lost", "throughput_per_s", "sojourn_s",
        "runtime_s",
    } <= set(one)  # fmt: skip
    several = printed_json("run", "puzzle", "--set", "producer.max_tasks=40", "--replications", "3")
    assert several.keys() == one.keys()
    assert set(several["forks"]) == {"mean", "ci95", "values"}
    assert len(several["sojourn_s"]["p95"]["values"]) == 3


def test_run_writes_what_is_asked_for(tmp_path: Path) -> None:
    files = {
        "--log": "w.log",
        "--trace": "t.json",
        "--rows": "r.jsonl",
        "--plot": "p.svg",
    }
    options = [part for flag, name in files.items() for part in (flag, str(tmp_path / name))]
    result = run("run", "puzzle", "--set", "producer.max_tasks=40", *options)
    assert result.exit_code == 0
    for name in files.values():
        assert (tmp_path / name).stat().st_size > 0
    assert run("replay", tmp_path / "w.log").exit_code == 0


def test_run_takes_a_file_and_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "[producer]\nkind = 'poisson'\nrate_per_s = 2.0\nmax_tasks = 50\n"
        "[tasks.profiles.a]\nsteps = [{ io_s = { kind = 'exponential', mean = 0.5 } }]\n"
    )
    one, same, other = (printed_json("run", path, "--seed", str(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one["sojourn_s"] != other["sojourn_s"]


# --- conform ---


def test_conform_accepts_what_a_run_writes_and_rejects_what_is_altered(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.log", tmp_path / "bad.log"
    assert run("run", "puzzle", "--log", good).exit_code == 0
    lines = good.read_text().splitlines(keepends=True)
    bad.write_text("".join(line for line in lines if "Scaling down" not in line))
    (accepted,) = printed_json("conform", good)
    assert accepted["accepted"] is True
    assert accepted["scale_lines"] == 40
    assert set(accepted) == {"file", "accepted", "scale_lines", "ambiguous", "first_violation"}
    both = run("conform", good, bad)
    assert both.exit_code == 1
    assert "REJECTED" in both.stdout
    assert "before it: 4 processes, 1 reserved" in both.stdout
    assert run("conform", tmp_path / "missing.log").exit_code == 2


# --- inspect ---


def test_inspect_tells_in_words_and_as_data(tmp_path: Path) -> None:
    log, picture = tmp_path / "worker.log", tmp_path / "worker.png"
    assert run("run", "puzzle", "--log", log).exit_code == 0
    result = run("inspect", log, "--plot", picture)
    assert result.exit_code == 0
    assert "the pool shrinks and regrows every 30.4 s" in result.stdout
    assert picture.stat().st_size > 20_000
    data = printed_json("inspect", log)
    assert data["forks"] == 31
    assert "churn" in [finding["name"] for finding in data["findings"]]


# --- calibrate, what-if ---


def test_calibrate_writes_a_scenario_that_runs(tmp_path: Path) -> None:
    log, fitted = tmp_path / "worker.log", tmp_path / "fitted.toml"
    assert run("run", "puzzle", "--log", log).exit_code == 0
    result = run("calibrate", log, "-o", fitted)
    assert result.exit_code == 0
    assert "What the log cannot tell" in result.stdout
    assert printed_json("run", fitted)["forks"] == 31


def test_what_if_shows_log_model_and_change(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    assert run("run", "puzzle", "--log", log).exit_code == 0
    answer = printed_json("what-if", log, "--set", "worker.keepalive=600")
    assert (answer["log"]["forks"], answer["before"]["forks"]) == (31, 31)
    assert answer["after"]["forks"] == 4
    assert "model: changed" in run("what-if", log, "--set", "worker.keepalive=600").stdout


# --- bad input: one clear message, exit code 2, no traceback ---


def refused(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("worker.prefetch=1", "there is no such field"),
        ("worker.keepalive='x'", "write a number"),
        ("worker.autoscale=[2,4]", "write autoscale = [4, 2]"),
        ("worker.keepalive=0", "greater than 0"),
        ("producer.pause_s=-1", "at least 0"),
        ("tasks.profiles={}", "at least 1"),
    ],
)
def test_bad_scenarios(change: str, words: str) -> None:
    message = refused("run", "puzzle", "--set", change)
    assert words in message
    assert "Remedy:" in message


def test_scenario_files_that_cannot_be_used(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[producer\n")
    assert "not valid TOML" in refused("run", broken)
    assert "is no file and no shipped scenario" in refused("run", tmp_path / "missing.toml")


def test_logs_that_cannot_be_used(tmp_path: Path) -> None:
    binary, empty, headless = (tmp_path / name for name in ("binary.log", "empty.log", "cut.log"))
    binary.write_bytes(bytes(range(256)) * 40)
    empty.write_bytes(b"")
    headless.write_text("[2026-01-01 00:00:00,000: INFO/MainProcess] Task a[1] received\n")
    for path in (binary, empty, headless, tmp_path / "missing.log"):
        message = refused("replay", path)
        assert str(path.name) in message or "banner" in message
        assert "Remedy:" in message


def test_puzzle_values_outside_the_rules() -> None:
    assert "worker.autoscale" in refused("puzzle", "--min", "9")
    assert "producer.publish_s" in refused("puzzle", "--publish-s", "-1")
    assert "worker.keepalive" in refused("puzzle", "--keepalive", "0")


def test_wrong_options() -> None:
    assert "No such option" in refused("puzzle", "--speed", "3")
    assert "No such command" in refused("solve")
    assert "greater than or equal to 1" in refused("run", "puzzle", "--replications", "0")


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "x"
    assert "Remedy:" in refused("run", "puzzle", "--log", nowhere)
    assert "Remedy:" in refused("run", "puzzle", "--plot", nowhere.with_suffix(".png"))
    assert "Remedy:" in refused("run", "puzzle", "--plot", tmp_path / "x.docx")


# --- studies ---


def test_ack_lag_of_a_scenario_and_of_the_published_cells() -> None:
    options = ("--set", "run.horizon_s=30", "--replications", "1", "--processes", "1")
    mine = printed_json("ack-lag", "threads-late-acks", "--others", "1", *options)
    assert set(mine) == {"pool", "throughput_per_s", "gain", "variants"}
    assert "gossip, 1 other worker" in {variant["name"] for variant in mine["variants"]}
    cells = printed_json("ack-lag", "--replications", "1", "--processes", "1")
    assert cells["gain"]["gevent(2)"] > 0.2
    refused = run("ack-lag", "puzzle")
    assert refused.exit_code == 2
    assert "Remedy" in refused.stderr


def test_losses_of_a_scenario_and_of_the_published_cell() -> None:
    options = ("--replications", "2", "--processes", "1")
    mine = printed_json("losses", "puzzle", "--set", "producer.max_tasks=40", *options)
    assert mine["simulated"]["runs"] == 2
    result = run("losses", *options)
    assert result.exit_code == 0
    assert "3.2% to 37.9%" in result.stdout
