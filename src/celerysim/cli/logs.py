"""Commands that take worker logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celerysim.cli.common import (
    Cores,
    Json,
    Keepalive,
    KnownKeepalive,
    OneWorker,
    Plot,
    Set,
    app,
    draw,
    save_picture,
    show,
    user_errors,
)


@app.command(epilog="Example: celerysim inspect worker.log.gz --plot worker.png")
def inspect(
    log: Annotated[str, typer.Argument(help="A worker log (plain or .gz); - for standard input.")],
    worker: OneWorker = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Show what happened in a worker log, in numbers and in plain words."""
    from celerysim.inspection import inspect as inspect_history
    from celerysim.inspection import inspection_report, picture, read_observed

    with user_errors():
        found = inspect_history(read_observed(log, worker=worker))
    show(found.as_json(), inspection_report(log, found), as_json)
    if plot is not None:
        save_picture(plot, lambda: picture(found, Path(log).name))


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
    with user_errors():
        verdicts = [
            check(read_log(log), source=log, keepalive=keepalive, limits=limits) for log in logs
        ]
    show([verdict.as_json() for verdict in verdicts], conform_report(verdicts), as_json)
    if not all(verdict.accepted for verdict in verdicts):
        raise typer.Exit(1)


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

    with user_errors():
        history = read_log(log)
        verdict = replay_log(history, keepalive=keepalive)
    show(verdict.as_json(), replay_report(log, verdict), as_json)
    draw(plot, history, Path(log).name)
    if not verdict.equal:
        raise typer.Exit(1)


@app.command(epilog="Example: celerysim calibrate monday.log tuesday.log -o worker.toml")
def calibrate(
    logs: Annotated[list[str], typer.Argument(help="Logs of one worker (plain or .gz).")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the scenario.")
    ] = None,
    cores: Cores = None,
    keepalive: KnownKeepalive = None,
    predict: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="Another log, to be predicted. Repeatable."),
    ] = None,
    worker: OneWorker = None,
    as_json: Json = False,
) -> None:
    """Fit a scenario to worker logs; say how well it fits and what the logs cannot tell."""
    from celerysim.calibrate import calibrate as fit
    from celerysim.calibrate.text import calibration_report
    from celerysim.trace import read_log

    with user_errors():
        found = fit(
            [read_log(log, worker=worker) for log in logs],
            sources=logs,
            cores=cores,
            keepalive=keepalive,
            predict=[read_log(log, worker=worker) for log in predict or ()],
        )
        if output is not None:
            found.write(output)
    show(found.as_json(), calibration_report(found) if output else found.toml(), as_json)


@app.command("what-if", epilog="Example: celerysim what-if worker.log --set worker.keepalive=600")
def what_if(
    log: Annotated[str, typer.Argument(help="A worker log (plain or .gz); - for standard input.")],
    set_: Set = None,
    cores: Cores = None,
    keepalive: KnownKeepalive = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="A log of the same tasks at another concurrency."),
    ] = None,
    worker: OneWorker = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Replay a log's tasks under other settings: the log, the model of it, and the change."""
    from celerysim.report import what_if_report
    from celerysim.trace import read_log
    from celerysim.what_if import what_if as replay_with

    with user_errors():
        answer = replay_with(
            read_log(log, worker=worker),
            set_ or [],
            cores=cores,
            keepalive=keepalive,
            others=[read_log(other) for other in also or ()],
        )
    show(answer.as_json(), what_if_report(log, answer), as_json)
    draw(plot, answer.result, f"{Path(log).name} with {', '.join(answer.changes) or 'no change'}")
