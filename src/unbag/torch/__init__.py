"""Union losses for neural networks, and the approximations that they replace."""

from unbag._extras import require

require("torch")

from .posteriors import annotate, posterior  # noqa: E402
from .approximations import (  # noqa: E402
    AttentionPooling,
    linear_softmax_loss,
    max_pooling_loss,
    noisy_or_loss,
)
from .loss import UnionLoss, union_loss  # noqa: E402

__all__ = [
    "AttentionPooling",
    "UnionLoss",
    "annotate",
    "linear_softmax_loss",
    "max_pooling_loss",
    "noisy_or_loss",
    "posterior",
    "union_loss",
]
