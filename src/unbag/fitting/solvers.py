"""Three solvers for the objective, and one for streams.

`fit_em` is generalised expectation maximisation, as published: the E-step is inference; the M-step
moves the weights along the gradient of the resulting lower bound, with a backtracking line search.
The likelihood never decreases. `fit_lbfgs` maximises the same likelihood directly, `fit_stochastic`
takes EM steps on samples of the bags, and `Stream` takes one step for each batch of a stream.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from scipy.optimize import minimize

from unbag._scikit_learn import ConvergenceWarning
from unbag.union import IntractableBagError, UnionProblem

from .objective import NonFiniteObjectiveError, Objective, Progress, Training
from .scaling import Scale
from .statistics import Ray, Statistics

# A step must gain at least this share of what the gradient predicts; otherwise it is halved.
SUFFICIENT_GAIN = 0.3
BACKTRACKING_FACTOR = 0.5
# How far a sample of the bags, or a batch of a stream, moves the rates of wrong labels.
SAMPLE_SHARE = 0.1
# Steps that L-BFGS remembers of the curvature.
LBFGS_MEMORY = 10


class InterruptedFitWarning(ConvergenceWarning):
    """A fit was interrupted: the model is that of its last completed iteration."""


@contextmanager
def interruptions_raised() -> Iterator[None]:
    """Raise KeyboardInterrupt if a fit is interrupted, instead of a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            yield
        except InterruptedFitWarning:
            raise KeyboardInterrupt from None


def fit_em(
    objective: Objective, W: np.ndarray, *, max_iter: int, tol: float, progress: Progress
) -> bool:
    """Maximise the objective by generalised EM.

    Parameters
    ----------
    objective : Objective
    W : ndarray of shape (n_classes, n_features + 1)
        Where to start.
    max_iter : int
    tol : float
        Stop when the relative gain of an iteration is smaller.
    progress : Progress
        Updated after each iteration; may stop the fit.

    Returns
    -------
    bool
        Whether the gain fell below `tol` within `max_iter` iterations.
    """
    here = e_step(objective, W)
    step = 1.0 / max(here.weight, 1.0)
    for _ in range(max_iter - len(progress.history)):
        previous = here.value
        W, step, here = gradient_step(objective, W, here, step)
        if progress.completed(W, here.value + objective.penalty(W), objective.rates):
            return True
        if here.value - previous <= tol * max(1.0, abs(here.value)):
            return True
    return False


def fit_stochastic(
    sample: Callable[[], Objective], W: np.ndarray, *, max_iter: int, progress: Progress
) -> bool:
    """Take gradient steps, each on a new sample of the bags.

    Parameters
    ----------
    sample : callable
        Returns the `Objective` of a new sample; its likelihood is what `progress` records.
    W, max_iter, progress
        As in `fit_em`.

    Returns
    -------
    bool
        Whether `progress` stopped it.
    """
    step = None
    for _ in range(max_iter - len(progress.history)):
        objective = sample()
        here = e_step(objective, W)
        if step is None:
            step = 1.0 / max(here.weight, 1.0)
        log_likelihood = here.value + objective.penalty(W)
        W, step, _ = gradient_step(objective, W, here, step, statistics_after=False)
        objective.learn_rates(here, share=SAMPLE_SHARE)
        if progress.completed(W, log_likelihood, objective.rates):
            return True
    return False


def e_step(
    objective: Objective, W: np.ndarray, ray: Ray | None = None, step: float = 0.0
) -> Statistics:
    """Infer the labels at W; labels of bags that are intractable there are relaxed first."""
    while True:
        try:
            return objective.expectation(W, ray, step)
        except IntractableBagError as error:
            objective.relax(W, error)
            ray = None


