"""What a process has run before, and what that does to its tasks.

The first task of a kind pays for what it leaves to the next ones (an import, a
connection); and some tasks leave a process behind in which others compute more slowly.
Both are measured, not derived: ``tasks.profiles.NAME.first_in_child_cpu_s`` and ``aftermath``.
Invariant: a process that has run nothing slows nobody.
"""

from __future__ import annotations

from celerysim.engine.job import Job
from celerysim.scenario.schema import Aftermath, StepKind


class Past:
    """The past of one process: a child, or the worker itself."""

    __slots__ = ("_idle_since", "_met", "_running", "_slowing")

    def __init__(self) -> None:
        self._met: set[str] = set()  # kinds of tasks that have begun
        self._slowing: list[tuple[str, Aftermath]] = []
        self._running = 0
        self._idle_since = 0.0

    def begin(self, job: Job, now: float) -> tuple[float, float]:
        """A task begins: CPU seconds that it does first, and the factor of its CPU steps."""
        kind = job.kind
        factor = 1.0
        for name, aftermath in self._slowing:
            if name != kind.name:
                idle = not self._running and now - self._idle_since >= aftermath.idle_s
                at_once = idle and kind.steps[0] is StepKind.CPU
                share = aftermath.share_after_idle if at_once else aftermath.share
                if job.draw < share:
                    factor *= aftermath.factor
        self._running += 1
        if kind.name in self._met:
            return 0.0, factor
        self._met.add(kind.name)
        if kind.aftermath is not None:
            self._slowing.append((kind.name, kind.aftermath))
        return kind.first_in_child_cpu_s, factor

    def end(self, now: float) -> None:
        """A task is over."""
        self._running -= 1
        self._idle_since = now
