"""Logistic regression that is given the label of every instance: the upper bound."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from unbag.bags import Bags
from unbag.fitting import Scaling
from unbag.validation import all_or_nothing, bag_weights, check_choices

from .contract import BagsLike, LabelSetsLike, RandomState
from .instances import LinearUnionClassifier, Threshold
from .or_logistic import ORLogisticRegression


class SupervisedLogisticRegression(LinearUnionClassifier):
    """Learn from labelled instances, as an upper bound for what bag labels can teach.

    The model is that of `ORLogisticRegression`: multinomial logistic regression for instances,
    and label sets that are unions. Only what it learns from differs.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty ``alpha / 2 * ||coef||**2``, on standardised features; 0 for
        the published model.
    solver : {"lbfgs", "em"}, default="lbfgs"
        As in `ORLogisticRegression`. With every label known there is nothing to expect, and "em"
        is plain gradient ascent: slower, so that few iterations are a penalty of their own.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Stop when an iteration improves the objective by less than this part of it.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled inside, as in `ORLogisticRegression`.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, in the order of `classes_`: a label that is not in it is refused, and one
        that no bag has is a class all the same. By default the sorted labels of the training
        bags.
    threshold : float or "union", default=0.5
        The least probability at which `predict` takes a class to occur in a bag. "union" is the
        published rule: the classes of a bag are the likeliest ones of its instances, and
        `decision_function` is the probability of a class in its best instance.
    random_state : int, RandomState instance or None
        Nothing here is random; taken for the sake of the contract.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of int of shape (n_classes,)
        How many training bags have each class.
    coef_ : ndarray of shape (n_classes, n_features)
    intercept_ : ndarray of shape (n_classes,)
    n_iter_ : int
    log_likelihood_ : float
        Of the labelled instances.
    n_features_in_ : int

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
        solver: Literal["lbfgs", "em"] = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-6,
        scaling: Scaling = "standard",
        classes: ArrayLike | None = None,
        threshold: Threshold = 0.5,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.solver: Literal["lbfgs", "em"] = solver
        self.max_iter = max_iter
        self.tol = tol
        self.scaling: Scaling = scaling
        self.classes = classes
        self.threshold: Threshold = threshold
        self.random_state = random_state

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
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets, as in `ORLogisticRegression.fit`
            They define the classes. With one label per bag, that of its instances.
        instance_labels : array-like of shape (n_instances,), optional
            Label of each instance; None or -1 where it is not known, and the instance is left
            out. By default those that the bags carry, which no other estimator looks at: this
            one is the bound that sees them.
        sample_weight : array-like of shape (n_bags,), optional
            What each bag counts.

        Returns
        -------
        self
        """
        check_choices(self, solver=("lbfgs", "em"))
        self._check_threshold()
        bags, labels = self._read_training(X, y)
        weight = bag_weights(sample_weight, bags, X)
        columns = self._instance_columns(instance_labels, bags, labels)
        known = np.flatnonzero(columns >= 0)
        if not len(known):
            raise ValueError("No instance has a label: there is nothing to learn from.")
        classifier = ORLogisticRegression(
            self.alpha,
            solver=self.solver,
            max_iter=self.max_iter,
            tol=self.tol,
            scaling=self.scaling,
        )
        one_hot = columns[known, None] == np.arange(len(self.classes_))
        classifier.fit(
            Bags(bags.X[known], np.arange(len(known) + 1)),
            one_hot.astype(np.int8),
            sample_weight=None if weight is None else np.repeat(weight, bags.sizes)[known],
        )
        self.coef_: np.ndarray = classifier.coef_
        self.intercept_: np.ndarray = classifier.intercept_
        self.n_iter_: int = classifier.n_iter_
        self.log_likelihood_: float = classifier.log_likelihood_
        return self

    def _instance_columns(self, instance_labels, bags, labels) -> Any:
        """Return the column of each instance's label, -1 where it is not known."""
        if instance_labels is None:
            instance_labels = bags.instance_labels
        if instance_labels is not None:
            columns = self._read_instance_labels(instance_labels, bags)
            self._check_known_background(columns, bags, has_background=False)
            return columns
        if (labels.cardinality == 1).all() and not labels.optional.any():
            return np.repeat(labels.required.argmax(axis=1), bags.sizes)
        raise ValueError(
            "SupervisedLogisticRegression learns from the labels of instances: pass "
            "instance_labels to fit, or to Bags."
        )
