"""The published riddle: how many processes do 600 tasks fork under ``--autoscale=4,0``?

Source of the riddle, its answer "31, up to 34" and its estimate: a published
article on Celery's autoscaler; its app opens a new broker connection for each
publish, so messages of a batch arrive 43 to 64 ms apart. Nothing here is fitted
to the answer: publishing times are inputs, forks are what the engine gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from celerysim.engine.simulation import simulate
from celerysim.engines import Wanted
from celerysim.result import Result
from celerysim.run import replicate, statistics
from celerysim.scenario import Scenario, load_scenario, override
from celerysim.scenario.schema import Batches
from celerysim.theory import Resonance, batch_resonance

#: Seconds one publish takes, on the ladder of publishing time against forks.
LADDER_S = (0.0005, *(round(0.005 * i, 3) for i in range(33)))
#: The article's forks.
PUBLISHED = (31, 34)


@dataclass(frozen=True)
class Puzzle:
    """The riddle answered."""

    result: Result  #: the first replication
    report: dict[str, Any]  #: the statistics, over replications if there are several
    forks: tuple[int, ...]  #: of each replication
    cycle: Resonance  #: what the first replication's scale events show
    rule: Resonance  #: what the rule for regular batches says
    estimate: float  #: the article's: duration / keepalive * (max - min) + min
    ladder: tuple[tuple[float, int], ...]  #: (publish_s, forks)
    variants: dict[str, int]  #: forks of "keepalive=600" and "min=2"

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values; the keys of ``run`` and those of the riddle."""
        return self.report | {
            "forks_distribution": {str(n): self.forks.count(n) for n in sorted(set(self.forks))},
            "published": {"forks": list(PUBLISHED)},
            "estimate": self.estimate,
            "cycle": self.cycle._asdict(),
            "rule": self.rule._asdict(),
            "ladder": [{"publish_s": p, "forks": n} for p, n in self.ladder],
            "variants": self.variants,
        }


def puzzle(
    *,
    publish_s: float = 0.05,
    keepalive: float = 30.0,
    min_concurrency: int = 0,
    replications: int = 1,
    seed: int = 1,
    engine: Wanted = "auto",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Puzzle:
    """Answer the riddle. ``progress`` is called with (runs done, runs in all).

    ``engine`` runs the replications (:func:`celerysim.run.replicate`).

    Raises:
        ScenarioError: a value is outside the scenario's rules.
    """
    base = load_scenario(
        "puzzle",
        [
            f"producer.publish_s={publish_s!r}",
            f"worker.keepalive={keepalive!r}",
            f"worker.autoscale=[4, {min_concurrency}]",
            f"run.seed={seed}",
        ],
    )
    ladder_s = sorted({*LADDER_S, publish_s})
    runs = replications + len(ladder_s) + 2
    done = 0

    def forks(*changes: str) -> int:
        nonlocal done
        done += 1
        progress(done, runs)
        return simulate(override(base, changes), levels=False).forks

    first, found = replicate(base, replications, lambda part, _: progress(part, runs), engine)
    done = replications
    return Puzzle(
        result=first,
        report=statistics(found),
        forks=tuple(int(run["forks"]) for run in found),
        cycle=observed_cycle(first),
        rule=rule(base),
        estimate=estimate(base),
        ladder=tuple((p, forks(f"producer.publish_s={p!r}")) for p in ladder_s),
        variants={
            "keepalive=600": forks("worker.keepalive=600"),
            "min=2": forks("worker.autoscale=[4, 2]"),
        },
    )


def estimate(scenario: Scenario) -> float:
    """The article's estimate: the pauses alone, no publishing, count as duration."""
    producer = scenario.producer
    assert isinstance(producer, Batches)
    assert producer.max_tasks is not None
    worker = scenario.worker
    batches = producer.max_tasks / producer.batch_size
    duration_s = batches * producer.pause_s.expectation
    spread = worker.max_concurrency - worker.min_concurrency
    return duration_s / worker.keepalive * spread + worker.min_concurrency


def rule(scenario: Scenario) -> Resonance:
    """What :func:`~celerysim.theory.batch_resonance` says of the scenario."""
    producer = scenario.producer
    assert isinstance(producer, Batches)
    assert producer.max_tasks is not None
    publish_s = producer.publish_s.expectation
    return batch_resonance(
        batches=producer.max_tasks // producer.batch_size,
        batch_size=producer.batch_size,
        interval_s=producer.pause_s.expectation + producer.batch_size * publish_s,
        publish_s=publish_s,
        max_concurrency=scenario.worker.max_concurrency,
        min_concurrency=scenario.worker.min_concurrency,
        keepalive_s=scenario.worker.keepalive,
    )


def observed_cycle(result: Result) -> Resonance:
    """Read the cycle off a run: median batches between shrinks, median processes they take."""
    assert result.scenario is not None
    producer = result.scenario.producer
    assert isinstance(producer, Batches)
    events = result.scale_events
    downs = events[events["change"] < 0]
    if not len(downs):
        return Resonance(None, 0, 0, result.forks)
    received = result.tasks["received"]
    message = np.array([np.argmin(np.abs(received - time)) for time in downs["time"]])
    batch = message // producer.batch_size
    gaps: Sequence[int] = np.diff(np.concatenate([[0], batch])).tolist()
    return Resonance(
        int(np.median(gaps)),
        int(np.median(message % producer.batch_size)) + 1,
        int(np.median(-downs["change"])),
        result.forks,
    )
