"""The blocking loop, and the consumer that runs in it.

Models ``celery/worker/loops.py: synloop`` (5.6.3), which green workers run in
their main greenlet: write the pending acknowledgements, newest first
(``Consumer.perform_pending_operations``), then ``drain_events(timeout=2.0)``,
which returns after one message or event frame, or when the time is up. So an
acknowledgement waits for the next frame, and when the prefetch window is full
for the time-out or another worker's event. The autoscaler runs in a greenlet of
its own, once a second (``celery/worker/autoscale.py: Autoscaler.body``), not on
messages.

Leaves out: AMQP heartbeats, which restart the drain's two seconds at most every
half a minute, on an idle connection.
Invariant: acknowledgements are written between two drains only.
"""

from __future__ import annotations

from functools import partial

import simpy

from celerysim.engine.hub import Hub
from celerysim.engine.in_process import InProcessConsumer, InProcessPool
from celerysim.engine.pool.base import Pool
from celerysim.engine.supervisor import Activity, Source, Supervisor, Timer, Writer
from celerysim.history import Level, Trigger

#: ``synloop``: how long a drain waits.
DRAIN_TIMEOUT_S = 2.0
#: ``Autoscaler.body``: the seconds it sleeps.
AUTOSCALE_EVERY_S = 1.0


class BlockingLoop(Supervisor):
    """The worker's main greenlet; takes the event loop's place for consumer and timers."""

    def __init__(self, env: simpy.Environment, hub: Hub) -> None:
        super().__init__(env)
        self._hub = hub

    def run(self, _: Writer) -> Activity:
        """Run the hub, with the loop as its first greenlet."""
        self._hub.spawn(self._synloop())
        return self._hub.run()

    def notify(self, source: Source) -> None:
        """``source`` has a frame on the broker's socket."""
        self._readable[source] = None
        self._hub.notify()

    def _enter(self, delay_s: float, timer: Timer) -> None:
        """The pool's ``Timer``: each entry is a greenlet (``spawn_later``, ``spawn_after``)."""
        self._hub.enter(delay_s, timer)

    def _synloop(self) -> Activity:
        while True:
            while self._soon:
                activity = self._soon.pop()()
                if activity is not None:
                    yield from activity
            yield from self._drain_events()

    def _drain_events(self) -> Activity:
        """Handle one frame, or wait in vain."""
        if not self._readable and not (yield from self._hub.wait_readable(DRAIN_TIMEOUT_S)):
            return
        source = next(iter(self._readable))
        del self._readable[source]
        yield from source.handle()
        if source.has_data():
            self._readable[source] = None


class GreenConsumer(InProcessConsumer):
    """The consumer of a worker with a blocking loop."""

    def start(self, pool: Pool) -> None:
        """``synloop`` up to its loop, and the autoscaler's thread."""
        assert isinstance(pool, InProcessPool)
        self._pool = pool
        if self._policy is not None:
            self._supervisor.call_repeatedly(
                AUTOSCALE_EVERY_S, partial(super()._maybe_scale, Trigger.TIMER)
            )
        self._broker.consume(self._deliver)
        self._recorder.level(Level.RESERVED, 0)

    def handle(self) -> Activity:
        """``drain_events`` returns after one message."""
        return self._receive()

    def _maybe_scale(self, _: Trigger) -> Activity:
        """No ``on_task_message``: ``register_with_event_loop`` is for event loops."""
        yield from ()
