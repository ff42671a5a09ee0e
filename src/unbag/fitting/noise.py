"""Fitting to label sets that may be wrong, at rates that are given or learnt with the weights.

The rates of `unbag.union.noise` enter the likelihood through the inference of each part. L-BFGS
optimises the log-odds of learnt rates, in one vector with the weights; the other solvers estimate
them from the expected counts of an E-step. Both need the same sums, which the parts add to their
`Statistics`.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag.union.noise import NoisyAnswer, NoisyProblem, noisy_problem
from unbag.union.rates import LEAST_RATE, Rates

from .objective import Objective
from .parts import Part, Softmax
from .statistics import NoiseCounts, Ray, Statistics

#: A rate, one for each class, or how to learn it.
Rate: TypeAlias = float | ArrayLike | Literal["learn", "learn-per-class"]
LEARNT: tuple[str, ...] = ("learn", "learn-per-class")
KINDS: tuple[str, ...] = ("missed", "false")
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


class LabelNoise:
    """How often the label sets of a fit are wrong: rates that are given or learnt.

    Parameters
    ----------
    n_classes : int
    n_columns : int
        One more than `n_classes` if there is a background, which has no rates.
    missed, false : float, array-like of shape (n_classes,), "learn" or "learn-per-class"
        As in `ORLogisticRegression`.

    Attributes
    ----------
    rates : Rates
        The current rates, of shape (1, n_columns).
    """

    def __init__(self, n_classes: int, n_columns: int, missed: Rate, false: Rate) -> None:
        self.n_classes = n_classes
        self.given: tuple[Rate, Rate] = missed, false
        self.rates: Rates = Rates(*np.zeros((2, 1, n_columns)))
        for rate, given in zip(self.rates, self.given, strict=True):
            start: Any = FIRST_RATE if is_learnt(given) else given
            rate[0, :n_classes] = start

    @property
    def is_learnt(self) -> bool:
        """Whether any of the rates is to be learnt."""
        return any(map(is_learnt, self.given))

    def start_from(self, rates: dict[str, np.ndarray | None] | None) -> None:
        """Start from the rates of an earlier fit, if it has any."""
        for kind, rate, given in zip(KINDS, self.rates, self.given, strict=True):
            earlier = None if rates is None else rates[kind]
            if is_learnt(given) and earlier is not None:
                # Rates that were not learnt may be zero, and have infinite log-odds.
                rate[0, : self.n_classes] = np.clip(earlier[: self.n_classes], 1e-6, 1 - 1e-6)

    def keep(self) -> None:
        """Learn the rates no further."""
        missed, false = (rate[0, : self.n_classes].copy() for rate in self.rates)
        self.given = missed, false

    def noisy(self, problem: Any) -> NoisyProblem:
        """Return a problem as one whose label sets may be wrong."""
        return noisy_problem(problem, self.rates)

    def part(self, *arguments: Any, **options: Any) -> "NoisyPart":
        """Make a part of the bags; see `NoisyPart`."""
        return NoisyPart(*arguments, noise=self, **options)

    def objective(self, parts: Sequence[Any], **options: Any) -> "NoisyObjective":
        """Make the objective of some parts; see `NoisyObjective`."""
        return NoisyObjective(parts, noise=self, **options)

    # Rates that are learnt.

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
        """Move the rates towards their estimates from expected counts.

        Parameters
        ----------
        counts : NoiseCounts
        share : float
            How far, as a share of the difference; all the way by default.
        prior : float
            Weight of the prior.
        """
        rates = [rate.copy() for rate in self.rates]
        for new, (_, given, wrong, chances) in zip(rates, self._kinds(counts), strict=True):
            if is_learnt(given):
                target = likeliest_rates(wrong, chances, prior)
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
        of_kinds = (counts.unnoticed, counts.instances), (counts.mistaken, counts.chances)
        for rate, given, both in zip(self.rates, self.given, of_kinds, strict=True):
            wrong, chances = (each[: self.n_classes] for each in both)
            if self._n_free(given) == 1:
                wrong, chances = wrong.sum(keepdims=True), chances.sum(keepdims=True)
            found.append((rate, given, wrong, chances))
        return found


class NoisyPart(Part):
    """A part of the bags of a fit whose label sets may be wrong.

    Its methods are those of `Part`, with the `Rates` as another argument.
    """

    def __init__(self, *arguments: Any, noise: LabelNoise, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._noise = noise
        self._noisy = noise.noisy(self.problem)
        self._rates: Rates = noise.rates
        known = self._noisy.shown != -1
        weight = np.ones(len(known)) if self.bag_weight is None else self.bag_weight
        self._known: np.ndarray = known * weight[:, None]

    def statistics(self, W: np.ndarray, *, rates: Rates | None = None) -> Statistics:
        """Compute the likelihood and its gradient at W, and the counts to learn the rates from."""
        self._rates = self._rates if rates is None else rates
        return super().statistics(W)

    def expectation(
        self,
        W: np.ndarray,
        ray: Ray | None = None,
        step: float = 0.0,
        *,
        rates: Rates | None = None,
    ) -> Statistics:
        """Compute `statistics`, and keep logits and posteriors for the search that follows."""
        self._rates = self._rates if rates is None else rates
        return super().expectation(W, ray, step)

    def lower_bounds(
        self, ray: Ray, steps: Sequence[float], *, rates: Rates | None = None
    ) -> np.ndarray:
        """Compute the expected log-prior of the labels, as inferred at the ray's origin."""
        self._rates = self._rates if rates is None else rates
        return super().lower_bounds(ray, steps)

    def _answer(self, logits, intercepts, packed):
        log_prior, prior = Softmax(logits, intercepts).rows()
        left = prior
        if self._charges is not None:
            log_prior[:, -1] -= self._charges
            left = prior.copy()
            left[:, -1] *= np.exp(-self._charges)
        noisy = self._noisy.answer(log_prior, left, self._rates, method=self.method, n_jobs=1)
        surplus = np.ascontiguousarray((prior - noisy.posterior).T)
        counts = expected_counts(noisy, self.problem.offsets, self._known)
        return surplus, noisy, noisy.posterior, counts

    def _expected(self, posterior, logits):
        log_prior, _ = Softmax(logits).rows()
        sums = np.zeros(self.problem.n_bags)
        bags = np.repeat(np.arange(len(sums)), np.diff(self.problem.offsets))
        possible = np.where(posterior > 0, log_prior, 0.0)
        np.add.at(sums, bags, (posterior * possible).sum(axis=1))
        return sums

    def relax(self, W: np.ndarray, bags: Any) -> dict[int, np.ndarray]:
        """Relax the labels of intractable bags that are most certain to occur at W."""
        relaxed = super().relax(W, bags)
        if relaxed:
            self._noisy = self._noise.noisy(self.problem)
            self._known = np.where(self._noisy.shown != -1, self._known, 0.0)
        return relaxed


