"""Counts of the bags of a batch, in addition to their likelihoods."""

from typing import NamedTuple

import torch

# Places in the `counts` of operators, in the order of `BagCounts`.
SLOW, IMPOSSIBLE, RELAXED, INTRACTABLE = range(4)


class BagCounts(NamedTuple):
    """Number of unusual bags in a batch; see `unbag.torch.UnionLoss.counts`.

    Attributes
    ----------
    slow : Tensor
        Bags that took the slower path, because inclusion-exclusion could not certify their
        likelihood or they have too many labels for it. On a GPU, they include impossible bags.
    impossible : Tensor
        Bags whose label set no labelling can produce, and that were not relaxed.
    relaxed : Tensor
        Bags of which some labels were treated as optional.
    """

    slow: torch.Tensor
    impossible: torch.Tensor
    relaxed: torch.Tensor
