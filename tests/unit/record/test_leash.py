"""What runs on a leash ends with whoever holds it, its descendants with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from celerysim.record.processes import Leashed, describe

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="adopting daemons is Linux's")

#: Writes its process id, leaves a daemon behind that writes its own, and waits.
FAMILY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("daemon", "w").write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
os.wait()
while not os.path.exists("daemon"):
    time.sleep(0.01)
open("command", "w").write(str(os.getpid()))
time.sleep(60)
"""


def start(folder: Path, code: str, remove: Path | None = None) -> Leashed:
    command = [sys.executable, "-c", code]
    return Leashed(command, env=os.environ, cwd=folder, remove=remove)


def pid_in(path: Path) -> int:
    """The number that appears in the file."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.01)
    raise AssertionError(f"{path.name} never appeared")


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_until_gone(*pids: int) -> None:
    deadline = time.monotonic() + 10
    while any(map(alive, pids)):
        assert time.monotonic() < deadline, f"still there: {[p for p in pids if alive(p)]}"
        time.sleep(0.01)


def test_the_exit_status_is_the_commands(tmp_path: Path) -> None:
    process = start(tmp_path, "raise SystemExit(3)")
    assert process.popen.wait(20) == 3
    process.kill()
    assert process.status == 3
    assert describe(3) == "exit status 3"


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    process = Leashed(["/no/such/program"], env=os.environ, cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.popen.stdout is not None
    assert b"/no/such/program" in process.popen.stdout.read()
    assert process.popen.wait(20) == 127
    process.kill()


def test_terminating_reaches_the_command(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "open('command', 'w').write('1')\n"
        "time.sleep(60)"
    )
    process = start(tmp_path, code)
    pid_in(tmp_path / "command")
    assert process.terminate(20) == 7
    process.kill()


def test_killing_takes_daemons_too_and_removes_the_folder(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "file").write_text("x")
    process = start(tmp_path, FAMILY, remove=scratch)
    command, daemon = pid_in(tmp_path / "command"), pid_in(tmp_path / "daemon")
    process.kill()
    assert not alive(command)
    assert not alive(daemon)
    assert not scratch.exists()
    assert describe(process.status or 0) == "killed by SIGKILL"


def test_a_command_that_ends_leaves_no_daemon(tmp_path: Path) -> None:
    process = start(tmp_path, FAMILY)
    command, daemon = pid_in(tmp_path / "command"), pid_in(tmp_path / "daemon")
    os.kill(command, signal.SIGTERM)
    assert process.popen.wait(20) == 128 + signal.SIGTERM
    assert not alive(daemon)
    process.kill()


def test_killing_the_holder_kills_everything(tmp_path: Path) -> None:
    holder_code = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from celerysim.record.processes import Leashed, environment\n"
        f"p = Leashed([sys.executable, '-c', {FAMILY!r}], env=environment(), cwd=Path('.'))\n"
        "time.sleep(60)"
    )
    from celerysim.record.processes import environment

    holder = subprocess.Popen([sys.executable, "-c", holder_code], env=environment(), cwd=tmp_path)
    command, daemon = pid_in(tmp_path / "command"), pid_in(tmp_path / "daemon")
    holder.kill()
    holder.wait()
    wait_until_gone(command, daemon)


def test_killing_the_leash_itself_kills_the_command(tmp_path: Path) -> None:
    process = start(tmp_path, "import os, time; open('command', 'w').write(str(os.getpid()));"
                    "time.sleep(60)")  # fmt: skip
    command = pid_in(tmp_path / "command")
    process.popen.kill()
    wait_until_gone(command)
    process.kill()
    assert describe(process.status or 0) == "killed by SIGKILL"


def test_pinning(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    code = f"import os; raise SystemExit(os.sched_getaffinity(0) != {{{core}}})"
    process = Leashed([sys.executable, "-c", code], env=os.environ, cwd=tmp_path, cores=[core])
    assert process.popen.wait(20) == 0
    process.kill()
