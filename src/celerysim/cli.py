"""The command line: parse, call one library function, show. No logic of its own.

Heavy modules are imported inside the commands, so that ``--help`` is quick.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from celerysim._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Simulate a Celery worker as its source really behaves.",
    epilog="Start with: celerysim puzzle",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw the picture into FILE (png, svg, pdf).")
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the random numbers.")]
Replications = Annotated[
    int, typer.Option(min=1, metavar="N", help="Runs with different random numbers.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Override a field: worker.keepalive=600. Repeatable."
    ),
]
Keepalive = Annotated[
    float, typer.Option(metavar="SECONDS", help="AUTOSCALE_KEEPALIVE of the worker.")
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"celerysim {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Simulate a Celery worker as its source really behaves."""


@app.command(epilog="Example: celerysim puzzle --publish-s 0.13 --plot puzzle.png")
def puzzle(
    publish_s: Annotated[
        float, typer.Option(metavar="SECONDS", help="Seconds one publish takes.")
    ] = 0.05,
    keepalive: Keepalive = 30.0,
    min_: Annotated[
        int, typer.Option("--min", metavar="N", help="Least processes: --autoscale=4,N.")
    ] = 0,
    replications: Replications = 1,
    seed: Seed = None,
    as_json: Json = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the picture into FILE [default: puzzle.png; none with --json]",
        ),
    ] = None,
) -> None:
    """How many processes do 600 tasks fork, four every 1.7 s, with --autoscale=4,0? Not four."""
    from celerysim.puzzle import puzzle as answer_puzzle
    from celerysim.report import puzzle_report

    with _errors(), _progress("simulating") as progress:
        answer = answer_puzzle(
            publish_s=publish_s,
            keepalive=keepalive,
            min_concurrency=min_,
            replications=replications,
            seed=1 if seed is None else seed,
            progress=progress,
        )
    _show(answer.as_json(), puzzle_report(answer), as_json)
    if plot is None and not as_json:
        plot = Path("puzzle.png")
    _draw(plot, answer.result, f"puzzle: {answer.result.forks} processes forked")


@app.command(epilog="Example: celerysim run puzzle --set worker.keepalive=600 --plot run.png")
def run(
    scenario: Annotated[str, typer.Argument(help="A TOML file, or a name `models` lists.")],
    set_: Set = None,
    replications: Replications = 1,
    seed: Seed = None,
    as_json: Json = False,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Celery worker log.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Chrome trace events, for Perfetto.")
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all rows (.jsonl) or the tasks (.csv)."),
    ] = None,
    plot: Plot = None,
) -> None:
    """Simulate a scenario and report its forks, waits, throughput and losses."""
    from celerysim.export import write_results
    from celerysim.report import run_report
    from celerysim.run import replicate
    from celerysim.scenario import load_scenario

    overrides = [*(set_ or ()), *([] if seed is None else [f"run.seed={seed}"])]
    with _errors():
        loaded = load_scenario(scenario, overrides)
        with _progress("simulating") as progress:
            result, report = replicate(loaded, replications, progress)
        write_results(result, log=log, trace=trace, rows=rows)
    _show(report, run_report(scenario, report, replications), as_json)
    _draw(plot, result, f"{scenario}: {result.forks} processes forked")


