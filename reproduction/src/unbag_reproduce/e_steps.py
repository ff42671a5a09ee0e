"""One E-step over a whole data set: the steps it is counted to take, and the time it takes.

Symbols: a bag has n instances and k labels; there are C classes and d features.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import lru_cache, partial, wraps
from time import perf_counter, thread_time
from typing import Any, cast
from unittest.mock import patch

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax

from unbag.estimators import ORLogisticRegression
from unbag.fitting.parts import Part
from unbag.model_selection.methods import published_model
from unbag.union import UnionProblem

from .data import KEPT, load, load_fold
from .plan import Plan
from .timing import counted_warnings, warm_up
from .unit import Unit

#: Of one measurement: calls are repeated for that much CPU time, and at least that often.
SECONDS = 0.2
LEAST_CALLS = 5


#: Parts of a fit, and the methods of `unbag.fitting.parts.Part` that do them.
PARTS = ("E-step", "gradient", "line search", "rest")
PROFILED = 5


def fit_profile(unit: Unit) -> dict[str, float]:
    """Fit as published to the training bags of a fold, on one thread, with timers in its parts.

    The E-step is the logits of the instances, their priors and the posteriors; the gradient, a
    product of these with the features; the line search has a product, too, and evaluates the lower
    bound at each step. Shares are of one fit, so that other work on the machine hardly matters.

    Returns
    -------
    dict of str to float
        ``E-step``, ``gradient``, ``line search`` and ``rest``: CPU seconds, of the shortest of
        several fits.
    """
    train, y_train, _, _ = load_fold(unit)
    warm_up()
    profiles = [profiled_fit(train, y_train, unit) for _ in range(PROFILED)]
    shortest = min(profiles, key=lambda seconds: sum(seconds.values()))
    return {f"{part} seconds": each for part, each in shortest.items()}


def profiled_fit(bags: Any, y: Any, unit: Unit) -> dict[str, float]:
    """Fit once, and return the CPU seconds of each of `PARTS`."""
    timed_parts = ("expectation", "_infer", "_answer", "lower_bounds")
    spent: dict[str, float] = dict.fromkeys(timed_parts, 0.0)
    with ExitStack() as stack:
        for name in spent:
            stack.enter_context(patch.object(Part, name, timed(getattr(Part, name), name, spent)))
        with counted_warnings():
            start = thread_time()
            published_model(unit.seed, n_jobs=1, inference=unit.method).fit(bags, y)
            total = thread_time() - start
    found = {
        "E-step": spent["expectation"] - spent["_infer"] + spent["_answer"],
        "gradient": spent["_infer"] - spent["_answer"],
        "line search": spent["lower_bounds"],
    }
    return {**found, "rest": total - sum(found.values())}


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

    Parameters
    ----------
    sizes, cardinalities : sequences of int of shape (n_bags,)
        Instances and labels of each bag.
    n_classes, n_features : int

    Returns
    -------
    dict of str to int
        ``forward`` (k 2^k n^2), ``substitution`` (k 2^k n: FAST), ``prior`` (n C d) and ``dense``
        (2^k n), summed over bags.

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

    Parameters
    ----------
    sizes, cardinalities : sequences of int of shape (n_bags,)
    kept_percent : int
        Share of bags to keep, of the lowest n k 2^k; their number is rounded down.

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
def fitted_model(data: str, draw: int, seed: int) -> ORLogisticRegression:
    """Fit the published model to a whole data set, once in a process."""
    with counted_warnings():
        return published_model(seed, n_jobs=1).fit(*load(data, draw))


def log_priors(model: ORLogisticRegression, X: np.ndarray) -> np.ndarray:
    """Compute the class log-probabilities of instances; shape (n_instances, n_classes)."""
    return log_softmax(X @ model.coef_.T + model.intercept_, axis=1)


def count_steps(unit: Unit) -> dict[str, int]:
    """Count the steps of an E-step over a data set, by `step_counts`."""
    bags, y = load(unit.data, unit.draw)
    return step_counts(bags.sizes, y.sum(axis=1), y.shape[1], bags.n_features)


def e_step(unit: Unit) -> dict[str, float]:
    """Time one E-step at the priors of the fitted model, on one thread.

    As in a fit, the label sets were checked before, and the posteriors of forbidden classes are
    not written out.

    Parameters
    ----------
    unit : Unit
        Its method is one of `unbag.union.infer`, or "prior", for the priors that every method
        needs first. Its condition has ``kept_percent``, the share of bags, the cheapest ones.

    Returns
    -------
    dict of str to float
        ``seconds``, the best of many trials; ``uncertified``, the number of bags whose answer has
        no finite error bound; ``n_instances``.
    """
    bags, y = load(unit.data, unit.draw)
    model = fitted_model(unit.data, unit.draw, unit.seed)
    kept = cheapest_bags(bags.sizes, y.sum(axis=1), unit.condition["kept_percent"])
    bags, y = bags[kept], y[kept]
    call = partial(log_priors, model, bags.X)
    uncertified = 0
    if unit.method != "prior":
        warm_up()
        problem = UnionProblem(bags.offsets, y)
        call = partial(problem.answer, call(), method=cast(Any, unit.method), n_jobs=1)
        uncertified = int(np.isinf(call().error_bound).sum())
    return {
        "seconds": best_time(call), "uncertified": uncertified,
        "n_instances": int(bags.n_instances),
    }  # fmt: skip


def count_unit(plan: Plan, name: str) -> Unit:
    """Return the unit of work that counts steps; all draws have the same."""
    return Unit(count_steps, name, plan.seed)


def e_step_unit(plan: Plan, name: str, draw: int, method: str, kept_percent: int = 100) -> Unit:
    """Return the unit of work that times one E-step."""
    return Unit(
        e_step, name, draw, method, condition={"kept_percent": kept_percent}, seed=plan.seed
    )


def random_bags_time(unit: Unit) -> dict[str, float]:
    """Time the inference of bags of one size, at random priors, on one thread.

    Parameters
    ----------
    unit : Unit
        Its method is one of `unbag.union.infer`. Its condition has ``n_instances`` and
        ``n_labels`` of each bag, and ``n_bags``.

    Returns
    -------
    dict of str to float
        ``seconds`` per bag, the best of many trials.
    """
    n_bags, n_instances, n_labels = (
        unit.condition[each] for each in ("n_bags", "n_instances", "n_labels")
    )
    logits = np.random.default_rng(unit.seed).normal(size=(n_bags * n_instances, n_labels + 1))
    y = np.ones((n_bags, n_labels + 1), dtype=int)
    y[:, -1] = 0
    warm_up()
    problem = UnionProblem(np.arange(n_bags + 1) * n_instances, y)
    log_prior = log_softmax(logits, axis=1)
    call = partial(problem.answer, log_prior, method=cast(Any, unit.method), n_jobs=1)
    return {"seconds": best_time(call) / n_bags}
