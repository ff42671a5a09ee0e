"""Features brought to one scale inside an estimator, as learnt from the training bags."""

from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from unbag.fitting import SCALINGS
from unbag.validation import check_choices

# The square of a larger number, or a sum of squares of many, is more than a float can hold.
LARGEST_FEATURE = 1e150


def fitted_scaler(model: Any, X: np.ndarray) -> Any:
    """Return a transformer, fitted to features, as the parameter `scaling` of a model says.

    That is "standard" (mean zero, variance one), "minmax" (from zero to one) or None (as they are).
    Constant features stay finite, and what is transformed keeps its precision. A feature that is
    too large for distances and variances is a ValueError.
    """
    check_choices(model, scaling=SCALINGS)
    largest = np.abs(X).max(axis=0).astype(np.float64)
    if (largest > LARGEST_FEATURE).any():
        column = int(np.argmax(largest))
        names = getattr(model, "feature_names_in_", None)
        name = "" if names is None else f" ({names[column]})"
        raise ValueError(
            f"Column {column}{name} holds {largest[column]:g}, whose square is more than a float "
            "can hold: divide the feature by a constant."
        )
    kinds = {"standard": StandardScaler, "minmax": MinMaxScaler, None: FunctionTransformer}
    return kinds[model.scaling]().fit(X)


def affine_map(scaler: Any) -> tuple[np.ndarray | float, np.ndarray | float]:
    """Return the factor and the shift that a scaler applies to each feature, in this order."""
    if hasattr(scaler, "mean_"):
        return 1 / scaler.scale_, -scaler.mean_ / scaler.scale_
    if hasattr(scaler, "min_"):
        return scaler.scale_, scaler.min_
    return 1.0, 0.0
