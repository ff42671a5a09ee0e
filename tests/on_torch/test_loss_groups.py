"""Required groups of classes in losses: against `unbag.union`, enumeration and partial labels."""

import weakref

import numpy as np
import pytest
import torch

from group_bags import draw_group_bag
from unbag.bags import offsets_of
from unbag.groups import Groups
from unbag.torch import (
    UnionLoss,
    annotate,
    operators,
    posterior,
    union_loss,
    union_loss_linear,
)
from unbag.union import (
    ImpossibleBagError,
    IntractableBagError,
    infer,
    most_likely_labels,
)

# Of bags that are drawn, some are impossible.
pytestmark = pytest.mark.filterwarnings("ignore::unbag.union.ImpossibleBagWarning")


def draw_batch(rng, n_bags=30, n_classes=5, noisy=False):
    """Draw bags of as many classes, without excluded ones."""
    bags = []
    while len(bags) < n_bags:
        bag = draw_group_bag(rng, max_classes=n_classes, noisy=noisy, scales=(1.0, 5.0))
        if len(bag.y) == n_classes:
            bag.log_prior = np.where(np.isfinite(bag.log_prior), bag.log_prior, 0.0)
            bags.append(bag)
    return bags


def joined(bags):
    logits = np.concatenate([bag.log_prior for bag in bags])
    offsets = offsets_of([len(bag) for bag in bags])
    y = np.array([bag.y for bag in bags])
    pinned = np.concatenate([bag.pinned for bag in bags]).astype(int)
    return logits, offsets, y, pinned, [bag.groups for bag in bags]


def expected(logits, offsets, y, **options):
    """Return loss and gradient by `unbag.union`."""
    log_prior = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    result = infer(log_prior, offsets, y, **options)
    possible = result.log_likelihood > -np.inf
    rows = np.repeat(possible, np.diff(offsets))[:, None]
    gradient = np.where(rows, np.exp(log_prior) - result.posterior, 0.0)
    return -result.log_likelihood[possible].sum(), gradient


