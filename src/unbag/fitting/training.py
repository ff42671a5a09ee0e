"""The bags of a fit: scaled, and turned into objectives over all or some of them."""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from unbag.bags import Bags
from unbag.union import UnionProblem
from unbag.union.dispatch import Method

from .objective import NonFiniteObjectiveError, Objective, Progress
from .parts import make_parts
from .scaling import Scale, Scaling
from .solvers import e_step


class Training:
    """Bags and label sets as a solver needs them.

    Parameters
    ----------
    bags : Bags
    problem : UnionProblem
        Their label sets.
    used : ndarray of bool of shape (n_bags,)
        The bags to fit to.
    weight : ndarray of shape (n_bags,), optional
        What each bag counts.
    scale : Scale, optional
        How features are scaled; by default as `scaling` says.
    scaling : {"standard", "minmax", None}
        See `unbag.fitting.scaling`.
    method : str
        As in `unbag.union.infer`.
    map : callable
        See `Objective`.
    **options
        `alpha` and `on_intractable` of `Objective`.

    Attributes
    ----------
    shape : (int, int)
        That of the weights.
    scale : Scale
    relaxed : dict from int to ndarray of int
        For each bag that was relaxed because it is intractable, the columns of the labels that
        are not required any more.
    """

    def __init__(
        self,
        bags: Bags,
        problem: UnionProblem,
        used: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        scale: Scale | None = None,
        scaling: Scaling = "standard",
        method: Method = "auto",
        map: Callable[..., Any] = map,
        **options: Any,
    ) -> None:
        self.bags = bags
        self.problem: UnionProblem = problem
        self.chosen: np.ndarray = np.flatnonzero(used)
        self.weight = weight
        self.method: Method = method
        self.options = options
        self.map = map
        self.relaxed: dict[int, np.ndarray] = {}
        self.shape: tuple[int, int] = problem.y.shape[1], bags.n_features + 1
        self.scale: Scale = self._learnt_scale(scaling) if scale is None else scale

    def _learnt_scale(self, scaling):
        """Learn the scale of features from the parts, one after the other."""
        if scaling is None or self.bags.n_instances == 0:
            return Scale.none(self.bags.n_features)
        weighted = self.weight is not None and self.weight[self.chosen].sum() > 0
        parts = make_parts(self.bags, self.problem, self.chosen, self.weight)
        moments = reduce(operator.add, (part.moments(weighted) for part in parts))
        scale = Scale.learn(scaling, moments, self.bags.dtype, sparse.issparse(self.bags.X))
        wrong = np.flatnonzero(~(np.isfinite(scale.shift) & np.isfinite(scale.scale)))
        if len(wrong):
            raise NonFiniteObjectiveError(
                f"Mean and deviation of column {self._column_name(wrong[0])} overflow: it has "
                f"values up to {max(-moments.low[wrong[0]], moments.high[wrong[0]]):g}. Bring "
                "features to a common order of magnitude first."
            )
        return scale

    def _column_name(self, column):
        names = self.bags.feature_names
        return column if names is None else f"{column} ({names[column]})"

    def overflow(self, error: NonFiniteObjectiveError) -> NonFiniteObjectiveError:
        """Return the error with its likely cause: the largest feature, and the largest weight."""
        X = self.bags.X
        columns = abs(X).max(axis=0)
        columns = columns.toarray().ravel() if sparse.issparse(X) else columns
        column = int(columns.argmax())
        cause = f"Features reach {columns[column]:g} (column {self._column_name(column)})"
        if self.weight is not None:
            cause += f", sample_weight {self.weight.max():g} (bag {self.weight.argmax()})"
        return NonFiniteObjectiveError(
            f"{error} {cause}: bring them to a common order of magnitude, or let scaling do so."
        )

    def objective(self) -> Objective:
        """Return the objective over all bags."""
        return self._objective(self.chosen)

    def sample(self, fraction: float, rng: np.random.RandomState) -> Objective:
        """Return the objective over a random sample of the bags.

        Parameters
        ----------
        fraction : float
            Share of the bags to draw; at least one is.
        rng : RandomState

        Returns
        -------
        Objective
        """
        size = max(1, round(fraction * len(self.chosen)))
        places = np.sort(rng.choice(len(self.chosen), size, replace=False))
        objective = self._objective(self.chosen[places], gather=True)
        # The penalty is one for all bags: a sample bears its share of it.
        objective.alpha *= size / len(self.chosen)
        return objective

    def _objective(self, chosen, gather=False):
        if self.relaxed:
            # What one sample has relaxed, the next shall not choose again.
            labels = np.zeros(self.problem.y.shape, dtype=bool)
            for b, columns in self.relaxed.items():
                labels[b, columns] = True
            self.problem = self.problem.relaxed(labels)
        parts = make_parts(
            self.bags, self.problem, chosen, self.weight, self.scale.centre, self.method, gather
        )
        objective = Objective(parts, scale=self.scale, map=self.map, **self.options)
        objective.relaxed = self.relaxed
        return objective


class Stream:
    """What a fit to a stream of batches remembers from one to the next.

    Parameters
    ----------
    scale : Scale
        How features are scaled.
    weights : ndarray of shape (n_classes, n_features + 1), optional
        Where to start; by default at zero.
    """

    RATE: float = 0.3

    def __init__(self, scale: Scale, weights: np.ndarray | None = None) -> None:
        self.scale = scale
        self.weights: np.ndarray | None = weights
        self.squares: np.ndarray | float = 0.0
        self.n_bags: int = 0
        self.history: list[float] = []

    def advance(self, training: Training) -> Progress:
        """Take an AdaGrad step along the gradient of a batch.

        Parameters
        ----------
        training : Training
            The batch.

        Returns
        -------
        Progress
        """
        objective = training.objective()
        if self.weights is None:
            self.weights = np.zeros(training.shape)
        if self.weights.shape != training.shape:
            raise ValueError(
                f"The stream's weights have shape {self.weights.shape}, the batch needs "
                f"{training.shape}: classes or features have changed."
            )
        n_bags = self.n_bags + len(training.chosen)
        # The penalty is one for the whole stream: a batch bears its share of it.
        objective.alpha *= len(training.chosen) / max(n_bags, 1)
        here = e_step(objective, self.weights)
        # From here on nothing fails, so that a batch counts wholly or not at all.
        self.n_bags = n_bags
        self.history.append(here.value + objective.penalty(self.weights))
        gradient = here.gradient / max(here.weight, 1.0)
        self.squares = self.squares + gradient**2
        self.weights = self.weights + self.RATE * gradient / np.sqrt(self.squares + 1e-12)
        return Progress(self.weights, history=self.history)
