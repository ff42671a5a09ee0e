"""Fits on a cluster: the same as in memory, whatever the bags come as."""

import dask
import numpy as np
import pyarrow as pa
import pytest
from distributed import Client, futures_of
from scipy import sparse

import unbag.dask
from out_of_core.conftest import OPTIONS, wide
from unbag import Bags, LabelSets, ORLogisticRegression, out_of_core
from unbag.dask.clusters import Tasks
from unbag.fitting.linear import InterruptedFitWarning
from unbag.tables import Roles

from .conftest import agree, frame, pairs

pytestmark = pytest.mark.filterwarnings("ignore:The fit has not converged")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fits_in_memory_out_of_core_and_on_a_cluster_are_the_same(dtype, coloured, write, client):
    data = coloured(n_bags=120, dtype=dtype)
    folder = write(data.table, cuts=(101, 102, 200), row_group_size=37)
    model = ORLogisticRegression(max_iter=15).fit(data.bags, data.sets)
    agree(out_of_core.fit(ORLogisticRegression(max_iter=15), folder), model)
    for given in (pairs(data), frame(data), folder):
        found = unbag.dask.fit(ORLogisticRegression(max_iter=15), given, client)
        agree(found, model)
        np.testing.assert_allclose(found.history_, model.history_, rtol=1e-6)
        assert found.feature_names_in_.tolist() == ["u", "v"]


def test_what_describes_no_instance_is_left_out_as_in_memory(coloured, client):
    """By the first rows of all partitions, and said here, not on a worker."""
    data = coloured(n_bags=40)
    heat = np.repeat(np.arange(40) * 7 % 11, data.bags.sizes)
    data.table = data.table.append_column("heat", pa.array(heat))
    with pytest.warns(UserWarning, match=r"heat \(the same in all rows of a bag\)"):
        found = unbag.dask.fit(ORLogisticRegression(max_iter=2), frame(data, 20), client)
    assert found.feature_names_in_.tolist() == ["u", "v"]


@pytest.mark.parametrize("options", OPTIONS)
def test_parameters_do_what_they_do_in_memory(options, coloured, client):
    data = coloured(n_bags=150)
    model = ORLogisticRegression(max_iter=6, **options).fit(data.bags, data.sets)
    found = unbag.dask.fit(ORLogisticRegression(max_iter=6, **options), pairs(data), client)
    agree(found, model)
    np.testing.assert_allclose(found.missed_rate_, model.missed_rate_, atol=1e-6)


def test_features_far_from_zero_are_centred_on_the_workers(coloured, client):
    data = coloured(n_bags=80)
    far = data.bags.with_features(data.bags.X + 1e6, ["u", "v"])
    model = ORLogisticRegression(max_iter=6).fit(far, data.sets)
    given = [(far[:30], data.sets[:30]), (far[30:], data.sets[30:])]
    agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), given, client), model)


def test_sparse_features_stay_sparse(coloured, client):
    data = coloured(n_bags=80)
    bags = Bags(sparse.csr_matrix(data.bags.X), data.bags.offsets)
    model = ORLogisticRegression(max_iter=6).fit(bags, data.sets)
    given = [(bags[:30], data.sets[:30]), (bags[30:], data.sets[30:])]
    agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), given, client), model)


@pytest.mark.filterwarnings("ignore:.*bags have (labels that|too many labels)")
def test_impossible_and_intractable_bags_are_what_they_are_in_memory(rng, client):
    """One bag with fewer instances than labels, and one of thirty labels on thirty instances."""
    names = [f"c{c:02}" for c in range(30)]
    sizes = np.array([1, *[4] * 10, 30])
    sets = [{"c00", "c01"}, *({name} for name in names[:10]), set(names)]
    bags = Bags(rng.normal(size=(sizes.sum(), 2)), np.append(0, np.cumsum(sizes)))
    model = ORLogisticRegression(max_iter=3).fit(bags, sets)
    given = [(bags[i:j], sets[i:j]) for i, j in ((0, 5), (5, 9), (9, 12))]
    found = unbag.dask.fit(ORLogisticRegression(max_iter=3), given, client)
    agree(found, model)
    assert model.relaxed_.keys() == found.relaxed_.keys() == {0, 11}
    for each, labels in model.relaxed_.items():
        assert found.relaxed_[each].tolist() == labels.tolist()


def as_indicator(data):
    return np.array([["blue" in each, "green" in each, "red" in each] for each in data.sets], int)


@pytest.mark.parametrize(
    "form",
    ["delayed", "futures", "label sets", "indicator", "strings"],
)
def test_pairs_come_in_many_forms(form, coloured, client):
    data = coloured(n_bags=90)
    labels = {
        "label sets": LabelSets(as_indicator(data), ["blue", "green", "red"]),
        "indicator": as_indicator(data),
        "strings": np.array(data.cells),
    }.get(form, data.sets)
    given = [(data.bags[i : i + 30], labels[i : i + 30]) for i in (0, 30, 60)]
    if form == "delayed":
        given = [dask.delayed(lambda place, own=given: own[place])(place) for place in range(3)]
    elif form == "futures":
        given = [client.submit(lambda place, own=given: own[place], place) for place in range(3)]
    model = ORLogisticRegression(max_iter=6).fit(data.bags, labels)
    agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), given, client), model)


