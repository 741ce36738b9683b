"""What else the machine did: a process is our own once we have waited for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from celerysim.record.disturbance import Meter

BURN = """
import time
while time.process_time() < 0.5:
    pass
print(flush=True)
input()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Celery's prefork pool needs Unix")
def test_cpu_is_our_own_once_waited_for() -> None:
    meter = Meter()
    process = subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()  # it has burnt its half second, and waits
    running = meter.read()
    process.communicate(b"\n")
    ended = meter.read()
    assert running["other_s"] >= 0.45  # the kernel counts in hundredths
    assert ended["own_s"] >= running["own_s"] + 0.45
    assert ended["seconds"] >= running["seconds"] >= 0.5
