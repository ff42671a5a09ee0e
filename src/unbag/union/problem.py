"""Label sets of bags, prepared once for many inferences.

A `UnionProblem` holds the label sets of bags, checked and packed. Given the priors of an instance
classifier, it computes likelihoods and posteriors. Fits do this at every iteration.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._compile import kernel
from unbag._threads import INFERENCE_WORTHWHILE, batches, job_count, pool_map
from unbag.bags import bag_of, offsets_of
from unbag.groups import Groups, checked_groups, runs

from .dispatch import PlainBags, estimated_costs
from .groups import GroupedBags, allow_members, needed_groups
from .layout import METHODS, Answers, Layout, Method, pack
from .noise import infer_noisily
from .policy import (
    ON_IMPOSSIBLE,
    ON_INTRACTABLE,
    OnImpossible,
    OnIntractable,
    check_tractable,
    infer_and_relax,
    most_certain_labels,
)
from .rates import checked_rates

NAMES: np.ndarray = np.array([*METHODS, "none"])
# The types that are accepted as required groups.
GroupsLike: TypeAlias = Groups | Iterable[Collection[Collection[int]]]
# The rounding errors of larger log-priors are too large for posteriors.
LARGEST = 1e12


@dataclass(frozen=True, eq=False)
class Inference:
    """The result of inference: likelihoods of label sets and posteriors of instances.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_bags,)
        Log-probability of the label set of each bag; ``-inf`` if it is impossible.
    posterior : ndarray of shape (n_instances, n_classes)
        Class probabilities of each instance, given the label set of its bag; zeros in an impossible
        bag. This is also the gradient of the sum of log-likelihoods with respect to the log-priors.
    error_bound : ndarray of shape (n_bags,)
        Largest possible error of the posteriors of each bag, and of its log-likelihood relative to
        ``max(1, abs(log_likelihood))``. Infinite if the chosen method could not certify its result:
        do not use it then.
    method : ndarray of str of shape (n_bags,)
        The kernel that was used for each bag; "none" for an impossible one.
    relaxed : ndarray of bool of shape (n_bags, n_classes)
        Required classes, and classes of required groups, that were treated as optional because of
        `on_impossible` or `on_intractable`. The results of these bags are for the relaxed label
        sets.
    """

    log_likelihood: np.ndarray
    posterior: np.ndarray
    error_bound: np.ndarray
    method: np.ndarray
    relaxed: np.ndarray


class UnionProblem:
    """Label sets of bags, checked and packed for inference.

    Prepare it once, and use it with many priors; `unbag.union.infer` prepares it at each call.

    Parameters
    ----------
    offsets : array-like of int of shape (n_bags + 1,)
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    y : array-like of shape (n_bags, n_classes)
        1 for a required class, 0 for a forbidden one, -1 for an optional one.
    instance_labels : array-like of int of shape (n_instances,), optional
        The class (column) of the instances whose label is known, -1 for the others.
    groups : list of lists of lists of int, or Groups, optional
        For each bag, groups of classes, each as a list of columns: at least one instance has one of
        the classes. Their classes are allowed even if `y` forbids them, and required only if it
        requires them.

    Attributes
    ----------
    offsets : ndarray of int64 of shape (n_bags + 1,)
    y : ndarray of int8 of shape (n_bags, n_classes)
    instance_labels : ndarray of int64 of shape (n_instances,) or None
        None if no label is known.
    groups : Groups or None
        As given.
    layout : Layout
        The label sets for the kernels: packed, so that each bag has only the columns it allows.
        The classes of groups are optional there.
    plain, grouped : PlainBags, GroupedBags or None
        The bags without and with groups that no other requirement implies, for the kernels.

    Raises
    ------
    ValueError
        When an argument is malformed; names the bag or the row.

    Examples
    --------
    >>> import numpy as np
    >>> from unbag.union import UnionProblem
    >>> problem = UnionProblem([0, 2], [[1, 1]])
    >>> for confidence in (0.5, 0.9):
    ...     prior = [[confidence, 1 - confidence], [0.5, 0.5]]
    ...     print(problem.infer(np.log(prior)).posterior[1].round(2))
    [0.5 0.5]
    [0.1 0.9]
    """

    def __init__(
        self,
        offsets: ArrayLike,
        y: ArrayLike,
        instance_labels: ArrayLike | None = None,
        groups: GroupsLike | None = None,
    ) -> None:
        # Copies, so that checked values stay valid even if the caller's arrays change.
        self.offsets: NDArray[np.int64] = checked_offsets(offsets).copy()
        self.y: NDArray[np.int8] = checked_label_sets(y, len(self.offsets) - 1).copy()
        self.groups: Groups | None = None
        if groups is not None:
            self.groups = checked_groups(groups, *self.y.shape)
        allowing = self.y
        if self.groups is not None:
            allowing = self.y.copy()
            allow_members(*self.groups.packed, allowing)
        pinned = checked_pins(instance_labels, self.offsets, allowing).copy()
        self.instance_labels: NDArray[np.int64] | None = pinned if len(pinned) else None
        packed = pack(self.offsets, allowing, pinned)
        fields = self.y.shape[1], self.offsets, *packed, pinned
        self.layout: Layout = Layout._make(fields)
        self.grouped: GroupedBags | None = None
        plain = np.arange(self.n_bags)
        if (needed := self.needed_groups()) is not None:
            self.grouped = GroupedBags(self.layout, needed)
            plain = (needed.per_bag == 0).nonzero()[0]
        self.plain: PlainBags = PlainBags(self.layout, plain)

    def needed_groups(self) -> Groups | None:
        """Return the groups that no other requirement of their bag implies; None if there are none.

        A group is implied by a required class in it, by one that a pinned instance shows, and by
        another group that lies within it.
        """
        groups = self.groups
        if groups is None:
            return None
        given = self.y, self.offsets, self.layout.pinned
        needed = groups.chosen(needed_groups(*groups.packed, *given))
        return needed if needed.n_groups else None

    def __repr__(self) -> str:
        n_bags, n_classes = self.y.shape
        return f"UnionProblem({n_bags} bags, {self.n_instances} instances, {n_classes} classes)"

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.y)

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags."""
        return int(self.offsets[-1])

    @property
    def impossible(self) -> np.ndarray:
        """Whether no labelling can produce the label set of each bag, for any finite priors.

        Such bags have too few instances for the required classes, or instances but no allowed
        class.
        """
        layout = self.layout
        nothing_allowed = (layout.n_free > 0) & (layout.n_allowed == 0)
        impossible = (self.n_required > layout.n_free) | nothing_allowed
        if self.grouped is not None:
            # An instance may serve several requirements that overlap.
            for b in (impossible & self.overlaps).nonzero()[0].tolist():
                impossible[b] = not self.grouped.has_enough_instances(b)
        return impossible

    @property
    def n_required(self) -> np.ndarray:
        """Number of classes and groups that each bag requires of instances that are not pinned.

        Groups that other requirements imply do not count.
        """
        return self.layout.n_required if self.grouped is None else self.grouped.columns.n_required

    @property
    def overlaps(self) -> np.ndarray:
        """Whether each bag requires groups of classes that overlap."""
        if self.grouped is None:
            return np.zeros(self.n_bags, dtype=bool)
        return self.grouped.columns.overlaps

    @property
    def named(self) -> np.ndarray:
        """Whether each bag requires each class, or a group that contains it."""
        named = self.y == 1
        return named if self.groups is None else named | self.groups.named()

    @property
    def allowed(self) -> np.ndarray:
        """Whether each bag allows each class."""
        allowed = self.y != 0
        return allowed if self.groups is None else allowed | self.groups.named()

    def allowed_labels(self) -> np.ndarray:
        """Return whether each instance may have each class, of shape (n_instances, n_classes).

        It may have any class that its bag does not forbid, or only its known class.
        """
        allowed = np.repeat(self.allowed, np.diff(self.offsets), axis=0)
        if self.instance_labels is not None:
            known = np.flatnonzero(self.instance_labels >= 0)
            allowed[known] = False
            allowed[known, self.instance_labels[known]] = True
        return allowed

    def relaxed(self, labels: np.ndarray) -> "UnionProblem":
        """Return a copy of the problem in which some labels are optional.

        Groups with one of these classes are not required any more; their classes stay allowed.

        Parameters
        ----------
        labels : ndarray of bool of shape (n_bags, n_classes)
        """
        if not labels.any():
            return self
        y, groups = np.where(labels, np.int8(-1), self.y), self.groups
        if groups is not None:
            dropped = groups.any_of(labels)
            y[(y == 0) & groups.chosen(dropped).named()] = -1
            groups = groups.chosen(~dropped)
        return UnionProblem(self.offsets, y, self.instance_labels, groups)

    def take(self, bags: np.ndarray) -> "UnionProblem":
        """Return the problem of some bags.

        Parameters
        ----------
        bags : ndarray of int
            Their positions.
        """
        sizes = np.diff(self.offsets)[bags]
        pinned, groups = self.instance_labels, self.groups
        if pinned is not None:
            pinned = pinned[runs(self.offsets[:-1][bags], sizes)]
        groups = None if groups is None else groups[bags]
        return UnionProblem(offsets_of(sizes), self.y[bags], pinned, groups)

    def infer(
        self,
        log_prior: ArrayLike,
        *,
        method: Method = "auto",
        tolerance: float = 1e-9,
        on_impossible: OnImpossible = "keep",
        on_intractable: OnIntractable = "raise",
        missed_rate: ArrayLike | None = None,
        false_rate: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Inference:
        """Condition the instance labels on the label sets; see `unbag.union.infer`.

        Parameters
        ----------
        log_prior : array-like of shape (n_instances, n_classes)
        method, tolerance, on_impossible, on_intractable, n_jobs
            As in `unbag.union.infer`.
        missed_rate, false_rate : float or array-like, optional
            As in `unbag.union.infer`; also of shape (n_bags, n_classes).

        Returns
        -------
        Inference
        """
        for name, choice, choices in (
            ("on_impossible", on_impossible, ON_IMPOSSIBLE),
            ("on_intractable", on_intractable, ON_INTRACTABLE),
        ):
            if choice not in choices:
                raise ValueError(f"{name} must be one of {choices}; got {choice!r}.")
        log_prior = checked_log_prior(log_prior, self.offsets, self.y.shape[1])
        rates = checked_rates(missed_rate, false_rate, self.y)
        if rates is not None:
            noisy, relaxed = infer_noisily(
                self, log_prior, rates,
                on_impossible=on_impossible, on_intractable=on_intractable,
                method=method, tolerance=tolerance, n_jobs=n_jobs,
            )  # fmt: skip
            answers = noisy.log_likelihood, noisy.posterior, noisy.error_bound
            return Inference(*answers, NAMES[noisy.served], relaxed)
        answer = Answers.into(np.zeros(log_prior.shape), self.n_bags)

        def infer(problem, bags):
            # Relaxing labels does not change which classes a bag allows, so that the answers of
            # other bags keep their places.
            fill(problem, bags, log_prior, answer, method, tolerance, n_jobs)
            return answer

        def labels_to_relax(problem, bags):
            return most_certain_labels(problem, log_prior, bags)

        given = infer, labels_to_relax, on_impossible, on_intractable
        problem, _, relaxed, intractable = infer_and_relax(self, *given)
        check_tractable(problem, intractable)
        return Inference(
            log_likelihood=answer.log_likelihood,
            posterior=answer.posterior,
            error_bound=answer.error_bound,
            method=NAMES[answer.served],
            relaxed=relaxed,
        )

    def answer(
        self,
        log_prior: np.ndarray,
        *,
        method: Method = "auto",
        tolerance: float = 1e-9,
        n_jobs: int | None = None,
    ) -> Answers:
        """Infer without relaxing any bag.

        Parameters
        ----------
        log_prior : C-contiguous ndarray of float64 of shape (n_instances, n_classes)
            Without NaN or +inf; this is not checked.
        method, tolerance, n_jobs
            As in `unbag.union.infer`.

        Returns
        -------
        Answers
            Impossible bags are kept, and intractable ones have no result.
        """
        answer = Answers.into(np.zeros(log_prior.shape), self.n_bags)
        fill(self, np.arange(self.n_bags), log_prior, answer, method, tolerance, n_jobs)
        return answer

    def residual(
        self,
        logits: np.ndarray,
        prior: np.ndarray,
        largest: np.ndarray,
        total: np.ndarray,
    ) -> Answers:
        """Subtract the posterior from the prior in place, for fits, on one thread.

        Classes come first here, so that the values of one class are contiguous, and a bag of few
        labels is read and written in place.

        Parameters
        ----------
        logits : ndarray of float64 of shape (n_classes, n_instances)
        prior : ndarray of float64 of shape (n_classes * n_instances + LANES,)
            Their softmax, flat, with space for the lanes of the last bag.
        largest, total : ndarrays of float64 of shape (n_instances,)
            The largest logit of each instance, and the sum of the exponentials of its logits minus
            that. They convert logits to log-priors.

        Returns
        -------
        Answers
            Impossible bags are kept, and intractable ones have no result. There are no posteriors.
        """
        answer = Answers.into(np.empty((0, 0)), self.n_bags)
        for kind in (self.grouped, self.plain):
            if kind is not None:
                kind.subtract(logits, prior, largest, total, answer)
        return answer


def fill(
    problem: UnionProblem,
    bags: NDArray[np.intp],
    log_prior: np.ndarray,
    answer: Answers,
    method: Method,
    tolerance: float,
    n_jobs: int | None,
) -> None:
    """Write the answers of some bags, on several threads if there is enough work."""
    if method != "auto" and method not in METHODS:
        raise ValueError(f"method must be one of {('auto', *METHODS)}; got {method!r}.")
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must be positive and below 1; got {tolerance!r}.")
    layout, grouped = problem.layout, problem.grouped
    n_threads, cost = job_count(n_jobs), None
    if n_threads > 1 and len(bags) > 1:
        cost = estimated_costs(layout, log_prior, method, tolerance)
        if grouped is not None:
            own = grouped.bags
            cost[own] += layout.n_free[own] * np.exp2(np.minimum(problem.n_required[own], 22))
        cost = cost[bags]
    if cost is None or cost.sum() < n_threads * INFERENCE_WORTHWHILE:
        n_threads = 1

    def work(bags):
        given = log_prior, answer, method, tolerance
        if grouped is None:
            problem.plain.infer(bags, *given)
            return
        has_groups = grouped.has_groups[bags]
        for kind, own in ((grouped, bags[has_groups]), (problem.plain, bags[~has_groups])):
            if len(own):
                kind.infer(own, *given)

    if n_threads == 1 and len(bags) == 1:
        work(bags)
        return
    with pool_map(n_threads) as run:
        list(run(work, batches(bags, cost, n_threads)))


def checked_offsets(offsets: ArrayLike) -> NDArray[np.int64]:
    """Return `offsets` as int64, or raise an error that names an invalid bag."""
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or len(offsets) == 0 or offsets.dtype.kind not in "iu":
        raise ValueError(
            "offsets must be a 1-D array of n_bags + 1 integers; got "
            f"dtype {offsets.dtype} and shape {offsets.shape}."
        )
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if offsets[0] != 0:
        raise ValueError(f"offsets must start at 0; bag 0 starts at {offsets[0]}.")
    decreases = offsets[1:] < offsets[:-1]
    if decreases.any():
        b = decreases.argmax()
        raise ValueError(
            f"offsets must not decrease; bag {b} would run from {offsets[b]} to {offsets[b + 1]}."
        )
    return offsets


def checked_label_sets(y: ArrayLike, n_bags: int) -> NDArray[np.int8]:
    """Return `y` as int8, or raise an error that names an invalid bag and class."""
    y = np.asarray(y)
    if y.ndim != 2 or y.shape[0] != n_bags:
        raise ValueError(
            f"y must have one row per bag and one column per class: shape ({n_bags}, n_classes); "
            f"got shape {y.shape}."
        )
    if y.dtype.kind not in "iufb":
        raise ValueError(f"y must hold the numbers 1, 0 and -1; got dtype {y.dtype}.")
    valid = (y == 1) | (y == 0) | (y == -1)
    if not valid.all():
        b, c = np.argwhere(~valid)[0]
        raise ValueError(
            f"y must hold 1 (present), 0 (absent) or -1 (unknown); bag {b}, class {c} "
            f"holds {y[b, c]!r}."
        )
    return y.astype(np.int8, order="C", copy=False)


def checked_pins(
    instance_labels: ArrayLike | None, offsets: np.ndarray, y: np.ndarray
) -> NDArray[np.int64]:
    """Return the pinned classes as int64, or raise an error that names an invalid instance."""
    if instance_labels is None:
        return np.empty(0, dtype=np.int64)
    labels = np.asarray(instance_labels)
    n_instances = offsets[-1]
    if labels.size == 0:
        labels = labels.astype(np.int64)
    if labels.shape != (n_instances,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"instance_labels must hold one integer per instance (a column of y, or -1 where the "
            f"label is not known): shape ({n_instances},); got dtype {labels.dtype} and shape "
            f"{labels.shape}."
        )
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    outside = np.flatnonzero((labels < -1) | (labels >= y.shape[1]))
    if len(outside):
        i = outside[0]
        raise ValueError(
            f"instance_labels must be columns of y, 0 to {y.shape[1] - 1}, or -1; instance {i} "
            f"in bag {bag_of(offsets, i)} holds {labels[i]}."
        )
    known = np.flatnonzero(labels >= 0)
    if len(known) == 0:
        return np.empty(0, dtype=np.int64)
    bags = np.searchsorted(offsets, known, side="right") - 1
    forbidden = np.flatnonzero(y[bags, labels[known]] == 0)
    if len(forbidden):
        i = known[forbidden[0]]
        raise ValueError(
            f"instance {i} in bag {bags[forbidden[0]]} is pinned to class {labels[i]}, which the "
            f"bag's label set forbids; correct the instance label, or mark the class as present "
            f"(1) or unknown (-1) in y."
        )
    return labels


def checked_log_prior(
    log_prior: ArrayLike, offsets: np.ndarray, n_classes: int
) -> NDArray[np.float64]:
    """Return `log_prior` as float64, or raise an error that names an invalid row."""
    log_prior = np.asarray(log_prior)
    shape = (int(offsets[-1]), n_classes)
    if log_prior.ndim == 2 and log_prior.shape[0] != shape[0]:
        raise ValueError(
            f"offsets must end at the number of instances, {log_prior.shape[0]}; the last bag, "
            f"{len(offsets) - 2}, ends at {shape[0]}."
        )
    if log_prior.shape != shape:
        raise ValueError(
            f"log_prior must have one row per instance and one column per class of y: shape "
            f"{shape}; got shape {log_prior.shape}."
        )
    if log_prior.dtype.kind not in "fiub":
        raise ValueError(f"log_prior must hold numbers; got dtype {log_prior.dtype}.")
    log_prior = np.ascontiguousarray(log_prior, dtype=np.float64)
    if are_within(log_prior.reshape(-1), LARGEST):
        return log_prior
    if not log_prior.max(initial=-math.inf) < math.inf:
        row = np.flatnonzero(~(log_prior < math.inf).all(axis=1))[0]
        bad = log_prior[row][~(log_prior[row] < math.inf)][0]
        raise ValueError(
            f"log_prior must be finite or -inf; row {row}, in bag {bag_of(offsets, row)}, "
            f"holds {bad}."
        )
    row, c = np.argwhere((np.abs(log_prior) > LARGEST) & (log_prior > -math.inf))[0]
    raise ValueError(
        f"log_prior must lie within {LARGEST:g} of zero, or doubles cannot tell such numbers "
        f"apart; row {row}, in bag {bag_of(offsets, row)}, holds {log_prior[row, c]:g}. Use -inf "
        "to exclude a class."
    )


@kernel
def are_within(values, limit):
    """Return whether all values are within a limit of zero, or -inf, in one vectorised pass."""
    # LLVM vectorises sums.
    n_within = 0
    for i in range(values.shape[0]):
        value = values[i]
        n_within += (value <= limit) & ((value >= -limit) | (value == -math.inf))
    return n_within == values.shape[0]
