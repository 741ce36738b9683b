"""A row a second: the worker's processes and the queue."""

from __future__ import annotations

import csv
import time
from importlib import import_module
from typing import Any, TextIO

from celerysim.record.brokers import QueueState

COLUMNS = ("epoch", "ready", "unacked", "consumers", "worker", "children")


class Sampler:
    """Writes samples of a worker.

    Columns: ``epoch`` (seconds since 1970, UTC); ``ready`` and ``consumers``
    of the queue, empty when it does not exist; ``unacked``, always empty
    because AMQP does not tell it; ``worker`` and ``children``: for each
    process ``pid:cpu_s:rss_kib``, user and system CPU seconds since its
    start, children separated by blanks.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._writer = csv.writer(file)
        self._writer.writerow(COLUMNS)
        self.children = 0

    def write(self, queue: QueueState | None, worker_pid: int | None) -> None:
        """Write one row; ``worker_pid`` is None before the worker is ready."""
        psutil = import_module("psutil")
        worker, children = "", []
        if worker_pid is not None:
            try:
                process = psutil.Process(worker_pid)
                worker = _row(process)
                for child in process.children():
                    try:
                        children.append(_row(child))
                    except psutil.Error:  # it has just left
                        continue
            except psutil.Error:
                pass
        self.children = len(children)
        state = ("", "", "") if queue is None else (queue.ready, "", queue.consumers)
        self._writer.writerow((f"{time.time():.3f}", *state, worker, " ".join(children)))
        self._file.flush()


def _row(process: Any) -> str:
    with process.oneshot():
        cpu = process.cpu_times()
        rss = process.memory_info().rss
    return f"{process.pid}:{cpu.user + cpu.system:.2f}:{rss // 1024}"
