"""Fits that go on where the last one ended: warm starts, and steps towards batches of a stream."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unbag._messages import listed
from unbag._warnings import warn_caller
from unbag.fitting import Scaling, Stream, UncertifiedWarning
from unbag.union import IntractableBagWarning
from unbag.union.policy import name_bags
from unbag.validation import all_or_nothing, as_labels, bag_weights, check_scaling

from .contract import BagsLike, LabelSetsLike, as_classes, is_one_label_each
from .instances import LabelSetLearner, LinearUnionClassifier


class ResumableClassifier(LabelSetLearner, LinearUnionClassifier):
    """Base of the estimators that can go on learning.

    A subclass implements what a fit is made of: ``_check_parameters()``,
    ``_decided_background(bags, labels, pinned, weight)``,
    ``_training(bags, problem, used, weight, scale)`` and ``_finish(training, progress)``.
    """

    # What the stream has learnt so far; None before the first batch.
    _stream: Stream | None = None

    scaling: Scaling
    _check_parameters: Callable[[], None]
    _decided_background: Callable[..., Any]
    _training: Callable[..., Any]
    _finish: Callable[..., None]

    @all_or_nothing
    def partial_fit(
        self,
        X: BagsLike,
        y: LabelSetsLike,
        classes: ArrayLike | None = None,
        instance_labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Take one step towards bags that come in a stream.

        Parameters
        ----------
        X, y, instance_labels, sample_weight
            As in `fit`: the bags that have come.
        classes : array-like of shape (n_classes,)
            All classes there will be; needed in the first call only, unless the parameter
            `classes` says so.

        Returns
        -------
        self

        Notes
        -----
        An AdaGrad step along the gradient of the batch. Features are standardised by the
        first batch (or the last call of `fit`), so that should be a fair sample; it also decides
        on ``background="auto"``. `solver`, `max_iter`, `prune` and `tol` have no say in the steps.
        """
        self._check_parameters()
        stream = self._stream
        bags = self._read_bags(X, reset=stream is None)
        # One batch of label sets tells that all are, even where each bag before had one label.
        one_label_each = is_one_label_each(as_labels(y, X))
        self.single_label_: bool = one_label_each and (stream is None or self.single_label_)
        if stream is None:
            self._read_classes(self.classes if classes is None else classes)
        elif classes is not None and not np.array_equal(np.sort(classes), np.sort(self.classes_)):
            raise ValueError(
                f"`classes={classes}` is not the same as on last call to partial_fit, was: "
                f"{self.classes_}."
            )
        labels = self._read_labels(y, X)
        pinned = self._read_instance_labels(instance_labels, bags, labels)
        weight = bag_weights(sample_weight, bags, X)
        if stream is None:
            check_scaling(bags, self.scaling)
            with self._decided_background(bags, labels, pinned, weight):
                return self._take_batch(bags, labels, pinned, weight)
        return self._take_batch(bags, labels, pinned, weight)

    def _read_classes(self, classes):
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        # The columns of an indicator are in the order of the classes as they are given.
        sort = self.single_label_ and self.classes is None
        self.classes_: np.ndarray = as_classes(np.unique(classes) if sort else classes)

    def _take_batch(self, bags, labels, pinned, weight):
        problem, used = self._possible_label_sets(bags, labels, pinned)
        stream = self._stream
        if stream is None:
            # All bags of the first batch tell the scale of features, even those not to be used.
            with self._training(bags, problem, np.ones(len(bags), dtype=bool), weight) as whole:
                stream = Stream(whole.scale)
        rates = None if self._stream is None else self._rates()
        with self._training(bags, problem, used, weight, stream.scale, rates) as training:
            progress = stream.advance(training)
        self.converged_ = False
        self._finish(training, progress)
        self._stream = stream
        return self

    def _warn_of_uncertified(self, training):
        places = sorted(set().union(*training.uncertified))
        ids = [training.bags.ids[b].item() for b in places]
        message = (
            f"The inference method could not certify {len(ids)} bags: {name_bags(ids)}. The "
            "fit may be wrong. Use inference='auto'."
        )
        warn_caller(UncertifiedWarning(message, n_times=len(training.uncertified)))

    def _warn_of_relaxed(self, training):
        """Warn of bags that were too much for exact inference, and note them in `relaxed_`."""
        ids = [training.bags.ids[b].item() for b in training.relaxed]
        for bag, columns in zip(ids, training.relaxed.values(), strict=True):
            self.relaxed_[bag] = self._label_values(columns)
        warn_caller(
            f"{len(ids)} bags have too many labels for exact inference: {name_bags(ids)}. "
            "Those of their labels that are the most certain to occur were taken as optional; "
            "see relaxed_.",
            IntractableBagWarning,
        )

    def _warm_weights(self, training, coef, intercept, classes):
        """Return the coefficients of the last fit as weights of this one."""
        n_columns, n_features = training.shape[0], training.shape[1] - 1
        if len(coef) != n_columns or not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"warm_start needs the classes of the last fit, {listed(classes)}, and its "
                f"background, if it had one; these are {listed(self.classes_)}."
            )
        if coef.shape[1] != n_features:
            raise ValueError(
                f"warm_start needs the classes and features of the last fit: its coefficients "
                f"have shape {coef.shape}, these need {(n_columns, n_features)}."
            )
        return training.scale.weights(coef, intercept)
