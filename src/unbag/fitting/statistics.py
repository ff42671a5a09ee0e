"""What a part of the bags says of the weights: quantities that add up.

A fit maps a question over parts and adds the answers. Threads, files and clusters differ in how
they map, and in nothing else.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Statistics:
    """Likelihood and gradient of some bags at given weights.

    Attributes
    ----------
    value : float
        Log-likelihood of the label sets, by the weights of the bags.
    gradient : ndarray of shape (n_classes, n_features + 1)
        Its gradient with respect to the weights, the intercepts last.
    weight : float
        What the instances count together.
    intractable : tuple of (bag, n_required, n_free)
        Bags that no exact method can hold; value and gradient say nothing of them.
    uncertified : tuple of bags
        Bags whose answer the inference method asked for could not certify.
    """

    value: float
    gradient: np.ndarray
    weight: float
    intractable: tuple[tuple[int, int, int], ...] = ()
    uncertified: tuple[int, ...] = ()

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(
            self.value + other.value,
            self.gradient + other.gradient,
            self.weight + other.weight,
            self.intractable + other.intractable,
            self.uncertified + other.uncertified,
        )


@dataclass(frozen=True)
class Moments:
    """Mean and spread of features over some instances, in float64 whatever the features are.

    Attributes
    ----------
    weight : float
        What the instances count together.
    mean : ndarray of shape (n_features,)
    squares : ndarray of shape (n_features,)
        Weighted sum of the squared differences from the mean.
    low, high : ndarrays of shape (n_features,)
        The smallest and the largest value.
    """

    weight: float
    mean: np.ndarray
    squares: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __add__(self, other: "Moments") -> "Moments":
        # Chan's rule: sums of raw squares would cancel where the mean is far from zero.
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
