"""The loss of a linear layer, whose logits are never stored, against that of its logits."""

import pytest
import torch

from logit_batches import random_batch
from unbag.torch import operators, union_loss, union_loss_linear
from unbag.union import ImpossibleBagError, IntractableBagError

# Of bags that are drawn, some are impossible.
pytestmark = pytest.mark.filterwarnings("ignore::unbag.union.ImpossibleBagWarning")

N_FEATURES = 5


@pytest.fixture(params=[3, 1000])
def chunk(request, monkeypatch):
    """Chunks of few rows, and all rows in one."""
    monkeypatch.setattr(operators, "chunk_rows", lambda *_: request.param)


def layer_and_batch(rng, device, dtype=torch.float64, **options):
    _, offsets, y = random_batch(rng, **options)
    sizes = (offsets[-1], N_FEATURES), (y.shape[1], N_FEATURES), (y.shape[1],)
    drawn = [
        torch.tensor(rng.normal(size=size), dtype=dtype, device=device).requires_grad_()
        for size in sizes
    ]
    return drawn, torch.tensor(offsets, device=device), torch.tensor(y, device=device)


def both(drawn, *rest, weight=None, **options):
    """Return the loss and the gradients by either way."""
    found = []
    for loss in (
        union_loss(torch.nn.functional.linear(*drawn), *rest, weight=weight, **options),
        union_loss_linear(*drawn, *rest, bag_weight=weight, **options),
    ):
        found.append((loss.detach(), *torch.autograd.grad(3.0 * loss, drawn)))
    return found


@pytest.mark.parametrize("reduction", ["mean", "instances", "sum"])
@pytest.mark.parametrize(
    "options",
    [{}, {"missed_rate": 0.2, "false_rate": 0.1}, {"on_impossible": "relax"}, {"weight": True}],
    ids=str,
)
def test_it_is_the_loss_of_the_logits(rng, device, chunk, reduction, options):
    drawn, offsets, y = layer_and_batch(rng, device)
    if "weight" in options:
        options = {"weight": torch.tensor(rng.uniform(0.0, 2.0, len(y)), device=device)}
    expected, found = both(drawn, offsets, y, reduction=reduction, **options)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_pins_and_backgrounds(rng, device, chunk):
    features = torch.tensor(rng.normal(size=(7, 5)), device=device, requires_grad=True)
    weight = torch.tensor(rng.normal(size=(4, 5)), device=device, requires_grad=True)
    pins = torch.tensor([-1, 2, -1, -1, 3, -1, -1])
    given = [0, 4, 7, 7], torch.tensor([[1, 0, 1], [1, -1, 0], [0, 0, 0]], device=device)
    options = {"background": True, "instance_labels": pins, "missed_rate": 0.1}
    loss = union_loss_linear(features, weight, None, *given, **options)
    found = torch.autograd.grad(loss, (features, weight))
    loss_of_logits = union_loss(features @ weight.T, *given, **options)
    expected = torch.autograd.grad(loss_of_logits, (features, weight))
    torch.testing.assert_close(loss, loss_of_logits)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("frozen", ["features", "layer", "all"])
def test_only_gradients_that_are_wanted_are_computed(rng, device, chunk, frozen):
    (features, weight, bias), *rest = layer_and_batch(rng, device)
    features.requires_grad_(frozen == "layer")
    weight.requires_grad_(frozen == "features")
    bias.requires_grad_(frozen == "features")
    loss = union_loss_linear(features, weight, bias, *rest)
    torch.testing.assert_close(
        loss, union_loss(torch.nn.functional.linear(features, weight, bias), *rest)
    )
    assert loss.requires_grad == (frozen != "all")
    if loss.requires_grad:
        loss.backward()
    assert (features.grad is None) == (frozen != "layer")
    assert (weight.grad is None) == (frozen != "features")


def test_backward_may_come_twice(rng, device, chunk):
    drawn, *rest = layer_and_batch(rng, device)
    loss = union_loss_linear(*drawn, *rest)
    once = torch.autograd.grad(loss, drawn, grad_outputs=torch.zeros_like(loss), retain_graph=True)
    assert not any(gradient.any() for gradient in once)
    twice = torch.autograd.grad(loss, drawn)
    expected = torch.autograd.grad(union_loss(torch.nn.functional.linear(*drawn), *rest), drawn)
    torch.testing.assert_close(twice, expected)


def test_second_derivatives_are_refused(rng, device):
    drawn, *rest = layer_and_batch(rng, device)
    (gradient, *_) = torch.autograd.grad(union_loss_linear(*drawn, *rest), drawn, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        gradient.sum().backward()


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_autocast(rng, device, half):
    drawn, *rest = layer_and_batch(rng, device, torch.float32)
    with torch.autocast(device, dtype=half):
        loss = union_loss_linear(*drawn, *rest)
        expected = union_loss(torch.nn.functional.linear(*drawn), *rest)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=0.02, atol=0.02)
    found = torch.autograd.grad(loss, drawn)
    exact = torch.autograd.grad(expected, drawn)
    for one, other in zip(found, exact, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0.1, atol=0.02)


# What torch's compiler warns of is its own.
@pytest.mark.filterwarnings("ignore")
def test_compilation_does_not_change_the_answer(rng, device):
    drawn, *rest = layer_and_batch(rng, device)
    expected = union_loss_linear(*drawn, *rest)
    gradients = torch.autograd.grad(expected, drawn)
    # On the CPU numbers are looked at, which breaks the graph.
    compiled = torch.compile(
        lambda *given: union_loss_linear(*given, *rest),
        backend="aot_eager",
        fullgraph=device == "cuda",
    )
    loss = compiled(*drawn)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, drawn), gradients)


def test_no_rows_and_no_bags(device):
    features = torch.zeros((0, 4), device=device, requires_grad=True)
    weight = torch.ones((3, 4), device=device, requires_grad=True)
    for offsets, targets in (([0], torch.zeros((0, 3))), ([0, 0], [[]])):
        loss = union_loss_linear(features, weight, None, offsets, targets)
        loss.backward()
        assert loss == 0
        assert (weight.grad == 0).all()


def test_malformed_arguments_are_named():
    features, weight, rest = torch.zeros(2, 3), torch.zeros(4, 3), ([0, 2], [[1]])
    with pytest.raises(ValueError, match="One number for each bag"):
        union_loss_linear(features, weight, None, *rest, reduction="none")
    with pytest.raises(ValueError, match=r"weight must have the shape \(n_columns, 3\)"):
        union_loss_linear(features, weight.T, None, *rest)
    with pytest.raises(ValueError, match="bias must hold one number per row"):
        union_loss_linear(features, weight, torch.zeros(3), *rest)
    with pytest.raises(TypeError, match="features must be a tensor of floating-point"):
        union_loss_linear(features.int(), weight, None, *rest)
    with pytest.raises(ImpossibleBagError):
        union_loss_linear(features, weight, None, [0, 2], [[0, 1, 2]], on_impossible="raise")


def test_intractable_bags_are_named_by_their_number(device, chunk):
    features = torch.ones((200, 2), device=device)
    weight = torch.ones((40, 2), device=device)
    offsets, targets = [0, 50, 150, 200], [[0], range(40), [1]]
    with pytest.raises(IntractableBagError, match="too many labels") as caught:
        union_loss_linear(features, weight, None, offsets, targets)
    assert caught.value.bags == [1]
