"""Union losses for neural networks, and a network to fit."""

from unbag._extras import require

# So that whoever lacks it is told which extra brings it.
require("torch")

from .counts import BagCounts  # noqa: E402
from .data import CollatedBags, MIMLDataset, collate_bags  # noqa: E402
from .estimator import ORNetwork  # noqa: E402
from .loss import UnionLoss, union_loss  # noqa: E402
from .posteriors import annotate, posterior  # noqa: E402

__all__ = [
    "BagCounts",
    "CollatedBags",
    "MIMLDataset",
    "ORNetwork",
    "UnionLoss",
    "annotate",
    "collate_bags",
    "posterior",
    "union_loss",
]
