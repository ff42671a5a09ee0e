"""Union losses for neural networks, and a network that is ready to fit."""

from unbag._extras import require

# So that whoever lacks it is told which extra brings it.
require("torch")

from .data import CollatedBags, MIMLDataset, collate_bags  # noqa: E402
from .estimator import ORNetwork  # noqa: E402
from .loss import UnionLoss, union_loss  # noqa: E402

__all__ = [
    "CollatedBags",
    "MIMLDataset",
    "ORNetwork",
    "UnionLoss",
    "collate_bags",
    "union_loss",
]
