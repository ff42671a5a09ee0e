"""The policies for impossible and intractable bags.

A label set is *impossible* if no labelling of the instances of the bag has it as its union: there
are too few instances for the required labels, or instances but no allowed label. It is
*intractable* if no exact kernel finishes within its budget of work. The policies are:

========= ================================================================================
``keep``  an impossible bag has likelihood zero and no posterior
``relax`` the labels that stand in the way are treated as optional, and reported as relaxed
``drop``  the bag is left out of a fit
``raise`` an error names all such bags
========= ================================================================================
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unbag._messages import words

from .dispatch import MOST_LABELS
from .layout import IMPOSSIBLE, INTRACTABLE
from .overlaps import MOST_REQUIREMENTS

if TYPE_CHECKING:
    from .problem import UnionProblem

OnImpossible: TypeAlias = Literal["keep", "relax", "raise"]
OnIntractable: TypeAlias = Literal["raise", "relax"]
ON_IMPOSSIBLE: tuple[OnImpossible, ...] = ("keep", "relax", "raise")
ON_INTRACTABLE: tuple[OnIntractable, ...] = ("raise", "relax")
# Requirements that a relaxed intractable bag keeps, without and with overlaps. Fits infer at every
# iteration, so the bag must become cheap, not only tractable.
RELAXED_TO = 16
OVERLAPS_RELAXED_TO = 8
# Number of bags that an error or warning names.
NAMED_BAGS = 5


class _BagError(ValueError):
    """An error that names some bags and can be pickled."""

    def __init__(self, bags: Sequence[Any], *facts: object) -> None:
        super().__init__(bags, *facts)
        self.bags: list[Any] = list(bags)

    def with_ids(self, ids: np.ndarray) -> Self:
        """Return the same error with the ids of the bags instead of their positions.

        Parameters
        ----------
        ids : ndarray of shape (n_bags,)
            The ids of all bags.
        """
        return type(self)(np.asarray(ids)[self.bags].tolist(), *self.args[1:])


class ImpossibleBagError(_BagError):
    """Bags have label sets that no labelling of their instances can produce.

    Parameters
    ----------
    bags : sequence of int or str
        The positions of these bags, or their ids.
    n_bags : int
        Number of all bags.

    Attributes
    ----------
    bags : list
    """

    def __init__(self, bags: Sequence[Any], n_bags: int) -> None:
        super().__init__(bags, n_bags)

    def __str__(self) -> str:
        return (
            f"{describe_impossible(self.bags, self.args[1])} Correct them, or set "
            "on_impossible to choose what to do with them."
        )


class IntractableBagError(_BagError):
    """Bags have more required labels than any exact method can handle within its budget of work.

    Parameters
    ----------
    bags : sequence of int or str
        The positions of these bags, or their ids.
    n_required, n_free : sequences of int
        Numbers of their required classes and groups, and of their instances that are not pinned.

    Attributes
    ----------
    bags : list
    """

    def __init__(
        self, bags: Sequence[Any], n_required: Sequence[int], n_free: Sequence[int]
    ) -> None:
        super().__init__(bags, n_required, n_free)

    def __str__(self) -> str:
        bags, n_required, n_free = self.args
        more = f" There are {len(bags)} such bags: {name_bags(bags)}." if len(bags) > 1 else ""
        return (
            f"bag {bags[0]} has {n_required[0]} required labels and {n_free[0]} instances that are "
            f"not pinned: too many labels for exact inference (up to {MOST_LABELS} always work, or "
            f"{MOST_REQUIREMENTS} if some of them are groups of classes that overlap; more do if "
            "most of them are almost certain to occur). Split the bag into bags of "
            f"fewer labels; mark its most certain labels as unknown (-1 in y) instead of present, "
            f"as on_intractable='relax' does; or pass the labels of known instances.{more}"
        )


class ImpossibleBagWarning(UserWarning):
    """Bags whose label sets no labelling can produce were relaxed, dropped or not counted."""


class IntractableBagWarning(UserWarning):
    """Some labels were treated as optional in bags with too many labels for exact inference."""


def relax_impossible(problem: "UnionProblem", impossible: np.ndarray) -> "UnionProblem":
    """Relax impossible bags, so that all can be annotated.

    In a bag with an empty label set, all classes become optional, so that its instances get the
    classes of their priors.
    """
    if not impossible.any():
        return problem
    nothing = ~problem.allowed.any(axis=1, keepdims=True)
    return problem.relaxed((problem.named | nothing) & impossible[:, None])


def infer_and_relax(
    problem: "UnionProblem",
    infer: Callable[..., Any],
    labels_to_relax: Callable[..., np.ndarray],
    on_impossible: OnImpossible,
    on_intractable: OnIntractable,
) -> tuple["UnionProblem", Any, NDArray[np.bool_], NDArray[np.intp]]:
    """Infer; relax or refuse impossible bags, and relax intractable ones.

    ``infer(problem, bags)`` answers at least these bags, and ``labels_to_relax(problem, bags)``
    finds labels of theirs. Returns the problem that was answered last, its answer, the labels that
    were relaxed, and the bags that are still intractable.
    """
    left, relaxed = problem, np.zeros(problem.y.shape, dtype=bool)
    answer = infer(problem, np.arange(problem.n_bags))
    if (answer.log_likelihood > -np.inf).all():
        return left, answer, relaxed, np.empty(0, np.intp)
    (impossible,) = (answer.served == IMPOSSIBLE).nonzero()
    if len(impossible) and on_impossible == "raise":
        raise ImpossibleBagError(impossible.tolist(), problem.n_bags)
    if len(impossible) and on_impossible == "relax":
        relaxed[impossible] = problem.named[impossible]
        left = problem.relaxed(relaxed)
        answer = infer(left, impossible)
        # Bags that are impossible for another reason keep their label sets.
        relaxed[answer.served == IMPOSSIBLE] = False
    (intractable,) = (answer.served == INTRACTABLE).nonzero()
    if len(intractable) and on_intractable == "relax":
        relaxed |= labels_to_relax(left, intractable)
        left = problem.relaxed(relaxed)
        answer = infer(left, intractable)
        (intractable,) = (answer.served == INTRACTABLE).nonzero()
    return left, answer, relaxed, intractable


def most_certain_labels(
    problem: "UnionProblem", log_prior: np.ndarray, bags: Collection[int]
) -> np.ndarray:
    """Find the requirements of bags that are most certain to be met, except `RELAXED_TO` of them.

    Returns their labels; those of a group are all its classes. In bags whose groups overlap, all
    requirements except `OVERLAPS_RELAXED_TO`.
    """
    certain = np.zeros(problem.y.shape, dtype=bool)
    groups, overlaps = problem.needed_groups(), problem.overlaps
    for b in bags:
        allowed, required = problem.layout.allowed(b), problem.layout.required(b)
        # The required labels come first among the allowed ones.
        rows = log_prior[problem.offsets[b] : problem.offsets[b + 1], allowed]
        prior = np.exp(rows - rows.max(axis=1, keepdims=True))
        share = prior[:, : len(required)] / prior.sum(axis=1, keepdims=True)
        requirements = [[c] for c in required.tolist()]
        if groups is not None and groups.per_bag[b]:
            of_group = [prior[:, np.isin(allowed, group)].sum(axis=1) for group in groups[b]]
            of_group = np.stack(of_group, axis=1) / prior.sum(axis=1, keepdims=True)
            share = np.hstack([share, of_group])
            requirements += groups[b]
        with np.errstate(divide="ignore"):
            log_missing = np.log1p(-np.minimum(share, 1.0)).sum(axis=0)
        order = np.argsort(log_missing, kind="stable")
        kept = OVERLAPS_RELAXED_TO if overlaps[b] else RELAXED_TO
        for which in order[: max(len(requirements) - kept, 0)].tolist():
            certain[b, requirements[which]] = True
    return certain


def check_tractable(problem: "UnionProblem", bags: np.ndarray) -> None:
    """Raise an error that names intractable bags, if there are any."""
    if len(bags):
        raise IntractableBagError(*reasons(problem, np.sort(bags)))


def reasons(problem: "UnionProblem", bags: np.ndarray) -> tuple[list[int], list[int], list[int]]:
    """Return intractable bags, and how many labels they require of how many instances."""
    n_required = (problem.y == 1).sum(axis=1)
    if problem.groups is not None:
        n_required += problem.groups.per_bag
    return bags.tolist(), n_required[bags].tolist(), problem.layout.n_free[bags].tolist()


def describe_impossible(bags: Sequence[Any] | np.ndarray, n_bags: int) -> str:
    """Describe which bags have impossible label sets."""
    return (
        f"{len(bags)} of {n_bags} {words().bags} have labels that no labelling of their "
        f"{words().instances} can produce (too few {words().instances}, or no label at all): "
        f"{name_bags(bags)}."
    )


def describe_relaxed(bags: Sequence[Any] | np.ndarray) -> str:
    """Describe which intractable bags were relaxed."""
    return (
        f"{len(bags)} {words().bags} have too many labels for an exact answer: {name_bags(bags)}. "
        "Those of their labels that are the most certain to occur were taken as optional."
    )


def name_bags(bags: Sequence[Any] | np.ndarray) -> str:
    """List the first few of some bags."""
    return ", ".join(map(str, bags[:NAMED_BAGS])) + (", ..." if len(bags) > NAMED_BAGS else "")
