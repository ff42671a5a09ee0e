"""Held-out bags: fits to the other folds, and what the tags of a bag say of its instances then.

======== =======================================================================================
``P``    (n_instances, n_columns) probabilities by fits that have not seen the bag
``g_c``  P(a bag is tagged c | an instance of it is not a c)
``m``    share of tags that are missing
evidence of an instance: log(sum over classes c of P_c * P(tag of c | it is a c) / P(tag of c | it
         is not) + P_background): how much more likely the tags of its bag are, given what the
         fits say of it
======== =======================================================================================

Evidence judges instances one by one, so that many slightly doubtful instances of a bag are not a
contradiction. A background is judged by `information_of_labels` instead, in which it has its share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.union.conditioner import background_costs
from unbag.union.rates import Rates

from .linear import LinearSettings, Progress, fit_linear, linear_scores

#: What explains instances that do not look like the tags of their bags: nothing, a background
#: class, or tags that are missing.
Kind: TypeAlias = Literal["none", "background", "missed"]

N_FOLDS = 3
#: Fits that only decide need not be exact.
TOLERANCE, MOST_ITERATIONS = 1e-4, 100
#: Temperatures and shares of missing tags at which evidence is measured.
TEMPERATURES: tuple[float, ...] = tuple((2.0 ** (np.arange(-3, 8) / 2)).tolist())
MISSED: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
#: Least evidence of an instance, and least log-probability of a bag, so that none decides alone.
LEAST_EVIDENCE = -5.0
UNLIKELY: float = float(np.log(1e-12))
# Steps of EM for the shares of classes, which need not be exact.
N_SHARING = 50


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kind of model with a penalty, and what its fits say of held-out bags.

    `evidence` has the mean over all instances, and `by_bag` sums, at the `temperature` and the
    share `missed` of missing tags that suit the model best. `rates` are means over the folds, and
    `fits` are how they ended: the fit of a fold has seen all bags except those of the fold.
    """

    kind: Kind
    alpha: float
    cost: float
    scores: NDArray[np.float64]
    evidence: float
    by_bag: NDArray[np.float64]
    temperature: float
    missed: float
    rates: Rates | None = None
    fits: Sequence[Progress | None] = ()

    @property
    def proba(self) -> NDArray[np.float64]:
        """Probabilities of held-out instances, of shape (n_instances, n_columns)."""
        return softmax(self.scores, axis=1)


