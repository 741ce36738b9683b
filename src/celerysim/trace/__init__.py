"""Worker logs: read them, and get the same rows a simulation gives."""

from celerysim.trace.reader import LineCounts
from celerysim.trace.trace import Trace, read_events, read_log

__all__ = ["LineCounts", "Trace", "read_events", "read_log"]
