"""Checking the features of bags: as many as in fit, by the same names, and all of them numbers."""

import numpy as np
from scipy import sparse


def check_columns(estimator, bags, *, reset):
    """Check the features of Bags, as scikit-learn's `validate_data` does for arrays.

    Parameters
    ----------
    estimator : estimator
        Learns `n_features_in_` and, where features have names, `feature_names_in_`; or, unless
        `reset`, expects what it has learnt.
    bags : Bags
    reset : bool
    """
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
    seen = getattr(estimator, "feature_names_in_", names)
    if names is not None and (differ := np.flatnonzero(names != seen)).size:
        column = differ[0]
        raise ValueError(f"Column {column} is {names[column]}, but in fit it was {seen[column]}.")


def check_finite(bags):
    """Raise an error that names the first feature of Bags that is NaN or infinite."""
    if np.isfinite(bags.X.data if sparse.issparse(bags.X) else bags.X).all():
        return
    entries = sparse.coo_matrix(bags.X)
    first = np.flatnonzero(~np.isfinite(entries.data))[0]
    row, column, value = entries.row[first], entries.col[first], entries.data[first]
    # Among bags that begin at the same row, only the last is not empty.
    bag = np.searchsorted(bags.offsets, row, side="right") - 1
    name = "" if bags.feature_names is None else f" ({bags.feature_names[column]})"
    raise ValueError(
        f"Bag {bag} (id {bags.ids[bag]}) has {'NaN' if np.isnan(value) else value} in column "
        f"{column}{name}, instance {row - bags.offsets[bag]} of the bag: replace or remove it."
    )
