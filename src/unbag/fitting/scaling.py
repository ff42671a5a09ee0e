"""Scaling of features, without copying them.

Scaling is linear, so it is applied to the weights: a solver's weights, ``W``, are for scaled
features. They are converted to weights for the original features, and gradients back.

============= ===================================================================
``shift``     what is subtracted from each feature (its mean, or its minimum)
``scale``     what it is then divided by (its deviation, or its range)
``centre``    what parts take off their features themselves, where the intercept
              could not take up so large a shift without losing digits; else None
============= ===================================================================
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

Scaling: TypeAlias = Literal["standard", "minmax"] | None
SCALINGS: tuple[Scaling, ...] = ("standard", "minmax", None)
# A shift of r standard deviations that goes into the intercept costs log2(r) bits of each logit: up
# to three bits are accepted.
TOLERABLE_SHIFT = 8.0


@dataclass(frozen=True)
class Moments:
    """Mean and spread of features over some instances, always in float64."""

    #: Total weight of the instances.
    weight: float
    mean: np.ndarray
    #: Weighted sum of the squared differences from the mean.
    squares: np.ndarray
    #: The smallest and the largest value.
    low: np.ndarray
    high: np.ndarray

    def __add__(self, other: "Moments") -> "Moments":
        # Chan's rule: sums of raw squares would cancel if the mean is far from zero.
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        difference = other.mean - self.mean
        return Moments(
            weight,
            self.mean + share * difference,
            self.squares + other.squares + share * self.weight * difference**2,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


@dataclass(frozen=True)
class Scale:
    """A linear map between scaled and original features; `centre` is in the type of these."""

    shift: np.ndarray
    scale: np.ndarray
    centre: np.ndarray | None = None

    @classmethod
    def none(cls, n_features: int) -> "Scale":
        """Return the scale that leaves features as they are."""
        return cls(np.zeros(n_features), np.ones(n_features))

    @classmethod
    def learn(cls, scaling: Scaling, moments: Moments, dtype: np.dtype, is_sparse: bool) -> "Scale":
        """Learn shift and scale from the moments of the training instances."""
        if scaling == "minmax":
            shift, scale = moments.low, moments.high - moments.low
        else:
            variance = moments.squares / max(moments.weight, np.finfo(np.float64).tiny)
            shift, scale = moments.mean, np.sqrt(variance)
        # Features that are constant up to rounding are not divided.
        constant = scale <= 10 * np.finfo(dtype).eps * np.abs(moments.mean)
        constant |= moments.low == moments.high
        scale = np.where(constant, 1.0, scale)
        if is_sparse:
            return cls(np.zeros_like(scale), scale)
        far = np.abs(shift) > TOLERABLE_SHIFT * scale
        return cls(shift, scale, shift.astype(dtype) if far.any() else None)

    @property
    def remaining_shift(self) -> np.ndarray:
        """The shift that goes into the intercept."""
        return self.shift if self.centre is None else self.shift - self.centre

    def part_weights(self, W: np.ndarray) -> np.ndarray:
        """Convert weights for scaled features to weights for the features of parts."""
        coef = W[:, :-1] / self.scale
        return np.column_stack([coef, W[:, -1] - coef @ self.remaining_shift])

    def scaled_gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Convert a gradient for the weights of parts to one for `W`, in place."""
        gradient[:, :-1] -= np.outer(gradient[:, -1], self.remaining_shift)
        gradient[:, :-1] /= self.scale
        return gradient

    def coefficients(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and intercepts for the original features."""
        coef = W[:, :-1] / self.scale
        return coef, W[:, -1] - coef @ self.shift


def feature_moments(X: Any, weight: np.ndarray | None) -> Moments:
    """Compute mean and spread of features, dense or CSR, over weighted instances."""
    if weight is not None and (weight == 0).any():
        X, weight = X[weight > 0], weight[weight > 0]
    total = float(X.shape[0] if weight is None else weight.sum())
    of_rows = sparse_moments if sparse.issparse(X) else dense_moments
    # `learnt_scale` checks for overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        return Moments(total, *of_rows(X, weight, total))


def dense_moments(
    X: np.ndarray, weight: np.ndarray | None, total: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, sum of squared differences from it, minimum and maximum of columns."""
    if not total > 0:
        mean = np.zeros(X.shape[1])
    elif weight is None:
        mean = X.mean(axis=0, dtype=np.float64)
    else:
        mean = weight @ X.astype(np.float64, copy=False) / total
    difference = X - mean
    squares = (np.ones(len(X)) if weight is None else weight) @ difference**2
    low = X.min(axis=0, initial=np.inf).astype(np.float64)
    return mean, squares, low, X.max(axis=0, initial=-np.inf).astype(np.float64)


def sparse_moments(
    X: Any, weight: np.ndarray | None, total: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Compute `dense_moments` of a CSR matrix, without making it dense."""
    n_rows, n_columns = X.shape
    per_entry = np.repeat(np.ones(n_rows) if weight is None else weight, np.diff(X.indptr))
    data = X.data.astype(np.float64, copy=False)

    def column_sums(values):
        return np.bincount(X.indices, weights=values, minlength=n_columns)

    mean = column_sums(per_entry * data) / total if total > 0 else np.zeros(n_columns)
    # Entries that are not stored are zero, so their difference from the mean is the mean.
    unstored = np.maximum(total - column_sums(per_entry), 0.0)
    squares = column_sums(per_entry * (data - mean[X.indices]) ** 2) + unstored * mean**2
    if n_rows == 0:
        return mean, squares, np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    low, high = (np.float64(each.toarray()).ravel() for each in (X.min(axis=0), X.max(axis=0)))
    return mean, squares, low, high
