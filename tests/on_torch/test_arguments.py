"""The forms that arguments of losses may take, and what is said of those that are wrong."""

import numpy as np
import pytest
import torch

from logit_batches import on, random_batch
from unbag.torch import UnionLoss, union_loss

# Of bags that are drawn, some are impossible.
pytestmark = pytest.mark.filterwarnings("ignore::unbag.union.ImpossibleBagWarning")


def packed(y):
    """Return label sets as classes one after the other, and their offsets."""
    sets = [np.flatnonzero(row == 1) for row in y]
    return torch.tensor(np.concatenate(sets)), torch.tensor(np.cumsum([0, *map(len, sets)]))


def test_label_sets_may_be_lists_or_packed(rng, device):
    logits, offsets, y = random_batch(rng, unknown=0.0)
    given, *rest = on(device, logits, offsets, y)
    expected = union_loss(given, *rest)
    lists = [np.flatnonzero(row == 1).tolist() for row in y]
    tensors = [torch.tensor(row, dtype=torch.int64) for row in lists]
    for targets in (lists, tensors, packed(y), y, list(map(set, lists)), torch.tensor(y == 1)):
        torch.testing.assert_close(union_loss(given, rest[0], targets), expected)
    on_device = tuple(part.to(device) for part in packed(y))
    torch.testing.assert_close(union_loss(given, rest[0], on_device), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int8])
def test_label_sets_may_be_of_any_type_and_device(rng, device, dtype):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y)
    found = union_loss(given, rest[0], torch.tensor(y, dtype=dtype))
    torch.testing.assert_close(found, union_loss(given, *rest))
    # Every other column of a wider tensor: what is given need not be contiguous.
    strided = torch.tensor(np.repeat(y, 2, axis=1), dtype=dtype, device=device)[:, ::2]
    torch.testing.assert_close(union_loss(given, rest[0], strided), union_loss(given, *rest))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_offsets_may_be_of_any_integers_and_device(rng, device, dtype):
    given, *rest = on(device, *random_batch(rng))
    expected = union_loss(given, *rest)
    for place in ("cpu", device):
        torch.testing.assert_close(union_loss(given, rest[0].to(place, dtype), rest[1]), expected)
    torch.testing.assert_close(union_loss(given, rest[0].tolist(), rest[1]), expected)


def test_logits_may_lie_anywhere_in_memory(rng, device):
    """Rows with gaps between them, columns with gaps, and transposed logits."""
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y)
    expected = union_loss(given, *rest)
    expected.backward()
    wide = torch.zeros((len(logits), 20), dtype=torch.float64, device=device)
    for view in (
        lambda: wide[:, 3:10],
        lambda: wide[:, 1:15:2],
        lambda: torch.zeros((7, len(logits)), dtype=torch.float64, device=device).T,
    ):
        strided = view().copy_(given.detach()).requires_grad_()
        assert not strided.is_contiguous()
        loss = union_loss(strided, *rest)
        loss.backward()
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(strided.grad, given.grad)


def test_logits_may_be_expanded(device):
    """All rows the same in memory; and a gradient without memory of its own comes in."""
    row = torch.zeros((1, 2), device=device, requires_grad=True)
    loss = union_loss(row.expand(4, 2), [0, 2, 4], [[0, 1], [0, 1]], reduction="none")
    loss.sum().backward()
    assert loss.tolist() == pytest.approx([np.log(2)] * 2)
    assert torch.isfinite(row.grad).all()


