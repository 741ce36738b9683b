"""What waiting acknowledgements cost a scenario, and what lets them out.

A worker of one process may write an acknowledgement only when its loop turns for
another reason: a green one between two ``drain_events``, which return on a frame or
after two seconds; ``threads`` when a frame or a timer wakes the poller. With a full
prefetch window no message comes before. ``worker.idealised`` acknowledges at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from celerysim.errors import CelerysimError
from celerysim.scenario import Scenario, override
from celerysim.studies.runs import Progress, replicate_all

Overrides = tuple[str, ...]

#: The other workers' events come at random places: some runs are lucky.
REPLICATIONS = 20
#: Other gossiping workers on the broker: each sends an event every two seconds.
OTHERS = (0, 1, 2, 5, 10)
#: Celery's default prefetch multiplier, the remedy for a smaller one.
LARGER_PREFETCH = 4


@dataclass(frozen=True)
class Variant:
    """The scenario with something changed."""

    name: str
    overrides: Overrides
    simulated: dict[str, Any]  #: as ``run --json`` with several replications

    @property
    def throughput_per_s(self) -> float:
        """Tasks a second; 0 when none has finished."""
        return float(self.simulated["throughput_per_s"]["mean"] or 0.0)

    @property
    def range_per_s(self) -> tuple[float, float]:
        """Tasks a second of the slowest and the quickest run."""
        values = [float(value or 0.0) for value in self.simulated["throughput_per_s"]["values"]]
        return min(values), max(values)


@dataclass(frozen=True)
class AckLag:
    """A scenario as it is, without the lag, and with what lets acknowledgements out or does not."""

    pool: str
    lagging: Variant
    idealised: Variant
    wakes: tuple[Variant, ...]  #: more and less that wakes the loop
    remedies: tuple[Variant, ...]  #: settings that make the lag matter less

    @property
    def gain(self) -> float | None:
        """How much more gets done without the lag, less 1; None when nothing is done with it."""
        before = self.lagging.throughput_per_s
        return self.idealised.throughput_per_s / before - 1.0 if before else None

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All of them."""
        return (self.lagging, self.idealised, *self.wakes, *self.remedies)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "pool": self.pool,
            "throughput_per_s": {
                "lagging": self.lagging.throughput_per_s,
                "idealised": self.idealised.throughput_per_s,
            },
            "gain": self.gain,
            "variants": [
                {"name": v.name, "overrides": list(v.overrides), "simulated": v.simulated}
                for v in self.variants
            ],
        }


def ack_lag(
    scenario: Scenario,
    replications: int = REPLICATIONS,
    *,
    others: Sequence[int] = OTHERS,
    processes: int = 1,
    progress: Progress = lambda done, total: None,
) -> AckLag:
    """Simulate ``scenario`` with and without the lag, and with other workers on the broker.

    ``others``: how many of them gossip, each number a variant. The other arguments are
    those of :func:`~celerysim.studies.tables.tables`.

    Raises:
        CelerysimError: the pool is prefork, whose children wake its loop.
    """
    if scenario.worker.pool == "prefork":
        raise CelerysimError(
            "a prefork worker's acknowledgements do not wait: each word from a child turns its "
            "loop. Remedy: ask about another pool: --set worker.pool=gevent (or eventlet, threads)."
        )
    real = override(scenario, ["worker.idealised=false"])
    groups = (
        {"as it is": ()},
        {"without the lag": ("worker.idealised=true",)},
        _wakes(others),
        _remedies(scenario),
    )
    asked = [(name, overrides) for group in groups for name, overrides in group.items()]
    found = replicate_all(
        [override(real, overrides) for _, overrides in asked],
        replications,
        processes=processes,
        progress=progress,
    )
    variants = iter(
        Variant(name, overrides, simulated)
        for (name, overrides), simulated in zip(asked, found, strict=True)
    )
    (lagging,), (idealised,), wakes, remedies = (tuple(islice(variants, len(g))) for g in groups)
    return AckLag(str(scenario.worker.pool), lagging, idealised, wakes, remedies)


def others_of(text: str) -> tuple[int, ...]:
    """``0,1,10`` as numbers.

    Raises:
        CelerysimError: the text says something else.
    """
    try:
        found = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        found = (-1,)
    if not found or min(found) < 0:
        raise CelerysimError(
            f"'{text}' says not how many others. Remedy: write whole numbers, such as 0,1,10."
        )
    return found


def _wakes(others: Sequence[int]) -> dict[str, Overrides]:
    """Nothing but messages wakes the loop; or its own events and those of others do."""
    off = ("worker.gossip=false", "worker.heartbeat=false")
    found: dict[str, Overrides] = {"no gossip, no heartbeat": off}
    on = ("worker.gossip=true", "worker.heartbeat=true")
    for n in others:
        name = f"gossip, {n} other worker{'' if n == 1 else 's'}"
        found[name] = (*on, f"broker.gossiping_workers={n}")
    return found


def _remedies(scenario: Scenario) -> dict[str, Overrides]:
    """Acknowledging early, a larger window, and both; without those that the scenario has."""
    early: Overrides = ("worker.task_acks_late=false",) if scenario.worker.task_acks_late else ()
    small = 0 < scenario.worker.prefetch_multiplier < LARGER_PREFETCH
    larger: Overrides = (f"worker.prefetch_multiplier={LARGER_PREFETCH}",) if small else ()
    found = {
        "early acknowledgement": early,
        f"prefetch multiplier {LARGER_PREFETCH}": larger,
        "both": early + larger if early and larger else (),
    }
    return {name: overrides for name, overrides in found.items() if overrides}
