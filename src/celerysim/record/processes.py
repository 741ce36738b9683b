"""Starting and stopping what a recording needs, each process on a leash (see :mod:`leash`)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_LEASH = Path(__file__).with_name("leash.py")


class Leashed:
    """A running command that cannot outlive this process.

    Args:
        command: The program and its arguments.
        env: Its whole environment.
        cwd: The folder it runs in.
        stdin, stdout: As for ``subprocess.Popen``; ``stderr`` goes where ``stdout`` goes,
            to this process's own when ``stdout`` is a pipe.
        cores: Cores to pin it to; empty: not pinned.
        remove: A folder deleted when it and its descendants are dead.
        pass_fds: File descriptors it inherits.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.STDOUT,
        cores: Sequence[int] = (),
        remove: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        reading, self._leash = os.pipe()
        options = ["--cores", ",".join(map(str, cores))] if cores else []
        options += ["--remove", str(remove)] if remove else []
        try:
            self.popen = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LEASH), *options, str(reading), *command],
                env=dict(env),
                cwd=cwd,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(reading, *pass_fds),
                # Ctrl-C in a terminal is for the recorder alone; it decides what becomes of us.
                start_new_session=True,
            )
        except BaseException:
            os.close(self._leash)
            raise
        finally:
            os.close(reading)

    @property
    def status(self) -> int | None:
        """The command's exit status, 128 + n after signal n; None while it runs."""
        return self.popen.poll()

    def terminate(self, grace_s: float) -> int | None:
        """Send SIGTERM, wait up to ``grace_s`` seconds; the exit status, None if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            self.popen.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(grace_s)
        return self.status

    def kill(self) -> None:
        """Kill the command and all its descendants at once, and wait until they are dead."""
        if self._leash >= 0:
            os.close(self._leash)
            self._leash = -1
        try:
            self.popen.wait(10)
        except subprocess.TimeoutExpired:  # stuck in the kernel: at least nobody waits for it
            self.popen.kill()
            self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def describe(status: int) -> str:
    """An exit status in words."""
    number = -status if status < 0 else status - 128
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(number).name}"
    return f"exit status {status}"


def environment(**more: str) -> dict[str, str]:
    """This process's environment for a Python child that must import this celerysim, and more."""
    env = os.environ | more
    root = str(Path(__file__).parents[2])
    # A source tree may be known to this process only (sys.path, a test runner).
    if "site-packages" not in root and "dist-packages" not in root:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return env
