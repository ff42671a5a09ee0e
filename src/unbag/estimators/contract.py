"""The contract of all estimators: how they take bags and labels, and what they answer for bags.

The sample is the bag. How much more a model can answer depends on what it knows, so there are
four bases, each built on the one before:

- `BagClassifier` (here) scores whole bags,
- `InstanceClassifier` scores the classes of every instance, so it can label instances,
- `ProbabilisticClassifier` gives these scores as probabilities,
- `UnionClassifier` conditions them on the label set of the bag, exactly.
"""

import os
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import logsumexp
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted

from unbag._messages import argument, warn_caller, words
from unbag._scikit_learn import BaseEstimator, ClassifierMixin
from unbag.bags import Bags, BagsLike, value_array
from unbag.fitting import BagSource
from unbag.fitting.decide import NO_BAG_LEFT
from unbag.frames import FrameAnswers
from unbag.labels import ColumnOfLabel, LabelSets, LabelSetsLike
from unbag.metrics import ranking_loss
from unbag.models.container import save
from unbag.union import ImpossibleBagError, ImpossibleBagWarning, UnionProblem
from unbag.union.policy import describe_impossible
from unbag.validation import (
    as_labels,
    bag_weights,
    check_columns,
    check_numbers,
    check_scaling,
    known_columns,
    validate_bags,
)

# Sources of random numbers, as in scikit-learn's estimators.
RandomState: TypeAlias = int | np.random.RandomState | None

# Probability from which a class is taken to occur in a bag.
Threshold: TypeAlias = float | Literal["union"]

# Methods that some models lack, and why.
INSTANCE_METHODS: dict[str, str] = {
    "predict_instances": "it scores whole bags, not their instances",
    "annotate": "it scores whole bags, not their instances",
    "predict_instances_proba": "it gives instances scores, but not probabilities",
    "annotate_proba": "it gives instances scores, but not probabilities",
    "predict_proba": "it gives bags scores, but not probabilities",
    "log_likelihood": "it gives label sets no probability",
}


class BagClassifier(FrameAnswers, ClassifierMixin, BaseEstimator):
    """Base of all estimators: the sample is the bag.

    A subclass learns `classes_`, `class_counts_` (how many training bags have each class) and
    `single_label_` in ``fit`` (by `_read_bags` and `read_labels` with ``reset=True``) and
    implements ``_bag_scores(bags)``, of shape (n_bags, n_classes), and ``_bag_sets(bags, scores)``,
    the indicator of the classes that it takes to occur. Empty bags are handled here: nothing
    occurs in them. Its parameter `classes` is the vocabulary; with None, the labels of the training
    bags are.
    """

    _accepts_sparse = False
    # Whether a fit can learn from labels that name groups of classes.
    _knows_groups = True

    classes: ArrayLike | None
    classes_: np.ndarray
    class_counts_: np.ndarray
    single_label_: bool
    n_features_in_: int
    feature_names_in_: np.ndarray
    _bag_scores: Callable[..., Any]
    _bag_sets: Callable[..., Any]

    # Type checkers should see that a model lacks a method; the reason is for people.
    if not TYPE_CHECKING:

        def __getattr__(self, name):
            model = type(self).__name__
            # Answers for frames need probabilities.
            why = INSTANCE_METHODS.get("annotate_proba" if name == "annotate_frame" else name)
            if why is None:
                why = f"{model!r} object has no attribute {name!r}"
                raise AttributeError(why, name=name, obj=self)
            # All models that score instances have the first two.
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
        """The model itself, for symmetry with `BagPipeline.model`."""
        return self

    def _read_bags(self, X, reset=False):
        """Return X as Bags of finite features: as many as in fit, unless this is `fit` (reset)."""
        if not reset:
            check_is_fitted(self)
        return validate_bags(self, X, reset=reset, accept_sparse=self._accepts_sparse)

    def _read_training(self, X, y) -> tuple[Any, LabelSets]:
        """Return the bags and label sets of a fit, and learn their features and classes.

        Features that are not in memory are checked when they are read.
        """
        bags = X
        if isinstance(X, BagSource):
            check_columns(self, X, reset=True)
        else:
            bags = self._read_bags(X, reset=True)
        labels = read_labels(self, y, X, reset=True)
        if labels.groups is not None and not self._knows_groups:
            warn_caller(
                f"{type(self).__name__} cannot learn from labels that say that one of several "
                f"classes is there ({labels.groups.n_groups} of them): it takes these classes as "
                "unknown. ORLogisticRegression can."
            )
        return bags, labels

    def _read_fit(self: Any, X, y, instance_labels, sample_weight):
        """Return bags, label sets, columns of known instances, and weights of bags of a fit."""
        bags, labels = self._read_training(X, y)
        check_scaling(bags, self.scaling)
        pinned = known_columns(instance_labels, bags, self.classes_, labels)
        return bags, labels, pinned, bag_weights(sample_weight, bags, X)

    def _read_scored_labels(self, y, X):
        """Return y as LabelSets over `classes_`, and which bags have labels besides these.

        Held-out bags may have a class that no training bag has, which is not an error.
        """
        y = as_labels(y, X, are_sets=not self.single_label_)
        if self.single_label_ and is_one_label_each(y):
            labels, has_new_label = one_label_each(value_array(y), self.classes_)
        else:
            labels, has_new_label = known_labels(y, self.classes_)
        check_one_for_each_bag(labels, X)
        return labels, has_new_label

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
        """Compute how well the model knows the label sets of bags: the higher, the better.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets, as in ``fit``
            Labels may be among them that were never seen there.
        sample_weight : array-like of shape (n_bags,), optional

        Returns
        -------
        float
            When fitted on one label per bag, the share of bags that get it. Else the mean
            log-likelihood of a bag's label set, each bag counting at least log 1e-12, as one
            with a label never seen in fit does; of models without `log_likelihood`, minus the
            ranking loss, for which labels never seen do not count.
        """
        bags = self._read_bags(X)
        labels, has_new_label = self._read_scored_labels(y, X)
        if self.single_label_:
            predicted = self.predict(bags)[:, None] == self.classes_
            scores = ((predicted == labels.indicator) | labels.optional).all(
                axis=1
            ) & ~has_new_label
        else:
            scores = self._label_set_scores(bags, labels, has_new_label)
        return float(np.average(scores, weights=bag_weights(sample_weight, bags, X)))

    def _label_set_scores(self, bags, labels, has_new_label):
        """Score how well the model knows each label set: by default, by minus its ranking loss."""
        ranked = zip(labels.indicator[:, None], self._bag_scores(bags)[:, None], strict=True)
        # If nothing is known of a bag, its loss is zero instead of undefined.
        return -np.nan_to_num([ranking_loss(truth, scores) for truth, scores in ranked])

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


