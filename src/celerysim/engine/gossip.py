"""What wakes an idle worker: its own timers, and the events on the broker.

Models the ``Heart`` and ``Gossip`` steps of the consumer (``celery/worker/
heartbeat.py``, ``celery/worker/consumer/gossip.py``, 5.6.3) and the AMQP
heartbeat (``celery/worker/loops.py: _enable_amqheartbeats``), as far as they turn
the worker's loop, which is what lets acknowledgements out that nothing else wakes
it for. A worker with heartbeat sends an event every two seconds; a worker with
gossip receives those of all workers, its own among them, as frames on the
connection its messages come from.

When the first heartbeat is due is decided by hash seeds. ``Heart`` and ``Mingle`` both
require only ``Events``, and the steps' order comes from iterating over sets
(``celery/bootsteps.py: Blueprint._finalize_steps``), so in a third of all starts
``Heart`` comes before ``Mingle``, whose wait for replies puts its timer a second ahead.

The other workers' events come at random places within the two seconds, which are those of
the workers' starts. It matters: an event that follows another more quickly than a task is
done lets nothing out.

Leaves out: what the frames say, the CPU time they take, ``--without-mingle``; one frame that
RabbitMQ sends 30 s after the connection was opened (seen in all runs, once in each).
"""

from __future__ import annotations

import simpy

from celerysim.engine.streams import BLOCK, Streams
from celerysim.engine.supervisor import Activity, Supervisor
from celerysim.scenario.schema import Scenario

#: ``Heart.interval``, ``Gossip.interval``.
HEARTBEAT_EVERY_S = 2.0
PERIODIC_EVERY_S = 5.0
#: Share of starts in which Heart precedes Mingle: 79 of 241 values of PYTHONHASHSEED (5.6.3).
HEART_FIRST_SHARE = 1 / 3
#: ``Mingle``: ``send_hello`` waits a second for replies, and is a little longer about it.
MINGLE_S = 1.01
#: RabbitMQ's proposal of 60 seconds (below Celery's 120) over ``broker_heartbeat_checkrate`` 3.0.
AMQP_HEARTBEAT_EVERY_S = 20.0


class Gossip:
    """Event frames to be read; a :class:`~celerysim.engine.supervisor.Source`."""

    def __init__(
        self,
        env: simpy.Environment,
        scenario: Scenario,
        supervisor: Supervisor,
        streams: Streams,
    ) -> None:
        self._env = env
        self._heart_first = streams.uniform("steps", 0)[0] < HEART_FIRST_SHARE
        self._worker = scenario.worker
        others = scenario.broker.gossiping_workers
        self._phases_s = [HEARTBEAT_EVERY_S * u for u in _uniforms(streams, others)]
        self._deliver_s = scenario.costs.deliver_s
        self._supervisor = supervisor
        self._frames = 0

    def start(self) -> None:
        """Set the timers; the other workers are there already."""
        self._supervisor.call_repeatedly(AMQP_HEARTBEAT_EVERY_S, self._only_wake)
        first_s = HEARTBEAT_EVERY_S - (MINGLE_S if self._heart_first else 0.0)
        if self._worker.heartbeat:
            self._supervisor.call_repeatedly(HEARTBEAT_EVERY_S, self._send_heartbeat, first_s)
        if self._worker.gossip:
            self._supervisor.call_repeatedly(PERIODIC_EVERY_S, self._only_wake)
            for phase_s in self._phases_s:
                self._env.process(self._other(phase_s))

    def has_data(self) -> bool:
        """Whether a frame can be read."""
        return self._frames > 0

    def handle(self) -> Activity:
        """Read one frame."""
        self._frames -= 1
        yield from ()

    def _send_heartbeat(self) -> Activity:
        if self._worker.gossip:
            arrival = self._env.timeout(self._deliver_s)
            arrival.callbacks.append(lambda _: self._arrive())
        yield from ()

    def _only_wake(self) -> Activity:
        yield from ()

    def _other(self, phase_s: float) -> Activity:
        """Another worker: a heartbeat every two seconds."""
        yield self._env.timeout(phase_s)
        while True:
            self._arrive()
            yield self._env.timeout(HEARTBEAT_EVERY_S)

    def _arrive(self) -> None:
        self._frames += 1
        self._supervisor.notify(self)


def _uniforms(streams: Streams, count: int) -> list[float]:
    """``count`` uniform numbers; the first n are the same for any larger count."""
    blocks = [streams.uniform("gossip", block) for block in range(-(-count // BLOCK))]
    return [float(u) for block in blocks for u in block][:count]
