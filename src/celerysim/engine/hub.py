"""The hubs of gevent and eventlet: which greenlet has the process's one core.

A greenlet is a generator. It keeps the core while it waits for the SimPy events
it yields (CPU work, a call that is not patched), and gives it to the hub by
yielding :attr:`Hub.turn`; the hub resumes it when what it waits for has come. So
a timer that is due while some greenlet computes runs late by the rest of that
computation. What has become ready meanwhile runs in each library's own order:

- gevent 26.9 (:class:`GeventHub`): what was put off with ``run_callback``, then
  due timers by their time, then the socket, last time-outs;
- eventlet 0.41 (:class:`EventletHub`): due timers by their time, time-outs and
  new greenlets (timers of zero seconds) among them, then the socket.

Both hand ``epoll`` whole milliseconds, rounded up, so a timer may run that much late.

Leaves out: sockets other than the broker's (a task's ``io_s`` is a timer),
gevent's look at the clock after every 50 callbacks.
Invariant: one greenlet runs at a time, until it waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from heapq import heappop, heappush
from typing import Any

import simpy

from celerysim.engine.machine import Machine
from celerysim.engine.supervisor import Activity, Timer
from celerysim.scenario.schema import Scenario


class Hub(ABC):
    """What both hubs share: timers, the broker's socket, switching."""

    def __init__(self, env: simpy.Environment, scenario: Scenario, machine: Machine) -> None:
        self._env = env
        self._machine = machine
        self._wakeup_s = scenario.costs.hub_wakeup_s
        grows = scenario.worker.hub != "epoll"
        self._waiting_s = scenario.costs.hub_waiting_s if grows else 0.0
        self._sleeping = 0  # greenlets in sleep()
        self._timers = _Timers(env)
        self._reader: Activity | None = None  # the greenlet that waits for the socket
        self._readable = False  # and there is something to read for it
        self._poll: simpy.Event | None = None
        self.turn = env.event()  #: yielded by a greenlet to give up the core; never happens
        self.current: Activity  #: the greenlet that runs

    @abstractmethod
    def run(self) -> Activity:
        """The hub itself, without end."""

    @abstractmethod
    def run_soon(self, action: Callable[[], Activity]) -> None:
        """Run ``action`` at the hub's next turn."""

    def spawn(self, greenlet: Activity) -> None:
        """Start a greenlet at the hub's next turn."""
        self.run_soon(partial(self.switch, greenlet))

    # what a greenlet calls

    def sleep(self, seconds: float) -> Activity:
        """Wait, and let others run."""
        timer = Timer(partial(self.switch, self.current))
        self.enter(seconds, timer)
        self._sleeping += 1
        try:
            yield self.turn
        finally:
            timer.cancelled = True
            self._sleeping -= 1

    def wait_readable(self, timeout_s: float) -> Generator[simpy.Event, Any, bool]:
        """Wait until the socket can be read; false: time is up."""
        self._reader = self.current
        timer = self.call_timeout(timeout_s, partial(self.switch, self.current, False))
        readable: bool = yield self.turn
        timer.cancelled = True
        self._reader, self._readable = None, False
        return readable

    def call_timeout(self, seconds: float, action: Callable[[], Activity]) -> Timer:
        """Run ``action`` after so many seconds unless the returned timer is cancelled."""
        timer = Timer(action)
        self.enter(seconds, timer)
        return timer

    def enter(self, seconds: float, timer: Timer) -> None:
        """Start ``timer``."""
        self._timers.enter(seconds, timer)

    # what happens outside

    def notify(self) -> None:
        """The socket can be read; wakes the hub if a greenlet waits for that."""
        if self._reader is not None:
            self._readable = True
            self._wake(self._poll)

    # switching

    def switch(self, greenlet: Activity, value: object = None) -> Activity:
        """Run ``greenlet`` until it waits."""
        return self._resume(greenlet, partial(greenlet.send, value))

    def throw(self, greenlet: Activity, error: BaseException) -> Activity:
        """Raise ``error`` in ``greenlet`` and run it until it waits."""
        return self._resume(greenlet, partial(greenlet.throw, error))

    def _resume(self, greenlet: Activity, step: Callable[[], simpy.Event]) -> Activity:
        self.current = greenlet
        try:
            event = step()
            while event is not self.turn:
                yield event
                event = greenlet.send(None)
        except StopIteration:
            pass

    def _switch_to_reader(self) -> Activity:
        assert self._reader is not None
        self._readable = False
        return self.switch(self._reader, True)

    # waiting

    def _wait(self, until: float) -> Activity:
        """Poll: until then, or until the socket can be read."""
        if not self._readable and until > self._env.now:
            self._poll = poll = self._env.event()
            if until < float("inf"):
                # ev_epoll.c: EV_TS_TO_MSEC; select.epoll.poll rounds up, too
                milliseconds = int((until - self._env.now) * 1e3 + 0.9999)
                # (a rest too short for that is rounding of the clock: wait for just that)
                alarm = self._env.timeout(milliseconds / 1e3 or until - self._env.now)
                alarm.callbacks.append(lambda _: self._wake(poll))
            yield poll
        cost = self._wakeup_s + self._waiting_s * self._sleeping
        if cost:
            yield self._machine.work(cost)

    def _wake(self, poll: simpy.Event | None) -> None:
        if poll is not None and poll is self._poll:
            self._poll = None
            poll.succeed()


