"""The loss as a citizen of torch: derivatives, precision, compilation, transforms."""

import numpy as np
import pytest
import torch

from logit_batches import on, random_batch
from unbag.groups import Groups
from unbag.torch import UnionLoss, union_loss
from unbag.torch.arguments import read_batch
from unbag.torch.groups import with_groups
from unbag.torch.loss import takes_one_pass

# Of bags that are drawn, some are impossible.
pytestmark = pytest.mark.filterwarnings("ignore::unbag.union.ImpossibleBagWarning")


@pytest.mark.parametrize(
    "options",
    [
        {"reduction": "mean"},
        {"reduction": "instances"},
        {"reduction": "sum"},
        {"reduction": "none"},
        {"missed_rate": 0.2, "false_rate": 0.1},
        {"on_impossible": "relax"},
    ],
)
def test_gradients_agree_with_differences(rng, device, options):
    logits, offsets, y = random_batch(rng, n_bags=4, n_classes=3, longest=3)
    given, *rest = on(device, logits, offsets, y)
    weight = torch.tensor(rng.uniform(0.5, 2.0, len(y)), device=device, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: union_loss(x, *rest, **options), given)
    assert torch.autograd.gradcheck(
        lambda x, w: union_loss(x, *rest, weight=w, **options), (given, weight)
    )


def test_gradients_of_backgrounds_and_pins_agree_with_differences(rng, device):
    logits = torch.tensor(rng.normal(size=(7, 4)), device=device, requires_grad=True)
    pins = torch.tensor([-1, 2, -1, -1, 3, -1, -1])
    options = {"background": True, "instance_labels": pins, "missed_rate": 0.1}
    given = [0, 4, 7, 7], torch.tensor([[1, 0, 1], [1, -1, 0], [0, 0, 0]], device=device)
    assert torch.autograd.gradcheck(lambda x: union_loss(x, *given, **options), logits)


def batch_of_many_classes(rng, device):
    """Draw what forward writes the gradient of on a GPU: a thousand classes, in single precision.

    And bags that it leaves to backward: one that is impossible, one with unknown classes, a long
    one, one with many labels, and one whose labels the certificate refuses.
    """
    sizes = np.array([16, 1, 5, 0, 30, 2, 16, 260, 12, 9])
    n_labels = np.array([4, 1, 3, 0, 8, 3, 2, 2, 10, 2])
    y = np.zeros((len(sizes), 1000), np.int8)
    for bag, k in enumerate(n_labels):
        y[bag, rng.permutation(1000)[:k]] = 1
    y[6, rng.random(1000) < 0.1] = -1
    logits = rng.normal(size=(sizes.sum(), 1000))
    logits[-9:, np.flatnonzero(y[-1] == 1)[0]] -= 60.0
    batch = on(device, logits, np.concatenate([[0], np.cumsum(sizes)]), y, torch.float32)
    if device == "cuda":
        assert takes_one_pass(read_batch(*batch), None, "mean")
    return batch


@pytest.mark.parametrize(
    ("reduction", "on_impossible"), [("mean", "keep"), ("instances", "keep"), ("sum", "relax")]
)
def test_factors_of_losses_may_change(rng, device, reduction, on_impossible):
    given, *rest = batch_of_many_classes(rng, device)
    options = {"reduction": reduction, "on_impossible": on_impossible}
    if reduction != "mean":
        options["weight"] = torch.tensor(rng.uniform(0.5, 2.0, len(rest[1])))
    exact = given.detach().to(torch.float64).requires_grad_()
    expected = union_loss(exact, *rest, **options)
    expected.backward()
    for factor in (1.0, 3.0, 3.0, 0.0, -0.5):
        given.grad = None
        loss = union_loss(given, *rest, **options)
        (factor * loss).backward()
        torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=1e-6)
        scale = exact.grad.abs().max().item()
        found, wanted = given.grad.double(), factor * exact.grad
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6 * scale)


def test_gradients_are_handed_out_once(rng, device):
    """What somebody does to a gradient is not seen by the next one."""
    given, *rest = batch_of_many_classes(rng, device)
    loss = union_loss(given, *rest)
    found = []
    for _ in range(3):
        (gradient,) = torch.autograd.grad(loss, given, retain_graph=True)
        found.append(gradient.clone())
        gradient.zero_()
    assert found[0].any()
    # On a GPU, forward writes the first one, and the next ones are rounded otherwise.
    assert device == "cuda" or torch.equal(found[1], found[0])
    torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-7)
    assert torch.equal(found[2], found[1])
    (gradient,) = torch.autograd.grad(union_loss(given, *rest), given, create_graph=True)
    torch.testing.assert_close(gradient.detach(), found[0])
    with pytest.raises(NotImplementedError, match="second derivatives"):
        gradient.sum().backward()


