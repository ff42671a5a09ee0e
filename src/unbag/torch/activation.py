"""What happens between two matrix products of a network: context of bags, ReLU and dropout.

Arrays have shape (n_members, n_rows, n_units); the rows of a bag are contiguous. On the CPU,
products are fast and memory is slow, so our own kernels compute an activation in one pass, and its
gradient in another. They also draw the units to drop: in torch, that takes longer than the
products.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unbag._compile import kernel

from .threads import in_parallel


@dataclass(frozen=True)
class BagRows:
    """The rows of each bag: offsets of bags, and the bag of every row, in int64."""

    offsets: torch.Tensor
    bag: torch.Tensor

    @classmethod
    def of(cls, offsets: np.ndarray, device: torch.device) -> "BagRows":
        """Read offsets of shape (n_bags + 1,)."""
        bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return cls(
            torch.from_numpy(offsets.astype(np.int64)).to(device),
            torch.from_numpy(bag).to(device),
        )

    @property
    def sizes(self) -> torch.Tensor:
        """Number of rows of each bag, of shape (n_bags,)."""
        return self.offsets.diff()


def one_bag(n_rows: int, device: torch.device) -> BagRows:
    """Return rows that all belong to one bag."""
    bag = torch.zeros(n_rows, dtype=torch.int64, device=device)
    return BagRows(torch.tensor([0, n_rows], device=device), bag)


@dataclass(frozen=True)
class Disturbance:
    """What is done to a network while it learns, so that it does not learn by heart.

    `dropout` is the share of the hidden units that are dropped, and `noise` the deviation of what
    is added to the inputs. The generator is of the device.
    """

    dropout: float
    noise: float
    generator: torch.Generator

    def noisy(self, X: torch.Tensor, n_members: int) -> torch.Tensor:
        """Return inputs of shape (n_members, n_rows, n_features), each member's with its noise."""
        if not self.noise:
            return X.expand(n_members, *X.shape)
        shape = (n_members, *X.shape)
        noise = torch.empty(shape, dtype=X.dtype, device=X.device)
        return noise.normal_(0.0, self.noise, generator=self.generator) + X


def activate(
    x: torch.Tensor, shift: torch.Tensor, rows: BagRows, disturbance: Disturbance | None
) -> torch.Tensor:
    """Add a shift to the rows of each bag, apply ReLU, and drop units.

    The units that are kept are scaled up in return. `x`, which may be overwritten, has shape
    (n_members, n_rows, n_units), and `shift` has shape (n_members, n_bags, n_units).
    """
    dropout = 0.0 if disturbance is None else disturbance.dropout
    if x.device.type == "cpu" and x.dtype == torch.float32:
        keys = torch.zeros(len(x), dtype=torch.int64)
        if disturbance is not None and dropout:
            keys.random_(0, 2**32, generator=disturbance.generator)
        return _Activation.apply(x, shift, rows, dropout, keys.numpy().astype(np.uint32))
    hidden = torch.relu(x + spread_over_bags(shift, rows))
    if disturbance is None or not dropout:
        return hidden
    kept = torch.empty_like(hidden).bernoulli_(1.0 - dropout, generator=disturbance.generator)
    return hidden * kept.mul_(1.0 / (1.0 - dropout))


class _Activation(torch.autograd.Function):
    """`activate` on the CPU, in place; zeros in the result are the units that were dropped."""

    @staticmethod
    def forward(ctx: Any, x, shift, rows, dropout, keys):
        ctx.mark_dirty(x)
        bag, limit = rows.bag.numpy(), np.uint32(min(dropout * 2.0**32, 2.0**32 - 1))
        arrays = x.detach().numpy(), shift.detach().contiguous().numpy()
        larger = np.float32(1.0 / (1.0 - dropout))

        def share(start, stop):
            cut_and_drop(*arrays, bag, limit, larger, keys, start, stop)

        in_parallel(share, x)
        ctx.save_for_backward(x)
        ctx.rows, ctx.larger = rows, larger
        return x

    @staticmethod
    def backward(ctx: Any, *gradients):
        (x,) = ctx.saved_tensors
        (gradient,) = gradients
        # In place: the product of the next layer created it, and nothing else uses it.
        gradient = gradient.contiguous()
        arrays = x.numpy(), gradient.numpy()
        in_parallel(lambda start, stop: pass_back(*arrays, ctx.larger, start, stop), x)
        return gradient, bag_sums(gradient, ctx.rows), None, None, None


