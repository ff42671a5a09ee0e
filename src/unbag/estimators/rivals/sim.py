"""SIM: support instance machines, which rank classes by one instance of the bag for each."""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from unbag.estimators.contract import BagsLike, LabelSetsLike, RandomState
from unbag.estimators.instances import InstanceClassifier
from unbag.fitting import Scaling, one_blas_thread
from unbag.validation import all_or_nothing, check_choices, check_numbers, check_positive_integers

from .rank_loss import fit_rank_loss
from .scaling import affine_map, fitted_scaler


class SIM(InstanceClassifier):
    """Learn linear scores that rank the classes of a bag above those that it lacks.

    Each class scores a bag by its *support instance*: the best instance of the bag, or the mean
    of all, weighted by a softmax of their scores. A class that the bag has shall score at least
    one more than a class that it lacks.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty ``alpha / 2 * ||coef||**2``, on scaled features and with the
        intercepts included. The authors call it lambda.
    aggregation : {"softmax", "max"}, default="softmax"
        What the support instance is: a weighted mean, or the best instance.
    solver : {"alternating", "cccp"}, default="alternating"
        "alternating" freezes all support instances in each phase. "cccp", the convex-concave
        procedure, freezes only those of the classes that a bag has, and lets the others follow
        the scores, so that no phase can make the objective worse; for the "max" aggregation
        only.
    n_phases : int, default=10
        How often support instances are chosen.
    n_steps : int, default=100
        Sub-gradient steps in each phase, after which the best iterate is kept. With a kernel,
        1000 were published.
    eta0 : float or None, default=100.0
        First step, times the mean squared length of an instance, so that it suits features of
        any scale. Steps fall as ``1 / (1 / first + alpha * t)``. None for the steps of Pegasos,
        ``1 / (alpha * t)``, t counted anew in each phase: with a small `alpha` the first of
        these are so long that a hundred do not find back to a model better than none.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled inside; None takes them as they are.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, in the order of `classes_`: a label that is not in it is refused, and one
        that no bag has is a class all the same. By default the sorted labels of the training
        bags.
    random_state : int, RandomState instance or None
        Nothing here is random; taken for the sake of the contract.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of int of shape (n_classes,)
        How many training bags have each class.
    coef_ : ndarray of shape (n_classes, n_features)
        On the original scale of the features.
    intercept_ : ndarray of shape (n_classes,)
    objective_ : ndarray of shape (n_phases,)
        The penalised rank loss after each phase; it is 1 before the first.
    n_iter_ : int
        Number of phases.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when the bags had names for them.

    Notes
    -----
    Bags that say nothing about the order of classes are left out of the fit: empty ones, those
    that have no class, and those that lack none. Unknown labels are not ranked.

    A step takes time in proportion to bags, classes and features; where there are more features
    than bags, as with a kernel, to bags squared and classes. With the same factors goes the
    memory, up to half a GiB: a fit that needs more does with less and takes longer. "cccp" looks
    at every instance in every step and needs no memory for that.

    The method is known from descriptions; its authors' code is not public. The steps that
    `eta0` stands for are ours: they are Pegasos's, counted from a later start.

    References
    ----------
    F. Briggs, X. Z. Fern and R. Raich, "Rank-loss support instance machines for MIML instance
    annotation", KDD 2012.

    S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, "Pegasos: primal estimated
    sub-gradient solver for SVM", Mathematical Programming 127, 2011.

    Examples
    --------
    Low instances are "a", high ones "b"; only bags say so.

    >>> bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]]
    >>> bags = [np.array(bag) for bag in bags]
    >>> model = SIM().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> model.predict_instances(bags)
    array(['a', 'b', 'a', 'a', 'b', 'a', 'b'], dtype='<U1')
    """

    _knows_groups = False

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        aggregation: Literal["softmax", "max"] = "softmax",
        solver: Literal["alternating", "cccp"] = "alternating",
        n_phases: int = 10,
        n_steps: int = 100,
        eta0: float | None = 100.0,
        scaling: Scaling = "standard",
        classes: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.aggregation = aggregation
        self.solver = solver
        self.n_phases = n_phases
        self.n_steps = n_steps
        self.eta0 = eta0
        self.scaling = scaling
        self.classes = classes
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
            A 2-D array has one instance per bag.
        y : label sets
            Sets of labels, an indicator of 1, 0 and -1 (unknown), `LabelSets`; or one label
            per bag.

        Returns
        -------
        self
        """
        self._check_parameters()
        bags, labels = self._read_training(X, y)
        ranking = (bags.sizes > 0) & labels.required.any(axis=1) & labels.forbidden.any(axis=1)
        if ranking.any():
            self._fit(bags, labels.indicator, ranking)
        elif len(self.classes_) > 1:
            raise ValueError(
                "There is nothing to rank: no bag with instances has one class and lacks another."
            )
        else:
            self.coef_: np.ndarray = np.zeros((len(self.classes_), bags.n_features))
            self.intercept_: np.ndarray = np.zeros(len(self.classes_))
            self.objective_: np.ndarray = np.zeros(self.n_phases)
        self.n_iter_: int = self.n_phases
        return self

    def _fit(self, bags, y, ranking):
        scaler = fitted_scaler(self, bags.X.astype(np.float64, copy=False))
        if not ranking.all():
            bags, y = bags[ranking], y[ranking]
        scaled = np.ones((bags.n_instances, bags.n_features + 1))
        scaled[:, :-1] = scaler.transform(bags.X.astype(np.float64, copy=False))
        first_step = self.eta0
        if first_step is not None:
            first_step = float(first_step * len(scaled) / np.vdot(scaled, scaled))
        with one_blas_thread():
            W, self.objective_ = fit_rank_loss(
                scaled,
                bags.offsets,
                np.ascontiguousarray(y),
                alpha=float(self.alpha),
                n_phases=self.n_phases,
                n_steps=self.n_steps,
                first_step=first_step,
                hard=self.aggregation == "max",
                follow=self.solver == "cccp",
            )
        factor, shift = affine_map(scaler)
        self.coef_ = W[:, :-1] * factor
        self.intercept_ = W[:, -1] + (W[:, :-1] * shift).sum(axis=1)

    def _check_parameters(self):
        check_numbers(self, alpha=(0, np.inf))
        if self.eta0 is not None:
            check_numbers(self, eta0=(0, np.inf))
        check_positive_integers(self, "n_phases", "n_steps")
        check_choices(self, aggregation=("softmax", "max"), solver=("alternating", "cccp"))
        if self.eta0 is None and self.alpha == 0:
            raise ValueError("alpha must be above 0 for the steps of Pegasos, eta0=None.")
        if self.solver == "cccp" and self.aggregation != "max":
            raise ValueError(
                f"solver must be 'alternating' for aggregation={self.aggregation!r}: 'cccp' needs "
                "'max', as only that is convex in the coefficients."
            )

    def _instance_scores(self, X):
        return X.astype(np.float64, copy=False) @ self.coef_.T + self.intercept_
