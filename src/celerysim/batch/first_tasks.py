"""What the first task of a kind costs in each child: ``first_in_child_cpu_s``.

It is computed before the task's steps, once in a child's life, as in
:meth:`celerysim.engine.pool.child.Child`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from celerysim.batch.arrays import Bools, Floats, Ints, Lanes
from celerysim.batch.tasks import Tasks
from celerysim.scenario.schema import Scenario


def costly(scenario: Scenario) -> bool:
    """Whether the first task of some kind costs anything."""
    return any(p.first_in_child_cpu_s for p in scenario.tasks.profiles.values())


class FirstTasks:
    """Kinds of tasks by child; ``some``: whether there are scenarios to which it matters."""

    def __init__(
        self, lanes: int, children: int, scenarios: Sequence[Scenario], tasks: Tasks
    ) -> None:
        self._tasks = tasks
        self.some = any(map(costly, scenarios))
        kinds = max(len(s.tasks.profiles) for s in scenarios) if self.some else 0
        self._cpu_s = np.zeros((kinds, lanes))
        self._met = np.zeros((kinds, children * lanes), dtype=np.bool_)

    def reset(self, lanes: Lanes, scenario: Scenario) -> None:
        """Runs of one scenario begin."""
        if self.some:
            self._cpu_s[:, lanes] = 0.0
            for kind, profile in enumerate(scenario.tasks.profiles.values()):
                self._cpu_s[kind, lanes] = profile.first_in_child_cpu_s

    def forked(self, place: Ints) -> None:
        """A new child, which has met no task."""
        self._met[:, place] = False

    def costs(self, lanes: Lanes, place: Ints, task: Ints) -> Bools:
        """Whether a task would be a costly first one in a child, addressed by its place."""
        kind = self._tasks.profile[lanes, task]
        return (self._cpu_s[kind, lanes] > 0.0) & ~self._met[kind, place]

    def meet(self, lanes: Lanes, place: Ints, task: Ints) -> Floats:
        """A child meets a task; returns the CPU seconds that this costs, zero if it has before."""
        kind = self._tasks.profile[lanes, task]
        cpu_s: Floats = np.where(self._met[kind, place], 0.0, self._cpu_s[kind, lanes])
        self._met[kind, place] = True
        return cpu_s
