"""What a log (or a simulated run) shows, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from celerysim.history import History, Level
from celerysim.inspection import sections
from celerysim.inspection.finding import Finding
from celerysim.inspection.findings import findings
from celerysim.inspection.view import View
from celerysim.metrics import summary
from celerysim.trace import Trace


@dataclass(frozen=True)
class Inspection:
    """What a history shows. Times are seconds after the worker's "ready"."""

    source: str  #: the log's name; ``""``: a simulated run
    epoch: str | None  #: time 0 on the log's own clock
    settings: dict[str, Any]  #: what the banner says, under the scenario's names
    summary: dict[str, Any]  #: :func:`celerysim.metrics.summary`, with the children's lives
    forks_per_hour: float | None  #: forks beyond the pool at the start, an hour
    names: list[dict[str, Any]]
    throughput: dict[str, Any]
    children: dict[str, Any]
    scale_events: dict[str, Any]
    troubles: dict[str, Any]  #: lost and failed tasks
    repeats: dict[str, Any]  #: retries and redeliveries
    lines: dict[str, Any] | None  #: what became of every line; None: no log
    warnings: tuple[str, ...]  #: what the reader of the log noticed
    findings: tuple[Finding, ...]
    history: History  #: with the children's births and deaths filled in, as pictures need it

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values; the statistics under the keys of ``metrics.summary``."""
        return {
            "source": self.source,
            "epoch": self.epoch,
            "settings": self.settings,
            **self.summary,
            "forks_per_hour": self.forks_per_hour,
            "names": self.names,
            "throughput": self.throughput,
            "children": self.children,
            "scale_events": self.scale_events,
            "troubles": self.troubles,
            "repeats": self.repeats,
            "lines": self.lines,
            "warnings": list(self.warnings),
            "findings": [finding.as_json() for finding in self.findings],
        }


def inspect(history: History) -> Inspection:
    """Inspect a log read by :func:`~celerysim.inspection.read_observed`, or any history.

    A trace of :func:`celerysim.trace.read_log` has no incidents: findings about
    restarts, connections, killed children and memory limits then stay silent.
    """
    view = View(history)
    is_log = isinstance(history, Trace)
    return Inspection(
        source=history.source if isinstance(history, Trace) else "",
        epoch=history.epoch.isoformat(" ", "milliseconds")
        if isinstance(history, Trace) and history.epoch
        else None,
        settings=history.settings,
        summary=summary(view.history),
        forks_per_hour=_forks_per_hour(view),
        names=sections.names(view),
        throughput=sections.throughput(view),
        children=sections.children(view),
        scale_events=sections.scale_events(view),
        troubles=sections.troubles(view),
        repeats=sections.repeats(view),
        lines=sections.lines(view) if is_log else None,
        warnings=history.warnings if isinstance(history, Trace) else (),
        findings=findings(view),
        history=view.history,
    )


def _forks_per_hour(view: View) -> float | None:
    """Forks after the start; None if there are no children or no time."""
    if not len(view.children) or not view.duration_s > 0:
        return None
    size = view.history.settings.get("autoscale", (0, view.history.settings.get("concurrency")))[1]
    initial = int(size or 0) if len(view.history.level(Level.RESERVED)[0]) else 0
    return max(len(view.children) - initial, 0) / view.duration_s * 3600
