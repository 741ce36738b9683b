"""What is known of one worker while its log goes by: its lives and their children."""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from celerysim.trace.banner import read_settings

_NAN = math.nan
#: A child's last lines may come out this late (seconds) after the line that it has exited.
_LATE_S = 1.0
_CHILD = re.compile(r"Worker-(\d{1,9})$", re.ASCII)


@dataclass
class Child:
    """What a log shows of one child process; times are absolute seconds."""

    number: int
    first_seen: float = _NAN
    last_seen: float = _NAN
    terminated: float = _NAN
    exited: float = _NAN
    tasks: int = 0
    busy_s: float = 0.0


@dataclass
class Life:
    """One life of one worker, from its start to its end or restart."""

    from_start: bool = False  #: the log has it from "ready." on
    used: bool = False  #: a task or a child has been seen in it
    banner: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    children: dict[int, Child] = field(default_factory=dict)
    #: Rows in the order of reception, which is the pool's job number ...
    jobs: array[int] = field(default_factory=lambda: array("q"))
    in_order: bool = False  #: ... as long as this holds
    applied: array[int] = field(default_factory=lambda: array("q"))  #: rows as given to the pool
    pids: dict[int, int] = field(default_factory=dict)  #: the row each child has accepted
    orphans: list[int] = field(default_factory=list)  #: rows whose child has just exited
    reserved: int = 0  #: received and not finished
    processes: int = -1  #: the pool's target by the "Scaling" lines; -1: not known
    is_sized: bool = False  #: the target was known at the start
    scaled_up: int = 0

    @property
    def is_green(self) -> bool:
        """Whether the pool is one of greenlets, whose autoscaler only has a timer."""
        return self.settings.get("pool") in ("gevent", "eventlet")

    def set(self, key: str, value: str) -> None:
        """Note a line of the banner."""
        self.banner.setdefault(key, value)
        self.settings = read_settings(self.banner)

    def begin(self) -> None:
        """Note the "ready." line."""
        self.from_start = True
        self.in_order = True
        self.processes = self._initial(unknown=-1)
        self.is_sized = self.processes >= 0

    def discard(self, row: int) -> None:
        """Note that a received task never becomes a job of the pool."""
        if row not in self.jobs[-1:]:
            self.in_order = False
        # What came after it has been given numbers that are too high: forget those.
        while self.jobs and self.jobs[-1] >= row:
            self.jobs.pop()

    def scale(self, change: int) -> None:
        """Follow a "Scaling" line; what it asks for beyond the bounds ends the knowledge."""
        highest, lowest = self.settings.get("autoscale", (0, 0))
        processes = self.processes + change
        self.processes = processes if lowest <= processes <= highest else -1

    def all_children(self) -> list[Child]:
        """The children in the order of their numbers, those never seen included.

        The pool numbers its children one after the other, so every number
        below the highest was forked, and so was the initial pool.
        """
        if not self.from_start:
            return [self.children[number] for number in sorted(self.children)]
        initial = self._initial(unknown=0)
        count = max([initial, *self.children])
        if count > 100 + 4 * (initial + self.scaled_up + len(self.children)):
            # No pool forks that many children that never do anything: a damaged number.
            return [self.children[number] for number in sorted(self.children)]
        return [self.children.get(number) or Child(number) for number in range(1, count + 1)]

    def _initial(self, unknown: int) -> int:
        """The size of the pool at its start."""
        if self.settings.get("pool", "prefork") != "prefork":
            return unknown
        if "autoscale" in self.settings:
            return int(self.settings["autoscale"][1])
        return int(self.settings.get("concurrency", unknown))


@dataclass
class WorkerState:
    """One worker of the log (one name) while its lines go by."""

    life: Life = field(default_factory=Life)  #: the current one
    past: list[Life] = field(default_factory=list)
    last: float = _NAN  #: its last stamp
    message_at: float = _NAN  #: the stamp of "received" if that is the supervisor's last line

    @property
    def lives(self) -> list[Life]:
        """All lives, in order."""
        return [*self.past, self.life]

    @property
    def is_seen(self) -> bool:
        """Whether anything but sending was seen of it."""
        return any(life.used or life.from_start or life.banner for life in self.lives)

    def restart(self) -> None:
        """Begin a new life."""
        self.past.append(self.life)
        self.life = Life()
        self.message_at = _NAN

    def child(self, number: int, time: float) -> Child:
        """The child of this number, seen now; a new one if it was not known."""
        child = self.life.children.get(number)
        if child is not None and time > child.exited + _LATE_S:
            # Numbers are never used twice: the worker has restarted unseen.
            self.restart()
            child = None
        if child is None:
            self.life.used = True
            child = self.life.children[number] = Child(number, first_seen=time)
        child.last_seen = time
        return child


@lru_cache(maxsize=1 << 12)
def child_number(process: str) -> int:
    """The k of ``ForkPoolWorker-k`` (``Worker-k``, ...); 0: the main process, -1: another."""
    if match := _CHILD.search(process):
        return int(match[1])
    return 0 if process == "MainProcess" else -1
