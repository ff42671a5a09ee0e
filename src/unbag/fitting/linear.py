"""Fits of linear models: the penalised log-likelihood of bag labels, maximised by L-BFGS.

========== ================================================================
``W``      (n_classes, n_features + 1) weights of scaled features, the
           intercepts last
L(W)       sum over bags of weight * log P(label set | X, W)
objective  L(W) - alpha / 2 * (sum of squared weights, intercepts left free)
========== ================================================================

Value and gradient are sums over parts of the bags. A `BagSource` says where the parts are: bags in
memory, in files or on a cluster differ in nothing else.
"""

import operator
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

from unbag._scikit_learn import ConvergenceWarning
from unbag._threads import thread_map
from unbag.bags import Bags, Features
from unbag.union import IntractableBagError, UnionProblem
from unbag.union.noise import impossible_bags
from unbag.union.policy import OnIntractable
from unbag.union.rates import Rates

from .noise import LabelNoise, Rate, noise_of
from .parts import Part, PartMaker, Statistics
from .scaling import Moments, Scale, Scaling

if TYPE_CHECKING:
    from .decide import Decision

# Steps that L-BFGS remembers of the curvature.
LBFGS_MEMORY = 10

# Instances whose features are converted to float64 together.
SCORED_AT_ONCE = 8192

#: Called with the progress after each iteration; a true answer stops the fit.
Watch: TypeAlias = Callable[["Progress"], object]
#: A function of a part; what it returns can be added up.
Question: TypeAlias = Callable[[Part], Any]


class InterruptedFitWarning(ConvergenceWarning):
    """A fit was interrupted: the model is that of its last completed iteration."""


@contextmanager
def interruptions_raised() -> Iterator[None]:
    """Raise KeyboardInterrupt if a fit is interrupted, instead of a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            yield
        except InterruptedFitWarning:
            raise KeyboardInterrupt from None


class NonFiniteObjectiveError(ValueError):
    """The likelihood or its gradient overflowed: features or weights of bags are too large."""


@dataclass(frozen=True, eq=False)
class LinearSettings:
    """The settings of a fit that `ORLogisticRegression` has, under the same names."""

    alpha: float | Literal["auto"] = 1.0
    max_iter: int = 1000
    tol: float = 1e-6
    scaling: Scaling = "standard"
    missed_rate: Rate = 0.0
    false_rate: Rate = 0.0
    on_intractable: OnIntractable = "relax"
    n_jobs: int | None = None

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the settings of a model."""
        return cls(**{each.name: getattr(model, each.name) for each in fields(cls)})

    @property
    def learns_rates(self) -> bool:
        """Whether rates of wrong labels are learnt."""
        return any(isinstance(rate, str) for rate in (self.missed_rate, self.false_rate))

    @property
    def has_rates(self) -> bool:
        """Whether label sets may be wrong."""
        return any(isinstance(r, str) or np.any(r) for r in (self.missed_rate, self.false_rate))

    def noise(
        self, n_classes: int, n_columns: int, rates: Rates | None = None, cost: float = 0.0
    ) -> LabelNoise | None:
        """Return how often labels are wrong; None if they never are. See `noise_of`."""
        if not self.has_rates:
            return None
        given = self.missed_rate, self.false_rate, n_classes, n_columns
        return noise_of(*given, rates, cost)

    def impossible(self, problem: UnionProblem, n_classes: int) -> NDArray[np.bool_]:
        """Find the bags that no labelling can explain, given how often label sets are wrong."""
        noise = self.noise(n_classes, problem.y.shape[1])
        return impossible_bags(problem, None if noise is None else noise.rates)


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a fit has come: a start, a checkpoint and a result are the same.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_features + 1)
        Weights of scaled features, the intercepts last.
    scale : Scale
        How features are scaled.
    decision : Decision
        What was decided before the fit.
    rates : Rates or None
        How often labels are wrong, of shape (1, n_classes); None if they never are.
    history : tuple of float
        Log-likelihood after each iteration.
    relaxed : dict from int to ndarray of int
        For each intractable bag, the columns of its labels that are no longer required.
    ended : {None, "converged", "stopped", "max_iter", "interrupted"}
        How the fit ended; None while it runs.
    """

    weights: np.ndarray
    scale: Scale
    decision: "Decision"
    rates: Rates | None = None
    history: tuple[float, ...] = ()
    relaxed: dict[int, np.ndarray] = field(default_factory=dict)
    ended: Literal["converged", "stopped", "max_iter", "interrupted"] | None = None

    @property
    def coefficients(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coefficients and intercepts for the features as they are."""
        return self.scale.coefficients(self.weights)


