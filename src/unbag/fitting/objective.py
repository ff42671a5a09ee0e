"""The penalised log-likelihood of bag labels under multinomial logistic instances.

========== ================================================================
``W``      (n_classes, n_features + 1) weights of scaled features, the
           intercepts last
L(W)       sum over bags of weight * log P(label set | X, W)
objective  L(W) - alpha / 2 * (sum of squared weights, intercepts left free)
========== ================================================================

Value and gradient are sums over parts of the bags. Whoever can map and add can fit.
"""

import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import methodcaller
from typing import Any

import numpy as np

from unbag.union.policy import IntractableBagError, OnIntractable

from .parts import Part, Ray
from .scaling import Scale
from .statistics import Statistics


class NonFiniteObjectiveError(ValueError):
    """The likelihood or its gradient overflowed: features or weights of bags are too large."""


class UncertifiedWarning(UserWarning):
    """An inference method could not certify its answers: the fit may be wrong."""


@dataclass
class Progress:
    """Where a fit has got to: kept up to date, so that nothing is lost when it is interrupted.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_features + 1)
        After the last completed iteration.
    watch : callable or None
        Called as ``watch(iteration, log_likelihood)`` after each iteration; a true answer
        stops the fit.
    history : list of float
        Log-likelihood after each iteration.
    """

    weights: np.ndarray
    watch: Callable[[int, float], object] | None = None
    history: list[float] = field(default_factory=list)

    def completed(self, weights: np.ndarray, log_likelihood: float) -> bool:
        """Note a completed iteration.

        Parameters
        ----------
        weights : ndarray of shape (n_classes, n_features + 1)
        log_likelihood : float

        Returns
        -------
        bool
            Whether to stop.
        """
        self.weights = weights
        self.history.append(float(log_likelihood))
        return self.watch is not None and bool(self.watch(len(self.history), self.history[-1]))


class Objective:
    """Penalised log-likelihood of bags, its gradient, and EM's lower bound of it.

    Parameters
    ----------
    parts : sequence of Part
        Or of whatever has the methods of `unbag.fitting.parts.Part`, or stands for it where
        `map` sends its question.
    alpha : float
        Strength of the penalty.
    scale : Scale, optional
        How features are scaled; by default as they are.
    map : callable
        Like Python's: calls a function for each part, and gives the results in their order.
    on_intractable : {"raise", "relax"}
        What to do with a bag of too many labels for exact inference; see
        `unbag.union.policy`. Labels are relaxed between iterations only: the likelihood of a
        relaxed bag can only rise, so trial steps that make bags intractable would be rewarded.

    Attributes
    ----------
    relaxed : dict from int to ndarray of int
        For each bag whose labels were relaxed, the columns of these.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        alpha: float = 0.0,
        scale: Scale | None = None,
        map: Callable[..., Any] = map,
        on_intractable: OnIntractable = "raise",
    ) -> None:
        self.parts = parts
        self.alpha = alpha
        self.scale = scale
        self.on_intractable = on_intractable
        self.relaxed: dict[int, np.ndarray] = {}
        self._map = map
        # The weights of the last E-step and the ray of the last search, each as given and as the
        # parts know it, so that these recognise it.
        self._origin: tuple[Any, Any] = None, None
        self._search: Any = None

    def _ask(self, question, *arguments, **options):
        """Put a question to every part, and give the answers in their order."""
        return self._map(methodcaller(question, *arguments, **options), self.parts)

    def _part_weights(self, W):
        return W if self.scale is None else self.scale.part_weights(W)

    def statistics(self, W: np.ndarray) -> Statistics:
        """Compute the objective and its gradient at W.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)

        Returns
        -------
        Statistics

        Raises
        ------
        IntractableBagError
            When bags are intractable at W; see `relax`.
        """
        return self._penalised(W, self._ask("statistics", self._part_weights(W)))

    def expectation(self, W: np.ndarray, ray: Ray | None = None, step: float = 0.0) -> Statistics:
        """Do what `statistics` does, and let the parts keep what a search from W needs.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)
            Not to be changed afterwards.
        ray, step : Ray and float, optional
            The last search, and the step that led to W.

        Returns
        -------
        Statistics
        """
        last = None if ray is None else self._part_ray(ray)
        self._origin = W, self._part_weights(W)
        return self._penalised(W, self._ask("expectation", self._origin[1], last, step))

    def _part_ray(self, ray):
        """Return where parts look when a search looks along a ray; the same object each time."""
        if self._search is None or self._search[0] is not ray:
            W, origin = self._origin
            origin = origin if ray.origin is W else self._part_weights(ray.origin)
            self._search = ray, Ray(origin, self._part_weights(ray.direction))
        return self._search[1]

    def _penalised(self, W, answers):
        total = reduce(operator.add, answers)
        if total.intractable:
            raise IntractableBagError(*zip(*total.intractable, strict=True))
        if total.uncertified:
            warnings.warn(
                f"The inference method could not certify {len(total.uncertified)} bags, the first "
                f"of them bag {total.uncertified[0]}: the fit may be wrong. Use inference='auto'.",
                UncertifiedWarning,
                stacklevel=2,
            )
        gradient = total.gradient
        if self.scale is not None:
            gradient = self.scale.scaled_gradient(gradient)
        gradient[:, :-1] -= self.alpha * W[:, :-1]
        value = total.value - self.penalty(W)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise NonFiniteObjectiveError(f"The objective or its gradient is not finite: {value}.")
        return replace(total, value=value, gradient=gradient)

    def penalty(self, W: np.ndarray) -> float:
        """Compute what is taken off the likelihood for large weights.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)

        Returns
        -------
        float
        """
        return 0.5 * self.alpha * float(np.sum(W[:, :-1] ** 2))

    def lower_bounds(self, ray: Ray, steps: Sequence[float]) -> np.ndarray:
        """Compute EM's surrogate: expected log-prior of the labels as inferred at the origin.

        It lies below the objective by a constant and touches it there, so raising it raises
        the objective.

        Parameters
        ----------
        ray : Ray
            From where the last `expectation` was made.
        steps : sequence of float

        Returns
        -------
        ndarray of shape (len(steps),)
        """
        penalties = [self.penalty(ray.at(step)) for step in steps]
        answers = self._ask("lower_bounds", self._part_ray(ray), steps)
        return reduce(operator.add, answers) - penalties

    def relax(self, W: np.ndarray, error: IntractableBagError) -> None:
        """Relax labels of the bags that an error is about, as certain as they are at W.

        Raises the error when that is not wanted, or was done to one of these bags before.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)
        error : IntractableBagError
        """
        if self.on_intractable == "raise" or any(bag in self.relaxed for bag in error.bags):
            raise error
        for relaxed in self._ask("relax", self._part_weights(W), tuple(error.bags)):
            self.relaxed.update(relaxed)
