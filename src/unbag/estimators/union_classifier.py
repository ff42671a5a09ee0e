"""Models whose instances explain the label set of their bag: inference is exact."""

import warnings

from sklearn.utils.validation import check_is_fitted

from unbag.union import IntractableBagWarning, infer

from .instances import ProbabilisticClassifier


class UnionClassifier(ProbabilisticClassifier):
    """Base of the estimators that condition instances on the whole label set of their bag.

    Each label of a bag must be that of some instance, and no instance has another.
    """

    def _conditioned(self, log_prior, problem):
        """Infer; relax bags of too many labels, if `on_intractable` says so."""
        policy = getattr(self, "on_intractable", "raise")
        result = problem.infer(log_prior, on_intractable=policy)
        relaxed_bags = result.relaxed.any(axis=1).nonzero()[0]
        if len(relaxed_bags):
            warnings.warn(
                f"{len(relaxed_bags)} bags have too many labels for exact inference: those of "
                f"their labels that are the most certain to occur were taken as optional; the "
                f"first is bag {relaxed_bags[0]}.",
                IntractableBagWarning,
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
