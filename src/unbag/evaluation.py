"""How good a model is where the truth is known, next to what can be had without looking.

Everything is a plain number, ready for JSON. `unbag evaluate` prints it, and the report shows it.
"""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import average_precision_score

from unbag.annotations import blocks, column_texts, texts, told_probabilities, told_texts
from unbag.bags import Bags
from unbag.estimators import DummyBags, DummyInstances
from unbag.labels import LabelSets
from unbag.metrics import Calibration, bag_measures, calibration_of_confidence, hamming_loss
from unbag.model_selection import bag_scores
from unbag.tagging import BACKGROUND_NAME
from unbag.taxonomy import Ladder, ladder_of

#: Probabilities below are taken as equal where instances are ranked, so that few are held.
LEAST_RANKED = 1e-4

#: What the result of `evaluate` has beside measures.
NOT_MEASURES = (
    "bags", "instances", "per_class", "per_class_of_bags", "yardsticks", "unknown_labels", "levels",
)  # fmt: skip
#: What measures are called before people, where that says more than their name.
MEASURE_NAMES = {
    "held_out_hamming_loss": "wrong tags, held out by the fit",
    "inductive_accuracy": "labels right",
    "transductive_accuracy": "labels right given tags",
    "hamming_loss": "wrong tags",
}

#: Labels as text, and where they are known: what `unbag.annotations.known_labels` returns.
Truth = tuple[NDArray[np.object_], NDArray[np.bool_]]


def evaluate(
    model: Any, bags: Bags, labels: LabelSets | None, truth: Truth | None
) -> dict[str, Any]:
    """Measure a model on instances whose labels are known, and on bags.

    Examples
    --------
    >>> from unbag import ORLogisticRegression
    >>> bags = Bags.from_list([[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]])
    >>> labels = LabelSets.parse([{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> model = ORLogisticRegression().fit(bags, labels)
    >>> found = evaluate(model, bags, labels, None)
    >>> found["per_class_of_bags"]["b"]["support"]
    3
    >>> found["hamming_loss"], found["yardsticks"]["predict_nothing"]["hamming_loss"]
    (0.0, 0.75)
    """
    result: dict[str, Any] = {
        "bags": 0, "instances": 0, "unknown_labels": {}, "per_class": {}, "per_class_of_bags": {},
        "levels": {},
    }  # fmt: skip
    yardsticks: dict[str, dict[str, float | None]] = {}
    decision = getattr(getattr(model, "model", model), "decision_", None)
    held_out = {} if decision is None else decision.held_out
    # First, since a model is better on the bags that it was fitted to than on others.
    if "hamming_loss" in held_out:
        result["held_out_hamming_loss"] = held_out["hamming_loss"]
    if truth is not None and hasattr(model, "predict_instances"):
        result |= _of_instances(model, bags, labels, truth)
    if labels is not None:
        result |= _of_bags(model, bags, labels)
        yardsticks = _yardsticks(model.classes_, bags, labels, truth)
        if "hamming_loss" in held_out:
            frequent = yardsticks["most_frequent_tags"]
            frequent["held_out_hamming_loss"] = held_out["frequent_hamming_loss"]
    return {**result, "yardsticks": yardsticks}


def _of_instances(model, bags, labels, truth):
    true, known = truth[0][truth[1]], truth[1]
    result: dict[str, Any] = {"instances": len(true)}
    has_proba = hasattr(model, "predict_instances_proba")
    alone = Answers(model, bags, None, truth) if has_proba else None
    given = Answers(model, bags, labels, truth) if has_proba and labels is not None else None
    predicted = texts(model.predict_instances(bags))[known] if alone is None else alone.predicted
    known_names = {*texts(model.classes_).tolist(), BACKGROUND_NAME}
    strange = Counter(name for name in true.tolist() if name not in known_names)
    result["unknown_labels"] = dict(strange.most_common())
    result["inductive_accuracy"] = _mean(predicted == true)
    if labels is not None:
        told = told_texts(model, bags, labels)[known] if given is None else given.predicted
        result["transductive_accuracy"] = _mean(told == true)
    if alone is not None:
        result["calibration_error"] = float(alone.calibration.ece)
    if given is not None:
        result["calibration_error_given_tags"] = float(given.calibration.ece)
    if alone is not None and (getattr(model, "roles_", None) or {}).get("taxonomy"):
        ladder = ladder_of(model)
        for level in ladder.taxonomy.levels:
            of_level = {"inductive_accuracy": alone.accuracy_at(ladder, level)}
            if given is not None:
                of_level["transductive_accuracy"] = given.accuracy_at(ladder, level)
            result.setdefault("levels", {})[level] = of_level
    result["per_class"] = {
        name: {
            **precision_and_recall(true == name, predicted == name),
            "average_precision": None if alone is None else alone.average_precision(name),
            "support": int((true == name).sum()),
        }
        for name in sorted(set(true.tolist()) | set(texts(model.classes_).tolist()))
    }
    return result


