"""Statistics of parts of the bags, which can be added; and where they are evaluated.

A fit maps a function over parts and adds the results. Threads, files and clusters differ only in
how they map.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class NoiseCounts:
    """Expected numbers of wrong labels for each class, weighted by bag.

    Missed instances of the class and all its instances; bags to which the class was added by
    mistake and all bags. Bags in which the class is unknown are not counted.
    """

    unnoticed: np.ndarray
    instances: np.ndarray
    mistaken: np.ndarray
    chances: np.ndarray

    def __add__(self, other: "NoiseCounts") -> "NoiseCounts":
        return NoiseCounts(
            self.unnoticed + other.unnoticed,
            self.instances + other.instances,
            self.mistaken + other.mistaken,
            self.chances + other.chances,
        )


@dataclass(frozen=True)
class Statistics:
    """Likelihood and gradient of some bags at given weights.

    Attributes
    ----------
    value : float
        Weighted log-likelihood of the label sets.
    gradient : ndarray of shape (n_classes, n_features + 1)
        Its gradient with respect to the weights, the intercepts last.
    weight : float
        What the instances count together.
    intractable : tuple of (bag, n_required, n_free)
        Bags that are too large for exact methods; they are not part of value and gradient.
    uncertified : tuple of bags
        Bags whose result the chosen inference method could not certify.
    noise : NoiseCounts or None
        Counts to learn the rates of wrong labels from; None without such rates.
    """

    value: float
    gradient: np.ndarray
    weight: float
    intractable: tuple[tuple[int, int, int], ...] = ()
    uncertified: tuple[int, ...] = ()
    noise: NoiseCounts | None = None

    def __add__(self, other: "Statistics") -> "Statistics":
        noise = None if self.noise is None or other.noise is None else self.noise + other.noise
        return Statistics(
            self.value + other.value,
            self.gradient + other.gradient,
            self.weight + other.weight,
            self.intractable + other.intractable,
            self.uncertified + other.uncertified,
            noise,
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


class Ray(NamedTuple):
    """The ray of a line search; logits are linear in the step along it.

    Origin and direction have shape (n_classes, n_features + 1).
    """

    origin: np.ndarray
    direction: np.ndarray

    def at(self, step: float) -> np.ndarray:
        """Return the weights after a step, in multiples of the direction."""
        return self.origin + step * self.direction
