"""The union loss, held to the inference of the core, on every device that is there."""

import warnings

import numpy as np
import pytest
import torch

from logit_batches import expected_loss, log_softmax, on, random_batch
from unbag.torch import UnionLoss, posterior, union_loss, union_loss_linear
from unbag.union import ImpossibleBagError, ImpossibleBagWarning, IntractableBagError, infer

# Of bags that are drawn, some are impossible.
pytestmark = pytest.mark.filterwarnings("ignore::unbag.union.ImpossibleBagWarning")


def test_single_precision_is_as_good_as_it_can_be(rng, device):
    logits, offsets, y = random_batch(rng, scale=1.0)
    expected = infer(log_softmax(logits), offsets, y).log_likelihood
    for dtype, rtol in ((torch.float32, 1e-5), (torch.bfloat16, 0.1)):
        loss = union_loss(*on(device, logits, offsets, y, dtype), reduction="none")
        assert loss.dtype == torch.float32
        expected_loss = np.where(expected > -np.inf, -expected, 0.0)
        np.testing.assert_allclose(loss.detach().cpu(), expected_loss, rtol=rtol, atol=rtol)


def test_reductions(rng, device):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y)
    weight = torch.tensor(rng.uniform(0.5, 2.0, len(y)), device=device)
    module = UnionLoss(reduction="none")
    each = module(given, *rest)
    impossible = int(module.counts.impossible)
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


def test_where_no_bag_counts_the_loss_is_zero(device):
    """It is impossible, or has no weight."""
    for targets, weight in (([[1, 1]], None), ([[1, 0]], torch.zeros(1))):
        given, *rest = on(device, [[0.0, 0.0]], [0, 1], targets)
        for reduction in ("mean", "instances", "sum"):
            given.grad = None
            loss = union_loss(given, *rest, weight=weight, reduction=reduction)
            loss.backward()
            assert loss == 0
            assert (given.grad == 0).all()
    given, *rest = on(device, [[0.0, 0.0]], [0, 1], [[1, 1]])
    with pytest.raises(ImpossibleBagError, match="bag"):
        union_loss(given, *rest, on_impossible="raise")
    assert union_loss(given, *rest, on_impossible="relax").item() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("loss_of", ["logits", "a module", "features"])
def test_impossible_bags_are_warned_of_once_on_the_cpu(device, loss_of):
    """On a GPU nobody waits for their number."""
    logits, targets = torch.zeros(2, 3, device=device), torch.ones(1, 3)
    calls = {
        "logits": lambda: union_loss(logits, [0, 2], targets),
        "a module": lambda: UnionLoss()(logits, [0, 2], targets),
        "features": lambda: union_loss_linear(logits, logits.new_ones(3, 3), None, [0, 2], targets),
    }
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            assert calls[loss_of]() == 0
        for policy in ("relax", "raise"):
            union_loss(logits, [0, 2], [[0, 1]], on_impossible=policy)
    assert len(said) == (device == "cpu")
    for each in said:
        assert each.category is ImpossibleBagWarning
        assert each.filename == __file__
        assert "no labelling of their instances can produce" in str(each.message)


def test_relaxed_bags_are_those_of_inference(rng, device):
    logits, offsets, y = random_batch(rng, unknown=0.1)
    expected = infer(log_softmax(logits), offsets, y, on_impossible="relax")
    given, *rest = on(device, logits, offsets, y)
    module = UnionLoss(reduction="none", on_impossible="relax")
    loss = module(given, *rest)
    np.testing.assert_allclose(
        loss.detach().cpu(), expected_loss(expected.log_likelihood), atol=1e-10
    )
    assert int(module.counts.relaxed) == expected.relaxed.any(axis=1).sum() > 0
    loss.sum().backward()
    rows = np.repeat(expected.log_likelihood > -np.inf, np.diff(offsets))
    residual = np.exp(log_softmax(logits)) - expected.posterior
    np.testing.assert_allclose(given.grad.cpu()[rows], residual[rows], atol=1e-10)


def test_bags_that_took_the_slower_path_are_counted(rng, device):
    """Where instances are sure of one label and the other must occur, differences would cancel."""
    logits = np.tile([40.0, 0.0], (6, 1)) + rng.normal(size=(6, 2)) * 0.1
    module = UnionLoss()
    given, *rest = on(device, logits, [0, 3, 6], [[1, 1], [1, 0]])
    loss = module(given, *rest)
    expected = infer(log_softmax(logits), [0, 3, 6], [[1, 1], [1, 0]])
    assert loss.item() == pytest.approx(-expected.log_likelihood.mean(), rel=1e-10)
    assert int(module.counts.slow) == 1


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


