"""What a fit will cost, before it begins: operations, seconds, memory; and which bags cost most.

An iteration is one evaluation of the objective; L-BFGS needs about one for each. Its operations are
counted: they are linear in bags, instances, features and classes, but for the inference of a bag,
which grows with the subsets of its labels. How long an operation takes is measured on this machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from operator import methodcaller
from time import perf_counter
from typing import Any, Unpack

import numpy as np

from unbag._threads import FIT_WORTHWHILE, job_count, thread_map
from unbag.bags import Bags, as_bags, offsets_of
from unbag.fitting import make_parts
from unbag.frames import ColumnRoles
from unbag.labels import LabelSetsLike
from unbag.learning import training_set
from unbag.union import UnionProblem
from unbag.union.dispatch import MANY_LABELS, MOST_LABELS, READING_COST, estimated_costs

#: Shares of the bags for which `Cost.pruning` says what is saved by leaving them out.
PRUNED = (0.01, 0.05, 0.1)
# Seconds that may be spent on timing bags of many labels.
MEASURING_SECONDS = 0.5
# Arrays of shape (n_classes, n_instances) that a part needs at a time.
ARRAYS_OF_PART = 6
# Blocks of features that a fit out of core holds, and what Python and libraries take.
BLOCKS_BYTES, BASE_BYTES = 100 << 20, 300 << 20


@dataclass(frozen=True)
class ExpensiveBag:
    """A bag that costs more than others.

    Attributes
    ----------
    id : object
    n_instances, n_labels : int
    share : float
        Of the seconds of an iteration.
    """

    id: Any
    n_instances: int
    n_labels: int
    share: float


@dataclass(frozen=True)
class Cost:
    """What one iteration of a fit takes.

    Attributes
    ----------
    n_bags, n_instances, n_features, n_classes : int
    operations : float
        Additions and multiplications.
    bytes : int
        Features that are read.
    seconds : float
        On this machine, as measured on a sample.
    n_threads : int
    memory, memory_em, memory_out_of_core : int
        Bytes that a fit takes at most, features included; that of ``solver="em"``, which keeps
        logits and posteriors; that of a fit whose features stay on disk.
    expensive : list of ExpensiveBag
        The ten that cost most.
    pruning : dict of float to float
        For ``prune=0.01`` and so on, the share of the seconds that it would save.
    unknown : float
        The share that would be saved if no bag had more than eight required labels, and the others
        were unknown.
    """

    n_bags: int
    n_instances: int
    n_features: int
    n_classes: int
    operations: float
    bytes: int
    seconds: float
    n_threads: int
    memory: int
    memory_em: int
    memory_out_of_core: int
    expensive: list[ExpensiveBag] = field(repr=False)
    pruning: dict[float, float]
    unknown: float

    def __str__(self) -> str:
        lines = [
            f"An iteration over {self.n_bags:,} bags, {self.n_instances:,} instances, "
            f"{self.n_features:,} features and {self.n_classes:,} classes takes about "
            f"{self.seconds:.2g} seconds here on {self.n_threads} thread"
            f"{'s' * (self.n_threads != 1)}: {self.operations:.2g} operations on "
            f"{in_bytes(self.bytes)}.",
            f"A fit takes about {in_bytes(self.memory)} of memory, by EM "
            f"{in_bytes(self.memory_em)}, out of core {in_bytes(self.memory_out_of_core)}.",
        ]
        if self.expensive:
            first = self.expensive[0]
            total = sum(bag.share for bag in self.expensive)
            lines.append(
                f"The {len(self.expensive)} most expensive bags take {total:.1%} of that; bag "
                f"{first.id}, with {first.n_instances:,} instances and {first.n_labels} labels, "
                f"{first.share:.1%}."
            )
        share, saved = min(self.pruning.items())
        lines.append(
            f"Leaving out the most expensive {share:.0%} of the bags (prune={share:g}) would save "
            f"{saved:.0%}; taking all but {MANY_LABELS} labels of each bag as unknown, "
            f"{self.unknown:.0%}."
        )
        return "\n".join(lines)


def cost(
    X: Any,
    y: LabelSetsLike | None = None,
    *,
    background: bool = False,
    n_jobs: int | None = None,
    **named: Unpack[ColumnRoles],
) -> Cost:
    """Estimate what an iteration of `ORLogisticRegression` on some bags will take.

    Parameters
    ----------
    X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features); or a table
        Or bags that are not in memory (`unbag.out_of_core.StoredBags`). Features are not looked at.
        A table is a frame or a path, as `unbag.fit` takes it.
    y : label sets, as in ``fit``
        Only with bags.
    background : bool, default=False
        Whether there is a background class.
    n_jobs : int, optional
        Number of threads, as in `unbag.union.infer`.
    **named
        Roles of columns and `roles`, as in `unbag.fit`.

    Returns
    -------
    Cost
        To be printed, or asked for its attributes.

    Examples
    --------
    >>> from unbag import cost
    >>> from unbag.datasets import make_bags
    >>> data = make_bags(200, random_state=0)
    >>> found = cost(data.bags, data.y)
    >>> found.n_bags, found.operations > 1e5, 0 < found.seconds < 10
    (200, True, True)
    """
    given: dict[str, Any] = dict(named)
    data = training_set(X, y, given.pop("roles", None), **given)
    bags, indicator = as_bags(data.bags), data.label_sets.indicator
    n_bags, n_columns = len(bags), indicator.shape[1] + background
    kinds = np.stack(
        [bags.sizes, (indicator == 1).sum(axis=1), (indicator != 0).sum(axis=1) + background]
    )
    n_logits = bags.n_instances * n_columns
    n_threads = job_count(n_jobs) if n_logits * (bags.n_features + 1) >= FIT_WORTHWHILE else 1
    pace, fixed = measured_pace(n_columns, bags.n_features, str(bags.dtype), n_threads)
    linear = linear_operations(n_columns, bags.n_features)
    inference = inference_operations(*kinds)
    inferring = timed(kinds, pace * inference, n_threads)
    fewer = inference_operations(kinds[0], np.minimum(kinds[1], MANY_LABELS), kinds[2])
    seconds = pace * linear * bags.sizes + inferring
    total = float(seconds.sum() + fixed)
    most = np.argsort(-seconds, kind="stable")
    feature_bytes = bags.n_instances * bags.n_features * bags.dtype.itemsize
    # Label sets as they came and as they are used, twice packed; sizes and places of bags.
    label_bytes = 4 * indicator.nbytes + 16 * np.count_nonzero(indicator) + 160 * n_bags
    part_bytes = ARRAYS_OF_PART * 8 * min(bags.n_instances, 4096) * n_columns
    memory = int(BASE_BYTES + label_bytes + n_threads * part_bytes)
    return Cost(
        n_bags=n_bags,
        n_instances=bags.n_instances,
        n_features=bags.n_features,
        n_classes=n_columns,
        operations=float(bags.n_instances * linear + inference.sum()),
        bytes=feature_bytes,
        seconds=total,
        n_threads=n_threads,
        memory=memory + feature_bytes,
        memory_em=memory + feature_bytes + 3 * 8 * n_logits,
        memory_out_of_core=memory + min(feature_bytes, BLOCKS_BYTES),
        expensive=[
            ExpensiveBag(id, int(kinds[0, b]), int(kinds[1, b]), float(seconds[b] / total))
            for id, b in zip(bags.ids[most[:10]].tolist(), most, strict=False)
        ],
        pruning={
            share: float(seconds[most[: int(share * n_bags)]].sum() / total) for share in PRUNED
        },
        unknown=float(np.maximum(inferring - pace * fewer, 0.0).sum() / total),
    )


def linear_operations(n_classes: int, n_features: int) -> float:
    """Count the operations of one instance: two products with the weights, and a softmax."""
    return 4.0 * n_classes * (n_features + 1) + 10.0 * n_classes


def inference_operations(
    sizes: np.ndarray, n_required: np.ndarray, n_allowed: np.ndarray
) -> np.ndarray:
    """Count the operations of the inference of each bag.

    Where there are many labels, they depend on what is known of the instances; counted is a model
    that knows nothing yet.
    """
    n_sets = 2.0 ** np.minimum(n_required, MOST_LABELS)
    operations = sizes * (n_sets + READING_COST * (1.0 + n_allowed))
    for kind, own in kinds_of_many_labels(np.stack([sizes, n_required, n_allowed])):
        operations[own] = operations_of_kind(*kind)
    return operations


def kinds_of_many_labels(kinds: np.ndarray) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """List each kind of bag (instances, labels, classes) with many labels, and its bags."""
    many = np.flatnonzero((kinds[1] > MANY_LABELS) & (kinds[1] <= kinds[0]))
    found, which = np.unique(kinds[:, many], axis=1, return_inverse=True)
    in_order = many[np.argsort(which.ravel(), kind="stable")]
    ends = np.cumsum(np.bincount(which.ravel(), minlength=found.shape[1]))
    return list(zip(map(tuple, found.T.tolist()), np.split(in_order, ends[:-1]), strict=False))


@lru_cache(maxsize=2000)
def operations_of_kind(size: int, n_required: int, n_allowed: int) -> float:
    """Count the operations of the inference of one bag."""
    problem, log_prior = bag_of_kind(size, n_required, n_allowed)
    return float(estimated_costs(problem.layout, log_prior, "auto", 1e-9)[0])


def bag_of_kind(size: int, n_required: int, n_allowed: int) -> tuple[UnionProblem, np.ndarray]:
    """Make a bag whose instances may be anything."""
    y = np.where(np.arange(n_allowed) < n_required, 1, -1)[None]
    return UnionProblem([0, size], y), np.full((size, n_allowed), -np.log(n_allowed))


def timed(kinds: np.ndarray, counted: np.ndarray, n_threads: int) -> np.ndarray:
    """Return the seconds of the inference of each bag, those of many labels as measured.

    Their kernels have a pace of their own, so the most expensive kinds are timed, as far as that is
    quick; the others are taken to be like these. `counted` are seconds by the number of operations.
    """
    seconds = counted.copy()
    until, ratios, rest = perf_counter() + MEASURING_SECONDS, [], []
    many = kinds_of_many_labels(kinds)
    for kind, own in sorted(many, key=lambda each: -counted[each[1]].sum()):
        if perf_counter() < until and counted[own[0]] * n_threads < MEASURING_SECONDS / 2:
            seconds[own] = seconds_of_kind(*kind) / n_threads
            ratios.append(seconds[own[0]] / counted[own[0]])
        else:
            rest.append(own)
    for own in rest if ratios else ():
        seconds[own] *= np.median(ratios)
    return seconds


@lru_cache(maxsize=2000)
def seconds_of_kind(size: int, n_required: int, n_allowed: int) -> float:
    """Time the inference of one bag on one thread."""
    problem, log_prior = bag_of_kind(size, n_required, n_allowed)
    return shortest(lambda: problem.answer(log_prior, n_jobs=1), rounds=2)


@lru_cache(maxsize=16)
def measured_pace(
    n_classes: int, n_features: int, dtype: str, n_threads: int
) -> tuple[float, float]:
    """Time iterations over sample bags, of ten instances and two labels each.

    Returns the seconds of an operation, and those of an iteration however few bags there are.
    """
    rng = np.random.default_rng(0)
    # As many as make some parts for each thread, but no more than a few million numbers.
    n_bags = 2 * n_threads * int(np.clip((1 << 18) / n_features, 20, 400))
    y = np.zeros((n_bags, n_classes), dtype=np.int8)
    y[np.arange(n_bags)[:, None], rng.integers(0, n_classes, (n_bags, 2))] = 1
    X = rng.normal(size=(10 * n_bags, n_features)).astype(dtype)
    bags = Bags(X, offsets_of(np.full(n_bags, 10)))
    ask = methodcaller("statistics", 0.1 * rng.normal(size=(n_classes, n_features + 1)))
    parts = make_parts(bags, UnionProblem(bags.offsets, y))
    single = make_parts(bags[:1], UnionProblem([0, 10], y[:1]))
    with thread_map(n_threads, np.inf) as run:
        fixed = shortest(lambda: list(run(ask, single)))
        seconds = shortest(lambda: list(run(ask, parts)))
    inference = inference_operations(bags.sizes, (y == 1).sum(axis=1), (y != 0).sum(axis=1))
    return seconds / (inference.sum() + len(X) * linear_operations(n_classes, n_features)), fixed


def shortest(call: Callable[[], object], rounds: int = 5) -> float:
    """Return the shortest time of some calls; the first one compiles, and does not count."""
    call()
    times = []
    for _ in range(rounds):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


def in_bytes(n_bytes: float) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> in_bytes(2_560_000_000), in_bytes(512)
    ('2.6 GB', '512 bytes')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"
