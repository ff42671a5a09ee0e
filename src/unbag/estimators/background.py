"""The label of instances that belong to none of the classes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag.tagging import BACKGROUND_NAME, is_missing

# The label of an instance that belongs to none of the classes; -1 among signed numbers, unless that
# is one of the classes itself.
BACKGROUND = None


def is_background(labels: ArrayLike) -> NDArray[np.bool_]:
    """Find the instances that belong to none of the classes.

    Parameters
    ----------
    labels : array-like of shape (n_instances,)
        Labels from `predict_instances` or `annotate` of a model with a background class; a single
        label and arrays of any shape also work. In tables, the word "background" is that label, and
        the column ``status`` says why other cells are empty.

    Returns
    -------
    ndarray of bool of the shape of `labels`

    Examples
    --------
    >>> import numpy as np
    >>> is_background(np.array(["wren", None], dtype=object)), is_background([3, -1])
    (array([False,  True]), array([False,  True]))
    >>> is_background(["wren", "background"])
    array([False,  True])
    """
    try:
        labels = np.asarray(labels)
    except ValueError:
        raise ValueError(
            "labels has lists of different lengths: join those of several bags by np.concatenate."
        ) from None
    if labels.dtype.kind in "if":
        # In a table, a column of floats has NaN where there is no label.
        return (labels == -1) | np.isnan(labels)
    if labels.dtype.kind == "U":
        return np.asarray(labels == BACKGROUND_NAME)
    if labels.dtype != object:
        return np.zeros(labels.shape, dtype=bool)
    missing = [is_missing(each) or str(each) == BACKGROUND_NAME for each in labels.ravel().tolist()]
    return np.array(missing, dtype=bool).reshape(labels.shape)
