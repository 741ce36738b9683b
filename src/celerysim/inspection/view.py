"""One history, with what findings need computed once: children's lives, who runs and who waits."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from celerysim.history import Floats, History, Level, Outcome, Table
from celerysim.inspection.incidents import Incident
from celerysim.inspection.lives import lives
from celerysim.inspection.reading import ObservedTrace
from celerysim.inspection.steps import Clock, Steps
from celerysim.trace import Trace


class View:
    """What a history shows; everything is computed when first asked for, and from it alone."""

    def __init__(self, history: History) -> None:
        self._lives = lives(history)
        #: The history, its children with births and deaths filled in.
        self.history = replace(history, children=self._lives.children)
        self.tasks: Table = history.tasks
        self.children: Table = self._lives.children
        self.scale_events: Table = history.scale_events
        #: For each task, the row of its child in :attr:`children`; -1: not known.
        self.child_rows = self._lives.rows
        #: Row of a scale-down to the numbers of the children it killed (logs only).
        self.killed = self._lives.killed
        #: Whether lives and triggers are inferred, as from a log, or known, as in a simulation.
        self.is_inferred = isinstance(history, Trace)

    # --- incidents ---

    def incidents(self, kind: str) -> list[Incident]:
        """The incidents of one kind, in time order."""
        return self._incidents.get(kind, [])

    def incident_count(self, kind: str) -> int:
        """How many incidents of one kind there are, also beyond those kept."""
        observed = self.history
        return observed.incident_counts[kind] if isinstance(observed, ObservedTrace) else 0

    @cached_property
    def _incidents(self) -> dict[str, list[Incident]]:
        found: dict[str, list[Incident]] = {}
        if isinstance(self.history, ObservedTrace):
            for incident in self.history.incidents:
                found.setdefault(incident.kind, []).append(incident)
        return found

    # --- tasks ---

    @cached_property
    def ended(self) -> NDArray[np.bool_]:
        """Which tasks succeeded or failed."""
        return np.isin(self.tasks["outcome"], (Outcome.SUCCEEDED, Outcome.FAILED))

    @cached_property
    def runtime_s(self) -> Floats:
        """Seconds each task ran; NaN if not known."""
        runtime: Floats = self.tasks["finished"] - self.tasks["started"]
        return runtime

    @cached_property
    def wait_s(self) -> Floats:
        """Seconds each task waited inside the worker; NaN if not known."""
        wait: Floats = self.tasks["started"] - self.tasks["received"]
        return wait

    # --- levels ---

    @cached_property
    def duration_s(self) -> float:
        """Seconds observed."""
        return max(self.history.end - self.history.start, 0.0)

    @cached_property
    def occupied(self) -> Steps:
        """Tasks that run, or may run for all the log says.

        A task whose start is not known (a failed one at INFO, one that has not
        ended) counts from its reception: better a child too many thought busy
        than one idle.
        """
        tasks = self.tasks
        begin = np.where(np.isnan(tasks["started"]), tasks["received"], tasks["started"])
        counts = ~np.isnan(begin) & (tasks["outcome"] != Outcome.REVOKED)
        return Steps.of_spans(begin[counts], self._until_end(tasks["finished"][counts]))

    @cached_property
    def waiting(self) -> Steps:
        """Tasks that wait inside the worker; those whose start is not known are left out."""
        known = ~np.isnan(self.wait_s)
        begin, end = self.tasks["received"][known], self.tasks["started"][known]
        return Steps.of_spans(begin, np.maximum(begin, end))

    @cached_property
    def pool(self) -> Steps:
        """Processes (threads, greenlets) that could run a task; 0 if the log does not say."""
        times, values = self.history.level(Level.PROCESSES)
        if len(times) and values.min() >= 0 and not self._restarts_unseen:
            return Steps(times, values.astype(np.float64))
        if len(self.children):
            begin = np.nan_to_num(self.children["forked"], nan=self.history.start)
            return Steps.of_spans(begin, self._until_end(self.children["exited"]))
        size = float(self.history.settings.get("concurrency", 0))
        return Steps(np.array([self.history.start]), np.array([size]))

    @property
    def _restarts_unseen(self) -> bool:
        """Whether numbers begin anew in one worker: its level may then end with its first life."""
        several = len(getattr(self.history, "workers", ())) > 1
        return not several and bool(np.any(np.diff(self.children["number"]) <= 0))

    @cached_property
    def clock(self) -> Clock:
        """The pieces of time in which none of the levels changes."""
        levels = (self.occupied, self.waiting, self.pool)
        return Clock.over(self.history.start, self.history.end, *levels)

    @cached_property
    def running_now(self) -> Floats:
        """Tasks running in each piece of :attr:`clock`."""
        return self.clock.values(self.occupied)

    @cached_property
    def waiting_now(self) -> Floats:
        """Tasks waiting in each piece of :attr:`clock`."""
        return self.clock.values(self.waiting)

    @cached_property
    def pool_now(self) -> Floats:
        """Processes in each piece of :attr:`clock`."""
        return self.clock.values(self.pool)

    @cached_property
    def pool_max(self) -> int:
        """Most processes there may be: by the settings, else the most there were; 0: not known."""
        settings = self.history.settings
        if settings.get("autoscale"):
            return int(settings["autoscale"][0])
        return int(max(settings.get("concurrency", 0) or 0, self.pool_now.max(initial=0)))

    @property
    def place(self) -> str:
        """What a task runs in, by the pool's kind."""
        pool = self.history.settings.get("pool", "prefork")
        return {"prefork": "process", "threads": "thread", "solo": "process"}.get(pool, "greenlet")

    def _until_end(self, times: Floats) -> Floats:
        return np.nan_to_num(times, nan=self.history.end)
