"""What else the machine computed while a recording was made: it changes what is recorded."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any


class Meter:
    """Counts the machine's CPU seconds, and this process's and its descendants', from now on.

    A descendant counts once it and all between it and this process have ended and been
    waited for, so read the meter when everything started meanwhile has been stopped.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy, self._stolen = _machine()
        self._own = _own()

    def read(self) -> dict[str, float]:
        """CPU seconds since the beginning, for record.json.

        ``seconds`` of wall time; ``own_s`` of the recorder, the publisher and the worker;
        ``other_s`` of everything else, the broker included; ``stolen_s``: the machine is
        virtual, and its host gave them to another one.
        """
        busy, stolen = _machine()
        own = _own() - self._own
        found = {
            "seconds": time.monotonic() - self._began,
            "own_s": own,
            "other_s": max(busy - self._busy - own, 0.0),
            "stolen_s": stolen - self._stolen,
        }
        return {name: round(value, 2) for name, value in found.items()}


def _machine() -> tuple[float, float]:
    """CPU seconds that all cores together were busy since the start, and those stolen."""
    times: Any = import_module("psutil").cpu_times()
    # guest times are within user and nice; not every system has each of the others
    busy = ("user", "nice", "system", "irq", "softirq")
    return sum(getattr(times, name, 0.0) for name in busy), getattr(times, "steal", 0.0)


def _own() -> float:
    resource: Any = import_module("resource")
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return float(sum(usage.ru_utime + usage.ru_stime for usage in usages))
