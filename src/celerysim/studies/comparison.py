"""What ``celerysim pools`` asks: pools side by side, at the tasks' own share of CPU or at many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celerysim.errors import CelerysimError
from celerysim.scenario import Scenario
from celerysim.studies.memory import Memory
from celerysim.studies.pools import PoolResult, pools
from celerysim.studies.pools_report import pools_report, share_report
from celerysim.studies.runs import Progress
from celerysim.studies.shares import ShareSweep, share_sweep, shares_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Comparison:
    """Rows, or a sweep of rows, with their report and picture."""

    rows: tuple[PoolResult, ...] = ()
    sweep: ShareSweep | None = None

    def as_json(self) -> Any:
        """A list of pools, or the sweep as an object."""
        if self.sweep is not None:
            return self.sweep.as_json()
        return [row.as_json() for row in self.rows]

    def report(self, title: str) -> str:
        """As text."""
        if self.sweep is not None:
            return share_report(title, self.sweep)
        return pools_report(title, self.rows)

    def picture(self, title: str) -> Figure:
        """As a picture."""
        from celerysim.studies.pools_picture import pools_picture, share_picture

        if self.sweep is not None:
            return share_picture(self.sweep, title)
        return pools_picture(self.rows, title)


def compare_pools(
    scenario: Scenario,
    *,
    pools_: str = "prefork,gevent,threads",
    sizes: str = "2,4,8",
    cpu_share: str | None = None,
    compare: str = "throughput_per_s",
    memory: Memory | None = None,
    replications: int = 1,
    progress: Progress = lambda done, total: None,
) -> Comparison:
    """Simulate pools of sizes, named in texts separated by commas.

    With ``cpu_share`` (``from:to:step``) at each of these shares, compared by the
    figure ``compare``.

    Raises:
        CelerysimError: a text cannot be understood; and as the functions that do the work.
    """
    names = [name.strip() for name in pools_.split(",") if name.strip()]
    numbers = _numbers(sizes)
    if cpu_share is None:
        rows = pools(
            scenario,
            pools=names,
            sizes=numbers,
            replications=replications,
            memory=memory,
            progress=progress,
        )
        return Comparison(rows=tuple(rows))
    sweep = share_sweep(
        scenario,
        shares_of(cpu_share),
        pools_=names,
        sizes=numbers,
        compare=compare,
        replications=replications,
        memory=memory,
        progress=progress,
    )
    return Comparison(sweep=sweep)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise CelerysimError(
            f"'{text}' is no list of sizes. Remedy: write whole numbers, such as 2,4,8."
        ) from None
