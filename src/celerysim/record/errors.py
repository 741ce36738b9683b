"""The errors of recording. Each message names the reason and the remedy."""

from __future__ import annotations

from celerysim.errors import CelerysimError


class RecordError(CelerysimError):
    """A recording cannot be made or cannot be read."""


class MissingExtraError(RecordError):
    """A package of the extra ``celerysim[record]`` is not installed."""
