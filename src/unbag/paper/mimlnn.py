"""MIMLNN, a rival in section 6.4: a linear layer on distances of bags (Zhang and Zhou 2007)."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lstsq

from unbag._threads import one_blas_thread
from unbag.estimators.contract import BagsLike, LabelSetsLike, RandomState
from unbag.fitting.scaling import Scaling
from unbag.validation import all_or_nothing, check_numbers

from .medoids import MedoidClassifier


class MIMLNN(MedoidClassifier):
    """Learn to label bags by ridge regression on their distances to medoids.

    Parameters
    ----------
    ratio, scaling, classes, random_state
        As in `MIMLSVM`.
    alpha : float, default=2.0
        Strength of the penalty ``alpha * ||coef||**2`` on the sum of squared errors.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_medoids)
        Weight of the distance to each medoid in the score of each class.
    medoid_indices_, classes_, class_counts_, n_features_in_, feature_names_in_
        As in `MIMLSVM`.

    Notes
    -----
    The scores are fitted to 1 for the classes that a bag has and -1 for the others, without an
    intercept. A bag has the classes whose score is not negative, which may be none. Time and memory
    are those of `MIMLSVM`.

    References
    ----------
    M.-L. Zhang and Z.-H. Zhou (2007). Multi-label learning by instance differentiation. AAAI,
    669-674.
    Z.-H. Zhou, M.-L. Zhang, S.-J. Huang and Y.-F. Li (2012). Multi-instance multi-label
    learning. Artificial Intelligence 176, 2291-2320.

    Examples
    --------
    >>> from unbag.paper import MIMLNN
    >>> bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]], [[0.5]], [[9.0]]]
    >>> y = [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}, {"a"}, {"b"}]
    >>> model = MIMLNN(ratio=1.0, alpha=0.1, random_state=0).fit(bags, y)
    >>> model.predict([[[0.2]], [[0.6], [8.5]]])
    array([[1, 0],
           [1, 1]])
    """

    _knows_groups = False

    def __init__(
        self,
        ratio: float = 1.0,
        *,
        alpha: float = 2.0,
        scaling: Scaling = "minmax",
        classes: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.ratio = ratio
        self.alpha = alpha
        self.scaling: Scaling = scaling
        self.classes = classes
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X, y
            As in `unbag.ORLogisticRegression.fit`. Empty bags are left out, and a bag counts for
            the scores of the classes that are known in it.

        Returns
        -------
        self
        """
        check_numbers(self, alpha=(0, np.inf))
        distances, target, known = self._learn_medoids(X, y)
        self.coef_: np.ndarray = np.empty((len(self.classes_), distances.shape[1]))
        # Classes that are known in the same bags are solved for together.
        patterns, pattern_of_class = np.unique(known, axis=1, return_inverse=True)
        with one_blas_thread():
            for pattern, bags in enumerate(patterns.T):
                classes = pattern_of_class.ravel() == pattern
                targets = target[bags][:, classes]
                self.coef_[classes] = ridge(distances[bags], targets, self.alpha).T
        return self

    def _scores(self, distances):
        return distances @ self.coef_.T

    def _bag_sets(self, bags, scores):
        return (scores >= 0).astype(int)


def ridge(X: np.ndarray, target: np.ndarray, alpha: float) -> np.ndarray:
    """Find the W of least ``||X W - target||**2 + alpha ||W||**2``; of many, that of least norm."""
    n_columns = X.shape[1]
    # The penalty as rows of its own. The normal equations would square the condition number,
    # and distances to as many medoids as bags are nearly dependent.
    rows = np.vstack([X, np.sqrt(alpha) * np.eye(n_columns)])
    target = np.vstack([target, np.zeros((n_columns, target.shape[1]))])
    cutoff = len(rows) * np.finfo(float).eps
    return lstsq(rows, target, cond=cutoff, lapack_driver="gelsy", check_finite=False)[0]
