"""Running everything: each recording compared, each published cell simulated."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celerysim.compare import Comparison, compare
from celerysim.studies.tables import CellResult, tables
from celerysim.sweep.local import executor_for
from celerysim.validate.catalogue import Group, load_catalogue
from celerysim.validate.claims import Claim, recording_claims, table_claims

Progress = Callable[[int, int], None]

#: The folder of recordings, within the one that is validated.
TRACES = "traces"
#: Runs of each recording's stages, and of each published cell.
REPLICATIONS, CELL_REPLICATIONS = 100, 20


@dataclass(frozen=True)
class Validation:
    """All comparisons and what is claimed of them."""

    groups: tuple[Group, ...]
    comparisons: dict[str, list[Comparison]]  #: of each group, in the order of its runs
    cells: list[CellResult]
    replications: int

    @property
    def claims(self) -> list[Claim]:
        """Every claim, recordings first."""
        found: list[Claim] = []
        for name, comparisons in self.comparisons.items():
            for comparison in comparisons:
                subject = f"{name}/{comparison.recording.folder.name}"
                found += recording_claims(subject, comparison)
        for result in self.cells:
            found += table_claims(result)
        return found

    def as_json(self) -> dict[str, Any]:
        """The claims as plain values."""
        return {"claims": [claim.as_json() for claim in self.claims]}


def validate(
    folder: Path,
    *,
    replications: int = REPLICATIONS,
    cell_replications: int = CELL_REPLICATIONS,
    processes: int = 0,
    progress: Progress = lambda done, total: None,
) -> Validation:
    """Compare every recording in ``folder/traces`` and simulate every published cell.

    Args:
        folder: The project's ``validation`` folder.
        replications: Runs of each stage of each recording.
        cell_replications: Runs of each published cell; 0 leaves the tables out.
        processes: Of this machine; 0: one a core. The result does not depend on it.
        progress: Called with (pieces done, pieces in all).

    Raises:
        CelerysimError: there is no catalogue of recordings, or one is missing.
    """
    traces = folder / TRACES
    groups = load_catalogue(traces)
    runs = [(group.name, run) for group in groups for run in group.runs(traces)]
    total = len(runs) + 1
    with executor_for(processes, len(runs)) as executor:
        futures = [executor.submit(compare, run, replications=replications) for _, run in runs]
        for done, _ in enumerate(as_completed(futures), 1):
            progress(done, total)
    comparisons: dict[str, list[Comparison]] = {group.name: [] for group in groups}
    for (name, _), future in zip(runs, futures, strict=True):
        comparisons[name].append(future.result())
    cells = tables(cell_replications, processes=processes) if cell_replications else []
    progress(total, total)
    return Validation(groups, comparisons, cells, replications)