def check(device, logits, offsets, y, groups, dtype=torch.float64, **options):
    given = torch.tensor(logits, dtype=dtype, device=device, requires_grad=True)
    pins = options.pop("instance_labels", None)
    known = None if pins is None else torch.as_tensor(pins)
    loss = union_loss(
        given, torch.as_tensor(offsets), torch.as_tensor(y), groups=groups, reduction="sum",
        instance_labels=known, **options,
    )  # fmt: skip
    loss.backward()
    value, gradient = expected(logits, offsets, y, groups=groups, instance_labels=pins, **options)
    atol = 1e-8 if dtype == torch.float64 else 1e-4
    np.testing.assert_allclose(loss.item(), value, rtol=atol, atol=atol)
    np.testing.assert_allclose(given.grad.cpu().numpy(), gradient, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_disjoint_groups(device, dtype, rng):
    for _ in range(5):
        bags = [bag for bag in draw_batch(rng, 60) if is_disjoint(bag)]
        logits, offsets, y, pinned, groups = joined(bags)
        check(device, logits, offsets, y, groups, dtype)
        check(device, logits, offsets, y, groups, dtype, instance_labels=pinned)


def is_disjoint(bag):
    """Return whether smallest groups share no class."""
    sets = {frozenset(group) for group in bag.groups}
    smallest = [group for group in sets if not any(other < group for other in sets)]
    return sum(map(len, smallest)) == len(set().union(*smallest))


def test_any_groups(device, rng):
    logits, offsets, y, pinned, groups = joined(draw_batch(rng, 60))
    check(device, logits, offsets, y, groups, instance_labels=pinned)
    check(device, logits, offsets, y, Groups.of(groups, 5))


def test_groups_beside_rates(device, rng):
    logits, offsets, y, pinned, groups = joined(draw_batch(rng, 60))
    rates = {"missed_rate": 0.2, "false_rate": 0.1}
    check(device, logits, offsets, y, groups, instance_labels=pinned, **rates)


def test_gradcheck(rng):
    groups = [[[0, 2], [1, 3]], [], [[1, 2], [2, 3]]]
    y = torch.tensor([[0, 0, 0, 0, 1], [1, -1, 0, 0, 1], [0, 0, 0, 0, 0]])
    for own, targets in ((groups[:2], y[:2]), (groups, y)):
        offsets = torch.arange(len(own) + 1) * 4
        logits = torch.tensor(rng.normal(size=(4 * len(own), 5)), requires_grad=True)
        assert torch.autograd.gradcheck(
            lambda given, own=own, t=targets, o=offsets: union_loss(given, o, t, groups=own), logits
        )


def test_one_instance_and_one_group_are_a_partial_label(device, rng):
    """The loss is -log of the candidates' summed probability (CC); the gradient PRODEN's step."""
    logits = torch.tensor(rng.normal(size=(6, 5)), device=device, requires_grad=True)
    candidates = [[[0, 2]], [[1]], [[0, 1, 2, 3]], [[3, 1]], [[2, 3, 0]], [[0, 1, 2, 3, 4]]]
    loss = union_loss(logits, range(7), torch.zeros(6, 5), groups=candidates, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, logits)
    mask = torch.zeros(6, 5, device=device)
    for i, ((group,),) in enumerate(zip(candidates, strict=True)):
        mask[i, group] = 1.0
    prior = torch.softmax(logits, 1)
    of_candidates = (prior * mask).sum(1)
    direct = -of_candidates.log().sum()
    assert loss.item() == pytest.approx(direct.item(), rel=1e-14)
    (of_direct,) = torch.autograd.grad(direct, logits, retain_graph=True)
    np.testing.assert_allclose(gradient.cpu(), of_direct.cpu(), rtol=0, atol=1e-14)
    # PRODEN weighs the candidates by their share of the current probabilities, and takes a step of
    # cross-entropy with these weights, held fixed.
    weights = (prior * mask / of_candidates[:, None]).detach()
    weighted = -(weights * torch.log_softmax(logits, 1)).sum()
    (of_weights,) = torch.autograd.grad(weighted, logits)
    np.testing.assert_allclose(gradient.cpu(), of_weights.cpu(), rtol=0, atol=1e-14)


def test_background_and_weights(device, rng):
    """Disjoint groups, and overlapping ones."""
    logits = rng.normal(size=(9, 5))
    offsets, weight = np.array([0, 4, 6, 9]), np.array([1.0, 2.0, 0.5])
    y = np.array([[0, 0, 0, 0, -1], [1, 0, 0, 0, -1], [0, 0, -1, 0, -1]])
    log_prior = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    for first in ([[0, 1]], [[0, 1], [1, 2]]):
        groups = [first, [[2, 3]], []]
        found = union_loss(
            torch.tensor(logits, device=device), offsets, y[:, :-1], background=True,
            groups=groups, weight=torch.tensor(weight),
        )  # fmt: skip
        likelihood = infer(log_prior, offsets, y, groups=groups).log_likelihood
        assert found.item() == pytest.approx(-np.average(likelihood, weights=weight), rel=1e-12)


def test_few_bags_with_groups(device, rng):
    """Rows of all other bags are left as they are."""
    y = rng.integers(-1, 2, (40, 6))
    y[:, 5] = 1
    groups = [[[0, 2], [1, 4]] if b in (3, 17) else [] for b in range(40)]
    groups[30] = [[0, 2], [2, 3]]
    check(device, rng.normal(size=(120, 6)), np.arange(0, 121, 3), y, groups)
    rates = {"missed_rate": 0.1, "false_rate": 0.05}
    check(device, rng.normal(size=(120, 6)), np.arange(0, 121, 3), y, groups, **rates)


def test_the_linear_form_in_chunks(device, rng, monkeypatch):
    monkeypatch.setattr(operators, "CHUNK_BYTES", {"cuda": 8 * 8 * 5, "cpu": 8 * 8 * 5})
    features = torch.tensor(rng.normal(size=(40, 3)), device=device, requires_grad=True)
    weight = torch.tensor(rng.normal(size=(5, 3)), device=device, requires_grad=True)
    bias = torch.tensor(rng.normal(size=5), device=device, requires_grad=True)
    targets = torch.tensor(rng.integers(-1, 2, (10, 5)))
    groups = [[[0, 1]], [[1, 2], [2, 3]], [], [[0, 1], [1, 4]], [[2, 4], [4]]] * 2
    for rates in ({}, {"missed_rate": 0.1}):
        options = {"groups": groups, "reduction": "instances", **rates}
        linear = union_loss_linear(
            features, weight, bias, range(0, 41, 4), targets,
            bag_weight=torch.arange(1.0, 11.0), **options,
        )  # fmt: skip
        plain = union_loss(
            torch.nn.functional.linear(features, weight, bias), range(0, 41, 4), targets,
            weight=torch.arange(1.0, 11.0), **options,
        )  # fmt: skip
        assert linear.item() == pytest.approx(plain.item(), rel=1e-12)
        given = features, weight, bias
        torch.testing.assert_close(
            torch.autograd.grad(linear, given), torch.autograd.grad(plain, given)
        )


def test_impossible_and_intractable_groups(device):
    logits = torch.zeros(1, 4, device=device)
    groups = [[[0, 1], [2, 3]]]
    assert union_loss(logits, [0, 1], torch.zeros(1, 4), groups=groups).item() == 0
    with pytest.raises(ImpossibleBagError):
        union_loss(logits, [0, 1], torch.zeros(1, 4), groups=groups, on_impossible="raise")
    many = [[[c, c + 1] for c in range(17)]]
    logits = torch.zeros(20, 18, device=device)
    with pytest.raises(IntractableBagError, match="bag 0 has 17"):
        union_loss(logits, [0, 20], torch.zeros(1, 18), groups=many)
    with pytest.raises(ValueError, match="a group of bag 0 holds 25"):
        union_loss(logits, [0, 20], torch.zeros(1, 18), groups=[[[9, 25]]])


@pytest.mark.parametrize("of_bag", [[[0, 1], [2, 3]], [[0, 1], [1, 2]], [[0, 1], [0, 1, 2]]])
def test_groups_are_not_kept(device, of_bag):
    groups = Groups.of([of_bag], 4)
    union_loss(torch.zeros(3, 4, device=device), [0, 3], torch.zeros(1, 4), groups=groups)
    kept = weakref.ref(groups)
    del groups
    assert kept() is None


def test_batches_that_require_no_label(device, rng):
    """Groups are inferred elsewhere, or a known instance shows one of their classes."""
    logits = rng.normal(size=(4, 3))
    overlapping = [[[0, 1], [1, 2]], []]
    check(device, logits, [0, 2, 4], -np.ones((2, 3), int), overlapping)
    absent, shown = np.zeros((1, 3), int), np.array([0, -1])
    check(device, logits[:2], [0, 2], absent, [[[0, 1]]], instance_labels=shown)
    features = torch.eye(3, dtype=torch.float64, device=device)[:2]
    weight = torch.tensor(logits[:3].T, device=device)
    options = {"groups": [[[0, 1]]], "instance_labels": torch.as_tensor(shown)}
    linear = union_loss_linear(features, weight, None, [0, 2], [[]], **options)
    plain = union_loss(features @ weight.T, [0, 2], [[]], **options)
    assert linear.item() == pytest.approx(plain.item(), rel=1e-12)


def test_relaxing_on_a_gpu(device, rng, monkeypatch):
    """Bags of more than so many labels and groups require nothing; what fills tables is no group.

    What a GPU does, on the CPU too.
    """
    monkeypatch.setattr("unbag.torch.groups.most_labels", lambda _: 4)
    y = np.zeros((4, 12), int)
    y[0, :4] = 1  # Four labels and no group,
    y[1, :3] = 1  # three and one,
    y[2, :3] = 1  # three and two,
    y[3, :2] = 1  # and two and four, of which one holds a label.
    groups = [[], [[4, 5]], [[4, 5], [6, 7]], [[1, 3], [4, 5], [6, 7], [8, 9]]]
    logits = rng.normal(size=(24, 12))
    given = torch.tensor(logits, device=device, requires_grad=True)
    module = UnionLoss(reduction="sum", on_intractable="relax")
    found = module(given, range(0, 25, 6), torch.as_tensor(y), groups=groups)
    found.backward()
    assert int(module.counts.relaxed) == 2
    optional = y.copy()
    for b in (2, 3):
        optional[b][y[b] == 1] = -1
        optional[b, [c for group in groups[b] for c in group]] = -1
    kept = [[], groups[1], [], []]
    value, gradient = expected(logits, np.arange(0, 25, 6), optional, groups=kept)
    assert found.item() == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(given.grad.cpu().numpy(), gradient, rtol=0, atol=1e-10)


OVERLAPPING = [[[0, 1], [1, 2]], [[0, 1], [0, 2]], []]


def test_nan_is_not_taken_for_an_impossible_bag(device, rng):
    logits = torch.tensor(rng.normal(size=(9, 3)), device=device)
    logits[0, 1] = torch.nan
    module = UnionLoss(reduction="none")
    found = module(logits, [0, 3, 6, 9], torch.zeros(3, 3) - 1, groups=OVERLAPPING)
    assert found.isnan().tolist() == [True, False, False]
    assert int(module.counts.impossible) == 0


def test_second_derivatives_are_refused(device, rng):
    logits = torch.tensor(rng.normal(size=(6, 3)), device=device, requires_grad=True)
    # Of the square, for the gradient to depend on the logits in any case.
    found = union_loss(logits, [0, 3, 6], torch.zeros(2, 3) - 1, groups=OVERLAPPING[:2]) ** 2
    (gradient,) = torch.autograd.grad(found, logits, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        gradient.sum().backward()


def test_impossible_bags_count_once(device, rng):
    logits = torch.tensor(rng.normal(size=(9, 3)), device=device)
    logits[0] = -torch.inf
    module = UnionLoss()
    module(logits, [0, 3, 6, 9], torch.zeros(3, 3) - 1, groups=OVERLAPPING)
    assert int(module.counts.impossible) == 1


@pytest.mark.parametrize("options", [{}, {"missed_rate": 0.2, "false_rate": 0.1}], ids=str)
def test_posteriors_and_annotations_are_those_of_the_core(device, rng, options):
    logits, offsets, y, pinned, groups = joined(draw_batch(rng, 60))
    log_prior = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    given = torch.tensor(logits, device=device), torch.as_tensor(offsets), torch.as_tensor(y)
    known = torch.as_tensor(pinned)
    for policy in ("keep", "relax"):
        core = infer(
            log_prior, offsets, y, groups=groups, instance_labels=pinned, on_impossible=policy,
            **options,
        )  # fmt: skip
        ours = {"groups": groups, "instance_labels": known, "on_impossible": policy, **options}
        found = posterior(*given, **ours)
        np.testing.assert_allclose(found.cpu(), core.posterior, atol=1e-9)
        classes = annotate(*given, **ours).cpu().numpy()
        np.testing.assert_array_equal(classes >= 0, core.posterior.max(axis=1) > 0)
    jointly = most_likely_labels(log_prior, offsets, y, groups=groups, **options)
    found = annotate(*given, joint=True, groups=groups, **options)
    np.testing.assert_array_equal(found.cpu(), jointly)


def test_annotations_of_impossible_groups(device):
    """A single instance cannot be of two groups that share no class."""
    logits = torch.tensor([[1.0, 0.0, 2.0, 3.0]], device=device)
    given = logits, [0, 1], torch.zeros(1, 4)
    groups = [[[0, 1], [2]]]
    for joint in (False, True):
        assert annotate(*given, joint, groups=groups).tolist() == [-1]
        assert annotate(*given, joint, groups=groups, on_impossible="relax").tolist() == [2]
        with pytest.raises(ImpossibleBagError):
            annotate(*given, joint, groups=groups, on_impossible="raise")
