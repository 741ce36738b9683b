"""The broker: messages ready in the queue, messages unacknowledged at the consumer.

Models a RabbitMQ classic queue with one consumer and ``basic.qos``: messages
are delivered in order, never more than ``prefetch_count`` unacknowledged at
once (0: no limit); a rejected message goes back to its place at the head of
the queue. Leaves out: other consumers, persistence, flow control, connections.
Invariant: ``unacked <= prefetch_count``, and every message is ready, unacked or
gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import simpy

from celerysim.engine.job import Job
from celerysim.engine.recorder import Recorder
from celerysim.history import Level


class Broker:
    """One queue.

    ``deliver`` is called with each message when its frames can be read by the
    consumer, ``deliver_s`` seconds after the broker sent it.
    """

    def __init__(
        self, env: simpy.Environment, recorder: Recorder, prefetch_count: int, deliver_s: float
    ) -> None:
        self._env = env
        self._recorder = recorder
        self._prefetch_count = prefetch_count or float("inf")
        self._deliver_s = deliver_s
        self._deliver: Callable[[Job], None] | None = None
        self._ready: deque[Job] = deque()
        self._unacked = 0

    def consume(self, deliver: Callable[[Job], None]) -> None:
        """Begin to deliver (``basic.consume``)."""
        self._deliver = deliver
        self._fill()

    def publish(self, job: Job) -> None:
        """A message arrives."""
        if self._deliver is not None and self._unacked < self._prefetch_count:
            self._send(job)  # an open window means that nothing waits before it
        else:
            self._ready.append(job)
            self._recorder.level(Level.READY, len(self._ready))

    def ack(self, _: Job) -> None:
        """A message is acknowledged: it is gone, and its place in the window is free."""
        self._unacked -= 1
        self._fill()
        self._recorder.level(Level.UNACKED, self._unacked)

    def requeue(self, job: Job) -> None:
        """A message is rejected with requeue: back to the head, to be delivered again."""
        self._unacked -= 1
        self._ready.appendleft(job)
        self._fill()
        self._recorder.level(Level.UNACKED, self._unacked)

    def _fill(self) -> None:
        """Deliver what the window allows."""
        while self._ready and self._unacked < self._prefetch_count:
            self._send(self._ready.popleft())
            self._recorder.level(Level.READY, len(self._ready))

    def _send(self, job: Job) -> None:
        self._unacked += 1
        self._recorder.level(Level.UNACKED, self._unacked)
        if self._deliver_s:
            self._env.timeout(self._deliver_s, job).callbacks.append(self._arrived)
        else:
            assert self._deliver is not None
            self._deliver(job)

    def _arrived(self, event: simpy.Event) -> None:
        assert self._deliver is not None
        self._deliver(event.value)  # type: ignore[arg-type]
