"""celerysim: simulate a Celery worker as its source really behaves.

The public names below are loaded on first use, so that importing celerysim is
quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from celerysim._version import __version__

if TYPE_CHECKING:
    from celerysim.engine.simulation import simulate
    from celerysim.errors import CelerysimError, LogError, ScenarioError
    from celerysim.history import History
    from celerysim.result import Result
    from celerysim.scenario import Scenario, load_scenario, make_scenario
    from celerysim.trace import Trace, read_log

#: Public name to the module that defines it.
_PUBLIC = {
    "CelerysimError": "celerysim.errors",
    "History": "celerysim.history",
    "LogError": "celerysim.errors",
    "Result": "celerysim.result",
    "Scenario": "celerysim.scenario",
    "ScenarioError": "celerysim.errors",
    "Trace": "celerysim.trace",
    "load_scenario": "celerysim.scenario",
    "make_scenario": "celerysim.scenario",
    "read_log": "celerysim.trace",
    "simulate": "celerysim.engine.simulation",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'celerysim' has no attribute '{name}'")
    return getattr(import_module(_PUBLIC[name]), name)
