"""An experiment run from its file: the sweep, and every file it leaves behind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celerysim.engines import Wanted
from celerysim.plots import save
from celerysim.sweep import files
from celerysim.sweep.experiment import FILE, Experiment, base_scenario, load_experiment
from celerysim.sweep.journal import Journal
from celerysim.sweep.pictures import draw
from celerysim.sweep.plan import make_plan
from celerysim.sweep.sweeping import Progress, hire_for, run_plan
from celerysim.sweep.table import Table

#: Beside the results, until they are complete and after.
JOURNAL = "journal.jsonl"


@dataclass(frozen=True)
class Study:
    """An experiment and its results."""

    name: str
    experiment: Experiment
    table: Table
    folder: Path
    files: tuple[str, ...]  #: what was written into the folder

    def as_json(self) -> dict[str, Any]:
        """Everything but the rows, as plain values; what could not be computed is null."""
        summary = self.table.summary
        names = summary.dtype.names or ()
        return {
            "experiment": self.name,
            "question": self.experiment.question,
            "units": {name: unit for name, unit in self.table.units.items() if unit},
            "runs": len(self.table.rows),
            "summary": [
                {
                    name: None if value != value else value  # NaN is no JSON
                    for name, value in zip(names, row, strict=True)
                }
                for row in summary.tolist()
            ],
            "files": [str(self.folder / name) for name in self.files],
            "provenance": dict(self.table.provenance),
        }


def run_experiment(
    source: str | Path,
    *,
    out: Path | None = None,
    replications: int | None = None,
    engine: Wanted = "auto",
    processes: int | None = None,
    dask: str | None = None,
    resume: bool = False,
    progress: Progress = lambda done, total: None,
) -> Study:
    """Run the experiment of a file or folder and write its results.

    Into ``out`` (default: ``result`` beside the file) go ``rows.csv``, the same
    as ``rows.parquet`` where pyarrow is installed, ``summary.csv`` (means with
    intervals), ``study.json`` (where it all comes from) and the pictures, all
    of which follow from the file alone; and the journal that ``resume`` needs.
    ``replications`` replaces the file's. The other options are :func:`sweep`'s.

    Raises:
        CelerysimError: as :func:`sweep`.
        OSError: a file cannot be written.
    """
    experiment, path = load_experiment(source)
    if replications is not None:
        experiment = experiment.model_copy(update={"replications": replications, "until": None})
    plan = make_plan(base_scenario(experiment, path.parent), experiment, engine)
    hire = hire_for(plan.size, processes=processes, dask=dask)
    folder = path.parent / "result" if out is None else out
    name = path.parent.resolve().name if path.name == FILE else path.stem
    with Journal(folder / JOURNAL, plan.fingerprint(), resume=resume) as journal:
        table = run_plan(plan, hire, journal=journal, progress=progress)
        study = _written(name, experiment, table, folder)
        journal.finish()
    return study


def _written(name: str, experiment: Experiment, table: Table, folder: Path) -> Study:
    """Write all files."""
    table.write_csv(folder / "rows.csv")
    files.write_csv(table.summary, folder / "summary.csv")
    written = ["rows.csv", "summary.csv", "study.json"]
    if files.has_parquet():
        table.write_parquet(folder / "rows.parquet")
        written.append("rows.parquet")
    for picture in experiment.pictures:
        save(draw(table, picture, experiment.question), folder / picture.file)
        written.append(picture.file)
    study = Study(name, experiment, table, folder, tuple(written))
    record = {**study.as_json(), "files": written}  # the same wherever the folder is
    del record["summary"]  # has a file of its own
    files.write_whole(folder / "study.json", (json.dumps(record, indent=2) + "\n").encode())
    return study
