"""``python -m celerysim.cli``."""

from celerysim.cli import app

app()