@app.command(epilog="Example: celerysim replay worker.log.gz")
def replay(
    log: Annotated[str, typer.Argument(help="A worker log (plain or .gz); - for standard input.")],
    keepalive: Keepalive = 30.0,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Show the model's "Scaling" lines beside those of a real worker log.

    Exit code: 0 all equal, 1 some differ, 2 the log cannot be used.
    """
    from celerysim.replay import replay as replay_log
    from celerysim.report import replay_report
    from celerysim.trace import read_log

    with _errors():
        history = read_log(log)
        verdict = replay_log(history, keepalive=keepalive)
    _show(verdict.as_json(), replay_report(log, verdict), as_json)
    _draw(plot, history, Path(log).name)
    if not verdict.equal:
        raise typer.Exit(1)


@app.command(epilog="Example: celerysim conform worker.log yesterday.log.gz")
def conform(
    logs: Annotated[list[str], typer.Argument(help="Worker logs (plain or .gz).")],
    keepalive: Keepalive = 30.0,
    tie_ms: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="MS",
            help="A result may be read this long after it was logged.",
        ),
    ] = 2.0,
    as_json: Json = False,
) -> None:
    """Decide whether logs are possible for a Celery worker as modelled.

    Exit code: 0 all accepted, 1 some rejected, 2 a log cannot be used.
    """
    from celerysim.conform import Limits
    from celerysim.conform import conform as check
    from celerysim.report import conform_report
    from celerysim.trace import read_log

    limits = Limits(tie_s=tie_ms / 1000)
    with _errors():
        verdicts = [
            check(read_log(log), source=log, keepalive=keepalive, limits=limits) for log in logs
        ]
    _show([verdict.as_json() for verdict in verdicts], conform_report(verdicts), as_json)
    if not all(verdict.accepted for verdict in verdicts):
        raise typer.Exit(1)


@app.command(epilog="Example: celerysim inspect worker.log.gz --plot worker.png")
def inspect(
    log: Annotated[str, typer.Argument(help="A worker log (plain or .gz); - for standard input.")],
    worker: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read only this worker's lines.")
    ] = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Show what happened in a worker log, in numbers and in plain words."""
    from celerysim.inspection import inspect as inspect_history
    from celerysim.inspection import inspection_report, picture, read_observed

    with _errors():
        found = inspect_history(read_observed(log, worker=worker))
    _show(found.as_json(), inspection_report(log, found), as_json)
    if plot is not None:
        _save(plot, lambda: picture(found, Path(log).name))


@app.command(epilog="Example: celerysim record puzzle -o recording --allow-fewer-cores")
def record(
    scenario: Annotated[str, typer.Argument(help="A TOML file, or a name `models` lists.")],
    folder: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="A new or empty folder.")
    ],
    set_: Set = None,
    broker: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="amqp://...; private: a RabbitMQ of our own "
            "[default: the one on localhost, else a private one]",
        ),
    ] = None,
    events: Annotated[
        bool, typer.Option("--events", help="Run the worker with -E and keep its events.")
    ] = False,
    allow_fewer_cores: Annotated[
        bool,
        typer.Option(
            "--allow-fewer-cores",
            help="Record although this machine has fewer cores than the scenario's.",
        ),
    ] = False,
) -> None:
    """Run a scenario on real Celery and a real broker, and keep what happened.

    Needs the extra: pip install 'celerysim[record]'. Exit code: 0 complete, 1 interrupted.
    """
    from celerysim.record import record as record_run
    from celerysim.report import recording_report
    from celerysim.scenario import load_scenario

    with _errors(), _progress("recording") as progress:
        recording = record_run(
            load_scenario(scenario, set_ or ()),
            folder,
            broker_url=broker,
            events=events,
            allow_fewer_cores=allow_fewer_cores,
            progress=lambda part, _: progress(round(100 * part), 100),
        )
    typer.echo(recording_report(recording))
    if not recording.complete:
        raise typer.Exit(1)


@app.command(epilog="Example: celerysim models")
def models(as_json: Json = False) -> None:
    """List the scenarios that come with celerysim."""
    from celerysim.report import models_report
    from celerysim.scenario import descriptions

    found = descriptions()
    _show(found, models_report(found), as_json)


@app.command(epilog="Example: celerysim fields > scenario.md")
def fields() -> None:
    """Print every field of a scenario file: type, default, meaning (Markdown)."""
    from celerysim.scenario.reference import markdown

    typer.echo(markdown(), nl=False)


def _show(data: Any, text: str, as_json: bool) -> None:
    typer.echo(json.dumps(data, indent=2) if as_json else text)


def _draw(path: Path | None, history: Any, title: str) -> None:
    if path is None:
        return
    from celerysim.plots import run_picture

    _save(path, lambda: run_picture(history, title))


def _save(path: Path, draw: Callable[[], Any]) -> None:
    from celerysim.plots import save

    with _errors():
        save(draw(), path)
    typer.echo(f"picture: {path}", err=True)


@contextmanager
def _errors() -> Iterator[None]:
    """A user's error is one message on stderr and exit code 2, never a traceback."""
    from celerysim.errors import CelerysimError

    try:
        yield
    except CelerysimError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}. Remedy: check the path and its permissions.")


def _fail(message: str) -> NoReturn:
    typer.echo(f"celerysim: {message}", err=True)
    raise typer.Exit(2)


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr for what takes longer than a second; nothing when it is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from celerysim.progress import bar

    with bar(label) as update:
        yield update


if __name__ == "__main__":
    app()
