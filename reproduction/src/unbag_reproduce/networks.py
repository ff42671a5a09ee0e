"""Networks that are compared with `ORNetwork`: the same ones, taught otherwise.

Only this file and `approximations` import torch.
"""

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from unbag.torch import ORNetwork
from unbag.torch.network import BagRows, MemberNetworks, network_inputs
from unbag.torch.training import device_of

from .approximations import (
    Reduction,
    linear_softmax_loss,
    max_pooling_loss,
    noisy_or_loss,
    per_class_loss,
    pooled_by_attention,
)


class SupervisedNetwork(ORNetwork):
    """The network that is told every instance's label."""

    def fit(
        self, X: Any, y: Any, instance_labels: Any = None, sample_weight: Any = None, **options: Any
    ) -> Self:
        """Fit to bags that have instance labels."""
        return super().fit(X, y, X.instance_labels, sample_weight, **options)


class ApproximateNetwork(ORNetwork):
    """Base of the networks that learn by an approximation of the likelihood.

    Instances are labelled as by the exact loss: by the mean of the members' softmax. Only the
    likelihood that chooses settings comes from the approximation.
    """

    @torch.no_grad()
    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Compute how likely label sets are by the approximation, for the mean member."""
        assert self.approximation is not None, "a subclass names its loss"
        device = device_of(self)
        inputs = torch.from_numpy(network_inputs(self, X.X, np.float64)).to(device)
        networks = self._all_columns().double().to(device)
        logits = networks(
            inputs.expand(networks.n_members, *inputs.shape), BagRows.of(X.offsets, device)
        )
        targets, offsets = (torch.as_tensor(each, device=device) for each in (y, X.offsets))
        losses = [self.approximation(each, offsets, targets, reduction="none") for each in logits]
        return -torch.stack(losses).mean(0).cpu().numpy()

    def _all_columns(self) -> MemberNetworks:
        return MemberNetworks.kept_in(self)


class NoisyOrNetwork(ApproximateNetwork):
    """A class occurs where one of its instances is there, classes by themselves."""

    approximation = staticmethod(noisy_or_loss)


class MaxPoolingNetwork(ApproximateNetwork):
    """The best instance speaks for its bag."""

    approximation = staticmethod(max_pooling_loss)


class LinearSoftmaxNetwork(ApproximateNetwork):
    """The mean of instances, weighted by themselves, speaks for their bag."""

    approximation = staticmethod(linear_softmax_loss)


def attention_loss(
    logits: Tensor,
    offsets: Tensor,
    targets: Tensor,
    *,
    background: bool = False,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute the binary cross-entropy of each class, by scores that attention pools.

    The logits are scores, then attention before its softmax over the instances of a bag.
    """
    if background:
        raise ValueError("Attention pooling does not support a background.")
    scores, attention = logits.chunk(2, dim=1)
    pooled = pooled_by_attention(scores, attention, offsets)
    return per_class_loss(logsigmoid(pooled), logsigmoid(-pooled), targets, weight, reduction)


class AttentionNetwork(ApproximateNetwork):
    """Scores are pooled by attention: more columns of networks with two hidden layers."""

    approximation = staticmethod(attention_loss)

    def _drawn_networks(self, bags, seed):
        networks = super()._drawn_networks(bags, seed)
        attention = super()._drawn_networks(bags, seed + 1)
        networks.weights[-1] = with_columns(networks.weights[-1], attention.weights[-1])
        networks.biases[-1] = with_columns(networks.biases[-1], attention.biases[-1])
        return networks

    def _keep(self, networks, encoder):
        """Keep what labels instances apart from attention."""
        super()._keep(networks, encoder)
        n_classes = len(self.classes_)
        self.attention_: list[np.ndarray] = []
        for parts in (self.weights_, self.biases_):
            parts[-1], attention = np.split(parts[-1], [n_classes], axis=2)
            self.attention_.append(attention)

    def _all_columns(self):
        networks = MemberNetworks.kept_in(self)
        for parts, more in zip((networks.weights, networks.biases), self.attention_, strict=True):
            parts[-1] = with_columns(parts[-1], torch.from_numpy(more))
        return networks


def with_columns(part: Tensor, more: Tensor) -> torch.nn.Parameter:
    """Return a part of the last layer with more columns."""
    return torch.nn.Parameter(torch.cat([part.detach(), more.detach()], 2))


#: How networks can be taught.
TAUGHT: dict[str, type[ORNetwork]] = {
    "exact": ORNetwork,
    "told instance labels": SupervisedNetwork,
    "noisy-or": NoisyOrNetwork,
    "max pooling": MaxPoolingNetwork,
    "linear softmax": LinearSoftmaxNetwork,
    "attention": AttentionNetwork,
}


def device_name() -> str:
    """Return what networks are trained on by default, in words."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
