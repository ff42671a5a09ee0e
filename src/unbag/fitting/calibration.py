"""How sure a model may be, by held-out bags: temperatures of instances, and presence of classes.

Tags are the truth about which classes a bag has, and say only indirectly which of its instances are
right. So three judges choose the temperature for new bags: the evidence of tags instance by
instance, the likelihood of label sets, and the same where one tag of a bag may be missing.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from unbag.bags import offsets_of
from unbag.groups import runs
from unbag.labels import LabelSets
from unbag.union import UnionProblem
from unbag.union.conditioner import Conditioner

from .held_out import TEMPERATURES, UNLIKELY, Candidate, Folds

#: Shares of bags that lack one of their tags.
LACKING: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
#: Bags that are asked at most, and probabilities of their instances: more would change a
#: temperature by little.
ASKED, MOST_ASKED = 200, 1 << 24
FEWEST_ASKED = 20
#: Where most classes are tagged in most bags, a wrong class is mostly tagged, too.
DENSE = 0.4
#: From this share of missing tags on, the likelihood of complete label sets does not count.
SOME_MISSED = 0.02
#: Label sets that are likely only at so much higher a temperature lack tags.
APART = 2.0


class Presence(NamedTuple):
    """Two numbers that turn expected counts of instances into probabilities of bags.

    A class occurs in a bag with probability ``1 - exp(-exp(shift) * n ** slope)``, where n is the
    sum over instances of minus the log-probability of another class.
    """

    shift: float = 0.0
    slope: float = 1.0

    def log_absence(self, log_absence: np.ndarray) -> NDArray[np.float64]:
        """Return the log-probability that a class does not occur, given the one by instances."""
        if (self.shift, self.slope) == (0.0, 1.0):
            return log_absence
        return -np.exp(self.shift) * np.abs(log_absence) ** self.slope


#: Probabilities of bags as those of instances say.
AS_IT_IS = Presence()


def best_presence(log_absence: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Presence:
    """Fit the presence of classes to tags of held-out bags; unknown ones do not count."""
    known = y != -1
    n = np.log(np.clip(-log_absence[known], 1e-9, 1e9))
    tagged, weight = y[known] == 1, np.broadcast_to(weight[:, None], y.shape)[known]
    if not weight.any():
        return AS_IT_IS

    def loss(parameters):
        shift, slope = parameters
        rate = np.exp(np.clip(shift + slope * n, -30.0, 5.0))
        found = np.where(tagged, np.log(-np.expm1(-rate) + 1e-15), -rate)
        slopes = np.where(tagged, rate / np.expm1(np.maximum(rate, 1e-15)), -rate) * weight
        # A weak prior: a bag or so that says the model is right.
        value = -(weight * found).sum() + 0.5 * (shift**2 + (slope - 1.0) ** 2)
        return value, np.array([shift - slopes.sum(), slope - 1.0 - (slopes * n).sum()])

    start = np.array([0.0, 1.0])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(-5, 5), (0.05, 5)]).x
    return Presence(*map(float, found))


def temperature_for_new(folds: Folds, chosen: Candidate) -> float:
    """Return the temperature for new bags: the geometric mean of the judges that count here."""
    complete, lacking = temperatures_of_label_sets(folds, chosen)
    evidence = chosen.temperature
    if float(folds.shares @ folds.chance) > DENSE:
        judges = [complete, lacking]
    elif chosen.kind == "background":
        judges = [min(evidence, 2.0 * complete), complete]
    elif complete / lacking >= APART:
        judges = [lacking]
    elif chosen.missed >= SOME_MISSED:
        judges = [evidence, lacking]
    else:
        judges = [evidence, complete, lacking]
    return float(np.exp(np.mean(np.log(judges))))


def temperatures_of_label_sets(folds: Folds, chosen: Candidate) -> tuple[float, float]:
    """Return the best temperatures by label sets: as they are, and where one tag may be missing."""
    n_columns = folds.labels.shape[1]
    some = sample_of(folds, ASKED, n_columns**2)
    bags, labels = folds.bags[some], folds.labels[some]
    scores = chosen.scores[np.isin(folds.bag, some)]
    weight = folds.weight[some]
    bag, is_more, y = with_one_more(labels, bags.sizes, chosen.kind == "background")
    sizes = bags.sizes[bag]
    rows = runs(bags.offsets[bag], sizes)
    problem = UnionProblem(offsets_of(sizes), y)
    n_tags = (y == 1).sum(axis=1) - is_more
    found = np.empty((len(TEMPERATURES), len(LACKING)))
    for i, temperature in enumerate(TEMPERATURES):
        log_prior = log_softmax(scores / temperature, axis=1)[rows]
        answer = problem.infer(log_prior, on_intractable="relax")
        for j, rate in enumerate(LACKING):
            with np.errstate(divide="ignore"):
                each = answer.log_likelihood + (n_tags * np.log1p(-rate))
                each = np.where(is_more, each + np.log(rate), each)
            top = np.full(len(some), -np.inf)
            np.maximum.at(top, bag, each)
            finite = np.where(np.isfinite(top), top, 0.0)
            total = np.bincount(bag, np.exp(each - finite[bag]), len(some))
            of_bags = np.where(np.isfinite(top), finite + np.log(np.maximum(total, 1e-300)), top)
            found[i, j] = np.average(np.maximum(of_bags, UNLIKELY), weights=weight)
    lacking = int(found.max(axis=0).argmax())
    return best_temperature(found[:, 0]), best_temperature(found[:, lacking])


def with_one_more(
    labels: LabelSets, sizes: np.ndarray, background: bool
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.int8]]:
    """List the label sets of bags, and those with one more label, which they may lack.

    Return the bag of each, whether it has one label more, and the label sets as columns.
    """
    y = labels.indicator
    n_tags = (y == 1).sum(axis=1)
    bags, columns = np.nonzero((y == 0) & (n_tags < sizes)[:, None])
    more = y[bags].copy()
    more[np.arange(len(bags)), columns] = 1
    bag = np.append(np.arange(len(y)), bags)
    found = np.vstack([y, more]).astype(np.int8)
    if background:
        found = np.hstack([found, np.full((len(found), 1), -1, dtype=np.int8)])
    return bag, np.arange(len(bag)) >= len(y), found


def best_temperature(likelihood: np.ndarray) -> float:
    """Return the temperature of the highest likelihood, by a parabola through its neighbours."""
    at, steps = int(likelihood.argmax()), np.log2(TEMPERATURES)
    if 0 < at < len(likelihood) - 1:
        before, here, after = likelihood[at - 1 : at + 2]
        bend = before - 2.0 * here + after
        if bend < 0:
            return float(2.0 ** (steps[at] + 0.5 * (before - after) / bend * (steps[1] - steps[0])))
    return TEMPERATURES[at]


def sample_of(folds: Folds, most: int, for_each: int = 1) -> NDArray[np.intp]:
    """Choose bags that count, evenly from all label sets.

    At most so many, and such that their instances, with so much `for_each`, fit into memory.
    """
    counted = np.flatnonzero(folds.counted)
    size = float(folds.bags.sizes[counted].mean())
    most = min(most, max(FEWEST_ASKED, int(MOST_ASKED / (size * for_each))))
    if len(counted) <= most:
        return counted
    y = folds.labels.indicator[counted]
    order = np.lexsort(y.T) if y.shape[1] else np.arange(len(counted))
    return np.sort(counted[order[np.linspace(0, len(counted) - 1, most).round().astype(int)]])


def temperature_for_given(
    folds: Folds, chosen: Candidate, conditioner: Conditioner, new: float
) -> float:
    """Return the temperature given tags: as sure as held-out fits are that the labels are right.

    The labels are those of fits that have seen the bags, as the last one will have.
    """
    if chosen.kind == "missed":
        return new
    some = sample_of(folds, 2 * ASKED, folds.labels.shape[1])
    bags, labels = folds.bags[some], folds.labels[some]
    rows = np.isin(folds.bag, some)
    seen, held_out = folds.seen_scores(chosen)[rows], chosen.scores[rows]
    problem = conditioner.problem(bags.offsets, labels)

    def posterior(scores, temperature):
        given = replace(conditioner, temperature=temperature, on_intractable="relax")
        return given.infer(log_softmax(scores, axis=1), problem).posterior

    answers = posterior(seen, new)
    agreed = posterior(held_out, new)[np.arange(len(seen)), answers.argmax(axis=1)].mean()
    if answers.max(axis=1).mean() <= agreed:
        return new
    low, high = np.log2(new), np.log2(new) + 4.0
    for _ in range(7):
        middle = 0.5 * (low + high)
        is_sure = posterior(seen, 2.0**middle).max(axis=1).mean() > agreed
        low, high = (middle, high) if is_sure else (low, middle)
    return float(2.0 ** (0.5 * (low + high)))
