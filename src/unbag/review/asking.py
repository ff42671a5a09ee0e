"""What a review asks next, and how many labels it takes to be wrong: for `Session`.

All that `unbag.review.questions` answers comes through here.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.labels import LabelSets

#: Questions that are chosen at a time: until the model is fitted again, one in each bag.
N_QUESTIONS = 60
#: Share of the questions that are asked at random, so that errors are estimated without a bias.
RANDOM_SHARE = 0.1


class Question(NamedTuple):
    """An instance to look at.

    Attributes
    ----------
    instance, bag : int
        Its number in all, and that of its bag.
    gain : float
        Bits that an answer is expected to take off the uncertainty of the bag.
    strategy : str
        Why it is asked.
    """

    instance: int
    bag: int
    gain: float
    strategy: str


def ordered_questions(
    model: Any,
    bags: Bags,
    labels: LabelSets,
    known: NDArray[np.object_],
    entropy: NDArray[np.float64],
    *,
    seed: int,
) -> list[Question]:
    """Return what to ask next, best first, at most one question in each bag."""
    rng = np.random.default_rng(seed)
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    is_open = np.array([each is None for each in known], dtype=bool)
    worth = np.where(is_open, entropy, -1.0)
    # The most doubtful instance of each bag.
    order = np.lexsort((-worth, bag))
    firsts = order[np.unique(bag[order], return_index=True)[1]]
    firsts = firsts[worth[firsts] > 0]
    ranked = firsts[np.argsort(-worth[firsts], kind="stable")][:N_QUESTIONS]
    found = [Question(int(i), int(bag[i]), float(worth[i]), "entropy") for i in ranked]
    asked = {each.bag for each in found}
    others = np.flatnonzero(is_open & ~np.isin(bag, list(asked)))
    n_random = min(max(1, round(RANDOM_SHARE * N_QUESTIONS)), len(others))
    for place, i in enumerate(rng.choice(others, n_random, replace=False).tolist()):
        question = Question(int(i), int(bag[i]), float(max(worth[i], 0.0)), "random")
        found.insert(min(1 + place * round(1 / RANDOM_SHARE), len(found)), question)
    return found


def expected_wrong(
    probability: NDArray[np.float64], is_known: NDArray[np.bool_], random_answers: list[bool]
) -> dict[str, Any]:
    """Return the share of labels that is expected to be wrong, those of people being right.

    By the model's own probabilities; ``low`` and ``high`` are None where there is no interval.
    """
    n_wrong = float((1 - probability[~is_known]).sum())
    return {
        "share": round(n_wrong / max(len(probability), 1), 4), "low": None, "high": None,
        "random": len(random_answers),
    }  # fmt: skip
