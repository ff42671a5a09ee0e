"""What parts of the bags say of the weights: quantities that add up; and where they are asked.

A fit maps a question over parts and adds the answers. Threads, files and clusters differ in how
they map, and in nothing else.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class NoiseCounts:
    """How often labels are expected to be wrong, class by class, by the weights of the bags.

    Instances of the class that went unnoticed, and all of them; bags in which the class was named
    by mistake, and all of them: each where the class is not unknown.
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
        Log-likelihood of the label sets, by the weights of the bags.
    gradient : ndarray of shape (n_classes, n_features + 1)
        Its gradient with respect to the weights, the intercepts last.
    weight : float
        What the instances count together.
    intractable : tuple of (bag, n_required, n_free)
        Bags that no exact method can hold; value and gradient say nothing of them.
    uncertified : tuple of bags
        Bags whose answer the inference method asked for could not certify.
    noise : NoiseCounts or None
        What the rates of wrong labels are learnt from; None where labels are taken as right.
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


class Ray(NamedTuple):
    """Where a line search looks: along it, logits are linear in the step.

    Origin and direction are of shape (n_classes, n_features + 1).
    """

    origin: np.ndarray
    direction: np.ndarray

    def at(self, step: float) -> np.ndarray:
        """Return the weights after a step, in multiples of the direction."""
        return self.origin + step * self.direction
