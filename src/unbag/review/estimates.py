"""How many labels of an annotated table are wrong: the model's doubt, corrected by answers.

    q    the model's probability that its label of an instance is wrong, 1 - max P(i, .)
    p    the probability that it is

Models that are fitted to bags are too sure of instances. By how much is learnt from answers to
questions that were asked at random, by logistic calibration:

    logit p = shift + slope * logit q

Few answers are enough, since the model has said how doubtful each label is. Their likelihood counts
beside a prior, and the posterior of (shift, slope) is summed over a grid, and over how often people
are wrong. The estimate is the mean of p over all instances that nobody has answered for. Its
interval has two sources: what is not known of shift and slope, and chance, as each of these labels
is right or wrong.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtr
from sklearn.base import clone

from unbag.bags import as_bags
from unbag.labels import LabelSetsLike
from unbag.model_selection.scorers import innermost_model

from .beliefs import Beliefs

#: The prior of the calibration: deviation of the shift; median of the slope, and deviation of its
#: logarithm. A slope of 1 is a model that is as sure as it may be, and most are surer.
SHIFT_DEVIATION = 0.4
SLOPE_MEDIAN, SLOPE_DEVIATION = 0.7, 0.35
#: How often people may be wrong, each as probable as the others: no single slip counts as proof.
SLIPS = (0.005, 0.02, 0.05, 0.1)
#: How much more the number of errors varies than if they were independent: bags share them.
OVERDISPERSION = 1.5
#: Doubt is taken to be at least that, and at most one less it.
LEAST_DOUBT = 1e-4
#: The grid ends at so many deviations, and has so many points each way; so many bins of doubt.
FURTHEST, N_SHIFTS, N_SLOPES, N_BINS = 3.0, 31, 41, 200


@dataclass(frozen=True)
class ErrorEstimate:
    """An estimate of how many labels are wrong.

    Attributes
    ----------
    share : float
        Of all instances, the share whose label in the annotated table is wrong. Answers count as
        right.
    low, high : float
        The interval that holds it with probability `level`.
    level : float
    n_random : int
        Answers to random questions that it is based on.
    uncorrected : float
        What the model alone says.
    """

    share: float
    low: float
    high: float
    level: float
    n_random: int
    uncorrected: float


def estimate_errors(
    model: Any,
    bags: Any,
    y: LabelSetsLike,
    known: ArrayLike | None = None,
    random_answers: ArrayLike | None = None,
    *,
    p_wrong: ArrayLike | None = None,
    was_wrong: ArrayLike | None = None,
    level: float = 0.9,
) -> ErrorEstimate:
    """Estimate which share of the labels of an annotated table is wrong.

    Parameters
    ----------
    model, bags, y, known
        As in `next_questions`. The table is what ``model.annotate(bags, y, known)`` says.
    random_answers : array-like of int, optional
        Rows that were asked at random, and answered: those of `next_questions` whose strategy is
        "random".
    p_wrong, was_wrong : array-likes of shape (n_random_answers,), optional
        How probable it was that the label of the table is wrong, when each of them was asked
        (`Questions.p_wrong`), and whether it was. Without these, a copy of the model is fitted to
        all other answers, and says what it would have been: the model itself has seen the answers.
    level : float, default=0.9
        Of the interval.

    Returns
    -------
    ErrorEstimate

    Raises
    ------
    ValueError
        If there is no answer for a row of `random_answers`, or arrays differ in shape.

    Notes
    -----
    Without random answers, the estimate is the model's doubt under the prior, and the interval is
    wide. Instances of bags that are said to hold none of the classes count as right.

    Examples
    --------
    People check 30 instances at random.

    >>> from unbag import ORLogisticRegression, datasets
    >>> from unbag.review import estimate_errors, next_questions
    >>> made = datasets.make_bags(60, separability=2.0, random_state=0)
    >>> model = ORLogisticRegression().fit(made.bags, made.y)
    >>> asked = next_questions(model, made.bags, made.y, None, "random", 30, random_state=0)
    >>> known = np.full(made.bags.n_instances, -1)
    >>> known[asked.instances] = made.instance_labels[asked.instances]
    >>> found = estimate_errors(model, made.bags, made.y, known, asked.instances)
    >>> f"{found.share:.0%}, between {found.low:.0%} and {found.high:.0%}"
    '16%, between 9% and 26%'

    Here the truth is known:

    >>> table = model.annotate(made.bags, made.y, known)
    >>> f"{(table != made.instance_labels).mean():.0%}"
    '18%'
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
    bags = as_bags(bags)
    innermost, seen = innermost_model(model, bags)
    beliefs = Beliefs.of(innermost, as_bags(seen), y, known)
    rows = np.asarray([] if random_answers is None else random_answers, dtype=np.intp)
    if rows.size and (rows.min() < 0 or rows.max() >= bags.n_instances):
        raise ValueError(f"random_answers must hold rows from 0 to {bags.n_instances - 1}.")
    if (p_wrong is None) != (was_wrong is None):
        raise ValueError("p_wrong and was_wrong belong together: pass both, or neither.")
    if p_wrong is None:
        doubts, wrongs = _before_answers(model, bags, y, known, rows)
    else:
        doubts, wrongs = np.asarray(p_wrong, dtype=float), np.asarray(was_wrong, dtype=bool)
    if not doubts.shape == wrongs.shape == rows.shape:
        raise ValueError(
            f"random_answers, p_wrong and was_wrong must have the same shape; got {rows.shape}, "
            f"{doubts.shape} and {wrongs.shape}."
        )
    n_instances = max(bags.n_instances, 1)
    left = beliefs.p_wrong[beliefs.is_open]
    share, low, high = _calibrated(left, doubts, wrongs, n_instances, level)
    return ErrorEstimate(share, low, high, level, len(rows), float(left.sum()) / n_instances)


