"""A recording on disk, read back."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from celerysim.history import TASK_DTYPE, Outcome, Table, table
from celerysim.record import files
from celerysim.record.errors import RecordError
from celerysim.scenario.load import make_scenario
from celerysim.scenario.schema import Scenario
from celerysim.trace import Trace, read_log

FORMAT = 1  #: of record.json; raised when an older reader would misread it

PUBLISH_DTYPE = np.dtype(
    [
        ("index", np.int32),
        ("profile", np.int32),  # index into the scenario's profiles, in their order
        ("planned", np.float64),  # seconds after "ready": as the scenario's producer has it
        ("begin", np.float64),  # seconds after "ready": the publishing call began
        ("end", np.float64),  # and returned: the broker has the message
    ]
)
_EPOCH = datetime(1970, 1, 1)
#: The field of ``costs`` that a recorded worker measures.
_MEASURED = "backend_s"


class ProcessSample(NamedTuple):
    """One process at one moment."""

    pid: int
    cpu_s: float  #: user and system CPU seconds since its start
    rss_kib: int  #: resident memory (KiB); 0: it has ended and the worker has not noticed yet


class Sample(NamedTuple):
    """The worker and its queue at one moment."""

    time: float  #: seconds after "ready"
    ready: int | None  #: messages waiting in the queue; None: not known
    unacked: int | None  #: None: AMQP does not tell it
    worker: ProcessSample | None
    children: tuple[ProcessSample, ...]


@dataclass(frozen=True)
class Recording:
    """A recording of a real run.

    ``publishes`` has a row of :data:`PUBLISH_DTYPE` a message, in the order
    they were sent, and ``ids`` their task ids. ``epoch`` is the worker's
    "ready" in seconds since 1970 (UTC) and ``end`` the seconds from then to
    the end of the run, or its interruption; both NaN if the worker never was
    ready. ``details`` is record.json as it stands: command, versions, broker,
    notes.
    """

    folder: Path
    scenario: Scenario
    status: Literal["complete", "interrupted"]
    reason: str
    epoch: float
    end: float
    publishes: Table
    ids: tuple[str, ...]
    machine: dict[str, Any]
    details: dict[str, Any]

    @property
    def complete(self) -> bool:
        """Whether the run came to its end."""
        return self.status == "complete"

    @property
    def log_path(self) -> Path:
        """The worker's log, plain or gzip; its stamps are UTC."""
        return files.find(self.folder, files.WORKER_LOG)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what took part, by package name."""
        return dict(self.details.get("versions", {}))

    @property
    def other_cores(self) -> float:
        """Cores that something else used on average while this was recorded; NaN: not known.

        The broker counts, and so does CPU time that a virtual machine's host gave away.
        With more than a few hundredths, expect other figures than the scenario's.
        """
        cpu = self.details.get("cpu")
        if not cpu:
            return math.nan
        return float((cpu["other_s"] + cpu["stolen_s"]) / cpu["seconds"])

    @property
    def costs(self) -> dict[str, float]:
        """The worker's costs measured in this very run, by field of the scenario's ``costs``.

        ``backend_s`` (CPU seconds), which grows with the installed packages. Empty: the worker
        did not end by itself, or did not make a backend.

        Raises:
            RecordError: costs.json is damaged.
        """
        text = files.read_text(self.folder, files.COSTS)
        try:
            found = json.loads(text or "{}")
            costs = {name: float(value) for name, value in found.items() if name == _MEASURED}
            if not all(0.0 <= value < math.inf for value in costs.values()):
                raise ValueError(f"{_MEASURED} is {found[_MEASURED]}, not a number of seconds")
        except (ValueError, TypeError, AttributeError) as error:
            raise RecordError(
                f"{self.folder / files.COSTS} cannot be read: {error}. Remedy: remove it; the "
                "scenario's own costs are used then."
            ) from error
        return costs

    def samples(self) -> tuple[Sample, ...]:
        """The samples, one a second, in time order."""
        return tuple(_samples(files.read_text(self.folder, files.SAMPLES), self.epoch))

    def trace(self) -> Trace:
        """The worker's log, with ``sent`` taken from the publisher.

        ``sent`` is when the publishing call returned, but never after the
        worker logged "received": both happen within a millisecond, in two
        processes, and the log cuts its stamps to milliseconds. Messages the
        worker never received follow at the end, as ``QUEUED``. ``settings``
        are the scenario's worker settings, those the log shows as it shows them.

        Raises:
            LogError: the log is missing or no line in it is Celery's.
        """
        trace = read_log(self.log_path)
        if trace.epoch is None or math.isnan(self.epoch):
            return trace
        # Both clocks are the machine's, the log's zero is its "ready" line cut to a millisecond.
        shift = self.epoch - (trace.epoch - _EPOCH).total_seconds()
        sent = dict(zip(self.ids, (self.publishes["end"] + shift).tolist(), strict=True))
        tasks = trace.tasks.copy()
        known = np.array([sent.pop(id, np.nan) for id in trace.ids], dtype=np.float64)
        tasks["sent"] = np.fmin(known, tasks["received"])
        tasks["sent"][np.isnan(known)] = np.nan
        profiles = dict(zip(self.ids, self.publishes["profile"].tolist(), strict=True))
        names = list(trace.names)
        profile_names = list(self.scenario.tasks.profiles)
        rows = []
        for id, moment in sent.items():
            name = profile_names[profiles[id]]
            if name not in names:
                names.append(name)
            nan = math.nan
            rows.append((names.index(name), moment, nan, nan, nan, -1, Outcome.QUEUED, 0))
        return replace(
            trace,
            settings=self._settings() | trace.settings,
            tasks=np.concatenate([tasks, table(TASK_DTYPE, rows)]),
            ids=(*trace.ids, *sent),
            names=tuple(names),
        )

    def _settings(self) -> dict[str, Any]:
        settings = self.scenario.worker.model_dump(mode="json", exclude_none=True)
        if "autoscale" in settings:
            del settings["concurrency"]  # the worker ignores it
        return settings


def load_recording(folder: str | Path) -> Recording:
    """The recording in ``folder``.

    Raises:
        RecordError: there is none, or it cannot be read.
        ScenarioError: its scenario is not valid for this version.
    """
    folder = Path(folder)
    details = _json(folder, files.RECORD)
    if details.get("format") != FORMAT:
        raise RecordError(
            f"{folder / files.RECORD}: format {details.get('format')} is not {FORMAT}. "
            "Remedy: read it with the celerysim that wrote it."
        )
    source = folder / files.SCENARIO
    scenario = make_scenario(_json(folder, files.SCENARIO), source=str(source))
    epoch = _number(details.get("ready_epoch"))
    publishes, ids = _publishes(files.read_text(folder, files.PUBLISHES), scenario, epoch)
    return Recording(
        folder=folder,
        scenario=scenario,
        status="complete" if details.get("status") == "complete" else "interrupted",
        reason=str(details.get("reason", "")),
        epoch=epoch,
        end=_number(details.get("end_s")),
        publishes=publishes,
        ids=ids,
        machine=_json(folder, files.MACHINE),
        details=details,
    )


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        data = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(
            f"{folder} holds no recording: {name}: {error}. Remedy: name a folder that "
            "celerysim record has made."
        ) from error
    return dict(data)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _publishes(text: str, scenario: Scenario, epoch: float) -> tuple[Table, tuple[str, ...]]:
    order = {name: i for i, name in enumerate(scenario.tasks.profiles)}
    rows, ids = [], []
    for row in csv.DictReader(io.StringIO(text)):
        if None in row.values():  # cut off when the publisher was killed
            continue
        begin, end = float(row["begin"]) - epoch, float(row["end"]) - epoch
        rows.append((int(row["index"]), order[row["profile"]], float(row["planned_s"]), begin, end))
        ids.append(row["id"])
    return table(PUBLISH_DTYPE, rows), tuple(ids)


def _samples(text: str, epoch: float) -> Iterator[Sample]:
    for row in csv.DictReader(io.StringIO(text)):
        if None in row.values():
            continue
        yield Sample(
            time=float(row["epoch"]) - epoch,
            ready=int(row["ready"]) if row["ready"] else None,
            unacked=int(row["unacked"]) if row["unacked"] else None,
            worker=_process(row["worker"]) if row["worker"] else None,
            children=tuple(_process(child) for child in row["children"].split()),
        )


def _process(text: str) -> ProcessSample:
    pid, cpu_s, rss_kib = text.split(":")
    return ProcessSample(int(pid), float(cpu_s), int(rss_kib))
