"""What scikit-learn's ``scoring`` arguments take.

Scorers of instances read the hidden ``instance_labels`` of the test bags, which no estimator sees.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unbag._scikit_learn import Pipeline
from unbag.bags import Bags, BagsLike
from unbag.labels import LabelSets, LabelSetsLike
from unbag.metrics import (
    average_precision,
    bag_measures,
    coverage,
    hamming_loss,
    instance_accuracy,
    one_error,
    ranking_loss,
)
from unbag.validation import as_labels


def inductive_accuracy(estimator: Any, X: Bags, y: object = None) -> float:
    """Compute the share of instances labelled rightly without seeing the labels of their bags.

    Parameters
    ----------
    estimator : fitted estimator
        It has ``predict_instances``, or is a pipeline or a search that ends in one that has.
    X : Bags
        With ``instance_labels``.
    y : object
        Ignored.

    Returns
    -------
    float

    Examples
    --------
    >>> class AlwaysWren:
    ...     def predict_instances(self, X):
    ...         return np.repeat("wren", X.n_instances)
    >>> bags = Bags([[1.0], [2.0]], offsets=[0, 2], instance_labels=["wren", "tit"])
    >>> inductive_accuracy(AlwaysWren(), bags)
    0.5
    """
    labels_true = _instance_labels(X)
    model, X = innermost_model(estimator, X)
    return instance_accuracy(labels_true, model.predict_instances(X))


def transductive_accuracy(estimator: Any, X: Bags, y: LabelSetsLike) -> float:
    """Compute the share of instances labelled rightly where the labels of their bags are known.

    Parameters
    ----------
    estimator, X : fitted estimator and Bags
        As for `inductive_accuracy`, with ``annotate`` in place of ``predict_instances``.
    y : label sets of the bags
        As in ``fit``.

    Returns
    -------
    float

    Examples
    --------
    >>> class FirstOfSet:
    ...     def annotate(self, X, y):
    ...         return np.repeat([min(labels) for labels in y], X.sizes)
    >>> bags = Bags([[1.0], [2.0]], offsets=[0, 2], instance_labels=["wren", "tit"])
    >>> transductive_accuracy(FirstOfSet(), bags, [{"tit", "wren"}])
    0.5
    """
    labels_true = _instance_labels(X)
    model, X = innermost_model(estimator, X)
    return instance_accuracy(labels_true, model.annotate(X, y))


def bag_scores(estimator: Any, X: BagsLike) -> np.ndarray:
    """Score the classes of bags, to rank them: by their probabilities, wherever there are any.

    Parameters
    ----------
    estimator : fitted estimator
    X : Bags
        The bags to score the classes of.

    Returns
    -------
    ndarray of shape (n_bags, n_classes)
        ``predict_proba``. Of models without it, and of those that predict by the rule of the paper
        (``threshold="union"``), ``decision_function``, by which the paper ranks.
    """
    of_paper = getattr(getattr(estimator, "model", estimator), "threshold", None) == "union"
    has_proba = hasattr(estimator, "predict_proba") and not of_paper
    return (estimator.predict_proba if has_proba else estimator.decision_function)(X)


@dataclass(frozen=True)
class BagScorer:
    """Score an estimator by a measure of bag label prediction: ``scorer(estimator, X, y)``.

    Parameters
    ----------
    measure : callable
        Takes the true indicator, in the order of ``classes_``, and the answer of the estimator.
    method : {"predict", "predict_proba", "decision_function"}
        The method of the estimator that gives this answer; for "predict_proba", `bag_scores`
        chooses.
    sign : {1, -1}, default=1
        -1 for a loss, as scikit-learn takes the greatest score for the best.

    Examples
    --------
    >>> class AlwaysWren:
    ...     classes_ = np.array(["tit", "wren"])
    ...     def predict(self, X):
    ...         return np.tile([0, 1], (len(X), 1))
    >>> scorer = BagScorer(hamming_loss, "predict", sign=-1)
    >>> scorer(AlwaysWren(), Bags([[1.0], [2.0]], offsets=[0, 1, 2]), [{"wren"}, {"tit", "wren"}])
    -0.25
    """

    measure: Callable[[LabelSets, np.ndarray], float]
    method: Literal["predict", "predict_proba", "decision_function"]
    sign: Literal[1, -1] = 1

    def __call__(self, estimator: Any, X: BagsLike, y: LabelSetsLike) -> float:
        """Score the answer for some bags against their label sets."""
        ranks = self.method == "predict_proba"
        answer = bag_scores(estimator, X) if ranks else getattr(estimator, self.method)(X)
        return self.sign * self.measure(_aligned(y, X, estimator.classes_), answer)


#: All scorers by name: pick one, or give all of them to a search, with one name as ``refit``.
SCORERS: dict[str, Callable[..., float]] = {
    "inductive_accuracy": inductive_accuracy,
    "transductive_accuracy": transductive_accuracy,
    "neg_hamming_loss": BagScorer(hamming_loss, "predict", sign=-1),
    "neg_ranking_loss": BagScorer(ranking_loss, "predict_proba", sign=-1),
    "average_precision": BagScorer(average_precision, "predict_proba"),
    "neg_one_error": BagScorer(one_error, "predict_proba", sign=-1),
    "neg_coverage": BagScorer(coverage, "predict_proba", sign=-1),
}


def scorers(scoring: Any) -> Any:
    """Look up names among `SCORERS`; what is no name stays as it is.

    scikit-learn would take its own scorers by these names, and they know no bags.
    """
    if callable(scoring) or isinstance(scoring, Mapping) or not isinstance(scoring, Iterable):
        return scoring
    names = [scoring] if isinstance(scoring, str) else list(scoring)
    for name in names:
        if name not in SCORERS:
            raise ValueError(f"scoring is {name!r}: give one of {', '.join(SCORERS)}.")
    return {name: SCORERS[name] for name in names}


def all_measures(estimator: Any, X: BagsLike, y: LabelSetsLike) -> dict[str, float]:
    """Measure a fitted estimator in every way that it and the data allow.

    Parameters
    ----------
    estimator : fitted estimator
        It has ``classes_``, ``predict`` and ``decision_function``.
    X, y : Bags and their label sets
        What to measure it on.

    Returns
    -------
    dict of str to float
        ``inductive_accuracy`` and ``transductive_accuracy``, where `X` has ``instance_labels`` and
        the estimator labels instances; then the five measures of ``unbag.metrics.bag_measures``.

    Examples
    --------
    >>> class AlwaysWren:
    ...     classes_ = np.array(["tit", "wren"])
    ...     def predict(self, X):
    ...         return np.tile([0, 1], (len(X), 1))
    ...     decision_function = predict
    >>> all_measures(AlwaysWren(), Bags([[1.0]], offsets=[0, 1]), [{"tit"}])["one_error"]
    1.0
    """
    labels_true = getattr(X, "instance_labels", None)
    model, X = innermost_model(estimator, X)
    measures = {}
    if labels_true is not None and hasattr(model, "predict_instances"):
        measures["inductive_accuracy"] = instance_accuracy(labels_true, model.predict_instances(X))
    if labels_true is not None and hasattr(model, "annotate"):
        measures["transductive_accuracy"] = instance_accuracy(labels_true, model.annotate(X, y))
    labels = _aligned(y, X, model.classes_)
    return measures | bag_measures(labels, model.predict(X), bag_scores(model, X))


def _instance_labels(X):
    if not isinstance(X, Bags):
        raise TypeError(f"X must be Bags with instance_labels, not {type(X).__name__}.")
    if X.instance_labels is None:
        raise ValueError("X has no instance_labels to compare with: give them to Bags.")
    return X.instance_labels


def innermost_model(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the fitted model inside searches and pipelines, and X with the features it sees."""
    if hasattr(estimator, "best_estimator_"):
        return innermost_model(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        # One by one: cut short, a pipeline counts as unfitted when its last step learns nothing.
        for _, step in estimator.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return innermost_model(estimator[-1], X)
    return estimator, X


def _aligned(y, X, classes):
    try:
        return LabelSets.parse(as_labels(y, X, are_sets=True), classes)
    except ValueError as error:
        raise ValueError(
            f"y does not fit the classes of the estimator. {error} y = LabelSets.parse(y) before "
            "splitting gives all folds the same classes."
        ) from None
