"""Comparing a recording with its predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from celerysim.compare.figures import FIGURES, figures
from celerysim.compare.prediction import Prediction
from celerysim.compare.stages import STAGES, Stage, runs
from celerysim.engine.simulation import simulate
from celerysim.history import History
from celerysim.record import RecordError, Recording, load_recording
from celerysim.result import Result

Progress = Callable[[int, int], None]

#: Runs of each stage.
REPLICATIONS = 200


@dataclass(frozen=True)
class Comparison:
    """One recording: for each stage, every figure predicted beside the observed one."""

    recording: Recording
    observed: History  #: the worker's log
    stages: dict[Stage, tuple[Prediction, ...]]
    examples: dict[Stage, Result]  #: one run of each stage in full

    def prediction(self, stage: Stage, path: str) -> Prediction:
        """The prediction of one figure."""
        return next(p for p in self.stages[stage] if p.figure.path == path)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "recording": str(self.recording.folder),
            "complete": self.recording.complete,
            "stages": {
                stage: {p.figure.path: p.as_json() for p in predictions}
                for stage, predictions in self.stages.items()
            },
        }


def compare(
    recording: Recording | str | Path,
    *,
    replications: int = REPLICATIONS,
    overrides: Sequence[str] = (),
    stages: Sequence[Stage] = STAGES,
    progress: Progress = lambda done, total: None,
) -> Comparison:
    """Predict a recorded run ``replications`` times in each stage, beside what was observed.

    Args:
        recording: a recording, or its folder.
        replications: runs of each stage.
        overrides: ``dotted.path=value`` for the simulated worker, as ``--set``: costs
            or a speed measured elsewhere, for example.
        stages: the stages to run.
        progress: called with (runs done, runs in all).

    Raises:
        RecordError: there is no recording, or it broke off before the worker was ready.
        ScenarioError: something is wrong with ``overrides``.
    """
    if not isinstance(recording, Recording):
        recording = load_recording(recording)
    if np.isnan(recording.epoch):
        raise RecordError(
            f"{recording.folder}: the worker never was ready ({recording.reason}), so there is "
            "nothing to compare. Remedy: record it again."
        )
    trace = recording.trace()
    found = figures(trace)
    total = replications * len(stages)
    predictions: dict[Stage, tuple[Prediction, ...]] = {}
    examples: dict[Stage, Result] = {}
    for place, stage in enumerate(stages):
        summaries: list[dict[str, Any]] = []
        for scenario, number in runs(stage, recording, trace, replications, overrides):
            result = simulate(scenario, replication=number, levels=not summaries)
            examples.setdefault(stage, result)
            summaries.append(figures(result))
            progress(place * replications + len(summaries), total)
        predictions[stage] = tuple(
            Prediction(
                figure,
                figure.of(found),
                np.array([v for s in summaries if (v := figure.of(s)) is not None]),
            )
            for figure in FIGURES
        )
    return Comparison(recording, trace, predictions, examples)
