"""Networks that learn from Parquet sets, in batches of bags."""

from itertools import islice

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from unbag import models, out_of_core
from unbag.io import DataError
from unbag.io.stored import FeatureReader, StoredBags
from unbag.torch import ORNetwork
from unbag.torch.batches import Settings
from unbag.torch.network import MemberNetworks
from unbag.torch.stored_learning import StoredLearningBags
from unbag.union import IntractableBagError, UnionProblem


def network(**parameters):
    small = {"hidden": (16, 16), "n_members": 2, "max_iter": 30, "learning_rate": 0.02}
    return ORNetwork(**{**small, "device": "cpu", "random_state": 0, **parameters})


def assert_same(model, other):
    for name in ("weights_", "biases_", "context_"):
        for part, expected in zip(getattr(model, name), getattr(other, name), strict=True):
            np.testing.assert_array_equal(part, expected)
    assert model.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-12)
    np.testing.assert_array_equal(model.history_, other.history_)
    assert model.classes_.tolist() == other.classes_.tolist()
    assert model.feature_names_in_.tolist() == other.feature_names_in_.tolist()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"context_units": 0, "background": True},
        {"encoding": "quantile", "scaling": "minmax"},
        {"background": "auto"},
        {"missed": 0.05, "false": "learn"},
        {"encoder": torch.nn.Linear(2, 5)},
        {
            "encoder": torch.nn.Sequential(torch.nn.Conv1d(1, 5, 2), torch.nn.Flatten()),
            "instance_shape": (1, 2),
        },
    ],
)
def test_where_one_batch_holds_all_bags_networks_are_those_of_a_fit_in_memory(
    options, coloured, write
):
    data = coloured(n_bags=80)
    folder = write(data.table, cuts=(50,), row_group_size=37)
    found = out_of_core.fit(network(**options), folder)
    assert_same(found, network(**options).fit(data.bags, data.sets))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_seed_gives_the_same_networks_in_batches(dtype, coloured, write):
    data = coloured(n_bags=400, dtype=dtype)
    folder = write(data.table, row_group_size=120)
    found, again, other = (
        out_of_core.fit(network(batch_size=32, max_iter=60, random_state=seed), folder)
        for seed in (0, 0, 1)
    )
    assert_same(found, again)
    assert (found.weights_[0] != other.weights_[0]).any()
    right = (
        found.predict_instances(data.bags)
        == np.array(["red", "green", "blue"])[data.bags.instance_labels]
    )
    assert right.mean() > 0.8
    # As good as in memory, though other bags meet in a batch.
    model = network(batch_size=32, max_iter=60).fit(data.bags, data.sets)
    assert found.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=0.2)


def learning_bags(stored, used=None):
    chosen = np.arange(len(stored)) if used is None else np.flatnonzero(used)
    problem = UnionProblem(stored.offsets, stored.labels.indicator)
    given = stored, problem, chosen, np.arange(1.0, len(stored) + 1), False
    return StoredLearningBags(*given, lambda X: X.astype(np.float32), torch.device("cpu"))


@pytest.mark.usefixtures("small_blocks")
def test_batches_deal_out_all_bags_of_shuffled_blocks(coloured, write, monkeypatch):
    monkeypatch.setattr("unbag.io.stored.BLOCK_BYTES", 640)
    data = coloured(n_bags=200)
    stored = StoredBags(write(data.table, row_group_size=40))
    used = np.arange(200) % 5 != 0
    bags = learning_bags(stored, used)
    assert len(bags.blocks) > 8
    assert bags.n_bags == 160
    read = []
    of_reader = FeatureReader.read
    monkeypatch.setattr(
        FeatureReader, "read", lambda self, *own: read.append(own) or of_reader(self, *own)
    )
    members = MemberNetworks.drawn(1, 2, (4,), 3, 0, torch.Generator())
    settings = Settings.of(network(batch_size=16))
    dealt = bags.batches(members, settings, torch.Generator().manual_seed(0))
    met = [batch.bags for batch in islice(dealt, 40)]
    assert [each.n_bags for each in met] == [16] * 40
    places = np.concatenate([each.ids for each in met])
    times = np.bincount(places, minlength=200)
    assert (times[~used] == 0).all()
    # Four passes; what is left over of a window joins the next.
    assert times[used].min() >= 2
    assert times[used].max() <= 5
    # Blocks are not read in their order.
    assert read != sorted(read)
    for each in met[:3]:
        for b, place in enumerate(each.ids.tolist()):
            rows = slice(each.offsets[b], each.offsets[b + 1])
            np.testing.assert_array_equal(each.X[rows], data.bags[place].astype(np.float32))
            np.testing.assert_array_equal(each.targets[b], stored.labels.indicator[place])
            assert each.weight[b] == place + 1


@pytest.mark.usefixtures("small_blocks")
def test_known_instances_count(coloured, write):
    data = coloured(n_bags=60)
    known = np.array(["red", "green", "blue", None], dtype=object)[data.bags.instance_labels]
    known[::2] = None
    table = data.table.append_column("truth", pa.array(known, pa.string()))
    found = out_of_core.fit(network(), write(table), known="truth")
    assert_same(found, network().fit(data.bags, data.sets, known))


@pytest.mark.usefixtures("small_blocks")
def test_a_warm_start_goes_on(coloured, write):
    data = coloured(n_bags=60)
    folder = write(data.table)
    model = out_of_core.fit(network(warm_start=True, max_iter=5), folder)
    before = model.weights_[0].copy()
    out_of_core.fit(model, folder)
    assert (model.weights_[0] != before).any()


@pytest.mark.usefixtures("small_blocks")
def test_annotations_are_those_in_memory(coloured, write, tmp_path):
    data = coloured(n_bags=60)
    folder = write(data.table)
    model = out_of_core.fit(network(), folder)
    models.save(model, tmp_path / "model.unbag")
    loaded = models.load(tmp_path / "model.unbag")
    written = out_of_core.annotate(loaded, folder, tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet").column(written.columns["annotation"])
    assert found.to_pylist() == model.annotate(data.bags, data.sets).tolist()


def test_progress_hears_of_each_step(coloured, write):
    folder = write(coloured(n_bags=60).table)
    heard = []

    def hear(pace):
        heard.append((pace.iteration, pace.bags_done, np.isfinite(pace.log_likelihood)))

    out_of_core.fit(network(batch_size=20, max_iter=4), folder, progress=hear)
    assert heard == [(1, 20, True), (2, 40, True), (3, 60, True), (4, 80, True)]


def test_what_networks_cannot_do_out_of_core_is_refused_by_name(coloured, write, tmp_path):
    folder = write(coloured(n_bags=20).table)
    with pytest.raises(
        ValueError, match="distill=1 needs the predictions for all instances at once"
    ):
        out_of_core.fit(network(distill=1), folder)
    for options in ({"checkpoint": tmp_path / "kept"}, {"resume": True}):
        with pytest.raises(DataError, match="a fit of ORNetwork has no checkpoints"):
            out_of_core.fit(network(), folder, **options)
    model = network()
    with pytest.raises(ValueError, match="hidden must be a tuple"):
        out_of_core.fit(model.set_params(hidden=()), folder)
    assert not hasattr(model, "weights_")


def test_an_intractable_bag_is_named_by_its_id(coloured, write, monkeypatch):
    folder = write(coloured(n_bags=20).table)

    def refuse(self, *_, **__):
        raise IntractableBagError([3], [30], [400])

    monkeypatch.setattr(UnionProblem, "infer", refuse)
    with pytest.raises(IntractableBagError, match="bag bag 3 has 30 required labels"):
        out_of_core.fit(network(), folder)
