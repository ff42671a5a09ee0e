"""How sure of itself a model may be, as held-out bags have it: its scores are divided by that.

Models are compared at the temperature at which held-out label sets are likeliest. The chosen one
gets two others, since a label set is a statement about all instances of a bag at once, and errors
of instances of one bag are not independent:

- Of instances of bags whose labels are not known: that at which single tags are likeliest, each
  by itself. That is what `predict_proba` says of bags.
- Of instances given the labels of their bag: that at which single tags are likeliest, each *given
  the others*. Whether a tag would be missed if it were not there is a question about instances
  that the other tags might explain; so are annotations. Annotated are mostly bags that the model
  has learnt from, of which it is surer than of held-out ones. It may know their instances better,
  or just their tags by heart: so the temperature is raised until half of the difference is gone.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from unbag.bags import Bags
from unbag.estimators.contract import log_of_rest, per_bag
from unbag.estimators.instances import UNLIKELY
from unbag.labels import LabelSets

#: What models are compared at: a model that is too sure of itself would lose to one that believes
#: label sets to be wrong.
TEMPERATURES: tuple[float, ...] = tuple((2.0 ** (np.arange(-2, 6) / 4)).tolist())
#: What that of the chosen one is chosen from.
FINAL: tuple[float, ...] = tuple((2.0 ** (np.arange(-4, 13) / 4)).tolist())
#: How often labels might be wrong.
RATES: tuple[float, ...] = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
#: Of more bags and classes of a fold, as many at random are asked about single tags given others.
MOST_BAGS, MOST_CLASSES = 400, 50


def at_temperatures(
    model: Any, bags: Bags, temperatures: tuple[float, ...] = TEMPERATURES
) -> Iterator[Any]:
    """Yield models that have their answers for some bags ready, each at a temperature.

    What a background costs is a score too.
    """
    scores = model._label_scores(bags)
    for temperature in temperatures:
        own = log_softmax(scores / temperature, axis=1)
        asked = copy.copy(model)
        asked._label_scores = lambda _, own=own: own
        asked.background_cost_ = model.background_cost_ / temperature
        yield asked


def held_out_likelihood(model: Any, bags: Bags, labels: LabelSets) -> NDArray[np.float64]:
    """Return log-likelihoods of label sets at each of `TEMPERATURES`, at least log 1e-12.

    Of shape (n_temperatures, n_bags).
    """
    is_strange = np.zeros(len(bags), dtype=bool)
    return np.array(
        [
            asked._label_set_scores(bags, labels, is_strange)
            for asked in at_temperatures(model, bags)
        ]
    )


def excused_likelihood(model: Any, bags: Bags, labels: LabelSets, kind: str) -> NDArray[np.float64]:
    """Return log-likelihoods of label sets, at least log 1e-12, if labels were wrong at some rate.

    At each of `TEMPERATURES` and `RATES`, of shape (n_temperatures * n_rates, n_bags). `kind` is
    "missed" or "false"; the other rate is as the model has it.
    """
    is_strange = np.zeros(len(bags), dtype=bool)
    found = []
    for asked in at_temperatures(model, bags):
        for rate in RATES:
            setattr(asked, f"{kind}_", np.full(labels.shape[1], rate))
            found.append(asked._label_set_scores(bags, labels, is_strange))
    return np.array(found)


def tag_likelihood(model: Any, bags: Bags, labels: LabelSets) -> NDArray[np.float64]:
    """Return log-likelihoods of all tags of some bags, each by itself, at each of `FINAL`."""
    missed, false = (getattr(model, f"{kind}_", 0.0) for kind in ("missed", "false"))
    y = labels.indicator
    found = []
    for asked in at_temperatures(model, bags, FINAL):
        log_proba = asked._label_scores(bags)
        log_absence = log_of_rest(log_proba)[:, : y.shape[1]]
        with np.errstate(divide="ignore"):
            # An instance may go unnoticed, and a class be named by mistake.
            unseen = np.logaddexp(log_absence, np.log(missed) + log_proba[:, : y.shape[1]])
            absent = per_bag(np.add, unseen, bags, 0.0) + np.log1p(-false)
            present = np.log(-np.expm1(np.minimum(absent, 0.0)))
        own = np.maximum(np.where(y == 1, present, absent), UNLIKELY)
        found.append(float(own[y != -1].sum()))
    return np.array(found)


def tag_likelihood_given_others(
    model: Any,
    bags: Bags,
    labels: LabelSets,
    rng: np.random.Generator,
    watch: Callable[[], object] = lambda: None,
) -> NDArray[np.float64]:
    """Return log-likelihoods of tags of some bags, each given the others, at each of `FINAL`.

    A background pays its cost in all bags: with a tag or without it, one of the two sets has tags.
    `watch` is called now and then.
    """
    columns = rng.permutation(labels.shape[1])[:MOST_CLASSES]
    flipped = {int(column): with_flipped(labels, column) for column in columns}
    found = []
    for asked in at_temperatures(model, bags, FINAL):
        # In place, so that it answers with them.
        scores = asked._label_scores(bags)
        scores[:, labels.shape[1] :] -= asked.background_cost_
        own = asked._log_likelihood(bags, labels, on_intractable="relax")
        total = 0.0
        for column, other in flipped.items():
            watch()
            others = asked._log_likelihood(bags, other, on_intractable="relax")
            counts = (other.indicator[:, column] != -1) & np.isfinite(np.maximum(own, others))
            each = own[counts] - np.logaddexp(own[counts], others[counts])
            total += float(np.maximum(each, UNLIKELY).sum())
        found.append(total)
    return np.array(found)


def sampled(bags: Bags, labels: LabelSets, rng: np.random.Generator) -> tuple[Bags, LabelSets]:
    """Return `MOST_BAGS` of the bags at random, or all if they are not more."""
    some = np.sort(rng.permutation(len(bags))[:MOST_BAGS])
    return bags[some], labels[some]


def with_flipped(labels: LabelSets, column: int) -> LabelSets:
    """Return label sets without a class where it was, and with it where it was not.

    Without a class that is also in a group of its bag, it is not known whether it is there.

    Examples
    --------
    >>> with_flipped(LabelSets([[1, 0], [0, -1]]), 0).indicator
    array([[ 0,  0],
           [ 1, -1]], dtype=int8)
    """
    indicator = labels.indicator.copy()
    known = indicator[:, column] != -1
    indicator[known, column] = 1 - indicator[known, column]
    return LabelSets(indicator, labels.classes, labels.open, labels.groups)


def sureness(model: Any, bags: Bags, labels: LabelSets) -> NDArray[np.float64]:
    """Return sums of the top probabilities of instances given labels, at each of `FINAL`."""
    return np.array(
        [
            asked.annotate_proba(bags, labels).max(axis=1).sum()
            for asked in at_temperatures(model, bags, FINAL)
        ]
    )


def best_temperature(likelihood: np.ndarray, otherwise: float = 1.0) -> float:
    """Return the temperature at which tags are likeliest, where that is known for `FINAL`.

    Between those, a parabola through the best and its neighbours says where. If tags are as likely
    at all of them, it is `otherwise`.

    Examples
    --------
    >>> round(best_temperature(-((np.log2(FINAL) - 0.1) ** 2)), 3) == round(2**0.1, 3)
    True
    """
    if np.allclose(likelihood, likelihood[0]):
        return otherwise
    at, steps = int(likelihood.argmax()), np.log2(FINAL)
    if 0 < at < len(FINAL) - 1:
        before, best, after = likelihood[at - 1 : at + 2]
        curvature = before - 2.0 * best + after
        if curvature < 0:
            shift = 0.5 * (before - after) / curvature
            return float(2.0 ** (steps[at] + shift * (steps[at + 1] - steps[at])))
    return FINAL[at]


def raised(temperature: float, inside: np.ndarray, outside: np.ndarray) -> float:
    """Raise a temperature until a model is half as much surer of its own bags than of others.

    Parameters
    ----------
    temperature : float
    inside, outside : ndarrays of shape (n_temperatures,)
        How sure a model is of instances of bags that it has learnt from, and of others, at each of
        `FINAL`.

    Examples
    --------
    >>> falling = np.linspace(1.0, 0.2, len(FINAL))
    >>> raised(1.0, falling, falling), raised(1.0, falling, falling - 0.1).__round__(2)
    (1.0, 1.19)
    """
    own, others = (float(np.interp(temperature, FINAL, each)) for each in (inside, outside))
    # Of bags with one label it is certain at any temperature.
    if own <= others or np.isclose(own, others):
        return temperature
    return max(temperature, as_sure_as(0.5 * (own + others), inside))


def as_sure_as(sure: float, sureness_at: np.ndarray) -> float:
    """Return the temperature at which a model is as sure as that, where it is known for `FINAL`.

    Examples
    --------
    >>> falling = np.linspace(1.0, 0.2, len(FINAL))
    >>> as_sure_as(0.8, falling), as_sure_as(0.775, falling).__round__(2)
    (1.0, 1.09)
    """
    return float(2.0 ** np.interp(-sure, -sureness_at, np.log2(FINAL)))


def tempered(model: Any, temperature: float, annotation_temperature: float | None = None) -> Any:
    """Divide the scores of a linear model by a temperature, in place; return the model.

    Given the labels of bags, they are divided by another one in its place, where that is given.
    Networks are left as they are: as a committee, they choose their own.
    """
    if hasattr(model, "coef_"):
        model._temper(temperature)
        if annotation_temperature is not None:
            model.annotation_temperature_ = annotation_temperature / temperature
    return model
