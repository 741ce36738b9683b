"""The child processes of all lanes.

The same life as :mod:`celerysim.engine.pool.child`. A child lives in the column
of its slot; the slot is free again when the supervisor has reaped it. What a
child has written and the supervisor not yet read is a set of messages, because
it can only be read in one order.

Invariant: a child in a computing state has a piece on the machine, one that
waits for time has an event on the clock, and none has both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celerysim.batch.agenda import Agenda, Stage
from celerysim.batch.ample import AmpleMachine
from celerysim.batch.arrays import NEVER, Bools, Ints, Lanes, Value, at
from celerysim.batch.clock import Clock
from celerysim.batch.first_tasks import FirstTasks
from celerysim.batch.machine import Machine
from celerysim.batch.tasks import Tasks
from celerysim.engine.pool.child import DEATH_SLEEP_S, ZOMBIE_LAG_S

if TYPE_CHECKING:
    from celerysim.batch.supervisor import Supervisor


class State:
    """What a child is doing (plain numbers, for numpy)."""

    #: computing, until it reports that it is up; waiting for a job
    STARTING, ASLEEP = 0, 1
    #: computing; computing or waiting, as the task's step says; computing
    ACCEPTING, STEP, REPORTING = 2, 3, 4
    #: told to leave: computing, until it reports so; waiting for the second signal
    LEAVING, DEATH_SLEEP = 5, 6
    #: computing, until it is gone; the sentinel can be read; the child can be waited for
    EXITING, CLOSED, EXITED = 7, 8, 9


#: By state: whether the child computes for certain.
COMPUTING = np.isin(
    np.arange(10),
    (State.STARTING, State.ACCEPTING, State.REPORTING, State.LEAVING, State.EXITING),
)


class Message:
    """What a child writes to the supervisor, as a set; read from the smallest."""

    UP, ACK, READY, DEATH = 1, 2, 4, 8


class Signal:
    """What is done to a child; the first two are the start of its process."""

    BORN, BORN_UP, TERM, KILL = range(4)


class Children:
    """One column a slot."""

    def __init__(
        self,
        lanes: int,
        children: int,
        clock: Clock,
        agenda: Agenda,
        machine: Machine | AmpleMachine,
        supervisor: Supervisor,
        tasks: Tasks,
        first_tasks: FirstTasks,
    ) -> None:
        self._lanes = lanes
        self._children = children
        self._clock = clock
        self._agenda = agenda
        self._machine = machine
        self._supervisor = supervisor
        self._tasks = tasks
        self.first_tasks = first_tasks
        size = children * lanes
        self.state = np.zeros(size, dtype=np.uint8)
        self.messages = np.zeros(size, dtype=np.uint8)
        self.job = np.full(size, -1, dtype=np.int64)  #: written to it and without a result read
        self.active = np.zeros(size, dtype=np.bool_)  #: the supervisor knows it accepted the job
        self.tracked = np.zeros(size, dtype=np.bool_)  #: its sentinel is watched
        self.step = np.zeros(size, dtype=np.int64)  #: of its task
        self.exit_missed = np.zeros(size, dtype=np.bool_)
        # the row of the history
        self.number = np.zeros(size, dtype=np.int64)
        self.forked = np.zeros(size)
        self.up = np.zeros(size)
        self.terminated = np.zeros(size)
        self.cut_s = np.zeros(size)  #: seconds in a task that did not end
        # of the lane
        self.finished = np.zeros(lanes, dtype=np.int64)  #: tasks finished or lost
        self.sound = np.zeros(lanes, dtype=np.int64)  #: children known to be up, never signalled
        self.exits = np.zeros(lanes, dtype=np.int64)  #: children to be reaped
        self.child_start_s: Value = 0.0
        self.child_accept_s: Value = 0.0
        self.child_report_s: Value = 0.0
        self.child_term_s: Value = 0.0
        self.child_exit_s: Value = 0.0

    def reset(self, lanes: Lanes) -> None:
        """There are none."""
        self.finished[lanes] = self.exits[lanes] = self.sound[lanes] = 0

    def by_slot(self, column: NDArray[Any], lanes: Lanes) -> NDArray[Any]:
        """A column of the children of these lanes: a row a slot."""
        return column.reshape(self._children, self._lanes).take(lanes, axis=1)

    def create(self, lanes: Lanes, child: Ints, number: Ints, up: bool, exit_missed: Bools) -> None:
        """A child begins to live in a free slot."""
        place = child * self._lanes + lanes
        self.state[place] = State.STARTING
        self.messages[place] = 0
        self.job[place] = -1
        self.active[place] = False
        self.tracked[place] = True
        self.exit_missed[place] = exit_missed
        self.number[place] = number
        self.forked[place] = self._clock.now.take(lanes)
        self.up[place] = self.terminated[place] = np.nan
        self.cut_s[place] = 0.0
        self.first_tasks.forked(place)
        self._clock.urgent.push(lanes, child, Signal.BORN_UP if up else Signal.BORN)

    def give(self, lanes: Lanes, child: Ints) -> None:
        """A job was written to the pipe."""
        place = child * self._lanes + lanes
        asleep = self.state.take(place) == State.ASLEEP
        if np.count_nonzero(asleep) < lanes.size:
            lanes, child, place = lanes[asleep], child[asleep], place[asleep]
        self.state[place] = State.ACCEPTING
        self._machine.begin(lanes, child, at(self.child_accept_s, lanes))

    def signal(self, lanes: Lanes, child: Ints, signal: int) -> None:
        """Deliver a signal. A process that is being torn down no longer notices."""
        place = child * self._lanes + lanes
        alive = self.state.take(place) < State.EXITING
        lanes, child, place = lanes[alive], child[alive], place[alive]
        first = np.isnan(self.terminated.take(place))
        self.terminated[place[first]] = self._clock.now.take(lanes[first])
        self.sound[lanes] -= first & ~np.isnan(self.up.take(place))
        self._clock.urgent.push(lanes, child, signal)

    def has_message(self, lanes: Lanes, child: Ints) -> Bools:
        """Whether the supervisor can read something."""
        return self.messages.take(child * self._lanes + lanes) > 0

    def has_closed(self, lanes: Lanes, child: Ints) -> Bools:
        """Whether the sentinel is watched and can be read."""
        place = child * self._lanes + lanes
        return self.tracked.take(place) & (self.state.take(place) >= State.CLOSED)

    # events

    def urgent(self, lanes: Lanes) -> None:
        """Start or interrupt a process."""
        child, signal = self._clock.urgent.front(lanes)
        self._clock.urgent.drop(lanes)
        born = signal == Signal.BORN
        if np.count_nonzero(born):
            some = lanes[born]
            self._machine.begin(some, child[born], at(self.child_start_s, some))
        up = signal == Signal.BORN_UP
        if np.count_nonzero(up):
            self._report_up(lanes[up], child[up])
        hit = signal >= Signal.TERM
        if np.count_nonzero(hit):
            self._interrupt(lanes[hit], child[hit], signal[hit])
        self._clock.wait(lanes)

    def _interrupt(self, lanes: Lanes, child: Ints, signal: Ints) -> None:
        place = child * self._lanes + lanes
        state = self.state.take(place)
        alive = state < State.EXITING
        lanes, child, place = lanes[alive], child[alive], place[alive]
        state, signal = state[alive], signal[alive]
        self._stop(lanes, child, state)
        task = state == State.STEP
        if np.count_nonzero(task):
            some = lanes[task]
            number = some * self._tasks.width + self.job.take(place[task])
            began = self._tasks.flat_started.take(number)
            self.cut_s[place[task]] = self._clock.now.take(some) - began
        self._clock.flat_time[place] = NEVER
        leaves = (state < State.LEAVING) & (signal == Signal.TERM)
        self.state[place[leaves]] = State.LEAVING
        some = lanes[leaves]
        self._machine.begin(some, child[leaves], at(self.child_term_s, some))
        self._die(lanes[~leaves], child[~leaves])

    def _stop(self, lanes: Lanes, child: Ints, state: NDArray[np.uint8]) -> None:
        """What is being computed is not finished."""
        machine = self._machine
        computing = COMPUTING.take(state)
        task = state == State.STEP
        if isinstance(machine, AmpleMachine):
            job = self.job.take(child[task] * self._lanes + lanes[task])
            machine.cut(lanes[task], job)
            self._clock.flat_time[child[task] * self._lanes + lanes[task]] = NEVER
        else:
            computing |= task & machine.works(lanes, child)
        machine.withdraw(lanes[computing], child[computing])

    def stop(self, lanes: Lanes, child: Ints) -> None:
        """The run is over."""
        self._stop(lanes, child, self.state.take(child * self._lanes + lanes))

    def _die(self, lanes: Lanes, child: Ints) -> None:
        place = child * self._lanes + lanes
        self.state[place] = State.EXITING
        self._machine.begin(lanes, child, at(self.child_exit_s, lanes))

    def event(self, lanes: Lanes) -> None:
        """What a child computed or waited for is over."""
        child = self._clock.row.take(lanes)
        place = child * self._lanes + lanes
        self._clock.flat_time[place] = NEVER
        state = self.state.take(place)
        left = lanes.size
        for kind, act in (
            (State.STEP, self._next_step),
            (State.ACCEPTING, self._accept),
            (State.REPORTING, self._report),
            (State.STARTING, self._report_up),
            (State.LEAVING, self._report_death),
            (State.DEATH_SLEEP, self._die),
            (State.EXITING, self._close),
            (State.CLOSED, self._exit),
        ):
            mine = state == kind
            if n := int(np.count_nonzero(mine)):
                act(lanes[mine], child[mine])
                left -= n
                if not left:
                    break
        self._clock.wait(lanes)

    # what it does

    def _send(self, lanes: Lanes, child: Ints, message: int) -> None:
        self.messages[child * self._lanes + lanes] |= message
        self._supervisor.notify(lanes, child)

    def _report_up(self, lanes: Lanes, child: Ints) -> None:
        self._send(lanes, child, Message.UP)
        self.state[child * self._lanes + lanes] = State.ASLEEP

    def _accept(self, lanes: Lanes, child: Ints) -> None:
        """Report the job as accepted, and begin it."""
        self._send(lanes, child, Message.ACK)
        place = child * self._lanes + lanes
        now = self._clock.now.take(lanes)
        job = self.job.take(place)
        self.state[place] = State.STEP
        number = lanes * self._tasks.width + job
        self._tasks.flat_started[number] = now
        self._tasks.flat_child[number] = self.number.take(place)
        if isinstance(self._machine, AmpleMachine):
            self._clock.schedule_at(place, self._machine.run(lanes, job))
        else:
            self.step[place] = -1
            if self.first_tasks.some:
                cpu_s = self.first_tasks.meet(lanes, place, job)
                pays = cpu_s > 0.0
                self._machine.begin(lanes[pays], child[pays], cpu_s[pays])
                lanes, child = lanes[~pays], child[~pays]
            self._next_step(lanes, child)

    def _next_step(self, lanes: Lanes, child: Ints) -> None:
        """Begin the job's next step, or finish it."""
        if isinstance(self._machine, AmpleMachine):
            self._finish(lanes, child)
            return
        place = child * self._lanes + lanes
        step = self.step.take(place) + 1
        self.step[place] = step
        seconds = self._tasks.step(lanes, self.job.take(place), step)
        over = np.isnan(seconds)
        self._finish(lanes[over], child[over])
        waits = ~over & np.signbit(seconds)
        now = self._clock.now.take(lanes[waits])
        self._clock.schedule_at(place[waits], now - seconds[waits])
        computes = ~over & ~waits
        self._machine.begin(lanes[computes], child[computes], seconds[computes])

    def _finish(self, lanes: Lanes, child: Ints) -> None:
        """The task's body is over; report the result."""
        place = child * self._lanes + lanes
        number = lanes * self._tasks.width + self.job.take(place)
        self._tasks.flat_finished[number] = self._clock.now.take(lanes)
        self.count_finished(lanes)
        self.state[place] = State.REPORTING
        report_s = at(self.child_report_s, lanes)
        if isinstance(report_s, float):
            if not report_s:
                self._report(lanes, child)
                return
        else:
            at_once = report_s == 0.0
            self._report(lanes[at_once], child[at_once])
            lanes, child, report_s = lanes[~at_once], child[~at_once], report_s[~at_once]
        self._machine.begin(lanes, child, report_s)

    def _report(self, lanes: Lanes, child: Ints) -> None:
        self._send(lanes, child, Message.READY)
        self.state[child * self._lanes + lanes] = State.ASLEEP

    def _report_death(self, lanes: Lanes, child: Ints) -> None:
        self._send(lanes, child, Message.DEATH)
        place = child * self._lanes + lanes
        self.state[place] = State.DEATH_SLEEP
        self._clock.schedule_at(place, self._clock.now.take(lanes) + DEATH_SLEEP_S)

    def _close(self, lanes: Lanes, child: Ints) -> None:
        """Its files are closed: the sentinel can be read."""
        place = child * self._lanes + lanes
        self.state[place] = State.CLOSED
        self._supervisor.notify(lanes, self._children + child)
        missed = self.exit_missed.take(place)
        lag = self._clock.now.take(lanes[missed]) + ZOMBIE_LAG_S
        self._clock.schedule_at(place[missed], lag)
        self._exit(lanes[~missed], child[~missed])

    def _exit(self, lanes: Lanes, child: Ints) -> None:
        """It can be waited for."""
        self.state[child * self._lanes + lanes] = State.EXITED
        self.exits[lanes] += 1

    # the end of the run

    def count_finished(self, lanes: Lanes) -> None:
        """A task is finished or lost: the run ends with the last one."""
        finished = self.finished.take(lanes) + 1
        self.finished[lanes] = finished
        over = lanes[finished == self._tasks.last.take(lanes)]
        if over.size:
            self.end(over)

    def end(self, lanes: Lanes) -> None:
        """All tasks are sent and done."""
        self._clock.schedule(self._clock.stop, lanes, self._clock.now.take(lanes))
        self._clock.stopping[lanes] = True

    def all_done(self, lanes: Lanes) -> None:
        """The recorder's event was processed; the one that ends the run follows."""
        first = self._clock.stopping.take(lanes)
        self._agenda.put(Stage.DONE, lanes[~first])
        lanes = lanes[first]
        self._clock.stopping[lanes] = False
        self._clock.schedule(self._clock.stop, lanes, self._clock.now.take(lanes))
        self._clock.wait(lanes)
