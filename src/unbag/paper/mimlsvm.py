"""MIMLSVM, a rival in section 6.4: vector machines on distances of bags (Zhou and Zhang 2007)."""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from unbag._threads import one_blas_thread
from unbag.estimators.contract import BagsLike, LabelSetsLike, RandomState
from unbag.fitting.scaling import Scaling
from unbag.validation import all_or_nothing, check_numbers

from .medoids import MedoidClassifier


class MIMLSVM(MedoidClassifier):
    """Learn to label bags by support vector machines, one per class, on distances to medoids.

    Parameters
    ----------
    ratio : float, default=1.0
        Number of medoids, as a share of the training bags: rounded down, but one at least. 1
        makes every bag a medoid, which is the most accurate on most data, and the slowest.
    gamma : float or "scale", default="scale"
        How narrow the kernel ``exp(-gamma * ||z - z'||**2)`` is, where z holds the distances
        of a bag to all medoids. "scale" is one over the number of medoids times the variance
        of these distances, as in scikit-learn's SVC.
    C : float, default=5.0
        Cost of errors: the higher, the less regularised. The published method has 1.
    scaling : {"minmax", "standard", None}, default="minmax"
        How features are scaled before distances are measured, as learnt from the training
        bags: from zero to one, to mean zero and variance one, or not at all.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, as in `unbag.ORLogisticRegression`.
    random_state : int, RandomState instance or None, default=None
        Seed of the clustering that finds the medoids.

    Attributes
    ----------
    medoid_indices_ : ndarray of int of shape (n_medoids,)
        The training bags that are medoids.
    dual_coef_ : ndarray of shape (n_classes, n_training_bags)
        Weight of each training bag that is not empty in the score of each class; zero except for
        its support vectors.
    intercept_ : ndarray of shape (n_classes,)
    classes_, class_counts_, n_features_in_, feature_names_in_
        As in `unbag.ORLogisticRegression`.

    Notes
    -----
    The scores are the decision values. A bag has the classes of positive score; if there are
    none, the class of the highest score. A class that no training bag has gets the score -1
    everywhere, and is never predicted; one that all have gets 1.

    All pairs of training instances are compared once, and their bags' distances held in
    memory: (number of bags)**2 floats. A new bag is compared with the medoids only.

    References
    ----------
    Z.-H. Zhou and M.-L. Zhang (2007). Multi-instance multi-label learning with application to
    scene classification. Advances in Neural Information Processing Systems 19, 1609-1616.

    Examples
    --------
    >>> from unbag.paper import MIMLSVM
    >>> bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]], [[0.5]], [[9.0]]]
    >>> y = [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}, {"a"}, {"b"}]
    >>> model = MIMLSVM(ratio=1.0, gamma=2.0, random_state=0).fit(bags, y)
    >>> model.predict([[[0.2]], [[0.6], [8.5]]])
    array([[1, 0],
           [1, 1]])
    """

    _knows_groups = False

    def __init__(
        self,
        ratio: float = 1.0,
        *,
        gamma: float | Literal["scale"] = "scale",
        C: float = 5.0,
        scaling: Scaling = "minmax",
        classes: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.ratio = ratio
        self.gamma = gamma
        self.C = C
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
            the machines of the classes that are known in it.

        Returns
        -------
        self
        """
        check_numbers(self, C=(0, np.inf))
        if self.C == 0:
            raise ValueError("C must be more than 0, or errors would cost nothing.")
        if not isinstance(self.gamma, str):
            check_numbers(self, gamma=(0, np.inf))
        elif self.gamma != "scale":
            raise ValueError(f"gamma must be a number or 'scale'; got {self.gamma!r}.")
        distances, target, known = self._learn_medoids(X, y)
        self._training_distances = distances
        self._gamma = self.gamma
        if self.gamma == "scale":
            spread = distances.shape[1] * distances.var()
            self._gamma = 1.0 / spread if spread > 0 else 1.0
        with one_blas_thread():
            gram = rbf_kernel(distances, gamma=self._gamma)
        self.dual_coef_: np.ndarray = np.zeros(target.T.shape)
        self.intercept_: np.ndarray = np.zeros(len(self.classes_))
        for c in range(len(self.classes_)):
            bags = np.flatnonzero(known[:, c])
            sides = np.unique(target[bags, c])
            if len(sides) == 1:
                self.intercept_[c] = sides[0]
                continue
            machine = SVC(C=self.C, kernel="precomputed").fit(
                gram[np.ix_(bags, bags)], target[bags, c]
            )
            self.dual_coef_[c, bags[machine.support_]] = machine.dual_coef_[0]
            self.intercept_[c] = machine.intercept_[0]
        return self

    def _scores(self, distances):
        gram = rbf_kernel(distances, self._training_distances, gamma=self._gamma)
        return gram @ self.dual_coef_.T + self.intercept_

    def _bag_sets(self, bags, scores):
        sets = scores > 0
        # Not a class that no training bag has, even where all others score less than its -1.
        learnt = np.flatnonzero(self.dual_coef_.any(axis=1))
        if len(learnt):
            bare = np.flatnonzero(~sets.any(axis=1))
            sets[bare, learnt[scores[np.ix_(bare, learnt)].argmax(axis=1)]] = True
        return sets.astype(int)