class GeventHub(Hub):
    """``gevent/hub.py: Hub`` on libev's loop (``deps/libev/ev.c: ev_run``).

    Each turn: ``prepare`` runs the callbacks, also those they add
    (``gevent/_ffi/loop.py: _run_callbacks``); then poll; then what is due is made
    pending and invoked by priority: 0 for sleeps and sockets (sockets were fed
    first and pending events are taken from the end), -1 for ``gevent.Timeout``.
    """

    def __init__(self, env: simpy.Environment, scenario: Scenario, machine: Machine) -> None:
        super().__init__(env, scenario, machine)
        self._callbacks: deque[Callable[[], Activity]] = deque()
        self._timeouts = _Timers(env)

    def run(self) -> Activity:
        """``ev_run``."""
        while True:
            while self._callbacks:
                yield from self._callbacks.popleft()()
            yield from self._wait(min(self._timers.next(), self._timeouts.next()))
            due, overdue = self._timers.pop_due(), self._timeouts.pop_due()
            readable = self._readable
            for timer in due:
                if not timer.cancelled:
                    yield from timer.action()
            if readable:
                yield from self._switch_to_reader()
            for timer in overdue:
                if not timer.cancelled:
                    yield from timer.action()

    def run_soon(self, action: Callable[[], Activity]) -> None:
        """``loop.run_callback``."""
        self._callbacks.append(action)

    def call_timeout(self, seconds: float, action: Callable[[], Activity]) -> Timer:
        """``gevent.Timeout``: a timer of its own, lower priority."""
        timer = Timer(action)
        self._timeouts.enter(seconds, timer)
        return timer


class EventletHub(Hub):
    """``eventlet/hubs/hub.py: BaseHub.run``.

    Each turn: ``prepare_timers``, ``fire_timers`` (those that were due when it
    began; timers set meanwhile wait for the next turn), then ``wait`` polls and
    calls the listeners.
    """

    def run(self) -> Activity:
        """The run loop."""
        while True:
            for timer in self._timers.pop_due():
                if not timer.cancelled:
                    yield from timer.action()
            yield from self._wait(self._timers.next())
            if self._readable:
                yield from self._switch_to_reader()

    def run_soon(self, action: Callable[[], Activity]) -> None:
        """``schedule_call_global(0, ...)``."""
        self.enter(0.0, Timer(action))


class _Timers:
    """Timers by the time they are due; those of one time in the order they were set."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._heap: list[tuple[float, int, Timer]] = []
        self._serial = 0

    def enter(self, seconds: float, timer: Timer) -> None:
        self._serial += 1
        heappush(self._heap, (self._env.now + seconds, self._serial, timer))

    def next(self) -> float:
        """When the first is due; infinity: never."""
        heap = self._heap
        while heap and heap[0][2].cancelled:
            heappop(heap)
        return heap[0][0] if heap else float("inf")

    def pop_due(self) -> list[Timer]:
        """Take out what is due now."""
        due = []
        while self._heap and self._heap[0][0] <= self._env.now:
            due.append(heappop(self._heap)[2])
        return due
