"""The interpreter lock: one thread computes, the others wait for their turn.

Models ``Python/ceval_gil.c`` (CPython 3.11; 3.13 is alike) for threads that compute in
Python. A thread that wants the lock and does not get it waits; when it has waited for the
switch interval (``sys.getswitchinterval()``, 5 ms) and the lock has not changed hands
meanwhile, it asks the holder to drop it, and the holder does not get it back before
another thread has had it. A thread that stops computing lets it go.

Who gets it next is decided by the C library's condition variable, and is neither first
come, first served nor even: two threads pass it to and fro for a while, and the others
wait (:data:`BACK_AGAIN_SHARE`). So threads that begin together do not end together, and a
thread that has just a moment's work, the event loop's above all, waits some turns of 5 ms.

A thread lets the lock go for each system call too. The call is over in microseconds and
the waiter that is to get the lock takes longer to wake up, so mostly the thread takes it
back. Here: between two pieces of work that follow at once, such as the handling of two
messages, the lock is lost with a probability of :data:`LOST_SHARE`.

Leaves out: code that holds the lock for longer than the interval, such as an extension
that does not give it up.
Invariant: the lock is held whenever somebody wants it, but for the moment a waiter wakes up.
"""

from __future__ import annotations

import simpy
from simpy.events import Timeout

from celerysim.engine.machine import RESOLUTION_S, Machine, Work
from celerysim.engine.streams import Streams

#: ``sys.getswitchinterval()``.
SWITCH_INTERVAL_S = 0.005
#: Share of turns after which the lock goes back to the thread that had it before, when the turn
#: before went back too, and when it did not; else any of the other waiters gets it. Of 3, 4 and 5
#: threads that only computed (CPython 3.11, glibc 2.36): 0.81, 0.64, 0.43 and 0.15, 0.14, 0.12.
BACK_AGAIN_SHARE = 0.65
BACK_SHARE = 0.14
#: Share of hand-overs between two messages at which a waiter gets the lock: in three runs of a
#: worker with eight busy threads 157 of 588 messages came 4 ms or more after the one before.
LOST_SHARE = 0.27
#: Seconds a waiter takes to wake up when the lock is let go.
WAKE_UP_S = 0.000_06


class InterpreterLock(Machine):
    """A machine of one core that one thread after the other holds."""

    def __init__(self, env: simpy.Environment, streams: Streams, speed: float = 1.0) -> None:
        super().__init__(env, 1, speed)
        self._uniforms = streams.sequence("interpreter lock")
        self._holder: Work | None = None
        self._left = 0.0  # of the holder's piece, CPU seconds, at _since
        self._since = env.now  # when the holder got the lock, or was last looked at
        self._taken = env.now  # when it got it
        self._waiting: list[tuple[Work, float, float]] = []  # piece, CPU seconds, since when
        self._before: Work | None = None  # who had the lock before the holder, and wants it back
        self._to_and_fro = False  # whether the holder got it back
        self._turn = 0  # alarms of earlier turns ring for nothing
        self._busy = 0.0

    @property
    def busy_core_s(self) -> float:
        """Core-seconds spent computing so far."""
        held = self._env.now - self._since if self._holder is not None else 0.0
        return self._busy + held

    def begin(self, piece: Work, cpu_s: float) -> None:
        """Start ``cpu_s`` seconds of work as soon as the lock can be had."""
        if self._holder is None:
            self._take(piece, cpu_s)
        else:
            self._waiting.append((piece, cpu_s, self._env.now))
            if len(self._waiting) == 1:
                self._set_alarm()

    def withdraw(self, piece: Work) -> None:
        """Take unfinished work away. (Threads cannot be killed; a run may end, though.)"""
        if piece.triggered or piece.withdrawn:
            return
        piece.withdrawn = True
        if piece is self._holder:
            self._pass_on()
        else:
            self._waiting = [entry for entry in self._waiting if entry[0] is not piece]

    def _take(self, piece: Work, cpu_s: float) -> None:
        self._holder, self._left = piece, cpu_s
        self._since = self._taken = self._env.now
        self._set_alarm()

    def _set_alarm(self) -> None:
        """Ring when the holder is done, or when a waiter asks it to drop the lock."""
        self._account()
        wait = max(self._left, 0.0) / self._speed  # its end may be due, and a last bit off
        if self._waiting:
            asked = max(self._taken, self._waiting[0][2]) + SWITCH_INTERVAL_S
            wait = min(wait, max(asked - self._env.now, 0.0))
        self._turn += 1
        turn = self._turn
        Timeout(self._env, wait).callbacks.append(lambda _: self._look(turn))

    def _account(self) -> None:
        if self._holder is None:
            self._since = self._env.now
        elapsed = self._env.now - self._since
        self._left -= elapsed * self._speed
        self._busy += elapsed
        self._since = self._env.now

    def _look(self, turn: int) -> None:
        """The alarm: the holder is done, or drops the lock."""
        if turn != self._turn:
            return
        self._account()
        piece = self._holder
        assert piece is not None
        if self._left <= RESOLUTION_S:
            if self._waiting and next(self._uniforms) >= LOST_SHARE:
                self._let_go()
            else:
                self._pass_on()
            piece.complete()
        else:
            left = self._left
            self._pass_on()
            self._waiting.append((piece, left, self._env.now))
            self._before = piece
            self._set_alarm()

    def _let_go(self) -> None:
        """The lock is free until the first waiter has woken up: who wants it now, gets it."""
        self._holder = None
        self._turn += 1
        turn = self._turn
        Timeout(self._env, WAKE_UP_S).callbacks.append(lambda _: self._wake(turn))

    def _wake(self, turn: int) -> None:
        if turn == self._turn and self._holder is None:
            self._pass_on()

    def _pass_on(self) -> None:
        """One of the waiters gets the lock, if there is one."""
        self._account()
        self._holder = None
        if self._waiting:
            piece, cpu_s, _ = self._waiting.pop(self._next())
            self._take(piece, cpu_s)
        else:
            self._turn += 1

    def _next(self) -> int:
        """The place of the waiter that gets the lock."""
        places = list(range(len(self._waiting)))
        if len(places) > 1:
            back = [place for place in places if self._waiting[place][0] is self._before]
            others = [place for place in places if place not in back]
            share = BACK_AGAIN_SHARE if self._to_and_fro else BACK_SHARE
            self._to_and_fro = bool(back) and next(self._uniforms) < share
            if self._to_and_fro:
                return back[0]
            places = others
        return places[int(next(self._uniforms) * len(places))] if len(places) > 1 else places[0]


__all__ = ["SWITCH_INTERVAL_S", "InterpreterLock"]
