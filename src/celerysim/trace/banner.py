"""The lines a worker prints without a stamp: the start-up banner, shutdown, tracebacks."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from celerysim.trace import events as ev

# The letters "celery" are drawn with these at the left of the first ten banner lines.
_ART = r" ?-[-* ]{4,16}"
_BANNER = re.compile(
    rf"(?:{_ART}(?=\s|\[|$)|\s*(?=\.>|->|\. \S)|\s*(?=\[(?:config|queues|tasks)\]))(?P<content>.*)",
    re.DOTALL,
)
_VERSION = re.compile(r"(\S+@\S+) v(\d[\w.]*)")
_SETTING = re.compile(
    r"(?:\.>|->) (app|transport|broker|results|concurrency|task events):\s+(.*\S)"
)
_SHUTDOWN = re.compile(r"worker: (Warm|Cold) shutdown")
_NOTES = re.compile(
    r"Restoring \d+ unacknowledged message|worker: Hitting Ctrl\+C|Waiting gracefully for cold"
    r"|Restarting celery worker|celery beat v\d"
)
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|\s+File \"|\"\"\"\s*$"
    r"|(?:The above|During handling of the above) exception"
    r"|(?:\w+\.)*\w*(?:Error|Exception|Lost|Exceeded|Interrupt|Exit|Warning)(?::|$)"
    r"|\S.*:\d+: \w*Warning: "
)

#: Pool modules whose name is not the option's (``thread`` since 4.4, ``processes`` up to 3.0).
_POOLS = {"thread": "threads", "processes": "prefork", "asynpool": "prefork"}


def parse_bare(worker: str, text: str) -> list[ev.Event] | None:
    """The events of a line Celery prints without a stamp; None if it is not such a line.

    An empty list is a line of the banner that says nothing of use.
    """
    if match := _SHUTDOWN.match(text):
        return [ev.Shutdown(math.nan, worker, match[1])]
    if _NOTES.match(text):
        return [ev.Note(math.nan, worker, "MainProcess", text)]
    if not (match := _BANNER.match(text)):
        return None
    content = match["content"].strip()
    if match := _VERSION.match(content):
        hostname, version = match.groups()
        return [
            ev.Setting(math.nan, worker, "hostname", hostname),
            ev.Setting(math.nan, worker, "version", version),
        ]
    if match := _SETTING.match(content):
        return [ev.Setting(math.nan, worker, match[1], match[2])]
    return []


def is_traceback(text: str) -> bool:
    """Whether a line without a stamp has the shape of a traceback or of a Python warning."""
    return bool(_TRACEBACK.match(text))


def read_settings(banner: Mapping[str, str]) -> dict[str, Any]:
    """The settings in a banner's lines, under the scenario's names.

    ``concurrency`` or ``autoscale`` (``[max, min]``), ``pool``,
    ``celery_version``, ``broker_transport`` and ``hostname``; what the
    banner does not say is left out.
    """
    settings: dict[str, Any] = {}
    concurrency = banner.get("concurrency", "")
    if match := re.match(r"\{min=(\d{1,5}), *max=(\d{1,5})\}", concurrency):
        settings["autoscale"] = [int(match[2]), int(match[1])]
    elif match := re.match(r"\d{1,5}\b", concurrency):
        settings["concurrency"] = int(match[0])
    if match := re.search(r"\((?:[\w.]+\.)?(\w+)(?::\w+)?\)$", concurrency):
        settings["pool"] = _POOLS.get(match[1], match[1])
    if match := re.match(r"([\w+]+)://", banner.get("transport", banner.get("broker", ""))):
        settings["broker_transport"] = match[1]
    if "version" in banner:
        settings["celery_version"] = banner["version"]
    if "hostname" in banner:
        settings["hostname"] = banner["hostname"]
    return settings
