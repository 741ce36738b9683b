"""A scenario fitted to run 1 of a cell of real logs predicts its runs 2 to 8."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference_cells import CELLS, predict

#: Greatest bias. Run 1 of schedule_concurrency_8 is itself a third slower than the other runs, and
#: shrinks of a saturated autoscaled worker come from results a millisecond apart.
LIMITS = {"throughput_per_s": 0.02, "sojourn_s.mean": 0.02, "sojourn_s.p95": 0.03, "forks": 0.02}
ODD_RUN = {"schedule_concurrency_8": {"sojourn_s.mean": 0.35, "sojourn_s.p95": 0.60}}
SATURATED = {"forks": 0.45}


@pytest.mark.parametrize("cell", CELLS)
def test_run_1_predicts_the_other_runs(reference: Path, cell: str) -> None:
    limits = LIMITS | ODD_RUN.get(cell, {})
    if cell.startswith("cumulative_autoscale"):
        limits |= SATURATED
    for figure, (model, _) in predict(reference / "prefork_logs", cell, replications=3).items():
        assert model.bias is not None
        assert abs(model.bias) <= limits[figure], (figure, model.log, model.predicted)


def test_logs_of_several_sizes_tell_cpu_from_waiting(reference: Path) -> None:
    """The tasks are about 0.6 s CPU and 1 s sleep (mechanics of the published experiment)."""
    from celerysim.calibrate import calibrate
    from celerysim.trace import read_log

    logs = [
        read_log(reference / "prefork_logs" / f"cumulative_concurrency_{size}_run01.log.gz")
        for size in (8, 2, 4)
    ]
    fit = calibrate(logs, cores=2, replications=0)
    by_name = {profile.name: profile for profile in fit.profiles}
    assert fit.split.identified
    assert by_name["cpu_intensive"].cpu_s == pytest.approx(0.6, abs=0.12)
    assert by_name["memory_intensive"].cpu_s == pytest.approx(0.075, abs=0.03)
