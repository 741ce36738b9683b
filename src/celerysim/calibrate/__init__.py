"""From worker logs to a scenario, with residuals and what the logs cannot tell."""

from celerysim.calibrate.calibration import Calibration, calibrate
from celerysim.calibrate.check import Comparison, compare

__all__ = ["Calibration", "Comparison", "calibrate", "compare"]
