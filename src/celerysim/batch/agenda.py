"""What is to be done next in each lane, and which of it to do first.

Runs do not wait for each other: each lane stands at some :class:`Stage`, and a stage
at which many lanes stand is worked off first, so that one numpy operation serves
many runs. The order of events *within* a run is kept; the order between runs means
nothing.
"""

from __future__ import annotations

from operator import mul

import numpy as np
from numpy.typing import NDArray

from celerysim.batch.arrays import Lanes

NO_LANES = np.empty(0, dtype=np.intp)


class Stage:
    """Where a lane stands: an event that is due, or code that goes on without time passing.

    Plain numbers, because numpy is slow with enumerations.
    """

    #: look for the next event; the run is over
    SELECT, DONE = 0, 1
    #: events: an alarm of the machine or of poll, a message sent or delivered, a child's time-out
    #: or the end of its work, a child started or signalled, all tasks done
    RING, POLL_ALARM, PUBLISH, DELIVERED, CHILD, URGENT, ALL_DONE = range(2, 9)
    #: the machine looks whether more is done
    RING_ON = 9
    #: the supervisor's code: the start, one turn of its loop
    COME_UP, QOS_DRAINED, QUICK_DRAIN_TRIGGERED, QUICK_DRAINED = range(10, 14)
    SOON, TIMERS, POLLED, SOURCES, SOURCE_DONE = range(14, 19)
    #: its handlers, after what takes them time: a message received or read, a job written
    RECEIVED, MESSAGE_READ, WRITTEN = 19, 20, 21
    #: maintaining the pool: twice half of ``reap_s`` is over, a fork
    MAINTAIN, FLUSHED, FLUSHED_AGAIN, FORKED = range(22, 26)
    #: run queues: an alarm of a core, the time to even out what differs by one piece
    RING_CORES, BALANCE = 26, 27
    ALL = range(28)


#: How many lanes should wait at a stage, relative to others, before it is worked off. With piles
#: that grow steadily the least time is spent if each pile is proportional to the root of (visits a
#: task x fixed cost of a call in us); both as measured on experiments/keepalive-churn. Only speed
#: depends on it.
PILES = {
    Stage.SELECT: 20.0, Stage.RING: 21.3, Stage.RING_ON: 11.1, Stage.POLL_ALARM: 9.9,
    Stage.PUBLISH: 13.5, Stage.DELIVERED: 3.6, Stage.CHILD: 24.9, Stage.URGENT: 7.5,
    Stage.TIMERS: 8.1, Stage.POLLED: 17.1, Stage.SOURCE_DONE: 2.6, Stage.RECEIVED: 15.2,
    Stage.MESSAGE_READ: 12.6, Stage.WRITTEN: 7.9, Stage.MAINTAIN: 5.6, Stage.FLUSHED: 4.7,
    Stage.FLUSHED_AGAIN: 3.5, Stage.FORKED: 7.5, Stage.RING_CORES: 20.0, Stage.BALANCE: 10.0,
}  # fmt: skip
#: By stage; the finished lanes have no haste.
HASTE = tuple(0.0 if s == Stage.DONE else 1.0 / PILES.get(s, 1.0) for s in Stage.ALL)


class Agenda:
    """The lanes that stand at each stage."""

    def __init__(self) -> None:
        self._lanes: list[list[Lanes]] = [[] for _ in Stage.ALL]
        self._count = [0] * len(Stage.ALL)

    def put(self, stage: int, lanes: Lanes) -> None:
        """These lanes go on at ``stage``."""
        if lanes.size:
            self._lanes[stage].append(lanes)
            self._count[stage] += lanes.size

    def put_each(self, stages: NDArray[np.uint8], lanes: Lanes) -> None:
        """Each lane goes on at a stage of its own."""
        if lanes.size:
            for stage in np.flatnonzero(np.bincount(stages)).tolist():
                self.put(stage, lanes[stages == stage])

    def count(self, stage: int) -> int:
        """How many lanes stand there."""
        return self._count[stage]

    def take(self, stage: int) -> Lanes:
        """The lanes that stand there, for good."""
        waiting = self._lanes[stage]
        lanes = waiting[0] if len(waiting) == 1 else np.concatenate([*waiting, NO_LANES])
        self._lanes[stage] = []
        self._count[stage] = 0
        lanes.sort()  # kinder to the cache
        return lanes

    def next(self) -> int | None:
        """The stage of the highest pile, measured by :data:`PILES`; None: no lane left."""
        heights = list(map(mul, self._count, HASTE))
        most = max(heights)
        return heights.index(most) if most else None
