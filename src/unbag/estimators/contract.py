"""What all estimators share: how bags and labels come in, and how answers go out.

The sample is the bag. A model that can say, for every instance, how probable each class is
(`_instance_log_proba`), answers everything else from that: which classes occur in a bag, which
label an instance has when the label set of its bag is not known (inductive), and when it is
(transductive).
"""

import warnings

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from unbag.bags import Bags
from unbag.features import check_columns, check_finite, validate_data
from unbag.fitting.relaxation import surest_labels
from unbag.labels import LabelSets
from unbag.union import IntractableBagError, infer, most_likely_labels

# The label of an instance that belongs to none of the classes; -1 among numbers.
BACKGROUND = None


class InstanceClassifier(ClassifierMixin, BaseEstimator):
    """Base of the estimators that classify instances.

    A subclass sets `classes_` and `single_label_` in ``fit`` (by `_read_training_data`) and
    implements ``_instance_log_proba(X)``: log-probabilities of shape
    (n_instances, n_columns) of the flat instances X. There are as many columns as classes,
    and one more, last, when the model has a background class (``_has_background``).
    """

    _has_background = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # scikit-learn's multilabel checks write an indicator as nested lists, which here are
        # label sets: [[0, 1]] is one bag with the labels 0 and 1.
        tags.classifier_tags.multi_label = False
        return tags

    # What comes in.

    def _read_bags(self, X, reset=False):
        """Return X as Bags of finite features, as many as in fit."""
        if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
            X = Bags.from_list(X)
        if not isinstance(X, Bags):
            X = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=True,
            )
            return Bags(X, np.arange(X.shape[0] + 1))
        check_columns(self, X, reset=reset)
        check_finite(X)
        return X

    def _read_labels(self, y, n_bags, reset=False):
        """Return y as LabelSets over `classes_`; in fit, learn these."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = as_labels(y)
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
        if len(labels) != n_bags:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n_bags} bags, "
                f"y has {len(labels)} label sets."
            )
        return labels

    def _read_instance_labels(self, instance_labels, bags):
        """Return known instance labels as columns of `classes_`, -1 where not known."""
        if instance_labels is None:
            return None
        values = np.asarray(instance_labels, dtype=object)
        if values.shape != (bags.n_instances,):
            raise ValueError(
                f"instance_labels must hold one label per instance: shape ({bags.n_instances},); "
                f"got shape {values.shape}."
            )
        place = {label: c for c, label in enumerate(self.classes_.tolist())}
        place.setdefault(-1, -1)
        place[None] = -1
        columns = np.array([place.get(value, -2) for value in values.tolist()], dtype=np.int64)
        if (columns == -2).any():
            i = int(np.argmax(columns == -2))
            b = int(np.searchsorted(bags.offsets, i, side="right")) - 1
            raise ValueError(
                f"Instance {i - bags.offsets[b]} of bag {bags.ids[b]} has the label "
                f"{values[i]!r}, which is not among the classes; use None or -1 where it is not "
                "known."
            )
        return columns

    # What goes out.

    def _log_prior(self, bags):
        return self._instance_log_proba(bags.X)

    def _union_y(self, labels):
        """Return label sets for inference: the background is optional in every bag."""
        if not self._has_background:
            return labels.indicator.copy()
        optional = np.full((len(labels), 1), -1, dtype=np.int8)
        return np.hstack([labels.indicator, optional])

    def _label_values(self, columns):
        """Return the classes that columns stand for, the background among them."""
        n_classes = len(self.classes_)
        if not (columns >= n_classes).any():
            return self.classes_[columns]
        numeric = self.classes_.dtype.kind in "biuf"
        classes = self.classes_ if numeric else self.classes_.astype(object)
        return np.append(classes, -1 if numeric else BACKGROUND)[columns]

    def predict_instances_proba(self, X):
        """Tell how probable each class is for each instance, bag labels not known.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_instances, n_classes), or one column more for the background
        """
        check_is_fitted(self)
        return np.exp(self._log_prior(self._read_bags(X)))

    def predict_instances(self, X):
        """Tell the most probable class of each instance, bag labels not known.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_instances,)
            Values of `classes_`, or `unbag.BACKGROUND`.
        """
        check_is_fitted(self)
        return self._label_values(self._log_prior(self._read_bags(X)).argmax(axis=1))

    def annotate_proba(self, X, y, instance_labels=None):
        """Tell how probable each class is for each instance, the labels of its bag known.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets, as in ``fit``
        instance_labels : array-like of shape (n_instances,), optional
            Labels of single instances, where they are known; elsewhere None, or -1 if that
            is no class.

        Returns
        -------
        ndarray of shape (n_instances, n_classes), or one column more for the background
            In a bag whose label set no labelling can produce, its labels are taken as
            optional; all labels, if it has none.
        """
        return self._posterior(*self._annotation_problem(X, y, instance_labels))

    def annotate(self, X, y, instance_labels=None, *, joint=False):
        """Tell the label of each instance, the labels of its bag known.

        Parameters
        ----------
        X, y, instance_labels
            As in `annotate_proba`.
        joint : bool
            False for the most probable class of each instance; True for the most likely
            labelling of the whole bag, which covers its label set wherever that is possible.

        Returns
        -------
        ndarray of shape (n_instances,)
            Values of `classes_`, or `unbag.BACKGROUND`.
        """
        log_prior, offsets, y, pinned = self._annotation_problem(X, y, instance_labels)
        if joint:
            columns = most_likely_labels(log_prior, offsets, y, instance_labels=pinned)
        else:
            columns = self._posterior(log_prior, offsets, y, pinned).argmax(axis=1)
        return self._label_values(columns)

    def _posterior(self, log_prior, offsets, y, pinned):
        """Infer; relax bags of too many labels, if `on_intractable` says so."""
        relaxed_bags = []
        while True:
            try:
                result = infer(log_prior, offsets, y, instance_labels=pinned)
                break
            except IntractableBagError as error:
                if getattr(self, "on_intractable", "raise") != "relax":
                    raise
                b = error.bag
                rows = slice(offsets[b], offsets[b + 1])
                required = np.flatnonzero(y[b] == 1)
                if pinned is not None:
                    required = np.setdiff1d(required, pinned[rows])
                y[b, surest_labels(log_prior[rows], np.flatnonzero(y[b]), required)] = -1
                relaxed_bags.append(b)
        if relaxed_bags:
            warnings.warn(
                f"{len(relaxed_bags)} bags have too many labels for exact inference: those of "
                f"their labels that are the most certain to occur were taken as optional; the "
                f"first is bag {relaxed_bags[0]}.",
                UserWarning,
                stacklevel=3,
            )
        return result.posterior

    def _annotation_problem(self, X, y, instance_labels):
        check_is_fitted(self)
        bags = self._read_bags(X)
        labels = self._read_labels(y, len(bags))
        pinned = self._read_instance_labels(instance_labels, bags)
        y = self._union_y(labels)
        impossible = impossible_bags(y, bags.offsets, pinned)
        y[impossible] = relaxed(y[impossible])
        return self._log_prior(bags), bags.offsets, y, pinned

    def log_likelihood(self, X, y):
        """Tell the log-probability of each bag's label set.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets, as in ``fit``

        Returns
        -------
        ndarray of shape (n_bags,)
            ``-inf`` where no labelling can produce the label set.
        """
        check_is_fitted(self)
        bags = self._read_bags(X)
        labels = self._read_labels(y, len(bags))
        return infer(self._log_prior(bags), bags.offsets, self._union_y(labels)).log_likelihood

    def predict(self, X):
        """Tell which classes occur in each bag: those of its instances.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_bags, n_classes), or (n_bags,) when fitted on one label per bag
            An indicator of 0 and 1; or the class of each bag.
        """
        check_is_fitted(self)
        bags = self._read_bags(X)
        log_prior = self._log_prior(bags)
        n_classes = len(self.classes_)
        if self.single_label_:
            best = per_bag(np.maximum, log_prior[:, :n_classes], bags, -np.inf)
            return self.classes_[best.argmax(axis=1)]
        votes = np.zeros((len(bags), log_prior.shape[1]), dtype=int)
        votes[np.repeat(np.arange(len(bags)), bags.sizes), log_prior.argmax(axis=1)] = 1
        return votes[:, :n_classes]

    def predict_proba(self, X):
        """Tell the probability that each class occurs in each bag.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_bags, n_classes)
            One minus the product over instances of the probability of another class.
        """
        check_is_fitted(self)
        bags = self._read_bags(X)
        proba = np.exp(self._log_prior(bags))[:, : len(self.classes_)]
        if self.single_label_ and (bags.sizes == 1).all():
            return proba
        with np.errstate(divide="ignore"):
            log_absent = per_bag(np.add, np.log1p(-np.minimum(proba, 1.0)), bags, 0.0)
        return 0.0 - np.expm1(log_absent)

    def decision_function(self, X):
        """Tell how confident the model is that each class occurs in each bag.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)

        Returns
        -------
        ndarray of shape (n_bags, n_classes)
            The largest probability of the class over the bag's instances. When fitted on
            one label per bag: the largest score instead, and for two classes the
            difference of the two, of shape (n_bags,).
        """
        check_is_fitted(self)
        bags = self._read_bags(X)
        n_classes = len(self.classes_)
        if not self.single_label_:
            return np.exp(per_bag(np.maximum, self._log_prior(bags)[:, :n_classes], bags, -np.inf))
        scores = self._instance_scores(bags.X)[:, :n_classes]
        scores = per_bag(np.maximum, scores, bags, -np.inf)
        return scores[:, 1] - scores[:, 0] if n_classes == 2 else scores

    def _instance_scores(self, X):
        """Score the classes of each instance: by default, their log-probabilities."""
        return self._instance_log_proba(X)

    def score(self, X, y, sample_weight=None):
        """Tell the share of bags whose label set is predicted without an error.

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
        labels = self._read_labels(y, len(predicted))
        right = ((predicted == labels.indicator) | labels.optional).all(axis=1)
        return float(np.average(right, weights=sample_weight))


