"""Inference given the label set of a bag: the core of the package.

The label set of a bag is the union of the labels of its instances. `infer` computes the posterior
of each instance, and `most_likely_labels` finds the most likely labelling of the whole bag.
"""

from .conditioner import Conditioner
from .inference import infer, most_likely_labels
from .policy import (
    ImpossibleBagError,
    ImpossibleBagWarning,
    IntractableBagError,
    IntractableBagWarning,
)
from .problem import Inference, UnionProblem

__all__ = [
    "Conditioner",
    "ImpossibleBagError",
    "ImpossibleBagWarning",
    "Inference",
    "IntractableBagError",
    "IntractableBagWarning",
    "UnionProblem",
    "infer",
    "most_likely_labels",
]
