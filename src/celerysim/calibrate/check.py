"""A scenario's figures beside those of logs: bias and error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from celerysim.engine.simulation import simulate
from celerysim.history import History
from celerysim.metrics import summary
from celerysim.scenario import Scenario

#: The figures compared: (key of the summary, statistic).
FIGURES: tuple[tuple[str, str | None], ...] = (
    ("throughput_per_s", None),
    ("sojourn_s", "mean"),
    ("sojourn_s", "p95"),
    ("runtime_s", "mean"),
    ("worker_wait_s", "mean"),
    ("forks", None),
    ("scale_ups", None),
    ("lost", None),
)


@dataclass(frozen=True)
class Comparison:
    """One figure, of logs and of the model."""

    figure: str
    logs: tuple[float, ...]  #: one number a log
    model: tuple[float, ...]  #: one number a replication

    @property
    def log(self) -> float:
        """Mean over the logs."""
        return float(np.mean(self.logs))

    @property
    def predicted(self) -> float:
        """Mean over the replications."""
        return float(np.mean(self.model))

    @property
    def bias(self) -> float | None:
        """Model minus log, over the log (None: the log has zero)."""
        return (self.predicted - self.log) / self.log if self.log else None

    @property
    def error(self) -> float | None:
        """Root mean square over the logs of (model - log), over the mean log."""
        apart = np.sqrt(np.mean((self.predicted - np.array(self.logs)) ** 2))
        return float(apart) / self.log if self.log else None

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "logs": list(self.logs),
            "log": self.log,
            "model": self.predicted,
            "replications": list(self.model),
            "bias": self.bias,
            "error": self.error,
        }


def sent_is_known(history: History) -> bool:
    """Whether the history tells when its tasks were sent."""
    received = ~np.isnan(history.tasks["received"])
    return bool(received.any()) and not np.isnan(history.tasks["sent"][received]).any()


def figures(history: History, *, sent: bool) -> dict[str, Any]:
    """:func:`~celerysim.metrics.summary`, made comparable between log and model.

    Without ``sent`` (a plain log does not tell when tasks were sent) the sojourn
    counts from "received", in logs and in the model alike. What a log cannot
    tell is None in both: the life of children that were killed unseen.
    """
    tasks = history.tasks
    if not sent:
        tasks = tasks.copy()
        tasks["sent"] = tasks["received"]
        history = replace(history, tasks=tasks)
    found = summary(history)
    if history.settings.get("autoscale"):
        found["child_utilisation"] = found["child_idle_share"] = None
    found["core_utilisation"] = None
    if not sent:
        found["broker_wait_s"] = dict.fromkeys(found["broker_wait_s"])
    return found


def compare(
    scenario: Scenario, histories: Sequence[History], replications: int = 3
) -> list[Comparison]:
    """The scenario's figures, over ``replications``, beside those of ``histories``."""
    sent = all(map(sent_is_known, histories))
    logged = [figures(history, sent=sent) for history in histories]
    modelled = [
        figures(simulate(scenario, replication=number, levels=False), sent=sent)
        for number in range(replications)
    ]
    rows = []
    for key, statistic in FIGURES:
        logs, model = ([_pick(run, key, statistic) for run in runs] for runs in (logged, modelled))
        if not any(value is None for value in (*logs, *model)):
            name = key if statistic is None else f"{key}.{statistic}"
            rows.append(Comparison(name, tuple(map(float, logs)), tuple(map(float, model))))  # type: ignore[arg-type]
    return rows


def _pick(run: dict[str, Any], key: str, statistic: str | None) -> float | None:
    value: float | None = run[key] if statistic is None else run[key][statistic]
    return value
