"""Sweeps: a scenario at many points, many times, on one machine or many; and the best settings."""

from celerysim.sweep.axes import Axis
from celerysim.sweep.experiment import Experiment, Picture, Until, load_experiment
from celerysim.sweep.optimum import Optimum
from celerysim.sweep.problems import ExperimentError
from celerysim.sweep.search import optimise
from celerysim.sweep.sweeping import sweep
from celerysim.sweep.table import Table

__all__ = [
    "Axis",
    "Experiment",
    "ExperimentError",
    "Optimum",
    "Picture",
    "Table",
    "Until",
    "load_experiment",
    "optimise",
    "sweep",
]
