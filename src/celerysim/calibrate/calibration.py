"""From worker logs to a scenario: fit each part, and say what is known and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from celerysim._version import __version__
from celerysim.calibrate.arrivals import Arrivals, Process, fit_process, read_arrivals
from celerysim.calibrate.check import Comparison, compare, sent_is_known
from celerysim.calibrate.costs import FittedCosts, fit_costs
from celerysim.calibrate.order import NameOrder, find_order
from celerysim.calibrate.profiles import NameFit, fit_profiles, read_runs
from celerysim.calibrate.split import MOST_TASKS, Split, as_logged, fit_split
from celerysim.calibrate.toml import to_toml
from celerysim.calibrate.words import (
    cost_notes,
    log_notes,
    order_note,
    profile_note,
    split_notes,
)
from celerysim.calibrate.worker import Settings, read_settings
from celerysim.errors import LogError
from celerysim.history import History, Outcome
from celerysim.scenario import Scenario, make_scenario


@dataclass(frozen=True)
class Calibration:
    """A scenario fitted to logs, how well it fits, and what the logs cannot tell."""

    scenario: Scenario
    data: dict[str, Any]  #: the scenario as in its file: only what was fitted
    sources: tuple[str, ...]
    fitted: tuple[str, ...]  #: one sentence each
    unknown: tuple[str, ...]  #: what the logs cannot tell, and which default was used instead
    profiles: tuple[NameFit, ...]
    order: NameOrder
    split: Split
    arrivals: Arrivals  #: of the first log
    process: Process
    settings: Settings
    costs: FittedCosts
    residuals: tuple[Comparison, ...]  #: the scenario simulated, beside the first log
    predicted: tuple[Comparison, ...] = ()  #: beside other logs, which it was not fitted to

    def toml(self) -> str:
        """The scenario file, with a head comment that says where it comes from."""
        return to_toml(self.data, self.head())

    def write(self, path: Path) -> None:
        """Write the scenario file."""
        path.write_text(self.toml(), encoding="utf-8", newline="\n")

    def head(self) -> list[str]:
        """The paragraphs of the head comment."""
        residuals = "; ".join(
            f"{row.figure} {row.log:.4g} in the log, {row.predicted:.4g} in the model"
            for row in self.residuals
        )
        return [
            f"Covers: the worker of {', '.join(self.sources)} (celerysim {__version__} calibrate).",
            "Answers: what that worker would do in another run, or with other settings.",
            *(f"Fitted: {text}." for text in self.fitted),
            f"Residuals: {residuals}.",
            *(f"Not in the log: {text}." for text in self.unknown),
        ]

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "sources": list(self.sources),
            "scenario": self.data,
            "fitted": list(self.fitted),
            "unknown": list(self.unknown),
            "order": {
                "pattern": self.data["tasks"].get("pattern"),
                "agreement": self.order.agreement,
                "repetitions": self.order.repetitions,
            },
            "tasks": {
                fit.name: {
                    "count": fit.tasks,
                    "runtime_s": fit.runtime_s,
                    "cpu_s": fit.cpu_s,
                    "io_s": fit.io_s,
                    "distribution": fit.shape.kind,
                    "distance": fit.shape.distance,
                }
                for fit in self.profiles
            },
            "split": {
                "identified": self.split.identified,
                "cores": self.split.cores,
                "order_known": self.split.identified and not self.split.in_turns,
                "gain_per_task": self.split.gain,
            },
            "arrivals": {"kind": self.process.kind, **self.process.residuals},
            "costs": self.costs.table(),
            "residuals": {row.figure: row.as_json() for row in self.residuals},
            "predicted": {row.figure: row.as_json() for row in self.predicted},
        }


def calibrate(
    histories: Sequence[History],
    *,
    sources: Sequence[str] = (),
    cores: int | None = None,
    keepalive: float | None = None,
    replications: int = 3,
    predict: Sequence[History] = (),
) -> Calibration:
    """Fit a scenario to the logs of one worker.

    Settings, arrivals and length are those of the first log; runtimes and costs
    are fitted to all of them together. Logs of one worker under different
    concurrency tell its CPU seconds best.

    Args:
        histories: what :func:`~celerysim.trace.read_log` returned for each log.
        sources: the logs' names, for the report.
        cores: cores the worker's processes share; None: found from the log, if it tells.
        keepalive: AUTOSCALE_KEEPALIVE in seconds, if known (30 is taken).
        replications: runs of the fitted scenario for the residuals; 0: none.
        predict: other logs under the same settings, to see how well the scenario predicts them.

    Raises:
        LogError: a log is of several workers, or shows too few tasks.
    """
    names = tuple(dict.fromkeys(name for history in histories for name in history.names))
    sources = tuple(sources) or tuple(
        getattr(history, "source", "") or f"log {number}"
        for number, history in enumerate(histories, 1)
    )
    for history, source in zip(histories, sources, strict=True):
        _check(history, source)
    first = histories[0]
    runs = read_runs(histories, names)
    settings = read_settings(first, read_runs([first], names), keepalive)
    arrivals = [read_arrivals(history, _window(history, keepalive)) for history in histories]
    alike = [
        log for log, history in zip(arrivals, histories, strict=True) if _alike(history, first)
    ]
    process = fit_process(alike)
    rows = arrivals[0].rows
    places = [names.index(name) for name in first.names]
    order = find_order(np.array(places, dtype=np.intp)[first.tasks["profile"][rows]], len(names))
    if first.settings.get("pool", "prefork") == "prefork":
        some = read_runs(histories, names, limit=MOST_TASKS // len(histories))
        split = fit_split(some, len(names), cores)
    else:
        split = as_logged(len(names), cores)  # its tasks do not share like processes
    profiles = fit_profiles(runs, names, split)
    late = settings.acks_known and bool(settings.worker.get("task_acks_late"))
    costs = fit_costs(list(histories), arrivals, late)
    data = _data(process, names, order, profiles, settings, split, costs, runs.running())
    if process.kind == "saturated" or _unfinished(first):
        data["run"] = {"horizon_s": round(first.end, 3)}
    scenario = make_scenario(data, source="the fitted scenario")
    told, not_told = split_notes(split, names, runs.running())
    fitted = [
        *(f"worker: {text}" for text in settings.found),
        order_note(order, names),
        *(profile_note(fit) for fit in profiles),
        *told,
        f"arrivals: {process.text}",
        *cost_notes(costs)[0],
    ]
    return Calibration(
        scenario=scenario,
        data=data,
        sources=tuple(sources),
        fitted=tuple(fitted),
        unknown=(
            *settings.unknown,
            *process.unknown,
            *not_told,
            *cost_notes(costs)[1],
            *log_notes(histories, sent_known=all(map(sent_is_known, histories))),
        ),
        profiles=tuple(profiles),
        order=order,
        split=split,
        arrivals=arrivals[0],
        process=process,
        settings=settings,
        costs=costs,
        residuals=tuple(compare(scenario, [first], replications) if replications else ()),
        predicted=tuple(compare(scenario, predict, replications) if predict else ()),
    )


def _check(history: History, source: str) -> None:
    workers = getattr(history, "workers", ())
    if len(workers) > 1:
        raise LogError(
            f"{source}: has the lines of {len(workers)} workers ({', '.join(workers[:4])}); a "
            "scenario is one worker. Remedy: name one of them (--worker)."
        )
    if len(read_runs([history], history.names).starts) < 2:
        raise LogError(
            f"{source}: shows fewer than two tasks that succeeded, so there is nothing to fit. "
            "Remedy: give a longer log, at level INFO."
        )


def _window(history: History, keepalive: float | None) -> int | None:
    return read_settings(history, read_runs([history], history.names), keepalive).window


def _unfinished(history: History) -> bool:
    """Whether the log ends before its tasks do."""
    return any(map(history.count, (Outcome.QUEUED, Outcome.RESERVED, Outcome.RUNNING)))


def _alike(history: History, first: History) -> bool:
    """Whether two logs are of the same settings, so that their arrivals may be pooled."""
    keys = ("autoscale", "concurrency", "pool")
    return all(history.settings.get(key) == first.settings.get(key) for key in keys)


def _data(
    process: Process,
    names: Sequence[str],
    order: NameOrder,
    profiles: Sequence[NameFit],
    settings: Settings,
    split: Split,
    costs: FittedCosts,
    running: int,
) -> dict[str, Any]:
    """The scenario as in its file."""
    tasks: dict[str, Any] = {}
    present = [
        (fit, weight)
        for fit, weight in zip(profiles, order.weights, strict=True)
        if fit.tasks and weight > 0
    ]
    if order.pattern is not None and len(present) > 1:
        tasks["pattern"] = [names[place] for place in order.pattern]
    mixed = "pattern" not in tasks and len(present) > 1
    tasks["profiles"] = {
        fit.name: ({"weight": round(weight, 6)} if mixed else {}) | {"steps": fit.steps}
        for fit, weight in present
    }
    data: dict[str, Any] = {
        "producer": process.producer,
        "tasks": tasks,
        "worker": settings.worker,
        "machine": {"cores": split.cores or max(running, settings.max_concurrency, 1)},
    }
    if costs.table():
        data["costs"] = costs.table()
    return data
