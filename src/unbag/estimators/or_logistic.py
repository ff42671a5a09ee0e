"""ORed-logistic regression: the model of Pham, Raich and Fern.

The label of an instance is drawn by multinomial logistic regression; the label set of a bag
is the union (the OR) of the labels of its instances. With one instance per bag it *is*
multinomial logistic regression.
"""

import sys
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._messages import warn_caller
from unbag._scikit_learn import ConvergenceWarning
from unbag.fitting import Progress
from unbag.fitting.decide import Decision, decide
from unbag.fitting.linear import InterruptedFitWarning, LinearSettings, Watch, fit_linear, shown
from unbag.fitting.scaling import SCALINGS, Scaling
from unbag.union import Conditioner, IntractableBagWarning
from unbag.union.policy import OnIntractable, describe_relaxed
from unbag.union.rates import Rate
from unbag.validation import (
    all_or_nothing,
    check_choices,
    check_known_background,
    check_numbers,
    check_positive_integers,
)

from .answers import LinearUnionClassifier
from .contract import (
    BagsLike,
    LabelSetsLike,
    Threshold,
    check_background_cost,
    check_threshold,
    possible_label_sets,
)


class ORLogisticRegression(LinearUnionClassifier):
    """Learn to label instances from the label sets of their bags.

    Parameters
    ----------
    alpha : float or "auto", default=1.0
        Strength of the penalty ``alpha / 2 * ||coef||**2``, on standardised features; the
        intercepts are free. The reciprocal of scikit-learn's ``C``. With "auto", held-out bags
        choose it, whether tags are missing, and how sure the model may be (see `decision_`): its
        probabilities are then calibrated. That takes up to two seconds on small tables; if there
        are more than 600 bags, a sample decides.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Stop when an iteration improves the objective by less than this part of it.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled inside: to mean zero and variance one (sparse ones: to variance
        one), to the range from zero to one, or not at all. Coefficients are reported on the
        original scale.
    background : bool or "auto", default=False
        Whether there is one more class, optional in every bag and never named in a label
        set: noise, silence, clutter, unseen species. "auto" asks held-out bags whether label sets
        agree better with a model that has one, and if so, what it costs.
    background_cost : float, optional
        Penalty (nats) of a background instance in a bag with labels, in the fit and in
        annotations. At 0, all instances that the labels of a bag do not need become background. By
        default chosen on held-out bags with ``background="auto"``, and 0 with
        ``background=True``.
    missed_rate : float, array-like of shape (n_classes,), "learn" or "learn-per-class", default=0.0
        The probability that an instance of a class goes unnoticed when its bag is labelled, or how
        to learn it. A learnt rate includes misfit: it is not the share of missing labels.
    false_rate : float, array-like of shape (n_classes,), "learn" or "learn-per-class", default=0.0
        The probability that a class is named by mistake in the label set of a bag.
    on_impossible : {"relax", "drop", "raise"}, default="relax"
        What to do with a bag whose label set no labelling can produce: take its labels as
        optional (if it has none, leave it out), leave it out, or raise an error.
    on_intractable : {"relax", "raise"}, default="relax"
        What to do with a bag of too many labels for exact inference: take those as optional
        that are the most certain to occur anyway, or raise an error.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, in the order of `classes_`: other labels are refused, and a label that no
        bag has is still a class. By default the sorted labels of the training bags.
    threshold : float or "union", default=0.5
        The least probability at which `predict` takes a class to occur in a bag. "union" is the
        published rule: the classes of a bag are the most likely ones of its instances, and
        `decision_function` is the probability of a class in its best instance.
    n_jobs : int, optional
        Number of threads, as in `unbag.union.infer`.
    verbose : int, default=0
        1 shows a line of progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of int of shape (n_classes,)
        How many training bags have each class.
    coef_ : ndarray of shape (n_classes, n_features), or one row more for the background
    intercept_ : ndarray of shape (n_classes,), or one entry more for the background
    has_background_ : bool
        Whether the model has a background class.
    decision_ : unbag.fitting.Decision
        Penalty, background, missing tags and calibration, and why held-out bags have chosen them.
        Its method ``sentence()`` puts that into words.
    conditioner_ : unbag.union.Conditioner
        From scores and label sets to posteriors: cost of the background, rates of wrong labels, and
        the temperature of `annotate_proba`, which is 1 unless held-out bags have found another.
    missed_rate_, false_rate_ : ndarrays of shape (n_classes,)
        These rates, as given or learnt. Methods that take label sets use them; `predict` and
        `predict_instances` ignore them.
    background_cost_ : float
        Penalty (nats) of a background instance in a bag with labels.
    progress_ : unbag.fitting.Progress
        The end of the fit, for ``fit(start=...)``.
    n_iter_ : int
    converged_ : bool
        Whether the fit ended by `tol` or by `watch`, rather than by `max_iter`.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood after each iteration.
    log_likelihood_ : float
        The last of `history_`. If a background has a cost, that is subtracted.
    relaxed_ : dict
        For each bag (its id) that was fitted with some of its labels taken as optional: these
        labels.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when the bags had names for them.

    Examples
    --------
    Low instances are "a", high ones "b"; only bags have labels.

    >>> import numpy as np
    >>> from unbag import Bags, ORLogisticRegression
    >>> bags = Bags.from_list([[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]])
    >>> model = ORLogisticRegression().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> model.predict_instances([[[0.5], [8.5]]])
    array(['a', 'b'], dtype='<U1')
    >>> model.annotate([[[3.9], [4.0]]], [{"a", "b"}], joint=True)
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        alpha: float | Literal["auto"] = 1.0,
        *,
        max_iter: int = 1000,
        tol: float = 1e-6,
        scaling: Scaling = "standard",
        background: bool | Literal["auto"] = False,
        background_cost: float | None = None,
        missed_rate: Rate = 0.0,
        false_rate: Rate = 0.0,
        on_impossible: Literal["relax", "drop", "raise"] = "relax",
        on_intractable: OnIntractable = "relax",
        classes: ArrayLike | None = None,
        threshold: Threshold = 0.5,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha: float | Literal["auto"] = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.scaling: Scaling = scaling
        self.background: bool | Literal["auto"] = background
        self.background_cost = background_cost
        self.missed_rate: Rate = missed_rate
        self.false_rate: Rate = false_rate
        self.on_impossible: Literal["relax", "drop", "raise"] = on_impossible
        self.on_intractable: OnIntractable = on_intractable
        self.classes = classes
        self.threshold: Threshold = threshold
        self.n_jobs = n_jobs
        self.verbose = verbose

    coef_: np.ndarray
    intercept_: np.ndarray
    progress_: Progress
    decision_: Decision
    relaxed_: dict[object, np.ndarray]

    _accepts_sparse = True

    @all_or_nothing
    def fit(
        self,
        X: BagsLike,
        y: LabelSetsLike,
        instance_labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        decision: Decision | None = None,
        start: Progress | None = None,
        watch: Watch | None = None,
    ) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, array-like of shape (n_bags, n_features), or BagSource
            A 2-D array has one instance per bag. The features of a `unbag.fitting.BagSource` need
            not be in memory.
        y : label sets
            Sets of labels, strings such as "wren|owl", an indicator of 1, 0 and -1 (unknown),
            `LabelSets`; or one label per bag. A dict, or a pandas object with such an index, is
            aligned with the bags by their ids.
        instance_labels : array-like of shape (n_instances,), optional
            Labels of single instances, where they are known; None or -1 elsewhere. The word
            "background", unless it is a class, labels instances of none of the classes.
        sample_weight : array-like of shape (n_bags,), optional
            Weight of each bag.
        decision : unbag.fitting.Decision, optional
            What was decided before, such as the `decision_` of another model, in place of what
            `alpha` and `background` say.
        start : Progress, optional
            Where to go on from, such as the `progress_` of an earlier fit to the same classes and
            features. Its scale and decision are kept, and its iterations count.
        watch : callable, optional
            Called with a `Progress` after each iteration; a true answer stops the fit.

        Returns
        -------
        self
        """
        self._check_parameters()
        bags, labels, pinned, weight = self._read_fit(X, y, instance_labels, sample_weight)
        settings = LinearSettings.of(self)
        if start is not None:
            if not isinstance(start, Progress):
                kind = type(start).__name__
                raise TypeError(f"start must be a Progress, such as model.progress_; got {kind}.")
            if decision not in (None, start.decision):
                raise ValueError("start keeps its own decision: leave out decision.")
            decision = start.decision
            cost = self.background_cost
            if decision.background and cost not in (None, decision.background_cost):
                raise ValueError(
                    f"start has background_cost={decision.background_cost:g}, but the model has "
                    f"background_cost={cost!r}: give both the same."
                )
            if self.background not in ("auto", decision.background):
                raise ValueError(
                    f"start has background={decision.background}, but the model has "
                    f"background={self.background}: give both the same."
                )
        elif decision is None:
            decision = decide(
                bags, labels, settings, background=self.background, cost=self.background_cost,
                pinned=pinned, weight=weight,
            )  # fmt: skip
        settings = decision.settings(settings)
        n_classes = len(self.classes_)
        check_known_background(pinned, bags, n_classes, self, decision.background)
        problem = decision.conditioner().problem(bags.offsets, labels, pinned, relax=False)
        problem, used, relaxed = possible_label_sets(
            bags, labels, problem, self.on_impossible, settings.impossible(problem, n_classes)
        )
        if self.verbose:
            watch = shown(watch, self.max_iter)
        progress = fit_linear(
            bags, problem, settings, decision, used=used, weight=weight, start=start, watch=watch
        )
        if self.verbose:
            print(file=sys.stderr)
        self._warn(progress, bags.ids)
        relaxed |= progress.relaxed
        columns = [self._label_values(each) for each in relaxed.values()]
        self.relaxed_ = dict(zip(bags.ids[list(relaxed)].tolist(), columns, strict=True))
        self.progress_, self.decision_ = progress, decision
        coef, intercept = progress.coefficients
        new = decision.temperature_new
        self.coef_, self.intercept_ = coef / new, intercept / new
        self.conditioner_: Conditioner = decision.conditioner(progress.rates, self.on_intractable)
        return self

    def _check_parameters(self):
        if self.alpha != "auto":
            check_numbers(self, alpha=(0, np.inf))
        check_numbers(self, tol=(0, np.inf))
        check_background_cost(self)
        check_positive_integers(self, "max_iter")
        check_choices(
            self,
            on_impossible=("relax", "drop", "raise"),
            on_intractable=("relax", "raise"),
            scaling=SCALINGS,
            background=(False, True, "auto"),
        )
        check_threshold(self.threshold)

    def _warn(self, progress, ids):
        """Warn of a fit that did not converge, and of bags that were relaxed during it."""
        if progress.ended == "interrupted":
            warn_caller(
                f"fit was interrupted: the model has the weights of the last completed iteration, "
                f"{len(progress.history)}.",
                InterruptedFitWarning,
            )
        # Without a tolerance, max_iter iterations are what the user wants.
        if progress.ended == "max_iter" and self.tol > 0:
            warn_caller(
                f"The fit has not converged within {self.max_iter} iterations: increase "
                "max_iter or tol.",
                ConvergenceWarning,
            )
        if progress.relaxed:
            bags = ids[list(progress.relaxed)].tolist()
            warn_caller(f"{describe_relaxed(bags)} See relaxed_.", IntractableBagWarning)

    @property
    def history_(self) -> NDArray[np.float64]:
        """Log-likelihood after each iteration."""
        return np.array(self.progress_.history)

    @property
    def n_iter_(self) -> int:
        """Number of iterations."""
        return max(len(self.progress_.history), 1)

    @property
    def converged_(self) -> bool:
        """Whether the fit ended by `tol` or by `watch`, rather than by `max_iter`."""
        return self.progress_.ended in ("converged", "stopped")

    @property
    def log_likelihood_(self) -> float:
        """Log-likelihood of the training bags after the last iteration."""
        return self.progress_.history[-1] if self.progress_.history else -np.inf
