"""The guard of the quick way: which runs may depend on rounding, and must be run the exact way.

A fleet of ample machines (:mod:`celerysim.batch.ample`) gives the reference's times
but for their last digits, less than :data:`MARGIN_S` altogether. So it takes the
same course as the reference as long as no decision hangs on times that close
together: two events whose order matters, a timer that is just due or not, the
keepalive just passed or not, the horizon. Where one does, the run is given up here
and done anew by a fleet that repeats the reference's operations bit by bit. (The
idea of floating-point filters in computational geometry.)

Close events whose order does not matter are let pass:

- a message sent: it is delivered later, and neither delivery nor acknowledgement of
  another changes by which came first;
- a task's end, where the supervisor knows that the child accepted it: it only begins
  the report;
- what a loop does that was just woken: its cause was judged;
- equal times of dying children in the same state: they were signalled at one instant, and
  both engines take them in the order of the signals;
- deliveries at the start, before anything has computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from celerysim.batch.agenda import Stage
from celerysim.batch.arrays import NEVER, Bools, Floats, Ints, Lanes, whole_at
from celerysim.batch.child import State
from celerysim.engine.machine import RESOLUTION_S
from celerysim.scenario.schema import Scenario

if TYPE_CHECKING:
    from celerysim.batch.fleet import Fleet

#: Seconds. Rounding of a run's times adds up to far less, a thousandth or so.
MARGIN_S = 1e-8
#: No cost may be so small that it could be taken for rounding.
LEAST_COST_S = 1e-6
#: Longer runs could add up more rounding.
MOST_TASKS = 10_000


def ample(scenario: Scenario, tasks: int) -> bool:
    """Whether the quick way is open: a core for every process, nothing that takes no time."""
    costs = scenario.costs
    shortest = min(
        costs.deliver_s, costs.receive_s, costs.dispatch_s, costs.accept_s, costs.result_s,
        costs.fork_s, costs.reap_s / 2, costs.child_start_s, costs.child_accept_s,
        costs.child_report_s, costs.child_term_s, costs.child_exit_s,
    )  # fmt: skip
    return (
        scenario.machine.cores > scenario.worker.max_concurrency
        and shortest >= LEAST_COST_S
        and RESOLUTION_S / scenario.machine.speed < MARGIN_S / 20
        and tasks <= MOST_TASKS
    )


class Guard:
    """Watches the lanes of a fleet."""

    margin_s = MARGIN_S

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.doubtful = np.zeros(fleet.lanes, dtype=np.bool_)

    def reset(self, lanes: Lanes) -> None:
        """Nothing is doubtful yet."""
        self.doubtful[lanes] = False

    def doubt(self, lanes: Lanes) -> None:
        """These runs must be run the exact way; they end here."""
        self.doubtful[lanes] = True
        self._fleet.clock.give_up(lanes)

    def order(self, lanes: Lanes, times: Floats, row: Ints) -> None:
        """Judge lanes whose next event, in ``row``, is closely followed by others."""
        clock = self._fleet.clock
        if len(times) <= clock.supervisor:  # it waits in poll: nothing in its row and the next
            rest = np.full((len(clock.time) - len(times), lanes.size), NEVER)
            times = np.concatenate([times, rest])
        inert = self._inert(lanes, times)
        place = np.arange(lanes.size)
        judged = ~inert[row, place]
        lanes, times, row, inert = lanes[judged], times[:, judged], row[judged], inert[:, judged]
        place = place[: lanes.size]
        first = times[row, place]
        close = (times <= first + MARGIN_S) & ~inert
        close[row, place] = False
        equal = times == first
        child = row < clock.children
        state = self._states(lanes)
        own = state[np.minimum(row, clock.children - 1), place]
        dying = child & (own >= State.LEAVING)
        close[: clock.children] &= ~(equal[: clock.children] & (state == own) & dying)
        starting = clock.then.take(lanes) == Stage.QOS_DRAINED
        pair = (row == clock.delivery) | (row == clock.supervisor)
        for other in (clock.delivery, clock.supervisor):
            close[other] &= ~(equal[other] & starting & pair)
        self.doubt(lanes[close.any(axis=0)])

    def horizon(self, lanes: Lanes, now: Floats, row: Ints) -> None:
        """Judge lanes whose next event is about at the horizon or beyond it."""
        clock = self._fleet.clock
        close = np.abs(now - clock.horizon.take(lanes)) <= MARGIN_S
        if np.count_nonzero(close):
            self.doubt(lanes[close & (row != clock.producer)])

    def timers(self, lanes: Lanes) -> None:
        """Judge lanes several of whose timers are due, or almost.

        Their order does not matter where maintaining the pool means nothing.
        """
        fleet = self._fleet
        soon = fleet.clock.now.take(lanes) + MARGIN_S
        due = fleet.supervisor.count_due(lanes, soon)
        most = whole_at(fleet.consumer.max_concurrency, lanes)
        wanted = np.minimum(fleet.consumer.reserved.take(lanes), most)
        steady = fleet.pool.steady(lanes) & (wanted <= fleet.pool.target.take(lanes))
        self.doubt(lanes[(due > 1) & ~steady])

    def _states(self, lanes: Lanes) -> Ints:
        return self._fleet.children.by_slot(self._fleet.children.state, lanes)

    def _inert(self, lanes: Lanes, times: Floats) -> Bools:
        """By row: whether it does not matter what happens closely before or after it."""
        fleet = self._fleet
        clock, children = fleet.clock, fleet.children
        inert = np.zeros(times.shape, dtype=np.bool_)
        inert[clock.producer] = True
        inert[clock.supervisor] = clock.then.take(lanes) == Stage.POLLED
        last = children.finished.take(lanes) + 1 == fleet.tasks.last.take(lanes)
        running = self._states(lanes) == State.STEP
        inert[: clock.children] = running & children.by_slot(children.active, lanes) & ~last
        return inert
