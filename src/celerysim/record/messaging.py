"""The queue and exchanges of a recording, and the Celery app that uses them.

All are named after the run and vanish by themselves should nobody be left to
delete them: the queue with its last consumer (``auto_delete``) or, if it never
had one, after a while (``x-expires``); the exchanges with their last binding.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from celerysim.record.job import Job

#: The queue disappears after this long (ms) without a consumer and without anyone asking for it;
#: the recorder asks every second.
QUEUE_EXPIRES_MS = 60_000


def make_queue(job: Job) -> Any:
    """The ``kombu.Queue`` of the tasks: durable and classic, as Celery's own default queue is."""
    kombu = import_module("kombu")
    return kombu.Queue(
        job.queue,
        exchange=kombu.Exchange(job.queue, type="direct", auto_delete=True),
        routing_key=job.queue,
        durable=True,
        auto_delete=True,
        queue_arguments={"x-expires": QUEUE_EXPIRES_MS},
    )


def make_app(job: Job) -> Any:
    """The ``celery.Celery`` app of worker and publisher."""
    app = import_module("celery").Celery("celerysim", set_as_current=True)
    app.conf.update(
        broker_url=job.broker_url,
        broker_connection_retry_on_startup=True,
        task_queues=[make_queue(job)],
        task_default_queue=job.queue,
        task_create_missing_queues=False,
        task_ignore_result=True,
        # Gossip and events of other workers are frames that would wake this worker's loop.
        control_exchange=job.control_exchange,
        event_exchange=job.event_exchange,
        **job.conf,
    )
    mailbox = app.control.mailbox
    for exchange in (
        import_module("celery.events.event").event_exchange,
        mailbox.exchange,
        mailbox.reply_exchange,
    ):
        exchange.auto_delete = True
    return app
