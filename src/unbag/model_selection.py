"""Choose among models of bags: stratified folds, cross-validation, and scorers.

Scorers are what scikit-learn's ``scoring`` arguments take. Those of instances read the hidden
``instance_labels`` of the test bags, which no estimator sees.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.model_selection import check_cv, cross_validate
from sklearn.utils import check_random_state

from unbag._scikit_learn import BaseCrossValidator, Pipeline
from unbag.bags import Bags, BagsLike, value_array
from unbag.labels import LabelSets, LabelSetsLike
from unbag.metrics import (
    average_precision,
    bag_measures,
    coverage,
    hamming_loss,
    instance_accuracy,
    one_error,
    ranking_loss,
)
from unbag.validation import as_labels, in_bag_order

__all__ = [
    "SCORERS",
    "MultilabelStratifiedKFold",
    "all_measures",
    "cross_validate_bags",
    "inductive_accuracy",
    "transductive_accuracy",
]


def inductive_accuracy(estimator: Any, X: Bags, y: object = None) -> float:
    """Compute the share of instances labelled rightly without seeing the labels of their bags.

    Parameters
    ----------
    estimator : fitted estimator
        It has ``predict_instances``, or is a pipeline or a search that ends in one that has.
    X : Bags
        With ``instance_labels``.
    y : object
        Ignored.

    Returns
    -------
    float

    Examples
    --------
    >>> class AlwaysWren:
    ...     def predict_instances(self, X):
    ...         return np.repeat("wren", X.n_instances)
    >>> bags = Bags([[1.0], [2.0]], offsets=[0, 2], instance_labels=["wren", "tit"])
    >>> inductive_accuracy(AlwaysWren(), bags)
    0.5
    """
    labels_true = _instance_labels(X)
    model, X = innermost_model(estimator, X)
    return instance_accuracy(labels_true, model.predict_instances(X))


def transductive_accuracy(estimator: Any, X: Bags, y: LabelSetsLike) -> float:
    """Compute the share of instances labelled rightly where the labels of their bags are known.

    Parameters
    ----------
    estimator, X : fitted estimator and Bags
        As for `inductive_accuracy`, with ``annotate`` in place of ``predict_instances``.
    y : label sets of the bags
        As in ``fit``.

    Returns
    -------
    float

    Examples
    --------
    >>> class FirstOfSet:
    ...     def annotate(self, X, y):
    ...         return np.repeat([min(labels) for labels in y], X.sizes)
    >>> bags = Bags([[1.0], [2.0]], offsets=[0, 2], instance_labels=["wren", "tit"])
    >>> transductive_accuracy(FirstOfSet(), bags, [{"tit", "wren"}])
    0.5
    """
    labels_true = _instance_labels(X)
    model, X = innermost_model(estimator, X)
    return instance_accuracy(labels_true, model.annotate(X, y))


def bag_scores(estimator: Any, X: BagsLike) -> np.ndarray:
    """Score the classes of bags, to rank them: by their probabilities, wherever there are any.

    Models without probabilities, and those that predict by the rule of the paper
    (``threshold="union"``), have ``decision_function``, by which the paper ranks.
    """
    of_paper = getattr(getattr(estimator, "model", estimator), "threshold", None) == "union"
    has_proba = hasattr(estimator, "predict_proba") and not of_paper
    return (estimator.predict_proba if has_proba else estimator.decision_function)(X)


def neg_hamming_loss(estimator: Any, X: BagsLike, y: LabelSetsLike) -> float:
    """Score predicted label sets by minus their Hamming loss."""
    return -hamming_loss(_aligned(y, X, estimator.classes_), estimator.predict(X))


def ranking_score(
    measure: Callable[[LabelSets, np.ndarray], float],
    sign: int,
    estimator: Any,
    X: BagsLike,
    y: LabelSetsLike,
) -> float:
    """Score the ranking of classes by a measure; the sign is -1 for a loss."""
    return sign * measure(_aligned(y, X, estimator.classes_), bag_scores(estimator, X))


SCORERS: dict[str, Callable[..., float]] = {
    "inductive_accuracy": inductive_accuracy,
    "transductive_accuracy": transductive_accuracy,
    "neg_hamming_loss": neg_hamming_loss,
    "neg_ranking_loss": partial(ranking_score, ranking_loss, -1),
    "average_precision": partial(ranking_score, average_precision, 1),
    "neg_one_error": partial(ranking_score, one_error, -1),
    "neg_coverage": partial(ranking_score, coverage, -1),
}
"""All scorers by name: pick one, or give all of them to a search, with one name as ``refit``."""


def scorers(scoring: Any) -> Any:
    """Look up names among `SCORERS`; keep scorers that are not names.

    scikit-learn would take its own scorers by these names, and they know no bags.
    """
    if callable(scoring) or isinstance(scoring, Mapping) or not isinstance(scoring, Iterable):
        return scoring
    names = [scoring] if isinstance(scoring, str) else list(scoring)
    for name in names:
        if name not in SCORERS:
            raise ValueError(f"scoring is {name!r}: give one of {', '.join(SCORERS)}.")
    return {name: SCORERS[name] for name in names}


def all_measures(estimator: Any, X: BagsLike, y: LabelSetsLike) -> dict[str, float]:
    """Measure a fitted estimator in every way that it and the data allow.

    Parameters
    ----------
    estimator : fitted estimator
        It has ``classes_``, ``predict`` and ``decision_function``.
    X, y : Bags and their label sets
        What to measure it on.

    Returns
    -------
    dict of str to float
        ``inductive_accuracy`` and ``transductive_accuracy``, where `X` has ``instance_labels`` and
        the estimator labels instances; then the five measures of ``unbag.metrics.bag_measures``.

    Examples
    --------
    >>> class AlwaysWren:
    ...     classes_ = np.array(["tit", "wren"])
    ...     def predict(self, X):
    ...         return np.tile([0, 1], (len(X), 1))
    ...     decision_function = predict
    >>> all_measures(AlwaysWren(), Bags([[1.0]], offsets=[0, 1]), [{"tit"}])["one_error"]
    1.0
    """
    labels_true = getattr(X, "instance_labels", None)
    model, X = innermost_model(estimator, X)
    measures = {}
    if labels_true is not None and hasattr(model, "predict_instances"):
        measures["inductive_accuracy"] = instance_accuracy(labels_true, model.predict_instances(X))
    if labels_true is not None and hasattr(model, "annotate"):
        measures["transductive_accuracy"] = instance_accuracy(labels_true, model.annotate(X, y))
    labels = _aligned(y, X, model.classes_)
    return measures | bag_measures(labels, model.predict(X), bag_scores(model, X))


def _instance_labels(X):
    if not isinstance(X, Bags):
        raise TypeError(f"X must be Bags with instance_labels, not {type(X).__name__}.")
    if X.instance_labels is None:
        raise ValueError("X has no instance_labels to compare with: give them to Bags.")
    return X.instance_labels


def innermost_model(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the fitted model inside searches and pipelines, and X with the features it sees."""
    if hasattr(estimator, "best_estimator_"):
        return innermost_model(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        # One by one: cut short, a pipeline counts as unfitted when its last step learns nothing.
        for _, step in estimator.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return innermost_model(estimator[-1], X)
    return estimator, X


def _aligned(y, X, classes):
    try:
        return LabelSets.parse(as_labels(y, X, are_sets=True), classes)
    except ValueError as error:
        raise ValueError(
            f"y does not fit the classes of the estimator. {error} y = LabelSets.parse(y) before "
            "splitting gives all folds the same classes."
        ) from None


class MultilabelStratifiedKFold(BaseCrossValidator):
    """Split bags into folds that all show the same share of bags with each class.

    Bags of the rarest class are dealt out first, then those of the next rarest, and so on, each to
    the fold that lacks its classes most. This is the iterative stratification of Sechidis,
    Tsoumakas and Vlahavas (2011), except that theirs looks at the rarest class of a bag alone,
    which leaves the other classes less even.

    Parameters
    ----------
    n_splits : int, default=10
        Number of folds, at least 2.
    shuffle : bool, default=True
        Deal the bags out in random order, rather than as they come.
    random_state : int, RandomState instance or None, default=None
        Seed of that order; an int gives the same folds at each call.

    Notes
    -----
    Only classes known to be present count; bags without any are spread as evenly as a class. Sizes
    of folds differ by one bag at most. Whole groups go where they fit, the largest first.

    Examples
    --------
    The two owls come to lie in different folds.

    >>> y = [{"owl", "tit"}, {"owl"}, {"tit"}, {"tit"}]
    >>> folds = MultilabelStratifiedKFold(n_splits=2, shuffle=False)
    >>> [test.tolist() for _, test in folds.split(np.zeros(4), y)]
    [[1, 2], [0, 3]]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        if not isinstance(n_splits, Integral) or n_splits < 2:
            raise ValueError(f"n_splits must be an integer of at least 2, not {n_splits!r}.")
        if not shuffle and random_state is not None:
            raise ValueError("random_state has no effect without shuffle: leave one of them out.")
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Not looked at; there for compatibility.

        Returns
        -------
        int
        """
        return self.n_splits

    def split(
        self, X: BagsLike, y: LabelSetsLike, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the positions of the training bags and of the test bags of each fold.

        Parameters
        ----------
        X : Bags or array-like of shape (n_bags, ...)
            Only its length matters.
        y : label sets, indicator matrix, LabelSets or array-like of shape (n_bags,)
            What ``LabelSets.parse`` takes, or one class per bag.
        groups : array-like of shape (n_bags,), optional
            Bags of the same group, such as a site or a recorder, come into the same fold.

        Yields
        ------
        train, test : ndarray of int
            Every bag is in exactly one `test`.
        """
        return super().split(X, y, groups)

    def _iter_test_indices(self, X, y, groups):
        present = read_label_sets(y, X).named
        groups = in_bag_order(groups, X, "groups")
        n_bags = len(present)
        units = np.arange(n_bags) if groups is None else np.unique(groups, return_inverse=True)[1]
        sizes = np.bincount(units)
        if sizes.size < self.n_splits:
            kind = "bags" if groups is None else "groups"
            raise ValueError(f"{sizes.size} {kind} cannot fill n_splits={self.n_splits} folds.")
        # Bags without a class are a class of their own, so every unit has one.
        columns = np.column_stack([present, ~present.any(axis=1)])
        members = sparse.csr_matrix((np.ones(n_bags, dtype=int), (units, np.arange(n_bags))))
        counts = members @ sparse.csr_matrix(columns, dtype=int)
        order = np.arange(sizes.size)
        if self.shuffle:
            check_random_state(self.random_state).shuffle(order)
        fold_of_unit = np.empty(sizes.size, dtype=np.intp)
        fold_of_unit[order] = _dealt(counts[order], sizes[order], self.n_splits)
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of_unit[units] == fold)


def cross_validate_bags(
    estimator: Any,
    X: Bags,
    y: LabelSetsLike,
    *,
    groups: ArrayLike | None = None,
    cv: int | Iterable[tuple[ArrayLike, ArrayLike]] | Any = 10,
    scoring: str | Sequence[str] | Callable[..., Any] | Mapping[str, Any] = all_measures,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> dict[str, np.ndarray]:
    """Cross-validate an estimator over bags, one row of results per fold.

    Parameters
    ----------
    estimator, X : estimator and Bags
        The estimator is cloned and fitted for each fold.
    y : label sets, indicator matrix or LabelSets
        Read once, so that all folds have the same classes.
    groups : array-like of shape (n_bags,), optional
        Given to `cv`: bags of the same group come into the same fold.
    cv : int, splitter or iterable of (train, test), default=10
        A number stands for that many folds of `MultilabelStratifiedKFold`.
    scoring : str, list of str, callable or dict of callables, default=all_measures
        Names of `SCORERS`; or ``scoring(estimator, X, y)``, which returns a number or a dict of
        them.
    n_jobs : int, optional
        Number of folds to work on at once.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds where `cv` is a number.

    Returns
    -------
    dict of str to ndarray of shape (n_folds,)
        The columns of a table, ready for ``pandas.DataFrame``: ``fold``, ``n_train`` and ``n_test``
        (bags), ``fit_time`` and ``score_time`` (seconds), then one per measure.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> class AlwaysWren(BaseEstimator):
    ...     def fit(self, X, y):
    ...         self.classes_ = y.classes
    ...         return self
    ...     def predict(self, X):
    ...         return np.tile(self.classes_ == "wren", (len(X), 1))
    >>> bags = Bags(np.zeros((4, 1)), offsets=[0, 1, 2, 3, 4])
    >>> y = [{"wren"}, {"wren"}, {"tit"}, {"tit"}]
    >>> found = cross_validate_bags(AlwaysWren(), bags, y, cv=2, scoring="neg_hamming_loss")
    >>> found["neg_hamming_loss"]
    array([-0.5, -0.5])
    """
    y = LabelSets.parse(as_labels(y, X))
    groups = in_bag_order(groups, X, "groups")
    splits = bag_folds(X, y, cv, groups, random_state)
    scores = cross_validate(
        estimator, X, y, cv=splits, scoring=scorers(scoring), n_jobs=n_jobs, error_score="raise"
    )
    return {
        "fold": np.arange(len(splits)),
        "n_train": np.array([len(train) for train, _ in splits]),
        "n_test": np.array([len(test) for _, test in splits]),
        **{name.removeprefix("test_"): values for name, values in scores.items()},
    }


def bag_folds(
    X: BagsLike,
    y: LabelSets,
    cv: int | Iterable[tuple[ArrayLike, ArrayLike]] | Any,
    groups: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """List the positions of the training bags and of the test bags of each fold.

    A number as `cv` stands for that many folds of `MultilabelStratifiedKFold`, seeded by
    `random_state`; else it is a splitter, which gets the groups, or the folds themselves.
    """
    if isinstance(cv, int | np.integer):
        cv = MultilabelStratifiedKFold(int(cv), random_state=random_state)
    return list(check_cv(cv).split(X, y, groups))


def read_label_sets(y: LabelSetsLike, X: BagsLike) -> LabelSets:
    """Read label sets, or one class per bag."""
    given: Any = as_labels(y, X)
    is_table = getattr(given, "ndim", 1) > 1 or hasattr(type(given), "columns")
    first = None if is_table or y is None else next(iter(given), None)
    if not isinstance(first, str | Real | np.generic):
        return LabelSets.parse(given)
    classes, columns = np.unique(value_array(given), return_inverse=True)
    return LabelSets(columns[:, None] == np.arange(classes.size), classes)


def _dealt(counts, sizes, n_folds):
    """Fold of each unit, given in CSR the number of its bags that have each class."""
    quotient, rest = divmod(int(sizes.sum()), n_folds)
    room = quotient + (np.arange(n_folds) < rest)
    totals = np.asarray(counts.sum(axis=0)).ravel()
    lacks = np.repeat(totals[:, None] / n_folds, n_folds, axis=1)
    rarity = np.minimum.reduceat(totals[counts.indices], counts.indptr[:-1])
    fold_of = np.empty(sizes.size, dtype=np.intp)
    for unit in np.lexsort((rarity, -sizes)):
        entries = slice(counts.indptr[unit], counts.indptr[unit + 1])
        classes, n_bags = counts.indices[entries], counts.data[entries]
        left = room - sizes[unit]
        # Shares of the class, so that a bag of a rare one weighs more.
        # Rounded, so that ties are ties on every processor, whatever its order of summation.
        need = ((n_bags / totals[classes]) @ lacks[classes]).round(9)
        # The last key decides first: overfill no fold, then fill the need, then the room.
        fold = np.lexsort((left, need, np.minimum(left, 0)))[-1]
        fold_of[unit] = fold
        room[fold] = left[fold]
        lacks[classes, fold] -= n_bags
    return fold_of
