"""What the commands ``sweep`` and ``optimise`` print."""

from __future__ import annotations

import math

from celerysim.report import columns
from celerysim.sweep.axes import Value
from celerysim.sweep.files import has_parquet
from celerysim.sweep.optimum import CONFIDENCE, Estimate, Optimum
from celerysim.sweep.statistics import label
from celerysim.sweep.study import Study

#: Points shown; of more, so many spread over all.
MOST_ROWS = 24


def sweep_report(study: Study) -> str:
    """The question, means with their intervals at the points, and the files."""
    table, summary = study.table, study.table.summary
    lines = [study.name, *([study.experiment.question] if study.experiment.question else [])]
    counts = sorted(set(summary["replications"].tolist()))
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    lines += [
        "",
        f"{len(summary)} points x {span} replications, {' and '.join(table.provenance['engines'])} "
        "engine: mean ± half its 95 % confidence interval",
    ]
    shown = list(range(len(summary)))
    if len(summary) > MOST_ROWS:
        step = (len(summary) - 1) / (MOST_ROWS - 1)
        shown = sorted({round(i * step) for i in range(MOST_ROWS)})
        lines.append(f"({len(shown)} of the points; all are in summary.csv)")
    rows = [[*map(label, table.axes), *map(label, table.statistics)]]
    for row in summary[shown]:
        place = [row[name].item() for name in table.axes]
        rows.append(
            [
                *map(_plain, place),
                *(_interval(row[name], row[name + ".high"]) for name in table.statistics),
            ]
        )
    lines += ["", *columns(rows), ""]
    lines += [f"  {study.folder / name}" for name in study.files]
    if not has_parquet():
        lines.append("  (no rows.parquet: pip install 'celerysim[parquet]')")
    return "\n".join(lines)


def optimum_report(source: str, found: Optimum) -> str:
    """The best settings, whether the limits hold, what is as good, and the trade-off."""
    lines = [source, ""]
    lines += [f"  {label(name):<28}{_plain(value)}" for name, value in found.settings.items()]
    lines += [
        "",
        f"With them, over {found.fresh} fresh replications (mean ± half its 95 % interval)",
        f"  {found.minimise:<28}{_estimate(found.objective)}   (least found)",
    ]
    words = {
        True: f"kept, {CONFIDENCE:.0%} sure",
        False: f"BROKEN, {CONFIDENCE:.0%} sure",
        None: "too close to tell: more --fresh replications, or a wider limit",
    }
    for verdict in found.verdicts:
        name = f"{verdict.limit}"
        lines.append(f"  {name:<28}{_estimate(verdict.estimate)}   ({words[verdict.kept]})")
    lines += ["", f"As good, as far as the {len(found.tried.summary)} settings tried tell"]
    for name, values in found.as_good.items():
        lines.append(f"  {label(name):<28}{_span(values)}")
    if len(found.trade_off) > 1:
        step = -(-len(found.trade_off) // MOST_ROWS)
        rows = [list(map(label, found.trade_off[0]))]
        rows += [list(map(_plain, row.values())) for row in found.trade_off[::step]]
        lines += ["", "Trade-off: settings that none beats in both", *columns(rows)]
    return "\n".join(lines)


def _span(values: list[Value]) -> str:
    """Few values one by one, many numbers by their ends."""
    if len(values) <= 6:
        return ", ".join(map(_plain, values))
    return f"{_plain(values[0])} to {_plain(values[-1])} ({len(values)} values tried)"


def _plain(value: Value) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _estimate(estimate: Estimate) -> str:
    return _interval(estimate.mean, estimate.high)


def _interval(mean: float, high: float) -> str:
    """A mean, with half its interval where that has any width."""
    if math.isnan(mean):
        return "-"
    half = high - mean
    # of equal values the half-width is zero, up to the last bits
    return f"{mean:.4g} ± {half:.2g}" if half > 1e-9 * abs(mean) else f"{mean:.4g}"
