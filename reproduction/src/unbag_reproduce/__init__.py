"""The paper's experiments, and ours, beside the published figures.

The files here are what experiments are made of; ``studies`` has the experiments, one file each,
which find here all that most of them need.
"""

from unbag.model_selection.methods import (
    BOUNDS,
    METHODS,
    NOTHING,
    Method,
    grid,
    levels,
    penalised_bound,
    penalised_model,
)
from unbag.model_selection.statistics import (
    BAG_MEASURES,
    BOLD,
    best_setting,
    spread,
    with_bold,
    words,
)
from unbag.model_selection.tables import Table

from .comparison import (
    Comparison,
    are_done,
    fit_and_measure,
    fold,
    measured,
    some_methods,
    tuning_note,
    whole,
)
from .data import load, load_fold, split
from .figures import STYLES, Figure, comparison_figure, curve_figure, panels
from .ledger import Ledger, Results
from .plan import Plan, Study
from .published import published, published_figure
from .reproduce import reproduce
from .studies import STUDIES, find_study
from .tables import beside, cell, comparison_table, difference, draw_note, record_cell
from .unit import Unit, Values

__all__ = [
    "BAG_MEASURES", "BOLD", "BOUNDS", "METHODS", "NOTHING", "STUDIES", "STYLES",
    "Comparison", "Figure", "Ledger", "Method", "Plan", "Results", "Study", "Table", "Unit",
    "Values", "are_done", "beside", "best_setting", "cell", "comparison_figure",
    "comparison_table", "curve_figure", "difference", "draw_note", "find_study",
    "fit_and_measure", "fold", "grid", "levels", "load", "load_fold", "measured", "panels",
    "penalised_bound", "penalised_model", "published", "published_figure", "record_cell",
    "reproduce", "some_methods", "split", "spread", "tuning_note", "whole", "with_bold",
    "words",
]  # fmt: skip
