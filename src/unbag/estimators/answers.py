"""Bases of models that score the classes of every instance: by any scores, or by probabilities.

`UnionClassifier` conditions probabilities on the whole label set of the bag, by exact inference.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from unbag._messages import warn_caller
from unbag.fitting.calibration import AS_IT_IS, Presence
from unbag.fitting.held_out import UNLIKELY
from unbag.fitting.linear import linear_scores
from unbag.fitting.parts import log_softmax
from unbag.union import IntractableBagWarning, most_likely_labels
from unbag.union.conditioner import Conditioner
from unbag.union.policy import OnIntractable, describe_relaxed
from unbag.validation import check_known_background, known_columns

from .background import BACKGROUND
from .contract import (
    BagClassifier,
    BagsLike,
    LabelSetsLike,
    Threshold,
    check_threshold,
    log_of_rest,
    per_bag,
    read_labels,
)


class InstanceClassifier(BagClassifier):
    """Base of the estimators that label instances.

    A subclass implements ``_instance_scores(X)`` of the flat instances X, of shape
    (n_instances, n_columns): the higher, the more likely. There are as many columns as classes, and
    one more, last, if the model has a background class. The score of a bag is the highest one of
    its instances, and its classes are theirs.
    """

    #: From scores and label sets to posteriors.
    conditioner_: Conditioner = Conditioner()
    _instance_scores: Callable[..., Any]
    _instance_log_proba: Callable[..., Any]

    @property
    def has_background_(self) -> bool:
        """Whether the model has a background class."""
        # A fit has its own conditioner before it has weights.
        if "conditioner_" not in vars(self):
            check_is_fitted(self)
        return self.conditioner_.background

    def _label_values(self, columns):
        """Return the class of each column; `BACKGROUND` for the last one of a background."""
        if not (columns >= len(self.classes_)).any():
            return self.classes_[columns]
        if self.classes_.dtype.kind in "if" and -1 not in self.classes_:
            return np.append(self.classes_, -1)[columns]
        return np.array([*self.classes_.tolist(), BACKGROUND], dtype=object)[columns]

    def _label_scores(self, bags):
        """Return the scores by which labels of instances are chosen."""
        return self._instance_scores(bags.X)

    def predict_instances(self, X: BagsLike) -> np.ndarray:
        """Predict the most likely class of each instance, without bag labels.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_instances,)
            Values of `classes_`, or of the background: see `unbag.is_background`.
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
            False for the most likely class of each instance; True for the most likely labelling of
            the whole bag (with the largest sum of scores) that covers its label set, if that is
            possible. If label sets may be wrong, it need not cover them: errors have their
            probabilities.

        Returns
        -------
        ndarray of shape (n_instances,)
            Values of `classes_`, or of the background: see `unbag.is_background`.
        """
        scores, problem = self._given_labels(X, y, instance_labels)
        if joint:
            columns = most_likely_labels(
                self.conditioner_.log_prior(scores, problem),
                problem.offsets,
                problem.y,
                instance_labels=problem.instance_labels,
                groups=problem.groups,
                **self.conditioner_.rates,
            )
        else:
            columns = self._conditioned(scores, problem).argmax(axis=1)
        return self._label_values(columns)

    def _given_labels(self, X, y, instance_labels):
        """Return scores and label sets for `annotate`, with impossible label sets relaxed."""
        bags = self._read_bags(X)
        labels = read_labels(self, y, X)
        pinned = known_columns(instance_labels, bags, self.classes_, labels)
        check_known_background(pinned, bags, len(self.classes_), self, self.has_background_)
        return self._label_scores(bags), self.conditioner_.problem(bags.offsets, labels, pinned)

    def _conditioned(self, scores, problem):
        """Set the scores of classes that an instance cannot have in its bag to ``-inf``."""
        return np.where(problem.allowed_labels(), scores, -np.inf)

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
    the parameter `threshold`: the least probability at which a class is taken to occur in a bag; or
    "union", for the rule of all other models.
    """

    threshold: Threshold

    @property
    def presence_(self) -> Presence:
        """From expected counts of instances to the probability that a class occurs in a bag."""
        decision = getattr(self, "decision_", None)
        return AS_IT_IS if decision is None else decision.presence

    def _instance_scores(self, X):
        """Score the classes of each instance: by default, their log-probabilities."""
        return self._instance_log_proba(X)

    def _label_scores(self, bags):
        return self._instance_log_proba(bags.X)

    def instance_log_proba(self, X: BagsLike) -> NDArray[np.float64]:
        """Compute the log-probability of each class for each instance, without bag labels.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_instances, n_classes), or one column more for the background
        """
        return self._label_scores(self._read_bags(X))

    def predict_instances_proba(self, X: BagsLike) -> NDArray[np.float64]:
        """Predict the probability of each class for each instance, without bag labels.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_instances, n_classes), or one column more for the background
        """
        return np.exp(self._label_scores(self._read_bags(X)))

    def annotate_proba(
        self, X: BagsLike, y: LabelSetsLike, instance_labels: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predict the probability of each class for each instance, the labels of its bag known.

        Parameters
        ----------
        X, y, instance_labels
            As in `annotate`.

        Returns
        -------
        ndarray of shape (n_instances, n_classes), or one column more for the background
            In a bag whose label set no labelling can produce, its labels are taken as
            optional; all labels, if it has none.
        """
        return self._conditioned(*self._given_labels(X, y, instance_labels))

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
            One minus the product over instances of the probability of another class, calibrated
            by held-out tags if the model is.
        """
        return self._bag_proba(self._read_bags(X))

    def _bag_proba(self, bags):
        log_proba = self._label_scores(bags)
        if self.single_label_ and (bags.sizes == 1).all():
            return np.exp(log_proba[:, : len(self.classes_)])
        log_absence = log_of_rest(log_proba)[:, : len(self.classes_)]
        return 0.0 - np.expm1(self.presence_.log_absence(per_bag(np.add, log_absence, bags, 0.0)))

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
        # If p is small, log(1 - p) is -p, and p itself may be too small for a float.
        scores = np.where(log_proba < -20.0, log_proba, scores)[:, : len(self.classes_)]
        return per_bag(np.logaddexp, scores, bags, -np.inf)

    def _decision(self, bags):
        """Return the paper's confidence: the probability of each class in its best instance.

        When fitted on one label per bag, scores that need not be probabilities.
        """
        return self._bag_scores(bags) if self.single_label_ else np.exp(super()._bag_scores(bags))

    def _bag_sets(self, bags, scores):
        if self._takes_union():
            return super()._bag_sets(bags, scores)
        return (scores >= self.threshold).astype(int)

    def _takes_union(self):
        """Return whether the classes of a bag are the most likely ones of its instances."""
        check_threshold(self.threshold)
        return self.threshold == "union"


class UnionClassifier(ProbabilisticClassifier):
    """Base of the estimators that condition instances on the whole label set of their bag.

    Each label of a bag must be that of some instance, and no instance has another, unless
    `conditioner_` has rates of wrong labels.
    """

    @property
    def missed_rate_(self) -> NDArray[np.float64]:
        """How often instances of each class go unnoticed, of shape (n_classes,)."""
        rate = self.conditioner_.missed_rate
        return np.zeros(len(self.classes_)) if rate is None else rate

    @property
    def false_rate_(self) -> NDArray[np.float64]:
        """How often each class is named by mistake, of shape (n_classes,)."""
        rate = self.conditioner_.false_rate
        return np.zeros(len(self.classes_)) if rate is None else rate

    @property
    def background_cost_(self) -> float:
        """Penalty (nats) of a background instance in a bag with labels."""
        return self.conditioner_.background_cost

    def _conditioned(self, scores, problem):
        """Return posteriors, and warn of bags whose labels were relaxed."""
        result = self.conditioner_.infer(scores, problem)
        if len(bags := np.flatnonzero(result.relaxed.any(axis=1))):
            warn_caller(describe_relaxed(bags), IntractableBagWarning)
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
        return self._log_likelihood(bags, read_labels(self, y, X))

    def _log_likelihood(self, bags, labels, on_intractable: OnIntractable = "raise"):
        free = replace(self.conditioner_.free(), on_intractable=on_intractable)
        problem = free.problem(bags.offsets, labels, relax=False)
        return free.infer(self._label_scores(bags), problem).log_likelihood

    def _label_set_scores(self, bags, labels, has_new_label):
        """Return log-likelihoods with a floor, which sets with unseen labels also have."""
        policy = self.conditioner_.on_intractable
        log_likelihood = self._log_likelihood(bags, labels, on_intractable=policy)
        return np.where(has_new_label, UNLIKELY, np.maximum(log_likelihood, UNLIKELY))


class LinearUnionClassifier(UnionClassifier):
    """Base of the estimators whose instances are scored by `coef_` and `intercept_`.

    These have one row more than there are classes if the model has a background.
    """

    coef_: np.ndarray
    intercept_: np.ndarray

    def _instance_scores(self, X):
        return linear_scores(X, self.coef_, self.intercept_)

    def _instance_log_proba(self, X):
        return log_softmax(self._instance_scores(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")
