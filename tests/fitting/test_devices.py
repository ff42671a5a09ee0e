"""Fits on a device are those of the processor; what a device cannot do is refused by name."""

import sys

import numpy as np
import pytest
import torch
from scipy import sparse

from group_bags import made_bags
from toys import make_colours
from unbag import AnyOf, Bags, LabelSets, ORLogisticRegression, models
from unbag._extras import MissingExtraError
from unbag.fitting import Training, make_parts
from unbag.torch import parts
from unbag.union import IntractableBagError, UnionProblem

pytestmark = pytest.mark.filterwarnings("ignore:The fit has not converged")


@pytest.fixture(params=["cpu", "cuda"])
def device(request, monkeypatch):
    """Where `device="cuda"` computes: on a GPU, or by the same code of torch on the processor."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU to test on")
    device = torch.device(request.param)
    monkeypatch.setattr(parts, "present_device", lambda name: device)
    # Several blocks, and runs that do not fill them.
    monkeypatch.setattr(parts, "BLOCK_LOGITS", 1)
    monkeypatch.setattr(parts, "RUN", 64)
    monkeypatch.setattr(parts, "MOMENT_ENTRIES", 60)
    return device


@pytest.fixture
def colours(rng):
    return make_colours(rng, n_bags=120, spread=1.5)


def fitted(bags, y, device="cpu", **options):
    given = {name: options.pop(name) for name in ("sample_weight", "instance_labels")
             if name in options}  # fmt: skip
    return ORLogisticRegression(device=device, **{"max_iter": 30, **options}).fit(bags, y, **given)


def agree(model, other, atol=1e-6):
    np.testing.assert_allclose(model.coef_, other.coef_, atol=atol)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=atol)
    np.testing.assert_allclose(model.history_, other.history_, rtol=atol)
    assert model.n_iter_ == other.n_iter_


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"background": True},
        {"background": True, "background_cost": 0.7},
        {"background": "auto"},
        {"scaling": "minmax"},
        {"scaling": None, "alpha": 0.1},
        {"prune": 0.3},
    ],
)
def test_coefficients_are_those_of_the_processor(options, colours, device):
    agree(fitted(*colours, "cuda", **options), fitted(*colours, **options))


def test_weights_of_bags_and_known_instances_count(colours, device, rng):
    bags, y = colours
    options = {
        "sample_weight": rng.integers(0, 4, len(bags)),
        "instance_labels": np.where(rng.random(bags.n_instances) < 0.2, bags.instance_labels, -1),
    }
    agree(fitted(bags, y, "cuda", **options), fitted(bags, y, **options))


def test_unknown_labels_are_optional(colours, device, rng):
    bags, y = colours
    y = np.where(rng.random(y.shape) < 0.3, -1, y)
    agree(fitted(bags, y, "cuda"), fitted(bags, y))


@pytest.mark.parametrize("options", [{}, {"background": True, "background_cost": 0.7}], ids=str)
def test_groups_of_classes(options, device, rng):
    bags, sets, truth = made_bags(rng)
    # Two that overlap, and one that is implied.
    for b in np.flatnonzero(bags.sizes > 2)[:3].tolist():
        sets[b] |= {AnyOf("hawk", "robin"), AnyOf("owl", "robin", "wren")}
    labels = LabelSets.parse(sets)
    known = np.where(rng.random(len(truth)) < 0.1, truth, None)
    for pinned in (None, known):
        given = {**options, "instance_labels": pinned}
        agree(fitted(bags, labels, "cuda", **given), fitted(bags, labels, **given))


def test_single_precision_stays_single(colours, device):
    bags, y = colours
    bags = Bags(bags.X.astype(np.float32), bags.offsets)
    training = parts.DeviceTraining(
        bags, UnionProblem(bags.offsets, y), np.ones(len(bags), dtype=bool), device="cuda"
    )
    assert {block.X.dtype for block in training._part.blocks} == {torch.float32}
    # As near as single precision comes, whose exponentials are not those of the processor.
    agree(fitted(bags, y, "cuda", max_iter=10), fitted(bags, y, max_iter=10), atol=2e-5)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_scale_is_learnt_on_the_device(offset, weighted, colours, device, rng):
    bags, y = colours
    X = bags.X + offset
    given = Bags(X.copy(), bags.offsets), UnionProblem(bags.offsets, y)
    weight = rng.integers(0, 3, len(bags)).astype(float) if weighted else None
    used = rng.random(len(bags)) < 0.7
    found = parts.DeviceTraining(*given, used, weight, device="cuda").scale
    expected = Training(*given, used, weight).scale
    np.testing.assert_allclose(found.shift, expected.shift, rtol=1e-12)
    np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-10)
    assert (found.centre is None) == (expected.centre is None) == (offset == 0.0)
    # What is taken off on the device is not taken off the user's own features.
    np.testing.assert_array_equal(given[0].X, X)
    agree(fitted(given[0], y, "cuda"), fitted(given[0], y), atol=1e-5)


def test_statistics_are_those_of_parts(colours, device, rng):
    bags, y = colours
    problem, W = UnionProblem(bags.offsets, y), rng.normal(size=(3, 3))
    chosen = np.flatnonzero(rng.random(len(bags)) < 0.5)
    part = parts.DevicePart(bags, problem, chosen, None, device)
    found = part.statistics(W)
    (expected,) = (each.statistics(W) for each in make_parts(bags, problem, chosen))
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-9)
    assert found.weight == expected.weight


@pytest.fixture
def crowded(rng):
    """Bags of many labels that nothing is known of: too many for any kernel; and two plain ones."""
    n_classes, size = 30, 400
    X = rng.normal(size=(2 * size + 2, 4))
    y = np.zeros((4, n_classes), dtype=int)
    y[:2], y[2, 0], y[3, 1] = 1, 1, 1
    return Bags(X, [0, size, 2 * size, 2 * size + 1, 2 * size + 2], ids=list("abcd")), y


@pytest.mark.parametrize("n_known", [0, 3])
def test_intractable_bags_are_named_or_relaxed(n_known, crowded, device, monkeypatch):
    bags, y = crowded
    known = np.full(bags.n_instances, -1)
    known[:n_known] = np.arange(n_known)
    problem = UnionProblem(bags.offsets, y, known)
    part = parts.DevicePart(bags, problem, np.arange(4), None, device)

    def refuse(scores, offsets, targets, *_):
        wide = ((targets == 1).sum(1) > 20).nonzero()[:, 0].tolist()
        if wide:
            raise IntractableBagError(wide, [30] * len(wide), [400] * len(wide))
        return union(scores, offsets, targets, *_)

    union = parts.union
    monkeypatch.setattr(parts, "union", refuse)
    found = part.statistics(np.zeros((30, 5)))
    assert found.intractable == ((0, 30, 400), (1, 30, 400))
    (whole,) = make_parts(bags, problem)
    W = np.arange(150.0).reshape(30, 5) / 300
    expected = whole.relax(W, (0, 1))
    relaxed = part.relax(W, (0, 1))
    assert {bag: columns.tolist() for bag, columns in relaxed.items()} == {
        bag: columns.tolist() for bag, columns in expected.items()
    }
    assert part.statistics(W).intractable == ()
    assert part.statistics(W).value == pytest.approx(whole.statistics(W).value, rel=1e-9)


def test_bags_of_more_labels_than_a_gpu_chains_are_fitted_to(device, rng):
    n_classes, size = 14, 20
    X = rng.normal(size=(8 * size, 3))
    y = (rng.random((8, n_classes)) < 0.3).astype(int)
    y[::2] = 1
    y[1::2, 0] = 1
    bags = Bags(X, size * np.arange(9))
    agree(fitted(bags, y, "cuda", max_iter=4), fitted(bags, y, max_iter=4))


def test_a_stream_may_step_on_the_device(colours, device):
    bags, y = colours
    models = [ORLogisticRegression(device=name) for name in ("cpu", "cuda")]
    for model in models:
        for half in (slice(0, 60), slice(60, 120)):
            model.partial_fit(bags[half], y[half], classes=range(3))
    np.testing.assert_allclose(models[1].coef_, models[0].coef_, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "em"}, "device='cuda' supports only solver='lbfgs'; got 'em'"),
        ({"solver": "stochastic"}, "supports only solver='lbfgs'"),
        ({"inference": "chain"}, "supports only inference='auto'"),
        ({"missed": 0.1}, "supports only missed=0.0; got 0.1"),
        ({"false": "learn"}, "supports only false=0.0; got 'learn'"),
        (
            {"device": "gpu"},
            'device must be "cpu", "cuda", or a device such as "cuda:1"; got',
        ),
        ({"device": "cuda:first"}, "device must be"),
        ({"device": None}, "device must be"),
    ],
)
def test_what_a_device_cannot_do_is_refused_by_name(options, message, colours):
    with pytest.raises(ValueError, match=message):
        ORLogisticRegression(**{"device": "cuda", **options}).fit(*colours)


def test_sparse_features_are_refused(colours, device):
    bags, y = colours
    with pytest.raises(ValueError, match="needs dense features; these are sparse"):
        fitted(Bags(sparse.csr_matrix(bags.X), bags.offsets), y, "cuda")


def test_a_missing_gpu_is_named(colours, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device='cuda' needs a GPU, its driver, and PyTorch for"):
        fitted(*colours, "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=r"device='cuda:2' does not exist: .* is cuda:1"):
        fitted(*colours, "cuda:2")


def test_missing_torch_is_named(colours, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("unbag.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="device='cuda' needs PyTorch for CUDA: pip"):
        fitted(*colours, "cuda")


def test_a_full_gpu_is_explained(colours, device, monkeypatch):
    def full(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    bags, y = colours
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1.5e9, 8e9))
    for name in ("union", "feature_moments"):
        with monkeypatch.context() as patch:
            patch.setattr(parts, name, full)
            with pytest.raises(MemoryError, match=r"1.5 of 8.0 GB .* features of 120 bags"):
                fitted(*colours, "cuda")
            with pytest.raises(MemoryError, match=r"GB in float32\. Fit to fewer bags"):
                fitted(Bags(bags.X.astype(np.float32), bags.offsets), y, "cuda")


def test_the_model_is_an_ordinary_one(colours, device, tmp_path):
    bags, y = colours
    model = fitted(bags, y, "cuda")
    models.save(model, tmp_path / "model.unbag")
    loaded = models.load(tmp_path / "model.unbag")
    assert isinstance(loaded.coef_, np.ndarray)
    assert loaded.coef_.dtype == np.float64
    np.testing.assert_array_equal(loaded.predict(bags), model.predict(bags))


def test_labels_beside_groups_are_counted_as_the_device_counts_them(device, rng):
    """Ten labels, each shown by a known instance, and four groups: the device has fourteen."""
    y, known = np.zeros((1, 18), dtype=int), np.full(20, -1)
    y[0, :10], known[:10] = 1, np.arange(10)
    groups = [[[c, c + 1] for c in range(10, 18, 2)]]
    problem = UnionProblem(np.array([0, 20]), y, known, groups)
    bags = Bags(rng.normal(size=(20, 3)), [0, 20])
    (block,) = parts.DevicePart(bags, problem, np.arange(1), None, device).blocks
    assert block.n_required().tolist() == [14]
    assert block.on_intractable == "raise"
