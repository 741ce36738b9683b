"""The grammar of Celery's own messages, from 3.0 to 5.6: one record in, one event out.

Where a message is made: ``celery/worker/strategy.py`` (received),
``celery/worker/request.py`` (accepted, limits, handler errors),
``celery/app/trace.py`` (succeeded, raised, retry), ``celery/worker/autoscale.py``
(scaling), ``billiard/pool.py`` (exits, memory), ``celery/apps/worker.py``
(ready, shutdown). :mod:`celerysim.trace.banner` reads what has no stamp.
"""

from __future__ import annotations

import re

from celerysim.trace import events as ev
from celerysim.trace.layouts import Record
from celerysim.trace.structured import structured_event


def parse(record: Record) -> ev.Event | None:
    """The event a stamped record tells of.

    A record whose text is not Celery's is :class:`~celerysim.trace.events.Output`.
    None means: it begins as one of Celery's task messages and does not go on
    as one (a cut or spliced line), so what it says is not known.
    """
    text = record.text
    if record.fields and (event := structured_event(record)):
        return event
    # Redirected prints are warnings, and may say anything; structured records are no prints.
    printed = record.level == "WARNING" and not record.fields
    grammar = _WARNINGS if printed else _GRAMMAR
    for start, pattern, make in grammar:
        if text.startswith(start) and (match := pattern.match(text)):
            return make(record, match)
    if not printed and _is_torn(text):
        return None
    if not (printed and _CHILD.search(record.process)) and _NOTES.match(text):
        return ev.Note(record.time, record.worker, record.process, text)
    return ev.Output(record.time, record.worker, record.process, text)


def is_open(record: Record, event: ev.Event) -> bool:
    """Whether lines without a stamp may belong to this record (a traceback, a long text)."""
    if isinstance(event, ev.Note):
        return record.level not in ("DEBUG", "INFO") or bool(_LONG_NOTES.match(event.text))
    if isinstance(event, ev.Succeeded):
        return not is_complete(record.text.partition("s: ")[2])
    return isinstance(
        event, ev.Applied | ev.Output | ev.Failed | ev.Retried | ev.HandlerError | ev.ConnectionLost
    )


def is_complete(result: str) -> bool:
    """Whether a success line's result is whole as printed: no further line belongs to it."""
    return bool(_WHOLE.fullmatch(result.strip()))


#: Seconds as Python prints a float; the bounds keep garbage finite.
NUMBER = r"(\d{1,12}(?:\.\d{1,25})?(?:e[+-]?\d{1,2})?)"
_TASK = r"([^\[]{1,300})\[([^\]]{1,300})\]"

_SUCCEEDED = re.compile(rf"succeeded in {NUMBER}s(?::|\s*$)")
_FAILED = re.compile(
    r"raised (?:unexpected|expected|exception):|INTERNAL ERROR:|ignored\s*$|reject"
)
_JOB = re.compile(r"Job: (\d{1,15})\.?['\"]?,?\)\s*$")
_WHOLE = re.compile(
    r"None|True|False|-?[\d.]+(?:e[+-]?\d+)?|u?b?'[^\n]*'|u?b?\"[^\n]*\"|[\w.]*\(.*\)|\[.*\]|\{.*\}|<.*>|",
    re.DOTALL,
)

# What may stand after "Task name[id] "; a shorter piece of one is a torn line.
_TASK_WORDS = ("received", "succeeded in ", "raised unexpected: ", "retry: ", "INTERNAL ERROR: ")
_TORN = re.compile(
    r"(?:Received task|Got task from broker|Task accepted):.*"
    r"|Task [^\s\[\]]+\[[^\[\]]*"
    r"|Task [^\[\]]+\[[^\[\]]+\](?: (?P<word>[A-Za-z ]*))?"
    r"|Task [^\[\]]+\[[^\[\]]+\] succeeded in .*"
    r"|Scaling(?: (?:up|down)(?: (?:-?\d+(?: p\w*)?)?)?)?",
    re.DOTALL,
)


def _is_torn(text: str) -> bool:
    match = _TORN.fullmatch(text)
    if match is None:
        return False
    word = match["word"]
    return word is None or any(w.startswith(word) for w in _TASK_WORDS)


