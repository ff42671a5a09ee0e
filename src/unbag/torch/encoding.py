"""Inputs of networks: how features compare with the quantiles of the training instances."""

import numpy as np
from numpy.typing import NDArray

# Number of quantile intervals per feature.
N_PIECES = 8


def quantile_edges(X: np.ndarray) -> NDArray[np.float64]:
    """Return the quantiles of each feature; shape (n_features, N_PIECES + 1)."""
    return np.quantile(X, np.linspace(0.0, 1.0, N_PIECES + 1), axis=0).T.copy()


def piecewise_linear(X: np.ndarray, edges: np.ndarray) -> NDArray[np.float64]:
    """Compute the position of values within each interval of a feature, from -1 to 1.

    The result has shape (n_instances, n_features * n_pieces).

    Examples
    --------
    >>> piecewise_linear(np.array([[1.0], [3.0]]), np.array([[0.0, 2.0, 4.0]]))
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    low, width = edges[:, :-1], np.diff(edges)
    beyond = X[:, :, None] - low
    # An interval without width is a step.
    reach = np.where(width > 0, beyond / np.where(width > 0, width, 1.0), beyond > 0)
    return (2.0 * np.clip(reach, 0.0, 1.0) - 1.0).reshape(len(X), -1)