def spread_over_bags(values: torch.Tensor, rows: BagRows) -> torch.Tensor:
    """Copy values of bags to their rows: (n_members, n_bags, ...) to (n_members, n_rows, ...)."""
    if values.shape[1] == 1:
        return values
    return _Spread.apply(values, rows)


class _Spread(torch.autograd.Function):
    """`spread_over_bags` with a gradient that is summed in a fixed order."""

    @staticmethod
    def forward(ctx: Any, values, rows):
        ctx.rows = rows
        return values.index_select(1, rows.bag)

    @staticmethod
    def backward(ctx: Any, *gradients):
        return bag_sums(gradients[0], ctx.rows), None


def bag_means(values: torch.Tensor, rows: BagRows) -> torch.Tensor:
    """Return the mean of the rows of each bag; zero for a bag without rows."""
    return _Means.apply(values, rows)


class _Means(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values, rows):
        ctx.rows = rows
        return bag_sums(values, rows) / rows.sizes.clamp(min=1)[:, None].to(values.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients):
        sizes = ctx.rows.sizes.clamp(min=1)[:, None].to(gradients[0].dtype)
        return (gradients[0] / sizes).index_select(1, ctx.rows.bag), None


def bag_sums(values: torch.Tensor, rows: BagRows) -> torch.Tensor:
    """Add up the rows of each bag, in their order: atomic sums would differ from run to run."""
    n_bags = len(rows.offsets) - 1
    if n_bags == 1:
        return values.sum(1, keepdim=True)
    if values.device.type == "cpu":
        sums = torch.zeros((len(values), n_bags, values.shape[2]), dtype=values.dtype)
        arrays = values.detach().contiguous().numpy(), rows.bag.numpy(), sums.numpy()
        add_rows(*arrays)
        return sums
    lengths = rows.sizes.expand(len(values), n_bags).contiguous()
    return torch.segment_reduce(
        values.contiguous(), "sum", lengths=lengths, axis=1, unsafe=True, initial=0.0
    )


@kernel
def cut_and_drop(x, shift, bag, limit, larger, keys, start, stop):
    """Activate rows ``start:stop`` of all members one after the other, in place.

    A unit is dropped where a hash of its place and the member's key is below the limit.
    """
    n_rows, n_units = x.shape[1], x.shape[2]
    for at in range(start, stop):
        m, r = at // n_rows, at % n_rows
        row, added = x[m, r], shift[m, bag[r]]
        first = np.uint32(np.uint32(r * n_units) ^ keys[m])
        for u in range(n_units):
            h = np.uint32(first + np.uint32(u))
            h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x7FEB352D))
            h = np.uint32((h ^ (h >> np.uint32(15))) * np.uint32(0x846CA68B))
            h = np.uint32(h ^ (h >> np.uint32(16)))
            value = (row[u] + added[u]) * larger
            row[u] = value if (h >= limit) & (value > 0) else np.float32(0.0)


@kernel
def pass_back(x, gradient, larger, start, stop):
    """Keep a gradient where an activation is not zero, in place."""
    n_rows, n_units = x.shape[1], x.shape[2]
    for at in range(start, stop):
        m, r = at // n_rows, at % n_rows
        row, to = x[m, r], gradient[m, r]
        for u in range(n_units):
            to[u] = to[u] * larger if row[u] > 0 else np.float32(0.0)


@kernel
def add_rows(values, bag, sums):
    """Add every row to the sum of its bag."""
    n_units = values.shape[2]
    for m in range(values.shape[0]):
        for r in range(values.shape[1]):
            row, total = values[m, r], sums[m, bag[r]]
            for u in range(n_units):
                total[u] += row[u]
