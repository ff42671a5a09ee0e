"""Choose and compare models of bags: scorers, stratified folds, tables of results."""

from .folds import MultilabelStratifiedKFold, cross_validate_bags, fold_summary
from .scorers import (
    SCORERS,
    BagScorer,
    all_measures,
    bag_scores,
    inductive_accuracy,
    transductive_accuracy,
)

__all__ = [
    "SCORERS",
    "BagScorer",
    "MultilabelStratifiedKFold",
    "all_measures",
    "bag_scores",
    "cross_validate_bags",
    "fold_summary",
    "inductive_accuracy",
    "transductive_accuracy",
]
