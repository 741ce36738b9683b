"""Run one command on a leash: when the other end lets go, it and all its descendants are killed.

Run as a program, with the standard library only and nothing of celerysim::

    python -I -S leash.py [--cores 0,1] [--remove DIR] FD COMMAND [ARGUMENT ...]

``FD`` is the reading end of a pipe whose writing end only the recorder holds.
The kernel closes that end however the recorder ends, ``SIGKILL`` included, so
nothing can outlive it. Descendants that leave their parent (Erlang's ``epmd``
does) are adopted here (Linux: ``PR_SET_CHILD_SUBREAPER``) and killed as well;
should this process itself be killed, the command gets ``SIGKILL`` from the
kernel (``PR_SET_PDEATHSIG``). Elsewhere than on Linux the command's session is
killed, which a daemon can escape.

``SIGTERM``, ``SIGINT`` and ``SIGQUIT`` are passed on to the command. The exit
status is the command's, 128 + n if signal n ended it; 127 if it did not start.
``--cores`` pins the command; ``--remove`` deletes a folder once all is dead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    """Linux's prctl(2); without effect elsewhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def main(arguments: list[str]) -> int:
    """Run the command until it ends or the leash is let go; its exit status."""
    cores: set[int] = set()
    remove = ""
    while arguments[0].startswith("--"):
        option, value, *arguments = arguments
        if option == "--cores":
            cores = {int(core) for core in value.split(",")}
        else:
            remove = value
    leash = int(arguments[0])
    os.set_inheritable(leash, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # A signal, a child's end included, must wake the select below and not get lost before it.
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    command = _start(arguments[1:], cores)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda number, _: _send(command, number))
    status = _watch(leash, wake, command)
    status = _kill(command, status)
    if remove:
        shutil.rmtree(remove, ignore_errors=True)
    return status


def _start(command: list[str], cores: set[int]) -> int:
    """Fork and execute ``command`` in a session of its own; its process id."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(127)
        if cores:
            os.sched_setaffinity(0, cores)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error}\n".encode())
    os._exit(127)


def _watch(leash: int, wake: int, command: int) -> int | None:
    """Wait until the command ends (its status) or the leash is let go (None)."""
    while True:
        readable, _, _ = select.select([leash, wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
            while True:
                try:
                    pid, status = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    break
                if pid == command:
                    return os.waitstatus_to_exitcode(status)
                if not pid:
                    break
        if leash in readable:
            return None


def _kill(command: int, status: int | None) -> int:
    """Kill and reap the command and all its descendants; the command's exit status."""
    if status is None and sys.platform != "linux":
        with contextlib.suppress(OSError):
            os.killpg(command, signal.SIGKILL)
    while True:
        # Whoever loses its parent becomes our child: once there is no child, there is nobody.
        for pid in _children():
            _send(pid, signal.SIGKILL)
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        if pid == command and status is None:
            status = os.waitstatus_to_exitcode(ended)
    if status is None:
        return 128 + signal.SIGKILL
    return status if status >= 0 else 128 - status


def _children() -> list[int]:
    """Process ids of this process's children (Linux)."""
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
