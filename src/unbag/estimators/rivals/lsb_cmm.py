"""LSB-CMM: a mixture of classes that learns from instances with several candidate labels."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unbag.estimators.contract import BagsLike, LabelSetsLike, RandomState
from unbag.estimators.instances import ProbabilisticClassifier, Threshold
from unbag.fitting import Scaling, one_blas_thread
from unbag.union import UnionProblem
from unbag.validation import all_or_nothing, check_numbers, check_positive_integers

from .scaling import fitted_scaler
from .stick_breaking import fit_mixture, log_sticks

COMPONENTS_PER_CLASS = 5
SMALLEST = 1e-12


class LSBCMM(ProbabilisticClassifier):
    """Learn to label instances that have several candidate labels, those of their bag.

    The logistic stick-breaking conditional multinomial mixture of Liu and Dietterich. Which
    component of a mixture an instance belongs to follows from its features, by a chain of
    logistic regressions; each component has its own probabilities of the classes, most of
    which come out near zero. A class can have several components, so its region need be
    neither convex nor in one piece. Bags do not matter beyond their label sets: that every
    label of a bag must be that of some instance is not made use of.

    Parameters
    ----------
    variance : float, default=10.0
        Variance of the normal prior of the coefficients, on scaled features: the larger, the
        sharper are the borders between components. Published grid: 0.01, 0.1, ..., 1e5.
    n_components : int, optional
        Components of the mixture; by default 5 for each class that occurs.
    concentration : float, default=0.05
        Parameter of the Dirichlet prior of the class probabilities of a component: the
        smaller, the fewer classes share a component.
    max_iter : int, default=100
    tol : float, default=1e-4
        Stop when three iterations raise the mean lower bound by less than this part of it.
    scaling : {"standard", "minmax"} or None, default="standard"
        How features are scaled inside: to mean zero and variance one, to the range from zero
        to one, or not at all.
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
    stick_coef_ : ndarray of shape (n_components - 1, n_features)
        Coefficients, on scaled features, of the logistic regression by which each component
        but the last keeps an instance that the ones before it did not.
    stick_intercept_ : ndarray of shape (n_components - 1,)
    component_proba_ : ndarray of shape (n_components, n_classes)
        Probability of each class in each component.
    scaler_ : transformer
    n_iter_ : int
    converged_ : bool
        Whether the fit ended by `tol`, rather than by `max_iter`.
    lower_bound_ : float
        On the log-likelihood of the candidate labels; the last of `history_`.
    history_ : ndarray of shape (n_iter_,)
        Lower bound after each iteration; it never falls.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when the bags had names for them.

    Notes
    -----
    Variational expectation maximisation. The mixture is started from the classes, the most
    frequent first, so fits to the same data agree. An iteration takes time proportional to
    instances, features and components.

    References
    ----------
    L. Liu and T. Dietterich, "A conditional multinomial mixture model for superset label
    learning", Advances in Neural Information Processing Systems 25, 2012.

    Examples
    --------
    Low instances are "a", high ones "b"; only bags say so.

    >>> from unbag import Bags, LSBCMM
    >>> bags = Bags.from_list([[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]])
    >>> model = LSBCMM().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> model.predict_instances([[[0.5], [8.5]]])
    array(['a', 'b'], dtype='<U1')
    """

    _knows_groups = False

    def __init__(
        self,
        variance: float = 10.0,
        *,
        n_components: int | None = None,
        concentration: float = 0.05,
        max_iter: int = 100,
        tol: float = 1e-4,
        scaling: Scaling = "standard",
        classes: ArrayLike | None = None,
        threshold: Threshold = 0.5,
        random_state: RandomState = None,
    ) -> None:
        self.variance = variance
        self.n_components = n_components
        self.concentration = concentration
        self.max_iter = max_iter
        self.tol = tol
        self.scaling = scaling
        self.classes = classes
        self.threshold: Threshold = threshold
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike, instance_labels: ArrayLike | None = None) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
            A 2-D array has one instance per bag.
        y : label sets
            Sets of labels, an indicator of 1, 0 and -1 (unknown), `LabelSets`; or one label
            per bag. An unknown label is a candidate like any other. Bags without candidates
            are left out.
        instance_labels : array-like of shape (n_instances,), optional
            Labels of single instances, where they are known; None or -1 elsewhere. A known
            label is the only candidate.

        Returns
        -------
        self
        """
        check_numbers(
            self,
            variance=(SMALLEST, np.inf),
            concentration=(SMALLEST, np.inf),
            tol=(0, np.inf),
        )
        check_positive_integers(
            self, "max_iter", *([] if self.n_components is None else ["n_components"])
        )
        self._check_threshold()
        bags, labels = self._read_training(X, y)
        pinned = self._read_instance_labels(instance_labels, bags, labels)
        self._check_known_background(pinned, bags, self._has_background)
        candidates = UnionProblem(bags.offsets, labels.indicator, pinned).allowed_labels()
        used = candidates.any(axis=1)
        if not used.any():
            raise ValueError("No instance has a label to learn: all label sets are empty.")
        candidates = candidates[used]
        X = np.asarray(bags.X, dtype=np.float64)[used]
        self.scaler_: Any = fitted_scaler(self, X)
        n_default = COMPONENTS_PER_CLASS * int(candidates.any(axis=0).sum())
        with one_blas_thread():
            mixture = fit_mixture(
                self.scaler_.transform(X),
                candidates,
                n_components=n_default if self.n_components is None else self.n_components,
                variance=self.variance,
                concentration=self.concentration,
                max_iter=self.max_iter,
                tol=self.tol,
            )
        self.stick_coef_: np.ndarray = mixture.coef
        self.stick_intercept_: np.ndarray = mixture.intercept
        dirichlet = mixture.dirichlet
        self.component_proba_: np.ndarray = dirichlet / dirichlet.sum(axis=1, keepdims=True)
        self.history_: np.ndarray = mixture.history
        self.lower_bound_: float = float(mixture.history[-1])
        self.n_iter_: int = len(mixture.history)
        self.converged_: bool = mixture.converged
        return self

    def _instance_log_proba(self, X):
        if not len(X):
            return np.empty((0, len(self.classes_)))
        X = self.scaler_.transform(np.asarray(X, dtype=np.float64))
        logits = self.stick_coef_ @ X.T + self.stick_intercept_[:, None]
        # Some component has at least its even share, so that no sum comes to zero.
        return np.log(np.exp(log_sticks(logits)).T @ self.component_proba_)
