"""The consumer: what happens to a message from its frames to the pool, and to its ack.

Models ``celery/worker/consumer/consumer.py``, ``celery/worker/strategy.py`` and
``celery/worker/request.py`` (5.6.3), the reader of ``kombu/transport/base.py``
(5.6.2), and the autoscaler's place in them. The order for each message is: log
"received", mark as reserved, ``maybe_scale``, hand over to the pool; so the
first message of a batch is counted before any of it runs. Acknowledgements are
put off with ``call_soon`` to the next turn of the loop.

Leaves out: ETA, rate limits, revokes, expiry, retries.
Invariant: ``reserved`` counts every job received and not finished, running ones
included.
"""

from __future__ import annotations

from collections import deque
from functools import partial

import simpy

from celerysim.engine.autoscaler import Policy, ScaleState
from celerysim.engine.broker import Broker
from celerysim.engine.job import Job
from celerysim.engine.machine import Machine
from celerysim.engine.pool.base import Pool
from celerysim.engine.recorder import Recorder
from celerysim.engine.supervisor import Activity, Supervisor
from celerysim.history import Level, Outcome, Trigger
from celerysim.scenario.schema import Scenario

#: ``celery/worker/loops.py: _quick_drain``: the loop's first turn waits this long for a message.
QUICK_DRAIN_S = 0.1


class Consumer:
    """The worker's end of the queue; a :class:`~celerysim.engine.supervisor.Source`."""

    def __init__(
        self,
        env: simpy.Environment,
        scenario: Scenario,
        machine: Machine,
        broker: Broker,
        supervisor: Supervisor,
        recorder: Recorder,
        policy: Policy | None,
    ) -> None:
        self._env = env
        self._worker = scenario.worker
        self._receive_s = scenario.costs.receive_s
        self._deliver_s = scenario.costs.deliver_s
        self._ack_s = scenario.costs.ack_s  # in pools of one process
        self._machine = machine
        self._broker = broker
        self._supervisor = supervisor
        self._recorder = recorder
        self._policy = policy
        self._last_scale_up: float | None = None
        self._socket: deque[Job] = deque()
        self._arrival: simpy.Event | None = None  # waited for by quick_drain only
        self._pool: Pool
        self.reserved = 0

    def start(self, pool: Pool) -> None:
        """``asynloop`` up to its loop: register timers, consume, say "ready"."""
        self._pool = pool
        pool.register_with_event_loop(self._supervisor)
        if self._policy is not None:
            self._supervisor.call_repeatedly(
                self._worker.keepalive, partial(self._maybe_scale, Trigger.TIMER)
            )
        self._supervisor.call_soon(self._update_qos)
        self._supervisor.call_soon(self._quick_drain)
        self._broker.consume(self._deliver)
        self._recorder.level(Level.RESERVED, 0)

    # messages come in

    def _deliver(self, job: Job) -> None:
        """A message's frames can be read."""
        self._socket.append(job)
        self._supervisor.notify(self)
        if self._arrival is not None:
            self._arrival.succeed()
            self._arrival = None

    def has_data(self) -> bool:
        """Whether the socket holds a message."""
        return bool(self._socket)

    def handle(self) -> Activity:
        """``Transport.on_readable``: read one message, and try again at the next turn."""
        yield from self._receive()
        self._supervisor.call_soon(self._read)

    def _read(self) -> Activity | None:
        # Each success puts off another try, beside what poll reports: a burst is read faster
        # with every turn (kombu/transport/base.py: _make_reader).
        return self.handle() if self._socket else None

    def _update_qos(self) -> Activity:
        """Before its first turn the loop sets the prefetch count, since ``QoS.prev`` is None.

        ``basic.qos`` waits for its answer by draining events: what was delivered meanwhile is
        handled inside this wait, forks included.
        """
        yield self._env.timeout(self._deliver_s)
        for _ in range(len(self._socket)):
            yield from self._receive()

    def _quick_drain(self) -> Activity:
        """The first turn reads one message, or blocks for a tenth of a second.

        No child's "up" is read before, so nothing is dispatched either.
        """
        if not self._socket:
            self._arrival = self._env.event()
            yield self._arrival | self._env.timeout(QUICK_DRAIN_S)
            self._arrival = None
        if self._socket:
            yield from self._receive()

    def _receive(self) -> Activity:
        job = self._socket.popleft()
        if not self._socket:
            self._supervisor.forget(self)
        if self._receive_s:
            yield self._machine.work(self._receive_s)
        self._recorder.received(job.index)
        self._set_reserved(self.reserved + 1)
        if self._policy is not None:
            yield from self._maybe_scale(Trigger.MESSAGE)
        self._pool.process_task(job)

    # the autoscaler

    def _maybe_scale(self, trigger: Trigger) -> Activity:
        """``Autoscaler.maybe_scale``: decide, scale, maintain the pool."""
        pool = self._pool
        assert self._policy is not None
        state = ScaleState(pool.num_processes, self.reserved, self._last_scale_up)
        decision = self._policy(state, self._env.now)
        self._last_scale_up = decision.last_scale_up
        if decision.change:
            # the log line comes first, and says what is asked for, not what will be done
            self._recorder.scaled(decision.change, trigger, pool.num_processes, self.reserved)
            if decision.change > 0:
                pool.grow(decision.change)
            else:
                pool.shrink(-decision.change)
        if decision.maintain:
            yield from pool.maintain_pool()

    # what the pool reports

    def on_accepted(self, job: Job) -> None:
        """A child has accepted the job: with early acks, the message is acknowledged."""
        if not self._worker.task_acks_late:
            self._acknowledge(job)

    def on_done(self, job: Job) -> None:
        """The job has its result, or failed: ``on_success``, ``on_failure``, ``on_timeout``."""
        self._set_reserved(self.reserved - 1)
        if self._worker.task_acks_late:
            self._acknowledge(job)

    def on_lost(self, job: Job) -> None:
        """The job's child was lost: ``on_failure`` with ``WorkerLostError``."""
        self._set_reserved(self.reserved - 1)
        late = self._worker.task_acks_late
        if late and self._worker.task_reject_on_worker_lost and not job.acknowledged:
            job.acknowledged = True
            self._recorder.requeued(job.index)
            self._supervisor.call_soon(partial(self._requeue, job))
            return
        self._recorder.finished(job.index, Outcome.LOST)
        if late:  # acks_on_failure_or_timeout, Celery's default: the task will not run again
            self._acknowledge(job)

    def _acknowledge(self, job: Job) -> None:
        if not job.acknowledged:
            job.acknowledged = True
            self._supervisor.call_soon(partial(self._broker.ack, job))

    def _requeue(self, job: Job) -> None:
        job.reset()
        self._broker.requeue(job)

    def _set_reserved(self, value: int) -> None:
        self.reserved = value
        self._recorder.level(Level.RESERVED, value)
