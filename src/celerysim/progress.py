"""A progress bar on stderr that stays away from anything quick."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

#: Seconds before the bar appears.
PATIENCE_S = 1.0


@contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yields ``update(done, total)``; the bar appears once :data:`PATIENCE_S` have passed."""
    began = monotonic()
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(label, total=None)

    def update(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total)
        if not progress.live.is_started and monotonic() - began > PATIENCE_S:
            progress.start()

    try:
        yield update
    finally:
        progress.stop()
