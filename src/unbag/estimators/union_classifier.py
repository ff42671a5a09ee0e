"""Models whose instances explain the label set of their bag: inference is exact."""

import warnings

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unbag.fitting.relaxation import surest_labels
from unbag.union import IntractableBagError, infer

from .instances import ProbabilisticClassifier


class UnionClassifier(ProbabilisticClassifier):
    """Base of the estimators that condition instances on the whole label set of their bag.

    Each label of a bag must be that of some instance, and no instance has another.
    """

    def _conditioned(self, log_prior, offsets, y, pinned):
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
        return infer(self._label_scores(bags), bags.offsets, self._union_y(labels)).log_likelihood
