"""Commands that take scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celerysim.cli.common import (
    Engine,
    Json,
    Keepalive,
    Plot,
    Replications,
    Seed,
    Set,
    app,
    draw,
    progress_bar,
    show,
    user_errors,
)


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
    engine: Engine = "auto",
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

    with user_errors(), progress_bar("simulating") as progress:
        answer = answer_puzzle(
            publish_s=publish_s,
            keepalive=keepalive,
            min_concurrency=min_,
            replications=replications,
            seed=1 if seed is None else seed,
            engine=engine,
            progress=progress,
        )
    show(answer.as_json(), puzzle_report(answer), as_json)
    if plot is None and not as_json:
        plot = Path("puzzle.png")
    draw(plot, answer.result, f"puzzle: {answer.result.forks} processes forked")


@app.command(epilog="Example: celerysim run puzzle --set worker.keepalive=600 --plot run.png")
def run(
    scenario: Annotated[str, typer.Argument(help="A TOML file, or a name `models` lists.")],
    set_: Set = None,
    replications: Replications = 1,
    seed: Seed = None,
    engine: Engine = "auto",
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
    from celerysim.run import replicate, statistics
    from celerysim.scenario import load_scenario

    overrides = [*(set_ or ()), *([] if seed is None else [f"run.seed={seed}"])]
    with user_errors():
        loaded = load_scenario(scenario, overrides)
        with progress_bar("simulating") as progress:
            result, found = replicate(loaded, replications, progress, engine)
        write_results(result, log=log, trace=trace, rows=rows)
    report = statistics(found)
    show(report, run_report(scenario, report, replications), as_json)
    draw(plot, result, f"{scenario}: {result.forks} processes forked")


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
    compress: Annotated[
        bool, typer.Option("--compress", help="Pack the log and the tables with gzip.")
    ] = False,
) -> None:
    """Run a scenario on real Celery and a real broker, and keep what happened.

    Needs the extra: pip install 'celerysim[record]'. Exit code: 0 complete, 1 interrupted.
    """
    from celerysim.record import load_recording
    from celerysim.record import record as record_run
    from celerysim.record.files import compress as pack
    from celerysim.report import recording_report
    from celerysim.scenario import load_scenario

    with user_errors(), progress_bar("recording") as progress:
        recording = record_run(
            load_scenario(scenario, set_ or ()),
            folder,
            broker_url=broker,
            events=events,
            allow_fewer_cores=allow_fewer_cores,
            progress=lambda part, _: progress(round(100 * part), 100),
        )
        if compress:
            pack(folder)
            recording = load_recording(folder)
    typer.echo(recording_report(recording))
    if not recording.complete:
        raise typer.Exit(1)


@app.command(epilog="Example: celerysim models")
def models(as_json: Json = False) -> None:
    """List the scenarios that come with celerysim."""
    from celerysim.report import models_report
    from celerysim.scenario import descriptions

    found = descriptions()
    show(found, models_report(found), as_json)


@app.command(epilog="Example: celerysim fields > scenario.md")
def fields() -> None:
    """Print every field of a scenario file: type, default, meaning (Markdown)."""
    from celerysim.scenario.reference import markdown

    typer.echo(markdown(), nl=False)
