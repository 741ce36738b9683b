"""How far a recording is, from the worker's log while it is written.

Only counts; reading the log properly is :mod:`celerysim.trace`'s business.
"""

from __future__ import annotations

import re
from pathlib import Path

_RECEIVED = re.compile(rb"^\[[^\]]*\] Task \S[^\[]*\[[^\]]*\] received\s*$")
#: Lines of which there is exactly one for each delivered task that is over.
_OVER = re.compile(
    rb"^\[[^\]]*\] (?:"
    rb"Task \S[^\[]*\[[^\]]*\] (?:succeeded in |raised |retry: |ignored)"
    rb"|Hard time limit \(|Task handler raised error: WorkerLostError)"
)


class LogProgress:
    """Counts received and finished tasks of a growing log file.

    A task that is delivered again is received again, so ``received == over``
    when, and only when, the worker has nothing left.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""
        self.received = 0
        self.over = 0
        self.lines = 0

    def update(self) -> None:
        """Read what was added since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.received += bool(_RECEIVED.match(line))
            self.over += bool(_OVER.match(line))
        self.lines += len(lines)

    def tail(self, count: int = 3) -> str:
        """The last lines that say something, for an error message."""
        try:
            lines = self._path.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return " | ".join([line.strip() for line in lines if line.strip()][-count:])
