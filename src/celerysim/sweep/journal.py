"""The journal of a sweep under way: every finished chunk's rows, safe against any crash.

A text file; each line is a checksum and a JSON record, complete in itself. A
line cut short by a crash fails its checksum and is dropped, so its runs are
done again. What is on the disk is therefore always true, and a sweep that is
resumed gives the same bytes as one that was never interrupted.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from celerysim.errors import CelerysimError
from celerysim.sweep.chunk import Job, Row, Values
from celerysim.sweep.files import write_whole

#: Of the file's layout.
FORMAT = 1


class Journal:
    """The journal at ``path``, of the sweep that ``fingerprint`` stands for. Use as a context.

    ``rows`` holds what is known already. Without ``resume`` a finished journal
    is begun anew, and one that is not is refused: it may hold hours of work.

    Raises:
        CelerysimError: the journal is unfinished and not to be resumed, is of
            another sweep, or is being written by another process.
    """

    def __init__(self, path: Path, fingerprint: str, *, resume: bool = False) -> None:
        self.path = path
        self.rows: dict[Job, Values] = {}
        header = {"celerysim sweep": FORMAT, "fingerprint": fingerprint}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(path.parent)
        try:
            records = list(_records(path))
            known = [record for record in records if "rows" in record]
            if not resume:
                if known and records[-1] != {"finished": True}:
                    raise CelerysimError(
                        f"{path}: an interrupted sweep is here. "
                        "Remedy: go on with --resume, or delete this file to begin anew."
                    )
                known = []
            elif known and records[0] != header:
                raise CelerysimError(
                    f"{path}: is of another sweep (its scenario, axes, outputs, engine or version "
                    "differ). Remedy: delete it, or name another folder with --out."
                )
            for record in known:
                for point, replication, *values in record["rows"]:
                    self.rows[Job(point, replication)] = tuple(values)
            write_whole(path, b"".join(map(_line, [header, *known])))
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        except BaseException:
            _unlock(self._lock)
            raise

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows; they are on the disk when this returns."""
        fresh = [(row.job, row.values) for row in rows]
        self._write({"rows": [[*job, *values] for job, values in fresh]})
        self.rows.update(fresh)

    def finish(self) -> None:
        """Note that nothing is missing."""
        self._write({"finished": True})

    def __enter__(self) -> Self:
        """The journal, open."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it; what was appended stays."""
        os.close(self._file)
        _unlock(self._lock)

    def _write(self, record: Any) -> None:
        data = memoryview(_line(record))
        while data:  # a pipe full or a signal may cut a write short
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)


def _line(record: Any) -> bytes:
    text = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _records(path: Path) -> Iterator[Any]:
    """The records whose checksum is right."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    for line in data.splitlines():
        checksum, _, text = line.partition(b" ")
        if checksum == b"%08x" % zlib.crc32(text):
            yield json.loads(text)


def _lock(folder: Path) -> int | None:
    """A lock on the folder, held until the descriptor returned is closed or its process dies.

    None where the system has no such locks (Windows).
    """
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise CelerysimError(
            f"{folder}: another sweep is writing here. "
            "Remedy: wait for it, or name another folder with --out."
        ) from None
    return descriptor


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
