"""Bags that require groups of classes, against the oracle in 60 digits.

A case is a handful of bags, with labels that may be wrong in some; a finite error bound must lie
above the error, and "auto" must reach its tolerance.
"""

from collections import Counter
from pathlib import Path

import mpmath
import numpy as np

from group_bags import GroupBag, draw_group_bag
from oracle import errors, most_likely_labelling, noisy_recursion_bag, recursion_bag
from unbag.union import infer, most_likely_labels

TOLERANCE = 1e-9


def prepare() -> None:
    """Compile all kernels."""
    log_prior = np.log([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]])
    for groups in ([[0, 1]], [[0, 1], [1, 2]]):
        given = log_prior, [0, 2], np.zeros((1, 3))
        infer(*given, groups=[groups])
        infer(*given, groups=[groups], missed_rate=0.1, false_rate=0.1)
        most_likely_labels(*given, groups=[groups])


def check_bag(bag: GroupBag) -> bool:
    """Compare one bag with the oracle; return whether it is possible."""
    given = bag.log_prior, [0, len(bag)], bag.y[None]
    options = {"instance_labels": bag.pinned, "groups": [bag.groups]}
    if bag.is_noisy:
        result = infer(*given, **options, missed_rate=bag.missed_rate, false_rate=bag.false_rate)
        rates = bag.missed_rate, bag.false_rate
        truth = noisy_recursion_bag(
            bag.log_prior, bag.y, *rates, bag.pinned, groups=bag.groups
        )  # fmt: skip
    else:
        result = infer(*given, **options)
        truth = recursion_bag(bag.log_prior, bag.y, bag.pinned, groups=bag.groups)
    if truth[0] == mpmath.ninf:
        assert result.log_likelihood[0] == -np.inf, "an impossible bag has a likelihood"
        assert not result.posterior.any()
        return False
    assert result.error_bound[0] <= TOLERANCE, f"the bound is {result.error_bound[0]}"
    off = max(errors(result, truth))
    assert off <= result.error_bound[0], f"the error is {off}, above {result.error_bound[0]}"
    if not bag.is_noisy:
        best = most_likely_labels(*given, **options)
        assert set(np.flatnonzero(bag.y == 1)) <= set(best), "not all labels are covered"
        assert all(set(group) & set(best) for group in bag.groups), "a group is not served"
        expected = most_likely_labelling(bag.log_prior, bag.y, bag.pinned, groups=bag.groups)
        reached = bag.log_prior[np.arange(len(bag)), best].sum()
        scale = np.abs(bag.log_prior[np.isfinite(bag.log_prior)]).sum()
        assert reached >= expected - 1e-12 * (scale + 1), "there is a likelier labelling"
    return True


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Try a handful of bags."""
    bags = [draw_group_bag(rng, 5, 5, noisy=rng.random() < 0.3) for _ in range(5)]
    possible = sum(check_bag(bag) for bag in bags)
    return Counter({"bags": len(bags), "impossible bags": len(bags) - possible})
