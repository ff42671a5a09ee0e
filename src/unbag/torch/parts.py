"""The objective of a fit on a GPU: `unbag.fitting.parts` in torch.

Features are copied to the device once, in their own precision. Logits and residuals have the same
precision, for a block of bags at a time. Likelihood and gradient are summed in float64: a matrix
product sums over a few thousand instances in its own precision, and these sums are added in
float64. The solver sends weights and gets one set of statistics back; nothing else waits for the
device.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse

from unbag.bags import Bags
from unbag.fitting import Moments, Statistics, Training, log_softmax
from unbag.fitting.background import charges
from unbag.fitting.parts import rows_of, runs_of_rows
from unbag.union import IntractableBagError, UnionProblem
from unbag.union.policy import surest_labels

from .arguments import BagBatch
from .groups import prepared_groups, with_groups
from .operators import union, union_gradient

# Logits of a block: enough to hide the cost of launches, and little compared with GPU memory.
BLOCK_LOGITS = 2**28
# Instances that a product sums over in the precision of the features.
RUN = 4096
# Entries of features that are converted to float64 at a time for their moments.
MOMENT_ENTRIES = 2**25


class Apart(NamedTuple):
    """Bags of a block that are inferred on the CPU, because their groups of classes overlap.

    `places` and `rows` are where they and their instances are in the block, on the device.
    """

    problem: UnionProblem
    bags: np.ndarray
    places: torch.Tensor
    rows: torch.Tensor

    def write(
        self,
        scores: torch.Tensor,
        weight: torch.Tensor,
        log_likelihood: torch.Tensor,
        residual: torch.Tensor,
    ) -> None:
        """Write the log-likelihoods of these bags and the residuals of their instances.

        Parameters
        ----------
        scores, residual : Tensors of shape (n_instances, n_classes)
        weight, log_likelihood : Tensors of shape (n_bags,)
            Of the whole block.
        """
        log_prior, prior = log_softmax(scores[self.rows].double().cpu().numpy())
        try:
            found = self.problem.infer(log_prior)
        except IntractableBagError as error:
            raise error.with_ids(self.bags) from None
        of_rows = np.repeat(weight[self.places].cpu().numpy(), np.diff(self.problem.offsets))
        own = (found.posterior - prior) * of_rows[:, None]
        log_likelihood[self.places] = torch.from_numpy(found.log_likelihood).to(scores.device)
        residual[self.rows] = torch.from_numpy(own).to(residual)


@dataclass
class Block:
    """Some bags of a fit, on the device.

    Attributes
    ----------
    bags : ndarray of int of shape (n_bags,)
        Their positions among all bags.
    problem : UnionProblem
        Their label sets.
    X : Tensor of shape (n_instances, n_features)
    offsets : Tensor of int64 of shape (n_bags + 1,)
    pins : Tensor of int64 of shape (n_instances,), or None
    weight : Tensor of float64 of shape (n_bags,)
        Weight of each bag.
    charges : Tensor of shape (n_instances,), or None
        What an instance pays if it is of the last class, the background.
    targets, groups : Tensors
        The label sets, as in `unbag.torch.arguments.BagBatch`.
    apart : Apart or None
        Bags that are inferred on the CPU, if there are any.
    on_intractable : {"raise", "relax"}
        As in `unbag.torch.operators.union`: "relax" if no bag is intractable, to avoid waiting.
    """

    bags: np.ndarray
    problem: UnionProblem
    X: torch.Tensor
    offsets: torch.Tensor
    pins: torch.Tensor | None
    weight: torch.Tensor
    charges: torch.Tensor | None
    targets: torch.Tensor = field(init=False)
    groups: torch.Tensor | None = field(init=False, default=None)
    apart: "Apart | None" = field(init=False, default=None)
    on_intractable: str = field(init=False)

    def __post_init__(self) -> None:
        self.take_label_sets(self.problem)

    def take_label_sets(self, problem: UnionProblem) -> None:
        """Replace the label sets of the bags."""
        self.problem = problem
        self.targets = torch.as_tensor(problem.y, dtype=torch.int8, device=self.X.device)
        self.groups = self.apart = None
        if problem.groups is not None:
            self._take_groups(problem.groups)
        self.on_intractable = "raise"
        if self.X.is_cuda:
            from . import cuda

            if cuda.holds_every_bag(np.diff(problem.offsets), self.n_required()):
                self.on_intractable = "relax"

    def n_required(self) -> np.ndarray:
        """Return how many classes and groups the operators require of each bag.

        More than `UnionProblem.n_required`: classes that known instances show count too.
        """
        return (self.targets == 1).sum(1).cpu().numpy()

    def _take_groups(self, groups):
        """Let each group be one class, and set bags apart whose groups overlap."""
        # Of the shape of the logits, and of the size of one.
        logits = self.X.new_zeros(()).expand(len(self.X), self.targets.shape[1])
        given = logits, self.offsets, self.targets, self.pins, None, None, False
        prepared = prepared_groups(groups)
        batch, _ = with_groups(BagBatch(*given, tuple(logits.shape)), prepared)
        self.targets, self.groups = batch.targets, batch.groups
        if len(bags := prepared.overlapping):
            rows = rows_of(bags, self.problem.offsets)
            device = self.X.device
            self.apart = Apart(
                self.problem.take(bags), bags, torch.from_numpy(bags).to(device),
                torch.arange(len(self.X), device=device)[rows],
            )  # fmt: skip

    def row_weight(self) -> torch.Tensor:
        """Return the weight of each instance."""
        return torch.repeat_interleave(self.weight, self.offsets.diff())


class DevicePart:
    """All bags of a fit on a device, as one part of `unbag.fitting.Objective`.

    Features are dense. `chosen` are the positions of the bags to use, in ascending order, and
    `bag_weight` has the weights of all bags. `cost` is that of the background; see `Part`.

    Notes
    -----
    Blocks depend only on the bags. Features are copied to the device; the originals do not change.
    """

    def __init__(
        self,
        bags: Bags,
        problem: UnionProblem,
        chosen: np.ndarray,
        bag_weight: np.ndarray | None,
        device: torch.device,
        cost: float = 0.0,
    ) -> None:
        self.device = device
        self.cost = cost
        n_rows = max(BLOCK_LOGITS // problem.y.shape[1], RUN)
        runs = runs_of_rows(chosen, bags.sizes, n_rows)
        self.blocks: list[Block] = [self._placed(bags, problem, own, bag_weight) for own in runs]
        sizes = bags.sizes[chosen]
        weight = sizes.sum() if bag_weight is None else sizes @ bag_weight[chosen]
        self.weight: float = float(weight)

    def _placed(self, bags, problem, own, bag_weight):
        rows = rows_of(own, bags.offsets)
        pinned = None if problem.instance_labels is None else problem.instance_labels[rows]
        label_sets = problem.take(own)
        return Block(
            own,
            label_sets,
            self._tensor(bags.X[rows]),
            self._tensor(label_sets.offsets, torch.int64),
            None if pinned is None else self._tensor(pinned, torch.int64),
            self._tensor(np.ones(len(own)) if bag_weight is None else bag_weight[own]),
            self._charges(label_sets, bags.X.dtype),
        )

    def _charges(self, problem, dtype):
        """Return what each instance pays if it is background; None if nobody pays."""
        if not self.cost:
            return None
        own = charges(problem.named, problem.offsets, self.cost)
        return self._tensor(own.astype(dtype))

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
        """Compute `statistics`; nothing is cached for a line search."""
        return self.statistics(W)

    def relax(self, W: np.ndarray, bags: Collection[int]) -> dict[int, np.ndarray]:
        """Relax the most certain labels of intractable bags; see `unbag.fitting.Part.relax`."""
        relaxed = {}
        weights = self._tensor(W)
        for block in self.blocks:
            labels = np.zeros(block.problem.y.shape, dtype=bool)
            offsets = block.problem.offsets
            for b in np.flatnonzero(np.isin(block.bags, list(bags))).tolist():
                own = slice(b, b + 1)
                rows = slice(int(offsets[b]), int(offsets[b + 1]))
                alone = block.problem.take(np.array([b]))
                log_prior, _ = log_softmax(logits(block.X[rows], weights).double().cpu().numpy())
                if block.charges is not None:
                    log_prior[:, -1] -= block.charges[rows].double().cpu().numpy()
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

    Residuals are posterior minus prior, times the weight of the bag.
    """
    scores = logits(block.X, weights)
    if block.charges is not None:
        prior, normaliser = torch.softmax(scores, 1), torch.logsumexp(scores, 1)
        scores[:, -1] -= block.charges
    log_likelihood, *kept, _ = union(
        scores, block.offsets, block.targets, block.pins, None, None, False, "keep",
        block.on_intractable, block.groups,
    )  # fmt: skip
    residual = union_gradient(
        block.weight, scores, block.targets, block.pins, None, False, *kept, block.groups
    )
    if block.apart is not None:
        block.apart.write(scores, block.weight, log_likelihood, residual)
    if block.charges is not None:
        # What the background has paid was shared out among the others: it is taken back.
        share = torch.softmax(scores, 1).sub_(prior)
        residual += share.mul_(block.row_weight().to(share.dtype)[:, None])
        lost = (torch.logsumexp(scores, 1) - normaliser).double()
        sums = torch.nn.functional.pad(lost.cumsum(0), (1, 0))[block.offsets]
        log_likelihood = log_likelihood + sums.diff()
    return log_likelihood, residual