def shown(watch: Callable[[Any], object] | None, max_iter: int) -> Callable[[Any], object]:
    """Return a `Watch` that also shows progress on one line."""

    def show(progress: Any) -> object:
        line = f"\riteration {len(progress.history)}/{max_iter}  log-likelihood "
        print(f"{line}{progress.history[-1]:.6g} ", end="", file=sys.stderr, flush=True)
        return watch is not None and watch(progress)

    return show


class Parts(Protocol):
    """Parts of the bags of a fit, wherever they are."""

    def sum(self, question: Question) -> Any:
        """Call a function with every part, and add up what it returns, in order."""
        ...


class BagSource(ABC):
    """Bags whose features need not be in memory; their ids and offsets are.

    A subclass sets the attributes, and implements `parts` and `sample`.

    Attributes
    ----------
    offsets : ndarray of int of shape (n_bags + 1,)
    ids : ndarray of shape (n_bags,)
    feature_names : ndarray of shape (n_features,) or None
    dtype : numpy.dtype
        Type of the features.
    n_features : int
    is_sparse : bool
        Whether the features are sparse.
    """

    offsets: np.ndarray
    ids: np.ndarray
    feature_names: Any
    dtype: np.dtype
    n_features: int
    is_sparse: bool = False

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of instances in each bag, of shape (n_bags,)."""
        return np.diff(self.offsets)

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        return int(self.offsets[-1])

    @abstractmethod
    def parts(self, maker: PartMaker, map: Callable[..., Any]) -> Parts:
        """Make the parts of a fit.

        `map` works as Python's own; it runs on several threads, for parts in this process.
        """

    @abstractmethod
    def sample(self, n_bytes: int) -> tuple[Bags, NDArray[np.intp]]:
        """Read some bags, spread evenly over all, into memory; return them and their positions.

        Their features take about `n_bytes`.
        """


class InMemory(BagSource):
    """A source of bags in memory."""

    def __init__(self, bags: Bags) -> None:
        self.bags = bags
        self.offsets, self.ids = bags.offsets, bags.ids
        self.feature_names, self.dtype = bags.feature_names, bags.dtype
        self.n_features: int = bags.n_features
        self.is_sparse: bool = sparse.issparse(bags.X)

    def parts(self, maker: PartMaker, map: Callable[..., Any]) -> "PartsInMemory":
        """Make the parts; they share the memory of the bags."""
        runs = maker.runs(self.n_features)
        return PartsInMemory([maker.part(self.bags.X, own) for own in runs], map)

    def sample(self, n_bytes: int) -> tuple[Bags, NDArray[np.intp]]:
        """Return all bags: they are in memory already."""
        return self.bags, np.arange(len(self.bags))


@dataclass(frozen=True, eq=False)
class PartsInMemory:
    """A list of parts, and the `map` that calls functions of them."""

    parts: list[Part]
    map: Callable[..., Any] = map

    def sum(self, question: Question) -> Any:
        """Call a function with every part, and add up what it returns, in order."""
        return reduce(operator.add, self.map(question, self.parts))


def as_source(bags: Bags | BagSource) -> BagSource:
    """Return bags in memory as a source, and a source as it is."""
    return bags if isinstance(bags, BagSource) else InMemory(bags)


class Objective:
    """Penalised log-likelihood and its gradient, with respect to weights and learnt rates.

    `noise` has the rates, which change with the parameters; the weights have the shape `shape`.
    """

    def __init__(
        self,
        parts: Parts,
        scale: Scale,
        alpha: float,
        shape: tuple[int, int],
        noise: LabelNoise | None = None,
    ) -> None:
        self.parts = parts
        self.scale = scale
        self.alpha = alpha
        self.shape = shape
        self.noise = noise

    @property
    def rates(self) -> Rates | None:
        """How often labels are wrong; None if they never are."""
        return None if self.noise is None else self.noise.rates

    def statistics(self, W: np.ndarray) -> Statistics:
        """Compute objective and gradient at W and the current rates; refuse intractable bags."""
        question = methodcaller("statistics", self.scale.part_weights(W), self.rates)
        total: Statistics = self.parts.sum(question)
        if total.intractable:
            raise IntractableBagError(*zip(*total.intractable, strict=True))
        gradient = self.scale.scaled_gradient(total.gradient)
        gradient[:, :-1] -= self.alpha * W[:, :-1]
        value = total.value - self.penalty(W)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise NonFiniteObjectiveError(f"The objective or its gradient is not finite: {value}.")
        return replace(total, value=value, gradient=gradient)

    def penalty(self, W: np.ndarray) -> float:
        """Compute the penalty of large weights and of unlikely rates."""
        penalty = 0.5 * self.alpha * float(np.sum(W[:, :-1] ** 2))
        return penalty if self.noise is None else penalty + self.noise.penalty()

    def flat(self, W: np.ndarray) -> NDArray[np.float64]:
        """Return weights and the log-odds of learnt rates as one vector."""
        return np.ravel(W) if self.noise is None else np.append(W, self.noise.log_odds())

    def unflattened(self, flat: np.ndarray) -> NDArray[np.float64]:
        """Set the rates from a vector of all parameters, and return its weights."""
        n_weights = int(np.prod(self.shape))
        if self.noise is not None:
            self.noise.set_log_odds(flat[n_weights:])
        return flat[:n_weights].reshape(self.shape)

    def descent(self, flat: np.ndarray) -> tuple[float, NDArray[np.float64]]:
        """Compute minus the objective and its gradient at a vector of all parameters."""
        here = self.statistics(self.unflattened(flat))
        gradient = here.gradient.ravel()
        if self.noise is not None and here.noise is not None:
            gradient = np.append(gradient, self.noise.gradient(here.noise))
        return -here.value, -gradient


def fit_linear(
    bags: Bags | BagSource,
    problem: UnionProblem,
    settings: LinearSettings,
    decision: "Decision",
    *,
    used: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    start: Progress | None = None,
    watch: Watch | None = None,
) -> Progress:
    """Fit a linear model by L-BFGS; return its progress, also if the fit was interrupted.

    `problem` has possible label sets only, and `used` says which bags to fit to. The decision has
    the cost of the background, and rates of wrong labels to start from. L-BFGS has no memory of the
    iterations before a `start`.
    """
    source = as_source(bags)
    n_columns = problem.y.shape[1]
    shape = n_columns, source.n_features + 1
    rates = decision.rates if start is None or start.rates is None else start.rates
    given = n_columns - decision.background, n_columns, rates, decision.background_cost
    noise = settings.noise(*given)
    chosen = np.arange(len(source)) if used is None else np.flatnonzero(used)
    maker = PartMaker(problem, chosen, weight, cost=decision.background_cost, noise=noise)
    with thread_map(settings.n_jobs, source.n_instances * n_columns * shape[1]) as map:
        parts = source.parts(maker, map)
        if start is None:
            scale = learnt_scale(source, parts, maker, settings.scaling)
            start = Progress(np.zeros(shape), scale, decision)
        scale = start.scale
        if scale.centre is not None:
            maker = replace(maker, centre=scale.centre)
            parts = source.parts(maker, map)
        if start.weights.shape != shape:
            raise ValueError(
                f"start has weights of shape {start.weights.shape}, but this fit needs {shape}: "
                "go on with the same classes, background and features."
            )
        # Intractable bags are relaxed again, by what is most certain now.
        begun = replace(start, relaxed={}, ended=None)
        # What is open has been decided.
        alpha = float(settings.alpha)
        climb = Climb(Objective(parts, scale, alpha, shape, noise), begun, watch)
        try:
            while True:
                try:
                    ended = climb.run(settings.max_iter, settings.tol)
                    return replace(climb.progress, ended=ended)
                except IntractableBagError as error:
                    # Only between iterations: relaxing can only increase the likelihood of a bag,
                    # so steps that make bags intractable would be rewarded.
                    maker = climb.relaxed(error, maker, settings.on_intractable)
                    climb.objective.parts = source.parts(maker, map)
        except IntractableBagError as error:
            raise error.with_ids(source.ids) from None
        except NonFiniteObjectiveError as error:
            raise overflow(error, source, parts, weight) from None
        except KeyboardInterrupt:
            return replace(climb.progress, ended="interrupted")


class Climb:
    """Runs of L-BFGS on one objective, and their progress."""

    def __init__(self, objective: Objective, progress: Progress, watch: Watch | None) -> None:
        self.objective = objective
        self.progress = progress
        self.watch = watch

    def run(self, max_iter: int, tol: float) -> Literal["converged", "stopped", "max_iter"]:
        """Climb from where the progress is; say how that ended."""
        is_stopped = False
        n_left = max_iter - len(self.progress.history)
        if n_left <= 0:
            return "max_iter"

        def completed(intermediate_result):
            nonlocal is_stopped
            weights = self.objective.unflattened(intermediate_result.x).copy()
            is_stopped = self._complete(weights, -intermediate_result.fun)
            if is_stopped:
                raise StopIteration

        result = minimize(
            self.objective.descent,
            self.objective.flat(self.progress.weights),
            jac=True,
            method="L-BFGS-B",
            callback=completed,
            options={
                "maxiter": n_left,
                "maxfun": 20 * n_left + 20,
                "ftol": tol,
                "gtol": 0.0,
                "maxcor": LBFGS_MEMORY,
            },
        )
        if not self.progress.history:
            # The start was already the optimum.
            self._complete(self.progress.weights, -result.fun)
        if is_stopped:
            return "stopped"
        return "converged" if result.status == 0 else "max_iter"

    def _complete(self, weights: np.ndarray, value: float) -> bool:
        """Record an iteration, and return whether to stop."""
        log_likelihood = float(value + self.objective.penalty(weights))
        history = (*self.progress.history, log_likelihood)
        rates = self.objective.rates
        self.progress = replace(self.progress, weights=weights, rates=rates, history=history)
        try:
            return self.watch is not None and bool(self.watch(self.progress))
        except StopIteration as error:
            # SciPy would take it for its own.
            raise RuntimeError("watch raised StopIteration.") from error

    def relaxed(
        self, error: IntractableBagError, maker: PartMaker, on_intractable: OnIntractable
    ) -> PartMaker:
        """Return a maker of parts in which the bags that an error names are relaxed.

        Raises the error if relaxing is not allowed, or if one of these bags was relaxed before.
        """
        done = self.progress.relaxed
        if on_intractable == "raise" or any(bag in done for bag in error.bags):
            raise error
        weights = self.objective.scale.part_weights(self.progress.weights)
        given = weights, tuple(error.bags), self.objective.rates
        question = methodcaller("most_certain_labels", *given)
        found = dict(self.objective.parts.sum(question))
        self.progress = replace(self.progress, relaxed=done | found)
        labels = np.zeros(maker.problem.y.shape, dtype=bool)
        for bag, columns in found.items():
            labels[bag, columns] = True
        return replace(maker, problem=maker.problem.relaxed(labels))


def learnt_scale(source: BagSource, parts: Parts, maker: PartMaker, scaling: Scaling) -> Scale:
    """Learn the scale of the features from the parts of a fit."""
    if scaling is None or not source.n_instances:
        return Scale.none(source.n_features)
    weight = maker.weight
    weighted = weight is not None and weight[maker.chosen].sum() > 0
    moments: Moments = parts.sum(methodcaller("moments", weighted))
    scale = Scale.learn(scaling, moments, source.dtype, source.is_sparse)
    wrong = np.flatnonzero(~(np.isfinite(scale.shift) & np.isfinite(scale.scale)))
    if len(wrong):
        raise NonFiniteObjectiveError(
            f"Mean and deviation of column {column_name(source, wrong[0])} overflow: it has "
            f"values up to {max(-moments.low[wrong[0]], moments.high[wrong[0]]):g}. Scale "
            "the features down first."
        )
    return scale


def scale_of(
    bags: Bags,
    problem: UnionProblem,
    scaling: Scaling,
    used: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> Scale:
    """Learn the scale of the features of bags, as `fit_linear` does."""
    chosen = np.arange(len(bags)) if used is None else np.flatnonzero(used)
    source, maker = InMemory(bags), PartMaker(problem, chosen, weight)
    return learnt_scale(source, source.parts(maker, map), maker, scaling)


def overflow(
    error: NonFiniteObjectiveError, source: BagSource, parts: Parts, weight: np.ndarray | None
) -> NonFiniteObjectiveError:
    """Return the error with its likely cause: the largest feature and sample weight."""
    moments: Moments = parts.sum(methodcaller("moments", False))
    largest = np.maximum(-moments.low, moments.high)
    column = int(largest.argmax())
    cause = f"Features reach {largest[column]:g} (column {column_name(source, column)})"
    if weight is not None:
        cause += f", sample_weight {weight.max():g} (bag {weight.argmax()})"
    return NonFiniteObjectiveError(f"{error} {cause}: rescale them, or use scaling='standard'.")


def column_name(source: BagSource, column: int) -> str:
    """Return the number of a feature, and its name if it has one."""
    names = source.feature_names
    return str(column) if names is None else f"{column} ({names[column]})"


def linear_scores(X: Features, coef: np.ndarray, intercept: np.ndarray) -> NDArray[np.float64]:
    """Score the classes of each instance, of shape (n_instances, n_columns).

    In float64 even for features in float32: far from the origin, products and intercepts are large,
    and the scores are what is left of them.
    """
    scores = np.empty((X.shape[0], len(coef)))
    for start in range(0, X.shape[0], SCORED_AT_ONCE):
        rows = slice(start, start + SCORED_AT_ONCE)
        scores[rows] = X[rows].astype(np.float64, copy=False) @ coef.T
    return scores + intercept