def test_one_label_for_each_bag_is_learnt_as_in_memory(coloured, client):
    data = coloured(n_bags=60)
    colour = [min(each, default="red") for each in data.sets]
    given = [(data.bags[:20], colour[:20]), (data.bags[20:], colour[20:])]
    model = ORLogisticRegression(max_iter=6, on_impossible="drop").fit(data.bags, colour)
    found = unbag.dask.fit(ORLogisticRegression(max_iter=6, on_impossible="drop"), given, client)
    agree(found, model)
    assert found.predict(data.bags).tolist() == model.predict(data.bags).tolist()


def test_tables_have_roles_and_rows_of_a_bag_lie_anywhere_in_their_partition(coloured, client):
    data = coloured(n_bags=60)
    model = ORLogisticRegression(max_iter=6).fit(data.bags, data.sets)
    shuffled = frame(data, 3).map_partitions(lambda part: part.sample(frac=1, random_state=0))
    renamed = shuffled.rename(columns={"bag": "night", "labels": "tags"})
    roles = Roles(features=["u", "v"])
    found = unbag.dask.fit(
        ORLogisticRegression(max_iter=6), renamed, client, bag="night", labels="tags", roles=roles
    )
    np.testing.assert_allclose(found.coef_, model.coef_, atol=1e-6)


def test_a_row_may_be_a_bag(coloured, write, client):
    data = coloured(n_bags=90)
    folder = write(wide(data), cuts=(30, 31), row_group_size=7)
    model = ORLogisticRegression(max_iter=6).fit(data.bags, data.sets)
    agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), folder, client), model)


@pytest.mark.parametrize("kind", ["frame", "set"])
def test_known_labels_of_instances_are_used_only_if_they_are_named(kind, coloured, write, client):
    data = coloured(n_bags=80)
    known = [None if i % 3 else str(["red", "green", "blue"][label])
             for i, label in enumerate(data.bags.instance_labels)]  # fmt: skip
    data.table = data.table.append_column("instance_label", pa.array(known))
    given = frame(data) if kind == "frame" else write(data.table)
    model = ORLogisticRegression(max_iter=6).fit(data.bags, data.sets)
    agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), given, client), model)
    model.fit(data.bags, data.sets, instance_labels=known)
    given = {"data": given, "client": client, "known": "instance_label"}
    agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), **given), model)


@pytest.mark.parametrize("kind", ["frame", "set"])
def test_columns_are_remembered(kind, coloured, write, client, tmp_path):
    data = coloured(n_bags=40)
    data.table = data.table.rename_columns(["bag", "birds", "u", "v", "note"])
    folder = write(data.table)
    given = frame(data) if kind == "frame" else folder
    model = unbag.dask.fit(ORLogisticRegression(), given, client, labels="birds")
    assert model.roles_["bag"] == "bag"
    assert model.roles_["labels"] == "birds"
    for place, each in enumerate((given, folder)):
        assert unbag.dask.annotate(model, each, tmp_path / str(place), client).bag_labels_used


def test_empty_partitions_are_passed_over(coloured, client):
    data = coloured(n_bags=60)
    model = ORLogisticRegression(max_iter=6).fit(data.bags, data.sets)
    none = data.bags[:0], []
    agree(
        unbag.dask.fit(ORLogisticRegression(max_iter=6), [none, *pairs(data), none], client), model
    )
    divided = frame(data)
    holed = divided[divided["bag"].isin(data.bags.ids[40:].tolist())]
    model.fit(data.bags[40:], data.sets[40:])
    agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), holed, client), model)


def test_the_model_of_an_interrupted_fit_is_that_of_its_last_iteration(
    coloured, client, tasks_left
):
    data = coloured(n_bags=60)

    def interrupt(progress):
        if len(progress.history) == 3:
            raise KeyboardInterrupt

    model = ORLogisticRegression()
    with pytest.warns(InterruptedFitWarning, match="interrupted"):
        unbag.dask.fit(model, pairs(data), client, watch=interrupt)
    assert model.n_iter_ == 3
    assert not tasks_left(client)


@pytest.mark.parametrize("ends", ["well", "by an error of watch", "by one of progress"])
def test_nothing_is_left_on_the_cluster(ends, coloured, client, tasks_left):
    data = coloured(n_bags=60)

    def fail(*_):
        raise RuntimeError("enough")

    model = ORLogisticRegression()
    given = {"watch" if "watch" in ends else "progress": fail}
    if ends == "well":
        unbag.dask.fit(model, frame(data), client)
    else:
        with pytest.raises(RuntimeError, match="enough"):
            unbag.dask.fit(model, frame(data), client, **given)
        assert not hasattr(model, "coef_")
    assert not tasks_left(client)


