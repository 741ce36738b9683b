"""Real runs: Celery on a real broker, under a scenario's load, with everything worth keeping.

:func:`record` makes a recording, :func:`load_recording` reads one. The names
are loaded on first use: the recorded worker imports this package too, and
what it has in memory is what its forks cost.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celerysim.record.errors import MissingExtraError, RecordError
    from celerysim.record.recorder import record
    from celerysim.record.recording import Recording, Sample, load_recording

#: Public name to the module that defines it.
_PUBLIC = {
    "MissingExtraError": "celerysim.record.errors",
    "RecordError": "celerysim.record.errors",
    "Recording": "celerysim.record.recording",
    "Sample": "celerysim.record.recording",
    "load_recording": "celerysim.record.recording",
    "record": "celerysim.record.recorder",
}

__all__ = [
    "MissingExtraError",
    "RecordError",
    "Recording",
    "Sample",
    "load_recording",
    "record",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'celerysim.record' has no attribute '{name}'")
    return getattr(import_module(_PUBLIC[name]), name)
