"""Labels of bags that look wrong: tags that no instance supports, and missing tags.

The model is cross-validated: each bag is checked by a model that was fitted to other folds, and
cannot have learnt its errors. For every class c, the model computes exactly

    P(no instance is c | label set) = P(label set, no instance is c) / P(label set)

where label sets may be wrong (`unbag.union.infer` with `missed_rate` and `false_rate`). This is the
probability that a tag is wrong; for a class without a tag, it is one minus that. Both likelihoods
belong to the same bag; in the numerator, c is removed from every instance's prior. The other tags
of the bag matter too: an instance that is needed to explain one of them cannot support another.

How sure these answers are depends on how often labels are wrong. If the model does not know that,
it is learnt from the same held-out bags: see `learnt_absence`.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Protocol, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.base import clone

from unbag.bags import as_bags
from unbag.estimators.contract import check_one_for_each_bag
from unbag.fitting.linear import interruptions_raised
from unbag.fitting.noise import SEEN_RIGHT, SEEN_WRONG
from unbag.groups import Groups, runs
from unbag.labels import ColumnOfLabel, LabelSetsLike
from unbag.learning import training_set
from unbag.model_selection import bag_folds, innermost_model
from unbag.tables.roles import ColumnRoles
from unbag.union import ImpossibleBagWarning, UnionProblem


class ArrowTable(Protocol):
    """The types of a ``pyarrow.Table``, which has none itself."""

    num_rows: int
    column_names: list[str]

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """Return some of the rows."""
        ...

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        ...

    def __getattr__(self, name: str) -> Any: ...


#: How often instances go unnoticed and classes are named by mistake, where a model has no rates.
DEFAULT_RATES: dict[str, float] = {"missed_rate": 0.05, "false_rate": 0.01}
#: So many log-priors, repeated for one class after another, are inferred from at once.
PRIORS_AT_ONCE = 2**21
#: What is less probable than that counts as that: a label set must not become impossible.
LEAST_PROBABILITY = 1e-300
# Log-odds of nothing more certain than that are looked at.
LEAST_ODDS = 1e-12
# The deviation of the prior of an offset to log-odds.
WIDEST_OFFSET = 5.0


def check_labels(
    estimator: Any,
    X: Any,
    y: LabelSetsLike | None = None,
    *,
    cv: int | Iterable[tuple[ArrayLike, ArrayLike]] | Any = 5,
    rates: Literal["learn", "model"] | None = None,
    random_state: int | np.random.RandomState | None = None,
    progress: Callable[[int, int], object] | None = None,
    **named: Unpack[ColumnRoles],
) -> ArrowTable:
    """Compute how probable it is that each label of each bag, or its absence, is wrong.

    Parameters
    ----------
    estimator : estimator
        With probabilities of instances, such as `ORLogisticRegression`, or of bags alone; in
        pipelines and searches too. It is cloned and fitted to the other folds, and stays as it
        is.
    X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features); or a table
        A frame or a path, as `unbag.fit` takes it.
    y : label sets, as in ``fit``
        Only with bags. Unknown labels are not checked.
    cv : int, splitter or iterable of (train, test), default=5
        A number stands for that many folds of `MultilabelStratifiedKFold`. Every bag must be in
        one test fold.
    rates : {"learn", "model"}, optional
        How often label sets are wrong: as the held-out bags say, or at the rates `missed_rate_` and
        `false_rate_` of the fitted models, at `DEFAULT_RATES` where these are zero or not there. By
        default as the models say, where these have rates, and else learnt.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds where `cv` is a number; the estimator keeps its own.
    progress : callable, optional
        Called as ``progress(folds_done, folds)``.
    **named
        Roles of columns, `roles`, `known`, `corrections` and `ignore_known`, as in `unbag.fit`.

    Returns
    -------
    pyarrow.Table
        One row per bag and class, the most suspicious first: ``bag`` (its id), ``class``,
        ``tagged`` (whether the bag has the label), and ``p_wrong``: for a tag, the probability that
        no instance of the bag has this class; else, that one has it.

    Raises
    ------
    ValueError
        When the estimator has no probabilities, or the folds leave out a bag.

    Notes
    -----
    The order of tags, and of classes without a tag, hardly depends on the rates; the probabilities
    do. A class that no other fold has looks wrong wherever it is named, as a misspelt one does. It
    takes one fit per fold, and one inference per bag and class. Known labels of
    instances are learnt from in the bags of the other folds.

    Examples
    --------
    Low instances are "a", high ones "b". The last bag has a "b" without a tag.

    >>> from unbag import ORLogisticRegression, check_labels
    >>> bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]], [[0.5], [8.5]]]
    >>> y = [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}, {"a"}]
    >>> check_labels(ORLogisticRegression(), bags, y, random_state=0).slice(0, 1).to_pylist()
    [{'bag': 4, 'class': 'b', 'tagged': False, 'p_wrong': 0.4...}]
    """
    columns: dict[str, Any] = dict(named)
    data = training_set(X, y, columns.pop("roles", None), **columns)
    if data.roles is not None:
        data.check_learnable()
    bags, labels = as_bags(data.bags), data.label_sets
    check_one_for_each_bag(labels, bags)
    if not any(hasattr(estimator, f"predict{which}_proba") for which in ("_instances", "")):
        raise ValueError(
            f"{type(estimator).__name__} gives no probabilities, so it cannot say how probable it "
            "is that a label is wrong: check labels by a model that does, such as "
            "ORLogisticRegression."
        )
    folds = _partition(bags, bag_folds(bags, labels, cv, random_state=random_state))
    if rates not in (None, "learn", "model"):
        raise ValueError(f'rates must be "learn", "model" or None; got {rates!r}.')
    absence, used = np.empty(labels.shape), []
    missed_rate, false_rate = np.empty((2, *labels.shape))

    def known_of(train: NDArray[np.integer]) -> dict[str, Any]:
        # Not every model can be told of known labels.
        if data.known is None:
            return {}
        rows = runs(bags.offsets[train], bags.sizes[train])
        return {"instance_labels": np.asarray(data.known)[rows]}

    # Half a fit would judge as if it were a whole one.
    with interruptions_raised():
        # Label sets that cannot be are what is looked for: each shows in the answer.
        warnings.simplefilter("ignore", ImpossibleBagWarning)
        for done, (train, test) in enumerate(folds):
            if progress is not None:
                progress(done, len(folds))
            fitted = clone(estimator).fit(bags[train], labels[train], **known_of(train))
            absence[test], *own, has_rates = _held_out_absence(fitted, bags[test], labels[test])
            missed_rate[test], false_rate[test] = own
            used.append(has_rates)
    if progress is not None:
        progress(len(folds), len(folds))
    if rates == "learn" or (rates is None and not any(used)):
        known = ~labels.optional
        given = absence[known], labels.required[known], missed_rate[known], false_rate[known]
        absence[known] = learnt_absence(*given)
    p_wrong = np.where(labels.required, absence, 1.0 - absence)
    return _most_suspicious_first(bags, labels, p_wrong)


def absence_probability(
    log_prior: NDArray[np.float64],
    offsets: NDArray[np.integer],
    y: NDArray[np.int8],
    missed_rate: NDArray[np.float64],
    false_rate: NDArray[np.float64],
    groups: Groups | None = None,
) -> NDArray[np.float64]:
    """Compute the probability that no instance of a bag has a class, given its label set.

    `y`, of shape (n_bags, n_classes), is 1 for a tag, 0 for none, and -1 where that is unknown, as
    of the background; there the answer, of the same shape, is NaN. The others are as in
    `unbag.union.infer`.

    Examples
    --------
    Both instances look like class 0, so that the tag of class 1 is doubtful.

    >>> import numpy as np
    >>> proba, rates = np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0.05, 0.05])
    >>> absence_probability(np.log(proba), [0, 2], np.array([[1, 1]]), rates, rates).round(2)
    array([[0. , 0.2]])
    """
    rates = {"missed_rate": missed_rate, "false_rate": false_rate, "on_intractable": "relax"}
    problem = UnionProblem(offsets, y, groups=groups)
    whole = problem.infer(log_prior, **rates).log_likelihood
    log_ratio = np.full(y.shape, np.nan)
    pairs = np.argwhere(y != -1)
    sizes = np.diff(problem.offsets)
    for b, c in _runs(pairs, sizes, most_rows=PRIORS_AT_ONCE // max(y.shape[1], 1)):
        without = log_prior[runs(problem.offsets[b], sizes[b])]
        without[np.arange(len(without)), np.repeat(c, sizes[b])] = -np.inf
        log_ratio[b, c] = problem.take(b).infer(without, **rates).log_likelihood - whole[b]
    # A ratio of two rounded numbers, or of bags of which not the same labels were relaxed.
    return np.exp(np.minimum(log_ratio, 0.0))


def _runs(
    pairs: NDArray[np.intp], sizes: NDArray[np.integer], most_rows: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Cut pairs of bag and class into runs whose bags have about so many instances together."""
    run = np.cumsum(sizes[pairs[:, 0]]) // max(most_rows, 1)
    for part in np.split(pairs, np.flatnonzero(np.diff(run)) + 1):
        yield part[:, 0], part[:, 1]


