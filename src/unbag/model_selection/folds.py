"""Stratified folds of bags, and tables of what a model reaches on them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.model_selection import check_cv, cross_validate
from sklearn.utils import check_random_state

from unbag._scikit_learn import BaseCrossValidator
from unbag.bags import Bags, BagsLike
from unbag.labels import LabelSets, LabelSetsLike
from unbag.validation import as_labels, in_bag_order

from .scorers import all_measures, scorers


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
        The estimator is cloned and fitted anew for each fold.
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


def fold_summary(folds: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """Compute the mean and the standard deviation of each measure over the folds.

    Parameters
    ----------
    folds : dict of str to array-like of shape (n_folds,)
        What `cross_validate_bags` returns.

    Returns
    -------
    dict of str to ndarray of shape (n_measures,)
        A table with one row per measure: ``measure``, ``mean`` and ``std`` (over n_folds - 1).

    Examples
    --------
    >>> fold_summary({"fold": [0, 1, 2], "one_error": [0.1, 0.2, 0.3]})["mean"].round(3)
    array([0.2])
    """
    measures = [name for name in folds if name not in ("fold", "n_train", "n_test")]
    values = np.array([folds[name] for name in measures])
    means, deviations = values.mean(axis=1), values.std(axis=1, ddof=1)
    return {"measure": np.array(measures), "mean": means, "std": deviations}


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
    first = None if is_table or given is None else next(iter(given), None)
    if not isinstance(first, str | Real | np.generic):
        return LabelSets.parse(given)
    classes, columns = np.unique(np.asarray(given), return_inverse=True)
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
        need = (n_bags / totals[classes]) @ lacks[classes]
        # The last key decides first: overfill no fold, then fill the need, then the room.
        fold = np.lexsort((left, need, np.minimum(left, 0)))[-1]
        fold_of[unit] = fold
        room[fold] = left[fold]
        lacks[classes, fold] -= n_bags
    return fold_of
