"""Machines with a core for everyone: work takes its own time, whatever else runs.

Where there are more cores than processes the processor sharing of
:mod:`celerysim.batch.machine` comes to this, but for rounding. So a piece of work
is an event of its child (or of the supervisor), and a task's body is a single
event, its end, whatever its steps are.

``busy_core_s`` counts a piece of work when it begins; what is cut short is taken
back. The bodies of tasks come on top, in the end.
"""

from __future__ import annotations

import numpy as np

from celerysim.batch.arrays import NEVER, Bools, Floats, Ints, Lanes, Value, Whole, at
from celerysim.batch.clock import Clock
from celerysim.batch.tasks import Tasks


class AmpleMachine:
    """Takes the place of :class:`~celerysim.batch.machine.Machine`."""

    def __init__(self, lanes: int, children: int, clock: Clock, tasks: Tasks) -> None:
        self._lanes = lanes
        self._clock = clock
        self._tasks = tasks
        self.supervisor = clock.supervisor
        self.busy_core_s = np.zeros(lanes)
        self.cores: Whole = 1
        self.speed: Value = 1.0

    def reset(self, lanes: Lanes) -> None:
        """Nothing runs."""
        self.busy_core_s[lanes] = 0.0

    def begin(self, lanes: Lanes, piece: int | Ints, cpu_s: Value) -> None:
        """Start ``cpu_s`` seconds of work as the given piece of each lane."""
        seconds = cpu_s / at(self.speed, lanes)
        self.busy_core_s[lanes] += seconds
        self._clock.schedule_at(piece * self._lanes + lanes, self._clock.now.take(lanes) + seconds)

    def withdraw(self, lanes: Lanes, piece: int | Ints) -> None:
        """Take unfinished work away."""
        place = piece * self._lanes + lanes
        left = self._clock.flat_time.take(place) - self._clock.now.take(lanes)
        self.busy_core_s[lanes] -= left
        self._clock.flat_time[place] = NEVER

    def has_room(self, lanes: Lanes, pieces: Whole) -> Bools:
        """Whether so many more pieces would run like the others."""
        return np.ones(lanes.size, dtype=np.bool_)

    def run(self, lanes: Lanes, task: Ints) -> Floats:
        """When the bodies of tasks that begin now end."""
        number = lanes * self._tasks.width + task
        return self._clock.now.take(lanes) + self._tasks.flat_duration.take(number)

    def cut(self, lanes: Lanes, task: Ints) -> None:
        """The bodies of these tasks do not go on."""
        speed = at(self.speed, lanes)
        began = self._tasks.flat_started.take(lanes * self._tasks.width + task)
        left = self._clock.now.take(lanes) - began
        for step in range(self._tasks.steps):
            seconds = self._tasks.step(lanes, task, step)
            computes = np.minimum(np.fmax(seconds, 0.0) / speed, left)
            self.busy_core_s[lanes] += computes
            left = np.maximum(left - computes - np.fmax(-seconds, 0.0), 0.0)

    def bodies_s(self, lanes: Lanes) -> Floats:
        """Seconds of computing in the tasks of each lane that came to their end."""
        tasks = self._tasks
        most = int(tasks.total.take(lanes).max(initial=0))
        ended = ~np.isnan(tasks.finished[lanes, :most]) & ~tasks.lost[lanes, :most]
        total = np.zeros(lanes.size)
        for step in range(tasks.steps):
            seconds = np.fmax(tasks.seconds[lanes, :most, step], 0.0)
            total += np.add.reduce(seconds * ended, axis=1)
        return total / at(self.speed, lanes)
