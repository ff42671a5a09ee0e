"""What a review asks next, and how many labels it takes to be wrong: for `Session`.

All that `unbag.review.questions`, `unbag.review.estimates` and `unbag.checking` answer comes
through here.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from unbag.bags import Bags
from unbag.checking import check_labels
from unbag.estimators import ORLogisticRegression
from unbag.labels import LabelSets
from unbag.tagging import BACKGROUND_NAME

from .estimates import estimate_errors
from .questions import RANDOM_SHARE, next_questions

#: Questions that are chosen at a time: until the model is fitted again, one in each bag.
N_QUESTIONS = 40
#: Tags are checked by so many fits, in tables of at most so many instances.
CHECK_FOLDS, MOST_CHECKED = 5, 20_000
#: Labels of bags that are wrong with that probability are suspicious; the worst of them are asked.
SUSPICIOUS, MOST_SUSPICIOUS = 0.3, 500
#: Why a question is asked that is there to estimate errors.
RANDOM = "random"


class Question(NamedTuple):
    """Something to look at.

    Attributes
    ----------
    instance : int
        A row of ``bags.X``; -1 where the tag of a bag is asked for.
    bag : int
    gain : float
        Bits that an answer is expected to take off the uncertainty of the bag.
    change : float
        How many labels the answer is expected to change.
    strategy : str
        Why it is asked.
    label : str or None
        The class whose presence in the bag is asked, if that is the question.
    """

    instance: int
    bag: int
    gain: float
    change: float
    strategy: str
    label: str | None = None


class RandomAnswer(NamedTuple):
    """An answer to a question at random.

    Attributes
    ----------
    row : int
    p_wrong : float
        How probable it was that the label is wrong, when it was asked.
    was_wrong : bool
    """

    row: int
    p_wrong: float
    was_wrong: bool


def ordered_questions(
    model: Any,
    bags: Bags,
    labels: LabelSets,
    known: NDArray[np.object_],
    *,
    asked: Sequence[int] = (),
    seed: int = 0,
    suspicious: Sequence[dict[str, Any]] = (),
) -> list[Question]:
    """Return what to ask next, best first.

    `asked` are the rows that were answered since the model was fitted: their bags can wait.
    `suspicious` are labels of bags that look wrong, as `suspicious_tags` has them.
    """
    # Of bags that nobody has looked at, everything is unknown: there instances are asked for.
    has_doubtful_tags = (labels.optional.any(axis=1) & ~labels.open).any()
    tags: Any = True if has_doubtful_tags else None
    if suspicious:
        import pyarrow as pa

        tags = pa.Table.from_pylist(list(suspicious))
    found = next_questions(
        model, bags, labels, known, n_questions=N_QUESTIONS, random_state=seed,
        asked=np.asarray(asked, dtype=np.intp), tags=tags,
    )  # fmt: skip
    columns = (
        found.instances, found.bags, found.gains, found.changes, found.strategies, found.classes,
    )  # fmt: skip
    return [
        Question(i, b, gain, change, str(why), None if label is None else str(label))
        for i, b, gain, change, why, label in zip(
            *(np.asarray(each).tolist() for each in columns), strict=True
        )
    ]


def by_entropy(
    bags: Bags, known: NDArray[np.object_], entropy: NDArray[np.float64], seed: int
) -> list[Question]:
    """Ask for the least certain instance of each bag, and for some at random."""
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    is_open = np.array([each is None for each in known], dtype=bool)
    worth = np.where(is_open, entropy, -1.0)
    order = np.lexsort((-worth, bag))
    firsts = order[np.unique(bag[order], return_index=True)[1]]
    firsts = firsts[worth[firsts] > 0]
    ranked = firsts[np.argsort(-worth[firsts], kind="stable")][:N_QUESTIONS]
    found = [Question(int(i), int(bag[i]), float(worth[i]), 0.0, "entropy") for i in ranked]
    others = np.flatnonzero(is_open & ~np.isin(bag, [each.bag for each in found]))
    n_random = min(round(RANDOM_SHARE * N_QUESTIONS), len(others))
    chosen = np.random.default_rng(seed).choice(others, n_random, replace=False)
    for place, i in enumerate(chosen.tolist()):
        question = Question(i, int(bag[i]), float(max(worth[i], 0.0)), 0.0, RANDOM)
        found.insert(min(1 + place * round(1 / RANDOM_SHARE), len(found)), question)
    return found


def share_of_wrong_labels(
    model: Any,
    bags: Bags,
    labels: LabelSets,
    known: NDArray[np.object_],
    answers: Sequence[RandomAnswer],
    part: float = 1.0,
) -> dict[str, Any]:
    """Return the share of labels that is expected to be wrong, those of people being right.

    ``low`` and ``high`` hold it with a probability of 90 %. The bags have that `part` of the
    instances; the others are right.
    """
    found = estimate_errors(
        model, bags, labels, known, [each.row for each in answers],
        p_wrong=[each.p_wrong for each in answers],
        was_wrong=[each.was_wrong for each in answers],
    )  # fmt: skip
    return {
        **{name: round(part * float(getattr(found, name)), 4) for name in ("share", "low", "high")},
        "random": len(answers),
    }


def suspicious_tags(
    model: Any,
    bags: Bags,
    labels: LabelSets,
    known: NDArray[np.object_],
    progress: Callable[[int, int], object] | None = None,
) -> list[dict[str, Any]]:
    """Return the labels of bags that look wrong, the most suspicious first.

    They are rows of `check_labels`. A model that is not linear would take long: then a linear one
    checks them. Large tables are not checked, nor those of fewer bags than folds.
    """
    if len(bags) < CHECK_FOLDS or bags.n_instances > MOST_CHECKED:
        return []
    is_linear = isinstance(model.model, ORLogisticRegression)
    estimator: Any = clone(model) if is_linear else ORLogisticRegression()
    if not is_linear:
        known = known.copy()
        known[known == BACKGROUND_NAME] = None
    with warnings.catch_warnings():
        # The model has said them when it was fitted.
        warnings.simplefilter("ignore")
        found = check_labels(
            estimator, bags, labels, cv=CHECK_FOLDS, random_state=0, progress=progress, known=known
        )
    rows = found.slice(0, MOST_SUSPICIOUS).to_pylist()
    return [row for row in rows if row["p_wrong"] >= SUSPICIOUS]
