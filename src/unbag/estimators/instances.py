"""Models that score the classes of every instance: by any scores, or by probabilities.

Those whose probabilities are conditioned on the whole label set of the bag do that by exact
inference.
"""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from unbag._messages import argument, suggestion
from unbag._warnings import warn_caller
from unbag.bags import Bags, Features, bag_of
from unbag.fitting import LEARNT, LabelNoise, Rate, charged, describe_background, log_softmax
from unbag.fitting.threshold import USUAL
from unbag.labels import ColumnOfLabel, LabelSets
from unbag.tagging import BACKGROUND_NAME, is_missing
from unbag.taxonomy import ladder_of
from unbag.union import (
    ImpossibleBagError,
    ImpossibleBagWarning,
    IntractableBagWarning,
    UnionProblem,
    most_likely_labels,
)
from unbag.union.noise import impossible_bags
from unbag.union.policy import (
    OnIntractable,
    Settled,
    describe_impossible,
    relax_impossible,
    settle_impossible,
)
from unbag.union.rates import checked_rate
from unbag.validation import check_known_labels, check_numbers, in_instance_order

from .background import BACKGROUND
from .contract import BagClassifier, BagsLike, LabelSetsLike, log_of_rest, per_bag

# From which probability on a class is taken to occur in a bag.
Threshold: TypeAlias = float | Literal["union", "auto"]
# What a label set counts at least in a mean, so that no single bag decides.
UNLIKELY: float = math.log(1e-12)


