"""The supervisor's main loop: one thing at a time, in the order Celery does them.

Models the event loop of a worker's main process: ``celery/worker/loops.py:
asynloop`` (5.6.3) around ``kombu/asynchronous/hub.py: Hub.create_loop`` and
``kombu/asynchronous/timer.py: Timer`` (5.6.2). One turn of the loop runs what
was put off with ``call_soon``, then the timers that are due, then waits until
something can be read, reads one message from each source in the order they
became readable, and last writes jobs to children. Whatever takes time (a fork,
above all) holds up everything else.

Leaves out: heartbeats, gossip and remote control, which only wake the loop.
Invariant: never two handlers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappop, heappush
from typing import Any, Protocol

import simpy

#: What the supervisor does while it does one thing: a generator of events to wait for.
Activity = Generator[simpy.Event, Any, None]

#: ``Hub.fire_timers``: how many timers one turn runs, and the longest and the default wait.
MAX_TIMERS = 10
MAX_WAIT_S = 10.0
DEFAULT_WAIT_S = 1.0


class Source(Protocol):
    """Something that can become readable: the broker's socket, a child's pipe, a child's exit."""

    def has_data(self) -> bool:
        """Whether there is a message to read."""
        ...

    def handle(self) -> Activity:
        """Read and handle one message."""
        ...


class Writer(Protocol):
    """What the hub's ``on_tick`` and ``consolidate_callback`` belong to: the pool."""

    def wants_to_write(self) -> bool:
        """``on_poll_start``: whether some child's pipe is to be watched for writing."""
        ...

    def write(self) -> Activity:
        """``schedule_writes``: write jobs to the children."""
        ...


class Timer:
    """An entry of the timer. ``cancelled`` entries do nothing."""

    __slots__ = ("action", "cancelled")

    def __init__(self, action: Callable[[], Activity]) -> None:
        self.action = action
        self.cancelled = False


class Supervisor:
    """The loop, and what is waiting for it."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._readable: dict[Source, None] = {}  # in the order they became readable
        self._soon: list[Callable[[], Activity | None]] = []
        self._timers: list[tuple[float, int, Timer]] = []
        self._serial = 0
        self._poll: simpy.Event | None = None  # waited for while nothing can be read
        self._poll_until = 0.0
        self._alarms: list[float] = []  # times of the wake-ups under way, a heap

    def run(self, pool: Writer) -> Activity:
        """The loop itself, without end."""
        readable = self._readable
        while True:
            soon, self._soon = self._soon, []
            for callback in soon:
                activity = callback()
                if activity is not None:
                    yield from activity
            if self._timers and self._timers[0][0] <= self._env.now:
                yield from self._fire_timers()
            writing = pool.wants_to_write()
            if not readable and not writing:
                yield self._wait()
            for source in tuple(readable):
                if readable.pop(source, self) is self:
                    continue  # its fd was closed meanwhile
                if source.has_data():
                    yield from source.handle()
                    if source.has_data():
                        readable[source] = None
            if writing:
                yield from pool.write()

    # what becomes readable

    def notify(self, source: Source) -> None:
        """``source`` can be read; wakes the loop if it waits."""
        self._readable[source] = None
        if self._poll is not None:
            self._wake()

    def forget(self, source: Source) -> None:
        """``source`` is closed or empty (``hub.remove_reader``)."""
        self._readable.pop(source, None)

    def call_soon(self, callback: Callable[[], Activity | None]) -> None:
        """Run ``callback`` at the start of the next turn. Does not wake the loop."""
        self._soon.append(callback)

    # timers

    def call_later(self, delay_s: float, action: Callable[[], Activity]) -> Timer:
        """Run ``action`` once, ``delay_s`` seconds from now or as soon after as the loop can."""
        timer = Timer(action)
        self._enter(delay_s, timer)
        return timer

    def call_repeatedly(
        self, period_s: float, action: Callable[[], Activity], first_s: float | None = None
    ) -> Timer:
        """Run ``action`` every ``period_s`` seconds, the first time after ``first_s``.

        ``first_s`` is one period unless given.

        As ``Timer.call_repeatedly``: it enters itself anew when ``action`` has
        returned, so every delay shifts all later runs.
        """

        def run() -> Activity:
            yield from action()
            if not timer.cancelled:
                self._enter(period_s, timer)

        timer = Timer(run)
        self._enter(period_s if first_s is None else first_s, timer)
        return timer

    def _enter(self, delay_s: float, timer: Timer) -> None:
        self._serial += 1
        heappush(self._timers, (self._env.now + delay_s, self._serial, timer))

    def _fire_timers(self) -> Activity:
        for _ in range(MAX_TIMERS):
            if not self._timers or self._timers[0][0] > self._env.now:
                return
            timer = heappop(self._timers)[2]
            if not timer.cancelled:
                yield from timer.action()

    # waiting

    def _wait(self) -> simpy.Event:
        """The event of ``poll`` returning: something is readable, or its time is up."""
        now = self._env.now
        timers = self._timers
        self._poll_until = min(timers[0][0], now + MAX_WAIT_S) if timers else now + DEFAULT_WAIT_S
        self._poll = self._env.event()
        self._set_alarm()
        return self._poll

    def _set_alarm(self) -> None:
        # An alarm that rings earlier sets the next one: cheaper than one alarm for every poll.
        if not self._alarms or self._alarms[0] > self._poll_until:
            heappush(self._alarms, self._poll_until)
            alarm = self._env.timeout(max(self._poll_until - self._env.now, 0.0))
            alarm.callbacks.append(self._ring)

    def _ring(self, _: simpy.Event) -> None:
        heappop(self._alarms)
        if self._poll is not None:
            if self._poll_until <= self._env.now:
                self._wake()
            else:
                self._set_alarm()

    def _wake(self) -> None:
        poll, self._poll = self._poll, None
        assert poll is not None
        poll.succeed()
