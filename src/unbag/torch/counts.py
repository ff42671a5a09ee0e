"""What is counted of a batch of bags, beside their likelihoods."""

from typing import NamedTuple

import torch

# Places in the `counts` of operators, in the order of `BagCounts`.
SLOW, IMPOSSIBLE, RELAXED, INTRACTABLE = range(4)


class BagCounts(NamedTuple):
    """How many bags of a batch were out of the ordinary; see `unbag.torch.UnionLoss.counts`.

    Attributes
    ----------
    slow : Tensor
        Bags whose likelihood was not certified by inclusion and exclusion, or that have too many
        labels for it, and that took the slower path; on a GPU impossible ones are among them.
    impossible : Tensor
        Bags that no labelling explains, and that were not relaxed.
    relaxed : Tensor
        Bags some of whose labels were taken as optional.
    """

    slow: torch.Tensor
    impossible: torch.Tensor
    relaxed: torch.Tensor
