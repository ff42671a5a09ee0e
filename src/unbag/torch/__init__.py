"""Union losses for neural networks, the approximations that they replace, and a network to fit."""

from unbag._extras import require

# So that the error names the extra, where torch is not installed.
require("torch")

from .approximations import (  # noqa: E402
    AttentionPooling,
    linear_softmax_loss,
    max_pooling_loss,
    noisy_or_loss,
)
from .counts import BagCounts  # noqa: E402
from .estimator import ORNetwork  # noqa: E402
from .loaders import CollatedBags, MIMLDataset, collate_bags  # noqa: E402
from .loss import UnionLoss, union_loss  # noqa: E402
from .posteriors import annotate, posterior  # noqa: E402

__all__ = [
    "AttentionPooling",
    "BagCounts",
    "CollatedBags",
    "MIMLDataset",
    "ORNetwork",
    "UnionLoss",
    "annotate",
    "collate_bags",
    "linear_softmax_loss",
    "max_pooling_loss",
    "noisy_or_loss",
    "posterior",
    "union_loss",
]
