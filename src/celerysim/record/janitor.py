"""Cleans the broker when the recorder could not: ``python -m celerysim.record.janitor``.

Waits for its standard input to end. The recorder says ``done`` there when it
has cleaned up itself; if the input ends without a word the recorder was
killed, and its queues and exchanges are deleted here. (They would vanish by
themselves, but not at once, and an exchange to which nothing was ever bound
never does.) In a session of its own, so that no signal to the recorder's
terminal or group reaches it; until it has work it has nothing imported.
"""

from __future__ import annotations

import os
import sys
import time

from celerysim.record.job import VARIABLE, load_job

#: Seconds for the leashes to kill what could declare again what is deleted here.
WAIT_S = 0.5


def main() -> None:
    """Wait for the end of the input, then clean up unless that is done."""
    job = load_job(os.environ.pop(VARIABLE))
    if sys.stdin.read().strip() == "done":
        return
    time.sleep(WAIT_S)
    from celerysim.record.brokers import Broker

    try:
        broker = Broker(job.broker_url)
    except Exception:  # no broker, nothing to clean: a private one was killed with its recorder
        return
    broker.remove(job)
    broker.close()


if __name__ == "__main__":
    main()
