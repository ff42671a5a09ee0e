"""Arguments of `fit`, `transform` and `predict`: bags, their labels and weights, and parameters.

`validate_bags` is scikit-learn's `validate_data` for bags. Constructor parameters are checked in
``fit``, as scikit-learn wants them; a fit that fails leaves everything as it was. Transformers and
estimators share all of it.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from unbag._messages import argument, suggestion, warn_caller, words
from unbag.bags import Bags, BagsLike, bag_of, first_nonfinite, instance_name, listed_bags
from unbag.labels import ColumnOfLabel, LabelSets, LabelSetsLike
from unbag.tagging import BACKGROUND_NAME, DELIMITER, Tagging, is_blank, is_missing, parse_cell

Method = TypeVar("Method", bound=Callable[..., Any])
# How names of whitened features begin.
WHITENED = "whitened_rbf_"


def validate_bags(
    estimator: Any,
    X: BagsLike,
    *,
    reset: bool,
    accept_sparse: bool = True,
    ensure_all_finite: bool = True,
) -> Bags:
    """Return X as Bags, checked for an estimator; an array has one instance per bag.

    The estimator learns `n_features_in_` and, where features have names, `feature_names_in_`; or,
    unless `reset`, expects what it has learnt.
    """
    X = listed_bags(X)
    if isinstance(X, Bags):
        if sparse.issparse(X.X) and not accept_sparse:
            raise TypeError(
                f"{type(estimator).__name__} takes dense features only, and these are sparse: use "
                "bags.with_features(bags.X.toarray())."
            )
        check_columns(estimator, X, reset)
    else:
        features = validate_data(
            estimator, X, reset=reset, accept_sparse="csr" if accept_sparse else False,
            dtype=[np.float64, np.float32], ensure_all_finite=False,
        )  # fmt: skip
        X = Bags(features, np.arange(features.shape[0] + 1))
    if ensure_all_finite:
        check_finite(X)
    return X


def check_finite(bags: Bags) -> None:
    """Raise an error that names the first feature of Bags that is NaN or infinite."""
    found = first_nonfinite(bags.X)
    if found is None:
        return
    bag = bag_of(bags.offsets, found.row)
    name = "" if bags.feature_names is None else f" ({bags.feature_names[found.column]})"
    raise ValueError(
        f"{words().bag.capitalize()} {bag} (id {bags.ids[bag]}) has "
        f"{'NaN' if math.isnan(found.value) else found.value} in column {found.column}{name}, "
        f"{words().instance} {found.row - bags.offsets[bag]} of the {words().bag}: replace or "
        "remove it."
    )


def check_columns(estimator: Any, bags: Any, reset: bool) -> None:
    """Learn number and names of the features of bags; unless `reset`, compare them."""
    names = bags.feature_names
    if reset:
        if not bags.n_instances:
            raise ValueError(
                f"There is no {words().instance} to fit on: all {words().bags} are empty."
            )
        estimator.n_features_in_ = bags.n_features
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = names.astype(object)
    if bags.n_features != estimator.n_features_in_:
        expected = f"{type(estimator).__name__} is expecting {estimator.n_features_in_}"
        raise ValueError(f"X has {bags.n_features} features, but {expected} features as input.")
    seen: Any = vars(estimator).get("feature_names_in_", names)
    if names is not None and (differ := np.flatnonzero(names != seen)).size:
        column = differ[0]
        raise ValueError(f"Column {column} is {names[column]}, but in fit it was {seen[column]}.")


def as_labels(y: LabelSetsLike, X: BagsLike, are_sets: bool = False) -> Any:
    """Return y in the order of the bags X, arrays as arrays, and strings of labels split.

    With `are_sets` strings are label sets even if none of them holds more than one label.
    """
    y = in_bag_order(y, X, "y")
    if isinstance(y, LabelSets) or sparse.issparse(y) or hasattr(type(y), "columns"):
        return y
    if hasattr(y, "__array__"):
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1 and not np.isin(y, (-1, 0, 1)).all():
            y = column_or_1d(y, warn=True)
    return split_labels(y, X, are_sets)


def in_bag_order(values: Any, X: BagsLike, name: str) -> Any:
    """Return what a dict or a pandas object says of bags in their order, found by their ids.

    The keys of a dict are the ids of all bags, and nothing else. Where the index of a pandas object
    holds the ids of the bags, in any order, the values are aligned. They are returned as they are
    if the index counts rows or has nothing to do with the ids, if X has no ids, and if they are
    neither a dict nor of pandas. An index that holds some of the ids but not all, or others
    besides, is an error. It calls the values by their name.
    """
    if isinstance(values, Mapping):
        return _by_id(values, X, name)
    if not isinstance(X, Bags) or not hasattr(values, "iloc"):
        return values
    import pandas as pd

    # By way of an index, because numpy and pandas make different objects of a date.
    ids, keys = pd.Index(X.ids).tolist(), values.index.tolist()
    if ids == keys:
        return values
    row_of = {key: row for row, key in enumerate(keys)}
    counts_rows = isinstance(values.index, pd.RangeIndex)
    if row_of.keys() == set(ids):
        if len(row_of) < len(keys):
            repeated = next(key for row, key in enumerate(keys) if row_of[key] != row)
            raise ValueError(
                f"{name} has several entries for bag {repeated!r}: give one per bag, as in "
                f"{name}.groupby(level=0, sort=False).first()."
            )
        if counts_rows:
            warn_caller(
                f"The index of {name} just counts, and these numbers are ids of the bags in "
                f"another order: {name} was aligned with the bags by id. Pass "
                f"{name}.to_numpy() if it is in the order of the bags already."
            )
        return values.iloc[[row_of[bag] for bag in ids]]
    # As text, so that 1 and "1" are not taken for strangers.
    if counts_rows or not set(map(str, keys)) & set(map(str, ids)):
        return values
    raise ValueError(
        f"The index of {name} looks like ids of the bags, but {_unlike(keys, ids)}: give one "
        f"entry per bag, as in {name}.loc[bags.ids], or {name}.to_numpy() if it is in the order of "
        "the bags."
    )


def _by_id(values, X, name):
    """Return the values of a dict in the order of the bags whose ids are its keys."""
    # Bags without ids are counted.
    n_bags = X.shape[0] if hasattr(X, "shape") else len(X)
    ids = X.ids.tolist() if hasattr(X, "ids") else range(n_bags)
    if fault := _unlike(values, ids):
        raise ValueError(
            f"The keys of {name} must be the ids of the bags, but it {fault}: give one entry per "
            "bag."
        )
    return [values[bag] for bag in ids]


def _unlike(keys, ids):
    """Name an id that is not among the keys, and a key that is not an id; nothing without any."""
    present, known = set(keys), set(ids)
    lacking = [f"lacks {bag!r}" for bag in ids if bag not in present]
    strange = [f"has {key!r}, which is none" for key in keys if key not in known]
    return " and ".join([*lacking[:1], *strange[:1]])


def in_instance_order(values: Any, bags: Bags) -> Any:
    """Return instance labels as they are, but refuse a Series whose order is ambiguous.

    A column of the table that bags were made from has its rows in another order than the bags
    have their instances, where the rows of a bag are not adjacent.
    """
    if not hasattr(values, "iloc") or not isinstance(bags, Bags):
        return values
    rows = bags.rows
    if not (rows[1:] < rows[:-1]).any() or np.array_equal(values.index, rows):
        return values
    raise ValueError(
        "instance_labels is a Series, and the bags have their instances in another order than "
        "their table has its rows: give instance_labels.to_numpy()[bags.rows] if it is a column of "
        "the table, instance_labels.to_numpy() if it is in the order of bags.X."
    )


def known_columns(
    instance_labels: ArrayLike | None,
    bags: Bags,
    classes: np.ndarray,
    labels: LabelSets | None = None,
) -> NDArray[np.int64] | None:
    """Return known instance labels as columns of `classes`, -1 if a label is not known.

    The column after the last is the background, which has its own name in tables. Labels that the
    label sets `labels` forbid are an error.
    """
    if instance_labels is None:
        return None
    values = np.asarray(in_instance_order(instance_labels, bags), dtype=object)
    if values.shape != (bags.n_instances,):
        raise ValueError(
            f"instance_labels must hold one label per instance: shape ({bags.n_instances},); "
            f"got shape {values.shape}."
        )
    column_of = ColumnOfLabel(classes.tolist())
    columns = np.array([column_of[value] for value in values.tolist()], dtype=np.int64)
    for i in np.flatnonzero(columns < 0).tolist():
        value = values[i]
        if is_missing(value) or value == -1:
            continue
        if value != BACKGROUND_NAME:
            raise ValueError(
                f"{instance_name(bags, i)} has the label {value!r}, which is not among the "
                "classes: correct it, or leave it out (None or -1); if the instance is none of "
                f"them, write {BACKGROUND_NAME!r}."
                f"{suggestion(str(value), [*map(str, classes), BACKGROUND_NAME])}"
            )
        columns[i] = len(classes)
    if labels is not None:
        check_known_labels(columns, bags, labels)
    return columns


def check_known_background(
    pinned: np.ndarray | None, bags: Bags, n_classes: int, model: object, has_background: bool
) -> None:
    """Raise an error if instances are known to be background, and the model has none."""
    known = [] if pinned is None or has_background else pinned == n_classes
    if np.any(known):
        other = f"use {argument('background', 'auto')}, or " * hasattr(model, "background")
        raise ValueError(
            f"{instance_name(bags, int(np.argmax(known)))} is known to be {BACKGROUND_NAME}, but "
            f"{type(model).__name__} has no background: {other}leave out that label (None or -1)."
        )


def check_known_labels(columns: np.ndarray, bags: Bags, labels: LabelSets) -> None:
    """Raise an error that names the first instance whose label its bag does not have.

    `columns` are those of `labels`, one for each instance; -1 where its label is not known. The
    next after the last is the background, which every bag may have.
    """
    known = np.flatnonzero((columns >= 0) & (columns < labels.classes.size))
    bag_of_known = np.searchsorted(bags.offsets, known, side="right") - 1
    wrong = np.flatnonzero(labels.indicator[bag_of_known, columns[known]] == 0)
    if wrong.size:
        i, b = int(known[wrong[0]]), int(bag_of_known[wrong[0]])
        raise ValueError(
            f"{instance_name(bags, i)} has the label {labels.classes.tolist()[columns[i]]!r}, "
            f"which is not among the labels of its {words().bag}: {sorted(map(str, labels[b]))}. "
            f"Correct the label of the {words().instance}, or add it to those of the "
            f"{words().bag}."
        )


def split_labels(y: Any, X: BagsLike, are_sets: bool = False) -> Any:
    """Split strings such as ``"wren|owl"`` into label sets, as the command line does.

    That is a list, tuple or array of strings, in the order of the bags; all else is returned as it
    is. None, NaN and "" are blanks, and None in the result. If no string has a separator they are
    one label per bag, unless `are_sets`; one that has a separator makes label sets of all. The rows
    of an array X are bags of one instance, which has one label: then a string is that label
    whatever is in it, with a warning.
    """
    if isinstance(y, np.ndarray):
        cells = y.tolist() if y.ndim == 1 and y.dtype.kind not in "biuf" else []
    else:
        cells = list(y) if isinstance(y, list | tuple) else []
    texts = [cell for cell in cells if isinstance(cell, str)]
    if not texts:
        return y
    missing = np.array([is_blank(cell) for cell in cells])
    if any(
        not blank and not isinstance(cell, str) for blank, cell in zip(missing, cells, strict=True)
    ):
        return y
    have_separator = any(DELIMITER in text for text in texts)
    if _has_one_instance_per_bag(X):
        if have_separator:
            text = next(text for text in texts if DELIMITER in text)
            warn_caller(
                f"X has one row per bag, so {text!r} was taken for one label. If rows are "
                "instances of bags that have several labels, use Bags.from_table(table, bag=...)."
            )
        return y
    ids = X.ids if isinstance(X, Bags) else range(len(cells))
    if not have_separator and not are_sets:
        # One that has none makes label sets of all: refused, since nobody has said what it means.
        Tagging().meaning_of_blanks(missing, ids)
        return y
    # Many bags have the same labels, which are read once.
    sets: dict[str, frozenset[Any] | None] = {}
    cells = ["" if blank else cell for blank, cell in zip(missing, cells, strict=True)]
    for b, cell in enumerate(cells):
        try:
            if cell not in sets:
                sets[cell] = parse_cell(cell, DELIMITER)
        except ValueError as error:
            raise ValueError(f"Bag {ids[b]} has {error}.") from None
    return [sets[cell] for cell in cells]


def _has_one_instance_per_bag(X):
    """Return whether X is an array or table whose rows are bags of one instance."""
    if isinstance(X, Bags):
        return False
    if isinstance(X, list | tuple):
        return len(X) > 0 and np.ndim(X[0]) == 1
    return len(getattr(X, "shape", ())) == 2


def bag_weights(
    sample_weight: ArrayLike | None, bags: Bags, X: BagsLike
) -> NDArray[np.float64] | None:
    """Return the weights of bags, given as X, as floats, none of them negative."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(in_bag_order(sample_weight, X, "sample_weight"), bags)
    if (weight < 0).any():
        b = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight must not be negative; bag {bags.ids[b]} has {weight[b]}.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weight @ np.maximum(bags.sizes, 1)):
            b = int(np.argmax(weight))
            raise ValueError(
                f"sample_weight adds up to more than a float can hold; the largest is that of bag "
                f"{bags.ids[b]}, {weight[b]:g}. Divide all of them by it."
            )
    return weight


