"""What comes into `fit`, `transform` and `predict`: bags, their weights, and parameters.

`validate_bags` is scikit-learn's `validate_data` for bags. Constructor parameters are checked in
``fit``, as scikit-learn wants them; a fit that fails leaves everything as it was. Transformers and
estimators share all of it.
"""

import math
from collections.abc import Callable, Collection
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, validate_data

from unbag._checks import first_nonfinite
from unbag._warnings import warn_caller
from unbag.bags import Bags, BagsLike, bag_of

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
    """Return X as Bags whose features the estimator can take; raise the error that says why not.

    Parameters
    ----------
    estimator : estimator
        Learns `n_features_in_` and, where features have names, `feature_names_in_`; or, unless
        `reset`, expects what it has learnt.
    X : Bags, or array-like of shape (n_instances, n_features)
        An array has one instance per bag.
    reset : bool
    accept_sparse, ensure_all_finite : bool, default=True

    Returns
    -------
    Bags
    """
    if isinstance(X, Bags):
        if sparse.issparse(X.X) and not accept_sparse:
            raise TypeError(
                f"{type(estimator).__name__} takes dense features only, and these are sparse: use "
                "bags.with_features(bags.X.toarray())."
            )
        _check_columns(estimator, X, reset)
    else:
        features = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accept_sparse else False,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
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
        f"Bag {bag} (id {bags.ids[bag]}) has {'NaN' if math.isnan(found.value) else found.value} "
        f"in column {found.column}{name}, instance {found.row - bags.offsets[bag]} of the bag: "
        "replace or remove it."
    )


def _check_columns(estimator, bags, reset):
    names = bags.feature_names
    if reset:
        if not bags.n_instances:
            raise ValueError("There is no instance to fit on: all bags are empty.")
        estimator.n_features_in_ = bags.n_features
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = names.astype(object)
    if bags.n_features != estimator.n_features_in_:
        expected = f"{type(estimator).__name__} is expecting {estimator.n_features_in_}"
        raise ValueError(f"X has {bags.n_features} features, but {expected} features as input.")
    seen: Any = getattr(estimator, "feature_names_in_", names)
    if names is not None and (differ := np.flatnonzero(names != seen)).size:
        column = differ[0]
        raise ValueError(f"Column {column} is {names[column]}, but in fit it was {seen[column]}.")


def bag_weights(sample_weight: ArrayLike | None, bags: Bags) -> NDArray[np.float64] | None:
    """Return the weights of bags as floats, none of them negative."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, bags)
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

    Parameters
    ----------
    model : estimator
    **ranges : (low, high)
        Per parameter, the range it must lie in, both ends included but for infinity.
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


def is_whitened(bags: Bags) -> bool:
    """Return whether features come from a whitened dictionary, and must not be standardised.

    Parameters
    ----------
    bags : Bags
        The names of the features say so; where there are none the answer is False.

    Examples
    --------
    >>> bags = Bags([[0.0], [2.0]], offsets=[0, 1, 2])
    >>> is_whitened(bags), is_whitened(bags.with_features(bags.X, ["whitened_rbf_0"]))
    (False, True)
    """
    names = getattr(bags, "feature_names", None)
    return names is not None and any(str(name).startswith(WHITENED) for name in names)


def check_scaling(bags: Bags, scaling: str | None) -> None:
    """Warn of, or refuse, scaling that features cannot bear."""
    if scaling is not None and is_whitened(bags):
        warn_caller(
            "The features are a whitened dictionary: scaling them again undoes the whitening and "
            "ruins the model. Use scaling=None."
        )
    if scaling == "minmax" and sparse.issparse(bags.X):
        raise ValueError(
            "scaling='minmax' would make sparse features dense: use 'standard' or None."
        )


def all_or_nothing(method: Method) -> Method:
    """Make a method that learns restore the attributes of its estimator when it fails.

    A model half of whose attributes are new would go on answering. Those of the steps of a
    pipeline are restored too, since it fits them one after the other.
    """

    @wraps(method)
    def learn(self: Any, *arguments: Any, **options: Any) -> Any:
        steps = [step for _, step in getattr(self, "steps", ()) if hasattr(step, "__dict__")]
        before = [(part, dict(vars(part))) for part in (self, *steps)]
        try:
            return method(self, *arguments, **options)
        except BaseException:
            for part, attributes in before:
                vars(part).clear()
                vars(part).update(attributes)
            raise

    return cast(Method, learn)