def read_labels(model: Any, y: Any, X: Any, reset: bool = False) -> LabelSets:
    """Read y as label sets of the bags X over a model's classes, which a fit (reset) learns."""
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None."
        )
    y = as_labels(y, X, are_sets=not reset and not model.single_label_)
    vocabulary = None if model.classes is None else as_classes(model.classes)
    if reset:
        model.single_label_ = is_one_label_each(y)
    if model.single_label_ and is_one_label_each(y):
        y = value_array(y)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        if reset:
            check_classification_targets(y)
            model.classes_ = np.unique(y) if vocabulary is None else vocabulary
        labels, has_new_label = one_label_each(y, model.classes_)
        if has_new_label.any():
            b = int(np.argmax(has_new_label))
            why = "was never seen in fit" if vocabulary is None else "is not among classes"
            raise ValueError(f"Bag {b} has the label {y[b]!r}, which {why}.")
    else:
        labels = LabelSets.parse(y, vocabulary if reset else model.classes_)
        if reset:
            model.classes_ = labels.classes
    check_one_for_each_bag(labels, X)
    if reset:
        model.class_counts_ = labels.class_counts
    return labels


def is_one_label_each(y: LabelSetsLike) -> bool:
    """Return whether y is a 1-D sequence of labels, rather than of label sets."""
    if isinstance(y, np.ndarray):
        return y.ndim == 1 and (y.dtype != object or all(map(np.isscalar, y)))
    return isinstance(y, list | tuple) and all(map(np.isscalar, y))


def as_classes(classes: ArrayLike) -> np.ndarray:
    """Return a vocabulary as an array, checked to hold distinct strings or distinct numbers."""
    if isinstance(classes, str) or np.ndim(classes) != 1:
        raise ValueError(f"classes must be a list of classes, not {classes!r}.")
    return LabelSets(np.empty((0, np.size(classes))), classes).classes


def one_label_each(y: np.ndarray, classes: np.ndarray) -> tuple[LabelSets, np.ndarray]:
    """Return one label per bag as LabelSets, and which bags have one that is not a class."""
    column_of = {label: c for c, label in enumerate(classes.tolist())}
    columns = np.array([column_of.get(label, -1) for label in y.tolist()], dtype=np.intp)
    labels = LabelSets(columns[:, None] == np.arange(len(classes)), classes)
    return labels, np.less(columns, 0)