def as_labels(y):
    """Return y as it is, but arrays as arrays, and a column of labels as a 1-D one."""
    if isinstance(y, LabelSets) or sparse.issparse(y) or hasattr(type(y), "columns"):
        return y
    if hasattr(y, "__array__"):
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1 and not np.isin(y, (-1, 0, 1)).all():
            return column_or_1d(y, warn=True)
    return y


def is_one_label_each(y):
    """Tell whether y is a 1-D sequence of labels, rather than of label sets."""
    if isinstance(y, np.ndarray):
        return y.ndim == 1 and (y.dtype != object or all(map(np.isscalar, y)))
    return isinstance(y, list | tuple) and all(map(np.isscalar, y))


def impossible_bags(y, offsets, pinned=None):
    """Find the bags whose label set no labelling can produce, whatever finite the priors.

    Returns
    -------
    ndarray of bool of shape (n_bags,)
        Too few instances for the required classes, or instances and no class for them.
    """
    required = y == 1
    free = np.diff(offsets)
    if pinned is not None:
        known = np.flatnonzero(pinned >= 0)
        bag = np.searchsorted(offsets, known, side="right") - 1
        required = required.copy()
        required[bag, pinned[known]] = False
        free = free - np.bincount(bag, minlength=len(free))
    return (required.sum(axis=1) > free) | ((free > 0) & ~(y != 0).any(axis=1))


def relaxed(y):
    """Take required classes as optional; where no class is allowed at all, all of them."""
    return np.where((y != 0) | ~(y != 0).any(axis=1, keepdims=True), -1, 0)


def per_bag(combine, values, bags, empty):
    """Combine the rows of each bag by a ufunc; an empty bag gets `empty`."""
    result = np.full((len(bags), values.shape[1]), empty)
    filled = bags.sizes > 0
    if filled.any():
        result[filled] = combine.reduceat(values, bags.offsets[:-1][filled], axis=0)
    return result
