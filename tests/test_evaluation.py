"""Measures of a model, class by class, beside what can be had without looking."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

import unbag
from unbag import evaluation
from unbag.annotations import known_labels
from unbag.datasets import load_digit_bags
from unbag.metrics import calibration, hamming_loss


@pytest.fixture(scope="module")
def digits():
    return load_digit_bags()


@pytest.fixture(scope="module")
def model(digits):
    return unbag.ORLogisticRegression(max_iter=50, tol=1e-3).fit(digits.bags[:60], digits.y[:60])


@pytest.fixture(scope="module")
def found(model, digits):
    bags, labels = digits.bags[60:], unbag.LabelSets.parse(digits.y[60:])
    return evaluation.evaluate(model, bags, labels, known_labels(bags))


def test_classes_of_instances_are_measured_as_scikit_learn_does(found, model, digits):
    bags = digits.bags[60:]
    true, proba = bags.instance_labels, model.predict_instances_proba(bags)
    names = model.classes_
    precision, recall, _, support = precision_recall_fscore_support(
        true, names[proba.argmax(axis=1)], labels=names
    )
    for column, name in enumerate(names):
        of_class = found["per_class"][str(name)]
        assert of_class["precision"] == pytest.approx(precision[column])
        assert of_class["recall"] == pytest.approx(recall[column])
        assert of_class["support"] == support[column]
        expected = average_precision_score(true == name, proba[:, column])
        # Probabilities of next to nothing are taken as equal.
        assert of_class["average_precision"] == pytest.approx(expected, abs=2e-3)


def test_classes_of_bags_are_measured_as_scikit_learn_does(found, model, digits):
    truth, proba = np.asarray(digits.y[60:]), model.predict_proba(digits.bags[60:])
    precision, recall, _, support = precision_recall_fscore_support(
        truth, model.predict(digits.bags[60:])
    )
    for column, name in enumerate(model.classes_):
        of_class = found["per_class_of_bags"][str(name)]
        assert of_class["precision"] == pytest.approx(precision[column])
        assert of_class["recall"] == pytest.approx(recall[column])
        assert of_class["support"] == support[column]
        expected = average_precision_score(truth[:, column], proba[:, column])
        assert of_class["average_precision"] == pytest.approx(expected)


def test_probabilities_are_compared_with_what_is_right(found, model, digits):
    bags, labels = digits.bags[60:], digits.y[60:]
    for name, proba in (
        ("calibration_error", model.predict_instances_proba(bags)),
        ("calibration_error_given_tags", model.annotate_proba(bags, labels)),
    ):
        expected = calibration(bags.instance_labels, proba, model.classes_).ece
        assert found[name] == pytest.approx(expected)


def test_yardsticks_do_not_look_at_the_features(found, digits):
    truth = np.asarray(digits.y[60:])
    nothing, frequent = (
        found["yardsticks"][name] for name in ("predict_nothing", "most_frequent_tags")
    )
    assert nothing == {"hamming_loss": pytest.approx(truth.mean())}
    constant = np.zeros_like(truth)
    constant[:, truth.mean(axis=0).argmax()] = 1
    assert frequent["hamming_loss"] == pytest.approx(hamming_loss(truth, constant))
    most_frequent = truth.mean(axis=0).argmax()
    share = np.mean(digits.bags[60:].instance_labels == most_frequent)
    assert frequent["inductive_accuracy"] == pytest.approx(share)
    assert found["inductive_accuracy"] > frequent["inductive_accuracy"]
    assert frequent["transductive_accuracy"] > frequent["inductive_accuracy"]


def test_held_out_bags_of_the_fit_come_first(digits):
    bags, labels = digits.bags[:60], unbag.LabelSets.parse(digits.y[:60])
    found = evaluation.evaluate(unbag.fit(bags, digits.y[:60]), bags, labels, None)
    measures = [name for name in found if name not in evaluation.NOT_MEASURES]
    assert measures[0] == "held_out_hamming_loss"
    frequent = found["yardsticks"]["most_frequent_tags"]
    # The model knows these bags, and did not know those.
    assert found["hamming_loss"] < found["held_out_hamming_loss"]
    assert found["held_out_hamming_loss"] < frequent["held_out_hamming_loss"]
    plain = unbag.ORLogisticRegression().fit(bags, labels)
    assert "held_out_hamming_loss" not in evaluation.evaluate(plain, bags, labels, None)


def test_blocks_do_not_matter(found, model, digits, monkeypatch):
    monkeypatch.setattr("unbag.annotations.BLOCK", 100)
    bags, labels = digits.bags[60:], unbag.LabelSets.parse(digits.y[60:])
    again = evaluation.evaluate(model, bags, labels, known_labels(bags))
    assert again["calibration_error"] == pytest.approx(found["calibration_error"])
    assert again["inductive_accuracy"] == found["inductive_accuracy"]


def test_what_is_not_known_is_left_out(model, digits):
    bags, labels = digits.bags[60:90], unbag.LabelSets.parse(digits.y[60:90])
    some = [label if at % 2 else None for at, label in enumerate(bags.instance_labels)]
    partly = unbag.Bags(bags.X, bags.offsets, instance_labels=some)
    assert evaluation.evaluate(model, partly, labels, known_labels(partly))["instances"] == sum(
        label is not None for label in some
    )
    without = evaluation.evaluate(model, bags, labels, None)
    assert without["per_class"] == {}
    assert "inductive_accuracy" not in without
    alone = evaluation.evaluate(model, bags, None, known_labels(bags))
    assert alone["yardsticks"] == {}
    assert "hamming_loss" not in alone


def test_models_without_probabilities_are_measured_too(digits):
    bags, labels = digits.bags[60:], unbag.LabelSets.parse(digits.y[60:])
    model = unbag.DummyInstances().fit(digits.bags[:60], digits.y[:60])
    found = evaluation.evaluate(model, bags, labels, known_labels(bags))
    assert found["per_class"]["0"]["average_precision"] is None
    assert "calibration_error" not in found