class InstanceClassifier(BagClassifier):
    """Base of the estimators that label instances.

    A subclass implements ``_instance_scores(X)`` of the flat instances X, of shape
    (n_instances, n_columns): the higher, the likelier. There are as many columns as classes,
    and one more, last, when the model has a background class (``_has_background``). The
    score of a bag is the highest one of its instances, and its classes are theirs.
    """

    _has_background = False
    _instance_scores: Callable[..., Any]
    _instance_log_proba: Callable[..., Any]

    def _read_instance_labels(self, instance_labels, bags, labels=None):
        """Return known instance labels as columns of `classes_`, -1 where not known.

        The column after the last is the background, which tables have by its name. Labels that the
        label sets `labels` forbid are an error.
        """
        if instance_labels is None:
            return None
        values = np.asarray(in_instance_order(instance_labels, bags), dtype=object)
        if values.shape != (bags.n_instances,):
            raise ValueError(
                f"instance_labels must hold one label per instance: shape ({bags.n_instances},); "
                f"got shape {values.shape}."
            )
        column_of = ColumnOfLabel(self.classes_.tolist())
        columns = np.array([column_of[value] for value in values.tolist()], dtype=np.int64)
        # One by one: pandas' NA is neither equal to a word nor different from it.
        said = [isinstance(value, str) and value == BACKGROUND_NAME for value in values.tolist()]
        columns[(columns < 0) & np.array(said, dtype=bool)] = len(self.classes_)
        strange = columns < 0
        strange[strange] = [not is_missing(value) and value != -1 for value in values[strange]]
        if strange.any():
            i = int(np.argmax(strange))
            b = bag_of(bags.offsets, i)
            raise ValueError(
                f"Instance {i - bags.offsets[b]} of bag {bags.ids[b]} has the label {values[i]!r}, "
                f"which is not among the classes: correct it, or leave it out (None or -1); if the "
                f"instance is none of them, write {BACKGROUND_NAME!r}."
                f"{suggestion(str(values[i]), [*map(str, self.classes_), BACKGROUND_NAME])}"
            )
        if labels is not None:
            check_known_labels(columns, bags, labels)
        return columns

    def _check_known_background(self, pinned, bags, has_background):
        """Raise an error if instances are known to be background, and the model has none."""
        known = [] if pinned is None or has_background else pinned == len(self.classes_)
        if np.any(known):
            i = int(np.argmax(known))
            b = bag_of(bags.offsets, i)
            other = f"use {argument('background', 'auto')}, or " * hasattr(self, "background")
            raise ValueError(
                f"Instance {i - bags.offsets[b]} of bag {bags.ids[b]} is known to be "
                f"{BACKGROUND_NAME}, but {type(self).__name__} has no background: {other}leave out "
                "that label (None or -1)."
            )

    def _label_values(self, columns):
        """Return the classes that columns stand for, the background among them."""
        if not (columns >= len(self.classes_)).any():
            return self.classes_[columns]
        if self.classes_.dtype.kind in "if" and -1 not in self.classes_:
            return np.append(self.classes_, -1)[columns]
        return np.array([*self.classes_.tolist(), BACKGROUND], dtype=object)[columns]

    def _label_scores(self, bags):
        """Return what the labels of instances are chosen by."""
        return self._instance_scores(bags.X)

    def predict_instances(self, X: BagsLike) -> np.ndarray:
        """Predict the likeliest class of each instance, bag labels not known.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_instances,)
            Values of `classes_`, or `unbag.BACKGROUND`.
        """
        return self._label_values(self._label_scores(self._read_bags(X)).argmax(axis=1))

    def annotate(
        self,
        X: BagsLike,
        y: LabelSetsLike,
        instance_labels: ArrayLike | None = None,
        *,
        joint: bool = False,
    ) -> np.ndarray:
        """Predict the label of each instance, the labels of its bag known.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets, as in ``fit``
        instance_labels : array-like of shape (n_instances,), optional
            Labels of single instances, where they are known; elsewhere None, or -1 if that
            is not a class.
        joint : bool
            False for the likeliest class of each instance; True for the labelling of the
            whole bag that is likeliest (whose scores have the largest sum) among those that
            cover its label set, wherever that is possible. Where label sets may be wrong: that
            which is likeliest together with what went wrong.

        Returns
        -------
        ndarray of shape (n_instances,)
            Values of `classes_`, or `unbag.BACKGROUND`.
        """
        scores, problem = self._annotation_problem(X, y, instance_labels)
        if joint:
            columns = most_likely_labels(
                scores,
                problem.offsets,
                problem.y,
                instance_labels=problem.instance_labels,
                groups=problem.groups,
                **self._rates(),
            )
        else:
            columns = self._conditioned(scores, problem).argmax(axis=1)
        return self._label_values(columns)

    def _annotation_problem(self, X, y, instance_labels):
        """Read the arguments of `annotate`; impossible label sets are relaxed."""
        bags = self._read_bags(X)
        labels = self._read_labels(y, X)
        pinned = self._read_instance_labels(instance_labels, bags, labels)
        self._check_known_background(pinned, bags, self._has_background)
        problem = self._problem(bags, labels, pinned)
        problem = relax_impossible(problem, self._impossible(problem))
        return self._charged(self._scores_given_labels(bags), problem), problem

    def _scores_given_labels(self, bags):
        """Return what instances are labelled by where the labels of bags are known."""
        return self._label_scores(bags)

    def _charged(self, scores, problem):
        """Return scores for inference given label sets, where a background may cost something."""
        return scores

    def _rates(self) -> dict[str, Any]:
        """Return how often label sets are wrong, as `infer` takes it: never."""
        return {}

    def _impossible(self, problem):
        """Return the bags that no labelling can explain."""
        return problem.impossible

    def _conditioned(self, scores, problem):
        """Set the scores of classes that an instance cannot have in its bag to ``-inf``."""
        return np.where(problem.allowed_labels(), scores, -np.inf)

    def _problem(self, bags, labels, pinned=None):
        """Return label sets for inference, groups of classes among them."""
        y, groups = self._union_y(labels), labels.groups
        groups = None if groups is None else groups.widened(y.shape[1])
        return UnionProblem(bags.offsets, y, pinned, groups)

    def _union_y(self, labels):
        """Return label sets for inference: the background is optional in every bag."""
        if not self._has_background:
            return labels.indicator.copy()
        optional = np.full((len(labels), 1), -1, dtype=np.int8)
        return np.hstack([labels.indicator, optional])

    def _bag_scores(self, bags):
        scores = self._label_scores(bags)[:, : len(self.classes_)]
        return per_bag(np.maximum, scores, bags, -np.inf)

    def _bag_sets(self, bags, scores):
        scores = self._label_scores(bags)
        votes = np.zeros((len(bags), scores.shape[1]), dtype=int)
        votes[np.repeat(np.arange(len(bags)), bags.sizes), scores.argmax(axis=1)] = 1
        return votes[:, : len(self.classes_)]