class NoisyObjective(Objective):
    """Penalised log-likelihood of label sets that may be wrong, over weights and rates.

    It updates the rates of `noise`.
    """

    def __init__(self, *arguments: Any, noise: LabelNoise, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.noise: LabelNoise = noise
        self._prior = 1.0

    def scale_penalty(self, share: float) -> None:
        """Multiply the penalty, and the weight of the prior of the rates, by a share."""
        super().scale_penalty(share)
        self._prior *= share

    @property
    def rates(self) -> Rates:
        """The current rates."""
        return self.noise.rates

    def _ask(self, question, *arguments, **options):
        if question != "relax":
            options["rates"] = self.rates
        return super()._ask(question, *arguments, **options)

    def penalty(self, W: np.ndarray) -> float:
        """Compute the penalty of large weights, and of the rates."""
        return super().penalty(W) + self.noise.penalty()

    def flat(self, W: np.ndarray) -> NDArray[np.float64]:
        """Return all parameters as one vector."""
        return np.append(W, self.noise.log_odds())

    def unflattened(self, flat: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Set the rates from a vector of all parameters, and return the weights."""
        n_weights = int(np.prod(shape))
        self.noise.set_log_odds(flat[n_weights:])
        return flat[:n_weights].reshape(shape)

    def flat_gradient(self, here: Statistics) -> NDArray[np.float64]:
        """Return the gradient with respect to the vector of all parameters."""
        counts = here.noise
        assert counts is not None
        return np.append(here.gradient, self.noise.gradient(counts))

    def learn_rates(self, here: Statistics, share: float = 1.0) -> None:
        """Move the rates towards their estimates from an E-step."""
        if here.noise is not None:
            self.noise.learn(here.noise, share, self._prior)


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
    apart = float(np.sum((log_odds - pooled) ** 2)) / SPREAD**2
    return float(SEEN_WRONG * wrong + SEEN_RIGHT * right) - 0.5 * apart


def prior_gradient(log_odds: np.ndarray) -> NDArray[np.float64]:
    """Return the gradient of `log_prior_of`."""
    pooled = log_odds.mean()
    of_pooled = SEEN_WRONG - (SEEN_WRONG + SEEN_RIGHT) * rates_of(pooled)
    return of_pooled / len(log_odds) - (log_odds - pooled) / SPREAD**2


def likeliest_rates(wrong: np.ndarray, chances: np.ndarray, prior: float) -> NDArray[np.float64]:
    """Return the most likely rates given counts and the prior, by Newton's method.

    `wrong` counts how often labels were wrong, and `chances` how often they could have been.

    Examples
    --------
    >>> likeliest_rates(np.array([2.0]), np.array([20.0]), 1.0).round(3)
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
        # If the curve is flat except in one place, a full step would overshoot.
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
    return NoiseCounts(
        unnoticed=(answer.unnoticed * known).sum(axis=0),
        instances=(answer.posterior * known[bag]).sum(axis=0),
        mistaken=(answer.mistaken * known).sum(axis=0),
        chances=known.sum(axis=0),
    )


def is_learnt(given: Rate) -> bool:
    """Return whether a rate is to be learnt."""
    return isinstance(given, str)
