"""What is compared: the figures of a run, real or simulated, computed alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from celerysim.history import History, Outcome
from celerysim.metrics import summary


class Figure(NamedTuple):
    """One figure of a run."""

    path: str  #: its key in the summary, ``sojourn_s.p95``
    label: str
    unit: str  #: empty for counts
    limit: float | None = None  #: greatest relative error that counts as right; None: none is set

    @property
    def is_count(self) -> bool:
        """Whether it is a whole number of something."""
        return not self.unit

    def of(self, summary: dict[str, Any]) -> float | None:
        """Its value in a summary."""
        value: Any = summary
        for key in self.path.split("."):
            value = value[key]
        return None if value is None else float(value)

    def show(self, value: float | None) -> str:
        """A value as text, without the unit; ``-`` for None."""
        if value is None:
            return "-"
        return f"{value:.4g}" if self.is_count else f"{value:.3f}"


#: In the order they are shown. The limits were set before anything was compared.
FIGURES = (
    Figure("forks", "processes forked", ""),
    Figure("scale_ups", "scale-ups", ""),
    Figure("scale_downs", "scale-downs", ""),
    Figure("tasks", "tasks finished", ""),
    Figure("lost", "tasks lost", ""),
    Figure("throughput_per_s", "throughput", "1/s", 0.03),
    Figure("sojourn_s.mean", "sojourn, mean", "s", 0.06),
    Figure("sojourn_s.median", "sojourn, median", "s"),
    Figure("sojourn_s.p90", "sojourn, p90", "s"),
    Figure("sojourn_s.p95", "sojourn, p95", "s", 0.10),
    Figure("runtime_s.mean", "runtime, mean", "s"),
    Figure("runtime_s.median", "runtime, median", "s"),
    Figure("runtime_s.p95", "runtime, p95", "s"),
)
#: The names of the limits above, by path; forks have to be inside the interval.
LIMITS = {figure.path: figure.limit for figure in FIGURES if figure.limit is not None}


def figures(history: History) -> dict[str, Any]:
    """The summary of a run, with a throughput that is the same for logs and simulations.

    A log goes on until the worker has stopped, a simulation ends with its last
    task: so ``throughput_per_s`` is of the tasks finished from "ready" to the end
    of the last of them.
    """
    found = summary(history)
    tasks = history.tasks
    done = tasks["finished"][np.isin(tasks["outcome"], (Outcome.SUCCEEDED, Outcome.FAILED))]
    last = float(done.max(initial=0.0))
    found["throughput_per_s"] = len(done) / last if last > 0 else None
    return found
