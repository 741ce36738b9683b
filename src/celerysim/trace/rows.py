"""The task rows of a trace while they grow: compact columns, and the latest row of each id."""

from __future__ import annotations

import math
from array import array

import numpy as np

from celerysim.history import TASK_DTYPE, Outcome, Table

_NAN = math.nan
_BLOCK = 4096
# Plain numbers: an enum member costs more to look up than the rest of a row.
_RESERVED, _RUNNING, _RETRIED = int(Outcome.RESERVED), int(Outcome.RUNNING), int(Outcome.RETRIED)


class TaskRows:
    """One row a task; a retry's next attempt is a message of its own and has its own row.

    Times are absolute seconds, NaN where not known. Rows keep the order in
    which their tasks first appear. The columns are longer than the rows in
    use (:func:`len`): they grow by blocks that already hold the defaults.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.latest: dict[str, int] = {}  #: the newest row of each id
        self.names: dict[str, int] = {}  #: task name -> profile, in order of appearance
        self.profile, self.child = array("i"), array("i")
        self.sent, self.received = array("d"), array("d")
        self.started, self.finished = array("d"), array("d")
        self.outcome, self.deliveries = array("b"), array("h")

    def __len__(self) -> int:
        return len(self.ids)

    def receive(self, name: str, id: str, time: float) -> int:
        """Note a "received" line and return the row: a new one, or the redelivered task's."""
        row = self.latest.get(id)
        if row is None or self.outcome[row] == _RETRIED:
            row = self._append(name, id)
            self.deliveries[row] = 1
        else:
            self._redeliver(row)
        self.received[row] = time
        return row

    def _redeliver(self, row: int) -> None:
        self.deliveries[row] = min(self.deliveries[row] + 1, 0x7FFF)
        if not self.is_open(row):
            # The task runs again, and the row tells of its last run.
            self.outcome[row] = _RESERVED
            self.started[row] = self.finished[row] = _NAN
            self.child[row] = -1

    def find(self, name: str, id: str) -> int:
        """The task's row; a new one, without reception, if its "received" line is missing."""
        row = self.latest.get(id)
        return self._append(name, id) if row is None else row

    def start(self, row: int, time: float) -> None:
        """Note that a child accepted the task."""
        self.started[row] = time
        self.outcome[row] = _RUNNING

    def send(self, name: str, id: str, time: float) -> None:
        """Append a task that was sent and never received."""
        row = self._append(name, id)
        self.sent[row] = time
        self.outcome[row] = Outcome.QUEUED

    def is_open(self, row: int) -> bool:
        """Whether the task has not ended."""
        return self.outcome[row] <= _RUNNING

    def table(self, zero: float) -> Table:
        """The rows as a :data:`~celerysim.history.TASK_DTYPE` table, in seconds since ``zero``.

        Call it last: it drops the index by id, the largest part of a big log's rows.
        """
        self.latest.clear()
        count = len(self)
        rows = np.empty(count, dtype=TASK_DTYPE)
        for column in ("profile", "child", "outcome", "deliveries"):
            rows[column] = getattr(self, column)[:count]
        for column in ("sent", "received", "started", "finished"):
            # A float of seconds since 1970 resolves 0.2 us: what is beyond is noise.
            rows[column] = np.round(np.asarray(getattr(self, column)[:count]) - zero, 6)
        return rows

    def _append(self, name: str, id: str) -> int:
        row = len(self.ids)
        if row == len(self.profile):
            self._grow()
        self.latest[id] = row
        self.ids.append(id)
        self.profile[row] = self.names.setdefault(name, len(self.names))
        return row

    def _grow(self) -> None:
        for column in (self.sent, self.received, self.started, self.finished):
            column.extend((_NAN,) * _BLOCK)
        self.profile.extend((0,) * _BLOCK)
        self.child.extend((-1,) * _BLOCK)
        self.outcome.extend((_RESERVED,) * _BLOCK)
        self.deliveries.extend((0,) * _BLOCK)
