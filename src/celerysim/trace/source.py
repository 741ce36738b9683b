"""Bytes in, lines out: files, gzip, pipes and lists of lines, damaged or not.

Everything downstream sees an iterator of ``str`` lines without their line
feeds, none longer than :data:`MAX_LINE`. Memory stays bounded whatever the
input is; damage is counted on the :class:`Source`, never raised. Bytes that
are not UTF-8 become U+FFFD, NULs go.
"""

from __future__ import annotations

import codecs
import sys
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, cast

from celerysim.errors import LogError

MAX_LINE = 1 << 20  #: characters kept of one line; the rest of a longer line is skipped and counted
_BLOCK = 1 << 18
_CONTROLS = bytes({*range(1, 32), 127} - {*b"\t\n\r\f\b\x1b"})
_GZIP_MAGIC = b"\x1f\x8b"

#: What can be read: a path (``"-"`` is standard input), an open binary file, or lines of bytes.
LogInput = str | PathLike[str] | BinaryIO | Iterable[bytes] | Iterable[str]


def unusable(name: str, problem: str, remedy: str) -> LogError:
    """The error for an input that cannot be used, worded as all errors are."""
    return LogError(f"{name}: {problem}. Remedy: {remedy}.")


class Source:
    """One log to read, once.

    ``name`` is what messages call it. After (and while) reading, ``size`` is
    the number of bytes seen, ``cut_lines`` the number of lines longer than
    :data:`MAX_LINE`, and ``damage`` says why reading stopped early (empty
    when it did not).
    """

    def __init__(self, log: LogInput) -> None:
        self._log = log
        self.name = _name(log)
        self.size = 0
        self.cut_lines = 0
        self.damage = ""

    def lines(self) -> Iterator[str]:
        """Yield the lines.

        Raises:
            LogError: The path does not exist, is a directory or cannot be read.
        """
        with _opened(self._log, self.name) as blocks:
            yield from self._split(self._decoded(self._unpacked(blocks)))

    def _unpacked(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Undo gzip, told by its first bytes."""
        head = b""
        for block in blocks:
            head += block
            if len(head) >= len(_GZIP_MAGIC):
                break
        blocks = chain((head,), blocks)
        return self._gunzip(blocks) if head.startswith(_GZIP_MAGIC) else blocks

    def _decoded(self, blocks: Iterator[bytes]) -> Iterator[str]:
        """Decode, a block at a time (far cheaper than line by line), and count the bytes."""
        decoder = None
        try:
            for block in blocks:
                self.size += len(block)
                if decoder is None:
                    _check_text(block, self.name)
                    decoder = codecs.getincrementaldecoder(_encoding(block))("replace")
                # A log truncated while open begins with a hole of NULs, gigabytes long at times.
                yield decoder.decode(block).replace("\0", "")
        except OSError as error:
            self.damage = f"reading stopped after {self.size} bytes: {error}"
        if decoder is not None:
            yield decoder.decode(b"", final=True)

    def _gunzip(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Unpack gzip members one after the other; stop quietly where the data is damaged.

        The standard ``gzip`` reader drops what it unpacked just before the
        damage; the last lines of a cut file are worth having.
        """
        unpack = zlib.decompressobj(wbits=31)
        try:
            for packed in blocks:
                while packed:
                    if unpack.eof:
                        unpack = zlib.decompressobj(wbits=31)
                    # The bound keeps a few bytes of zeros from becoming gigabytes at once.
                    yield unpack.decompress(packed, _BLOCK)
                    packed = unpack.unconsumed_tail or unpack.unused_data.lstrip(b"\0")
        except zlib.error as error:
            self.damage = f"the gzip data is damaged after {self.size} bytes ({error})"
            return
        if not unpack.eof:
            self.damage = f"the gzip data ends early, after {self.size} bytes"

    def _split(self, blocks: Iterator[str]) -> Iterator[str]:
        """Split blocks at line feeds; cut lines longer than :data:`MAX_LINE`."""
        rest: list[str] = []  # the pieces of the line that is still open
        length = 0
        for block in blocks:
            first, *others = block.split("\n")
            if length < MAX_LINE:
                rest.append(first)
            length += len(first)
            if others:
                yield self._joined(rest, length)
                last = others.pop()
                yield from others  # each shorter than a block, so than MAX_LINE
                rest, length = [last], len(last)
        if length:
            yield self._joined(rest, length)

    def _joined(self, pieces: list[str], length: int) -> str:
        if length > MAX_LINE:
            self.cut_lines += 1
        return "".join(pieces)[:MAX_LINE]


class _opened:
    """Context manager: the blocks of any :data:`LogInput`; closes only what it opened."""

    def __init__(self, log: LogInput, name: str) -> None:
        self._log, self._name = log, name
        self._file: BinaryIO | None = None

    def __enter__(self) -> Iterator[bytes]:
        log = self._log
        if isinstance(log, str) and log == "-":
            return _blocks(sys.stdin.buffer)
        if isinstance(log, str | PathLike):
            try:
                self._file = Path(log).open("rb", buffering=0)
            except FileNotFoundError:
                problem, remedy = "there is no such file", "check the path"
            except IsADirectoryError:
                problem, remedy = "this is a directory", "name one log file in it"
            except (OSError, ValueError) as error:
                problem, remedy = f"it cannot be opened ({error})", "check its permissions"
            else:
                return _blocks(self._file)
            raise unusable(self._name, problem, remedy)
        log = getattr(log, "buffer", log)  # a text stream's bytes
        if hasattr(log, "read"):
            return _blocks(cast(BinaryIO, log))
        return _chunks(cast(Iterable[bytes | str], log))

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _name(log: LogInput) -> str:
    if isinstance(log, str | PathLike):
        return "standard input" if log == "-" else fspath(log)
    name = getattr(log, "name", None)
    return name if isinstance(name, str) else "log"


def _check_text(head: bytes, name: str) -> None:
    """Refuse what begins as no log can: better than reading gigabytes of it for nothing."""
    if _encoding(head) == "utf-16" or b"Process" in head:
        return
    # NUL is left out: a log that was truncated while open begins with a hole of them.
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > len(head) // 10:
        raise unusable(
            name, "this is a binary file", "give a worker's log as text or gzip, unpack others"
        )


def _encoding(head: bytes) -> str:
    # PowerShell's ">" writes UTF-16 with a byte order mark.
    utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if utf16 else "utf-8-sig"


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    # read1 returns what a pipe has instead of waiting for a full block.
    read = getattr(file, "read1", file.read)
    while block := read(_BLOCK):
        yield block


def _chunks(lines: Iterable[bytes | str]) -> Iterator[bytes]:
    """Lines, with or without their line feeds, as blocks of bounded size."""
    for line in lines:
        data = line.encode(errors="replace") if isinstance(line, str) else line
        if not data.endswith(b"\n"):
            data += b"\n"
        for begin in range(0, len(data), _BLOCK):
            yield data[begin : begin + _BLOCK]
