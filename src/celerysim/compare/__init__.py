"""A recording of real Celery beside what the model predicts for it.

``figures.py`` says what is compared, ``stages.py`` what the model is given,
``comparison.py`` runs it.
"""

from celerysim.compare.comparison import Comparison, compare
from celerysim.compare.figures import FIGURES, Figure, figures
from celerysim.compare.prediction import Prediction
from celerysim.compare.stages import Stage

__all__ = ["FIGURES", "Comparison", "Figure", "Prediction", "Stage", "compare", "figures"]