@pytest.mark.parametrize("ends", ["well", "badly"])
@pytest.mark.parametrize("kind", ["frame", "delayed", "futures"])
def test_what_others_keep_on_the_cluster_stays(kind, ends, coloured, client, tasks_left):
    data = coloured(n_bags=40)
    if kind == "frame":
        kept = client.persist(frame(data))
    elif kind == "delayed":
        kept = client.persist([dask.delayed(lambda own: own)(pair) for pair in pairs(data)])
    else:
        kept = client.map(lambda own: own, pairs(data), pure=False)
    model = ORLogisticRegression(max_iter=2)
    if ends == "well":
        unbag.dask.fit(model, kept, client)
    else:
        with pytest.raises(ValueError, match="alpha"):
            unbag.dask.fit(model.set_params(alpha=-1), kept, client)
    assert all(each.status == "finished" for each in futures_of(kept, client))
    del kept
    assert not tasks_left(client)


def test_what_was_computed_before_is_not_cancelled_with_the_tasks_of_a_fit(client, tasks_left):
    kept = client.persist([dask.delayed(int)(place) for place in range(3)])
    with Tasks(client) as tasks:
        same, more = tasks.compute(kept), tasks.map(str, [1, 2])
    assert [each.status for each in more] == ["cancelled"] * 2
    assert client.gather(futures_of(kept, client)) == [0, 1, 2]
    del kept, same
    assert not tasks_left(client)


def test_without_a_client_there_is_a_cluster_for_the_fit_alone(coloured):
    data = coloured(n_bags=60)
    model = ORLogisticRegression(max_iter=6).fit(data.bags, data.sets)
    agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), pairs(data)), model)
    with pytest.raises(ValueError, match="No clients"):
        Client.current()


def test_the_current_client_and_addresses_are_used(coloured, client, address):
    data = coloured(n_bags=60)
    model = ORLogisticRegression(max_iter=6).fit(data.bags, data.sets)
    with client.as_current():
        agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), pairs(data)), model)
    assert client.status == "running"
    agree(unbag.dask.fit(ORLogisticRegression(max_iter=6), pairs(data), address), model)


def test_progress_hears_of_all_bags(coloured, client):
    data = coloured(n_bags=60)
    told = []
    model = ORLogisticRegression(max_iter=3, tol=0)
    unbag.dask.fit(
        model, pairs(data), client,
        progress=lambda pace: told.append((pace.iteration, pace.bags_done, str(pace))),
    )  # fmt: skip
    assert told[0][:2] == (0, 60)
    assert told[-1][0] == 2
    assert told[-1][1] == 60 * len(told)
    assert "bags/s" in told[-1][2]


def test_statistics_are_added_up_in_a_tree(coloured, client, monkeypatch):
    data = coloured(n_bags=120)
    added = []
    submit = Tasks.submit

    def counted(self, function, *given, **options):
        if function.__name__ == "add_up":
            added.append(len(given[0]))
        return submit(self, function, *given, **options)

    monkeypatch.setattr(Tasks, "submit", counted)
    unbag.dask.fit(ORLogisticRegression(max_iter=1), pairs(data, 20), client)
    # Twenty answers by eights, and then three of them.
    assert added[:4] == [8, 8, 4, 3]
    assert max(added) == 8


def test_every_worker_gets_partitions(coloured, write, client):
    data = coloured(n_bags=120)
    found = []

    def look(pace):
        if not found:
            found.extend(client.has_what().values())

    for given in (pairs(data, 8), write(data.table)):
        found.clear()
        unbag.dask.fit(ORLogisticRegression(max_iter=1), given, client, progress=look)
        counts = [sum(str(key).startswith("read_") for key in keys) for keys in found]
        # The scheduler places them, so that new workers can take over those of lost ones.
        assert len(counts) == 2
        assert min(counts) >= 1


def test_bags_without_labels_mean_the_same_on_a_cluster(client):
    dataframe = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    tags = ["owl|wren", "", "owl", "wren", None, "wren"]
    table = pandas.DataFrame({
        "bag": np.repeat([*"abcdef"], 3), "labels": np.repeat(np.array(tags, dtype=object), 3),
        "x": np.random.default_rng(0).normal(size=18),
    })  # fmt: skip
    bags = Bags(table[["x"]].to_numpy(), np.arange(0, 19, 3))
    parts = [(bags[:3], tags[:3]), (bags[3:], tags[3:])]
    frames = dataframe.from_pandas(table.set_index("bag"), npartitions=3)
    unfitted = {"max_iter": 20}
    model = unbag.fit(table, untagged="unknown", model=ORLogisticRegression(**unfitted))
    for given in (parts, frames):
        with pytest.raises(ValueError, match=r"bags ha(s|ve) nothing in place of labels"):
            unbag.dask.fit(ORLogisticRegression(**unfitted), given, client)
        found = unbag.dask.fit(ORLogisticRegression(**unfitted), given, client, untagged="unknown")
        agree(found, model)