def check_numbers(model: object, **ranges: tuple[float, float]) -> None:
    """Raise an error that names the first parameter that is not a number of its range.

    A range includes both ends, except infinity.
    """
    for name, (low, high) in ranges.items():
        value: Any = getattr(model, name)
        if not isinstance(value, Real) or not low <= float(value) <= high or value == np.inf:
            raise ValueError(f"{name} must be a number from {low} to {high}; got {value!r}.")


def check_positive_integers(model: object, *names: str) -> None:
    """Raise an error that names the first parameter that is not a positive integer."""
    for name in names:
        value = getattr(model, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a positive integer; got {value!r}.")


def check_choices(model: object, **choices: Collection[Any]) -> None:
    """Raise an error that names the first parameter that is not one of its choices."""
    for name, allowed in choices.items():
        value = getattr(model, name)
        if value not in allowed:
            raise ValueError(f"{name} must be one of {allowed}; got {value!r}.")


def is_whitened(bags: Any) -> bool:
    """Return whether features come from a whitened dictionary, and must not be standardised.

    The names of the features show it; where there are none the answer is False.
    """
    names = getattr(bags, "feature_names", None)
    return names is not None and any(str(name).startswith(WHITENED) for name in names)


def check_scaling(bags: Any, scaling: str | None) -> None:
    """Warn if features are whitened already; raise an error if scaling would make them dense."""
    if scaling is not None and is_whitened(bags):
        warn_caller(
            "The features are a whitened dictionary: scaling them again undoes the whitening and "
            "ruins the model. Use scaling=None."
        )
    is_sparse = getattr(bags, "is_sparse", False) or sparse.issparse(getattr(bags, "X", None))
    if scaling == "minmax" and is_sparse:
        raise ValueError(
            "scaling='minmax' would make sparse features dense: use 'standard' or None."
        )


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator when learning fails.

    A model half of whose attributes are new would go on answering. Those of the steps of a
    pipeline are restored too, since it fits them one after the other.
    """
    steps = [step for _, step in vars(estimator).get("steps", ()) if hasattr(step, "__dict__")]
    before = [(part, dict(vars(part))) for part in (estimator, *steps)]
    try:
        yield
    except BaseException:
        for part, attributes in before:
            vars(part).clear()
            vars(part).update(attributes)
        raise


def all_or_nothing(method: Method) -> Method:
    """Make a method that learns leave its estimator as it was when it fails."""

    @wraps(method)
    def learn(self: Any, *arguments: Any, **options: Any) -> Any:
        with unchanged_on_error(self):
            return method(self, *arguments, **options)

    return cast(Method, learn)
