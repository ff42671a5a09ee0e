"""What a fit will cost, before it begins: operations, bytes, seconds, memory; and which bags cost.

An iteration is one evaluation of the objective, as L-BFGS makes about one for each. Its work is
linear in bags, instances, features and classes, but for the inference of a bag, which grows with
the sets of its labels. Both are counted; some of the same work, timed on this machine, tells how
long they take.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from operator import methodcaller
from pathlib import Path
from time import perf_counter
from typing import Any, Unpack

import numpy as np

from unbag._threads import FIT_WORTHWHILE, job_count, one_blas_thread, thread_map
from unbag.bags import as_bags, offsets_of
from unbag.fitting import Part
from unbag.fitting.parts import runs_of_bags
from unbag.frames import ColumnRoles
from unbag.labels import LabelSetsLike
from unbag.learning import training_set
from unbag.union import UnionProblem
from unbag.union.dispatch import MANY_LABELS, MOST_LABELS, READING_COST, estimated_costs

#: Shares of the bags for which `Cost.pruning` says what it would save to leave them out.
PRUNED = (0.01, 0.05, 0.1)
# Kinds of bags (instances, labels, classes allowed) up to which each is looked at by itself.
MOST_KINDS = 2000
# What is measured: calls, and threads' shares of parts.
ROUNDS = 5
# Bags of many labels are timed by themselves, for so many seconds; so many of a kind at a time, or
# instances.
PATIENCE = 0.5
MOST_OF_A_KIND = 20
MOST_INSTANCES_OF_A_KIND = 20_000
# Of what a part makes of its instances, so many numbers for each class are alive at a time.
ALIVE = 6
# Blocks of features that a fit out of core holds: read, waiting, and asked.
BLOCKS_BYTES = 100 << 20
# What Python and the libraries of a fit take themselves.
BASE_BYTES = 300 << 20


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
    memory : int
        Bytes that a fit takes at most, features included.
    memory_em : int
        The same for ``solver="em"``, which keeps logits and posteriors.
    memory_out_of_core : int
        The same when features stay on disk.
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
    n_columns = indicator.shape[1] + background
    n_required = (indicator == 1).sum(axis=1)
    n_allowed = (indicator != 0).sum(axis=1) + background
    sizes = bags.sizes
    linear = linear_operations(n_columns, bags.n_features)
    inference = inference_operations(sizes, n_required, n_allowed)
    n_multiplications = bags.n_instances * n_columns * (bags.n_features + 1)
    n_threads = job_count(n_jobs) if n_multiplications >= FIT_WORTHWHILE else 1
    pace = measured_pace(n_columns, bags.n_features, str(bags.dtype), n_threads)
    # An operation of the one kind takes longer than one of the other.
    few = inference_operations(sizes, np.minimum(n_required, MANY_LABELS), n_allowed)
    inferring = inference * pace.inference
    inferring *= measured_to_counted(sizes, n_required, n_allowed, inferring, n_threads)
    seconds = sizes * linear * pace.linear + inferring
    total = float(seconds.sum() + pace.fixed)
    most = np.argsort(-seconds, kind="stable")
    ids = bags.ids[most[:10]]
    feature_bytes = bags.n_instances * bags.n_features * bags.dtype.itemsize
    small = memory_of_bags(len(bags), bags.n_instances, indicator, n_threads, n_columns)
    return Cost(
        n_bags=len(bags),
        n_instances=bags.n_instances,
        n_features=bags.n_features,
        n_classes=n_columns,
        operations=float(bags.n_instances * linear + inference.sum()),
        bytes=feature_bytes,
        seconds=total,
        n_threads=n_threads,
        memory=small + feature_bytes,
        memory_em=small + feature_bytes + 3 * 8 * bags.n_instances * n_columns,
        memory_out_of_core=small + min(feature_bytes, BLOCKS_BYTES),
        expensive=[
            ExpensiveBag(id, int(sizes[b]), int(n_required[b]), float(seconds[b] / total))
            for id, b in zip(ids.tolist(), most, strict=False)
        ],
        pruning={
            share: float(seconds[most[: int(share * len(bags))]].sum() / total) for share in PRUNED
        },
        unknown=float((inferring - np.minimum(few * pace.inference, inferring)).sum() / total),
    )


def linear_operations(n_classes: int, n_features: int) -> float:
    """Count those of one instance: two products with the weights, and a softmax."""
    return 4.0 * n_classes * (n_features + 1) + 10.0 * n_classes


def inference_operations(
    sizes: np.ndarray, n_required: np.ndarray, n_allowed: np.ndarray
) -> np.ndarray:
    """Count those of the inference of each bag, in units of dense's per instance and label set.

    Where there are many labels, that depends on what is believed of the instances; counted is a
    model that knows nothing yet.
    """
    n_sets = 2.0 ** np.minimum(n_required, MOST_LABELS)
    found = sizes * (n_sets + READING_COST * (1.0 + n_allowed))
    many, kinds, which = kinds_of_many_labels(sizes, n_required, n_allowed)
    if len(kinds) <= MOST_KINDS:
        costs = np.array([operations_of_kind(*kind) for kind in kinds])
        found[many] = costs[which] if len(many) else 0.0
    return found


def kinds_of_many_labels(
    sizes: np.ndarray, n_required: np.ndarray, n_allowed: np.ndarray
) -> tuple[np.ndarray, list[tuple[int, int, int]], np.ndarray]:
    """Return the bags of many labels, their kinds (size, labels, classes), and which has which."""
    many = np.flatnonzero((n_required > MANY_LABELS) & (n_required <= sizes))
    kinds, which = np.unique(
        np.stack([sizes, n_required, n_allowed])[:, many], axis=1, return_inverse=True
    )
    return many, [tuple(kind) for kind in kinds.T.tolist()], which.ravel()


@lru_cache(maxsize=MOST_KINDS)
def operations_of_kind(size: int, n_required: int, n_allowed: int) -> float:
    """Count those of one bag whose instances may be anything."""
    problem, log_prior = bags_of_kind(1, size, n_required, n_allowed)
    return float(estimated_costs(problem.layout, log_prior, "auto", 1e-9)[0])


def bags_of_kind(
    n_bags: int, size: int, n_required: int, n_allowed: int
) -> tuple[UnionProblem, np.ndarray]:
    """Make bags that are all alike, whose instances may be anything."""
    y = np.tile(np.where(np.arange(n_allowed) < n_required, 1, -1), (n_bags, 1))
    log_prior = np.full((n_bags * size, n_allowed), -np.log(n_allowed))
    return UnionProblem(np.arange(n_bags + 1) * size, y), log_prior


def measured_to_counted(
    sizes: np.ndarray,
    n_required: np.ndarray,
    n_allowed: np.ndarray,
    seconds: np.ndarray,
    n_threads: int,
) -> np.ndarray:
    """Time bags of many labels, whose kernels have each their own pace.

    Parameters
    ----------
    sizes, n_required, n_allowed : ndarray of shape (n_bags,)
    seconds : ndarray of shape (n_bags,)
        Of the inference of each bag, as they are counted.
    n_threads : int
        By which these seconds are shared.

    Returns
    -------
    ndarray of shape (n_bags,)
        What the seconds are to be multiplied by; 1 for bags of few labels. The kinds that take
        most are timed, as far as that is quick; others are taken to be like these.
    """
    ratios = np.ones(len(sizes))
    many, kinds, which = kinds_of_many_labels(sizes, n_required, n_allowed)
    of_kind = np.bincount(which, seconds[many], len(kinds))
    found = np.full(len(kinds), np.nan)
    until = perf_counter() + PATIENCE
    for kind in np.argsort(-of_kind):
        counted = of_kind[kind] / np.count_nonzero(which == kind)
        if perf_counter() > until:
            break
        if counted < PATIENCE / ROUNDS:
            found[kind] = seconds_of_kind(*kinds[kind]) / n_threads / counted
    if np.isfinite(found).any():
        found[np.isnan(found)] = np.nanmedian(found)
        ratios[many] = found[which]
    return ratios


@lru_cache(maxsize=MOST_KINDS)
def seconds_of_kind(size: int, n_required: int, n_allowed: int) -> float:
    """Time the inference of one bag, on one thread, among others of its kind."""
    few = min(MOST_OF_A_KIND * 1024 / 2**n_required, MOST_INSTANCES_OF_A_KIND / size)
    n_bags = int(np.clip(few, 1, MOST_OF_A_KIND))
    problem, log_prior = bags_of_kind(n_bags, size, n_required, n_allowed)
    return shortest(lambda: problem.answer(log_prior, n_jobs=1), rounds=2) / n_bags


def memory_of_bags(
    n_bags: int, n_instances: int, indicator: np.ndarray, n_threads: int, n_columns: int
) -> int:
    """Count the bytes that a fit takes beside the features."""
    # Label sets as they came and as they are used, twice packed; sizes and places of bags.
    per_bag = 4 * indicator.nbytes + 8 * np.count_nonzero(indicator) * 2 + 20 * 8 * n_bags
    rows = min(n_instances, 4096)
    return int(BASE_BYTES + per_bag + n_threads * ALIVE * 8 * rows * n_columns)


@dataclass(frozen=True)
class MeasuredPace:
    """Seconds of an operation on this machine, threads helping.

    Attributes
    ----------
    linear, inference : float
    fixed : float
        Seconds of an iteration, however few bags there are.
    """

    linear: float
    inference: float
    fixed: float


@lru_cache(maxsize=16)
def measured_pace(n_classes: int, n_features: int, dtype: str, n_threads: int) -> MeasuredPace:
    """Time the work of an iteration on some bags that are like others: ten instances, two labels.

    Parameters
    ----------
    n_classes, n_features : int
    dtype : str
        Of the features.
    n_threads : int

    Returns
    -------
    MeasuredPace
    """
    rng = np.random.default_rng(0)
    # As many as make some parts for each thread, but no more than a few million numbers.
    n_bags = 2 * n_threads * int(np.clip((1 << 18) / n_features, 20, 400))
    y = np.zeros((n_bags, n_classes), dtype=np.int8)
    y[np.arange(n_bags)[:, None], rng.integers(0, n_classes, (n_bags, 2))] = 1
    sizes = np.full(n_bags, 10)
    X = rng.normal(size=(sizes.sum(), n_features)).astype(dtype)
    W = 0.1 * rng.normal(size=(n_classes, n_features + 1))
    offsets = offsets_of(sizes)
    parts = []
    for own in runs_of_bags(np.arange(n_bags), sizes, W.size):
        rows = slice(int(offsets[own[0]]), int(offsets[own[-1] + 1]))
        parts.append(Part(X, rows, own, UnionProblem(offsets_of(sizes[own]), y[own])))
    whole = UnionProblem(offsets, y)
    log_prior = np.full((len(X), n_classes), -np.log(n_classes))
    single = Part(X, slice(0, 10), np.arange(1), UnionProblem([0, 10], y[:1]))
    with thread_map(n_threads, np.inf) as run:
        fixed = shortest(lambda: list(run(methodcaller("statistics", W), [single])))
        all_seconds = shortest(lambda: list(run(methodcaller("statistics", W), parts)))
    with one_blas_thread():
        inferring = shortest(lambda: whole.answer(log_prior, n_jobs=1)) / n_threads
    n_inference = inference_operations(sizes, (y == 1).sum(axis=1), (y != 0).sum(axis=1)).sum()
    # Some of the work is shared, so that it would be counted twice.
    rest = max(all_seconds - inferring, 0.3 * all_seconds)
    return MeasuredPace(
        rest / (len(X) * linear_operations(n_classes, n_features)),
        min(inferring, 0.7 * all_seconds) / n_inference,
        fixed,
    )


def shortest(call: Any, rounds: int = ROUNDS) -> float:
    """Return the shortest time of some calls; the first one compiles, and does not count."""
    call()
    times = []
    for _ in range(rounds):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


# Memory.


def total_memory() -> int | None:
    """Return the bytes of memory that this process may use; None where nobody can tell."""
    limits = []
    with suppress(ValueError, OSError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        # "max" where there is no limit.
        with suppress(ValueError, OSError):
            limits.append(int(Path(file).read_text()))
    return min(limits, default=None)


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
