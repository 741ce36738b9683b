"""Commands that run a scenario at many points."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from celerysim.cli.common import (
    Engine,
    Json,
    Plot,
    Seed,
    Set,
    app,
    progress_bar,
    save_picture,
    show,
    user_errors,
)

Processes = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Processes of this machine [default: one a core]."),
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Use the Dask cluster of this scheduler: tcp://HOST:PORT"),
]


@app.command(epilog="Example: celerysim sweep experiments/keepalive-churn")
def sweep(
    experiment: Annotated[str, typer.Argument(help="A folder with a sweep.toml, or such a file.")],
    replications: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Runs at each point, instead of the file's."),
    ] = None,
    engine: Engine = "auto",
    processes: Processes = None,
    dask: Dask = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an interrupted sweep was.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of results [default: result beside the file]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Simulate a scenario at every point of an experiment; write table, summary and pictures."""
    from celerysim.sweep.report import sweep_report
    from celerysim.sweep.study import run_experiment

    with user_errors(), _interruptible("go on with --resume"), progress_bar("sweeping") as progress:
        study = run_experiment(
            experiment,
            out=out,
            replications=replications,
            engine=engine,
            processes=processes,
            dask=dask,
            resume=resume,
            progress=progress,
        )
    show(study.as_json(), sweep_report(study), as_json)


@app.command(
    epilog="Example: celerysim optimise puzzle --minimise forks_per_hour "
    "--subject-to 'sojourn_s.p95<3' --over worker.keepalive=5:600"
)
def optimise(
    scenario: Annotated[str, typer.Argument(help="A TOML file, or a name `models` lists.")],
    minimise: Annotated[
        str, typer.Option(metavar="STATISTIC", help="What to make least: forks_per_hour.")
    ],
    over: Annotated[
        list[str],
        typer.Option(
            metavar="FIELD=LOW:HIGH", help="What to turn: worker.keepalive=5:600. Repeatable."
        ),
    ],
    subject_to: Annotated[
        list[str] | None,
        typer.Option(metavar="LIMIT", help="What to keep: 'sojourn_s.p95<3'. Repeatable."),
    ] = None,
    set_: Set = None,
    budget: Annotated[int, typer.Option(min=1, metavar="N", help="Settings to try, about.")] = 200,
    replications: Annotated[
        int, typer.Option(min=1, metavar="N", help="Runs of each setting tried.")
    ] = 5,
    fresh: Annotated[
        int, typer.Option(min=2, metavar="N", help="New runs of the best settings, to be sure.")
    ] = 30,
    seed: Seed = None,
    engine: Engine = "auto",
    processes: Processes = None,
    dask: Dask = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Search for the settings that make a statistic least while others keep their limits."""
    from celerysim.scenario import load_scenario
    from celerysim.sweep import optimise as search
    from celerysim.sweep.report import optimum_report

    overrides = [*(set_ or ()), *([] if seed is None else [f"run.seed={seed}"])]
    with user_errors():
        loaded = load_scenario(scenario, overrides)
        with _interruptible("a search starts anew"), progress_bar("searching") as progress:
            found = search(
                loaded,
                minimise=minimise,
                over=over,
                subject_to=subject_to or (),
                replications=replications,
                fresh=fresh,
                budget=budget,
                engine=engine,
                processes=processes,
                dask=dask,
                progress=progress,
            )
    show(found.as_json(), optimum_report(scenario, found), as_json)
    if plot is not None:
        from celerysim.sweep.pictures import draw

        save_picture(plot, lambda: draw(found.tried, found.picture()))


@contextmanager
def _interruptible(hint: str) -> Iterator[None]:
    """Ctrl-C or SIGTERM is one line on stderr and the exit code a shell gives it.

    SIGTERM's own way would leave the pool's semaphores to Python's resource tracker, which warns.
    """
    code = 128 + signal.SIGINT

    def terminate(number: int, _: FrameType | None) -> None:
        nonlocal code
        code = 128 + number
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"celerysim: interrupted; {hint}", err=True)
        raise typer.Exit(code) from None
    finally:
        signal.signal(signal.SIGTERM, before)
