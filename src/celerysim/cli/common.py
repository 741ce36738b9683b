"""What all commands share: the app, options that mean the same, and showing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

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
Processes = Annotated[
    int, typer.Option(min=0, metavar="N", help="Processes of this machine; 0: one a core.")
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


Engine = Annotated[
    Literal["auto", "reference", "batch"],
    typer.Option(help="auto: the batch engine wherever it supports the scenario."),
]
OneWorker = Annotated[
    str | None, typer.Option(metavar="NAME", help="Read only this worker's lines.")
]
Cores = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Cores the worker shares, if the log is silent."),
]
KnownKeepalive = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="AUTOSCALE_KEEPALIVE, if known [30 is taken]."),
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


def show(data: Any, text: str, as_json: bool) -> None:
    """Print the answer, as JSON if asked for."""
    typer.echo(json.dumps(data, indent=2) if as_json else text)


def draw(path: Path | None, history: Any, title: str) -> None:
    """Draw a run into a file, if one is named."""
    if path is None:
        return
    from celerysim.plots import run_picture

    save_picture(path, lambda: run_picture(history, title))


def save_picture(path: Path, figure: Callable[[], Any]) -> None:
    """Make a picture and write it."""
    from celerysim.plots import save

    with user_errors():
        save(figure(), path)
    typer.echo(f"picture: {path}", err=True)


@contextmanager
def user_errors() -> Iterator[None]:
    """A user's error is one message on stderr and exit code 2, never a traceback."""
    from celerysim.errors import CelerysimError

    try:
        yield
    except CelerysimError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}. Remedy: check the path and its permissions.")


def fail(message: str) -> NoReturn:
    """End with exit code 2 and one message."""
    typer.echo(f"celerysim: {message}", err=True)
    raise typer.Exit(2)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr for what takes longer than a second; nothing when it is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from celerysim.progress import bar

    with bar(label) as update:
        yield update