def _received(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.Received(record.time, record.worker, match[1], match[2], match[3] or "")


def _applied(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.Applied(record.time, record.worker, match[1], match[2])


def _accepted(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.Accepted(record.time, record.worker, match[1], match[2], int(match[3]))


def _revoked(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.Revoked(record.time, record.worker, match[1], match[2])


def _succeeded(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.Succeeded(
        record.time, record.worker, record.process, match[1], match[2], float(match[3])
    )


def _failed(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.Failed(
        record.time,
        record.worker,
        record.process,
        match[1],
        match[2],
        record.text[match.start(3) :],
    )


def _retried(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.Retried(
        record.time, record.worker, record.process, match[1], match[2], match[3].strip()
    )


def _time_limit(record: Record, match: re.Match[str]) -> ev.Event:
    seconds, name, id = match.group(2, 3, 4)
    hard = match[1] == "Hard"
    return ev.TimeLimit(record.time, record.worker, name, id, float(seconds), hard)


def _handler_error(record: Record, match: re.Match[str]) -> ev.Event:
    job = _JOB.search(record.text)
    return ev.HandlerError(record.time, record.worker, match[1], int(job[1]) if job else -1)


def _exited(record: Record, match: re.Match[str]) -> ev.Event:
    process, pid, status = match.groups()
    return ev.Exited(record.time, record.worker, process, int(pid), status.strip("'\""))


def _memory(record: Record, match: re.Match[str]) -> ev.Event:
    used, limit = int(match[1]), int(match[2])
    return ev.MemoryLimit(record.time, record.worker, record.process, used, limit)


def _scaled(record: Record, match: re.Match[str]) -> ev.Event:
    # Celery 3.1 writes "Scaling down -3 processes." when its step is negative.
    change = int(match[2])
    return ev.Scaled(record.time, record.worker, change if match[1] == "up" else -change)


def _ready(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.Ready(record.time, record.worker, match[1])


def _connection_lost(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.ConnectionLost(record.time, record.worker)


def _prefetch(record: Record, match: re.Match[str]) -> ev.Event:
    return ev.Prefetch(record.time, record.worker, int(match[1]))


#: How a text begins, the whole pattern, and what makes the event; the first that matches decides.
_GRAMMAR = [
    (start, re.compile(pattern, re.DOTALL), make)
    for start, pattern, make in [
        ("Task ", rf"Task {_TASK} received()\s*$", _received),
        ("Task ", rf"Task {_TASK} {_SUCCEEDED.pattern}", _succeeded),
        ("Task ", rf"Task {_TASK} ({_FAILED.pattern})", _failed),
        ("Task ", rf"Task {_TASK} retry:(.*)", _retried),
        ("Task accepted", rf"Task accepted: {_TASK} pid:(\d{{1,10}})\s*$", _accepted),
        ("TaskPool: ", r"TaskPool: Apply <[^>]*> \(args:\('([^']+)', '([^']+)', ", _applied),
        ("Task handler", r"Task handler raised error: (?:<[^>]*>|([\w.]*))", _handler_error),
        (
            "",
            rf"(?:Received task|Got task from broker): {_TASK}"
            r"(?:\s+(?:eta|ETA):\[([^\]]*)\])?(?:\s+expires:\[[^\]]*\])?\s*$",
            _received,
        ),
        ("Scaling ", r"Scaling (up|down) (-?\d{1,9}) processes\.\s*$", _scaled),
        ("", rf"(?:Discarding|Skipping) revoked task: {_TASK}", _revoked),
        ("", rf"(Soft|Hard) time limit \({NUMBER}s\) exceeded for {_TASK}", _time_limit),
        ("Process ", r"Process u?'([^']*)' pid:(\d{1,10}) exited with (.*)", _exited),
        (
            "child process",
            r"child process exiting after exceeding memory limit \((\d{1,15})KiB / (\d{1,15})KiB\)",
            _memory,
        ),
        ("", r"(\S{1,255}) ready\.\s*$", _ready),
        ("", r"(?:consumer: )?Connection to broker lost", _connection_lost),
        ("basic.qos", r"basic\.qos: prefetch_count->(\d{1,9})\s*$", _prefetch),
    ]
]

#: What Celery says at level WARNING (a rejected task is one of the failed).
_WARNINGS = [
    entry for entry in _GRAMMAR if entry[2] in (_failed, _memory, _time_limit, _connection_lost)
]
_CHILD = re.compile(r"Worker-\d+$")

# Notes that spread over several lines even at INFO.
_LONG_NOTES = re.compile("Temporarily reducing|Resuming normal|TaskPool: Apply|Dumping graph")

#: Celery's, kombu's and billiard's other messages: understood, without effect.
_NOTES = re.compile(
    r"mingle: |Connected to |pidbox|consumer: |missed heartbeat from|sync with|TaskPool: Apply"
    r"|Timer wake-?up|basic\.qos|QoS: |Temporarily reducing the prefetch|Resuming normal operations"
    r"|Timed out waiting for UP message|Unrecoverable error|Autoscaler|won't scale down"
    r"|Started consuming from|Cancell?ing (?:queue|task consumer|broadcast)"
    r"|Closing (?:consumer|broadcast)|Waiting for broadcast|Terminating "
    r"|Tasks? flagged as revoked|Rate limit|New (?:rate|time) limit"
    r"|Events of group|Heartbeat requested|Dumping graph|Substantial drift|Trying again "
    r"|Global QoS is disabled|Received and deleted unknown|Received (?:unregistered|invalid) task"
    r"|Can't decode message|Couldn't (?:convert ETA|ack|reject)|Initiating Soft Shutdown"
    r"|Restoring \d+ unacknowledged|Process cleanup failed|\| (?:Worker|Consumer): |\^-- substep"
    r"|\S+@\S+ (?:joined the party|left)|I won the election|node \S+ elected|Start from server"
    r"|Open OK|using channel_id|Channel open|Closed channel|heartbeat_tick|beat: |\w*Scheduler: "
    r"|Task \S+ cannot be acknowledged|Will retry using next|Pool callback raised|process with pid="
    r"|Supervisor: |worker got |result handler|task handler|timeout: |celery worker"
)
