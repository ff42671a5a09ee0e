"""The penalised log-likelihood of bag labels under multinomial logistic instances.

========== ================================================================
``W``      (n_classes, n_features + 1) weights of scaled features, the
           intercepts last
L(W)       sum over bags of weight * log P(label set | X, W)
objective  L(W) - alpha / 2 * (sum of squared weights, intercepts left free)
========== ================================================================

Value and gradient are sums over parts of the bags: `Objective` maps a function over the parts, and
adds the results. `Training` creates the objective for bags in memory, and `StreamedTraining` for
bags whose features are read block by block.
"""

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import groupby, zip_longest
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import sparse

from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.union import UnionProblem
from unbag.union.dispatch import Method
from unbag.union.policy import IntractableBagError, OnIntractable

from .parts import Part, make_parts, rows_of, runs_of_bags
from .scaling import Scale, Scaling
from .statistics import Moments, Ray, Statistics

if TYPE_CHECKING:
    from unbag.union.rates import Rates

    from .noise import LabelNoise

#: Steps of a line search that are evaluated together, downwards from four times the last step.
STEPS_AT_ONCE = 4
#: Bytes of features of the bags by which `background=\"auto\"` is decided.
SAMPLE_BYTES = 32 << 20


class NonFiniteObjectiveError(ValueError):
    """The likelihood or its gradient overflowed: features or weights of bags are too large."""


class UncertifiedWarning(UserWarning):
    """An inference method could not certify its results: the fit may be wrong.

    Parameters
    ----------
    message : str
    n_times : int, default=1
        How often that happened in one fit.
    """

    def __init__(self, message: str, n_times: int = 1) -> None:
        super().__init__(message)
        self.n_times = n_times


@dataclass
class Progress:
    """The state of a fit, updated after each iteration, so that an interrupted fit keeps it.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_features + 1)
        After the last completed iteration.
    watch : callable or None
        Called as ``watch(iteration, log_likelihood)`` after each iteration; if it returns True, the
        fit stops.
    history : list of float
        Log-likelihood after each iteration.
    rates : Rates or None
        How often labels are wrong, after the last completed iteration; None if they never are.
    decided : dict from str to float
        What the fit has decided on before it began, by the names of a model's attributes.
    """

    weights: np.ndarray
    watch: Callable[[int, float], object] | None = None
    history: list[float] = field(default_factory=list)
    rates: "Rates | None" = None
    decided: dict[str, float] = field(default_factory=dict)

    def completed(
        self, weights: np.ndarray, log_likelihood: float, rates: "Rates | None" = None
    ) -> bool:
        """Record a completed iteration.

        Parameters
        ----------
        weights : ndarray of shape (n_classes, n_features + 1)
        log_likelihood : float
        rates : Rates, optional

        Returns
        -------
        bool
            Whether to stop.
        """
        self.weights, self.rates = weights, rates
        self.history.append(float(log_likelihood))
        return self.watch is not None and bool(self.watch(len(self.history), self.history[-1]))


def progress_watch(
    callback: Callable[[int, float], object] | None, max_iter: int, verbose: int
) -> Callable[[int, float], object]:
    """Return a `Progress.watch` that prints a line of progress, and calls the callback.

    Parameters
    ----------
    callback : callable or None
        Called as ``callback(iteration, log_likelihood)``; if it returns True, the fit stops.
    max_iter : int
    verbose : int
        0 prints nothing.

    Returns
    -------
    callable
    """

    def watch(iteration: int, log_likelihood: float) -> object:
        if verbose:
            line = f"\riteration {iteration}/{max_iter}  log-likelihood {log_likelihood:.6g} "
            print(line, end="", file=sys.stderr, flush=True)
        return callback is not None and callback(iteration, log_likelihood)

    return watch


