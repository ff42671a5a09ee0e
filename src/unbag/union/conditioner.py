"""From scores of instances and label sets of bags to posteriors and likelihoods.

A `Conditioner` is what a fitted model knows besides its scores: whether its last column is a
background and what that costs, how often label sets are wrong, and how sure scores are. It is a
value, so that a search or a review can ask the same scores under other assumptions.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from unbag.labels import LabelSets

from .noise import impossible_bags
from .policy import OnIntractable, relax_impossible
from .problem import Inference, UnionProblem
from .rates import checked_rates


@dataclass(frozen=True, eq=False)
class Conditioner:
    """Condition the scores of instances on the label sets of their bags.

    Parameters
    ----------
    background : bool, default=False
        Whether the last column of scores is a background, which is optional in every bag.
    background_cost : float, default=0.0
        Penalty (nats) of a background instance in a bag with labels.
    missed_rate, false_rate : ndarray of shape (n_classes,), optional
        How often label sets are wrong, as in `unbag.union.infer`; by default never.
    temperature : float, default=1.0
        Divisor of scores and cost. Above 1, the posteriors are less sure.
    on_intractable : {"raise", "relax"}, default="raise"
        As in `unbag.union.infer`.

    Examples
    --------
    Either of two instances may be the owl; at a higher temperature, both may.

    >>> import numpy as np
    >>> from unbag import LabelSets
    >>> scores = np.log([[0.9, 0.1], [0.5, 0.5]])
    >>> labels = LabelSets([[1, 1]], ["owl", "wren"])
    >>> for temperature in (1.0, 2.0):
    ...     conditioner = Conditioner(temperature=temperature)
    ...     problem = conditioner.problem(np.array([0, 2]), labels)
    ...     print(conditioner.infer(scores, problem).posterior[0].round(2))
    [0.9 0.1]
    [0.75 0.25]
    """

    background: bool = False
    background_cost: float = 0.0
    missed_rate: NDArray[np.float64] | None = None
    false_rate: NDArray[np.float64] | None = None
    temperature: float = 1.0
    on_intractable: OnIntractable = "raise"

    @property
    def rates(self) -> dict[str, Any]:
        """Rates of wrong labels as arguments of `infer`: a background is never in a label set."""
        padding = [0.0] * self.background
        given = {"missed_rate": self.missed_rate, "false_rate": self.false_rate}
        return {k: None if rate is None else np.append(rate, padding) for k, rate in given.items()}

    def problem(
        self,
        offsets: np.ndarray,
        labels: LabelSets,
        pinned: np.ndarray | None = None,
        *,
        relax: bool = True,
    ) -> UnionProblem:
        """Prepare the label sets of bags for inference.

        Parameters
        ----------
        offsets : ndarray of int of shape (n_bags + 1,)
        labels : LabelSets
        pinned : ndarray of int of shape (n_instances,), optional
            The column of each instance whose label is known, -1 for the others.
        relax : bool, default=True
            Whether to take the labels of impossible bags as optional.

        Returns
        -------
        UnionProblem
        """
        y, groups = labels.indicator.copy(), labels.groups
        if self.background:
            y = np.hstack([y, np.full((len(y), 1), -1, dtype=np.int8)])
        groups = None if groups is None else groups.widened(y.shape[1])
        problem = UnionProblem(offsets, y, pinned, groups)
        if not relax:
            return problem
        rates = checked_rates(**self.rates, y=problem.y)
        return relax_impossible(problem, impossible_bags(problem, rates))

    def log_prior(self, log_proba: np.ndarray, problem: UnionProblem) -> NDArray[np.float64]:
        """Return scores at the temperature, less the cost of the background.

        Parameters
        ----------
        log_proba : ndarray of shape (n_instances, n_columns)
        problem : UnionProblem

        Returns
        -------
        ndarray of shape (n_instances, n_columns)
            The array given, if nothing changes.
        """
        if self.temperature != 1.0:
            log_proba = log_softmax(log_proba / self.temperature, axis=1)
        cost = self.background_cost / self.temperature
        if not (self.background and cost):
            return log_proba
        less = log_proba.copy()
        less[:, -1] -= background_costs(problem.named, problem.offsets, cost)
        return less

    def infer(self, log_proba: np.ndarray, problem: UnionProblem) -> Inference:
        """Compute likelihoods of label sets and posteriors of instances.

        Parameters
        ----------
        log_proba : ndarray of shape (n_instances, n_columns)
        problem : UnionProblem
            As `problem` prepares it.

        Returns
        -------
        Inference
        """
        log_prior = self.log_prior(log_proba, problem)
        return problem.infer(log_prior, on_intractable=self.on_intractable, **self.rates)

    def free(self) -> "Conditioner":
        """Return the same at temperature 1, with a background that costs nothing.

        That is how likelihoods of label sets are reported.
        """
        return replace(self, background_cost=0.0, temperature=1.0)


def background_costs(
    y: np.ndarray, offsets: np.ndarray, cost: float | np.ndarray
) -> NDArray[np.float64]:
    """Return what a background costs each instance: nothing in bags without labels.

    Examples
    --------
    >>> background_costs(np.array([[1, 0], [0, 0]]), np.array([0, 2, 3]), 0.5)
    array([0.5, 0.5, 0. ])
    """
    return np.repeat(np.where((y == 1).any(axis=1), cost, 0.0), np.diff(offsets))