class ProbabilisticClassifier(InstanceClassifier):
    """Base of the estimators that give every instance a probability of every class.

    A subclass implements ``_instance_log_proba(X)``, of shape (n_instances, n_columns), and has
    the parameter `threshold`: the least probability at which a class is taken to occur in a bag;
    "auto" for `threshold_`, as it was learnt; or "union", for the rule of all other models.
    """

    threshold: Threshold
    threshold_: float = USUAL

    def _instance_scores(self, X):
        """Score the classes of each instance: by default, their log-probabilities."""
        return self._instance_log_proba(X)

    def _label_scores(self, bags):
        return self._instance_log_proba(bags.X)

    def predict_instances_proba(self, X: BagsLike) -> NDArray[np.float64]:
        """Predict the probability of each class for each instance, bag labels not known.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_instances, n_classes), or one column more for the background
        """
        return np.exp(self._label_scores(self._read_bags(X)))

    def predict_instances(
        self,
        X: BagsLike,
        *,
        level: str | None = None,
        back_off: float | None = None,
        taxonomy: Any = None,
    ) -> np.ndarray:
        """Predict the likeliest class of each instance, bag labels not known.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        level : str, optional
            A rank of the taxonomy, such as "genus": the likeliest name of this rank.
        back_off : float, optional
            The lowest name of the taxonomy that has at least this probability; None where none has.
        taxonomy : path, list of (child, parent, rank) or dict of child to parent, optional
            By default that which the model was fitted with.

        Returns
        -------
        ndarray of shape (n_instances,)
            Values of `classes_`, or `unbag.BACKGROUND`; names of the taxonomy, as objects, if a
            level is asked for.
        """
        if level is None and back_off is None:
            return super().predict_instances(X)
        return self._at_level(self.predict_instances_proba(X), level, back_off, taxonomy)

    def annotate(
        self,
        X: BagsLike,
        y: LabelSetsLike,
        instance_labels: ArrayLike | None = None,
        *,
        joint: bool = False,
        level: str | None = None,
        back_off: float | None = None,
        taxonomy: Any = None,
    ) -> np.ndarray:
        """Predict the label of each instance, the labels of its bag known.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets, as in ``fit``
        instance_labels : array-like of shape (n_instances,), optional
            Labels of single instances, where they are known; elsewhere None, or -1 if that
            is not a class.
        joint : bool
            False for the likeliest class of each instance; True for the labelling of the
            whole bag that is likeliest (whose scores have the largest sum) among those that
            cover its label set, wherever that is possible. Where label sets may be wrong: that
            which is likeliest together with what went wrong.
        level, back_off, taxonomy
            As in `predict_instances`; not with `joint`.

        Returns
        -------
        ndarray of shape (n_instances,)
            Values of `classes_`, or `unbag.BACKGROUND`; names of the taxonomy, as objects, if a
            level is asked for.
        """
        if level is None and back_off is None:
            return super().annotate(X, y, instance_labels, joint=joint)
        if joint:
            raise ValueError("joint labellings are of classes: leave out level and back_off.")
        proba = self.annotate_proba(X, y, instance_labels)
        return self._at_level(proba, level, back_off, taxonomy)

    def _at_level(self, proba, level, back_off, taxonomy):
        """Return names of a taxonomy for the probabilities of instances."""
        if back_off is not None and not 0 <= back_off <= 1:
            raise ValueError(f"back_off must lie between 0 and 1; got {back_off!r}.")
        ladder = ladder_of(self, taxonomy)
        n_classes = len(self.classes_)
        own, rest = proba[:, :n_classes], proba[:, n_classes:].sum(axis=1)
        if level is None:
            names, likely = ladder.backed_off(own, float(back_off or 0.0))
            is_rest = own.max(axis=1, initial=0.0) < rest
        else:
            found, columns = ladder.level_of_classes(level)
            chances = np.zeros((len(own), len(found)))
            np.add.at(chances.T, columns, own.T)
            names, likely = found[chances.argmax(axis=1)], chances.max(axis=1)
            is_rest = likely < rest
            if back_off is not None:
                names[likely < back_off] = None
        return np.where(is_rest, np.array(BACKGROUND, dtype=object), names)

    def annotate_proba(
        self, X: BagsLike, y: LabelSetsLike, instance_labels: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predict the probability of each class for each instance, the labels of its bag known.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets, as in ``fit``
        instance_labels : array-like of shape (n_instances,), optional
            Labels of single instances, where they are known; elsewhere None, or -1 if that
            is not a class.

        Returns
        -------
        ndarray of shape (n_instances, n_classes), or one column more for the background
            In a bag whose label set no labelling can produce, its labels are taken as
            optional; all labels, if it has none.
        """
        return self._conditioned(*self._annotation_problem(X, y, instance_labels))

    def _conditioned(self, scores, problem):
        """Normalise the probabilities of each instance over the labels of its bag."""
        return softmax(super()._conditioned(scores, problem), axis=1)

    def predict_proba(self, X: BagsLike) -> NDArray[np.float64]:
        """Predict the probability that each class occurs in each bag.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_bags, n_classes)
            One minus the product over instances of the probability of another class.
        """
        return self._bag_proba(self._read_bags(X))

    def _bag_proba(self, bags):
        log_proba = self._label_scores(bags)
        if self.single_label_ and (bags.sizes == 1).all():
            return np.exp(log_proba[:, : len(self.classes_)])
        log_absence = log_of_rest(log_proba)[:, : len(self.classes_)]
        return 0.0 - np.expm1(per_bag(np.add, log_absence, bags, 0.0))

    def _bag_scores(self, bags):
        """Return probabilities of bags; when fitted on one label per bag, unbounded scores.

        These are log(-log(1 - p)) of the probabilities p, which separates classes that are
        nearly certain; those of the instances, if each bag has one. By the rule of the union, a
        class is as probable as in its best instance.
        """
        if self.single_label_ and (bags.sizes == 1).all():
            return self._instance_scores(bags.X)[:, : len(self.classes_)]
        if self._takes_union():
            scores = super()._bag_scores(bags)
            return scores if self.single_label_ else np.exp(scores)
        if not self.single_label_:
            return self._bag_proba(bags)
        log_proba = self._label_scores(bags)
        with np.errstate(divide="ignore"):
            scores = np.log(-log_of_rest(log_proba))
        # Of a small p, log(1 - p) is -p, and p itself may be too small for a float.
        scores = np.where(log_proba < -20.0, log_proba, scores)[:, : len(self.classes_)]
        return per_bag(np.logaddexp, scores, bags, -np.inf)

    def _decision(self, bags):
        """Return the paper's confidence, that of the best instance; signed scores of one label."""
        return self._bag_scores(bags) if self.single_label_ else np.exp(super()._bag_scores(bags))

    def _bag_sets(self, bags, scores):
        if self._takes_union():
            return super()._bag_sets(bags, scores)
        return (scores >= self._least_probability).astype(int)

    @property
    def _least_probability(self) -> "float | Literal['union']":
        """The threshold itself, where that was learnt."""
        return self.threshold_ if self.threshold == "auto" else self.threshold

    def _takes_union(self):
        """Return whether the classes of a bag are the likeliest ones of its instances."""
        self._check_threshold()
        return self.threshold == "union"

    def _check_threshold(self):
        threshold: Any = self.threshold
        is_share = isinstance(threshold, Real) and 0 <= float(threshold) <= 1
        if not is_share and not (isinstance(threshold, str) and threshold in ("auto", "union")):
            raise ValueError(
                f'threshold must be a number from 0 to 1, "auto" or "union"; got {threshold!r}.'
            )


