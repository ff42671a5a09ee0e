"""Posteriors and annotations of tensors, held to the core."""

import numpy as np
import pytest
import torch

from logit_batches import log_softmax, on, random_batch
from unbag.torch import annotate, posterior
from unbag.union import ImpossibleBagError, infer, most_likely_labels


def test_annotations_are_those_of_the_core(rng, device):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y)
    expected = most_likely_labels(log_softmax(logits), offsets, y)
    np.testing.assert_array_equal(annotate(given, *rest, joint=True).cpu(), expected)
    found = annotate(given, *rest).cpu().numpy()
    proba = posterior(given, *rest).cpu().numpy()
    np.testing.assert_array_equal(found[found >= 0], proba.argmax(axis=1)[found >= 0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"on_impossible": "relax"},
        {"missed_rate": 0.2, "false_rate": 0.1},
        {"missed_rate": [0.1] * 7},
    ],
)
def test_posteriors_are_those_of_the_core(rng, device, options):
    logits, offsets, y = random_batch(rng)
    allowed = np.repeat(y != 0, np.diff(offsets), axis=0)
    labels = np.where(rng.random(len(logits)) < 0.2, rng.integers(0, 7, len(logits)), -1)
    labels[~allowed[np.arange(len(labels)), labels]] = -1
    given, *rest = on(device, logits, offsets, y)
    for pins in (None, labels):
        expected = infer(log_softmax(logits), offsets, y, instance_labels=pins, **options)
        given_pins = None if pins is None else torch.tensor(pins)
        found = posterior(given, *rest, instance_labels=given_pins, **options)
        assert not found.requires_grad
        np.testing.assert_allclose(found.cpu(), expected.posterior, atol=1e-9)
        classes = annotate(given, *rest, instance_labels=given_pins, **options).cpu().numpy()
        answered = expected.posterior.max(axis=1) > 0
        np.testing.assert_array_equal(classes >= 0, answered)
        chosen = expected.posterior[np.arange(len(classes)), classes]
        np.testing.assert_allclose(chosen[answered], expected.posterior.max(axis=1)[answered])


def test_impossible_bags_are_left_out_relaxed_or_refused(device):
    given, *rest = on(device, [[1.0, 0.0]], [0, 1], [[1, 1]])
    for joint in (False, True):
        assert annotate(given, *rest, joint).tolist() == [-1]
        targets = torch.tensor([[1, 1]], dtype=torch.int8)
        assert annotate(given, rest[0], targets, joint, on_impossible="relax").tolist() == [0]
        assert targets.tolist() == [[1, 1]], "the caller's label sets stay as they are"
        with pytest.raises(ImpossibleBagError, match="bag"):
            annotate(given, *rest, joint, on_impossible="raise")
    assert posterior(given, *rest).tolist() == [[0.0, 0.0]]
    with pytest.raises(ImpossibleBagError, match="bag"):
        posterior(given, *rest, on_impossible="raise")


def test_background_is_the_last_class(device):
    logits = torch.tensor([[3.0, 0.0, 1.0], [0.0, 0.0, 4.0], [0.0, 0.0, 5.0]], device=device)
    for joint in (False, True):
        classes = annotate(logits, [0, 3], [[0]], joint, background=True)
        assert classes.tolist() == [0, 2, 2]


def test_half_precision_is_answered_in_single(rng, device):
    given, *rest = on(device, *random_batch(rng), torch.bfloat16)
    assert posterior(given, *rest).dtype == torch.float32


@pytest.mark.parametrize(
    "rates", [{"missed_rate": 0.2}, {"false_rate": 0.1}, {"missed_rate": 0.2, "false_rate": 0.1}]
)
def test_the_joint_labelling_knows_rates(rng, device, rates):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y)
    expected = most_likely_labels(log_softmax(logits), offsets, y, **rates)
    np.testing.assert_array_equal(annotate(given, *rest, joint=True, **rates).cpu(), expected)


def test_the_joint_labelling_knows_the_same_impossible_bags(device):
    # An empty bag with a label, a class that is pinned and forbidden, and an instance of no class.
    logits = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-torch.inf] * 2, [3.0, 0.0]], device=device)
    offsets, targets = [0, 0, 1, 2, 3, 4], [[0], [0], [0], [0], [0]]
    pins = torch.tensor([1, -1, -1, -1])
    for joint in (False, True):
        found = annotate(logits, offsets, targets, joint, instance_labels=pins)
        assert found.tolist() == [-1, 0, -1, 0]
        with pytest.raises(ImpossibleBagError, match=r"3 of 5 .*: 0, 1, 3"):
            annotate(logits, offsets, targets, joint, instance_labels=pins, on_impossible="raise")
        with pytest.raises(ValueError, match="on_impossible must be one of"):
            annotate(logits, offsets, targets, joint, on_impossible="ignore")


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_bag_with_broken_logits_has_no_answer(device, broken):
    logits = torch.tensor([[broken, 0.0], [0.0, 1.0], [2.0, 0.0]], device=device)
    proba = posterior(logits, [0, 2, 3], [[0, 1], [0]]).cpu()
    assert proba[:2].isnan().all()
    torch.testing.assert_close(proba[2], torch.tensor([1.0, 0.0]))
    for joint in (False, True):
        assert annotate(logits, [0, 2, 3], [[0, 1], [0]], joint).tolist() == [-1, -1, 0]


def test_what_is_no_tensor_is_refused_in_words():
    for ask in (posterior, annotate):
        with pytest.raises(TypeError, match="logits must be a tensor"):
            ask(np.zeros((1, 2)), [0, 1], [[0]])
