"""Logistic regression that knows the label of every instance: the upper bound."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unbag.bags import Bags
from unbag.fitting.scaling import Scaling
from unbag.validation import all_or_nothing, bag_weights, check_known_background, known_columns

from .answers import LinearUnionClassifier
from .contract import BagsLike, LabelSetsLike, Threshold, check_threshold
from .or_logistic import ORLogisticRegression


class InstanceLearner(LinearUnionClassifier):
    """Base of the estimators that learn from labels of instances."""

    def _read_labelled(self, X, y, instance_labels):
        """Return the bags of a fit, which instances are labelled, and the columns of these."""
        bags, labels = self._read_training(X, y)
        columns = self._instance_columns(instance_labels, bags, labels)
        known = np.flatnonzero(columns >= 0)
        if not len(known):
            raise ValueError("No instance has a label: there is nothing to learn from.")
        return bags, known, columns[known]

    def _instance_columns(self, instance_labels, bags, labels) -> Any:
        """Return the column of each instance's label, -1 where it is not known."""
        if instance_labels is None:
            instance_labels = bags.instance_labels
        if instance_labels is not None:
            columns = known_columns(instance_labels, bags, self.classes_)
            check_known_background(columns, bags, len(self.classes_), self, has_background=False)
            return columns
        if (labels.cardinality == 1).all() and not labels.optional.any():
            return np.repeat(labels.required.argmax(axis=1), bags.sizes)
        raise ValueError(
            f"{type(self).__name__} learns from the labels of instances: pass instance_labels to "
            "fit, or to Bags."
        )


class SupervisedLogisticRegression(InstanceLearner):
    """Learn from labelled instances, as an upper bound for what bag labels can teach.

    The model is that of `ORLogisticRegression`: multinomial logistic regression for instances,
    and label sets that are unions. Only what it learns from differs.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty ``alpha / 2 * ||coef||**2``, on standardised features; 0 for
        the published model.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Stop when an iteration improves the objective by less than this part of it.
    scaling, classes, threshold
        As in `ORLogisticRegression`.

    Attributes
    ----------
    log_likelihood_ : float
        Log-likelihood of the labelled instances.
    coef_, intercept_, classes_, class_counts_, n_iter_, n_features_in_
        As in `ORLogisticRegression`.

    Examples
    --------
    >>> from unbag import Bags, SupervisedLogisticRegression
    >>> bags = Bags([[0.0], [9.0], [1.0], [8.0]], offsets=[0, 2, 4])
    >>> labels = ["low", "high", "low", "high"]
    >>> model = SupervisedLogisticRegression().fit(bags, [{"low", "high"}] * 2, labels)
    >>> model.predict_instances([[[2.0], [7.0]]]).tolist()
    ['low', 'high']
    """

    _accepts_sparse = True

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        max_iter: int = 1000,
        tol: float = 1e-6,
        scaling: Scaling = "standard",
        classes: ArrayLike | None = None,
        threshold: Threshold = 0.5,
    ) -> None:
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.scaling: Scaling = scaling
        self.classes = classes
        self.threshold: Threshold = threshold

    @all_or_nothing
    def fit(
        self,
        X: BagsLike,
        y: LabelSetsLike,
        instance_labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to labelled instances.

        Parameters
        ----------
        X, y, sample_weight
            As in `ORLogisticRegression.fit`. The label sets define the classes. With one label per
            bag, that is the label of its instances.
        instance_labels : array-like of shape (n_instances,), optional
            Label of each instance; None or -1 if it is not known, and the instance is left out. By
            default the labels that the bags carry. Other estimators do not look at these.

        Returns
        -------
        self
        """
        check_threshold(self.threshold)
        bags, known, columns = self._read_labelled(X, y, instance_labels)
        weight = bag_weights(sample_weight, bags, X)
        classifier = ORLogisticRegression(
            self.alpha,
            max_iter=self.max_iter,
            tol=self.tol,
            scaling=self.scaling,
        )
        classifier.fit(
            *labelled_instances(bags, known, columns, len(self.classes_)),
            sample_weight=None if weight is None else np.repeat(weight, bags.sizes)[known],
        )
        self.coef_: np.ndarray = classifier.coef_
        self.intercept_: np.ndarray = classifier.intercept_
        self.n_iter_: int = classifier.n_iter_
        self.log_likelihood_: float = classifier.log_likelihood_
        return self


def labelled_instances(
    bags: Bags, known: np.ndarray, columns: np.ndarray, n_classes: int
) -> tuple[Bags, np.ndarray]:
    """Return each labelled instance as a bag of its own, and its label as a label set."""
    label_sets = (columns[:, None] == np.arange(n_classes)).astype(np.int8)
    return Bags(bags.X[known], np.arange(len(known) + 1)), label_sets
