"""The union loss, held to the inference of the core, on every device that is there."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from unbag.torch import UnionLoss, annotate, posterior, union_loss
from unbag.torch.counts import IMPOSSIBLE
from unbag.torch.operators import union
from unbag.union import ImpossibleBagError, IntractableBagError, infer, most_likely_labels


def random_batch(rng, n_bags=40, n_classes=7, most_labels=5, longest=9, scale=2.0, unknown=0.2):
    """Draw logits, offsets and label sets; some bags are empty, some impossible."""
    sizes = rng.integers(0, longest + 1, n_bags)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y = np.zeros((n_bags, n_classes), dtype=np.int8)
    for b, size in enumerate(sizes):
        n_labels = rng.integers(0, min(most_labels, size + 1) + 1)
        y[b, rng.permutation(n_classes)[:n_labels]] = 1
        y[b][(y[b] == 0) & (rng.random(n_classes) < unknown)] = -1
    return rng.normal(size=(offsets[-1], n_classes)) * scale, offsets, y


def log_softmax(logits):
    return logits - np.logaddexp.reduce(logits, axis=1)[:, None]


def on(device, logits, offsets, y, dtype=torch.float64):
    logits = torch.tensor(logits, dtype=dtype, device=device, requires_grad=True)
    return logits, torch.tensor(offsets, device=device), torch.tensor(y, device=device)


@pytest.mark.parametrize("scale", [0.1, 2.0, 30.0])
@pytest.mark.parametrize("most_labels", [3, 7])
def test_losses_and_gradients_are_those_of_inference(rng, device, scale, most_labels):
    logits, offsets, y = random_batch(rng, scale=scale, most_labels=most_labels)
    expected = infer(log_softmax(logits), offsets, y)
    given, *rest = on(device, logits, offsets, y)
    loss = union_loss(given, *rest, reduction="none")
    possible = expected.log_likelihood > -np.inf
    np.testing.assert_allclose(
        loss.detach().cpu(),
        np.where(possible, -expected.log_likelihood, 0.0),
        rtol=1e-10,
        atol=1e-10,
    )
    loss.sum().backward()
    residual = np.exp(log_softmax(logits)) - expected.posterior
    residual[~np.repeat(possible, np.diff(offsets))] = 0.0
    np.testing.assert_allclose(given.grad.cpu(), residual, atol=1e-10)
    np.testing.assert_allclose(
        posterior(given, *rest).cpu()[np.repeat(possible, np.diff(offsets))],
        expected.posterior[np.repeat(possible, np.diff(offsets))],
        atol=1e-10,
    )


def test_single_precision_is_as_good_as_it_can_be(rng, device):
    logits, offsets, y = random_batch(rng, scale=1.0)
    expected = infer(log_softmax(logits), offsets, y).log_likelihood
    for dtype, rtol in ((torch.float32, 1e-5), (torch.bfloat16, 0.1)):
        loss = union_loss(*on(device, logits, offsets, y, dtype), reduction="none")
        assert loss.dtype == torch.float32
        expected_loss = np.where(expected > -np.inf, -expected, 0.0)
        np.testing.assert_allclose(loss.detach().cpu(), expected_loss, rtol=rtol, atol=rtol)


def test_gradients_agree_with_differences(rng, device):
    logits, offsets, y = random_batch(rng, n_bags=6, n_classes=4, longest=4)
    given, *rest = on(device, logits, offsets, y)
    for reduction in ("mean", "instances", "sum"):
        assert torch.autograd.gradcheck(
            lambda x, reduction=reduction: union_loss(x, *rest, reduction=reduction), given
        )


def test_reductions(rng, device):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y)
    weight = torch.tensor(rng.uniform(0.5, 2.0, len(y)), device=device)
    each = union_loss(given, *rest, reduction="none")
    impossible = int(union(given, *rest, None, None, None, False, "keep", "raise")[-1][IMPOSSIBLE])
    likelihood = infer(log_softmax(logits), offsets, y).log_likelihood
    possible = torch.tensor(likelihood > -np.inf, device=device)
    assert impossible == int((~possible).sum()) > 0
    assert (each[~possible] == 0).all()
    sizes = torch.tensor(np.diff(offsets), device=device)
    weighted = union_loss(given, *rest, reduction="none", weight=weight)
    torch.testing.assert_close(weighted, each * weight)
    mean = union_loss(given, *rest)
    torch.testing.assert_close(mean, each.sum() / possible.sum())
    mean = union_loss(given, *rest, weight=weight)
    torch.testing.assert_close(mean, weighted.sum() / weight[possible].sum())
    by_instance = union_loss(given, *rest, reduction="instances")
    torch.testing.assert_close(by_instance, each.sum() / sizes[possible].sum())
    torch.testing.assert_close(union_loss(given, *rest, reduction="sum"), each.sum())


def test_where_no_bag_is_possible_the_loss_is_zero(device):
    given, *rest = on(device, [[0.0, 0.0]], [0, 1], [[1, 1]])
    loss = union_loss(given, *rest)
    loss.backward()
    assert loss == 0
    assert (given.grad == 0).all()
    with pytest.raises(ImpossibleBagError, match="bag"):
        union_loss(given, *rest, on_impossible="raise")
    relaxed = union_loss(given, *rest, on_impossible="relax")
    assert relaxed.item() == pytest.approx(0.0, abs=1e-12)


def test_padded_bags_are_the_same_as_flat_ones(rng, device):
    logits, offsets, y = random_batch(rng, n_bags=12)
    given, flat_offsets, targets = on(device, logits, offsets, y)
    sizes = np.diff(offsets)
    padded = torch.full((12, sizes.max(), 7), 5.0, dtype=torch.float64, device=device)
    mask = torch.zeros(padded.shape[:2], dtype=torch.bool, device=device)
    for b, size in enumerate(sizes):
        padded[b, :size] = given.detach()[offsets[b] : offsets[b + 1]]
        mask[b, :size] = True
    padded.requires_grad_()
    expected = union_loss(given, flat_offsets, targets)
    for options in ({"mask": mask}, {"lengths": torch.tensor(sizes, device=device)}):
        padded.grad = None
        loss = union_loss(padded, targets=targets, **options)
        torch.testing.assert_close(loss, expected)
        loss.backward()
        assert (padded.grad[~mask] == 0).all()
        assert (posterior(padded, targets=targets, **options)[~mask] == 0).all()
        assert (annotate(padded, targets=targets, **options)[~mask] == -1).all()
    expected.backward()
    torch.testing.assert_close(padded.grad[mask], given.grad)


def test_background_is_one_more_column(rng, device):
    logits, offsets, y = random_batch(rng, n_classes=5, unknown=0.0)
    with_background = rng.normal(size=(len(logits), 6))
    expected = infer(
        log_softmax(with_background), offsets, np.pad(y, ((0, 0), (0, 1)), constant_values=-1)
    )
    given, *rest = on(device, with_background, offsets, y)
    loss = union_loss(given, *rest, background=True, reduction="none")
    possible = expected.log_likelihood > -np.inf
    np.testing.assert_allclose(
        loss.detach().cpu(), np.where(possible, -expected.log_likelihood, 0.0), atol=1e-10
    )
    rows = np.repeat(possible, np.diff(offsets))
    found = posterior(given, *rest, background=True).cpu().numpy()
    np.testing.assert_allclose(found[rows], expected.posterior[rows], atol=1e-10)


def test_known_instances_are_pinned(rng, device):
    logits, offsets, y = random_batch(rng)
    labels = np.full(len(logits), -1)
    for b in range(len(y)):
        allowed = np.flatnonzero(y[b] != 0)
        if len(allowed) and offsets[b] < offsets[b + 1]:
            labels[offsets[b]] = rng.choice(allowed)
    expected = infer(log_softmax(logits), offsets, y, instance_labels=labels)
    given, *rest = on(device, logits, offsets, y)
    loss = union_loss(
        given, *rest, instance_labels=torch.tensor(labels, device=device), reduction="none"
    )
    likelihood = expected.log_likelihood
    np.testing.assert_allclose(
        loss.detach().cpu(), np.where(likelihood > -np.inf, -likelihood, 0.0), atol=1e-10
    )


@pytest.mark.parametrize("rates", [{"missed": 0.2}, {"false": 0.1}, {"missed": 0.1, "false": 0.3}])
def test_label_sets_may_be_wrong(rng, device, rates):
    logits, offsets, y = random_batch(rng, n_bags=20)
    per_class = {name: rng.uniform(0, 2 * rate, y.shape[1]) for name, rate in rates.items()}
    for given_rates in (rates, per_class):
        expected = infer(log_softmax(logits), offsets, y, **given_rates)
        given, *rest = on(device, logits, offsets, y)
        loss = union_loss(given, *rest, reduction="none", **given_rates)
        likelihood = expected.log_likelihood
        np.testing.assert_allclose(
            loss.detach().cpu(), np.where(likelihood > -np.inf, -likelihood, 0.0), atol=1e-9
        )
        loss.sum().backward()
        rows = np.repeat(likelihood > -np.inf, np.diff(offsets))
        residual = np.exp(log_softmax(logits)) - expected.posterior
        np.testing.assert_allclose(given.grad.cpu()[rows], residual[rows], atol=1e-9)


def test_lists_of_classes_and_lengths_do_as_well(rng, device):
    logits, offsets, y = random_batch(rng, unknown=0.0)
    given, *rest = on(device, logits, offsets, y)
    sets = [np.flatnonzero(row == 1).tolist() for row in y]
    loss = union_loss(given, targets=sets, lengths=np.diff(offsets).tolist())
    torch.testing.assert_close(loss, union_loss(given, *rest))


def test_annotations_are_those_of_the_core(rng, device):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y)
    expected = most_likely_labels(log_softmax(logits), offsets, y)
    np.testing.assert_array_equal(annotate(given, *rest, joint=True).cpu(), expected)
    found = annotate(given, *rest).cpu().numpy()
    proba = posterior(given, *rest).cpu().numpy()
    np.testing.assert_array_equal(found[found >= 0], proba.argmax(axis=1)[found >= 0])


def test_logits_may_be_infinite_and_never_make_nan(rng, device):
    logits, offsets, y = random_batch(rng, scale=300.0)
    logits[rng.random(logits.shape) < 0.2] = -np.inf
    logits[np.arange(len(logits)), rng.integers(0, 7, len(logits))] = 0.0
    for dtype in (torch.float64, torch.float32):
        given, *rest = on(device, logits, offsets, y, dtype)
        loss = union_loss(given, *rest)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(given.grad).all()


def test_many_labels_and_few_instances(rng, device):
    """Where inclusion and exclusion cancel, and where there are more labels than are listed."""
    for n_labels, n_instances in ((8, 8), (11, 12), (14, 15), (20, 200)):
        logits = rng.normal(size=(n_instances, n_labels))
        offsets, y = [0, n_instances], np.ones((1, n_labels), np.int8)
        expected = infer(log_softmax(logits), offsets, y)
        given, *rest = on(device, logits, offsets, y)
        loss = union_loss(given, *rest)
        loss.backward()
        assert loss.item() == pytest.approx(-expected.log_likelihood[0], rel=1e-9)
        residual = np.exp(log_softmax(logits)) - expected.posterior
        np.testing.assert_allclose(given.grad.cpu(), residual, atol=1e-8)


def test_intractable_bags_are_refused_or_relaxed(device):
    given, *rest = on(device, np.zeros((50, 40)), [0, 50], np.ones((1, 40), np.int8))
    with pytest.raises(IntractableBagError, match="too many labels"):
        union_loss(given, *rest)
    loss = union_loss(given, *rest, on_intractable="relax")
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(given.grad).all()


def test_second_derivatives_are_refused(rng, device):
    given, *rest = on(device, *random_batch(rng))
    (gradient,) = torch.autograd.grad(union_loss(given, *rest), given, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        gradient.sum().backward()


def test_the_module_is_the_function(rng, device):
    given, *rest = on(device, *random_batch(rng))
    module = UnionLoss(missed=0.1, reduction="sum").to(device)
    expected = union_loss(given, *rest, missed=0.1, reduction="sum")
    torch.testing.assert_close(module(given, *rest), expected)
    assert "reduction='sum'" in repr(module)


def test_autocast_does_not_hurt(rng, device):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y, torch.float32)
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = union_loss(given * torch.ones((), device=device), *rest)
    torch.testing.assert_close(loss, union_loss(given, *rest))


def test_the_same_batch_gives_the_same_bits(rng, device):
    given, *rest = on(device, *random_batch(rng), torch.float32)
    gradients = []
    for _ in range(2):
        given.grad = None
        union_loss(given, *rest).backward()
        gradients.append(given.grad.clone())
    assert torch.equal(*gradients)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": None}, "need targets"),
        ({"targets": torch.ones(2, 3)}, "one row per bag"),
        ({"targets": torch.full((2, 4), 2)}, "1 .present., 0 .absent. or -1"),
        ({"targets": [[0], [7]]}, "targets of bag 1 must be classes, 0 to 3"),
        ({"offsets": None}, "offsets or lengths"),
        ({"offsets": [0, 4, 3]}, "rise from 0"),
        ({"offsets": [0, 1, 2]}, "number of instances, 3"),
        ({"missed": 1.5}, "missed must hold probabilities"),
        ({"false": [0.1, 0.2]}, "one for each of 4 classes"),
        ({"weight": torch.ones(3)}, "one number per bag, 2"),
        ({"reduction": "total"}, "reduction must be one of"),
        ({"on_impossible": "drop"}, "on_impossible must be one of"),
        ({"instance_labels": torch.zeros(2)}, "one class per instance, 3"),
        ({"mask": torch.ones(2, 2)}, "mask is for padded logits"),
        ({"logits": torch.zeros(3, 4, dtype=torch.int64)}, "floating-point"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    good = {"logits": torch.zeros(3, 4), "offsets": [0, 1, 3], "targets": [[0], [1]]}
    with pytest.raises((ValueError, TypeError), match=message):
        union_loss(**{**good, **arguments})
