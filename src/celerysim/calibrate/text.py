"""A calibration as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from celerysim.calibrate.calibration import Calibration
from celerysim.calibrate.check import Comparison
from celerysim.report import columns

_WIDTH = 98


def calibration_report(fit: Calibration) -> str:
    """What was fitted, how well, and what the logs cannot tell."""
    lines = [", ".join(fit.sources), "", "Fitted", *_items(fit.fitted)]
    lines += ["", "Residuals: the fitted scenario beside the log", *_comparisons(fit.residuals)]
    if fit.predicted:
        lines += [
            "",
            f"Prediction: the fitted scenario beside {len(fit.predicted[0].logs)} other logs",
            *_comparisons(fit.predicted),
        ]
    lines += ["", "What the log cannot tell, and what was taken instead", *_items(fit.unknown)]
    return "\n".join(lines)


def _comparisons(rows: Sequence[Comparison]) -> list[str]:
    table = [["", "log", "model", "bias", "error"]]
    for row in rows:
        key, _, statistic = row.figure.partition(".")
        shares = ["-" if share is None else f"{share:+.1%}" for share in (row.bias, row.error)]
        label = _label(key, statistic or None)
        table.append([label, _number(row.log), _number(row.predicted), *shares])
    return columns(table)


def _items(texts: Iterable[str]) -> list[str]:
    return [
        line
        for text in texts
        for line in textwrap.wrap(
            text,
            _WIDTH,
            initial_indent="  - ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def _label(key: str, statistic: str | None) -> str:
    words = key.replace("_per_s", " /s").replace("_s", " s").replace("_", " ")
    return f"{words}, {statistic}" if statistic else words


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3f}"
