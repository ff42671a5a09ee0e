"""Rates of wrong labels in a fit: given, or learnt with the weights.

The rates of `unbag.union.noise` enter the likelihood through the inference of each part. L-BFGS
optimises the log-odds of learnt rates, in one vector with the weights; networks estimate them from
expected counts. Both need the same sums, which the parts add to their `Statistics`.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unbag.union.noise import NoisyAnswer
from unbag.union.rates import LEARNT, LEAST_RATE, Rate, Rates, checked_rate

# Initial value of learnt rates. While the weights are still zero, larger rates would explain the
# label sets instead. On clean label sets of HJA, fits from here end at a higher likelihood than
# from 0.1 or 0.3, and label more instances correctly; elsewhere the start makes no difference.
FIRST_RATE = 0.01
# The beta prior of a rate, as counts of wrong and of right labels. It keeps the log-odds finite if
# nothing is wrong.
SEEN_WRONG, SEEN_RIGHT = 1.0, 9.0
# Rates per class are shrunk towards each other: their log-odds have a normal prior with this
# standard deviation around their mean, to which the beta prior applies. A free rate could explain a
# class instead of the weights, which would then not learn it.
SPREAD = 0.5
# Log-odds of the highest and the lowest rate that are learnt.
FURTHEST = 27.6
assert np.exp(-FURTHEST) / (1.0 + np.exp(-FURTHEST)) >= LEAST_RATE


#: Expected numbers of wrong labels of each class, and of chances for them, weighted by bag, of
#: shape (2, 2, n_columns): missed instances and all instances of the class; bags that have its
#: label by mistake and all bags. Bags where the class is unknown do not count.
NoiseCounts: TypeAlias = NDArray[np.float64]


class LabelNoise:
    """How often the label sets of a fit are wrong: rates that are given or learnt.

    There is one more column than classes if there is a background, which has no rates.
    """

    def __init__(self, n_classes: int, n_columns: int, missed_rate: Rate, false_rate: Rate) -> None:
        self.n_classes = n_classes
        self.given: tuple[Rate, Rate] = missed_rate, false_rate
        #: The current rates, of shape (1, n_columns).
        self.rates: Rates = Rates(*np.zeros((2, 1, n_columns)))
        for rate, given in zip(self.rates, self.given, strict=True):
            start: Any = FIRST_RATE if is_learnt(given) else given
            rate[0, :n_classes] = start

    @property
    def is_learnt(self) -> bool:
        """Whether any of the rates is to be learnt."""
        return any(map(is_learnt, self.given))

    def start_from(self, rates: Rates) -> None:
        """Start from the rates of an earlier fit."""
        for rate, earlier, given in zip(self.rates, rates, self.given, strict=True):
            if is_learnt(given):
                # Rates that were not learnt may be zero, and have infinite log-odds.
                known = earlier[0, : self.n_classes]
                rate[0, : self.n_classes] = np.clip(known, 1e-6, 1 - 1e-6)

    def keep(self) -> None:
        """Stop learning the rates."""
        missed_rate, false_rate = (rate[0, : self.n_classes].copy() for rate in self.rates)
        self.given = missed_rate, false_rate

    def log_odds(self) -> NDArray[np.float64]:
        """Return the parameters: the log-odds of the learnt rates."""
        found = [np.empty(0)]
        for rate, given in zip(self.rates, self.given, strict=True):
            if is_learnt(given):
                found.append(log_odds_of(rate[0, : self._n_free(given)]))
        return np.concatenate(found)

    def set_log_odds(self, log_odds: np.ndarray) -> None:
        """Set the learnt rates from their log-odds."""
        rates = [rate.copy() for rate in self.rates]
        start = 0
        for rate, given in zip(rates, self.given, strict=True):
            if is_learnt(given):
                own = log_odds[start : start + self._n_free(given)]
                rate[0, : self.n_classes] = rates_of(own)
                start += len(own)
        self.rates = Rates(*rates)

    def gradient(self, counts: NoiseCounts) -> NDArray[np.float64]:
        """Return the gradient of the penalised likelihood with respect to the log-odds."""
        found = [np.empty(0)]
        for rate, given, wrong, chances in self._kinds(counts):
            if is_learnt(given):
                own = rate[0, : len(wrong)]
                found.append(wrong - own * chances + prior_gradient(log_odds_of(own)))
        return np.concatenate(found)

    def learn(self, counts: NoiseCounts, share: float = 1.0, prior: float = 1.0) -> None:
        """Move rates by a share of the difference towards their estimates from expected counts."""
        rates = [rate.copy() for rate in self.rates]
        for new, (_, given, wrong, chances) in zip(rates, self._kinds(counts), strict=True):
            if is_learnt(given):
                target = most_likely_rates(wrong, chances, prior)
                new[0, : self.n_classes] += share * (target - new[0, : self.n_classes])
        self.rates = Rates(*rates)

    def penalty(self) -> float:
        """Return the penalty of the rates: minus their log-prior."""
        total = 0.0
        for rate, given in zip(self.rates, self.given, strict=True):
            if is_learnt(given):
                total -= log_prior_of(log_odds_of(rate[0, : self._n_free(given)]))
        return total

    def _n_free(self, given):
        return 1 if isinstance(given, str) and given == "learn" else self.n_classes

    def _kinds(self, counts):
        """List rates, what was given, counts of errors and chances for errors, for each kind."""
        found = []
        for rate, given, both in zip(self.rates, self.given, counts, strict=True):
            wrong, chances = both[:, : self.n_classes]
            if self._n_free(given) == 1:
                wrong, chances = wrong.sum(keepdims=True), chances.sum(keepdims=True)
            found.append((rate, given, wrong, chances))
        return found


def noise_of(
    missed_rate: Rate,
    false_rate: Rate,
    n_classes: int,
    n_columns: int,
    rates: Rates | None = None,
    cost: float = 0.0,
) -> LabelNoise:
    """Return how often labels are wrong.

    Learnt rates start from `rates`. If a background has a cost, they also stay there: missed
    instances cost nothing, and would replace the background.
    """
    given: list[Rate] = []
    for name, rate in (("missed_rate", missed_rate), ("false_rate", false_rate)):
        if isinstance(rate, str):
            if rate not in LEARNT:
                raise ValueError(f"{name} must be a number, or one of {LEARNT}; got {rate!r}.")
            given.append(rate)
        else:
            given.append(checked_rate(name, rate, np.empty((0, n_classes)))[0])
    noise = LabelNoise(n_classes, n_columns, *given)
    if rates is not None:
        noise.start_from(rates)
        if cost:
            noise.keep()
    return noise


def log_odds_of(rates: np.ndarray) -> NDArray[np.float64]:
    """Return the log-odds of rates."""
    return np.log(rates) - np.log1p(-rates)


def rates_of(log_odds: np.ndarray | np.floating) -> NDArray[np.float64]:
    """Return the rates of log-odds: never exactly 0 or 1, nor below `LEAST_RATE`."""
    return 1.0 / (1.0 + np.exp(-np.clip(log_odds, -FURTHEST, FURTHEST)))


def log_prior_of(log_odds: np.ndarray) -> float:
    """Return the log-prior of one rate, or of one rate per class.

    Examples
    --------
    Rates that differ are less likely.

    >>> log_prior_of(np.array([-2.0, -2.0])) > log_prior_of(np.array([-3.0, -1.0]))
    True
    """
    pooled = float(log_odds.mean())
    wrong, right = np.log(rates_of(np.array([pooled, -pooled])))
    differences = float(np.sum((log_odds - pooled) ** 2)) / SPREAD**2
    return float(SEEN_WRONG * wrong + SEEN_RIGHT * right) - 0.5 * differences


def prior_gradient(log_odds: np.ndarray) -> NDArray[np.float64]:
    """Return the gradient of `log_prior_of`."""
    pooled = log_odds.mean()
    of_pooled = SEEN_WRONG - (SEEN_WRONG + SEEN_RIGHT) * rates_of(pooled)
    return of_pooled / len(log_odds) - (log_odds - pooled) / SPREAD**2


def most_likely_rates(wrong: np.ndarray, chances: np.ndarray, prior: float) -> NDArray[np.float64]:
    """Return the most likely rates given counts and the prior, by Newton's method.

    `wrong` counts how often labels were wrong, and `chances` how often they could have been.

    Examples
    --------
    >>> most_likely_rates(np.array([2.0]), np.array([20.0]), 1.0).round(3)
    array([0.1])
    """
    n_seen = SEEN_WRONG + SEEN_RIGHT
    pooled = (wrong.sum() + prior * SEEN_WRONG) / (chances.sum() + prior * n_seen)
    log_odds = np.full(len(wrong), log_odds_of(pooled))
    if len(wrong) == 1:
        return rates_of(log_odds)
    one, mean = np.eye(len(wrong)), np.full((len(wrong), len(wrong)), 1.0 / len(wrong))
    for _ in range(50):
        rates, of_mean = rates_of(log_odds), rates_of(log_odds.mean())
        gradient = wrong - rates * chances + prior * prior_gradient(log_odds)
        curvature = np.diag(chances * rates * (1.0 - rates)) + prior * (
            (one - mean) / SPREAD**2 + n_seen * of_mean * (1.0 - of_mean) / len(wrong) * mean
        )
        # A full step overshoots where the curve is almost flat.
        step = np.clip(np.linalg.solve(curvature, gradient), -1.0, 1.0)
        log_odds = log_odds + step
        if np.abs(step).max() < 1e-10:
            break
    return rates_of(log_odds)


def expected_counts(answer: NoisyAnswer, offsets: np.ndarray, known: np.ndarray) -> NoiseCounts:
    """Count the expected errors in the label sets of bags, and the chances for errors.

    `known`, of shape (n_bags, n_columns), is the weight of the bag, or zero if the class is
    optional there.
    """
    bag = np.repeat(np.arange(len(known)), np.diff(offsets))
    unnoticed, mistaken = (
        (each * known).sum(axis=0) for each in (answer.unnoticed, answer.mistaken)
    )
    instances = (answer.posterior * known[bag]).sum(axis=0)
    return np.array([[unnoticed, instances], [mistaken, known.sum(axis=0)]])


def is_learnt(given: Rate) -> bool:
    """Return whether a rate is to be learnt."""
    return isinstance(given, str)