def test_second_derivatives_are_refused(rng, device):
    given, *rest = on(device, *random_batch(rng))
    (gradient,) = torch.autograd.grad(union_loss(given, *rest), given, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        gradient.sum().backward()


def test_losses_without_gradients(rng, device):
    given, *rest = on(device, *random_batch(rng))
    expected = union_loss(given, *rest)
    for found in (union_loss(given.detach(), *rest), torch.no_grad()(union_loss)(given, *rest)):
        assert not found.requires_grad
        assert torch.equal(found, expected.detach())


def test_transforms_of_functions_are_refused(rng, device):
    given, *rest = on(device, *random_batch(rng))
    with pytest.raises(NotImplementedError, match=r"under torch.vmap and torch.func"):
        torch.func.grad(lambda x: union_loss(x, *rest))(given.detach())
    for logits in (given.detach(), given):
        with pytest.raises(NotImplementedError, match=r"put all bags into one call"):
            torch.vmap(lambda x: union_loss(x, *rest))(torch.stack([logits] * 2))


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_autocast_does_not_hurt(rng, device, half):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y, torch.float32)
    with torch.autocast(device, dtype=half):
        loss = union_loss(given * torch.ones((), device=device), *rest)
    torch.testing.assert_close(loss, union_loss(given, *rest))
    layer = torch.nn.Linear(7, 7, device=device)
    with torch.autocast(device, dtype=half):
        inside = union_loss(layer(given), *rest)
    inside.backward()
    assert inside.dtype == torch.float32
    assert torch.isfinite(layer.weight.grad).all()


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_gradients_in_half_precision_are_rounded_once(rng, device, half):
    logits, offsets, y = random_batch(rng, scale=1.0)
    given, *rest = on(device, logits, offsets, y, half)
    exact = given.detach().to(torch.float64).requires_grad_()
    union_loss(given, *rest, reduction="sum").backward()
    union_loss(exact, *rest, reduction="sum").backward()
    assert given.grad.dtype == half
    eps = torch.finfo(half).eps
    torch.testing.assert_close(given.grad.double(), exact.grad, rtol=eps, atol=1e-6)


def test_the_same_batch_gives_the_same_bits(rng, device):
    given, *rest = on(device, *random_batch(rng, n_bags=300), torch.float32)
    found = []
    for _ in range(3):
        given.grad = None
        loss = union_loss(given, *rest)
        loss.backward()
        found.append((loss.detach(), given.grad.clone()))
    for loss, gradient in found[1:]:
        assert torch.equal(loss, found[0][0])
        assert torch.equal(gradient, found[0][1])


def test_deterministic_algorithms_may_be_asked_for(rng, device):
    given, *rest = on(device, *random_batch(rng))
    torch.use_deterministic_algorithms(True)
    try:
        union_loss(given, *rest, reduction="instances").backward()
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.isfinite(given.grad).all()


# What torch's compiler warns of is its own.
@pytest.mark.filterwarnings("ignore")
def test_compilation_does_not_change_the_answer(rng, device):
    given, *rest = on(device, *random_batch(rng))
    module = UnionLoss()
    expected = module(given, *rest)
    expected.backward()
    gradient, given.grad = given.grad, None
    compiled = torch.compile(lambda x: module(1.0 * x, *rest), backend="aot_eager")
    loss = compiled(given)
    loss.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(given.grad, gradient)


def test_operators_keep_the_promises_of_custom_operators(rng):
    """Schema, fake tensors and autograd registration, by torch's own checks."""
    given, offsets, y = on("cpu", *random_batch(rng))
    missed_rate = torch.full((7,), 0.1, dtype=torch.float64)
    for rates in ((None, None), (missed_rate, missed_rate)):
        torch.library.opcheck(
            torch.ops.unbag.union.default,
            (given, offsets, y, None, *rates, False, "keep", "raise"),
            test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
        )
    groups = Groups.of([[[0, 1], [2, 5]]] * len(y), 7)
    batch = with_groups(read_batch(given, offsets, y, groups=groups)).batch
    torch.library.opcheck(
        torch.ops.unbag.union.default,
        batch[:10],
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )
