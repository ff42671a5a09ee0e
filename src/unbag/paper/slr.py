"""SLR, the upper bound of section 6.2: MLR on bags of one instance, whose labels are known."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from unbag.estimators.contract import BagsLike, LabelSetsLike, Threshold, check_threshold
from unbag.estimators.supervised import InstanceLearner, labelled_instances
from unbag.fitting.scaling import Scaling
from unbag.validation import all_or_nothing, check_positive_integers

from .mlr import MLR, SEARCH, Search, check_search


class SLR(InstanceLearner):
    """Fit logistic regression to labelled instances, by as many gradient steps as `MLR`.

    Parameters
    ----------
    n_steps : int, default=50
        Number of gradient steps.
    search, scaling, classes, threshold
        As in `MLR`.

    Attributes
    ----------
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood of the labelled instances after each step.
    classes_, class_counts_, coef_, intercept_, log_likelihood_, n_iter_, n_features_in_
        As in `MLR`.

    Examples
    --------
    >>> from unbag import Bags
    >>> from unbag.paper import SLR
    >>> bags = Bags([[0.0], [9.0], [1.0], [8.0]], offsets=[0, 2, 4])
    >>> labels = ["low", "high", "low", "high"]
    >>> SLR().fit(bags, [{"low", "high"}] * 2, labels).predict_instances([[[2.0], [7.0]]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        n_steps: int = 50,
        *,
        search: Search = SEARCH,
        scaling: Scaling = "standard",
        classes: ArrayLike | None = None,
        threshold: Threshold = "union",
    ) -> None:
        self.n_steps = n_steps
        self.search: Search = search
        self.scaling: Scaling = scaling
        self.classes = classes
        self.threshold: Threshold = threshold

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike, instance_labels: ArrayLike | None = None) -> Self:
        """Fit the model to labelled instances.

        Parameters
        ----------
        X, y, instance_labels
            As in `unbag.SupervisedLogisticRegression.fit`.

        Returns
        -------
        self
        """
        check_positive_integers(self, "n_steps")
        check_search(self.search)
        check_threshold(self.threshold)
        bags, known, columns = self._read_labelled(X, y, instance_labels)
        model = MLR(self.n_steps, search=self.search, scaling=self.scaling)
        model.fit(*labelled_instances(bags, known, columns, len(self.classes_)))
        self.coef_: np.ndarray = model.coef_
        self.intercept_: np.ndarray = model.intercept_
        self.history_: np.ndarray = model.history_
        self.log_likelihood_: float = model.log_likelihood_
        self.n_iter_: int = model.n_iter_
        return self
