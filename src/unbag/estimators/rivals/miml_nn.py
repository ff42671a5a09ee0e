"""MIMLNN: a linear layer over the distances of bags to typical bags."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lstsq

from unbag.estimators.contract import BagsLike, LabelSetsLike, RandomState
from unbag.fitting import Scaling, one_blas_thread
from unbag.validation import all_or_nothing, check_numbers

from .medoids import MedoidClassifier


class MIMLNN(MedoidClassifier):
    """Learn to label bags by ridge regression on their distances to medoids.

    Parameters
    ----------
    ratio : float, default=1.0
        Number of medoids, as a share of the training bags: rounded down, but one at least. 1
        makes every bag a medoid, which is the most accurate on most data, and the slowest.
    alpha : float, default=2.0
        Strength of the penalty ``alpha * ||coef||**2`` on the sum of squared errors.
    scaling : {"minmax", "standard", None}, default="minmax"
        How features are scaled before distances are measured, as learnt from the training
        bags: from zero to one, to mean zero and variance one, or not at all.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, in the order of `classes_`: a label that is not in it is refused, and one
        that no bag has is a class all the same. By default the sorted labels of the training
        bags.
    random_state : int, RandomState instance or None, default=None
        Seed of the clustering that finds the medoids.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of int of shape (n_classes,)
        How many training bags have each class.
    medoid_indices_ : ndarray of int of shape (n_medoids,)
        The training bags that are medoids.
    coef_ : ndarray of shape (n_classes, n_medoids)
        Weight of the distance to each medoid in the score of each class.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when the bags had names for them.

    Notes
    -----
    The scores are fitted to 1 for the classes that a bag has and -1 for the others, without an
    intercept. A bag has the classes whose score is not negative, which may be none.

    All pairs of training instances are compared once, and their bags' distances held in
    memory: (number of bags)**2 floats. A new bag is compared with the medoids only.

    References
    ----------
    M.-L. Zhang and Z.-H. Zhou (2007). Multi-label learning by instance differentiation. AAAI,
    669-674.
    Z.-H. Zhou, M.-L. Zhang, S.-J. Huang and Y.-F. Li (2012). Multi-instance multi-label
    learning. Artificial Intelligence 176, 2291-2320.

    Examples
    --------
    >>> from unbag import MIMLNN
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
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
            A 2-D array has one instance per bag. Empty bags are left out.
        y : label sets
            Sets of labels, an indicator of 1, 0 and -1 (unknown), `LabelSets`; or one label
            per bag. A bag counts for the scores of those classes that are known in it.

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
    """Find the W of least ``||X W - target||**2 + alpha ||W||**2``; of many, that of least norm.

    Examples
    --------
    1 * 3 / (1 * 1 + 2)

    >>> ridge(np.array([[1.0]]), np.array([[3.0]]), alpha=2.0).round(12)
    array([[1.]])
    """
    n_columns = X.shape[1]
    # The penalty as rows of its own. The normal equations would square the condition number,
    # and distances to as many medoids as bags are nearly dependent.
    rows = np.vstack([X, np.sqrt(alpha) * np.eye(n_columns)])
    target = np.vstack([target, np.zeros((n_columns, target.shape[1]))])
    cutoff = len(rows) * np.finfo(float).eps
    return lstsq(rows, target, cond=cutoff, lapack_driver="gelsy", check_finite=False)[0]
