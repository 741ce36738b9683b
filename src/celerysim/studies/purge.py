"""A run that ends as the published ones did: the queue is purged when the publisher has stopped.

What the worker has been sent by then finishes and counts; what is ready in the
queue is gone. A purge leaves the first n messages (a queue is in order, and here
nothing is requeued), and until the purge a run does not depend on the others. So
the run is made once to find n, and once more with n messages.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from celerysim.engine.simulation import simulate
from celerysim.history import Level
from celerysim.result import Result
from celerysim.scenario import Scenario, override
from celerysim.scenario.schema import Batches


def simulate_purged(scenario: Scenario, *, drain_s: float, replication: int = 0) -> Result:
    """One replication; the queue is purged one pause after the last batch.

    The run ends ``drain_s`` seconds after the purge, or when the last task is done
    if that is later. The producer must be of kind ``batches``, with ``duration_s``
    and a constant pause.
    """
    producer = scenario.producer
    assert isinstance(producer, Batches) and producer.duration_s is not None
    pause_s = producer.pause_s.expectation
    batch_s = pause_s + producer.batch_size * producer.publish_s.expectation
    horizon_s = producer.start_s + producer.duration_s + 2 * batch_s
    whole = simulate(override(scenario, [f"run.horizon_s={horizon_s}"]), replication=replication)
    purge = float(whole.tasks["sent"][-1]) + pause_s
    times, ready = whole.level(Level.READY)
    before = int(np.searchsorted(times, purge, side="right"))
    left = len(whole.tasks) - (int(ready[before - 1]) if before else 0)
    result = simulate(
        override(scenario, [f"producer.max_tasks={left}"]), replication=replication, levels=False
    )
    return replace(result, end=max(result.end, purge + drain_s))
