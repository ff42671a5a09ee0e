"""Union losses for neural networks, and a network to fit."""

from unbag._messages import require

# Raises an error that names the extra if torch is not installed.
require("torch")

from .estimator import ORNetwork  # noqa: E402
from .loaders import CollatedBags, MIMLDataset, collate_bags  # noqa: E402
from .loss import BagCounts, UnionLoss, union_loss, union_loss_linear  # noqa: E402
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
    "union_loss_linear",
]