def gradient_step(
    objective: Objective,
    W: np.ndarray,
    here: Statistics,
    step: float,
    statistics_after: bool = True,
) -> tuple[np.ndarray, float, Statistics]:
    """Take a step along the gradient of EM's lower bound, with a backtracking line search.

    `here` are the statistics of the objective at W, and `step` is the length of the last step, in
    multiples of the gradient. Return the new weights, the length of the step, and the statistics at
    the new weights; without `statistics_after`, those at the old weights.
    """
    gradient = here.gradient
    with np.errstate(over="ignore"):
        slope = float(np.sum(gradient**2))
    if not np.isfinite(slope):
        raise NonFiniteObjectiveError("The norm of the gradient is not finite.")
    ray = Ray(W, gradient)
    # Start well above the last step, so that it can grow.
    step /= BACKTRACKING_FACTOR**2
    shorter = (BACKTRACKING_FACTOR ** np.arange(objective.steps_at_once)).tolist()
    bound, *bounds = objective.lower_bounds(ray, [0.0, *(step * each for each in shorter)])
    while step * slope > 1e-14 * max(1.0, abs(bound)):
        if not bounds:
            bounds = list(objective.lower_bounds(ray, [step * each for each in shorter]))
        if bounds.pop(0) - bound >= SUFFICIENT_GAIN * step * slope:
            candidate = ray.at(step)
            if statistics_after:
                objective.learn_rates(here)
                here = e_step(objective, candidate, ray, step)
            return candidate, step, here
        step *= BACKTRACKING_FACTOR
    return W, step, here


def fit_lbfgs(
    objective: Objective, W: np.ndarray, *, max_iter: int, tol: float, progress: Progress
) -> bool:
    """Maximise the objective by L-BFGS.

    If bags turn out to be intractable, their labels are relaxed at the last completed iteration,
    and L-BFGS restarts from there with the new objective.

    Parameters
    ----------
    objective, W, max_iter, tol, progress
        As in `fit_em`.

    Returns
    -------
    bool
        Whether it converged or was stopped within `max_iter` iterations.
    """
    while True:
        try:
            return climb(objective, W, max_iter - len(progress.history), tol, progress)
        except IntractableBagError as error:
            W = progress.weights
            objective.relax(W, error)


def climb(
    objective: Objective, W: np.ndarray, max_iter: int, tol: float, progress: Progress
) -> bool:
    """Run L-BFGS on one objective; return whether it converged or was stopped."""
    shape = W.shape

    def descend(flat):
        here = objective.statistics(objective.unflattened(flat, shape))
        return -here.value, -objective.flat_gradient(here)

    stopped = False

    def completed(intermediate_result):
        nonlocal stopped
        weights = objective.unflattened(intermediate_result.x, shape).copy()
        log_likelihood = -intermediate_result.fun + objective.penalty(weights)
        if progress.completed(weights, log_likelihood, objective.rates):
            stopped = True
            raise StopIteration

    result = minimize(
        descend,
        objective.flat(W),
        jac=True,
        method="L-BFGS-B",
        callback=completed,
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter + 20,
            "ftol": tol,
            "gtol": 0.0,
            "maxcor": LBFGS_MEMORY,
        },
    )
    if not progress.history:
        # The start was already the optimum.
        progress.completed(W, -result.fun + objective.penalty(W), objective.rates)
    return stopped or result.status == 0


def cheapest_bags(problem: UnionProblem, used: np.ndarray, prune: float) -> np.ndarray:
    """Leave out the most expensive bags, by n k 2^k; raise an error if none is left.

    Parameters
    ----------
    problem : UnionProblem
    used : ndarray of bool of shape (n_bags,)
        The bags to choose from.
    prune : float
        The share of these to leave out.

    Returns
    -------
    ndarray of bool of shape (n_bags,)
    """
    # The number to keep is rounded down, as published; the epsilon is for 1 - 0.9 < 0.1.
    n_kept = int((1 - prune) * used.sum() + 1e-9)
    if not used.any():
        raise ValueError("No bag is left to fit to: none has labels that its instances can have.")
    if not n_kept:
        raise ValueError("No bag is left to fit to: all were dropped or pruned.")
    if prune == 0:
        return used
    cardinality = (problem.y == 1).sum(axis=1)
    cost = np.diff(problem.offsets) * cardinality * 2.0**cardinality
    kept = np.zeros_like(used)
    kept[np.argsort(np.where(used, cost, np.inf), kind="stable")[:n_kept]] = True
    return kept


class Stream:
    """The state of a fit to a stream of batches.

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
        # The penalty is for the whole stream: a batch gets its share.
        objective.scale_penalty(len(training.chosen) / max(n_bags, 1))
        here = e_step(objective, self.weights)
        # Nothing fails from here on, so that a batch counts completely or not at all.
        objective.learn_rates(here, share=SAMPLE_SHARE)
        self.n_bags = n_bags
        self.history.append(here.value + objective.penalty(self.weights))
        gradient = here.gradient / max(here.weight, 1.0)
        self.squares = self.squares + gradient**2
        self.weights = self.weights + self.RATE * gradient / np.sqrt(self.squares + 1e-12)
        return Progress(self.weights, history=self.history, rates=objective.rates)
