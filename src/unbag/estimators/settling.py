"""What a fit does with bags whose label sets cannot be: decided once, and said to the caller."""

from typing import Literal

import numpy as np

from unbag._warnings import warn_caller
from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.union import ImpossibleBagError, ImpossibleBagWarning, UnionProblem
from unbag.union.policy import Settled, describe_impossible, settle_impossible


def settled_label_sets(
    bags: Bags,
    labels: LabelSets,
    problem: UnionProblem,
    on_impossible: Literal["relax", "drop", "raise"],
    impossible: np.ndarray,
) -> Settled:
    """Decide on the bags of a fit whose label sets cannot be, and warn of them by their ids.

    Parameters
    ----------
    bags : Bags
    labels : LabelSets
        As they were given.
    problem : UnionProblem
        The same, with a background where the model has one.
    on_impossible : {"relax", "drop", "raise"}
    impossible : ndarray of bool of shape (n_bags,)
        The bags to decide on.

    Returns
    -------
    Settled
    """
    unfilled = np.flatnonzero((bags.sizes == 0) & (labels.cardinality > 0) & impossible)
    if len(unfilled):
        b = unfilled[0]
        raise ValueError(
            f"Bag {bags.ids[b]} has the labels {sorted(map(str, labels[int(b)]))} but no "
            "instances: give it instances, or take away its labels."
        )
    try:
        settled = settle_impossible(problem, on_impossible, impossible)
    except ImpossibleBagError as error:
        raise error.with_ids(bags.ids) from None
    if settled.impossible.any():
        found = describe_impossible(bags.ids[settled.impossible], len(bags))
        relax = on_impossible == "relax"
        action = "were taken as optional, empty ones left out" if relax else "were left out"
        warn_caller(f"{found} They {action}.", ImpossibleBagWarning)
    return settled