class Answers:
    """Answers of a model about the instances with known labels, with bag labels or without.

    `predicted` are the most likely classes as text; `calibration` is how far their probabilities
    can be trusted. Only probabilities above `LEAST_RANKED` are kept.
    """

    def __init__(self, model: Any, bags: Bags, labels: LabelSets | None, truth: Truth) -> None:
        true, known = truth
        self.names: NDArray[np.object_] = column_texts(model, labels)
        self.true: NDArray[np.object_] = true[known]
        best, confidence, squared, kept = [], [], [], []
        for first, last in blocks(bags, len(self.names)):
            rows = slice(bags.offsets[first], bags.offsets[last])
            here = known[rows]
            if not here.any():
                continue
            of_block = None if labels is None else labels[first:last]
            proba = told_probabilities(model, bags[first:last], of_block, len(self.names))[here]
            is_true = true[rows][here][:, None] == self.names
            best.append(proba.argmax(axis=1))
            confidence.append(proba.max(axis=1))
            squared.append((proba**2).sum(axis=1) - 2.0 * (proba * is_true).sum(axis=1) + 1.0)
            kept.append(sparse.csr_matrix(np.where(proba >= LEAST_RANKED, proba, 0.0)))
        self.predicted: NDArray[np.object_] = self.names[np.concatenate(best)]
        self.calibration: Calibration = calibration_of_confidence(
            np.concatenate(confidence), self.predicted == self.true, np.concatenate(squared)
        )
        self._proba = sparse.vstack(kept).tocsc()

    def accuracy_at(self, ladder: Ladder, level: str) -> float | None:
        """Return the share of instances whose most likely name at a level is right."""
        n_columns = len(self.names)
        names, place = ladder.columns_at(level, n_columns)
        merged = sparse.csr_matrix((np.ones(n_columns), (np.arange(n_columns), place)))
        predicted = texts(names)[np.asarray((self._proba @ merged).argmax(axis=1)).ravel()]
        true = [ladder.taxonomy.at_level(name, level) for name in self.true.tolist()]
        return _mean(predicted == np.array(true, dtype=object))

    def average_precision(self, name: str) -> float | None:
        """Return the area under the precision-recall curve of a class; None if nothing has it."""
        is_true = self.true == name
        if not is_true.any():
            return None
        columns = np.flatnonzero(self.names == name)
        score = np.zeros(len(is_true))
        if len(columns):
            score = self._proba[:, columns[0]].toarray().ravel()
        return float(average_precision_score(is_true, score))


def _of_bags(model, bags, labels):
    predicted, scores = np.asarray(model.predict(bags)), bag_scores(model, bags)
    if getattr(model.model, "single_label_", False):
        predicted = predicted[:, None] == model.classes_
    measures = bag_measures(labels, predicted, scores)
    # Where no bag has both kinds of classes, there is nothing to rank.
    result: dict[str, Any] = {name: _number(value) for name, value in measures.items()}
    per_class = {}
    for column, name in enumerate(texts(model.classes_)):
        known = labels.indicator[:, column] >= 0
        is_true = labels.indicator[known, column] == 1
        ranked = is_true.any() and scores.shape[1]
        per_class[name] = {
            **precision_and_recall(is_true, predicted[known, column] == 1),
            "average_precision": (
                float(average_precision_score(is_true, scores[known, column])) if ranked else None
            ),
            "support": int(is_true.sum()),
        }
    return {"bags": len(bags), **result, "per_class_of_bags": per_class}


def _yardsticks(classes, bags, labels, truth):
    """Measure what is right without looking at the features."""
    nothing: dict[str, float | None] = {
        "hamming_loss": _number(hamming_loss(labels, np.zeros(labels.indicator.shape, dtype=int)))
    }
    frequent = DummyBags(classes=classes).fit(bags, labels)
    measures = bag_measures(labels, frequent.predict(bags), frequent.decision_function(bags))
    most_frequent = {name: _number(value) for name, value in measures.items()}
    if truth is not None:
        true, known = truth[0][truth[1]], truth[1]
        constant = DummyInstances(classes=classes).fit(bags, labels)
        for name, answer in (
            ("inductive_accuracy", texts(constant.predict_instances(bags))),
            ("transductive_accuracy", told_texts(constant, bags, labels)),
        ):
            most_frequent[name] = _mean(answer[known] == true)
    return {"predict_nothing": nothing, "most_frequent_tags": most_frequent}


def precision_and_recall(
    is_true: NDArray[np.bool_], is_predicted: NDArray[np.bool_]
) -> dict[str, float | None]:
    """Return both by name; None where they are not defined."""
    hits = np.sum(is_true & is_predicted)
    return {
        "precision": float(hits / is_predicted.sum()) if is_predicted.any() else None,
        "recall": float(hits / is_true.sum()) if is_true.any() else None,
    }


def _mean(values):
    return float(np.mean(values)) if len(values) else None


def _number(value):
    return float(value) if np.isfinite(value) else None
