"""What carries a log line: docker compose, syslog, CRI, viewers, terminals.

Each wrapper is taken off, outermost first, and its name for the worker and
its own stamp are kept. A wrapper's clock is not the log's (often UTC beside
local time), so the stamp inside wins where there is one.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Wrapped(NamedTuple):
    """A line without its wrappers.

    ``worker`` is what they call its origin (``worker-1``, ``host/celery``;
    ``""`` without a name), ``outer`` the outermost stamp as printed (``""``
    without), ``partial`` says that the line goes on in the next (CRI's ``P``).
    """

    worker: str
    outer: str
    text: str
    partial: bool = False


_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_SYSLOG = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
_NAME = r"[\w./@:-]{1,120}?"
# What may follow a wrapper that could also be the record's own beginning.
_INNER = r"(?=\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\{\")"

# "2026-08-22 21:53:21 INFO celery.app.trace: text" is a layout, no wrapper.
_NO_LEVEL = r"(?!(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b)"

_WRAPPERS = [
    re.compile(pattern, re.DOTALL)
    for pattern in [
        # CRI (containerd, CRI-O): 2026-03-02T08:15:01.204512345Z stderr F text
        rf"(?P<outer>{_ISO}) (?:stdout|stderr) (?P<flag>[PF])(?: (?P<text>.*)|$)",
        # Heroku: 2026-04-08T18:11:08.123456+00:00 app[worker.1]: text
        rf"(?P<outer>{_ISO}) (?P<name>\w+\[[\w.-]+\]): (?P<text>.*)",
        # syslog, journald, papertrail: Mar 02 08:15:01 host celery[812]: text
        rf"(?P<outer>{_SYSLOG}|{_ISO}) {_NO_LEVEL}(?P<host>{_NAME}) (?P<name>{_NAME})(?:\[\d+\])?:"
        r"(?: (?P<text>.*)|$)",
        # foreman, honcho: 08:15:01 worker.1 | text
        rf"(?P<outer>\d\d:\d\d:\d\d) (?P<name>{_NAME})\s*\|(?: (?P<text>.*)|$)",
        # a viewer's stamp: 2026-05-20 15:07:46 | text
        rf"(?P<outer>{_ISO})\s+\| {_INNER}(?P<text>.*)",
        # docker compose: worker_1  | text
        rf"(?P<name>[A-Za-z]{_NAME})\s*\|(?: (?P<text>.*)|$)",
        # kubectl logs --prefix: [pod/worker-7d9f/celery] text
        r"\[(?P<name>pod/[\w./-]{1,200})\] (?P<text>.*)",
        # log services: [2026-06-09 16:20:00.942315] [abcde] [c2] [2026-...
        rf"\[(?P<outer>{_ISO})\] (?:\[(?P<host>[\w.-]+)\] )?\[(?P<name>[\w.-]+)\] "
        rf"{_INNER}(?P<text>.*)",
        # docker logs -t: 2026-03-02T08:15:01.204512345Z [2026-...
        rf"(?P<outer>{_ISO}) {_INNER}(?P<text>.*)",
        # grep -Hn: worker.log:12:[2026-...
        rf"(?:(?P<name>[\w./-]{{1,200}}\.\w+):)?(?:\d{{1,9}}[:-])?{_INNER}(?P<text>.+)",
    ]
]
_MAX_DEPTH = 4

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Copied from a terminal or passed through syslog, the escape character is gone or spelled out.
_BARE_COLOUR = re.compile(
    r"(?:#033|\\x1b|\\033|\\u001b|\^\[|␛)?\[(?:[0-9]{1,2}(?:;[0-9]{1,3}){0,4})?m"
)
_COLOUR_END = re.compile(r"(?:#033|\\x1b|\\033|\\u001b|\^\[|␛)?\[(?:0|39|49)?m\s*\Z")
_TAIL = re.compile(r"==> (.{1,300}) <==\s*$")


def unwrap(text: str) -> Wrapped:
    """Take the wrappers and the colours off a line."""
    text = uncolour(text)
    names: list[str] = []
    outer = ""
    partial = False
    for _ in range(_MAX_DEPTH):
        match = next((m for pattern in _WRAPPERS if (m := pattern.match(text))), None)
        if match is None or match["text"] == text:
            break
        groups = match.groupdict()
        names += [name for key in ("host", "name") if (name := groups.get(key))]
        outer = outer or groups.get("outer") or ""
        partial = partial or groups.get("flag") == "P"
        text = uncolour(match["text"] or "")
    return Wrapped("/".join(names), outer, text, partial)


def uncolour(text: str) -> str:
    """The text without terminal colours, also those that lost their escape character."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if match := _BARE_COLOUR.match(text):
        text = text[match.end() :]
    if "m" in text[-8:].rstrip() and (match := _COLOUR_END.search(text, max(0, len(text) - 40))):
        text = text[: match.start()]
    return text


def tail_file(text: str) -> str:
    """The file ``tail`` announces with ``==> file <==``; ``""`` if the line is none."""
    match = _TAIL.match(text)
    return match[1] if match else ""