class Folds:
    """Bags in folds, each held out in turn, and the candidates that were fitted to the others.

    Bags that do not count (`counted`) are neither learnt from nor asked.
    """

    def __init__(
        self,
        bags: Bags,
        labels: LabelSets,
        pinned: np.ndarray | None,
        weight: np.ndarray | None,
        settings: LinearSettings,
    ) -> None:
        self.bags, self.labels, self.pinned = bags, labels, pinned
        self.settings = settings
        self.weight: np.ndarray = np.ones(len(bags)) if weight is None else weight
        self.counted: np.ndarray = (bags.sizes > 0) & (self.weight > 0)
        self.fold: np.ndarray = folds_of(labels.indicator, self.counted)
        #: 1 for tags, also of groups; 0 for classes that are not tagged; -1 where that is unknown.
        self.tagged: np.ndarray = np.where(labels.named, 1, labels.indicator)
        self.bag: np.ndarray = np.repeat(np.arange(len(bags)), bags.sizes)
        counts = self.weight * self.counted
        self.shares: np.ndarray
        self.shares, self.naming_cost = naming_cost(self.tagged, bags.sizes, counts)
        self.chance: np.ndarray = chance_of_tags(self.tagged, bags.sizes, counts, self.shares)
        self._reached: dict[tuple, Progress] = {}
        self._held_out: list[np.ndarray] = [
            np.flatnonzero(self.fold[self.bag] == each) for each in range(N_FOLDS)
        ]
        self._features = [bags.X[rows] for rows in self._held_out]

    def fitted(
        self, kind: Kind, alpha: float, cost: float = 0.0, rates: Rates | None = None
    ) -> Candidate:
        """Fit a candidate to the bags of all folds but one, for each fold, and ask that one.

        Fits go on where those of the same kind with another penalty ended. Those with a cost keep
        the `rates` that are given.
        """
        from .decide import Decision

        background = kind == "background"
        decision = Decision(kind, alpha, cost, rates)
        settings = replace(
            decision.settings(self.settings),
            tol=TOLERANCE,
            max_iter=min(MOST_ITERATIONS, self.settings.max_iter),
        )
        labels, n_classes = self.labels, self.labels.shape[1]
        problem = decision.conditioner().problem(
            self.bags.offsets, labels, self.pinned, relax=False
        )
        usable = ~settings.impossible(problem, n_classes) & self.counted
        scores = np.zeros((len(self.bag), n_classes + background))
        fits: list[Progress | None] = [None] * N_FOLDS
        for own, rows in enumerate(self._held_out):
            used = usable & (self.fold != own)
            if not used.any():
                continue
            key = kind, cost, own
            reached = fit_linear(
                self.bags, problem, settings, decision, used=used, weight=self.weight,
                start=self._reached.get(key),
            )  # fmt: skip
            if reached.ended == "interrupted":
                raise KeyboardInterrupt
            self._reached[key] = replace(reached, history=())
            scores[rows] = linear_scores(self._features[own], *reached.coefficients)
            fits[own] = reached
        learnt = [np.array(each.rates) for each in fits if each is not None and each.rates]
        rates = Rates(*np.mean(learnt, axis=0)) if learnt else None
        return self._asked(kind, alpha, cost, scores, rates, fits)

    def _asked(self, kind, alpha, cost, scores, rates, fits):
        """Measure the evidence of scores at the temperature and share of missing tags that suit."""
        weight = (self.weight * self.counted)[self.bag]
        best = -np.inf, None, 1.0, 0.0
        for temperature in TEMPERATURES:
            own, other, rest = self._agreement(softmax(scores / temperature, axis=1))
            for missed in MISSED:
                found = np.log((1.0 - missed) * own + missed * other + rest + 1e-12)
                found = np.maximum(found, LEAST_EVIDENCE) * weight
                mean = float(found.sum() / weight.sum())
                if mean > best[0]:
                    best = mean, found, temperature, missed
        evidence, found, temperature, missed = best
        by_bag = np.bincount(self.bag, found, len(self.bags)).astype(np.float64)
        return Candidate(
            kind, alpha, cost, scores, evidence, by_bag, temperature, missed, rates, fits
        )

    def seen_scores(self, candidate: Candidate) -> NDArray[np.float64]:
        """Return scores of all instances by fits that have seen their bags, one for each fold."""
        scores = np.zeros_like(candidate.scores)
        for own, rows in enumerate(self._held_out):
            fit = candidate.fits[(own + 1) % N_FOLDS]
            if fit is not None:
                scores[rows] = linear_scores(self._features[own], *fit.coefficients)
        return scores

    def _agreement(self, proba):
        """Split the evidence of instances: by tags, by tags that would be missing, by the rest."""
        y, n_classes = self.tagged[self.bag], self.tagged.shape[1]
        own = np.einsum("ic,ic->i", proba[:, :n_classes], np.where(y == 1, 1.0 / self.chance, 0.0))
        other = np.einsum(
            "ic,ic->i", proba[:, :n_classes], np.where(y == 0, 1.0 / (1.0 - self.chance), 0.0)
        )
        unknown = np.einsum("ic,ic->i", proba[:, :n_classes], y == -1)
        return own, other, unknown + proba[:, n_classes:].sum(axis=1)

    def by_errors(self, one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
        """Return by how many standard errors one exceeds the other, as a mean over bags."""
        difference = (one - other)[self.counted]
        return float(np.sqrt(len(difference)) * difference.mean() / max(difference.std(), 1e-9))

    def right_by_bag(self, candidate: Candidate) -> NDArray[np.float64]:
        """Estimate how many instances of each bag have the most likely class.

        That class is a tag if it is right. If it is wrong, it is a tag by chance.
        """
        top = candidate.scores[:, : self.tagged.shape[1]].argmax(axis=1)
        tagged, chance = self.tagged[self.bag, top], self.chance[top]
        right = np.where(tagged == -1, 0.0, ((tagged == 1) - chance) / (1.0 - chance))
        return np.bincount(self.bag, right, len(self.bags)).astype(np.float64)

    def information(self, candidate: Candidate) -> NDArray[np.float64]:
        """Return `information_of_labels` by bag, at the temperature of the highest mean."""
        found, weight = [], self.weight * self.counted
        for temperature in TEMPERATURES[3:]:
            proba = softmax(candidate.scores / temperature, axis=1)
            shares = np.average(proba, axis=0, weights=weight[self.bag])
            each = information_of_labels(proba, shares, self.bags.offsets, self.labels.indicator)
            found.append(np.maximum(each, UNLIKELY) * weight * len(weight) / weight.sum())
        return max(found, key=np.mean)

    def background_by_bag(self, candidate: Candidate) -> NDArray[np.float64]:
        """Return how many instances of each bag are background, given its tags."""
        y = self.labels.indicator
        return background_counts(candidate.proba, self.bags.offsets, y, candidate.cost)

    def share_of_background(self, candidate: Candidate) -> float:
        """Return the share of background instances, given the tags of their bags."""
        counts = self.weight * self.counted
        return float(counts @ self.background_by_bag(candidate) / (counts @ self.bags.sizes))

    def growth_of_background(self, candidate: Candidate) -> float:
        """Return by how many standard errors background increases with the labels of bags."""
        counts = self.background_by_bag(candidate)
        return growth(counts, self.labels.cardinality, self.weight * self.counted)

    def n_wrong(self, candidate: Candidate) -> float:
        """Return how many labels of a held-out bag are wrong at a threshold of one half."""
        y = self.labels.indicator
        present = -np.expm1(log_absence_of(candidate.proba, self.bags, y.shape[1])) >= 0.5
        wrong = ((present != (y == 1)) & (y != -1)).sum(axis=1)
        return float(np.average(wrong, weights=self.weight * self.counted))


def folds_of(y: np.ndarray, counted: np.ndarray, n_folds: int = N_FOLDS) -> NDArray[np.intp]:
    """Split the counted bags into folds, equal label sets evenly; -1 for the others.

    Nothing is random.

    Examples
    --------
    >>> y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0]])
    >>> folds_of(y, np.array([True, True, True, True, False]), 2)
    array([ 0,  1,  0,  1, -1])
    """
    fold = np.full(len(y), -1)
    # Without any class there is nothing to sort by.
    in_order = np.lexsort(y.T) if y.shape[1] else np.arange(len(y))
    in_order = in_order[counted[in_order]]
    fold[in_order] = np.arange(len(in_order)) % n_folds
    return fold


def naming_cost(
    tagged: np.ndarray, sizes: np.ndarray, weight: np.ndarray
) -> tuple[NDArray[np.float64], float]:
    """Compute the shares of classes, and what it costs, in nats, to label a random instance.

    That is minus the log-probability that it has one of the tags of its bag, as a mean over the
    instances of tagged bags: the share that these classes have there, as far as tags tell, times
    the share of instances in tagged bags.

    Examples
    --------
    Two equally frequent classes: an uninformative instance has either with probability one half.

    >>> naming_cost(np.array([[1, 0], [0, 1]]), np.array([3, 3]), np.ones(2))
    (array([0.5, 0.5]), 0.6931471805599453)
    """
    n_classes, counts = tagged.shape[1], weight * sizes
    shares = np.full(n_classes, 1.0 / max(n_classes, 1))
    # Bags that do not count say nothing of the shares of classes, which may be zero for them.
    is_tagged = (tagged == 1).any(axis=1) & (counts > 0)
    if not is_tagged.any():
        return shares, 0.0
    allowed, own = (tagged != 0)[is_tagged], counts[is_tagged]
    # Expectation maximisation: every bag divides its instances among its labels.
    for _ in range(N_SHARING):
        shares = (own / (allowed @ shares)) @ allowed * shares / own.sum()
    cost = np.average(-np.log(np.minimum(allowed @ shares, 1.0)), weights=own)
    return shares, float(cost - np.log1p(-counts[~is_tagged].sum() / counts.sum()))


def chance_of_tags(
    tagged: np.ndarray, sizes: np.ndarray, weight: np.ndarray, shares: np.ndarray
) -> NDArray[np.float64]:
    """Compute the probability of each tag in the bag of an instance of another class.

    Examples
    --------
    Half of the instances lie in bags that are tagged with a class, and a quarter belong to it.

    >>> tagged = np.array([[1, 1], [0, 1]])
    >>> chance_of_tags(tagged, np.array([2, 2]), np.ones(2), np.array([0.25, 0.75])).round(2)
    array([0.33, 0.75])
    """
    counts = (weight * sizes)[:, None] * (tagged != -1)
    known = np.maximum(counts.sum(axis=0), 1e-12)
    frequency = (counts * (tagged == 1)).sum(axis=0) / known
    shares = np.minimum(shares, frequency)
    found = (frequency - shares) / np.maximum(1.0 - shares, 1e-9)
    return np.clip(found, 0.5 / len(tagged), 1.0 - 0.5 / len(tagged))


def information_of_labels(
    proba: np.ndarray, shares: np.ndarray, offsets: np.ndarray, y: np.ndarray
) -> NDArray[np.float64]:
    """Compute by how much the label set of each bag raises the log-probability of its instances.

    `proba` are probabilities of instances by a model that has not seen the bag, the background
    last; `shares` are what columns have of all instances by the same model. Given the label set,
    the background keeps its share, and the classes of the label set have the rest. ``-inf`` if an
    instance is impossible.

    The likelihood of label sets would always prefer a background. In the model instances draw their
    labels independently, so that many slightly doubtful ones make a label set nearly impossible,
    and a class for whatever is in doubt repairs that at the cost of all instances. Here doubtful
    instances count little, and background instances count nothing.

    Examples
    --------
    Two equally frequent classes, and an instance that certainly has the first: log 2, or
    impossible.

    >>> proba, shares = np.array([[1.0, 0.0]] * 2), np.array([0.5, 0.5])
    >>> information_of_labels(proba, shares, np.arange(3), np.array([[1, 0], [0, 1]]))
    array([0.69314718,       -inf])
    """
    n_bags, n_classes = y.shape
    bag = np.repeat(np.arange(n_bags), np.diff(offsets))
    allowed = (y != 0)[bag]
    # Not zero, for label sets of classes that no instance has.
    expected = np.maximum(allowed @ shares[:n_classes], 1e-12)
    rest = np.where(allowed.any(axis=1), 1.0 - shares[n_classes:].sum(), 0.0)
    named = rest * np.einsum("ic,ic->i", proba[:, :n_classes], allowed) / expected
    background = proba[:, n_classes:] / np.maximum(shares[n_classes:], 1e-12)
    ratio = named + (1.0 - rest) * background.sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.bincount(bag, np.log(ratio), n_bags).astype(np.float64, copy=False)


def log_absence_of(proba: np.ndarray, bags: Bags, n_classes: int) -> NDArray[np.float64]:
    """Return the log-probability that no instance of a bag has a class, for each bag and class."""
    rest = np.log1p(-np.minimum(proba[:, :n_classes], 1.0 - 1e-12))
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    found = np.zeros((len(bags), n_classes))
    np.add.at(found, bag, rest)
    return found


def background_counts(
    proba: np.ndarray, offsets: np.ndarray, y: np.ndarray, cost: float
) -> NDArray[np.float64]:
    """Estimate how many instances of each bag are background, given its labels and the cost.

    It does not matter here that every label needs an instance.

    Examples
    --------
    >>> proba = np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    >>> background_counts(proba, np.array([0, 2]), np.array([[1, 0]]), 0.0)
    array([1.5])
    """
    n_bags = len(y)
    bag = np.repeat(np.arange(n_bags), np.diff(offsets))
    named = np.einsum("ic,ic->i", proba[:, :-1], (y != 0)[bag])
    background = proba[:, -1] * np.exp(-background_costs(y, offsets, cost))
    return np.bincount(bag, background / np.maximum(named + background, 1e-300), n_bags).astype(
        np.float64
    )


def growth(counts: np.ndarray, n_labels: np.ndarray, weight: np.ndarray) -> float:
    """Compute by how many standard errors counts increase with the number of labels.

    Examples
    --------
    >>> counts, n_labels = np.array([1.0, 2.1, 2.9]), np.array([1, 2, 3])
    >>> growth(counts, n_labels, np.ones(3)) > 5
    True
    """
    used = (n_labels > 0) & (weight > 0)
    if used.sum() < 3:
        return 0.0
    weight = weight[used] / weight[used].mean()
    steps = n_labels[used] - np.average(n_labels[used], weights=weight)
    excess = counts[used] - np.average(counts[used], weights=weight)
    spread = (weight * steps**2).sum()
    if spread == 0:
        return 0.0
    slope = (weight * steps * excess).sum() / spread
    rest = (weight * (excess - slope * steps) ** 2).sum() / (used.sum() - 2)
    return float(slope / np.sqrt(rest / spread)) if rest > 0 else 0.0