def test_weights_may_lie_elsewhere(rng, device):
    given, *rest = on(device, *random_batch(rng))
    weight = torch.tensor(rng.uniform(0.5, 2.0, len(rest[1])))
    expected = union_loss(given, *rest, weight=weight.to(device))
    torch.testing.assert_close(union_loss(given, *rest, weight=weight), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": torch.ones(2, 3)}, "one row per bag"),
        ({"targets": torch.full((2, 4), 2)}, "1 .present., 0 .absent. or -1"),
        ({"targets": [[0], [7]]}, "targets of bag 1 must be classes, 0 to 3"),
        ({"targets": [[0]]}, "classes of 2 bags; got 1"),
        ({"targets": (torch.tensor([0, 9]), torch.tensor([0, 1, 2]))}, "classes, 0 to 3"),
        ({"targets": (torch.tensor([0, 1]), torch.tensor([0, 2]))}, "classes of 2 bags; got 1"),
        ({"targets": (torch.tensor([0, 1]), torch.tensor([0, 1, 3]))}, "listed classes, 2"),
        ({"offsets": [0, 4, 3]}, "increase from 0"),
        ({"offsets": [0, 1, 2]}, "number of instances, 3"),
        ({"offsets": [0.0, 1.0, 3.0]}, r"1-D tensor of n_bags \+ 1 integers"),
        ({"missed_rate": 1.5}, "missed_rate must be 0, or at least 1e-12"),
        ({"false_rate": [0.1, 0.2]}, "one for each of 4 classes"),
        ({"weight": torch.ones(3)}, "one number per bag, 2"),
        ({"reduction": "total"}, "reduction must be one of"),
        ({"on_impossible": "drop"}, "on_impossible must be one of"),
        ({"on_intractable": "drop"}, "on_intractable must be one of"),
        ({"instance_labels": torch.zeros(2, dtype=torch.int64)}, "one class per instance"),
        ({"instance_labels": torch.zeros(3)}, "one class per instance, integers"),
        ({"instance_labels": torch.tensor([0, 4, -1])}, "columns of the logits, 0 to 3"),
        ({"instance_labels": torch.tensor([0, -2, -1])}, "columns of the logits, 0 to 3"),
        ({"logits": torch.zeros(3, 4, dtype=torch.int64)}, "floating-point"),
        ({"logits": torch.zeros(4)}, "must have the shape"),
        ({"logits": torch.zeros(3, 1), "background": True}, "no class besides the background"),
        ({"logits": torch.zeros(2, 2, 4)}, r"From padded bags, take the instances alone"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    good = {"logits": torch.zeros(3, 4), "offsets": [0, 1, 3], "targets": [[0], [1]]}
    with pytest.raises((ValueError, TypeError), match=message):
        union_loss(**{**good, **arguments})


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ([[0, 0, 1]], "class of bag 0 twice.*pass them as a tensor"),
        ([["owl"]], "bag 0 must be a list of integers, its classes; got .'owl'"),
        ([[0.5]], "bag 0 must be a list of integers, its classes"),
        ([[[0]]], "bag 0 must be a list of integers, its classes"),
    ],
)
def test_lists_that_are_no_classes_are_refused(targets, words):
    with pytest.raises(ValueError, match=words):
        union_loss(torch.zeros(1, 3), [0, 1], targets)


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_weights_below_zero_are_refused(weight):
    with pytest.raises(ValueError, match="weight must not contain negative"):
        union_loss(torch.zeros(1, 3), [0, 1], [[0]], weight=torch.tensor([weight]))


def test_rates_with_a_gradient_are_refused():
    with pytest.raises(ValueError, match="missed_rate requires a gradient"):
        union_loss(
            torch.zeros(1, 3), [0, 1], [[0]], missed_rate=torch.tensor(0.1, requires_grad=True)
        )


@pytest.mark.parametrize("rate", [1e-30, [0.1, 1e-30, 0.0], -0.1, 1.0])
@pytest.mark.parametrize("name", ["missed_rate", "false_rate"])
def test_rates_out_of_range_are_refused(name, rate):
    words = f"{name} must be 0, or at least 1e-12 and below 1; got"
    with pytest.raises(ValueError, match=words):
        union_loss(torch.zeros(1, 3), [0, 1], [[0]], **{name: rate})
    # Before the module moves to a device where nobody looks.
    with pytest.raises(ValueError, match=words):
        UnionLoss(**{name: rate})
