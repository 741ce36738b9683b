"""The guard of the quick way: which runs may depend on rounding, and are the reference's to run.

A fleet of ample machines (:mod:`celerysim.batch.ample`) gives the reference's times
but for their last digits, less than :data:`MARGIN_S` altogether. So it takes the
same course as the reference as long as no decision hangs on times that close
together: two events whose order matters, a timer that is just due or not, the
keepalive just passed or not, the horizon. Where one does, the run is given up here
and done anew by the reference engine: one at a time, but they are few. (The idea of
floating-point filters in computational geometry.)

Close events whose order does not matter are let pass:

- a message sent: it is delivered later, and neither delivery nor acknowledgement of
  another changes by which came first;
- a task's end, where the supervisor knows that the child accepted it: it only begins
  the report;
- what a loop does that was just woken: its cause was judged;
- the look whether a child is up that is: it does nothing;
- an alarm of poll while the loop does something else, or that comes before the poll's time is
  up: the next poll, or the alarm itself, sets what is missing;
- equal times of dying children in the same state: they were signalled at one instant, and
  both engines take them in the order of the signals;
- deliveries at the start, before anything has computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from celerysim.batch.agenda import Stage
from celerysim.batch.arrays import NEVER, Bools, Floats, Ints, Lanes, at, whole_at
from celerysim.batch.child import State
from celerysim.batch.first_tasks import costly
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
        and not costly(scenario)
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
        """These runs are left to the reference engine; they end here."""
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
        self.doubt(lanes[np.logical_or.reduce(close, axis=0)])

    def horizon(self, lanes: Lanes, now: Floats, row: Ints) -> None:
        """Judge lanes whose next event is about at the horizon or beyond it."""
        clock = self._fleet.clock
        close = np.abs(now - clock.horizon.take(lanes)) <= MARGIN_S
        if np.count_nonzero(close):
            self.doubt(lanes[close & (row != clock.producer)])

    def due(self, lanes: Lanes) -> None:
        """Judge lanes in which a timer is just due or not, and the loop did not wait for it.

        Where there is nothing to read or to write the loop would poll, and wake at once for the
        timer. What was put off then comes before it, which matters if the timer does something.
        """
        supervisor, pool = self._fleet.supervisor, self._fleet.pool
        now, times = self._fleet.clock.now.take(lanes), self._timers(lanes)
        close = np.abs(times - now) <= MARGIN_S
        polls = (supervisor.to_read.take(lanes) == 0) & ~pool.wants_to_write(lanes)
        alone = ~supervisor.soon.filled(lanes)
        harmless = polls & (alone | self._idle(lanes)) & ~close[2]
        self.doubt(lanes[np.logical_or.reduce(close, axis=0) & ~harmless])

    def timers(self, lanes: Lanes) -> None:
        """Judge lanes that run their timers: which comes first, and which is just due or not.

        The order does not matter where there is nothing to maintain and the pool need not grow.
        """
        fleet = self._fleet
        now, times = fleet.clock.now.take(lanes), self._timers(lanes)
        kill = times[2] <= now + MARGIN_S
        times.sort(axis=0)
        with np.errstate(invalid="ignore"):  # NEVER - NEVER
            close = np.diff(times, axis=0) <= MARGIN_S
        close &= times[1:] <= now + MARGIN_S
        doubt = np.logical_or.reduce(close, axis=0)
        if np.count_nonzero(doubt):
            self.doubt(lanes[doubt & (kill | ~self._complete(lanes))])
        later = fleet.supervisor.fired.take(lanes) > 0
        if np.count_nonzero(later):
            self.due(lanes[later])

    def _complete(self, lanes: Lanes) -> Bools:
        """Whether there is no child to reap or to fork, for the autoscaler neither."""
        fleet = self._fleet
        consumer, target = fleet.consumer, fleet.pool.target.take(lanes)
        most = whole_at(consumer.max_concurrency, lanes)
        complete: Bools = (
            (fleet.children.exits.take(lanes) == 0)
            & (fleet.reaper.listed.take(lanes) >= target)
            & (np.minimum(consumer.reserved.take(lanes), most) <= target)
        )
        return complete

    def _idle(self, lanes: Lanes) -> Bools:
        """Whether neither the pool's timer nor the autoscaler's would do anything now."""
        fleet = self._fleet
        consumer, target = fleet.consumer, fleet.pool.target.take(lanes)
        floor = np.maximum(consumer.reserved.take(lanes), whole_at(consumer.min_concurrency, lanes))
        old = consumer.last_scale_up.take(lanes) + at(consumer.keepalive, lanes)
        young = old > fleet.clock.now.take(lanes) + MARGIN_S
        return self._complete(lanes) & ((floor >= target) | young)

    def _timers(self, lanes: Lanes) -> Floats:
        """When the timers are due: the pool's, the autoscaler's, a silent child's."""
        supervisor, reaper = self._fleet.supervisor, self._fleet.reaper
        verify, _, child, number = supervisor.verify.front(lanes)
        verify[~(supervisor.verify.filled(lanes) & reaper.silent(lanes, child, number))] = NEVER
        return np.stack(
            [supervisor.maintain_due.take(lanes), supervisor.keepalive_due.take(lanes), verify]
        )

    def _states(self, lanes: Lanes) -> Ints:
        return self._fleet.children.by_slot(self._fleet.children.state, lanes)

    def _inert(self, lanes: Lanes, times: Floats) -> Bools:
        """By row: whether it does not matter what happens closely before or after it."""
        fleet = self._fleet
        clock, children = fleet.clock, fleet.children
        inert = np.zeros(times.shape, dtype=np.bool_)
        inert[clock.producer] = True
        supervisor = fleet.supervisor
        outdated = supervisor.poll_until.take(lanes) > times[clock.poll] + MARGIN_S
        inert[clock.poll] = ~supervisor.polling.take(lanes) | outdated
        inert[clock.supervisor] = clock.then.take(lanes) == Stage.POLLED
        last = children.finished.take(lanes) + 1 == fleet.tasks.last.take(lanes)
        running = self._states(lanes) == State.STEP
        inert[: clock.children] = running & children.by_slot(children.active, lanes) & ~last
        return inert
