"""One E-step over a whole data set: the steps it is counted to take, and the time it takes.

Symbols: a bag has n instances and k labels; there are C classes and d features.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import lru_cache, partial, wraps
from time import perf_counter, thread_time
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax

from unbag.paper import MLR, mlr
from unbag.paper.fast import RUNNERS, infer_as_published
from unbag.union import UnionProblem

from .data import KEPT, load, load_fold
from .plan import Plan
from .timing import MODELS, counted_warnings, warm_up
from .unit import Unit, task

#: Of one measurement: calls are repeated for that much CPU time, and at least that often.
SECONDS = 0.2
LEAST_CALLS = 5


#: Parts of a fit, and the functions of `unbag.paper.mlr` that do them.
TIMED = {"E-step": "e_step", "gradient": "surrogate_gradient", "line search": "line_search"}
PARTS = (*TIMED, "rest")
PROFILED = 5


@task
def profile_fit(unit: Unit) -> dict[str, float]:
    """Fit as published to the training bags of a fold, on one thread, with timers in its parts.

    The E-step is the logits of the instances, their priors and the posteriors; the gradient, a
    product of these with the features; the line search also has a product, and evaluates the lower
    bound at each step. Shares come from one fit, so that other work on the machine hardly matters.
    """
    train, y_train, _, _ = load_fold(unit)
    warm_up()
    profiles = [profiled_fit(train, y_train, unit) for _ in range(PROFILED)]
    shortest = min(profiles, key=lambda seconds: sum(seconds.values()))
    return {f"{part} seconds": each for part, each in shortest.items()}


def profiled_fit(bags: Any, y: Any, unit: Unit) -> dict[str, float]:
    """Fit once, and return the CPU seconds of each of `PARTS`."""
    spent: dict[str, float] = dict.fromkeys(TIMED, 0.0)
    with ExitStack() as stack:
        for part, name in TIMED.items():
            stack.enter_context(patch.object(mlr, name, timed(getattr(mlr, name), part, spent)))
        with counted_warnings():
            start = thread_time()
            MODELS["em"](n_jobs=1, inference=unit.method).fit(bags, y)
            total = thread_time() - start
    return {**spent, "rest": total - sum(spent.values())}


def timed(method: Callable[..., Any], name: str, spent: dict[str, float]) -> Callable[..., Any]:
    """Return a method that adds the CPU time of its calls to an entry of `spent`."""

    @wraps(method)
    def call(*arguments, **options):
        start = thread_time()
        try:
            return method(*arguments, **options)
        finally:
            spent[name] += thread_time() - start

    return call


def step_counts(
    sizes: Iterable[int], cardinalities: Iterable[int], n_classes: int, n_features: int
) -> dict[str, int]:
    """Count the steps of one E-step, as the paper does, and those of ours at most.

    Examples
    --------
    >>> step_counts([3, 1], [2, 1], n_classes=5, n_features=10)
    {'forward': 74, 'substitution': 26, 'prior': 200, 'dense': 14}
    """
    # Python's integers: the largest label sets would overflow numpy's.
    pairs = [(int(n), int(k)) for n, k in zip(sizes, cardinalities, strict=True)]
    return {
        "forward": sum(k * 2**k * n**2 for n, k in pairs),
        "substitution": sum(k * 2**k * n for n, k in pairs),
        "prior": sum(n for n, _ in pairs) * n_classes * n_features,
        "dense": sum(2**k * n for n, k in pairs),
    }


def bag_costs(sizes: ArrayLike, cardinalities: ArrayLike) -> np.ndarray:
    """Compute n k 2^k of each bag, by which pruning sorts them; shape (n_bags,).

    Examples
    --------
    >>> bag_costs([3, 1], [2, 1])
    array([24.,  2.])
    """
    return np.multiply(sizes, cardinalities) * 2.0 ** np.asarray(cardinalities)


def cheapest_bags(sizes: ArrayLike, cardinalities: ArrayLike, kept_percent: int) -> np.ndarray:
    """Return the places of the bags that pruning keeps, in their order.

    Examples
    --------
    >>> cheapest_bags([1, 9, 2, 1, 4], [1, 2, 1, 4, 1], kept_percent=70).tolist()
    [0, 2, 4]
    """
    by_cost = np.argsort(bag_costs(sizes, cardinalities), kind="stable")
    return np.sort(by_cost[: len(by_cost) * kept_percent // 100])


def best_time(call: Callable[[], object]) -> float:
    """Return the shortest time, in seconds, that a call takes in many trials."""
    times = []
    begin = thread_time()
    while len(times) < LEAST_CALLS or thread_time() - begin < SECONDS:
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


@lru_cache(maxsize=KEPT)
def fitted_model(data: str, draw: int) -> Any:
    """Fit the published model to a whole data set, once in a process."""
    with counted_warnings():
        return MLR(n_jobs=1).fit(*load(data, draw))


def log_priors(model: MLR, X: np.ndarray) -> np.ndarray:
    """Compute the class log-probabilities of instances; shape (n_instances, n_classes)."""
    return log_softmax(X @ model.coef_.T + model.intercept_, axis=1)


@task
def count_steps(unit: Unit) -> dict[str, int]:
    """Count the steps of an E-step over a data set, by `step_counts`."""
    bags, y = load(unit.data, unit.draw)
    return step_counts(bags.sizes, y.sum(axis=1), y.shape[1], bags.n_features)


@task
def time_e_step(unit: Unit) -> dict[str, float]:
    """Time one E-step at the priors of the fitted model, on one thread.

    As in a fit, the label sets were checked before.
    """
    bags, y = load(unit.data, unit.draw)
    model = fitted_model(unit.data, unit.draw)
    kept = cheapest_bags(bags.sizes, y.sum(axis=1), unit.condition["kept_percent"])
    bags, y = bags[kept], y[kept]
    call = partial(log_priors, model, bags.X)
    uncertified = 0
    if unit.method != "prior":
        warm_up()
        problem = UnionProblem(bags.offsets, y)
        call = answering(problem, call(), unit.method)
        uncertified = int(np.isinf(call().error_bound).sum())
    return {
        "seconds": best_time(call), "uncertified": uncertified,
        "n_instances": int(bags.n_instances),
    }  # fmt: skip


def answering(problem: UnionProblem, log_prior: np.ndarray, method: Any) -> Callable[[], Any]:
    """Return a call that infers by a method of ours or of the paper, on one thread."""
    if method in RUNNERS:
        return partial(infer_as_published, problem, log_prior, method)
    return partial(problem.infer, log_prior, method=method, n_jobs=1)


def count_unit(plan: Plan, name: str) -> Unit:
    """Return the unit of work that counts steps; all draws have the same."""
    return Unit(count_steps, name, plan.seed)


def e_step_unit(plan: Plan, name: str, draw: int, method: str, kept_percent: int = 100) -> Unit:
    """Return the unit of work that times one E-step."""
    return Unit(
        time_e_step, name, draw, method, condition={"kept_percent": kept_percent}, seed=plan.seed
    )


@task
def time_random_bags(unit: Unit) -> dict[str, float]:
    """Time the inference of bags of one size, at random priors, on one thread."""
    n_bags, n_instances, n_labels = (
        unit.condition[each] for each in ("n_bags", "n_instances", "n_labels")
    )
    logits = np.random.default_rng(unit.seed).normal(size=(n_bags * n_instances, n_labels + 1))
    y = np.ones((n_bags, n_labels + 1), dtype=int)
    y[:, -1] = 0
    warm_up()
    problem = UnionProblem(np.arange(n_bags + 1) * n_instances, y)
    log_prior = log_softmax(logits, axis=1)
    return {"seconds": best_time(answering(problem, log_prior, unit.method)) / n_bags}
