"""The machine a recording runs on: what it can do, and what the record says about it."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from pathlib import Path
from typing import Any

from celerysim.record.errors import RecordError


def usable_cores(root: Path = Path("/")) -> list[int]:
    """The cores this process may use, by number; fewer where a cgroup limits the CPU time."""
    if hasattr(os, "sched_getaffinity"):
        cores = sorted(os.sched_getaffinity(0))
    else:
        cores = list(range(os.cpu_count() or 1))
    try:
        quota, period = (root / "sys/fs/cgroup/cpu.max").read_text().split()
        return cores[: max(1, int(quota) // int(period))]
    except (OSError, ValueError):  # no cgroup v2, or no limit ("max")
        return cores


def pin(wanted: int, usable: list[int], *, allow_fewer: bool) -> list[int]:
    """The cores to pin the worker to; empty: it may use all there are.

    Raises:
        RecordError: fewer cores are usable than wanted, and that is not allowed.
    """
    if wanted > len(usable) and not allow_fewer:
        raise RecordError(
            f"the scenario's machine has {wanted} cores, this one {len(usable)} for us. Remedy: "
            f"record on a bigger machine, set machine.cores={len(usable)}, or allow fewer cores "
            "when the tasks compute so little that they never wait for one."
        )
    can_pin = hasattr(os, "sched_setaffinity")
    return usable[:wanted] if can_pin and wanted < len(usable) else []


def describe(usable: list[int], pinned: list[int], *, wanted: int, loops: int) -> dict[str, Any]:
    """The machine and the worker's place on it; nothing that names the machine."""
    return {
        "cores": os.cpu_count(),
        "usable_cores": len(usable),
        "worker_cores": len(pinned) or len(usable),
        "scenario_cores": wanted,
        "fewer_cores_than_scenario": wanted > len(usable),
        "cpu_model": _cpu_model(),
        "architecture": platform.machine(),
        "memory_kib": import_module("psutil").virtual_memory().total // 1024,
        "system": platform.system(),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load_average_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "burner_loops_a_chunk": loops,
    }


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
