"""The objective of a fit on a device: what `unbag.fitting.parts` does, by torch.

Features go to the device once and stay there, in their own precision; so do logits and residuals,
of a block of bags at a time. What adds up (likelihood and gradient) does so in float64: over a few
thousand instances by the product itself, beyond that by hand. Weights come from the solver, and
one set of statistics goes back to it, which is all that waits for the device.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy import sparse

from unbag.bags import Bags, offsets_of
from unbag.fitting import Moments, Statistics, Training, log_softmax
from unbag.fitting.parts import rows_of, runs_of_rows
from unbag.union import IntractableBagError, UnionProblem
from unbag.union.policy import surest_labels

from .operators import union, union_gradient

# Logits of a block: enough work to hide the launches, and little beside the memory of a GPU.
BLOCK_LOGITS = 2**28
# Instances whose products are added up in the precision of the features.
RUN = 4096
# Features that are looked at together for their moments, in float64.
MOMENT_ENTRIES = 2**25


@dataclass
class Block:
    """Some bags of a fit, on the device.

    Attributes
    ----------
    bags : ndarray of int of shape (n_bags,)
        Their places among all.
    problem : UnionProblem
        Their label sets.
    X : Tensor of shape (n_instances, n_features)
    offsets : Tensor of int64 of shape (n_bags + 1,)
    pins : Tensor of int64 of shape (n_instances,), or None
    weight : Tensor of float64 of shape (n_bags,)
        What each bag counts.
    targets : Tensor of int8 of shape (n_bags, n_classes)
        The label sets.
    on_intractable : {"raise", "relax"}
        As in `unbag.torch.operators.union`: "relax" where no bag is, since nothing waits then.
    """

    bags: np.ndarray
    problem: UnionProblem
    X: torch.Tensor
    offsets: torch.Tensor
    pins: torch.Tensor | None
    weight: torch.Tensor
    targets: torch.Tensor = field(init=False)
    on_intractable: str = field(init=False)

    def __post_init__(self) -> None:
        self.take_label_sets(self.problem)

    def take_label_sets(self, problem: UnionProblem) -> None:
        """Replace the label sets of the bags."""
        self.problem = problem
        self.targets = torch.as_tensor(problem.y, dtype=torch.int8, device=self.X.device)
        self.on_intractable = "raise"
        if self.X.is_cuda:
            from . import cuda

            n_required = (problem.y == 1).sum(axis=1)
            if cuda.holds_every_bag(np.diff(problem.offsets), n_required):
                self.on_intractable = "relax"

    def row_weight(self) -> torch.Tensor:
        """Return what each instance counts."""
        return torch.repeat_interleave(self.weight, self.offsets.diff())


class DevicePart:
    """All bags of a fit, as `unbag.fitting.Objective` asks them, on a device.

    Features are dense. `chosen` are the places of the bags to take, ascending, and `bag_weight` is
    what each of all bags counts.

    Notes
    -----
    Blocks depend on the bags alone. Features are copied to the device; those given are not changed.
    """

    def __init__(
        self,
        bags: Bags,
        problem: UnionProblem,
        chosen: np.ndarray,
        bag_weight: np.ndarray | None,
        device: torch.device,
    ) -> None:
        self.device = device
        n_rows = max(BLOCK_LOGITS // problem.y.shape[1], RUN)
        runs = runs_of_rows(chosen, bags.sizes, n_rows)
        self.blocks: list[Block] = [self._placed(bags, problem, own, bag_weight) for own in runs]
        sizes = bags.sizes[chosen]
        weight = sizes.sum() if bag_weight is None else sizes @ bag_weight[chosen]
        self.weight: float = float(weight)

    def _placed(self, bags, problem, own, bag_weight):
        rows = rows_of(own, bags.offsets)
        pinned = None if problem.instance_labels is None else problem.instance_labels[rows]
        label_sets = UnionProblem(offsets_of(bags.sizes[own]), problem.y[own], pinned)
        return Block(
            own,
            label_sets,
            self._tensor(bags.X[rows]),
            self._tensor(label_sets.offsets, torch.int64),
            None if pinned is None else self._tensor(pinned, torch.int64),
            self._tensor(np.ones(len(own)) if bag_weight is None else bag_weight[own]),
        )

    def _tensor(self, array, dtype=None):
        return torch.tensor(array, dtype=dtype, device=self.device)

    def subtract(self, centre: np.ndarray) -> None:
        """Subtract the centre of a scale from the features."""
        for block in self.blocks:
            block.X -= self._tensor(centre)

    def moments(self, weighted: bool) -> Moments:
        """Compute mean and spread of the features; see `unbag.fitting.parts.Part.moments`."""
        nothing = np.zeros(self.blocks[0].X.shape[1])
        total = Moments(0.0, nothing, nothing, nothing + np.inf, nothing - np.inf)
        n_rows = max(MOMENT_ENTRIES // max(len(nothing), 1), 1)
        for block in self.blocks:
            weight = block.row_weight()
            weight = weight if weighted else torch.ones_like(weight)
            for start in range(0, len(block.X), n_rows):
                own = slice(start, start + n_rows)
                total = total + feature_moments(block.X[own].double(), weight[own])
        return total

    def statistics(self, W: np.ndarray) -> Statistics:
        """Compute the likelihood and its gradient at W; see `unbag.fitting.Part.statistics`."""
        weights = self._tensor(W)
        gradient, value = torch.zeros_like(weights), torch.zeros_like(weights[0, 0])
        intractable = []
        for block in self.blocks:
            try:
                log_likelihood, residual = residuals(block, weights)
            except IntractableBagError as error:
                places, *facts = error.args
                intractable += zip(block.bags[places].tolist(), *facts, strict=True)
                continue
            value += block.weight @ log_likelihood
            gradient += weight_gradient(residual, block.X)
        found = torch.cat([gradient.flatten(), value[None]]).cpu().numpy()
        return Statistics(
            float(found[-1]), found[:-1].reshape(W.shape), self.weight, tuple(intractable)
        )

    def expectation(self, W: np.ndarray, ray: Any = None, step: float = 0.0) -> Statistics:
        """Compute `statistics`; nothing is kept for a search."""
        return self.statistics(W)

    def relax(self, W: np.ndarray, bags: Collection[int]) -> dict[int, np.ndarray]:
        """Relax the surest labels of intractable bags; see `unbag.fitting.parts.Part.relax`."""
        relaxed = {}
        weights = self._tensor(W)
        for block in self.blocks:
            labels = np.zeros(block.problem.y.shape, dtype=bool)
            offsets, known = block.problem.offsets, block.problem.instance_labels
            for b in np.flatnonzero(np.isin(block.bags, list(bags))).tolist():
                own = slice(b, b + 1)
                rows = slice(int(offsets[b]), int(offsets[b + 1]))
                pinned = None if known is None else known[rows]
                alone = UnionProblem(
                    offsets_of(np.diff(offsets[b : b + 2])), block.problem.y[own], pinned
                )
                log_prior, _ = log_softmax(logits(block.X[rows], weights).double().cpu().numpy())
                labels[own] = surest_labels(alone, log_prior, [0])
                relaxed[int(block.bags[b])] = labels[b].nonzero()[0]
            if labels.any():
                block.take_label_sets(block.problem.relaxed(labels))
        return relaxed


def logits(X: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Multiply features and weights, and add the intercepts, in the precision of the features."""
    return torch.addmm(weights[:, -1].to(X.dtype), X, weights[:, :-1].to(X.dtype).T)