def _partition(bags, folds):
    """Return folds that test each bag once; refuse others."""
    times = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(bags))
    if (times != 1).any():
        b = int(np.argmax(times != 1))
        raise ValueError(
            f"Bag {bags.ids[b]} is in {times[b]} test folds of cv: to be checked, every bag must "
            "be in one."
        )
    return folds


def _held_out_absence(fitted, bags, labels):
    """Compute how probable it is that classes are absent, by a model that has not seen the bags.

    Also the rates that this is by, and whether they are those of the model.
    """
    model, seen = innermost_model(fitted, bags)
    given = labels.reindex(model.classes_)
    missed_rate, false_rate = (_rates(model, name, len(given.classes)) for name in DEFAULT_RATES)
    has_rates = any(np.any(getattr(model, f"{name}_", 0.0)) for name in DEFAULT_RATES)
    if hasattr(model, "predict_instances_proba"):
        proba = model.predict_instances_proba(seen)
        n_unnamed = proba.shape[1] - len(given.classes)
        absence = absence_probability(
            np.log(np.maximum(proba, LEAST_PROBABILITY)),
            bags.offsets,
            # The background is optional in every bag, and nobody could have named it.
            np.pad(given.indicator, ((0, 0), (0, n_unnamed)), constant_values=-1),
            np.pad(missed_rate, (0, n_unnamed)),
            np.pad(false_rate, (0, n_unnamed)),
            None if given.groups is None else given.groups.widened(proba.shape[1]),
        )
    else:
        absence = _absence_by_bag(
            model.predict_proba(seen), given.required, missed_rate, false_rate
        )
    column_of = ColumnOfLabel(model.classes_.tolist())
    columns = [column_of[label] for label in labels.classes.tolist()]
    return absence[:, columns], missed_rate[columns], false_rate[columns], has_rates


