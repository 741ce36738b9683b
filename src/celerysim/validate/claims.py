"""Claims: what was found in reality, what the model says, and whether that holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from celerysim.compare import Comparison, Prediction, Stage
from celerysim.studies.cells import forks_of_runs, medians, published
from celerysim.studies.limits import TASKS as TASKS_LIMIT
from celerysim.studies.limits import misses, sojourn_limits
from celerysim.studies.tables import FIGURES, CellResult, at

Basis = Literal["predicted", "calibrated on"]

#: The figures of a recording that are claimed to be right.
CLAIMED = ("forks", "lost", "throughput_per_s", "sojourn_s.mean", "sojourn_s.p95")


@dataclass(frozen=True)
class Claim:
    """One figure of one real run, or of a published table."""

    subject: str  #: whose figure: ``puzzle-2-cores/run-1``, ``schedule gevent(4)``
    figure: str
    found: str
    predicted: str
    error: float | None  #: relative
    holds: bool | None  #: None: no limit was set for it
    basis: Basis
    rule: str  #: when it holds
    replayed: Prediction | None = None  #: the same with observed arrivals and runtimes

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        data = {key: value for key, value in self.__dict__.items() if key != "replayed"}
        if self.replayed is not None:
            data["replayed"] = self.replayed.median
            data["replayed_holds"] = holds(self.replayed)
        return data


def recording_claims(subject: str, comparison: Comparison) -> Iterator[Claim]:
    """The claims about one recording; forks only where the pool forks."""
    for path in CLAIMED:
        prediction = comparison.prediction("predicted", path)
        if path == "forks" and not prediction.observed:
            continue
        yield Claim(
            subject=subject,
            figure=prediction.figure.label,
            found=prediction.figure.show(prediction.observed),
            predicted=shown(prediction),
            error=prediction.error,
            holds=holds(prediction),
            basis="predicted",
            rule=rule(prediction),
            replayed=comparison.prediction("replayed", path),
        )


def holds(prediction: Prediction) -> bool | None:
    """Within the limit where one is set, or inside the prediction interval.

    A random load differs from run to run, often by more than the limit.
    """
    return prediction.inside if not prediction.within else True


def rule(prediction: Prediction) -> str:
    """When it holds, as text."""
    limit = prediction.figure.limit
    return "inside" if limit is None else f"inside, or ± {100 * limit:g} %"


def shown(prediction: Prediction) -> str:
    """The median, and the interval where there is one."""
    show = prediction.figure.show
    low, high = prediction.interval or (None, None)
    middle = show(prediction.median)
    return middle if low == high else f"{middle} [{show(low)}, {show(high)}]"


def table_claims(result: CellResult) -> Iterator[Claim]:
    """The claims about one cell of the published tables: against the medians over its runs."""
    cell = result.cell
    real, outside = medians(cell), misses(result)
    mean_limit, quantile_limit = sojourn_limits(cell)
    for figure in FIGURES:
        key = figure[-1]
        if figure == ("throughput_per_s",) or (figure == ("forks",) and cell.is_green):
            continue
        simulated = at(result.simulated, figure)
        if figure == ("forks",):
            runs = forks_of_runs(cell)
            found = f"{published(cell)['forks']:g}" if not runs else _range(runs)
            predicted, limit = f"{simulated['mean']:.1f} {_range(simulated['values'])}", "see docs"
        else:
            limit = f"± {100 * _limit(key, mean_limit, quantile_limit):g} %"
            found = f"{at(real, figure):.4g}"
            predicted = f"{sorted(simulated['values'])[len(simulated['values']) // 2]:.4g}"
        yield Claim(
            subject=cell.name,
            figure=key if key in ("forks", "tasks") else f"sojourn, {key}",
            found=found,
            predicted=predicted,
            error=result.error(figure),
            holds=key not in outside,
            basis="calibrated on" if cell.is_calibrated else "predicted",
            rule=limit,
        )


def _limit(key: str, mean: float, quantile: float) -> float:
    return {"tasks": TASKS_LIMIT, "mean": mean}.get(key, quantile)


def _range(values: Any) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def share(comparisons: list[Comparison], stage: Stage, path: str) -> tuple[int, int, float | None]:
    """Runs in which a figure holds, runs in all, and the mean error (bias)."""
    predictions = [c.prediction(stage, path) for c in comparisons]
    predictions = [p for p in predictions if p.observed or path == "lost"]
    errors = [p.error for p in predictions if p.error is not None]
    mean = sum(errors) / len(errors) if errors else None
    return sum(bool(holds(p)) for p in predictions), len(predictions), mean