@torch.no_grad()
def residuals(block: Block, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-likelihoods of the bags of a block, and residuals of their instances.

    These are posterior minus prior, by the weights of the bags.
    """
    scores = logits(block.X, weights)
    log_likelihood, *kept, _ = union(
        scores, block.offsets, block.targets, block.pins, None, None, False, "keep",
        block.on_intractable,
    )  # fmt: skip
    residual = union_gradient(block.weight, scores, block.targets, block.pins, None, False, *kept)
    return log_likelihood, residual


def weight_gradient(residual: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """Return the gradient with respect to the weights, (n_classes, n_features + 1), in float64."""
    # A product with ones takes a fifth of the time of a sum in float64.
    ones = X.new_ones((len(X), 1))
    return torch.cat([product_in_runs(X, residual), product_in_runs(ones, residual)]).T


def product_in_runs(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return ``left.T @ right`` in float64; runs of rows are added up in their own precision."""
    n_runs = len(left) // RUN
    whole = n_runs * RUN
    runs = torch.bmm(
        left[:whole].view(n_runs, RUN, left.shape[1]).transpose(1, 2),
        right[:whole].view(n_runs, RUN, right.shape[1]),
    )
    return runs.sum(0, dtype=torch.float64) + left[whole:].T @ right[whole:]


def feature_moments(X: torch.Tensor, weight: torch.Tensor) -> Moments:
    """Compute `unbag.fitting.scaling.feature_moments` of features in float64."""
    counted = weight > 0
    X, weight = X[counted], weight[counted]
    if not len(X):
        nothing = np.zeros(X.shape[1])
        return Moments(0.0, nothing, nothing, nothing + np.inf, nothing - np.inf)
    mean = weight @ X / weight.sum()
    squares = weight @ (X - mean) ** 2
    return Moments(
        float(weight.sum()),
        *(each.cpu().numpy() for each in (mean, squares, X.amin(0), X.amax(0))),
    )


class DeviceTraining(Training):
    """Bags and label sets of a fit on a device, as a solver needs them.

    Features are dense. `map` is not used, as there is one part.
    """

    def __init__(
        self,
        bags: Bags,
        problem: UnionProblem,
        used: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        device: str,
        map: Any = None,
        **options: Any,
    ) -> None:
        if sparse.issparse(bags.X):
            raise ValueError(
                f"device={device!r} needs dense features; these are sparse. Fit by "
                'device="cpu", or make them dense where memory holds that.'
            )
        self.device: torch.device = present_device(device)
        with self._full_memory_explained(bags):
            self._part = DevicePart(bags, problem, np.flatnonzero(used), weight, self.device)
            super().__init__(bags, problem, used, weight, map=self._ask, **options)
            if self.scale.centre is not None:
                self._part.subtract(self.scale.centre)

    @contextmanager
    def _full_memory_explained(self, bags) -> Iterator[None]:
        try:
            yield
        except torch.cuda.OutOfMemoryError as error:
            free, total = (each / 1e9 for each in torch.cuda.mem_get_info(self.device))
            smaller = "" if bags.dtype == np.float32 else "Give features in float32. "
            raise MemoryError(
                f"The features of {len(bags):,} bags take {bags.X.nbytes / 1e9:.1f} GB in "
                f"{bags.dtype}, and with what a fit needs besides they do not fit on "
                f"{self.device}, of whose {total:.1f} GB {free:.1f} are free. {smaller}Fit to "
                'fewer bags, or by device="cpu".'
            ) from error

    def _ask(self, question, parts):
        with self._full_memory_explained(self.bags):
            return [question(part) for part in parts]

    def moments(self, weighted: bool) -> Moments:
        """Compute mean and spread of the features of all bags; see `Part.moments`."""
        return self._part.moments(weighted)

    def _parts(self, chosen, gather=False) -> list[Any]:
        return [self._part]


def present_device(name: str) -> torch.device:
    """Return a CUDA device, or raise an error that says what to do where it is not there."""
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not n_devices:
        raise ValueError(
            f"device={name!r} needs a GPU, its driver, and PyTorch for CUDA; torch "
            f'{torch.__version__} finds none. Install what is missing, or fit by device="cpu".'
        )
    device = torch.device(name)
    if (device.index or 0) >= n_devices:
        raise ValueError(
            f"device={name!r} is not there: torch finds {n_devices}, up to cuda:{n_devices - 1}."
        )
    return device
