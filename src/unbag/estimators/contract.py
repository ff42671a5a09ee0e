"""What all estimators share: how bags and labels come in, and how bags are answered for.

The sample is the bag. How much more a model can tell depends on what it knows, so there are
four bases, each built on the one before:

- `BagClassifier` (here) scores whole bags,
- `InstanceClassifier` scores the classes of every instance, so it can label instances,
- `ProbabilisticClassifier` gives these scores as probabilities,
- `UnionClassifier` conditions them on the label set of the bag, exactly.
"""

import os
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted

from unbag.bags import Bags, BagsLike
from unbag.labels import LabelSets, LabelSetsLike
from unbag.models import save
from unbag.validation import as_labels, in_bag_order, validate_bags

# Where scikit-learn's estimators take their random numbers from.
RandomState: TypeAlias = int | np.random.RandomState | None

# What the models of bags alone lack, and why.
INSTANCE_METHODS: dict[str, str] = {
    "predict_instances": "it scores whole bags, not their instances",
    "annotate": "it scores whole bags, not their instances",
    "predict_instances_proba": "its scores of instances are no probabilities",
    "annotate_proba": "its scores of instances are no probabilities",
    "predict_proba": "its scores of bags are no probabilities",
    "log_likelihood": "it gives label sets no probability",
}


class BagClassifier(ClassifierMixin, BaseEstimator):
    """Base of all estimators: the sample is the bag.

    A subclass learns `classes_` and `single_label_` in ``fit`` (by `_read_bags` and
    `_read_labels` with ``reset=True``) and implements ``_bag_scores(bags)``, of shape
    (n_bags, n_classes), and ``_bag_sets(bags, scores)``, the indicator of the classes that it
    takes to occur. Empty bags, in which nothing occurs, are seen to here.
    """

    _accepts_sparse = False

    classes_: np.ndarray
    single_label_: bool
    n_features_in_: int
    feature_names_in_: np.ndarray

    # Type checkers shall know that a model lacks a method, and not why.
    if not TYPE_CHECKING:

        def __getattr__(self, name):
            model = type(self).__name__
            why = INSTANCE_METHODS.get(name)
            if why is None:
                why = f"{model!r} object has no attribute {name!r}"
                raise AttributeError(why, name=name, obj=self)
            # Of the models that score instances, none lacks the first two.
            if not hasattr(type(self), "predict_instances"):
                why = INSTANCE_METHODS["predict_instances"]
            raise AttributeError(f"{model} has no {name}: {why}.", name=name, obj=self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        # scikit-learn's multilabel checks write an indicator as nested lists, which here are
        # label sets: [[0, 1]] is one bag with the labels 0 and 1.
        tags.classifier_tags.multi_label = False
        return tags

    @property
    def model(self) -> "BagClassifier":
        """The model itself, as `BagPipeline.model` is that at the end of a pipeline."""
        return self

    # What comes in.

    def _read_bags(self, X, reset=False):
        """Return X as Bags of finite features: as many as in fit, unless this is `fit` (reset)."""
        if not reset:
            check_is_fitted(self)
        if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
            X = Bags.from_list(X)
        return validate_bags(self, X, reset=reset, accept_sparse=self._accepts_sparse)

    def _read_training(self, X, y):
        """Return the bags and label sets of a fit, and learn their features and classes."""
        bags = self._read_bags(X, reset=True)
        return bags, self._read_labels(y, X, reset=True)

    def _read_labels(self, y, X, reset=False):
        """Return y as LabelSets of the bags X over `classes_`; in fit, learn these."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = as_labels(y, X, are_sets=not reset and not self.single_label_)
        if reset:
            self.single_label_ = is_one_label_each(y)
        if self.single_label_ and is_one_label_each(y):
            y = np.asarray(y)
            if y.dtype.kind == "f":
                assert_all_finite(y, input_name="y")
            if reset:
                check_classification_targets(y)
                self.classes_ = np.unique(y)
            place = {label: c for c, label in enumerate(self.classes_.tolist())}
            columns = [place.get(label, -1) for label in y.tolist()]
            if min(columns, default=0) < 0:
                b = columns.index(-1)
                raise ValueError(f"Bag {b} has the label {y[b]!r}, which was never seen in fit.")
            indicator = np.zeros((len(y), len(self.classes_)), dtype=np.int8)
            indicator[np.arange(len(y)), columns] = 1
            labels = LabelSets(indicator, self.classes_)
        else:
            labels = LabelSets.parse(y, None if reset else self.classes_)
            if reset:
                self.classes_ = labels.classes
        if len(labels) != (n_bags := _num_samples(X)):
            per_instance = isinstance(X, Bags) and len(labels) == X.n_instances
            remedy = "table.groupby(bag, sort=False)[labels].first()"
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n_bags} bags, "
                f"y has {len(labels)} label sets"
                f"{f', one per instance: take one per bag, as in {remedy}' * per_instance}."
            )
        return labels

    # What goes out.

    def predict(self, X: BagsLike) -> np.ndarray:
        """Predict which classes occur in each bag.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_bags, n_classes), or (n_bags,) when fitted on one label per bag
            An indicator of 0 and 1; or the class of each bag.
        """
        bags = self._read_bags(X)
        scores = self._bag_scores(bags)
        if self.single_label_:
            return self.classes_[scores.argmax(axis=1)]
        sets = self._bag_sets(bags, scores)
        sets[bags.sizes == 0] = 0
        return sets

    def decision_function(self, X: BagsLike) -> np.ndarray:
        """Score how confident the model is that each class occurs in each bag.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_bags, n_classes)
            When fitted on one label per bag out of two, the difference of the two scores,
            of shape (n_bags,).
        """
        scores = self._decision(self._read_bags(X))
        if self.single_label_ and len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def _decision(self, bags):
        return self._bag_scores(bags)

    def score(self, X: BagsLike, y: LabelSetsLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute the share of bags whose label set is predicted without an error.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets, as in ``fit``
            Unknown labels are not counted.
        sample_weight : array-like of shape (n_bags,), optional

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        if self.single_label_:
            predicted = predicted[:, None] == self.classes_
        labels = self._read_labels(y, X)
        right = ((predicted == labels.indicator) | labels.optional).all(axis=1)
        weight = in_bag_order(sample_weight, X, "sample_weight")
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        return float(np.average(right, weights=weight))

    def save(self, path: str | os.PathLike[str], *, info: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file that `unbag.load` reads; it holds no code.

        Parameters
        ----------
        path : str or path-like
            An old file there is replaced when the new one is complete, and else stays.
        info : dict, optional
            Facts to keep with the model, of what JSON can hold, for
            `unbag.models.read_header`.
        """
        save(self, path, info)


def is_one_label_each(y: LabelSetsLike) -> bool:
    """Return whether y is a 1-D sequence of labels, rather than of label sets."""
    if isinstance(y, np.ndarray):
        return y.ndim == 1 and (y.dtype != object or all(map(np.isscalar, y)))
    return isinstance(y, list | tuple) and all(map(np.isscalar, y))


def per_bag(combine: np.ufunc, values: np.ndarray, bags: Bags, empty: float) -> np.ndarray:
    """Combine the rows of each bag by a ufunc; an empty bag gets `empty`."""
    result = np.full((len(bags), values.shape[1]), empty)
    filled = bags.sizes > 0
    if filled.any():
        result[filled] = combine.reduceat(values, bags.offsets[:-1][filled], axis=0)
    return result
