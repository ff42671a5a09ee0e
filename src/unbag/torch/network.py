"""An ensemble of small networks, each of which scores the instances of bags.

A layer of all members is one array of shape (n_members, n_inputs, n_outputs), so that one matrix
product serves all members.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch

from .activation import (
    BagRows,
    Disturbance,
    activate,
    bag_means,
    one_bag,
    spread_over_bags,
)


class MemberNetworks(torch.nn.Module):
    """Networks with ReLU units and a learnt summary of the bag, the context.

    After the first hidden layer, the bag's mean of ``tanh(h @ context + bias)`` is one more input
    of the next layer, the same for all instances of the bag.

    Parameters
    ----------
    weights : sequence of Tensor of shape (n_members, n_inputs, n_outputs)
        Of each layer; the last one gives the logits.
    biases : sequence of Tensor of shape (n_members, 1, n_outputs)
    context : sequence of Tensor
        Empty without a context. Otherwise the weights of its units, their biases, and the weights
        of the next layer for them: shapes (n_members, n_hidden, n_units), (n_members, 1, n_units)
        and (n_members, n_units, n_outputs).
    """

    def __init__(
        self,
        weights: Sequence[torch.Tensor],
        biases: Sequence[torch.Tensor],
        context: Sequence[torch.Tensor] = (),
    ) -> None:
        super().__init__()
        # Arrays of a file may differ, and those of one member would be used for all.
        if len({len(part) for part in (*weights, *biases, *context)}) != 1:
            raise ValueError("layers of networks are of different numbers of members")
        self.weights: torch.nn.ParameterList = torch.nn.ParameterList(weights)
        self.biases: torch.nn.ParameterList = torch.nn.ParameterList(biases)
        self.context: torch.nn.ParameterList = torch.nn.ParameterList(context)

    @classmethod
    def drawn(
        cls,
        n_members: int,
        n_features: int,
        hidden: Sequence[int],
        n_columns: int,
        context_units: int,
        generator: torch.Generator,
    ) -> "MemberNetworks":
        """Draw weights, each uniformly below one over the root of the number of inputs.

        `hidden` are the units of each hidden layer. The generator and the networks are on the CPU,
        so that all devices start from the same networks.
        """

        def draw(n_inputs, *shape):
            bound = n_inputs**-0.5
            drawn = torch.empty(n_members, *shape, dtype=torch.float32)
            return drawn.uniform_(-bound, bound, generator=generator)

        widths = [n_features, *hidden, n_columns]
        layers = list(pairwise(widths))
        weights = [draw(n_in, n_in, n_out) for n_in, n_out in layers]
        biases = [draw(n_in, 1, n_out) for n_in, n_out in layers]
        context = []
        if context_units:
            first, following = widths[1:3]
            context = [
                draw(first, first, context_units),
                draw(first, 1, context_units),
                draw(first + context_units, context_units, following),
            ]
        return cls(weights, biases, context)

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return len(self.weights[0])

    def n_multiplications(self, n_instances: int) -> int:
        """Return the number of multiplications to score some instances."""
        return n_instances * sum(part.numel() for part in (*self.weights, *self.context))

    def members(self, start: int, stop: int) -> "MemberNetworks":
        """Return copies of some of the networks."""
        return MemberNetworks(*(
            [part.detach()[start:stop].clone() for part in parts]
            for parts in self.named_parts().values()
        ))  # fmt: skip

    def named_parts(self) -> dict[str, list[torch.Tensor]]:
        """Return all weights by name."""
        return {
            "weights": list(self.weights),
            "biases": list(self.biases),
            "context": list(self.context),
        }

    def affordable(self, offsets: np.ndarray, n_units: int) -> Iterator[tuple[int, int]]:
        """Yield the start and stop of runs of bags that need few hidden units.

        Counted over all members; a run has at least one bag.
        """
        n_rows = n_units // (self.n_members * max(weight.shape[2] for weight in self.weights))
        first, n_bags = 0, len(offsets) - 1
        while first < n_bags:
            last = int(np.searchsorted(offsets, offsets[first] + n_rows, side="right")) - 1
            last = min(max(last, first + 1), n_bags)
            yield first, last
            first = last

    @classmethod
    def joined(cls, groups: Sequence["MemberNetworks"]) -> "MemberNetworks":
        """Return the networks of several groups as one."""
        parts = [group.named_parts() for group in groups]
        return cls(*(
            [torch.cat(part) for part in zip(*(named[name] for named in parts), strict=True)]
            for name in parts[0]
        ))  # fmt: skip

    def forward(
        self, X: torch.Tensor, rows: BagRows, disturbance: Disturbance | None = None
    ) -> torch.Tensor:
        """Return the logits of instances, of shape (n_members, n_instances, n_columns).

        `X` has shape (n_members, n_instances, n_features). A disturbance is for training only.
        """
        everything = one_bag(X.shape[1], X.device)
        hidden, shift, shifted = X, self.biases[0], everything
        for layer, weight in enumerate(self.weights[:-1]):
            hidden = activate(torch.bmm(hidden, weight), shift, shifted, disturbance)
            shift, shifted = self.biases[layer + 1], everything
            if layer == 0 and len(self.context):
                units, bias, effect = self.context
                means = bag_means(torch.tanh(torch.baddbmm(bias, hidden, units)), rows)
                shift, shifted = torch.baddbmm(shift, means, effect), rows
        return torch.bmm(hidden, self.weights[-1]) + spread_over_bags(shift, shifted)