@pytest.mark.parametrize(
    "rates", [{"missed_rate": 0.2}, {"false_rate": 0.1}, {"missed_rate": 0.1, "false_rate": 0.3}]
)
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


def test_nan_and_infinity_are_not_hidden(rng, device):
    logits, offsets, y = random_batch(rng, n_bags=12, unknown=0.0)
    clean = union_loss(*on(device, logits, offsets, y), reduction="none").detach()
    spoilt = [int(b) for b in np.flatnonzero(np.diff(offsets) > 1)[:2]]
    for b, value in zip(spoilt, (np.nan, np.inf), strict=True):
        logits[offsets[b], 3] = value
    loss = union_loss(*on(device, logits, offsets, y), reduction="none").detach()
    assert loss[spoilt].isnan().all()
    others = [b for b in range(12) if b not in spoilt]
    torch.testing.assert_close(loss[others], clean[others])


def test_rows_that_allow_no_class_are_impossible(device):
    given, *rest = on(device, [[-np.inf, -np.inf], [0.0, 0.0]], [0, 1, 2], [[1, 0], [1, 0]])
    for options in ({}, {"on_impossible": "relax"}):
        given.grad = None
        loss = union_loss(given, *rest, reduction="none", **options)
        loss.sum().backward()
        assert loss.tolist() == pytest.approx([0.0, np.log(2)])
        assert given.grad.tolist() == [[0.0, 0.0], [-0.5, 0.5]]


def test_long_bags_are_shared_out(rng, device):
    """Of more rows than a window, beside short ones, beginning anywhere."""
    sizes = np.array([3, 700, 256, 257, 0, 1, 2000, 5, 512, 300])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    for n_labels in (3, 7):
        y = np.zeros((len(sizes), 9), np.int8)
        for b in range(len(sizes)):
            y[b, rng.permutation(9)[: min(n_labels, sizes[b])]] = 1
        logits = rng.normal(size=(offsets[-1], 9))
        expected = infer(log_softmax(logits), offsets, y)
        given, *rest = on(device, logits, offsets, y)
        loss = union_loss(given, *rest, reduction="none")
        np.testing.assert_allclose(
            loss.detach().cpu(), expected_loss(expected.log_likelihood), rtol=1e-10
        )
        loss.sum().backward()
        residual = np.exp(log_softmax(logits)) - expected.posterior
        np.testing.assert_allclose(given.grad.cpu(), residual, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 33, 1000, 5000])
def test_any_number_of_classes(rng, device, n_classes):
    logits, offsets, y = random_batch(
        rng, n_bags=9, n_classes=n_classes, most_labels=2, longest=5, unknown=0.01
    )
    expected = infer(log_softmax(logits), offsets, y)
    given, *rest = on(device, logits, offsets, y)
    loss = union_loss(given, *rest, reduction="none")
    np.testing.assert_allclose(
        loss.detach().cpu(), expected_loss(expected.log_likelihood), rtol=1e-10
    )


def test_no_bags_and_empty_bags(device):
    none = torch.zeros((0, 3), device=device, requires_grad=True)
    for reduction in ("mean", "instances", "sum"):
        loss = union_loss(none, [0], torch.zeros((0, 3)), reduction=reduction)
        loss.backward()
        assert loss == 0
    assert none.grad.shape == (0, 3)
    assert union_loss(none, [0], [], reduction="none").shape == (0,)
    # Nothing is in an empty bag: it explains an empty label set, and no other.
    loss = union_loss(none, [0, 0, 0], [[], [1]], reduction="none")
    assert loss.tolist() == [0.0, 0.0]
    assert union_loss(none, [0, 0, 0], [[], [1]]) == 0


def test_intractable_bags_are_refused_or_relaxed(device):
    given, *rest = on(device, np.zeros((50, 40)), [0, 50], np.ones((1, 40), np.int8))
    with pytest.raises(IntractableBagError, match="too many labels"):
        union_loss(given, *rest)
    loss = union_loss(given, *rest, on_intractable="relax")
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(given.grad).all()


def test_the_module_is_the_function(rng, device):
    """With rates as they are given, on the device of the module."""
    given, *rest = on(device, *random_batch(rng))
    module = UnionLoss(missed_rate=[0.1] * 7, false_rate=0.2, reduction="sum").to(device)
    expected = union_loss(given, *rest, missed_rate=0.1, false_rate=0.2, reduction="sum")
    torch.testing.assert_close(module(given, *rest), expected, rtol=1e-13, atol=0.0)
    assert set(module.state_dict()) == {"missed_rate", "false_rate"}
    for name in ("reduction", "on_impossible", "on_intractable"):
        with pytest.raises(ValueError, match=f"{name} must be one of"):
            UnionLoss(**{name: "total"})
