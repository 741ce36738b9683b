"""Commands that hold predictions against real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celerysim.cli.common import (
    Json,
    Plot,
    Processes,
    Set,
    app,
    progress_bar,
    save_picture,
    show,
    user_errors,
)


@app.command(epilog="Example: celerysim compare recording --plot recording.png")
def compare(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A folder that `record` made.")],
    replications: Annotated[
        int, typer.Option(min=1, metavar="N", help="Simulated runs of each stage.")
    ] = 200,
    set_: Set = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Say how far predictions are off a recorded run, with prediction intervals.

    Twice: with the observed arrivals and runtimes, so that what is wrong is the
    model; and with the scenario's own load, whose error is then added.
    """
    from celerysim.compare import compare as compare_recording
    from celerysim.compare.report import compare_report

    with user_errors(), progress_bar("simulating") as progress:
        found = compare_recording(
            folder, replications=replications, overrides=set_ or (), progress=progress
        )
    show(found.as_json(), compare_report(found), as_json)
    if plot is not None:
        from celerysim.compare.picture import compare_picture

        save_picture(plot, lambda: compare_picture(found, Path(folder).name))


@app.command(epilog="Example: celerysim validate --check")
def validate(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The project's validation folder.")
    ] = Path("validation"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if the report no longer holds.")
    ] = False,
    replications: Annotated[
        int, typer.Option(min=1, metavar="N", help="Simulated runs of each recording and stage.")
    ] = 100,
    processes: Processes = 0,
    as_json: Json = False,
) -> None:
    """Hold the model against every kept recording and published table; write REPORT.md.

    Exit code: 0 written, or still true; 1 with --check: it no longer holds.
    """
    from celerysim.validate import validate as run_validation
    from celerysim.validate.report import differences, overview, write

    with user_errors():
        with progress_bar("validating") as progress:
            found = run_validation(
                folder, replications=replications, processes=processes, progress=progress
            )
        changed = differences(found, folder)
        if not check:
            write(found, folder)
    show(found.as_json(), overview(found), as_json)
    if check and changed:
        typer.echo("\n".join(["The report no longer holds:", *changed]), err=True)
        raise typer.Exit(1)