def learnt_absence(
    absence: np.ndarray, tagged: np.ndarray, missed_rate: np.ndarray, false_rate: np.ndarray
) -> NDArray[np.float64]:
    """Return how probable it is that classes are absent, by rates that these bags teach.

    `absence` is that probability by a model that has not seen the bags, inferred with the rates
    that are given; `tagged` says which classes the bags have as labels. All have shape (n,).

    A class is there with log-odds of a slope times those of the model, its own tag not known, plus
    an offset. If it is there, its tag is missing at one rate; if not, it is named by mistake at
    another. These four numbers are the most likely ones, given the tags. Rates have the prior of
    fits: as if one of ten labels had been seen to be wrong. Rates that a fit learns hold for
    instances, and include whatever the model does not explain: by them, classes without a tag would
    look much too probable. Here the slope and the offset take that up.
    """
    absence = np.clip(absence, LEAST_ODDS, 1.0 - LEAST_ODDS)
    odds = -logit(absence) - _evidence_of_tag(tagged, missed_rate, false_rate)

    def loss(parameters: np.ndarray) -> float:
        log_slope, offset, *log_odds = parameters
        wrong = expit(log_odds)
        presence = expit(np.exp(log_slope) * odds + offset)
        named = wrong[1] + (1.0 - wrong.sum()) * presence
        chance = np.clip(np.where(tagged, named, 1.0 - named), 1e-12, 1.0)
        of_rates = SEEN_WRONG * log_expit(log_odds) + SEEN_RIGHT * log_expit(np.negative(log_odds))
        spread = 0.5 * (log_slope**2 + (offset / WIDEST_OFFSET) ** 2)
        return spread - float(np.log(chance).sum() + of_rates.sum())

    start = [0.0, 0.0, *(logit(rate) for rate in DEFAULT_RATES.values())]
    log_slope, offset, *log_odds = minimize(loss, start, method="L-BFGS-B").x
    odds = np.exp(log_slope) * odds + offset
    return expit(-odds - _evidence_of_tag(tagged, *expit(log_odds)))


def _evidence_of_tag(tagged, missed_rate, false_rate):
    """Return the log-odds that a tag, or its absence, adds to those of its class."""
    return np.where(
        tagged,
        np.log1p(-missed_rate) - np.log(false_rate),
        np.log(missed_rate) - np.log1p(-false_rate),
    )


def _absence_by_bag(presence, tagged, missed_rate, false_rate):
    """Weigh the probability that a class occurs in a bag against the tag, each class by itself."""
    with_class = np.where(tagged, 1.0 - missed_rate, missed_rate) * presence
    without = np.where(tagged, false_rate, 1.0 - false_rate) * (1.0 - presence)
    return without / (with_class + without)


def _rates(model, name, n_classes):
    """Return the rates of noise that a model has learnt or was given; else the default."""
    rates = np.broadcast_to(getattr(model, f"{name}_", 0.0), n_classes)
    return np.where(rates > 0, rates, DEFAULT_RATES[name])


def _most_suspicious_first(bags, labels, p_wrong):
    import pyarrow as pa

    from unbag.tables.arrays import id_column
    from unbag.tables.writing import arrow_array

    b, c = np.nonzero(~labels.optional)
    order = np.argsort(-p_wrong[b, c], kind="stable")
    b, c = b[order], c[order]
    columns = {
        "class": labels.classes[c],
        "tagged": labels.required[b, c],
        "p_wrong": p_wrong[b, c],
    }
    arrays = {name: arrow_array(name, each, len(b)) for name, each in columns.items()}
    return pa.table({"bag": id_column(bags.ids[b]), **arrays})