class UnionClassifier(ProbabilisticClassifier):
    """Base of the estimators that condition instances on the whole label set of their bag.

    Each label of a bag must be that of some instance, and no instance has another; unless the model
    has rates of wrong label sets, `missed_` and `false_`. Where it has a background, each instance
    of that costs `background_cost_` in bags with labels. Where the labels of bags are known, scores
    of instances, and that cost, are divided by `annotation_temperature_`.
    """

    background_cost_: float = 0.0
    annotation_temperature_: float = 1.0

    def _scores_given_labels(self, bags):
        scores = self._label_scores(bags)
        if self.annotation_temperature_ == 1.0:
            return scores
        return log_softmax(scores / self.annotation_temperature_)[0]

    def _charged(self, scores, problem):
        cost = self.background_cost_ if self._has_background else 0.0
        return charged(scores, problem.named, problem.offsets, cost / self.annotation_temperature_)

    def _rates(self) -> dict[str, Any]:
        """Return how often label sets are wrong, as `infer` takes it; background never is."""
        rates = {kind: getattr(self, f"{kind}_", None) for kind in ("missed", "false")}
        padding = [0.0] * bool(self._has_background)
        return {k: None if rate is None else np.append(rate, padding) for k, rate in rates.items()}

    def _impossible(self, problem):
        return impossible_bags(problem, **self._rates())

    def _conditioned(self, scores, problem):
        """Infer; relax bags of too many labels, if `on_intractable` says so."""
        policy = getattr(self, "on_intractable", "raise")
        result = problem.infer(scores, on_intractable=policy, **self._rates())
        relaxed_bags = result.relaxed.any(axis=1).nonzero()[0]
        if len(relaxed_bags):
            warn_caller(
                f"{len(relaxed_bags)} bags have too many labels for exact inference: those of "
                f"their labels that are the most certain to occur were taken as optional; the "
                f"first is bag {relaxed_bags[0]}.",
                IntractableBagWarning,
            )
        return result.posterior

    def log_likelihood(self, X: BagsLike, y: LabelSetsLike) -> NDArray[np.float64]:
        """Compute the log-probability of each bag's label set.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets, as in ``fit``

        Returns
        -------
        ndarray of shape (n_bags,)
            ``-inf`` where no labelling can produce the label set.
        """
        bags = self._read_bags(X)
        return self._log_likelihood(bags, self._read_labels(y, X))

    def _log_likelihood(self, bags, labels, on_intractable: OnIntractable = "raise"):
        problem = self._problem(bags, labels)
        inferred = problem.infer(
            self._label_scores(bags), on_intractable=on_intractable, **self._rates()
        )
        return inferred.log_likelihood

    def _label_set_scores(self, bags, labels, is_strange):
        """Compute log-likelihoods; what is impossible, or all but that, is rather unlikely."""
        policy: OnIntractable = getattr(self, "on_intractable", "raise")
        log_likelihood = self._log_likelihood(bags, labels, on_intractable=policy)
        return np.where(is_strange, UNLIKELY, np.maximum(log_likelihood, UNLIKELY))


