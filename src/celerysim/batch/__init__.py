"""The batch engine: prefork workers in lock-step, many replications and parameter points at once.

The same results as the reference engine (:mod:`celerysim.engine`), run by run;
what it does not support it refuses by name.
"""

from celerysim.batch.result import BatchResult
from celerysim.batch.simulation import simulate_many
from celerysim.batch.support import unsupported

__all__ = ["BatchResult", "simulate_many", "unsupported"]
