"""How often a run loses a task, as text."""

from __future__ import annotations

from statistics import fmean

from celerysim.report import columns
from celerysim.studies.losses import Losses, share


def losses_report(losses: Losses) -> str:
    """Simulated and, where known, real runs, with exact intervals."""
    rows = [["", "lost a task", "runs", "probability", "95 % interval (Clopper-Pearson)"]]
    rows.append(["simulated", *_cells(*losses.simulated)])
    if losses.observed is not None:
        rows.append(["real", *_cells(*losses.observed)])
    lines = [f"{losses.name}: runs that lose a task", "", *columns(rows), ""]
    lines += columns([
        ["tasks lost in a simulated run", _spread(losses.tasks_lost)],
        ["forks in a simulated run", _spread(losses.forks)],
    ])  # fmt: skip
    if losses.observed is not None and _apart(losses.simulated, losses.observed):
        lines += [
            "",
            "The intervals do not overlap: here the model misses (docs/tables.md says why).",
        ]
    return "\n".join(lines)


def _cells(lost: int, runs: int) -> list[str]:
    found = share(lost, runs)
    low, high = found["ci95"]
    return [str(lost), str(runs), f"{found['probability']:.1%}", f"{low:.1%} to {high:.1%}"]


def _spread(counts: tuple[int, ...]) -> str:
    return f"{fmean(counts):.2f} ({min(counts)} to {max(counts)})"


def _apart(a: tuple[int, int], b: tuple[int, int]) -> bool:
    (a_low, a_high), (b_low, b_high) = share(*a)["ci95"], share(*b)["ci95"]
    return bool(a_high < b_low or b_high < a_low)
