"""Simulated logs go out and come back (all 200: python tests/unit/calibrate/round_trip.py)."""

from __future__ import annotations

import pytest
from round_trip import as_log, out_and_back, random_scenario

from celerysim.calibrate import calibrate
from celerysim.engine.simulation import simulate
from celerysim.scenario import make_scenario


@pytest.mark.parametrize("number", range(12))
def test_a_simulated_log_gives_its_scenario_back(number: int) -> None:
    assert out_and_back(number, replications=3).deviations == []


def test_a_calibration_is_reproducible() -> None:
    log = as_log(simulate(make_scenario(random_scenario(3))))
    assert calibrate([log], cores=2).as_json() == calibrate([log], cores=2).as_json()