def weight_gradient(residual: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """Return the gradient with respect to the weights, (n_classes, n_features + 1), in float64."""
    # A product with ones takes a fifth of the time of a sum in float64.
    ones = X.new_ones((len(X), 1))
    return torch.cat([product_in_runs(X, residual), product_in_runs(ones, residual)]).T


def product_in_runs(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return ``left.T @ right`` in float64; runs of rows are summed in their own precision."""
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
    """Bags and label sets of a fit on a device, for a solver.

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
        cost: float = 0.0,
        **options: Any,
    ) -> None:
        if sparse.issparse(bags.X):
            raise ValueError(
                f"device={device!r} needs dense features; these are sparse. Use "
                'device="cpu", or convert them if they fit in memory.'
            )
        self.device: torch.device = present_device(device)
        with self._explain_full_memory(bags):
            self._part = DevicePart(bags, problem, np.flatnonzero(used), weight, self.device, cost)
            super().__init__(bags, problem, used, weight, map=self._ask, cost=cost, **options)
            if self.scale.centre is not None:
                self._part.subtract(self.scale.centre)

    @contextmanager
    def _explain_full_memory(self, bags) -> Iterator[None]:
        try:
            yield
        except torch.cuda.OutOfMemoryError as error:
            free, total = (each / 1e9 for each in torch.cuda.mem_get_info(self.device))
            smaller = "" if bags.dtype == np.float32 else "Convert the features to float32. "
            raise MemoryError(
                f"{self.device} has too little memory for this fit: {free:.1f} of {total:.1f} GB "
                f"are free, and the features of {len(bags):,} bags alone take "
                f"{bags.X.nbytes / 1e9:.1f} GB in {bags.dtype}. {smaller}Fit to fewer bags, or use "
                'device="cpu".'
            ) from error

    def _ask(self, question, parts):
        with self._explain_full_memory(self.bags):
            return [question(part) for part in parts]

    def moments(self, weighted: bool) -> Moments:
        """Compute mean and spread of the features of all bags; see `Part.moments`."""
        return self._part.moments(weighted)

    def _parts(self, chosen, gather=False) -> list[Any]:
        return [self._part]


def present_device(name: str) -> torch.device:
    """Return a CUDA device; if it does not exist, raise an error that says what to do."""
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not n_devices:
        raise ValueError(
            f"device={name!r} needs a GPU, its driver, and PyTorch for CUDA; torch "
            f'{torch.__version__} finds none. Install what is missing, or use device="cpu".'
        )
    device = torch.device(name)
    if (device.index or 0) >= n_devices:
        raise ValueError(
            f"device={name!r} does not exist: the last CUDA device is cuda:{n_devices - 1}."
        )
    return device