class LabelSetLearner(UnionClassifier):
    """Base of the estimators that learn from label sets alone, which may not all be right.

    A subclass has the parameters `missed`, `false` and `on_impossible` of `ORLogisticRegression`,
    and learns `missed_` and `false_`.
    """

    missed: Rate
    false: Rate
    on_impossible: Literal["relax", "drop", "raise"]
    missed_: np.ndarray
    false_: np.ndarray
    relaxed_: dict[object, np.ndarray]

    @property
    def background_note_(self) -> str:
        """What was decided about a background, and what that costs, in a sentence."""
        scores, share = (getattr(self, f"background_{name}_", None) for name in ("scores", "share"))
        is_used = bool(self._has_background)
        return describe_background(is_used, self.background_cost_, scores, share)

    def _noise_of_fit(self, problem, rates=None, cost=0.0):
        """Return how often labels are wrong, learnt from `rates` on; None if they never are.

        Beside a background that costs something, rates are kept as they are, where these are known:
        instances that go unnoticed cost nothing, and would take the place of the background.
        """
        if not any(isinstance(rate, str) or np.any(rate) for rate in (self.missed, self.false)):
            return None
        given: list[Rate] = []
        for kind, rate in (("missed", self.missed), ("false", self.false)):
            if isinstance(rate, str):
                if rate not in LEARNT:
                    raise ValueError(f"{kind} must be a number, or one of {LEARNT}; got {rate!r}.")
                given.append(rate)
            else:
                given.append(checked_rate(kind, rate, np.empty((0, len(self.classes_))))[0])
        noise = LabelNoise(len(self.classes_), problem.y.shape[1], *given)
        noise.start_from(rates)
        if cost and rates is not None:
            noise.keep()
        return noise

    def _keep_rates(self, rates):
        """Turn the rates of a fit, None where there are none, into learnt attributes."""
        n_classes = len(self.classes_)
        rates = np.zeros((2, 1, n_classes)) if rates is None else rates
        self.missed_, self.false_ = (rate[0, :n_classes].copy() for rate in rates)

    def _impossible_in_fit(self, problem):
        """Return the bags that no labelling can explain, the rates being what they may become."""
        noise = self._noise_of_fit(problem)
        return problem.impossible if noise is None else noise.noisy(problem).impossible

    def _possible_label_sets(self, bags, labels, pinned):
        """Return possible label sets, as a UnionProblem, and which bags to use."""
        problem = self._problem(bags, labels, pinned)
        impossible = self._impossible_in_fit(problem)
        if not impossible.any():
            self.relaxed_ = {}
            return problem, np.ones(len(bags), dtype=bool)
        settled = settled_label_sets(bags, labels, problem, self.on_impossible, impossible)
        self.relaxed_ = {
            bags.ids[b].item(): self._label_values(settled.relaxed[b].nonzero()[0])
            for b in (settled.impossible & ~settled.dropped).nonzero()[0]
        }
        return settled.problem, ~settled.dropped


