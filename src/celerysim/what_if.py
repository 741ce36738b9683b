"""What would have happened with other settings? A log's tasks replayed in the model.

Every task of the log arrives in the model as it did, and brings its own
seconds: CPU and waiting where the log tells them apart (then runtimes answer to
how many tasks share the cores), else its runtime as logged. The model runs once
with the log's own settings and once with the changed ones, so that what the
model gets wrong is seen beside what it predicts.

While the prefetch window is full a log does not tell when messages were sent.
They are then taken as sent with the message before, and the changed settings
are also tried with messages sent as late as the log allows: the truth is
between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim.calibrate.calibration import Calibration, calibrate
from celerysim.calibrate.check import figures, sent_is_known
from celerysim.calibrate.phases import Runs
from celerysim.calibrate.profiles import pieces
from celerysim.engine.simulation import simulate
from celerysim.history import Floats, History, Outcome
from celerysim.result import Result
from celerysim.scenario import Scenario, make_scenario, override

#: With more than this share of messages held back, both bounds of their sending are tried.
BOTH_BOUNDS = 0.01


@dataclass(frozen=True)
class WhatIf:
    """The log's figures beside the model's, before and after the change.

    Each is a :func:`~celerysim.metrics.summary`; where the log does not tell when
    tasks were sent, the sojourn counts from "received" in all of them.
    """

    changes: tuple[str, ...]
    log: dict[str, Any]
    before: dict[str, Any]  #: the model, with the log's own settings
    after: dict[str, Any]  #: the model, with the changes
    after_latest: dict[str, Any] | None  #: as ``after``, held-back messages sent as late as may be
    notes: tuple[str, ...]  #: what the answer rests on, one sentence each
    result: Result  #: the run behind ``after``

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "changes": list(self.changes),
            "log": self.log,
            "before": self.before,
            "after": self.after,
            "after_latest": self.after_latest,
            "notes": list(self.notes),
        }


def what_if(
    history: History,
    changes: Sequence[str],
    *,
    cores: int | None = None,
    keepalive: float | None = None,
    others: Sequence[History] = (),
) -> WhatIf:
    """Replay ``history`` with ``changes`` (``dotted.path=value``, as ``--set``).

    Args:
        history: a worker log, or a simulated run.
        changes: overrides of the scenario; usually of ``worker``, perhaps of ``machine``.
        cores: cores the worker's processes share; None: found from the log, if it tells.
        keepalive: AUTOSCALE_KEEPALIVE in seconds, if known (30 is taken).
        others: logs of the same tasks at other concurrencies, to tell CPU from waiting.

    Raises:
        LogError: the log shows too little, or several workers.
        ScenarioError: something is wrong with ``changes``.
    """
    fit = calibrate([history, *others], cores=cores, keepalive=keepalive, replications=0)
    arrivals = fit.arrivals
    before = _replayed(fit, history, arrivals.earliest)
    after = override(before, changes)
    sent = sent_is_known(history)
    result = simulate(after)
    latest = None
    if arrivals.held_share > BOTH_BOUNDS:
        late = override(_replayed(fit, history, arrivals.latest), changes)
        latest = figures(simulate(late, levels=False), sent=sent)
    return WhatIf(
        changes=tuple(changes),
        log=figures(history, sent=sent),
        before=figures(simulate(before, levels=False), sent=sent),
        after=figures(result, sent=sent),
        after_latest=latest,
        notes=tuple(_notes(fit, history)),
        result=result,
    )


def _replayed(fit: Calibration, history: History, times: Floats) -> Scenario:
    """The log's own tasks at ``times``, each with its own seconds, under the log's settings."""
    rows = fit.arrivals.rows
    names = [profile.name for profile in fit.profiles]
    runs, seen = _own_runs(history, names, rows)
    kinds, seconds = pieces(fit.split, runs, len(names), fit.split.phases(runs))
    own = dict(zip(np.flatnonzero(seen).tolist(), seconds, strict=True))
    middle = {name: _median(runs, seconds, place) for place, name in enumerate(names)}
    task_names = [history.names[place] for place in history.tasks["profile"][rows].tolist()]
    trace = [
        [name, own.get(number) or middle[name] or [0.0] * len(kinds[names.index(name)])]
        for number, name in enumerate(task_names)
    ]
    start = round(min(float(times[0]), 0.0), 6)
    return make_scenario(
        fit.data
        | {
            "producer": {
                "kind": "times",
                "start_s": start,
                "times_s": np.maximum(np.round(times - start, 6), 0.0).tolist(),
            },
            "tasks": {
                "profiles": {
                    name: {"steps": [{kind: 1} for kind in kinds[place]]}
                    for place, name in enumerate(names)
                },
                "trace": trace,
            },
            "run": {},
        },
        source="the log's replay",
    )


def _own_runs(
    history: History, names: list[str], rows: NDArray[np.intp]
) -> tuple[Runs, NDArray[np.bool_]]:
    """The runs of the tasks in ``rows`` that succeeded, and which of the rows these are."""
    tasks = history.tasks[rows]
    seen = (tasks["outcome"] == Outcome.SUCCEEDED) & ~np.isnan(tasks["started"])
    places = np.array([names.index(name) for name in history.names], dtype=np.intp)
    tasks = tasks[seen]
    return Runs(tasks["started"], tasks["finished"], places[tasks["profile"]]), seen


def _median(runs: Runs, seconds: list[list[float]], place: int) -> list[float]:
    """What a task takes whose own seconds are not in the log: the middle one's of its name."""
    mine = np.flatnonzero(runs.names == place)
    if not len(mine):
        return []
    middle = mine[np.argsort(runs.runtimes[mine])[len(mine) // 2]]
    return seconds[middle]


def _notes(fit: Calibration, history: History) -> list[str]:
    split, arrivals = fit.split, fit.arrivals
    notes = []
    if split.identified:
        notes.append(
            f"runtimes answer to the change: the log tells CPU from waiting ({split.cores} cores)"
        )
    else:
        notes.append(
            "runtimes are taken as logged and do not answer to the change: the log does not tell "
            "CPU from waiting"
        )
    if arrivals.held_share > BOTH_BOUNDS:
        notes.append(
            f"{arrivals.held_share:.0%} of the messages were held back by the full prefetch "
            "window; when they were sent is not known: taken as early as possible, and in the last "
            "column as late as possible"
        )
    _, seen = _own_runs(history, list(history.names), arrivals.rows)
    unseen = int(np.count_nonzero(~seen))
    if unseen:
        notes.append(f"{unseen} tasks whose runtime is not in the log take the middle one's")
    return [*notes, *fit.unknown]
