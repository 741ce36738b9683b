"""What is to be done next in each lane, and which of it to do first.

Runs do not wait for each other: each lane stands at some :class:`Stage`, and the
stage at which most lanes stand is worked off first, so that one numpy operation
serves as many runs as possible. The order of events *within* a run is kept; the
order between runs means nothing.
"""

from __future__ import annotations

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
    ALL = range(26)


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

    def fullest(self) -> int | None:
        """The stage at which most lanes stand, the finished ones aside; None: no lane left."""
        done, self._count[Stage.DONE] = self._count[Stage.DONE], 0
        most = max(self._count)
        stage = self._count.index(most) if most else None
        self._count[Stage.DONE] = done
        return stage
