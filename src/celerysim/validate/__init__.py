"""Everything the model is held against, in one report: recorded runs and published tables.

``catalogue.py`` says which recordings there are, ``claims.py`` what is claimed and
whether it holds, ``report.py`` and ``cards.py`` write it down.
"""

from celerysim.validate.catalogue import Group, load_catalogue
from celerysim.validate.claims import Claim
from celerysim.validate.validation import Validation, validate

__all__ = ["Claim", "Group", "Validation", "load_catalogue", "validate"]
