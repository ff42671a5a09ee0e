"""The share of wrong labels in an annotated table, estimated from the model and people's answers.

    q    the model's probability that its label of an instance is wrong, 1 - max P(i, .)
    p    the probability that it really is wrong

Models that are fitted to bags may be overconfident about instances. Answers to questions show by
how much, by logistic calibration:

    logit p = shift + slope * logit q

A few answers are enough, since the model says how doubtful each label is. It does not matter that
doubtful labels are asked about more often, but those that people pick because they look wrong would
mislead. Answers are combined with a prior that has long tails: where the model was wrong though it
was sure, the interval widens. The posterior of (shift, slope) is summed over a grid, and over the
rates at which people may err. The estimate is the mean of p over all instances without an answer.
Its interval covers that shift and slope are uncertain, and that each of these labels is right or
wrong by chance.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtr
from sklearn.base import clone

from unbag.bags import as_bags
from unbag.labels import LabelSetsLike
from unbag.model_selection import innermost_model
from unbag.validation import known_columns

from .beliefs import Beliefs

#: Prior of the calibration: scale of the shift; median of the slope, and scale of its logarithm,
#: each of a t distribution with two degrees of freedom. The slope of a calibrated model is 1.
SHIFT_DEVIATION = 0.4
SLOPE_MEDIAN, SLOPE_DEVIATION = 0.7, 0.35
#: Rates at which people may err, equally probable: so a single wrong answer is not a proof.
SLIPS = (0.005, 0.02, 0.05, 0.1)
#: Ratio of the variance of the number of errors to that of independent ones: bags share errors.
OVERDISPERSION = 1.5
#: Probabilities of errors are clipped to at least this, and to at most 1 minus this.
LEAST_DOUBT = 1e-4
#: Ends of the grid in these scales; points of the grid each way; bins of probabilities.
FURTHEST, N_SHIFTS, N_SLOPES, N_BINS = 6.0, 31, 41, 200


@dataclass(frozen=True)
class ErrorEstimate:
    """An estimate of how many labels are wrong.

    Attributes
    ----------
    share : float
        The share of instances whose label in the annotated table is wrong. Answers count as right.
    low, high : float
        The interval that contains the share with probability `level`.
    level : float
    n_random : int
        Number of answers that the estimate uses.
    uncorrected : float
        The share according to the model alone.
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
        As in `next_questions`. The table has the labels of ``model.annotate(bags, y, known)``.
    random_answers : array-like of int, optional
        Rows that `next_questions` asked about, and that were answered; best those whose strategy
        is "random". Not those that people chose because they looked wrong.
    p_wrong, was_wrong : array-likes of shape (n_random_answers,), optional
        The probability that the label of each of these rows was wrong when it was asked
        (`Questions.p_wrong`), and whether the answer was another label. Without these, both come
        from a copy of the model that is fitted to all other answers, since the model itself has
        seen them all.
    level : float, default=0.9
        Probability of the interval.

    Returns
    -------
    ErrorEstimate

    Raises
    ------
    ValueError
        If a row of `random_answers` has no answer, or arrays differ in shape.

    Notes
    -----
    Without answers, the estimate relies on the prior, and the interval is wide. Instances
    of bags without any of the classes count as right.

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
    '17%, between 9% and 27%'

    These bags are synthetic, so the true share is known:

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
        doubts, wrongs = _without_answers(model, bags, y, known, rows)
    else:
        doubts, wrongs = np.asarray(p_wrong, dtype=float), np.asarray(was_wrong, dtype=bool)
    if not doubts.shape == wrongs.shape == rows.shape:
        raise ValueError(
            f"random_answers, p_wrong and was_wrong must have the same shape; got {rows.shape}, "
            f"{doubts.shape} and {wrongs.shape}."
        )
    n_instances = max(bags.n_instances, 1)
    left = beliefs.p_wrong[beliefs.is_open]
    share, low, high = calibrated_share(left, doubts, wrongs, n_instances, level)
    return ErrorEstimate(share, low, high, level, len(rows), float(left.sum()) / n_instances)


def _without_answers(
    model: Any, bags: Any, y: LabelSetsLike, known: ArrayLike | None, rows: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Fit without the answers of some rows; return how doubtful its labels are, and if wrong."""
    if not len(rows):
        return np.empty(0), np.empty(0, dtype=bool)
    answers = np.asarray(known, dtype=object)
    others = answers.copy()
    if answers.shape == (bags.n_instances,):
        others[rows] = None
    columns: Any = known_columns(answers, bags, model.classes_)
    given = columns[rows]
    if (given < 0).any():
        raise ValueError(f"Row {rows[np.argmax(given < 0)]} of random_answers has no answer.")
    fitted = clone(model).fit(bags, y, instance_labels=others)
    innermost, seen = innermost_model(fitted, bags)
    beliefs = Beliefs.of(innermost, as_bags(seen), y, others)
    return beliefs.p_wrong[rows], beliefs.best[rows] != given


def calibrated_share(
    left: NDArray[np.float64],
    doubts: NDArray[np.float64],
    wrongs: NDArray[np.bool_],
    n_instances: int,
    level: float,
) -> tuple[float, float, float]:
    """Estimate the share of wrong labels, and its interval.

    `left` are the probabilities of errors of instances without an answer; `doubts` and `wrongs`
    those of questions when they were asked, and whether the labels were wrong.
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
    log_weight -= 1.5 * np.log1p(deviations**2 / 2.0).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    # A histogram is enough: instances that are equally doubtful are alike.
    count, edges = np.histogram(_log_odds(left), N_BINS)
    p = expit(shift + slope * (edges[:-1] + edges[1:]) / 2.0)
    mean = p @ count / n_instances
    deviation = np.sqrt(OVERDISPERSION * (p * (1.0 - p)) @ count) / n_instances
    # Quantiles of a mixture of one normal distribution per point of the grid.
    shares = np.linspace(0.0, min(1.0, float((mean + 4.0 * deviation).max(initial=0.0))), 500)
    below = weight @ ndtr((shares - mean[:, None]) / np.maximum(deviation, 1e-12)[:, None])
    low, middle, high = np.interp([(1 - level) / 2, 0.5, (1 + level) / 2], below, shares)
    return float(middle), float(low), float(high)


def _log_odds(doubt: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-odds of clipped probabilities."""
    return logit(np.clip(doubt, LEAST_DOUBT, 1.0 - LEAST_DOUBT))
