"""Recordings made from simulated runs: what the model predicts of them is known."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from celerysim.engine.simulation import simulate
from celerysim.export import write_worker_log
from celerysim.export.worker_log import EPOCH
from celerysim.record import files, load_recording
from celerysim.scenario import Scenario
from celerysim.trace import read_log

READY = EPOCH.replace(tzinfo=datetime.UTC).timestamp()


@pytest.fixture(scope="session")
def recorded() -> Callable[..., Path]:
    """Writes a recording's folder: the run of ``real``, said to be of ``scenario``."""

    def write(folder: Path, scenario: Scenario, real: Scenario | None = None) -> Path:
        folder.mkdir()
        result = simulate(real or scenario)
        write_worker_log(result, folder / files.WORKER_LOG)
        ids = read_log(folder / files.WORKER_LOG).ids
        sent = result.tasks["sent"] + READY
        names = [result.names[i] for i in result.tasks["profile"]]
        rows = [
            f"{i},{ids[i]},{names[i]},{sent[i]:.6f},{sent[i]:.6f},{sent[i]:.6f}"
            for i in range(len(ids))
        ]
        head = "index,id,profile,planned_s,begin,end"
        (folder / files.PUBLISHES).write_text("\n".join([head, *rows]) + "\n")
        details = {"status": "complete", "reason": "", "ready_epoch": READY, "end_s": result.end}
        files.write_json(folder / files.RECORD, {"format": 1} | details)
        files.write_json(folder / files.MACHINE, {"cores": scenario.machine.cores})
        files.write_json(
            folder / files.SCENARIO, scenario.model_dump(mode="json", exclude_none=True)
        )
        assert len(load_recording(folder).publishes) == len(result.tasks)
        return folder

    return write
