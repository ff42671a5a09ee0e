"""ORed-logistic regression: the model of Pham, Raich and Fern.

The label of an instance is drawn by multinomial logistic regression; the label set of a bag
is the union (the OR) of the labels of its instances. With one instance per bag it *is*
multinomial logistic regression.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unbag._messages import listed
from unbag._scikit_learn import ConvergenceWarning
from unbag._warnings import warn_caller
from unbag.fitting import (
    SCALINGS,
    NonFiniteObjectiveError,
    Progress,
    Rate,
    Scaling,
    Stream,
    Training,
    UncertifiedWarning,
    cheapest_bags,
    fit_em,
    fit_lbfgs,
    fit_stochastic,
    is_background_better,
    naming_costs,
    progress_watch,
    sampled,
    thread_map,
    two_halves,
)
from unbag.fitting.background import (
    MOST_GROWTH,
    PARTS_OF_COST,
    SLIGHTLY,
    TEMPERATURES,
    background_counts,
    growth,
    information_at_temperatures,
    presence_in_bags,
)
from unbag.fitting.devices import check_device_fit, training_on
from unbag.fitting.solvers import InterruptedFitWarning
from unbag.fitting.threshold import best_threshold
from unbag.union import IntractableBagError, IntractableBagWarning
from unbag.union.dispatch import METHODS, Method
from unbag.union.policy import OnIntractable, name_bags
from unbag.validation import (
    all_or_nothing,
    as_labels,
    bag_weights,
    check_choices,
    check_numbers,
    check_positive_integers,
    check_scaling,
    unchanged_on_error,
)

from .contract import BagsLike, LabelSetsLike, RandomState, as_classes, is_one_label_each
from .instances import (
    UNLIKELY,
    LabelSetLearner,
    LinearUnionClassifier,
    Threshold,
    check_background_cost,
    linear_proba,
)

# What is decided on by held-out bags, and is kept where a fit goes on.
DECIDED = ("background_cost_", "threshold_")


class Halves:
    """Bags to be fitted and held out in turn, half by half, and what is known of them.

    `counted` are those that count: `half` is -1 for the others. `watch` is that of the fits.
    """

    def __init__(self, bags, labels, pinned, weight, watch):
        self.bags, self.labels, self.pinned, self.watch = bags, labels, pinned, watch
        self.weight: np.ndarray = np.ones(len(bags)) if weight is None else weight
        self.counted: np.ndarray = (bags.sizes > 0) & (self.weight > 0)
        self.half: np.ndarray = two_halves(labels.indicator, self.counted)


class HeldOut(NamedTuple):
    """What held-out bags say of a background of some cost; of none, if that is None.

    Their means, as in `is_background_better`; the probability that each class occurs in each bag;
    the share of the instances that would be background; how much these become more with the labels
    of bags, see `growth`; and how often labels are wrong.
    """

    scores: tuple[float, float]
    presence: np.ndarray
    share: float
    cost: float | None
    growth: float = 0.0
    rates: dict[str, np.ndarray] | None = None


def compared(without: HeldOut, with_it: HeldOut) -> np.ndarray:
    """Return the scores of two models, without a background and with one."""
    return np.array([without.scores, with_it.scores])


def best_cost(found: Sequence[HeldOut], margin: float) -> HeldOut:
    """Choose what a background costs; of those that are as good, up to a margin, the highest.

    Costs rise. If at a cost there are more instances of the background in bags with more labels,
    they are fragments of what has these labels, and a higher cost is taken.
    """
    # The last one leaves the fewest without a label.
    steady = [each for each in found if each.growth <= MOST_GROWTH] or [found[-1]]
    best = max(each.scores[0] for each in steady)
    return next(each for each in reversed(steady) if each.scores[0] >= best - margin)


class ORLogisticRegression(LabelSetLearner, LinearUnionClassifier):
    """Learn to label instances from the label sets of their bags.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty ``alpha / 2 * ||coef||**2``, on standardised features; the
        intercepts are free. The reciprocal of scikit-learn's ``C``.
    solver : {"lbfgs", "em", "stochastic"}, default="lbfgs"
        "em" is the published algorithm: expectation maximisation with one gradient step by
        backtracking per E-step (with ``alpha=0, max_iter=50``, to the letter). "lbfgs" climbs
        the same likelihood faster. "stochastic" is "em" on a new sample of the bags in each
        iteration.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Stop when an iteration improves the objective by less than this part of it.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled inside: to mean zero and variance one (sparse ones: to variance
        one), to the range from zero to one, or not at all. Coefficients are reported on the
        original scale.
    background : bool or "auto", default=False
        Whether there is one more class, optional in every bag and never named in a label
        set: noise, silence, clutter, unseen species. "auto" fits one half of the bags at a time
        and checks on the other whether label sets agree better with a model that has one (see
        `background_scores_`), which takes about as long as two more fits; and if so, what it shall
        cost, which takes about three more. Of many bags only some are asked.
    background_cost : float, optional
        What an instance of the background costs in bags with labels, in nats: given the labels,
        it is that much less likely, and the model is fitted so. At 0 all instances that the labels
        of a bag do not need become background. By default it is chosen by held-out bags with
        ``background="auto"``, and 0 with ``background=True``.
    missed : float, array-like of shape (n_classes,), "learn" or "learn-per-class", default=0.0
        The probability that an instance of a class goes unnoticed when its bag is labelled, or how
        to learn it. A learnt rate includes misfit: it is not the share of missing labels.
    false : float, array-like of shape (n_classes,), "learn" or "learn-per-class", default=0.0
        The probability that a class is named by mistake in the label set of a bag.
    prune : float, default=0.0
        Share of the bags, the most expensive ones by n k 2^k, that are left out of the fit.
    sample_fraction : float, default=0.2
        Share of the bags in each iteration of the "stochastic" solver.
    on_impossible : {"relax", "drop", "raise"}, default="relax"
        What to do with a bag whose label set no labelling can produce: take its labels as
        optional (if it has none, leave it out), leave it out, or raise an error.
    on_intractable : {"relax", "raise"}, default="relax"
        What to do with a bag of too many labels for exact inference: take those as optional
        that are the most certain to occur anyway, or raise an error.
    inference : str, default="auto"
        Method of `unbag.union.infer`. Those other than "auto", such as the published "fast", are
        for comparisons: bags that they cannot certify are used, with a warning.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, in the order of `classes_`: a label that is not in it is refused, and one
        that no bag has is a class all the same. By default the sorted labels of the training
        bags.
    threshold : float, "auto" or "union", default="auto"
        The least probability at which `predict` takes a class to occur in a bag. "auto" is 0.5;
        where ``background="auto"`` has bags held out, that by which the fewest of their labels are
        wrong. "union" is the published rule: the classes of a bag are the likeliest ones of its
        instances, and `decision_function` is the probability of a class in its best instance.
    warm_start : bool, default=False
        Whether to start from the coefficients of the last fit.
    callback : callable, optional
        Called as ``callback(iteration, log_likelihood)``; a true answer stops the fit.
    random_state : int, RandomState instance or None
        Seed of the "stochastic" solver.
    n_jobs : int, optional
        Number of threads, as in `unbag.union.infer`.
    device : str, default="cpu"
        Where the objective of `fit` is computed. "cuda", or "cuda:1", is for many dense instances:
        they must fit on that GPU, the solver must be "lbfgs", and it needs PyTorch for CUDA.
        Features in float32 are multiplied, and their probabilities computed, in float32 there.
    verbose : int, default=0
        1 shows a line of progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of int of shape (n_classes,)
        How many training bags have each class.
    coef_ : ndarray of shape (n_classes, n_features), or one row more for the background
    intercept_ : ndarray of shape (n_classes,), or one entry more for the background
    n_iter_ : int
    converged_ : bool
        Whether the fit ended by `tol` or the callback, rather than by `max_iter`.
    log_likelihood_ : float
        Of the training bags, after the last iteration; the last of `history_`. Where a background
        costs something, less that.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood after each iteration; for the "stochastic" solver and `partial_fit`,
        that of the sample or batch, before the step.
    missed_, false_ : ndarrays of shape (n_classes,)
        These rates, as given or learnt. What takes label sets goes by them; `predict` and its
        like speak of what is there, not of labels.
    has_background_ : bool
        Whether the model has a background class.
    background_cost_ : float
        What an instance of the background costs in bags with labels; 0 without a background.
        Like `coef_`, it is divided by the temperature that `unbag.tune` has found.
    background_scores_ : ndarray of shape (2, 2)
        Why ``background="auto"`` was decided so; without a background, then with one. First, by how
        much the label set of a held-out bag raises the log-likelihood of its instances, each bag
        counting at least log 1e-12, at the temperature that is best for the model; by more than
        0.1 it must be more with a background, of which there must not be more in bags with more
        labels. Second, wrong labels per held-out bag; where these are 1.25 times as many as empty
        label sets would have, a background is taken if there are fewer with it. Not there with
        less than two bags, nor for a warm start, which keeps what it starts from.
    background_share_ : float
        Which share of the instances is background, or would be if there were one; there with
        `background_scores_`.
    background_note_ : str
        What was decided, and what that costs, in a sentence.
    threshold_ : float
        The threshold of "auto".
    annotation_temperature_ : float
        What scores of instances, and `background_cost_`, are divided by where the labels of their
        bag are known, as in `annotate_proba`; more than 1 makes the model less sure. It is 1,
        unless `unbag.tune` has found another; `partial_fit` keeps it, another fit does not.
    relaxed_ : dict
        For each bag (its id) that was used, but not with all of its labels required: those
        labels.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when the bags had names for them.

    Examples
    --------
    Low instances are "a", high ones "b"; only bags say so.

    >>> import numpy as np
    >>> from unbag import Bags, ORLogisticRegression
    >>> bags = Bags.from_list([[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]])
    >>> model = ORLogisticRegression().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> model.predict_instances([[[0.5], [8.5]]])
    array(['a', 'b'], dtype='<U1')
    >>> model.annotate([[[3.9], [4.0]]], [{"a", "b"}], joint=True)
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        solver: Literal["lbfgs", "em", "stochastic"] = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-6,
        scaling: Scaling = "standard",
        background: bool | Literal["auto"] = False,
        background_cost: float | None = None,
        missed: Rate = 0.0,
        false: Rate = 0.0,
        prune: float = 0.0,
        sample_fraction: float = 0.2,
        on_impossible: Literal["relax", "drop", "raise"] = "relax",
        on_intractable: OnIntractable = "relax",
        inference: Method = "auto",
        classes: ArrayLike | None = None,
        threshold: Threshold = "auto",
        warm_start: bool = False,
        callback: Callable[[int, float], object] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.scaling: Scaling = scaling
        self.background = background
        self.background_cost = background_cost
        self.missed: Rate = missed
        self.false: Rate = false
        self.prune = prune
        self.sample_fraction = sample_fraction
        self.on_impossible: Literal["relax", "drop", "raise"] = on_impossible
        self.on_intractable = on_intractable
        self.inference: Method = inference
        self.classes = classes
        self.threshold: Threshold = threshold
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    coef_: np.ndarray
    intercept_: np.ndarray
    converged_: bool

    _accepts_sparse = True
    # What `partial_fit` has learnt so far; None before the first batch.
    _stream: Stream | None = None
    # How often labels are wrong by fits whose background costs nothing, until a fit has its own.
    _rates_of_fit: dict[str, np.ndarray] | None = None
    #: What a background may cost, if that is to be decided.
    _parts_of_cost: tuple[float, ...] = PARTS_OF_COST

    @property
    def has_background_(self) -> bool:
        """Whether the model has a background class."""
        check_is_fitted(self)
        return len(self.coef_) > len(self.classes_)

    def fit(
        self,
        X: BagsLike,
        y: LabelSetsLike,
        instance_labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
            A 2-D array has one instance per bag.
        y : label sets
            Sets of labels, strings such as "wren|owl", an indicator of 1, 0 and -1 (unknown),
            `LabelSets`; or one label per bag. A pandas index of bag ids is looked up.
        instance_labels : array-like of shape (n_instances,), optional
            Labels of single instances, where they are known; None or -1 elsewhere. The word
            "background", unless it is a class, is the label of instances of none of the classes.
        sample_weight : array-like of shape (n_bags,), optional
            What each bag counts.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            self._fit(X, y, instance_labels, sample_weight)
        return self

    def _fit(self, X, y, instance_labels, sample_weight, make=Training, reached=None, watch=None):
        """Fit to bags in memory, or to those that `make` makes a `Training` of.

        It goes on from `reached`, the scale and `Progress` of an earlier fit, where there is one.
        """
        self._check_parameters()
        scale = start = rates = None
        decided = {name: getattr(self, name) for name in DECIDED}
        if self.warm_start and hasattr(self, "coef_"):
            start = self.coef_, self.intercept_, self.classes_
        given = self._read_fit(X, y, instance_labels, sample_weight, make is not Training)
        bags, labels, pinned, weight = given
        if reached is not None:
            scale, last = reached
            start = *scale.coefficients(last.weights), self.classes_
            decided = last.decided
        with self._decided_background(*given, start, decided):
            problem, used = self._possible_label_sets(bags, labels, pinned)
            used = cheapest_bags(problem, used, self.prune)
            if reached is None and start is not None:
                rates = self._rates()
            elif reached is None:
                rates = self._rates_beside_cost(*given)
            elif reached is not None and last.rates is not None:
                rates = {"missed": last.rates.missed[0], "false": last.rates.false[0]}
            with self._training(bags, problem, used, weight, scale, rates, make) as training:
                progress = Progress(np.zeros(training.shape), self._watch)
                progress.decided = {name: getattr(self, name) for name in DECIDED}
                if reached is not None:
                    progress.weights, progress.history = last.weights, list(last.history)
                elif start is not None:
                    progress.weights = self._warm_weights(training, *start)
                if watch is not None:
                    progress.watch = partial(watch, training, progress)
                self._climb(training, progress)

    @all_or_nothing
    def partial_fit(
        self,
        X: BagsLike,
        y: LabelSetsLike,
        classes: ArrayLike | None = None,
        instance_labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Take one step towards bags that come in a stream.

        Parameters
        ----------
        X, y, instance_labels, sample_weight
            As in `fit`, of this batch.
        classes : array-like of shape (n_classes,)
            All classes that will occur; needed in the first call only, and not if the parameter
            `classes` is set.

        Returns
        -------
        self

        Notes
        -----
        An AdaGrad step along the gradient of the batch. Features are standardised by the
        first batch (or the last call of `fit`), so that should be a fair sample; it also decides
        on ``background="auto"``. `solver`, `max_iter`, `prune` and `tol` have no effect here.
        """
        self._check_parameters()
        stream = self._stream
        bags = self._read_bags(X, reset=stream is None)
        # After one batch of label sets all are label sets, even if each bag before had one label.
        one_label_each = is_one_label_each(as_labels(y, X))
        self.single_label_: bool = one_label_each and (stream is None or self.single_label_)
        if stream is None:
            self._read_classes(self.classes if classes is None else classes)
        elif classes is not None and not np.array_equal(np.sort(classes), np.sort(self.classes_)):
            raise ValueError(
                f"`classes={classes}` is not the same as on last call to partial_fit, was: "
                f"{self.classes_}."
            )
        labels = self._read_labels(y, X)
        seen: Any = 0 if stream is None else getattr(self, "class_counts_", None)
        # A model of a file of version 0.1 does not know what it has seen.
        if seen is not None:
            self.class_counts_: np.ndarray = seen + labels.required.sum(axis=0)
        pinned = self._read_instance_labels(instance_labels, bags, labels)
        weight = bag_weights(sample_weight, bags, X)
        if stream is None:
            check_scaling(bags, self.scaling)
            with self._decided_background(bags, labels, pinned, weight):
                return self._take_batch(bags, labels, pinned, weight)
        self._check_known_background(pinned, bags, self._has_background)
        return self._take_batch(bags, labels, pinned, weight)

    def _read_classes(self, classes):
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        # The columns of an indicator are in the order of the classes as they are given.
        sort = self.single_label_ and self.classes is None
        self.classes_: np.ndarray = as_classes(np.unique(classes) if sort else classes)

    def _take_batch(self, bags, labels, pinned, weight):
        problem, used = self._possible_label_sets(bags, labels, pinned)
        stream = self._stream
        if stream is None:
            # The scale is learnt from all bags of the first batch, even those that are not used.
            with self._training(bags, problem, np.ones(len(bags), dtype=bool), weight) as whole:
                stream = Stream(whole.scale)
        if self._stream is None:
            rates = self._rates_beside_cost(bags, labels, pinned, weight)
        else:
            rates = self._rates()
        with self._training(bags, problem, used, weight, stream.scale, rates) as training:
            progress = stream.advance(training)
        self.converged_ = False
        self._finish(training, progress)
        self._stream = stream
        return self

    @contextmanager
    def _decided_background(self, bags, labels, pinned, weight, start=None, decided=None):
        """Decide whether a fit has a background, and what it costs, until it has coefficients.

        With ``background="auto"``, a fit that goes on from an earlier one, `start`, keeps what was
        `decided` there.
        """
        others = "background_scores_", "background_share_", "annotation_temperature_"
        for name in (*others, *DECIDED):
            self.__dict__.pop(name, None)
        try:
            if self.background != "auto":
                self._background_of_fit = bool(self.background)
                self.background_cost_: float = float(self.background_cost or 0.0)
            elif start is not None:
                coef, _, classes = start
                self._background_of_fit = len(coef) > len(classes)
                vars(self).update(decided or {})
            else:
                chosen = self._choose_background(bags, labels, pinned, weight)
                self._background_of_fit, self.background_cost_ = chosen
            if not self._background_of_fit:
                self.background_cost_ = 0.0
            self._check_known_background(pinned, bags, self._background_of_fit)
            yield
        finally:
            self.__dict__.pop("_background_of_fit", None)
            self.__dict__.pop("_rates_of_fit", None)

    def _choose_background(self, bags, labels, pinned, weight, watch=None):
        """Decide by held-out bags whether to use a background, and what it costs.

        With less than two bags there is none, unless instances are known to be background. `watch`
        is that of the fits to halves of the bags, see `Progress`.
        """
        # Somebody has seen instances of none of the classes.
        is_known = pinned is not None and bool((pinned == len(self.classes_)).any())
        bags, labels, pinned, weight = sampled(bags, labels, pinned, weight)
        halves = Halves(bags, labels, pinned, weight, watch)
        if halves.counted.sum() < 2:
            return is_known, 0.0
        counts = halves.weight * halves.counted
        tagged = np.where(labels.named, 1, labels.indicator)
        _, mean = naming_costs(tagged, bags.sizes, counts)
        costs = [part * mean for part in self._parts_of_cost] if mean else [0.0]
        if self.background_cost is not None:
            costs = [self.background_cost]
        self._rates_of_fit = self._rates_of_halves(halves)
        chosen = best = self._held_out(halves, costs[0])
        without = None if is_known else self._held_out(halves, None)
        n_wrong = np.average(labels.cardinality, weights=counts)
        if without is None or is_background_better(compared(without, best), n_wrong):
            others = [self._held_out(halves, cost) for cost in costs[1:]]
            margin = SLIGHTLY * np.average(bags.sizes, weights=counts)
            chosen = best = best_cost([best, *others], float(margin))
        if without is not None:
            self.background_scores_: np.ndarray = compared(without, best)
            is_steady = best.growth <= MOST_GROWTH
            if not is_background_better(self.background_scores_, n_wrong, is_steady):
                chosen = without
        self.background_share_: float = best.share
        self.threshold_: float = best_threshold(
            [chosen.presence[halves.counted]], [labels.indicator[halves.counted]]
        )
        return chosen.cost is not None, chosen.cost or 0.0

    def _rates_beside_cost(self, bags, labels, pinned, weight):
        """Return how often labels are wrong, where a background costs something and that is learnt.

        In the same fit, instances that go unnoticed would take the place of the background.
        """
        if not self.background_cost_:
            return None
        if self._rates_of_fit is None:
            given = sampled(bags, labels, pinned, weight)
            self._rates_of_fit = self._rates_of_halves(Halves(*given, None))
        return self._rates_of_fit

    def _rates_of_halves(self, halves):
        """Learn how often labels are wrong by fits whose background costs nothing."""
        if not any(isinstance(rate, str) for rate in (self.missed, self.false)):
            return None
        return self._held_out(halves, 0.0).rates

    def _held_out(self, halves, cost):
        """Fit to each half with a background of some cost, or without one, and ask the other."""
        self._background_of_fit = cost is not None
        bags, weight, y = halves.bags, halves.weight, halves.labels.indicator
        problem = self._problem(bags, halves.labels, halves.pinned)
        usable = cheapest_bags(problem, ~self._impossible_in_fit(problem), self.prune)
        information, presence = np.zeros((len(TEMPERATURES), len(bags))), np.zeros(y.shape)
        n_background = np.zeros(len(bags))
        share, wrong = 0.0, np.zeros((2, len(self.classes_)))
        for own in (0, 1):
            used, held_out = usable & (halves.half == own), halves.half == 1 - own
            if not used.any():
                return HeldOut((UNLIKELY, len(self.classes_)), presence, 0.0, cost)
            rates = self._rates_of_fit if cost else None
            with self._training(
                bags, problem, used, weight, rates=rates, cost=cost or 0.0
            ) as training:
                progress = Progress(np.zeros(training.shape), halves.watch)
                # Whatever is random would let the same bags be decided on in different ways.
                self._solve(training, progress, "em" if self.solver == "em" else "lbfgs")
            model = training.scale.coefficients(progress.weights)
            proba = linear_proba(bags.X, *model)
            counted = np.repeat(weight * used, bags.sizes)
            shares = np.average(proba, axis=0, weights=counted)
            found = information_at_temperatures(proba, counted, bags.offsets, y)
            information[:, held_out] = found[:, held_out]
            presence[held_out] = presence_in_bags(proba, bags.offsets, y.shape[1])[held_out]
            if cost is not None:
                counts = background_counts(proba, bags.offsets, y, cost)
                n_background[held_out] = counts[held_out]
            share += 0.5 * float(shares[len(self.classes_) :].sum())
            if progress.rates is not None:
                wrong += 0.5 * np.concatenate(progress.rates)[:, : len(self.classes_)]
        n_wrong = (((presence >= 0.5) != (y == 1)) & (y != -1)).sum(axis=1)
        counted = weight * halves.counted
        means = np.average(np.maximum(information, UNLIKELY), axis=1, weights=counted)
        scores = float(means.max()), float(np.average(n_wrong, weights=counted))
        by_kind: dict[str, np.ndarray] = {"missed": wrong[0], "false": wrong[1]}
        more = growth(n_background, halves.labels.cardinality, counted)
        return HeldOut(scores, presence, share, cost, more, by_kind)

    @contextmanager
    def _training(
        self, bags, problem, used, weight, scale=None, rates=None, make=Training, cost=None
    ):
        """Prepare the bags of a fit, and the threads for it."""
        cost = self.background_cost_ if cost is None else cost
        if self.device != "cpu":
            make = training_on(self.device, make)
        n_multiplications = bags.n_instances * problem.y.shape[1] * (bags.n_features + 1)
        with thread_map(self.n_jobs, n_multiplications) as map:
            yield make(
                bags, problem, used, weight,
                scale=scale,
                scaling=self.scaling,
                method=self.inference,
                map=map,
                noise=self._noise_of_fit(problem, rates, cost),
                alpha=self.alpha,
                on_intractable=self.on_intractable,
                cost=cost,
            )  # fmt: skip

    def _warm_weights(self, training, coef, intercept, classes):
        """Return the coefficients of the last fit as weights of this one."""
        n_columns, n_features = training.shape[0], training.shape[1] - 1
        if len(coef) != n_columns or not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"warm_start needs the classes of the last fit, {listed(classes)}, and a "
                f"background only if it had one; the classes are {listed(self.classes_)} now."
            )
        if coef.shape[1] != n_features:
            raise ValueError(
                f"warm_start needs the classes and features of the last fit: its coefficients "
                f"have shape {coef.shape}, but this fit needs {(n_columns, n_features)}."
            )
        return training.scale.weights(coef, intercept)

    def _check_parameters(self):
        check_numbers(
            self, alpha=(0, np.inf), tol=(0, np.inf), prune=(0, 1), sample_fraction=(0, 1)
        )
        check_background_cost(self)
        check_positive_integers(self, "max_iter")
        check_choices(
            self,
            solver=("lbfgs", "em", "stochastic"),
            on_impossible=("relax", "drop", "raise"),
            on_intractable=("relax", "raise"),
            inference=("auto", *METHODS),
            scaling=SCALINGS,
            background=(False, True, "auto"),
        )
        self._check_threshold()
        if self.device != "cpu":
            check_device_fit(self)

    def _climb(self, training, progress):
        """Run the solver, and keep what it has reached even when it is interrupted."""
        self.converged_ = False
        try:
            self.converged_ = self._solve(training, progress, self.solver)
        except KeyboardInterrupt:
            warn_caller(
                f"fit was interrupted: the model is that of the last completed iteration, "
                f"{len(progress.history)}.",
                InterruptedFitWarning,
            )
        else:
            # Without a tolerance, as many iterations are wanted as were made.
            if not self.converged_ and self.tol > 0 and self.solver != "stochastic":
                warn_caller(
                    f"The fit has not converged within {self.max_iter} iterations: increase "
                    "max_iter or tol.",
                    ConvergenceWarning,
                )
        finally:
            if self.verbose:
                print(file=sys.stderr)
        self._finish(training, progress)
        self._stream = Stream(training.scale, progress.weights)

    def _solve(self, training, progress, solver):
        """Climb from where `progress` is; return whether that converged."""
        W, options = progress.weights, {"max_iter": self.max_iter, "progress": progress}
        try:
            if solver == "stochastic":
                rng = check_random_state(self.random_state)
                return fit_stochastic(
                    lambda: training.sample(self.sample_fraction, rng), W, **options
                )
            solve = {"lbfgs": fit_lbfgs, "em": fit_em}[solver]
            return solve(training.objective(), W, tol=self.tol, **options)
        except IntractableBagError as error:
            raise error.with_ids(training.bags.ids) from None
        except NonFiniteObjectiveError as error:
            raise training.overflow(error) from None

    def _finish(self, training, progress):
        """Turn what the solver has reached into learnt attributes."""
        if training.uncertified:
            self._warn_of_uncertified(training)
        if training.relaxed:
            self._warn_of_relaxed(training)
        self._keep_rates(progress.rates)
        self.coef_, self.intercept_ = training.scale.coefficients(progress.weights)
        self.history_: np.ndarray = np.array(progress.history)
        self.n_iter_: int = max(len(progress.history), 1)
        self.log_likelihood_: float = progress.history[-1] if progress.history else -np.inf

    def _temper(self, temperature):
        """Divide the scores by a temperature; `history_` and `log_likelihood_` stay the fit's."""
        self.coef_, self.intercept_ = self.coef_ / temperature, self.intercept_ / temperature
        self.background_cost_ = self.background_cost_ / temperature
        if self._stream is not None and self._stream.weights is not None:
            # A new one, as copies of the model have the same.
            self._stream = Stream(self._stream.scale, self._stream.weights / temperature)

    def _warn_of_uncertified(self, training):
        places = sorted(set().union(*training.uncertified))
        ids = [training.bags.ids[b].item() for b in places]
        message = (
            f"The inference method could not certify {len(ids)} bags: {name_bags(ids)}. The "
            "fit may be wrong. Use inference='auto'."
        )
        warn_caller(UncertifiedWarning(message, n_times=len(training.uncertified)))

    def _warn_of_relaxed(self, training):
        """Warn of bags that were too much for exact inference, and note them in `relaxed_`."""
        ids = [training.bags.ids[b].item() for b in training.relaxed]
        for bag, columns in zip(ids, training.relaxed.values(), strict=True):
            self.relaxed_[bag] = self._label_values(columns)
        warn_caller(
            f"{len(ids)} bags have too many labels for exact inference: {name_bags(ids)}. "
            "Those of their labels that are the most certain to occur were taken as optional; "
            "see relaxed_.",
            IntractableBagWarning,
        )

    @property
    def _watch(self):
        """What is called after each iteration of a fit."""
        return progress_watch(self.callback, self.max_iter, self.verbose)
