"""MLR, sections 3 to 5: ORed-logistic regression, fitted by expectation maximization.

Bag b has instances x_b1, ..., x_bn and the label set Y_b, the union of their labels. W has a row
w_c for each class. Symbols and equations are those of the paper:

======================  =================================================================
p(c | x_bi)             exp(w_c x_bi) / sum_l exp(w_l x_bi), the prior of an instance
p(c | Y_b, X_b)         its posterior: the E-step, by `unbag.union.infer` or by FAST
g(W)                    sum_bi sum_c p(c | Y_b, X_b) log p(c | x_bi), the surrogate
dg/dW                   sum_bi (p(. | Y_b, X_b) - p(. | x_bi)) x_bi^T, equation 13
W + eta dg/dW           the M-step, equation 12: eta comes from a backtracking line search
======================  =================================================================

Section 4.3 puts a kernel before the model (`unbag.kernel_pipeline` with ``whiten=False``), section
5 predicts bag labels by the union of instance labels (``threshold="union"``), section 6.6.1 prunes
bags, and section 6.6.2 takes each step on a sample of the bags.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax
from sklearn.utils import check_random_state

from unbag._messages import warn_caller
from unbag._threads import one_blas_thread
from unbag.estimators.answers import LinearUnionClassifier
from unbag.estimators.contract import (
    BagsLike,
    LabelSetsLike,
    RandomState,
    Threshold,
    check_threshold,
    possible_label_sets,
)
from unbag.fitting.linear import NonFiniteObjectiveError
from unbag.fitting.parts import rows_of
from unbag.fitting.scaling import Scaling
from unbag.union import IntractableBagError, IntractableBagWarning, UnionProblem
from unbag.union.conditioner import Conditioner
from unbag.union.policy import describe_relaxed, name_bags
from unbag.validation import all_or_nothing, check_choices, check_numbers, check_positive_integers

from .fast import Algorithm, infer_as_published
from .logistic_rows import affine_map, fitted_scaler

Method: TypeAlias = Literal["auto"] | Algorithm
#: Share, factor and first step of a line search; see `MLR`.
Search: TypeAlias = tuple[float, float, float | None]
SEARCH: Search = (0.3, 0.5, None)


class MLR(LinearUnionClassifier):
    """Fit ORed-logistic regression as published: EM, one gradient step in each M-step.

    `unbag.ORLogisticRegression` has the same model, and a better fit of it.

    Parameters
    ----------
    n_steps : int, default=50
        Number of EM iterations. The paper takes 500 with a kernel.
    pruned : float, default=0.0
        Share of the bags, those of the highest n k 2^k, to leave out (section 6.6.1).
    sampled : float, default=1.0
        Share of the bags that each iteration draws and learns from (section 6.6.2).
    search : tuple of (float, float, float or None), default=(0.3, 0.5, None)
        Share, factor and first step of the line search: a step is multiplied by the factor until
        it gains that share of what the gradient predicts. Without a first step, a search starts
        above the last step, at that divided by the square of the factor.
    inference : {"auto", "fast", "forward"}, default="auto"
        How the E-step computes posteriors: as `unbag.union.infer`, or by the paper's algorithms.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled inside; the paper does not say.
    classes, threshold
        As in `unbag.ORLogisticRegression`; "union" is the published rule.
    random_state : int, RandomState instance or None
        Seed of the samples.
    n_jobs : int, optional
        Number of threads of the E-step, as in `unbag.union.infer`.

    Attributes
    ----------
    classes_, class_counts_, coef_, intercept_, n_iter_, n_features_in_, feature_names_in_
        As in `unbag.ORLogisticRegression`.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood after each iteration; with samples, of the sample before it.
    log_likelihood_ : float
        The last of `history_`.

    Notes
    -----
    The labels of a bag are taken as optional, with a warning, if it has too few instances for them,
    and some of them if they are too many for exact inference. The paper has no such bags.

    References
    ----------
    A. T. Pham, R. Raich and X. Z. Fern, "Dynamic programming for instance annotation in
    multi-instance multi-label learning", IEEE Transactions on Pattern Analysis and Machine
    Intelligence 39, 2017.

    Examples
    --------
    Low instances are "a", high ones "b"; only bags have labels.

    >>> from unbag import Bags
    >>> from unbag.paper import MLR
    >>> bags = Bags.from_list([[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]])
    >>> model = MLR().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> model.predict_instances([[[0.5], [8.5]]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        n_steps: int = 50,
        *,
        pruned: float = 0.0,
        sampled: float = 1.0,
        search: Search = SEARCH,
        inference: Method = "auto",
        scaling: Scaling = "standard",
        classes: ArrayLike | None = None,
        threshold: Threshold = "union",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_steps = n_steps
        self.pruned = pruned
        self.sampled = sampled
        self.search: Search = search
        self.inference: Method = inference
        self.scaling: Scaling = scaling
        self.classes = classes
        self.threshold: Threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs

    # `annotate` relaxes bags of too many labels, as `fit` does.
    conditioner_: Conditioner = Conditioner(on_intractable="relax")

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X, y
            As in `unbag.ORLogisticRegression.fit`.

        Returns
        -------
        self
        """
        self._check_parameters()
        bags, labels = self._read_training(X, y)
        problem = UnionProblem(bags.offsets, labels.indicator, groups=labels.groups)
        problem, used, _ = possible_label_sets(bags, labels, problem, "relax", problem.impossible)
        kept = cheapest_bags(problem, used, self.pruned)
        features = bags.X[rows_of(kept, bags.offsets)].astype(np.float64, copy=False)
        scaler = fitted_scaler(self, features)
        # The column of ones is for the intercepts.
        Z = np.column_stack([scaler.transform(features), np.ones(len(features))])
        with one_blas_thread():
            W = self._climb(Training(Z, problem.take(kept), bags.ids[kept]))
        factor, shift = affine_map(scaler)
        self.coef_: np.ndarray = W[:, :-1] * factor
        self.intercept_: np.ndarray = W[:, -1] + (W[:, :-1] * shift).sum(axis=1)
        self.log_likelihood_: float = float(self.history_[-1])
        self.n_iter_: int = self.n_steps
        return self

    def _climb(self, whole):
        """Take the steps of EM from zero, and return the weights."""
        rng, is_sampled = check_random_state(self.random_state), self.sampled < 1
        W: np.ndarray = np.zeros((whole.problem.y.shape[1], whole.X.shape[1]))
        length, found = None, []
        # Without samples, the last E-step is for the log-likelihood alone.
        for step in range(self.n_steps + (not is_sampled)):
            training = sample(whole, self.sampled, rng) if is_sampled else whole
            here = e_step(training, W, self.inference, self.n_jobs)
            found.append((here.log_likelihood, here.uncertified, here.relaxed))
            if step < self.n_steps:
                W, length = m_step(here, W, length, self.search)
        log_likelihoods, uncertified, relaxed = zip(*found, strict=True)
        self.history_: np.ndarray = np.array(log_likelihoods[-self.n_steps :])
        warn_of_bags(uncertified, relaxed)
        return W

    def _check_parameters(self):
        check_positive_integers(self, "n_steps")
        check_numbers(self, pruned=(0, 1), sampled=(0, 1))
        check_choices(self, inference=("auto", "fast", "forward"))
        check_threshold(self.threshold)
        check_search(self.search)


class Training(NamedTuple):
    """Bags to learn from: their instances in one array, their label sets, and their ids."""

    X: np.ndarray
    problem: UnionProblem
    ids: np.ndarray


class EStep(NamedTuple):
    """Posteriors of instances, and whatever else the M-step needs; and the bags to warn of."""

    X: np.ndarray
    logits: np.ndarray
    log_prior: np.ndarray
    posterior: np.ndarray
    log_likelihood: float
    uncertified: list[Any]
    relaxed: list[Any]


def e_step(training: Training, W: np.ndarray, method: Method, n_jobs: int | None) -> EStep:
    """Compute the posterior of each instance at W (section 4.2.1)."""
    X, problem, ids = training
    logits = X @ W.T
    log_prior = log_softmax(logits, axis=1)
    try:
        if method == "auto":
            answer = problem.infer(log_prior, on_intractable="relax", n_jobs=n_jobs)
        else:
            answer = infer_as_published(problem, log_prior, method)
    except IntractableBagError as error:
        raise error.with_ids(ids) from None
    return EStep(
        X, logits, log_prior, answer.posterior,
        log_likelihood=float(answer.log_likelihood.sum()),
        uncertified=ids[np.isinf(answer.error_bound)].tolist(),
        relaxed=ids[answer.relaxed.any(axis=1)].tolist(),
    )  # fmt: skip


def m_step(
    here: EStep, W: np.ndarray, last: float | None, search: Search
) -> tuple[np.ndarray, float]:
    """Take one step along the gradient (section 4.2.4); return the weights and its length.

    `last` is the length of the step before, None for the first one.
    """
    gradient = surrogate_gradient(here)
    step, is_gain = line_search(here, gradient, last, search)
    return (W + step * gradient if is_gain else W), step


def surrogate_gradient(here: EStep) -> np.ndarray:
    """Compute the gradient of the surrogate (equation 13)."""
    return (here.posterior - np.exp(here.log_prior)).T @ here.X


def line_search(
    here: EStep, gradient: np.ndarray, last: float | None, search: Search
) -> tuple[float, bool]:
    """Find the length of a step (eta of equation 12), and whether it gains anything."""
    share, factor, first = search
    with np.errstate(over="ignore"):
        slope = np.sum(gradient**2)
    if not np.isfinite(slope):
        raise NonFiniteObjectiveError(
            "The gradient is not finite: rescale the features, or use scaling='standard'."
        )
    along, surrogate = here.X @ gradient.T, expected_log_prior(here.posterior, here.log_prior)
    step = first
    if step is None:
        step = (1.0 / len(here.X) if last is None else last) / factor**2
    while step * slope > 1e-14 * max(1.0, abs(surrogate)):
        log_prior = log_softmax(here.logits + step * along, axis=1)
        gain = expected_log_prior(here.posterior, log_prior) - surrogate
        if gain >= share * step * slope:
            return step, True
        step *= factor
    return step, False


def expected_log_prior(posterior: np.ndarray, log_prior: np.ndarray) -> float:
    """Compute the surrogate g: the expected log-prior of the labels."""
    return float(np.sum(posterior * log_prior, where=posterior > 0))


def cheapest_bags(problem: UnionProblem, used: np.ndarray, pruned: float) -> np.ndarray:
    """Return the places of the used bags that pruning keeps: those of the lowest n k 2^k."""
    places = np.flatnonzero(used)
    n_labels = (problem.y == 1).sum(axis=1)[places]
    cost = np.diff(problem.offsets)[places] * n_labels * 2.0**n_labels
    # The number to keep is rounded down; the epsilon is for 1 - 0.9 < 0.1.
    n_kept = int((1 - pruned) * len(places) + 1e-9)
    if not n_kept:
        raise ValueError("No bag is left to fit to: all were dropped or pruned.")
    return np.sort(places[np.argsort(cost, kind="stable")[:n_kept]])


def sample(whole: Training, share: float, rng: np.random.RandomState) -> Training:
    """Draw a share of the bags, at least one."""
    X, problem, ids = whole
    size = max(1, round(share * len(ids)))
    drawn = np.sort(rng.choice(len(ids), size, replace=False))
    return Training(X[rows_of(drawn, problem.offsets)], problem.take(drawn), ids[drawn])


class UncertifiedWarning(UserWarning):
    """An inference method could not certify its results: the fit may be wrong.

    `n_times` counts the E-steps of a fit in which that happened.
    """

    def __init__(self, message: str, n_times: int = 1) -> None:
        super().__init__(message)
        self.n_times = n_times


def warn_of_bags(uncertified: Sequence[list[Any]], relaxed: Sequence[list[Any]]) -> None:
    """Warn of bags that could not be certified, or were relaxed, in some E-step."""
    if bags := sorted(set().union(*uncertified), key=str):
        message = (
            f"The inference method could not certify {len(bags)} bags: {name_bags(bags)}. The fit "
            "may be wrong. Use inference='auto'."
        )
        warn_caller(UncertifiedWarning(message, n_times=sum(map(bool, uncertified))))
    if bags := sorted(set().union(*relaxed), key=str):
        warn_caller(describe_relaxed(bags), IntractableBagWarning)


def check_search(search: Any) -> None:
    """Raise an error unless these are share, factor and first step of a line search."""
    try:
        share, factor, first = search
        is_valid = 0 < share < 1 and 0 < factor < 1 and (first is None or 0 < first < np.inf)
    except (TypeError, ValueError):
        is_valid = False
    if not is_valid:
        raise ValueError(
            "search must be a share and a factor between 0 and 1, and a first step above 0 or "
            f"None; got {search!r}."
        )
