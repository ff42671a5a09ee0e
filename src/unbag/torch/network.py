"""Small networks side by side, the members: each scores the instances of bags.

A layer of all members is one array of shape (n_members, n_inputs, n_outputs), so that one matrix
product serves all members. Activations have shape (n_members, n_rows, n_units); the rows of a bag
are contiguous.

On the CPU, products are fast and memory is slow. So our own kernels compute an activation in one
pass, and its gradient in another. They also draw the units to drop, which takes torch longer than
the products.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unbag._compile import kernel
from unbag.fitting.scaling import Scale

# Number of quantile intervals per feature.
N_PIECES = 8
# Entries of an array from which a second thread is worthwhile.
WORTHWHILE = 2**17


class DivergedError(ValueError):
    """Scores or weights of networks are huge, infinite or NaN."""

    def __init__(self) -> None:
        super().__init__(
            "The networks' scores or weights have become huge, infinite or NaN: lower "
            "learning_rate, or scale the features."
        )


class MemberNetworks(torch.nn.Module):
    """Networks with ReLU units and a learnt summary of the bag, the context.

    After the first hidden layer, the bag's mean of ``tanh(h @ context + bias)`` is one more input
    of the next layer, the same for all instances of the bag.

    Weights have shape (n_members, n_inputs, n_outputs) and biases (n_members, 1, n_outputs), layer
    by layer; the last layer gives the logits. The context is empty, or has three parts: weights and
    biases of its units, and the weights of the second layer for them.
    """

    def __init__(
        self, weights: Sequence[Tensor], biases: Sequence[Tensor], context: Sequence[Tensor] = ()
    ) -> None:
        super().__init__()
        # Arrays of a file may differ, and those of one member would be used for all.
        if len({len(part) for part in (*weights, *biases, *context)}) != 1:
            raise ValueError("layers of networks have different numbers of members")
        self.weights: torch.nn.ParameterList = torch.nn.ParameterList(weights)
        self.biases: torch.nn.ParameterList = torch.nn.ParameterList(biases)
        self.context: torch.nn.ParameterList = torch.nn.ParameterList(context)

    @classmethod
    def drawn(cls, model: Any, n_inputs: int, n_columns: int, seed: int) -> "MemberNetworks":
        """Draw the weights of an `unbag.torch.ORNetwork`, uniformly.

        The bound is one over the root of the number of inputs. Networks are drawn on the CPU, so
        all devices start from the same.
        """
        generator = torch.Generator().manual_seed(seed)
        context_units = model.context_units

        def draw(n_inputs, *shape):
            bound = n_inputs**-0.5
            drawn = torch.empty(model.n_members, *shape, dtype=torch.float32)
            return drawn.uniform_(-bound, bound, generator=generator)

        widths = [n_inputs, *model.hidden, n_columns]
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

    @classmethod
    def kept_in(cls, model: Any) -> "MemberNetworks":
        """Return the networks of a fitted `unbag.torch.ORNetwork`, on the CPU."""
        parts = model.weights_, model.biases_, model.context_
        return cls(*([torch.from_numpy(each) for each in part] for part in parts))

    def keep_in(self, model: Any) -> None:
        """Keep the weights as learnt attributes of an `unbag.torch.ORNetwork`."""
        for name, parts in self.named_parts().items():
            setattr(model, f"{name}_", [part.detach().cpu().numpy() for part in parts])
        if not all(np.isfinite(part).all() for part in (*model.weights_, *model.biases_)):
            raise DivergedError

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return len(self.weights[0])

    @property
    def widest(self) -> int:
        """Number of units of the widest layer, the last one included."""
        return max(weight.shape[2] for weight in self.weights)

    def n_multiplications(self, n_instances: int) -> int:
        """Return the number of multiplications to score some instances."""
        return n_instances * sum(part.numel() for part in (*self.weights, *self.context))

    def members(self, start: int, stop: int) -> "MemberNetworks":
        """Return copies of some of the networks."""
        return MemberNetworks(*(
            [part.detach()[start:stop].clone() for part in parts]
            for parts in self.named_parts().values()
        ))  # fmt: skip

    def named_parts(self) -> dict[str, list[Tensor]]:
        """Return all weights by name."""
        return {
            "weights": list(self.weights),
            "biases": list(self.biases),
            "context": list(self.context),
        }

    @classmethod
    def joined(cls, groups: Sequence["MemberNetworks"]) -> "MemberNetworks":
        """Return the networks of several groups as one."""
        parts = [group.named_parts() for group in groups]
        return cls(*(
            [torch.cat(part) for part in zip(*(named[name] for named in parts), strict=True)]
            for name in parts[0]
        ))  # fmt: skip

    def forward(
        self, X: Tensor, rows: "BagRows", disturbance: "Disturbance | None" = None
    ) -> Tensor:
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


@dataclass(frozen=True)
class BagRows:
    """The rows of each bag: offsets of bags, and the bag of each row, in int64."""

    offsets: Tensor
    bag: Tensor

    @classmethod
    def of(cls, offsets: np.ndarray, device: torch.device) -> "BagRows":
        """Read offsets of shape (n_bags + 1,)."""
        bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return cls(
            torch.from_numpy(offsets.astype(np.int64)).to(device), torch.from_numpy(bag).to(device)
        )

    @property
    def sizes(self) -> Tensor:
        """Number of rows of each bag, of shape (n_bags,)."""
        return self.offsets.diff()


def one_bag(n_rows: int, device: torch.device) -> BagRows:
    """Return rows that all belong to one bag."""
    bag = torch.zeros(n_rows, dtype=torch.int64, device=device)
    return BagRows(torch.tensor([0, n_rows], device=device), bag)


@dataclass(frozen=True)
class Disturbance:
    """Dropout and noise during training, which keep networks from overfitting.

    `dropout` is the share of hidden units that are dropped, and `noise` the standard deviation of
    the noise in the inputs. The generator is on the device.
    """

    dropout: float
    noise: float
    generator: torch.Generator

    def noisy(self, X: Tensor, n_members: int) -> Tensor:
        """Return inputs of shape (n_members, n_rows, n_features), with noise for each member."""
        if not self.noise:
            return X.expand(n_members, *X.shape)
        shape = (n_members, *X.shape)
        noise = torch.empty(shape, dtype=X.dtype, device=X.device)
        return noise.normal_(0.0, self.noise, generator=self.generator) + X


def activate(x: Tensor, shift: Tensor, rows: BagRows, disturbance: Disturbance | None) -> Tensor:
    """Add a shift to the rows of each bag, apply ReLU, drop units, and scale the others up.

    `x` may be overwritten; `shift` has shape (n_members, n_bags, n_units).
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
    """`activate` on the CPU, in place; zeros in the result are inactive or dropped units."""

    @staticmethod
    def forward(ctx: Any, x, shift, rows, dropout, keys):
        ctx.mark_dirty(x)
        bag, limit = rows.bag.numpy(), np.uint32(min(dropout * 2.0**32, 2.0**32 - 1))
        arrays = x.detach().numpy(), shift.detach().contiguous().numpy()
        factor = np.float32(1.0 / (1.0 - dropout))

        def share(start, stop):
            cut_and_drop(*arrays, bag, limit, factor, keys, start, stop)

        in_parallel(share, x)
        ctx.save_for_backward(x)
        ctx.rows, ctx.factor = rows, factor
        return x

    @staticmethod
    def backward(ctx: Any, *gradients):
        (x,) = ctx.saved_tensors
        (gradient,) = gradients
        # In place: the product of the next layer created it, and nothing else uses it.
        gradient = gradient.contiguous()
        arrays = x.numpy(), gradient.numpy()
        in_parallel(lambda start, stop: pass_back(*arrays, ctx.factor, start, stop), x)
        return gradient, bag_sums(gradient, ctx.rows), None, None, None