class Objective:
    """Penalised log-likelihood of bags, its gradient, and EM's lower bound of it.

    Parameters
    ----------
    parts : sequence of Part
        Or objects with the methods of `unbag.fitting.parts.Part`, or that represent a part where
        `map` evaluates it.
    alpha : float
        Strength of the penalty.
    scale : Scale, optional
        How features are scaled; by default as they are.
    map : callable
        Like the built-in: calls a function for each part, and returns the results in order.
    on_intractable : {"raise", "relax"}
        What to do with a bag that has too many labels for exact inference; see
        `unbag.union.policy`. Labels are relaxed only between iterations: relaxing can only increase
        the likelihood of a bag, so trial steps that make bags intractable would be rewarded.

    Attributes
    ----------
    relaxed : dict from int to ndarray of int
        For each bag with relaxed labels, their columns.
    uncertified : list of tuple of int
        The bags whose results the inference method could not certify, for each time this happened.
    steps_at_once : int
        How many steps a line search evaluates together: more than one if each evaluation reads all
        features.
    moves_logits : bool
        Whether an E-step may update the logits of the last one along the search direction, which
        saves a product with the features, and changes the last digits.
    """

    steps_at_once: int = 1
    moves_logits: bool = True
    alpha: float

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        alpha: float = 0.0,
        scale: Scale | None = None,
        map: Callable[..., Any] = map,
        on_intractable: OnIntractable = "raise",
    ) -> None:
        self.parts = parts
        self.alpha = alpha
        self.scale = scale
        self.on_intractable = on_intractable
        self.relaxed: dict[int, np.ndarray] = {}
        self.uncertified: list[tuple[int, ...]] = []
        self._map = map
        # The weights of the last E-step and the ray of the last line search, as given and as sent
        # to the parts, so that the parts recognise them.
        self._origin: tuple[Any, Any] = None, None
        self._search: Any = None

    def _ask(self, question, *arguments, **options):
        """Call a method of every part, and return the results in their order."""
        return self._map(methodcaller(question, *arguments, **options), self.parts)

    def _part_weights(self, W):
        return W if self.scale is None else self.scale.part_weights(W)

    def statistics(self, W: np.ndarray) -> Statistics:
        """Compute the objective and its gradient at W.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)

        Returns
        -------
        Statistics

        Raises
        ------
        IntractableBagError
            If bags are intractable at W; see `relax`.
        """
        return self._penalised(W, self._ask("statistics", self._part_weights(W)))

    def expectation(self, W: np.ndarray, ray: Ray | None = None, step: float = 0.0) -> Statistics:
        """Compute `statistics`; the parts keep what a line search from W needs.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)
            Must not be changed afterwards.
        ray, step : Ray and float, optional
            The last line search, and the step that led to W.

        Returns
        -------
        Statistics
        """
        last = None if ray is None or not self.moves_logits else self._part_ray(ray)
        self._origin = W, self._part_weights(W)
        return self._penalised(W, self._ask("expectation", self._origin[1], last, step))

    def _part_ray(self, ray):
        """Return the ray of a line search in the weights of parts; the same object each time."""
        if self._search is None or self._search[0] is not ray:
            W, origin = self._origin
            origin = origin if ray.origin is W else self._part_weights(ray.origin)
            self._search = ray, Ray(origin, self._part_weights(ray.direction))
        return self._search[1]

    def _penalised(self, W, answers):
        total = reduce(operator.add, answers)
        if total.intractable:
            raise IntractableBagError(*zip_longest(*total.intractable, fillvalue=False))
        if total.uncertified:
            self.uncertified.append(total.uncertified)
        gradient = total.gradient
        if self.scale is not None:
            gradient = self.scale.scaled_gradient(gradient)
        gradient[:, :-1] -= self.alpha * W[:, :-1]
        value = total.value - self.penalty(W)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise NonFiniteObjectiveError(f"The objective or its gradient is not finite: {value}.")
        return replace(total, value=value, gradient=gradient)

    def scale_penalty(self, share: float) -> None:
        """Multiply the penalty by a factor, such as the share of a sample in all bags."""
        self.alpha *= share

    def penalty(self, W: np.ndarray) -> float:
        """Compute the penalty of large weights.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)

        Returns
        -------
        float
        """
        return 0.5 * self.alpha * float(np.sum(W[:, :-1] ** 2))

    def lower_bounds(self, ray: Ray, steps: Sequence[float]) -> np.ndarray:
        """Compute EM's lower bound: expected log-prior of the labels, as inferred at the origin.

        Up to a constant, it is a lower bound of the objective and equal to it at the origin, so
        raising it raises the objective.

        Parameters
        ----------
        ray : Ray
            From where the last `expectation` was made.
        steps : sequence of float

        Returns
        -------
        ndarray of shape (len(steps),)
        """
        penalties = [self.penalty(ray.at(step)) for step in steps]
        answers = self._ask("lower_bounds", self._part_ray(ray), steps)
        return reduce(operator.add, answers) - penalties

    @property
    def rates(self) -> "Rates | None":
        """How often labels are wrong; None if they never are."""
        return None

    def flat(self, W: np.ndarray) -> np.ndarray:
        """Return all parameters as one vector."""
        return np.ravel(W)

    def unflattened(self, flat: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the weights in a vector of all parameters."""
        return flat.reshape(shape)

    def flat_gradient(self, here: Statistics) -> np.ndarray:
        """Return the gradient with respect to the vector of all parameters."""
        return here.gradient.ravel()

    def learn_rates(self, here: Statistics, share: float = 1.0) -> None:
        """Update the rates of wrong labels, if they are learnt, after an E-step."""

    def relax(self, W: np.ndarray, error: IntractableBagError) -> None:
        """Relax the labels that are most certain at W, in the bags that an error names.

        Raises the error if relaxing is not allowed, or if one of these bags was relaxed before.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)
        error : IntractableBagError
        """
        if self.on_intractable == "raise" or any(bag in self.relaxed for bag in error.bags):
            raise error
        for relaxed in self._ask("relax", self._part_weights(W), tuple(error.bags)):
            self.relaxed.update(relaxed)


class Training:
    """Bags and label sets, prepared for a solver.

    Parameters
    ----------
    bags : Bags
    problem : UnionProblem
        Their label sets.
    used : ndarray of bool of shape (n_bags,)
        The bags to fit to.
    weight : ndarray of shape (n_bags,), optional
        What each bag counts.
    scale : Scale, optional
        How features are scaled; by default as `scaling` says.
    scaling : {"standard", "minmax", None}
        See `unbag.fitting.scaling`.
    method : str
        As in `unbag.union.infer`.
    map : callable
        See `Objective`.
    noise : LabelNoise, optional
        How often labels are wrong; by default they never are.
    cost : float
        As in `Part`.
    **options
        `alpha` and `on_intractable` of `Objective`.

    Attributes
    ----------
    shape : (int, int)
        Shape of the weights.
    scale : Scale
    relaxed : dict from int to ndarray of int
        For each bag that was relaxed because it is intractable, the columns of its labels that are
        no longer required.
    uncertified : list of tuple of int
        See `Objective`.
    """

    def __init__(
        self,
        bags: Bags,
        problem: UnionProblem,
        used: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        scale: Scale | None = None,
        scaling: Scaling = "standard",
        method: Method = "auto",
        map: Callable[..., Any] = map,
        noise: "LabelNoise | None" = None,
        cost: float = 0.0,
        **options: Any,
    ) -> None:
        self.bags = bags
        self.problem: UnionProblem = problem
        self.chosen: np.ndarray = np.flatnonzero(used)
        self.weight = weight
        self.method: Method = method
        self.options = options
        self.map = map
        self.noise = noise
        self.cost = cost
        self.relaxed: dict[int, np.ndarray] = {}
        self.uncertified: list[tuple[int, ...]] = []
        self.shape: tuple[int, int] = problem.y.shape[1], bags.n_features + 1
        self.scale: Scale = Scale.none(bags.n_features) if scale is None else scale
        if scale is None and scaling is not None and bags.n_instances:
            self.scale = self._learnt_scale(scaling)

    def _learnt_scale(self, scaling):
        """Learn the scale of the features from the parts."""
        weighted = self.weight is not None and self.weight[self.chosen].sum() > 0
        moments = self.moments(weighted)
        scale = Scale.learn(scaling, moments, self.bags.dtype, self._has_sparse_features())
        wrong = np.flatnonzero(~(np.isfinite(scale.shift) & np.isfinite(scale.scale)))
        if len(wrong):
            raise NonFiniteObjectiveError(
                f"Mean and deviation of column {self._column_name(wrong[0])} overflow: it has "
                f"values up to {max(-moments.low[wrong[0]], moments.high[wrong[0]]):g}. Scale "
                "the features down first."
            )
        return scale

    def _has_sparse_features(self):
        return sparse.issparse(self.bags.X)

    def moments(self, weighted: bool) -> Moments:
        """Compute mean and spread of the features of all bags; see `Part.moments`."""
        parts = make_parts(self.bags, self.problem, self.chosen, self.weight)
        return reduce(operator.add, (part.moments(weighted) for part in parts))

    def _column_name(self, column):
        names = self.bags.feature_names
        return column if names is None else f"{column} ({names[column]})"

    def overflow(self, error: NonFiniteObjectiveError) -> NonFiniteObjectiveError:
        """Return the error with its likely cause: the largest feature and sample weight."""
        column, largest = self._largest_feature()
        cause = f"Features reach {largest:g} (column {self._column_name(column)})"
        if self.weight is not None:
            cause += f", sample_weight {self.weight.max():g} (bag {self.weight.argmax()})"
        return NonFiniteObjectiveError(f"{error} {cause}: rescale them, or use scaling='standard'.")

    def _largest_feature(self):
        columns: Any = abs(self.bags.X).max(axis=0)
        columns = columns.toarray().ravel() if self._has_sparse_features() else columns
        return int(columns.argmax()), columns.max()

    def objective(self) -> Objective:
        """Return the objective over all bags."""
        return self._objective(self._parts(self.chosen))

    def sample(self, fraction: float, rng: np.random.RandomState) -> Objective:
        """Return the objective over a random sample of the bags.

        Parameters
        ----------
        fraction : float
            Share of the bags to draw; at least one bag is drawn.
        rng : RandomState

        Returns
        -------
        Objective
        """
        size = max(1, round(fraction * len(self.chosen)))
        places = np.sort(rng.choice(len(self.chosen), size, replace=False))
        objective = self._objective(self._parts(self.chosen[places], gather=True))
        # The penalty is for all bags: a sample gets its share.
        objective.scale_penalty(size / len(self.chosen))
        return objective

    def _parts(self, chosen, gather=False) -> list[Any]:
        if self.relaxed:
            # Labels that one sample has relaxed stay relaxed in the next.
            labels = np.zeros(self.problem.y.shape, dtype=bool)
            for b, columns in self.relaxed.items():
                labels[b, columns] = True
            self.problem = self.problem.relaxed(labels)
        given = self.bags, self.problem, chosen, self.weight, self.scale.centre, self.method, gather
        return make_parts(*given, self.part)

    @property
    def part(self) -> Callable[..., Part]:
        """What makes a part of the bags."""
        return partial(Part if self.noise is None else self.noise.part, cost=self.cost)

    def _objective(self, parts):
        make = Objective if self.noise is None else self.noise.objective
        objective = make(parts, scale=self.scale, map=self.map, **self.options)
        objective.relaxed, objective.uncertified = self.relaxed, self.uncertified
        return objective


class Reader(Protocol):
    """Reads features of bags."""

    def read(self, first: int, last: int) -> np.ndarray:
        """Return the features of the bags from `first` to before `last`."""
        ...


class BagSource(Protocol):
    """Bags of which everything but the features is in memory, such as `unbag.io.stored.StoredBags`.

    Attributes
    ----------
    offsets : ndarray of int of shape (n_bags + 1,)
    ids : ndarray of shape (n_bags,)
    feature_names : ndarray of shape (n_features,) or None
    dtype : numpy.dtype
        Of the features, which are dense.
    n_features, n_instances : int
    """

    offsets: np.ndarray
    feature_names: Any
    dtype: np.dtype

    @property
    def ids(self) -> np.ndarray:
        """Names of the bags."""
        ...

    @property
    def sizes(self) -> np.ndarray:
        """Number of instances in each bag."""
        ...

    @property
    def n_features(self) -> int:
        """Number of features of an instance."""
        ...

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        ...

    def __len__(self) -> int: ...

    def block_of(self, bags: np.ndarray) -> np.ndarray:
        """Return the block in which each bag starts; the bags of a block are read together."""
        ...

    def reader(self) -> Reader:
        """Return a reader for one pass."""
        ...

    def sample(self, n_bytes: int) -> tuple[Bags, np.ndarray]:
        """Read a sample of bags, spread over all; return it and its positions, ascending."""
        ...


def sampled(
    bags: Bags | BagSource,
    labels: LabelSets,
    pinned: np.ndarray | None,
    weight: np.ndarray | None,
) -> tuple[Bags, LabelSets, np.ndarray | None, np.ndarray | None]:
    """Read a sample of bags, `SAMPLE_BYTES` of features, with their labels and weights.

    Parameters
    ----------
    bags : Bags or BagSource
    labels : LabelSets
        Of all bags.
    pinned : ndarray of int of shape (n_instances,) or None
    weight : ndarray of shape (n_bags,) or None

    Returns
    -------
    bags, labels, pinned, weight
        Of the sample.
    """
    places, sizes = np.arange(len(bags)), bags.sizes
    if not isinstance(bags, Bags):
        bags, places = bags.sample(SAMPLE_BYTES)
    chosen = evenly_chosen(bags, labels.indicator[places])
    if len(places) == len(labels) and chosen is None:
        return bags, labels, pinned, weight
    if chosen is not None:
        bags, places = bags[chosen], places[chosen]
    if pinned is not None:
        within = np.zeros(len(labels), dtype=bool)
        within[places] = True
        pinned = pinned[np.repeat(within, sizes)]
    return bags, labels[places], pinned, None if weight is None else weight[places]


def evenly_chosen(bags: Bags, y: np.ndarray) -> np.ndarray | None:
    """Choose some bags in memory evenly from all label sets; None if they are few enough.

    Nothing is random. Features may take `SAMPLE_BYTES`, answers for all classes four times that.
    """
    X: Any = bags.X
    n_bytes = X.data.nbytes if sparse.issparse(X) else X.nbytes
    share = min(
        SAMPLE_BYTES / max(n_bytes, 1), 4 * SAMPLE_BYTES / max(8 * bags.n_instances * y.shape[1], 1)
    )
    if share >= 1:
        return None
    order = np.lexsort(y.T) if y.shape[1] else np.arange(len(bags))
    n_wanted = max(2, int(len(bags) * share))
    return np.sort(order[np.linspace(0, len(bags) - 1, n_wanted).round().astype(int)])


class StreamedTraining(Training):
    """Bags whose features are read again for each evaluation, block by block.

    The parts, and therefore the order of all sums, are the same as in memory. A part is created
    when its features have been read, and deleted after it is evaluated; meanwhile, the next block
    is read. Memory therefore holds only a few blocks.

    Parameters
    ----------
    bags : BagSource
    problem, used, weight, scale, scaling, method, noise, **options
        As in `Training`.
    map : callable
        Evaluates the parts of a block: the built-in `map`, or one that uses several threads.
    on_bags_done : callable, optional
        Called with the number of bags each time that a part is done.

    Notes
    -----
    An iteration of L-BFGS reads the features once per evaluation, which means about once. An
    iteration of EM reads them twice and infers twice, because posteriors of all bags would take
    more space than their features. The "stochastic" solver samples blocks, in an order that is
    shuffled again when all have been used.
    """

    def __init__(
        self,
        bags: Any,
        *arguments: Any,
        map: Callable[..., Any] = map,
        on_bags_done: Callable[[int], object] | None = None,
        **options: Any,
    ) -> None:
        self._source: BagSource = bags
        self._run = map
        self._on_bags_done = on_bags_done
        self._sizes: np.ndarray = bags.sizes
        self._unseen: list[int] = []
        super().__init__(bags, *arguments, map=self._stream, **options)

    def moments(self, weighted: bool) -> Moments:
        """Compute mean and spread of the features of all bags, in one pass."""
        ask = methodcaller("moments", weighted)
        return reduce(operator.add, self._stream(ask, self._parts(self.chosen), make=Part))

    def _has_sparse_features(self):
        return False

    def _largest_feature(self):
        moments = self.moments(weighted=False)
        largest = np.maximum(-moments.low, moments.high)
        return int(largest.argmax()), largest.max()

    # A part is just the positions of its bags until its features have been read.

    def _parts(self, chosen, gather=False) -> list[Any]:
        n_weights = int(np.prod(self.shape))
        return runs_of_bags(chosen, self._sizes, n_weights)

    def _objective(self, parts):
        objective = super()._objective(parts)
        objective.steps_at_once = STEPS_AT_ONCE
        return objective

    def _stream(self, question, parts, make=None):
        """Call a function with every part, block by block, and yield the results in order."""
        make = self.part if make is None else make
        blocks = self._blocks(parts)
        waiting: Iterable[Any] = ()
        for own, (first, X) in zip(blocks, self._features(blocks), strict=True):

            def answer(bags, first=first, X=X):
                return question(self._part(bags, first, X, make))

            # Threads start with this block before the results of the last one are collected.
            answers = self._run(answer, own)
            yield from waiting
            waiting = self._counted(answers, own)
        yield from waiting

    def _counted(self, answers, own):
        yield from answers
        if self._on_bags_done is not None:
            self._on_bags_done(sum(map(len, own)))

    def _blocks(self, parts) -> list[list[np.ndarray]]:
        filled = [bags for bags in parts if len(bags)]
        block = self._source.block_of(np.array([bags[0] for bags in filled], dtype=np.intp))
        pairs = zip(block.tolist(), filled, strict=True)
        return [[bags for _, bags in group] for _, group in groupby(pairs, lambda pair: pair[0])]

    def _features(self, blocks) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first bag and the features of each block, and read the next one meanwhile."""
        reader = self._source.reader()

        def read(block):
            first = int(block[0][0])
            return first, reader.read(first, int(block[-1][-1]) + 1)

        with ThreadPoolExecutor(1, thread_name_prefix="unbag-reading") as thread:
            coming = [thread.submit(read, block) for block in blocks[:1]]
            for block in [*blocks[1:], None]:
                if coming:
                    found = coming.pop().result()
                    if block is not None:
                        coming.append(thread.submit(read, block))
                    yield found

    def _part(self, own, first, X, make):
        problem = self.problem.take(own)
        if self.relaxed:
            labels = np.zeros(problem.y.shape, dtype=bool)
            for b in self.relaxed.keys() & set(own.tolist()):
                labels[np.searchsorted(own, b), self.relaxed[b]] = True
            problem = problem.relaxed(labels)
        offsets = self.bags.offsets
        rows = rows_of(own, offsets)
        start = int(offsets[first])
        if isinstance(rows, slice):
            rows = slice(rows.start - start, rows.stop - start)
        else:
            rows -= start
        weight = None if self.weight is None else self.weight[own]
        return make(X, rows, own, problem, weight, self.scale.centre, self.method)

    def sample(self, fraction: float, rng: np.random.RandomState) -> Objective:
        """Return the objective over some blocks of the bags: the next ones in a shuffled order.

        Parameters
        ----------
        fraction : float
            Share of the bags to use; only some parts of the last block may be needed.
        rng : RandomState

        Returns
        -------
        Objective
        """
        blocks = self._blocks(self._parts(self.chosen))
        wanted = max(1, round(fraction * len(self.chosen)))
        taken: dict[int, list[np.ndarray]] = {}
        n_taken = 0
        while n_taken < wanted:
            if not self._unseen:
                self._unseen = rng.permutation(len(blocks)).tolist()
            block = self._unseen.pop()
            for part in rng.permutation(len(blocks[block])) if block not in taken else ():
                if n_taken < wanted:
                    taken.setdefault(block, []).append(blocks[block][part])
                    n_taken += len(blocks[block][part])
        parts = [bags for each in taken.values() for bags in each]
        objective = self._objective(sorted(parts, key=lambda bags: bags[0]))
        objective.scale_penalty(n_taken / len(self.chosen))
        return objective
