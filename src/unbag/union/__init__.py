"""Inference given the label set of a bag: the core of the package.

The label set of a bag is the union of the labels of its instances. `infer` computes the posterior
of each instance, `most_likely_labels` finds the most likely labelling of the whole bag, and
`sample_labels` draws labellings at random.
"""

from unbag.groups import Groups

from .inference import infer
from .labelling import most_likely_labels
from .policy import (
    ImpossibleBagError,
    ImpossibleBagWarning,
    IntractableBagError,
    IntractableBagWarning,
)
from .problem import Inference, UnionProblem
from .sampling import sample_labels

__all__ = [
    "Groups",
    "ImpossibleBagError",
    "ImpossibleBagWarning",
    "Inference",
    "IntractableBagError",
    "IntractableBagWarning",
    "UnionProblem",
    "infer",
    "most_likely_labels",
    "sample_labels",
]
