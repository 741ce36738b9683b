"""A comparison as text."""

from __future__ import annotations

from collections.abc import Sequence

from celerysim.compare.comparison import Comparison
from celerysim.compare.prediction import Prediction
from celerysim.report import columns

#: Cores used by others while a recording was made that are worth a word (an idle broker: 0.02).
NOTICED_CORES = 0.1
HEADINGS = {
    "replayed": "replayed: the observed arrivals and runtimes (what is wrong is the model)",
    "predicted": "predicted: the scenario's own load (its error is added)",
}


def compare_report(comparison: Comparison) -> str:
    """For each stage a row a figure: observed, predicted, interval, error, verdict."""
    recording = comparison.recording
    lines = [f"{recording.folder}: {recording.scenario.worker.pool}, {recording.status}"]
    if not recording.complete:
        lines.append(f"  {recording.reason}: compared with whole runs, so expect differences")
    if recording.other_cores > NOTICED_CORES:
        lines.append(
            f"  something else used {recording.other_cores:.2f} cores meanwhile: it is another "
            "load than the scenario's, so expect differences"
        )
    for stage, predictions in comparison.stages.items():
        count = max((len(p.values) for p in predictions), default=0)
        lines += ["", f"{HEADINGS[stage]}; {count} runs", *columns(_rows(predictions))]
    lines += ["", "interval: the middle 95 % of the simulated values. error: of their median."]
    return "\n".join(lines)


def _rows(predictions: Sequence[Prediction]) -> list[list[str]]:
    rows = [["", "observed", "predicted", "interval", "error", "bias", ""]]
    for p in predictions:
        show = p.figure.show
        low, high = p.interval or (None, None)
        name = f"{p.figure.label}, {p.figure.unit}" if p.figure.unit else p.figure.label
        bias = "-" if p.bias is None else f"{p.bias:+.4g}"
        interval = show(low) if low == high else f"{show(low)}..{show(high)}"
        rows.append(
            [name, show(p.observed), show(p.median), interval, percent(p.error), bias, verdict(p)]
        )
    return rows


def percent(error: float | None) -> str:
    """A relative error in percent; of nothing observed, ``-``."""
    return "-" if error is None else f"{100 * error:+.1f} %"


def verdict(p: Prediction) -> str:
    """Whether it is right: by its limit where one is set, else by the interval."""
    if p.within is not None:
        limit = f"{100 * (p.figure.limit or 0):g} %"
        return f"within {limit}" if p.within else f"BEYOND {limit}"
    if p.inside is None:
        return ""
    if p.figure.is_count:
        return "inside" if p.inside else "OUTSIDE"
    return "inside" if p.inside else "outside"
