"""What the worker's own work costs: defaults, and where each was measured."""

from __future__ import annotations

from celerysim.scenario.base import Duration, Model, Share


class Costs(Model):
    """What the worker's own work costs, in seconds (CPU seconds unless it says "wall").

    Defaults were measured on real Celery 5.6.3 with a minimal app; ``validation/costs`` has the
    script, the spread and the machine. A big app forks and starts its children more slowly.
    """

    deliver_s: Duration = 0.0005
    """Wall: from the broker having a message, with the prefetch window open, to its frames being
    readable by the worker."""
    receive_s: Duration = 0.000_33
    """Supervisor: one message from its frames to the log line "received" and the hand-over
    (0.25 ms: 0.54 after a pause, 0.15 in a burst), and the turn of the loop (0.08 ms)."""
    dispatch_s: Duration = 0.000_04
    """Supervisor: writing one job into a child's pipe."""
    accept_s: Duration = 0.000_15
    """Supervisor: handling one child's message that it accepted a job, the ack and the turn of the
    loop included."""
    result_s: Duration = 0.000_16
    """Supervisor: handling one result, the turn of the loop included."""
    fork_s: Duration = 0.03
    """Supervisor: one fork, nine tenths of it ``gc.collect()``; nothing else happens meanwhile.
    Grows with the app: 24 to 32 ms for a minimal one."""
    reap_s: Duration = 0.0205
    """Wall, supervisor: reaping one exited child. ``process_flush_queues`` waits 10 ms for a pipe
    that never closes, twice (celery/concurrency/asynpool.py)."""
    child_start_s: Duration = 0.005
    """Child: from its fork until it reports that it is up."""
    child_accept_s: Duration = 0.000_26
    """Child: waking up, reading a job, reporting that it accepted it, and beginning it."""
    child_report_s: Duration = 0.0003
    """Child: logging and sending the result after a task."""
    child_term_s: Duration = 0.000_25
    """Child: from SIGTERM to its message that it is leaving."""
    child_exit_s: Duration = 0.003
    """Child: from the second SIGTERM, or the end of the process, to the supervisor's sentinel;
    the kernel frees its memory, so a big app takes longer."""
    task_start_s: Duration = 0.0002
    """Green, threads, solo: starting a task in the worker's own process, up to its first step."""
    task_end_s: Duration = 0.0003
    """Green, threads, solo: from the log line "succeeded" to the acknowledgement's being queued."""
    ack_s: Duration = 0.000_05
    """Green, threads, solo: writing one acknowledgement (prefork: within ``accept_s``)."""
    backend_s: Duration = 0.0015
    """Green: making the result backend anew at the end of every task, before "succeeded". Celery
    keeps one a thread (celery/app/base.py: Celery.backend), and a greenlet counts as a thread;
    it looks for plug-ins in all installed distributions, about 25 microseconds each."""
    hub_wakeup_s: Duration = 0.000_02
    """Green: one turn of the hub (validation/green_hubs)."""
    hub_waiting_s: Duration = 0.000_000_25
    """Green: added to a turn of the hub for each greenlet in ``io_s``, with ``worker.hub`` ``poll``
    or ``select`` (as if each waited for a socket); ``epoll`` does not grow."""
    exit_missed_share: Share = 0.0
    """Share of exits whose event the supervisor handles before the kernel lets it reap the child.
    The child then stays in the pool until something else maintains it (at most 5 s): 0.26 to 0.5
    on a small virtual machine, none seen in logs of a machine with real cores."""
    child_rss_kib: Duration = 60_000.0
    """Resident memory of a child that has just started (KiB)."""