def spread_over_bags(values: Tensor, rows: BagRows) -> Tensor:
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


def bag_means(values: Tensor, rows: BagRows) -> Tensor:
    """Return the mean of the rows of each bag; zero for a bag without rows."""
    return _Means.apply(values, rows)


class _Means(torch.autograd.Function):
    """`bag_means` with sums in a fixed order."""

    @staticmethod
    def forward(ctx: Any, values, rows):
        ctx.rows = rows
        return bag_sums(values, rows) / rows.sizes.clamp(min=1)[:, None].to(values.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients):
        sizes = ctx.rows.sizes.clamp(min=1)[:, None].to(gradients[0].dtype)
        return (gradients[0] / sizes).index_select(1, ctx.rows.bag), None


def bag_sums(values: Tensor, rows: BagRows) -> Tensor:
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
def cut_and_drop(x, shift, bag, limit, factor, keys, start, stop):
    """Activate rows ``start:stop`` of all members one after the other, in place.

    A unit is dropped if a hash of its place and the member's key is below the limit.
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
            value = (row[u] + added[u]) * factor
            row[u] = value if (h >= limit) & (value > 0) else np.float32(0.0)


@kernel
def pass_back(x, gradient, factor, start, stop):
    """Scale a gradient and set it to zero where the activation is zero, in place."""
    n_rows, n_units = x.shape[1], x.shape[2]
    for at in range(start, stop):
        m, r = at // n_rows, at % n_rows
        row, to = x[m, r], gradient[m, r]
        for u in range(n_units):
            to[u] = to[u] * factor if row[u] > 0 else np.float32(0.0)


@kernel
def add_rows(values, bag, sums):
    """Add every row to the sum of its bag."""
    n_units = values.shape[2]
    for m in range(values.shape[0]):
        for r in range(values.shape[1]):
            row, total = values[m, r], sums[m, bag[r]]
            for u in range(n_units):
                total[u] += row[u]


def in_parallel(work: Callable[[int, int], object], array: Tensor) -> None:
    """Call ``work(start, stop)`` for ranges of rows, on as many threads as torch uses."""
    n_rows = array.shape[0] * array.shape[1]
    n_threads = min(torch.get_num_threads(), array.numel() // WORTHWHILE + 1)
    cuts = np.linspace(0, n_rows, n_threads + 1).astype(int)
    shares = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    # This thread does the last range.
    others = [helpers().submit(work, *share) for share in shares[:-1]]
    work(*shares[-1])
    for other in others:
        other.result()


@cache
def helpers() -> ThreadPoolExecutor:
    """Return a pool of threads, which sleep between calls."""
    return ThreadPoolExecutor(max(torch.get_num_threads() - 1, 1))


def network_inputs(model: Any, X: np.ndarray, dtype: Any) -> NDArray[Any]:
    """Return the inputs of the networks of an `unbag.torch.ORNetwork`.

    Scaled features and their encoding, if any, of shape (n_instances, n_inputs), or
    (n_instances, *instance_shape).
    """
    inputs = scaled(X, model.scale_)
    if hasattr(model, "edges_"):
        inputs = np.hstack([inputs, piecewise_linear(inputs, model.edges_)])
    inputs = inputs.astype(dtype, copy=False)
    shape = model.instance_shape
    return inputs if shape is None else inputs.reshape(len(inputs), *shape)


def scaled(X: np.ndarray, scale: Scale) -> NDArray[np.float64]:
    """Return scaled features."""
    return (X.astype(np.float64, copy=False) - scale.shift) / scale.scale


def quantile_edges(X: np.ndarray) -> NDArray[np.float64]:
    """Return the quantiles of each feature; shape (n_features, N_PIECES + 1)."""
    return np.quantile(X, np.linspace(0.0, 1.0, N_PIECES + 1), axis=0).T.copy()


def piecewise_linear(X: np.ndarray, edges: np.ndarray) -> NDArray[np.float64]:
    """Compute the position of values within each quantile interval of a feature, from -1 to 1.

    The result has shape (n_instances, n_features * n_pieces).

    Examples
    --------
    >>> piecewise_linear(np.array([[1.0], [3.0]]), np.array([[0.0, 2.0, 4.0]]))
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    low, width = edges[:, :-1], np.diff(edges)
    beyond = X[:, :, None] - low
    # An interval without width is a step.
    reach = np.where(width > 0, beyond / np.where(width > 0, width, 1.0), beyond > 0)
    return (2.0 * np.clip(reach, 0.0, 1.0) - 1.0).reshape(len(X), -1)
