"""Posteriors and annotations of tensors, held to the core."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'unbag[torch]'")

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
    [{}, {"on_impossible": "relax"}, {"missed": 0.2, "false": 0.1}, {"missed": [0.1] * 7}],
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
        assert annotate(given, *rest, joint, on_impossible="relax").tolist() == [0]
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


def test_padding_has_no_class(device):
    logits = torch.zeros((2, 3, 2), device=device)
    for joint in (False, True):
        classes = annotate(logits, targets=[[0], [1]], joint=joint, lengths=[2, 0])
        assert classes.tolist() == [[0, 0, -1], [-1, -1, -1]]


def test_half_precision_is_answered_in_single(rng, device):
    given, *rest = on(device, *random_batch(rng), torch.bfloat16)
    assert posterior(given, *rest).dtype == torch.float32


def test_the_joint_labelling_knows_no_rates(device):
    with pytest.raises(ValueError, match="knows no rates"):
        annotate(torch.zeros((1, 2), device=device), [0, 1], [[0]], joint=True, missed=0.1)
