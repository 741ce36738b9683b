"""What happened in a worker log: counted, listed and explained in plain words."""

from celerysim.inspection.finding import Finding
from celerysim.inspection.inspection import Inspection, inspect
from celerysim.inspection.picture import picture
from celerysim.inspection.reading import ObservedTrace, read_observed
from celerysim.inspection.report import inspection_report

__all__ = [
    "Finding",
    "Inspection",
    "ObservedTrace",
    "inspect",
    "inspection_report",
    "picture",
    "read_observed",
]