def known_labels(y: LabelSetsLike, classes: np.ndarray) -> tuple[LabelSets, np.ndarray]:
    """Return label sets without unknown labels, and which bags have lost a label by that."""
    has_columns_alone = sparse.issparse(y) or (isinstance(y, np.ndarray) and y.ndim == 2)
    labels = LabelSets.parse(y, classes if has_columns_alone else None)
    column_of = ColumnOfLabel(classes.tolist())
    is_known = np.array([column_of[label] >= 0 for label in labels.classes.tolist()], dtype=bool)
    groups, lost = labels.groups, labels.required[:, ~is_known].any(axis=1)
    if groups is not None:
        # A group may have been one of the classes that are not known: then it says nothing.
        has_new = groups.any_of(np.broadcast_to(~is_known, labels.shape))
        groups = groups.chosen(~has_new)
        columns = np.where(is_known, np.cumsum(is_known) - 1, -1)
        groups = groups.in_columns(columns, int(is_known.sum()))
    kept = LabelSets(labels.indicator[:, is_known], labels.classes[is_known], labels.open, groups)
    return kept.reindex(classes), np.asarray(lost)


def check_one_for_each_bag(labels: LabelSets, X: BagsLike) -> None:
    """Raise an error unless there are as many label sets as bags."""
    if len(labels) != (n_bags := _num_samples(X)):
        per_instance = isinstance(X, Bags) and len(labels) == X.n_instances
        remedy = "table.groupby(bag, sort=False)[labels].first()"
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_bags} bags, "
            f"y has {len(labels)} label sets"
            f"{f', one per instance: take one per bag, as in {remedy}' * per_instance}."
        )


def check_threshold(threshold: Any) -> None:
    """Raise an error unless the parameter `threshold` of an estimator is valid."""
    is_share = isinstance(threshold, Real) and 0 <= float(threshold) <= 1
    if not is_share and not (isinstance(threshold, str) and threshold == "union"):
        raise ValueError(f'threshold must be a number from 0 to 1, or "union"; got {threshold!r}.')


def check_background_cost(model: Any) -> None:
    """Raise an error unless the cost of a background is a number, or None."""
    if model.background_cost is not None:
        check_numbers(model, background_cost=(0, np.inf))
        if model.background is False and model.background_cost:
            raise ValueError(
                f"{argument('background_cost', model.background_cost)} needs a background: leave "
                f"it out, or set {argument('background', 'auto')}."
            )


def possible_label_sets(
    bags: Bags,
    labels: LabelSets,
    problem: UnionProblem,
    on_impossible: Literal["relax", "drop", "raise"],
    impossible: np.ndarray,
) -> tuple[UnionProblem, NDArray[np.bool_], dict[int, NDArray[np.intp]]]:
    """Relax or drop the impossible label sets of a fit, and warn of their bags.

    Return the label sets to fit to, a mask of the bags to fit to, and the columns of the labels of
    each relaxed bag. `labels` are as given, and `problem` has a background if the model has one.
    """
    if not impossible.any():
        return problem, np.ones(len(bags), dtype=bool), {}
    unfilled = np.flatnonzero((bags.sizes == 0) & labels.is_tagged & impossible)
    if len(unfilled):
        b = unfilled[0]
        raise ValueError(
            f"{words().bag.capitalize()} {bags.ids[b]} has the labels "
            f"{sorted(map(str, labels[int(b)]))} but no {words().instances}: give it "
            f"{words().instances}, or take away its labels."
        )
    if on_impossible == "raise":
        raise ImpossibleBagError(bags.ids[impossible].tolist(), len(bags))
    relax = on_impossible == "relax"
    # A label set that allows nothing has nothing to relax.
    taken = impossible & relax & problem.allowed.any(axis=1)
    used = ~impossible | taken
    if not used.any():
        raise ValueError(NO_BAG_LEFT)
    found = describe_impossible(bags.ids[impossible], len(bags))
    action = "They were left out"
    if relax:
        action = "Their labels were taken as optional, and those without any were left out"
    warn_caller(f"{found} {action}.", ImpossibleBagWarning)
    optional = problem.named & taken[:, None]
    relaxed = {b: optional[b].nonzero()[0] for b in taken.nonzero()[0].tolist()}
    return problem.relaxed(optional), used, relaxed


def per_bag(combine: np.ufunc, values: np.ndarray, bags: Bags, empty: float) -> np.ndarray:
    """Combine the rows of each bag by a ufunc; an empty bag gets `empty`."""
    result = np.full((len(bags), values.shape[1]), empty)
    filled = bags.sizes > 0
    if filled.any():
        result[filled] = combine.reduceat(values, bags.offsets[:-1][filled], axis=0)
    return result


def log_of_rest(log_proba: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(1 - p) of probabilities whose rows sum to one, without a loss where p is near one.

    Examples
    --------
    >>> log_of_rest(np.array([[0.0, -50.0]])).round(1)
    array([[-50.,  -0.]])
    """
    best = np.arange(len(log_proba)), log_proba.argmax(axis=1)
    others = log_proba.copy()
    others[best] = -np.inf
    # The most likely class alone can have more than one half, which is what the others leave.
    rest = np.log1p(-np.minimum(np.exp(others), 0.5))
    rest[best] = logsumexp(others, axis=1)
    return rest
