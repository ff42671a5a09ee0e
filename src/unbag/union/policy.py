"""What happens to impossible and to intractable bags.

A label set is *impossible* if no labelling of the bag's instances has it as its union: there are
too few instances for the required labels, or instances but no allowed label. It is *intractable* if
no exact kernel finished within its budget of work. Only this module decides what happens then:

========= ==============================================================================
``keep``  an impossible bag has likelihood zero and no posterior
``relax`` the labels that stand in the way are taken as optional, and reported as relaxed
``drop``  the bag is left out of a fit
``raise`` an error names all such bags
========= ==============================================================================
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from .dispatch import MOST_LABELS
from .overlaps import MOST_REQUIREMENTS

if TYPE_CHECKING:
    from .problem import UnionProblem

OnImpossible: TypeAlias = Literal["keep", "relax", "raise"]
OnIntractable: TypeAlias = Literal["raise", "relax"]
ON_IMPOSSIBLE: tuple[OnImpossible, ...] = ("keep", "relax", "raise")
ON_INTRACTABLE: tuple[OnIntractable, ...] = ("raise", "relax")
# Required labels that an intractable bag keeps. Solvers infer at every iteration, so the bag must
# become cheap, not only feasible.
RELAXED_TO = 16
OVERLAPS_RELAXED_TO = 8
# Number of bags that an error or warning names.
NAMED_BAGS = 5


class _BagError(ValueError):
    """An error about some bags, which it names. It can be pickled."""

    def __init__(self, bags: Sequence[Any], *facts: object) -> None:
        super().__init__(bags, *facts)
        self.bags: list[Any] = list(bags)

    def with_ids(self, ids: np.ndarray) -> Self:
        """Return the same error, with the ids of the bags instead of their positions.

        Parameters
        ----------
        ids : ndarray of shape (n_bags,)
            Of all bags.
        """
        return type(self)(np.asarray(ids)[self.bags].tolist(), *self.args[1:])


class ImpossibleBagError(_BagError):
    """Bags have label sets that no labelling of their instances can produce.

    Parameters
    ----------
    bags : sequence of int or str
        Which bags: their places, or their ids.
    n_bags : int
        How many bags there are in all.

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
        Which bags: their places, or their ids.
    n_required, n_free : sequences of int
        Their required labels, and their instances that are not pinned.
    overlaps : sequence of bool, optional
        Whether groups of classes that they require overlap; by default none do.

    Attributes
    ----------
    bags : list
    """

    def __init__(
        self,
        bags: Sequence[Any],
        n_required: Sequence[int],
        n_free: Sequence[int],
        overlaps: Sequence[bool] | None = None,
    ) -> None:
        given = (n_required, n_free) if overlaps is None else (n_required, n_free, overlaps)
        super().__init__(bags, *given)

    def __str__(self) -> str:
        bags, n_required, n_free, *overlaps = self.args
        more = f" There are {len(bags)} such bags: {name_bags(bags)}." if len(bags) > 1 else ""
        if overlaps and overlaps[0][0]:
            return (
                f"bag {bags[0]} requires {n_required[0]} classes and groups of classes, of which "
                f"some overlap, and has {n_free[0]} instances that are not pinned: too many for "
                f"exact inference (up to {MOST_REQUIREMENTS} work if groups overlap, fewer in very "
                "long bags). You can leave out groups of this bag, or make them disjoint; use "
                f"on_intractable='relax', which leaves out the most certain ones; or split the bag."
                f"{more}"
            )
        return (
            f"bag {bags[0]} has {n_required[0]} required labels and {n_free[0]} instances that are "
            f"not pinned: too many labels for exact inference (up to {MOST_LABELS} always work; "
            f"more do if most of them are almost certain to occur). You can mark labels of this "
            f"bag as unknown (-1 in y) instead of present, the most certain ones first, or use "
            f"on_intractable='relax', which does so; pass the labels of instances that are known; "
            f"or split the bag.{more}"
        )


class ImpossibleBagWarning(UserWarning):
    """Bags whose label sets no labelling can produce were relaxed or dropped."""


class IntractableBagWarning(UserWarning):
    """Some labels were treated as optional in bags with too many labels for exact inference."""


class Settled(NamedTuple):
    """A problem without impossible label sets, and what was done about them.

    Attributes
    ----------
    problem : UnionProblem
        With the label sets of impossible bags relaxed.
    impossible : ndarray of bool of shape (n_bags,)
        The bags that were impossible.
    dropped : ndarray of bool of shape (n_bags,)
        Those of them to drop.
    relaxed : ndarray of bool of shape (n_bags, n_classes)
        Required labels that were treated as optional.
    """

    problem: "UnionProblem"
    impossible: np.ndarray
    dropped: np.ndarray
    relaxed: np.ndarray


def settle_impossible(
    problem: "UnionProblem",
    on_impossible: Literal["relax", "drop", "raise"],
    impossible: np.ndarray | None = None,
) -> Settled:
    """Relax or drop the bags of a fit that are impossible whatever the priors.

    Parameters
    ----------
    on_impossible : {"relax", "drop", "raise"}
        With "relax", a bag that has instances but allows no class is dropped.
    impossible : ndarray of bool of shape (n_bags,), optional
        The impossible bags; by default those of the problem.
    """
    impossible = problem.impossible if impossible is None else impossible
    if on_impossible == "raise" and impossible.any():
        raise ImpossibleBagError(impossible.nonzero()[0].tolist(), problem.n_bags)
    relaxed = problem.named & impossible[:, None]
    dropped = impossible if on_impossible == "drop" else impossible & ~problem.allowed.any(axis=1)
    relaxed[dropped] = False
    return Settled(problem.relaxed(relaxed), impossible, dropped, relaxed)


def relax_impossible(
    problem: "UnionProblem", impossible: np.ndarray | None = None
) -> "UnionProblem":
    """Relax the bags that are impossible whatever the priors, so that each can be annotated.

    In a bag with an empty label set, all classes become optional: its instances get the labels that
    they look like.

    Parameters
    ----------
    impossible : ndarray of bool of shape (n_bags,), optional
        As in `settle_impossible`.
    """
    impossible = problem.impossible if impossible is None else impossible
    if not impossible.any():
        return problem
    nothing = ~problem.allowed.any(axis=1, keepdims=True)
    return problem.relaxed((problem.named | nothing) & impossible[:, None])


def surest_labels(
    problem: "UnionProblem", log_prior: np.ndarray, bags: Collection[int]
) -> np.ndarray:
    """Find the required labels of bags that are most certain to occur, all but `RELAXED_TO`.

    Of a group of classes that is most certain to occur, all classes. Where groups overlap, all
    requirements but `OVERLAPS_RELAXED_TO`.

    Parameters
    ----------
    log_prior : ndarray of shape (n_instances, n_classes)

    Returns
    -------
    ndarray of bool of shape (n_bags, n_classes)
        True for these labels.
    """
    surest = np.zeros(problem.y.shape, dtype=bool)
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
            surest[b, requirements[which]] = True
    return surest


def check_tractable(problem: "UnionProblem", bags: Sequence[int] | np.ndarray) -> None:
    """Raise an error that names the intractable bags, if there are any.

    Parameters
    ----------
    problem : UnionProblem
        Of all bags.
    bags : sequence of int
        Positions of the intractable bags.
    """
    if len(bags):
        bags = np.sort(bags)
        numbers = problem.n_required[bags].tolist(), problem.layout.n_free[bags].tolist()
        overlaps = problem.overlaps[bags]
        extra = (overlaps.tolist(),) if overlaps.any() else ()
        raise IntractableBagError(bags.tolist(), *numbers, *extra)


def describe_impossible(bags: Sequence[Any] | np.ndarray, n_bags: int) -> str:
    """Describe which bags have impossible label sets.

    Parameters
    ----------
    bags : sequence of int or str
        Their places, or their ids.
    n_bags : int
        How many bags there are in all.
    """
    return (
        f"{len(bags)} of {n_bags} bags have label sets that no labelling of their instances can "
        f"produce (too few instances, or no label at all): {name_bags(bags)}."
    )


def name_bags(bags: Sequence[Any] | np.ndarray) -> str:
    """List the first few of some bags."""
    return ", ".join(map(str, bags[:NAMED_BAGS])) + (", ..." if len(bags) > NAMED_BAGS else "")
