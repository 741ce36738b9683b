"""What waiting acknowledgements cost, as text."""

from __future__ import annotations

from celerysim.report import columns
from celerysim.studies.ack_lag import AckLag, Variant
from celerysim.studies.cells import SIZES, Cell, published
from celerysim.studies.published_ack_lag import (
    GREEN,
    LOAD,
    PREFORK_CORES,
    PublishedAckLag,
    published_advantage,
)


def ack_lag_report(title: str, lag: AckLag) -> str:
    """The scenario as it is and without the lag; what wakes the loop; the remedies."""
    heads = ["", "tasks/s", "of runs", "of possible", "sojourn mean", "p95"]
    rows = [heads, *(_row(variant, lag) for variant in (lag.lagging, lag.idealised))]
    for head, variants in (("What wakes the worker's loop", lag.wakes), ("Remedies", lag.remedies)):
        if variants:
            rows += [[""] * len(heads), [head, *[""] * (len(heads) - 1)]]
            rows += [_row(variant, lag) for variant in variants]
    gain = "all of it" if lag.gain is None else f"{lag.gain:+.0%}"
    return "\n".join([
        f"{title}: what waiting acknowledgements cost a {lag.pool} worker",
        "",
        *columns(rows),
        "",
        f"gain without the lag: {gain}",
    ])  # fmt: skip


def published_ack_lag_report(lag: PublishedAckLag) -> str:
    """The green cells with and without the lag, and prefork's advantage a core."""
    throughputs = [["tasks/s", "with the lag", "without", "gain", "published"]]
    advantages = [["", "published", "simulated", "without the lag", "published, less the gain"]]
    for pool in GREEN:
        for size in SIZES:
            cell = Cell(LOAD, pool, size)
            throughputs.append([
                cell.label,
                f"{lag.lagging[cell.label]:.3f}",
                f"{lag.idealised[cell.label]:.3f}",
                f"{lag.gain(cell.label):+.1%}",
                f"{published(cell)['throughput_per_s']:.2f}",
            ])  # fmt: skip
            advantages.append([
                cell.label,
                f"{published_advantage(size, pool):+.1%}",
                f"{lag.advantage(size, pool):+.1%}",
                f"{lag.advantage(size, pool, idealised=True):+.1%}",
                f"{lag.published_without(size, pool):+.1%}",
            ])  # fmt: skip
    return "\n".join([
        "What waiting acknowledgements cost in the published cumulative cells",
        "",
        *columns(throughputs),
        "",
        f"Prefork's throughput a core ({PREFORK_CORES} cores) above a green pool's (1 core), "
        "same size",
        *columns(advantages),
        "",
        "Your own scenario, and what other workers on the broker change: celerysim ack-lag my.toml",
    ])  # fmt: skip


def _row(variant: Variant, lag: AckLag) -> list[str]:
    possible = lag.idealised.throughput_per_s
    low, high = variant.range_per_s
    sojourn = variant.simulated["sojourn_s"]
    return [
        variant.name,
        f"{variant.throughput_per_s:.2f}",
        f"{low:.2f} to {high:.2f}",
        f"{variant.throughput_per_s / possible:.0%}" if possible else "-",
        *(
            "-" if sojourn[key]["mean"] is None else f"{sojourn[key]['mean']:.2f}"
            for key in ("mean", "p95")
        ),
    ]
