"""The command line: parse, call one library function, show. No logic of its own.

Heavy modules are imported inside the commands, so that ``--help`` is quick. The
order of the imports is the order of the commands in ``--help``.
"""

from celerysim.cli import scenarios  # isort: skip
from celerysim.cli import logs  # isort: skip
from celerysim.cli import sweeps  # isort: skip
from celerysim.cli import studies  # isort: skip
from celerysim.cli import validation  # isort: skip
from celerysim.cli.common import app

__all__ = ["app", "logs", "scenarios", "studies", "sweeps", "validation"]