def _before_answers(
    model: Any, bags: Any, y: LabelSetsLike, known: ArrayLike | None, rows: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return how doubtful the labels of answered rows are without the answers, and if wrong."""
    if not len(rows):
        return np.empty(0), np.empty(0, dtype=bool)
    answers = np.asarray(known, dtype=object)
    others = answers.copy()
    if answers.shape == (bags.n_instances,):
        others[rows] = None
    innermost, seen = innermost_model(model, bags)
    given = innermost._read_instance_labels(answers, bags)[rows]
    if (given < 0).any():
        raise ValueError(f"Row {rows[np.argmax(given < 0)]} of random_answers has no answer.")
    fitted = clone(model).fit(bags, y, instance_labels=others)
    innermost, seen = innermost_model(fitted, bags)
    beliefs = Beliefs.of(innermost, as_bags(seen), y, others)
    return beliefs.p_wrong[rows], beliefs.best[rows] != given


def _calibrated(
    left: NDArray[np.float64],
    doubts: NDArray[np.float64],
    wrongs: NDArray[np.bool_],
    n_instances: int,
    level: float,
) -> tuple[float, float, float]:
    """Return the share of wrong labels, and its interval.

    Parameters
    ----------
    left : ndarray
        Doubt of the labels that nobody has checked.
    doubts, wrongs : ndarrays of shape (n_random,)
        Doubt of labels that were checked at random, and whether they were wrong.
    """
    steps = (np.linspace(-FURTHEST, FURTHEST, n) for n in (N_SHIFTS, N_SLOPES))
    deviations = np.stack(np.meshgrid(*steps), axis=-1).reshape(-1, 2)
    shift = SHIFT_DEVIATION * deviations[:, :1]
    slope = SLOPE_MEDIAN * np.exp(SLOPE_DEVIATION * deviations[:, 1:])
    seen = expit(shift + slope * _log_odds(doubts))
    log_weights = []
    for slips in SLIPS:
        chance = slips + (1.0 - 2.0 * slips) * seen
        log_weights.append(np.log(np.where(wrongs, chance, 1.0 - chance)).sum(axis=1))
    log_weight = np.logaddexp.reduce(log_weights, axis=0)
    log_weight -= 0.5 * (deviations**2).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    # Of many instances, only how many are how doubtful matters.
    count, edges = np.histogram(_log_odds(left), N_BINS)
    p = expit(shift + slope * (edges[:-1] + edges[1:]) / 2.0)
    mean = p @ count / n_instances
    deviation = np.sqrt(OVERDISPERSION * (p * (1.0 - p)) @ count) / n_instances
    # Quantiles of a mixture of normal distributions, one for each point of the grid.
    shares = np.linspace(0.0, min(1.0, float((mean + 4.0 * deviation).max(initial=0.0))), 500)
    below = weight @ ndtr((shares - mean[:, None]) / np.maximum(deviation, 1e-12)[:, None])
    low, middle, high = np.interp([(1 - level) / 2, 0.5, (1 + level) / 2], below, shares)
    return float(middle), float(low), float(high)


def _log_odds(doubt: NDArray[np.float64]) -> NDArray[np.float64]:
    return logit(np.clip(doubt, LEAST_DOUBT, 1.0 - LEAST_DOUBT))
