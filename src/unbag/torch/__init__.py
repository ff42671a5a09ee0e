"""Union losses for neural networks, and a network that is ready to fit."""

from .loss import UnionLoss, union_loss

__all__ = ["UnionLoss", "union_loss"]