def check_background_cost(model: Any) -> None:
    """Raise an error unless the cost of a background is one, or left open."""
    if model.background_cost is not None:
        check_numbers(model, background_cost=(0, np.inf))
        if model.background is False and model.background_cost:
            raise ValueError(
                f"background_cost={model.background_cost!r} needs a background: set "
                'background=True or background="auto", or leave it out.'
            )


def settled_label_sets(
    bags: Bags,
    labels: LabelSets,
    problem: UnionProblem,
    on_impossible: Literal["relax", "drop", "raise"],
    impossible: np.ndarray,
) -> Settled:
    """Relax or drop impossible label sets of a fit, and warn of their bags by id.

    `labels` are as they were given, and `problem` has a background besides where the model has one.
    """
    unfilled = np.flatnonzero((bags.sizes == 0) & labels.is_tagged & impossible)
    if len(unfilled):
        b = unfilled[0]
        raise ValueError(
            f"Bag {bags.ids[b]} has the labels {sorted(map(str, labels[int(b)]))} but no "
            "instances: give it instances, or take away its labels."
        )
    try:
        settled = settle_impossible(problem, on_impossible, impossible)
    except ImpossibleBagError as error:
        raise error.with_ids(bags.ids) from None
    if settled.impossible.any():
        found = describe_impossible(bags.ids[settled.impossible], len(bags))
        relax = on_impossible == "relax"
        action = "were taken as optional, empty ones left out" if relax else "were left out"
        warn_caller(f"{found} They {action}.", ImpossibleBagWarning)
    return settled


# Instances whose features are converted to float64 together.
SCORED_AT_ONCE = 8192


class LinearUnionClassifier(UnionClassifier):
    """Base of the estimators whose instances are scored by `coef_` and `intercept_`.

    These have one row more than there are classes where the model has a background.
    """

    coef_: np.ndarray
    intercept_: np.ndarray
    # While a model is fitted again, this counts, not its last coefficients.
    _background_of_fit: bool | None = None

    @property
    def _has_background(self):
        if self._background_of_fit is not None:
            return self._background_of_fit
        check_is_fitted(self)
        return len(self.coef_) > len(self.classes_)

    def _instance_scores(self, X):
        return linear_scores(X, self.coef_, self.intercept_)

    def _instance_log_proba(self, X):
        return log_softmax(self._instance_scores(X))[0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


def linear_scores(X: Features, coef: np.ndarray, intercept: np.ndarray) -> NDArray[np.float64]:
    """Score the classes of each instance, of shape (n_instances, n_columns).

    In float64 even for features in float32: far from the origin, products and intercepts are large,
    and the scores are what is left of them.
    """
    scores = np.empty((X.shape[0], len(coef)))
    for start in range(0, X.shape[0], SCORED_AT_ONCE):
        rows = slice(start, start + SCORED_AT_ONCE)
        scores[rows] = X[rows].astype(np.float64, copy=False) @ coef.T
    return scores + intercept


def linear_proba(X: Features, coef: np.ndarray, intercept: np.ndarray) -> NDArray[np.float64]:
    """Compute the probability of each class for each instance, some instances at a time."""
    proba = np.empty((X.shape[0], len(coef)))
    for start in range(0, X.shape[0], SCORED_AT_ONCE):
        rows = slice(start, start + SCORED_AT_ONCE)
        proba[rows] = log_softmax(linear_scores(X[rows], coef, intercept))[1]
    return proba
