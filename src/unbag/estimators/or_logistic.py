"""ORed-logistic regression: the model of Pham, Raich and Fern.

The label of an instance is drawn by multinomial logistic regression; the label set of a bag
is the union (the OR) of the labels of its instances. With one instance per bag it *is*
multinomial logistic regression.
"""

import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from unbag.fitting import (
    SCALINGS,
    NonFiniteObjectiveError,
    Progress,
    Scaling,
    Stream,
    Training,
    fit_em,
    fit_lbfgs,
    fit_stochastic,
    thread_map,
)
from unbag.fitting.solvers import InterruptedFitWarning
from unbag.labels import LabelSets
from unbag.union import (
    IntractableBagError,
    IntractableBagWarning,
    UnionProblem,
)
from unbag.union.dispatch import METHODS, Method
from unbag.union.policy import OnIntractable, name_bags
from unbag.validation import (
    all_or_nothing,
    bag_weights,
    check_choices,
    check_numbers,
    check_positive_integers,
    is_whitened,
)

from .contract import BagsLike, LabelSetsLike, RandomState, as_labels, is_one_label_each
from .instances import LinearUnionClassifier, settled_label_sets


class ORLogisticRegression(LinearUnionClassifier):
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
    max_iter : int, default=100
    tol : float, default=1e-7
        Stop when an iteration improves the objective by less than this part of it.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled inside: to mean zero and variance one (sparse ones: to variance
        one), to the range from zero to one, or not at all. Coefficients are reported on the
        original scale.
    background : bool, default=False
        Whether there is one more class, optional in every bag and never named in a label
        set: noise, silence, clutter, unseen species.
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
        there to be compared with: what they cannot certify is warned of, and used all the same.
    warm_start : bool, default=False
        Whether to start from the coefficients of the last fit.
    callback : callable, optional
        Called as ``callback(iteration, log_likelihood)``; a true answer stops the fit.
    random_state : int, RandomState instance or None
        Seed of the "stochastic" solver.
    n_jobs : int, optional
        Number of threads, as in `unbag.union.infer`.
    verbose : int, default=0
        1 shows a line of progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_features), or one row more for the background
    intercept_ : ndarray of shape (n_classes,), or one entry more for the background
    n_iter_ : int
    converged_ : bool
        Whether the fit ended by `tol` or the callback, rather than by `max_iter`.
    log_likelihood_ : float
        Of the training bags, after the last iteration; the last of `history_`.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood after each iteration; for the "stochastic" solver and `partial_fit`,
        that of the sample or batch, before the step.
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
        max_iter: int = 100,
        tol: float = 1e-7,
        scaling: Scaling = "standard",
        background: bool = False,
        prune: float = 0.0,
        sample_fraction: float = 0.2,
        on_impossible: Literal["relax", "drop", "raise"] = "relax",
        on_intractable: OnIntractable = "relax",
        inference: Method = "auto",
        warm_start: bool = False,
        callback: Callable[[int, float], object] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.scaling: Scaling = scaling
        self.background = background
        self.prune = prune
        self.sample_fraction = sample_fraction
        self.on_impossible: Literal["relax", "drop", "raise"] = on_impossible
        self.on_intractable = on_intractable
        self.inference: Method = inference
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    coef_: np.ndarray
    intercept_: np.ndarray
    converged_: bool

    _accepts_sparse = True
    # While a model is fitted again, its parameters count, not its last coefficients.
    _fitting = False

    @property
    def _has_background(self):
        if self._fitting or not hasattr(self, "coef_"):
            return self.background
        return len(self.coef_) > len(self.classes_)

    @all_or_nothing
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
            Sets of labels, an indicator of 1, 0 and -1 (unknown), `LabelSets`; or one label
            per bag.
        instance_labels : array-like of shape (n_instances,), optional
            Labels of single instances, where they are known; None or -1 elsewhere.
        sample_weight : array-like of shape (n_bags,), optional
            What each bag counts.

        Returns
        -------
        self
        """
        self._check_parameters()
        start = None
        if self.warm_start and hasattr(self, "coef_"):
            start = self.coef_, self.intercept_, self.classes_
        self._fitting = True
        try:
            return self._fit(X, y, instance_labels, sample_weight, start)
        finally:
            del self._fitting

    def _fit(self, X, y, instance_labels, sample_weight, start):
        bags, labels = self._read_training(X, y)
        pinned = self._read_instance_labels(instance_labels, bags)
        weight = bag_weights(sample_weight, bags)
        problem, used = self._possible_label_sets(bags, labels, pinned)
        used = self._affordable(problem, bags, used)
        if not used.any():
            raise ValueError("No bag is left to fit to: all were dropped or pruned.")
        with self._training(bags, problem, used, weight) as training:
            W = np.zeros(training.shape)
            if start is not None:
                W = self._warm_weights(training, *start)
            self._climb(training, W)
        return self

    def _warm_weights(self, training, coef, intercept, classes):
        """Return the coefficients of the last fit as weights of this one."""
        n_columns, n_features = training.shape[0], training.shape[1] - 1
        if len(coef) != n_columns or not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"warm_start needs the classes of the last fit, {list(classes)}, and its "
                f"background, if it had one; these are {list(self.classes_)}."
            )
        if coef.shape[1] != n_features:
            raise ValueError(
                f"warm_start needs the classes and features of the last fit: its coefficients "
                f"have shape {coef.shape}, these need {(n_columns, n_features)}."
            )
        return training.scale.weights(coef, intercept)

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
            As in `fit`: the bags that have come.
        classes : array-like of shape (n_classes,)
            All classes there will be; needed in the first call only.

        Returns
        -------
        self

        Notes
        -----
        An AdaGrad step along the gradient of the batch. Features are standardised by the
        first batch (or the last call of `fit`), so that should be a fair sample. `solver`,
        `max_iter`, `prune` and `tol` have no say here.
        """
        self._check_parameters()
        stream = getattr(self, "_stream", None)
        bags = self._read_bags(X, reset=stream is None)
        if stream is None:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self.single_label_: bool = is_one_label_each(as_labels(y))
            # The columns of an indicator are in the order of the classes as they are given.
            classes = np.unique(classes) if self.single_label_ else classes
            self.classes_: np.ndarray = LabelSets(np.zeros((0, np.size(classes))), classes).classes
        elif classes is not None and not np.array_equal(np.sort(classes), np.sort(self.classes_)):
            raise ValueError(
                f"`classes={classes}` is not the same as on last call to partial_fit, was: "
                f"{self.classes_}."
            )
        labels = self._read_labels(y, len(bags))
        pinned = self._read_instance_labels(instance_labels, bags)
        weight = bag_weights(sample_weight, bags)
        problem, used = self._possible_label_sets(bags, labels, pinned)
        if stream is None:
            # All bags of the first batch tell the scale of features, even those not to be used.
            with self._training(bags, problem, np.ones(len(bags), dtype=bool), weight) as whole:
                stream = Stream(whole.scale)
        with self._training(bags, problem, used, weight, stream.scale) as training:
            progress = stream.advance(training)
        self.converged_ = False
        self._finish(training, progress)
        self._stream = stream
        return self

    @contextmanager
    def _training(self, bags, problem, used, weight, scale=None):
        """Prepare the bags of a fit, and the threads for it."""
        if scale is None and self.scaling is not None:
            self._check_scaling(bags)
        n_multiplications = bags.n_instances * problem.y.shape[1] * (bags.n_features + 1)
        with thread_map(self.n_jobs, n_multiplications) as map:
            yield Training(
                bags, problem, used, weight,
                scale=scale,
                scaling=self.scaling,
                method=self.inference,
                map=map,
                alpha=self.alpha,
                on_intractable=self.on_intractable,
            )  # fmt: skip

    def _check_parameters(self):
        check_numbers(
            self, alpha=(0, np.inf), tol=(0, np.inf), prune=(0, 1), sample_fraction=(0, 1)
        )
        check_positive_integers(self, "max_iter")
        check_choices(
            self,
            solver=("lbfgs", "em", "stochastic"),
            on_impossible=("relax", "drop", "raise"),
            on_intractable=("relax", "raise"),
            inference=("auto", *METHODS),
            scaling=SCALINGS,
        )

    def _possible_label_sets(self, bags, labels, pinned):
        """Return label sets that can be, as a UnionProblem, and which bags to use."""
        problem = UnionProblem(bags.offsets, self._union_y(labels), pinned)
        if not problem.impossible.any():
            self.relaxed_ = {}
            return problem, np.ones(len(bags), dtype=bool)
        settled = settled_label_sets(bags, labels, problem, self.on_impossible)
        self.relaxed_: dict[object, np.ndarray] = {
            bags.ids[b].item(): self._label_values(settled.relaxed[b].nonzero()[0])
            for b in (settled.impossible & ~settled.dropped).nonzero()[0]
        }
        return settled.problem, ~settled.dropped

    def _affordable(self, problem, bags, used):
        """Leave out the most expensive bags, as many as `prune` says."""
        if self.prune == 0:
            return used
        cardinality = (problem.y == 1).sum(axis=1)
        cost = bags.sizes * cardinality * 2.0**cardinality
        # Kept are the cheapest, rounded down, as published; the epsilon mends 1 - 0.9 < 0.1.
        n_kept = int((1 - self.prune) * used.sum() + 1e-9)
        kept = np.zeros_like(used)
        kept[np.argsort(np.where(used, cost, np.inf), kind="stable")[:n_kept]] = True
        return kept

    def _check_scaling(self, bags):
        """Warn of, or refuse, scaling that features cannot bear."""
        if is_whitened(bags):
            warnings.warn(
                "The features are a whitened dictionary: scaling them again undoes the whitening "
                "and ruins the model. Use scaling=None.",
                UserWarning,
                stacklevel=7,
            )
        if self.scaling == "minmax" and sparse.issparse(bags.X):
            raise ValueError(
                "scaling='minmax' would make sparse features dense: use 'standard' or None."
            )

    def _climb(self, training, W):
        """Run the solver, and keep what it has reached even when it is interrupted."""
        progress = Progress(W, self._watch)
        options = {"max_iter": self.max_iter, "progress": progress}
        self.converged_ = False
        try:
            if self.solver == "stochastic":
                rng = check_random_state(self.random_state)
                self.converged_ = fit_stochastic(
                    lambda: training.sample(self.sample_fraction, rng), W, **options
                )
            else:
                solve = {"lbfgs": fit_lbfgs, "em": fit_em}[self.solver]
                self.converged_ = solve(training.objective(), W, tol=self.tol, **options)
        except IntractableBagError as error:
            raise error.with_ids(training.bags.ids) from None
        except NonFiniteObjectiveError as error:
            raise training.overflow(error) from None
        except KeyboardInterrupt:
            warnings.warn(
                f"fit was interrupted: the model is that of the last completed iteration, "
                f"{len(progress.history)}.",
                InterruptedFitWarning,
                stacklevel=5,
            )
        else:
            # Without a tolerance, as many iterations are wanted as were made.
            if not self.converged_ and self.tol > 0 and self.solver != "stochastic":
                warnings.warn(
                    f"The fit has not converged within {self.max_iter} iterations: allow more by "
                    "max_iter, or be content with less by tol.",
                    ConvergenceWarning,
                    stacklevel=5,
                )
        finally:
            if self.verbose:
                print(file=sys.stderr)
        self._finish(training, progress)
        self._stream = Stream(training.scale, progress.weights)

    def _finish(self, training, progress):
        """Turn what the solver has reached into learnt attributes."""
        if training.relaxed:
            ids = [training.bags.ids[b].item() for b in training.relaxed]
            for bag, columns in zip(ids, training.relaxed.values(), strict=True):
                self.relaxed_[bag] = self._label_values(columns)
            warnings.warn(
                f"{len(ids)} bags have too many labels for exact inference: {name_bags(ids)}. "
                "Those of their labels that are the most certain to occur were taken as optional; "
                "see relaxed_.",
                IntractableBagWarning,
                stacklevel=6,
            )
        self.coef_, self.intercept_ = training.scale.coefficients(progress.weights)
        self.history_: np.ndarray = np.array(progress.history)
        self.n_iter_: int = max(len(progress.history), 1)
        self.log_likelihood_: float = progress.history[-1] if progress.history else -np.inf

    def _watch(self, iteration, log_likelihood):
        if self.verbose:
            line = f"\riteration {iteration}/{self.max_iter}  log-likelihood {log_likelihood:.6g} "
            print(line, end="", file=sys.stderr, flush=True)
        return self.callback is not None and self.callback(iteration, log_likelihood)
