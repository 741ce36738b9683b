"""How well costs and kernel are known: each simulated run draws them from what was measured.

A prediction that takes every cost for exact claims more than it knows: whether a pool
shrinks in this batch or the next can hang on one fork's milliseconds. So each
replication draws each of these costs once, between the 10th and the 90th percentile of
the measurements (``validation/costs``). They are factors of the scenario's own costs. How
many wake-ups are late on full cores is drawn too, unless the scenario has some of its own,
and so is the order in which idle children are written to: it hangs on numbers of file
descriptors that no scenario tells.
"""

from __future__ import annotations

import numpy as np

from celerysim.scenario import Scenario

#: Share of late wake-ups on full cores: none, or up to what was measured (validation/run_queues).
LATE_WAKEUPS = (0.0, 0.4)
#: Measured p10 and p90 (seconds) over the default, by field of ``costs``.
FACTORS = {
    "fork_s": (0.0227 / 0.030, 0.0396 / 0.030),
    "deliver_s": (0.0001 / 0.0005, 0.0006 / 0.0005),
    "child_start_s": (0.0042 / 0.005, 0.0058 / 0.005),
    "child_exit_s": (0.0026 / 0.003, 0.0039 / 0.003),  # CPU, the burst of 8
}


def with_spread(scenario: Scenario, replication: int) -> Scenario:
    """The scenario with costs, late wake-ups and write order of one replication."""
    generator = np.random.Generator(np.random.Philox([scenario.run.seed, replication]))
    low, high = np.array(list(FACTORS.values())).T
    factors = dict(zip(FACTORS, generator.uniform(low, high).tolist(), strict=True))
    costs = scenario.costs
    drawn = {name: getattr(costs, name) * factor for name, factor in factors.items()}
    machine = scenario.machine
    if not machine.late_wakeup_share:
        late = float(generator.uniform(*LATE_WAKEUPS))
        machine = machine.model_copy(update={"late_wakeup_share": late})
    worker = scenario.worker
    if worker.pool == "prefork" and worker.write_order is None:
        order = tuple((generator.permutation(worker.max_concurrency) + 1).tolist())
        worker = worker.model_copy(update={"write_order": order})
    return scenario.model_copy(
        update={"costs": costs.model_copy(update=drawn), "machine": machine, "worker": worker}
    )
