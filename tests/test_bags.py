import copy
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array, indexable

from toys import NearestMean, Shift
from unbag import BagContext, ORLogisticRegression, tables
from unbag.bags import Bags, bag_key, first_nonfinite
from unbag.pipeline import BagPipeline
from unbag.preprocessing import OnInstances


def make_bags(sizes, n_features=2, named=True):
    """Bags whose every entry, id and instance label is different, so that no mix-up hides."""
    n_instances = sum(sizes)
    return Bags(
        np.arange(n_instances * n_features, dtype=float).reshape(n_instances, n_features),
        np.concatenate([[0], np.cumsum(sizes)]).astype(int),
        ids=[f"rec{bag}" for bag in range(len(sizes))] if named else None,
        instance_labels=[f"label{instance}" for instance in range(n_instances)],
    )


def assert_same(left, right):
    assert left.X.dtype == right.X.dtype
    assert sparse.issparse(left.X) == sparse.issparse(right.X)
    np.testing.assert_array_equal(dense(left.X), dense(right.X))
    for name in ["offsets", "ids", "instance_labels", "feature_names"]:
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def picked_one_by_one(bags, positions):
    """Select bags in a plain loop."""
    labels = np.split(bags.instance_labels, bags.offsets[1:-1])
    rows = [list(bags)[position] for position in positions]
    return (
        rows,
        [bags.ids[position] for position in positions],
        [label for position in positions for label in labels[position]],
    )


sizes_of_bags = st.lists(st.integers(0, 4), min_size=1, max_size=8)


@st.composite
def bags_and_positions(draw):
    sizes = draw(sizes_of_bags)
    positions = st.integers(-len(sizes), len(sizes) - 1)
    return make_bags(sizes), draw(st.lists(positions, max_size=10))


# Selecting bags


@given(bags_and_positions())
def test_selecting_positions_equals_picking_one_by_one(case):
    bags, positions = case
    selected = bags[np.array(positions, dtype=int)]
    rows, ids, labels = picked_one_by_one(bags, positions)
    assert len(selected) == len(positions)
    for bag, expected in zip(selected, rows, strict=True):
        np.testing.assert_array_equal(bag, expected)
    assert selected.ids.tolist() == ids
    assert selected.instance_labels.tolist() == labels
    assert_same(bags[positions], selected)


@given(sizes_of_bags, st.slices(8))
def test_a_slice_equals_its_positions(sizes, key):
    bags = make_bags(sizes)
    assert_same(bags[key], bags[np.arange(len(sizes))[key]])


@given(st.data(), sizes_of_bags)
def test_a_mask_equals_its_positions(data, sizes):
    mask = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    bags = make_bags(sizes)
    assert_same(bags[np.array(mask)], bags[np.flatnonzero(mask)])
    assert_same(bags[mask], bags[np.flatnonzero(mask)])


@given(bags_and_positions(), st.data())
def test_selecting_twice_equals_selecting_once(case, data):
    bags, positions = case
    again = data.draw(st.slices(len(positions)))
    assert_same(bags[positions][again], bags[positions[again]])


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_selections_equal_dense_ones(form):
    bags = make_bags([2, 0, 3, 1])
    thin = bags.with_features(form(bags.X))
    for key in [slice(1, 3), [3, 0], [True, False, True, False], slice(None, None, -1)]:
        assert isinstance(thin[key].X, form)
        np.testing.assert_array_equal(thin[key].X.toarray(), bags[key].X)
    for thin_bag, bag in zip(thin, bags, strict=True):
        np.testing.assert_array_equal(thin_bag.toarray(), bag)


def test_an_integer_gives_a_two_dimensional_array():
    bags = make_bags([2, 0, 3])
    for key in [2, -1, np.int64(2), np.uint8(2), (2, ...), (np.int32(-1), slice(None))]:
        np.testing.assert_array_equal(bags[key], bags.X[2:])
    assert bags[1].shape == (0, 2)


@pytest.mark.parametrize("key", [slice(1, None), [2, 0], np.array([True, False, True])])
def test_a_tuple_with_the_rest_in_full_is_the_key_alone(key):
    bags = make_bags([2, 0, 3])
    assert_same(bags[key, ...], bags[key])
    assert_same(bags[key, :], bags[key])


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, "no bag 3 among 3 bags"),
        (-4, "no bag -4 among 3 bags"),
        ([0, 3], "out of bounds"),
        ([True, False], "boolean index did not match"),
        ((slice(None), [0]), "columns of bags.X"),
        ((slice(None), slice(1)), "columns of bags.X"),
        (True, "indexed by an integer"),
        (None, "indexed by an integer"),
        ([[0, 1], [1, 2]], "indexed by an integer"),
        ([0.5], "only integers"),
        ("rec1", "only integers"),
    ],
)
def test_bad_keys_are_index_errors(key, message):
    with pytest.raises(IndexError, match=message):
        make_bags([2, 0, 3])[key]


def test_a_slice_is_a_view_and_arrays_are_copies():
    bags = make_bags([2, 1, 3])
    assert np.shares_memory(bags[1:].X, bags.X)
    assert np.shares_memory(bags[1], bags.X)
    assert not np.shares_memory(bags[[1, 2]].X, bags.X)


def test_a_million_bags_are_gathered_at_once(monkeypatch):
    n_bags = 1_000_000
    bags = Bags(np.zeros((n_bags, 1)), np.arange(n_bags + 1))
    with monkeypatch.context() as patch:
        patch.setattr(Bags, "__iter__", None)
        order = np.random.default_rng(0).permutation(n_bags)
        np.testing.assert_array_equal(bags[order].ids, order)


def test_bag_key_has_no_negatives():
    assert bag_key(slice(4, 2), 5) == slice(4, 4)
    assert bag_key([-1, 0], 5).tolist() == [4, 0]


# Building bags


def test_what_there_is_to_know():
    bags = make_bags([2, 0, 3])
    assert len(bags) == 3
    assert bags.shape == (3, 2)
    assert bags.sizes.tolist() == [2, 0, 3]
    assert (bags.n_instances, bags.n_features, bags.dtype) == (5, 2, np.float64)
    assert repr(bags) == "Bags(3 bags, 5 instances, 2 features, float64)"
    assert repr(bags.with_features(sparse.eye(5, dtype=np.float32))).endswith("float32, sparse)")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_floats_and_csr_are_kept_without_a_copy(dtype, form):
    X = form(np.ones((3, 2), dtype=dtype))
    assert Bags(X, [0, 3]).X is X


@pytest.mark.parametrize("dtype", [int, np.uint8, bool])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_whole_numbers_become_float64(dtype, form):
    X = np.array([[0, 1], [1, 1]], dtype=dtype)
    bags = Bags(form(X), [0, 2])
    assert bags.dtype == np.float64
    np.testing.assert_array_equal(dense(bags.X), X)


@pytest.mark.parametrize("form", [sparse.coo_matrix, sparse.csc_array, sparse.lil_matrix])
def test_other_sparse_formats_become_csr(form):
    bags = Bags(form(np.eye(3)), [0, 1, 3])
    assert bags.X.format == "csr"
    np.testing.assert_array_equal(bags[1].toarray(), np.eye(3)[1:])


@given(sizes_of_bags)
def test_a_list_of_bags_gives_them_back(sizes):
    bags = make_bags(sizes)
    arrays = list(bags)
    labels = np.split(bags.instance_labels, bags.offsets[1:-1])
    assert_same(Bags.from_list(arrays, bags.ids, bags.instance_labels), bags)
    if bags.n_instances:
        assert_same(Bags.from_list(iter(arrays), bags.ids, [list(part) for part in labels]), bags)


def test_one_sparse_bag_makes_all_sparse():
    arrays = [np.eye(2), sparse.csr_array(np.ones((1, 2))), np.empty((0, 2))]
    bags = Bags.from_list(arrays)
    assert bags.sizes.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(bags.X.toarray(), [[1, 0], [0, 1], [1, 1]])


def test_float32_bags_stay_float32():
    assert Bags.from_list([np.ones((2, 1), np.float32), np.ones((1, 1), np.float32)]).dtype == "f4"
    assert Bags.from_list([np.ones((2, 1), np.float32), np.ones((1, 1))]).dtype == "f8"


def test_empty_per_bag_labels_keep_the_type_of_the_others():
    bags = Bags.from_list([np.ones((2, 1)), np.empty((0, 1))], instance_labels=[[1, 2], []])
    assert bags.instance_labels.dtype.kind == "i"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.ones(3), "offsets": [0, 3]}, r"X must be 2-D.*\(3,\).*reshape\(1, -1\)"),
        ({"X": np.ones((1, 2, 3)), "offsets": [0, 1]}, "X must be 2-D"),
        ({"X": [["a"]], "offsets": [0, 1]}, "X must hold real numbers, but its dtype is <U1"),
        ({"X": np.array([[1]], dtype=object), "offsets": [0, 1]}, "dtype is object"),
        ({"X": [[1j]], "offsets": [0, 1]}, "dtype is complex"),
        ({"offsets": [0, 2, 1, 3]}, "Bag 1 begins at 2 but ends at 1"),
        ({"offsets": [0, 2, 1, 3], "ids": ["x", "y", "z"]}, r"Bag 1 \(id y\) begins at 2"),
        ({"offsets": np.array([0, 2, 1, 3], dtype=np.uint8)}, "Bag 1 begins at 2"),
        ({"offsets": [1, 3]}, "first bag begins at instance 1"),
        ({"offsets": [0, 2]}, "last ends at 2.*to 3, the number of instances"),
        ({"offsets": [0, 4]}, "last ends at 4"),
        ({"offsets": [0.0, 3.0]}, "1-D array of integers.*float64"),
        ({"offsets": []}, "1-D array of integers"),
        ({"offsets": [[0, 3]]}, "1-D array of integers"),
        ({"ids": ["x"]}, r"ids must be 1-D with 2 entries, but has shape \(1,\)"),
        ({"ids": ["x", "x"]}, "Bag 1 repeats the id 'x' of bag 0"),
        ({"instance_labels": ["a"]}, "instance_labels must be 1-D with 3 entries"),
        ({"feature_names": ["f", "g"]}, "feature_names must be 1-D with 1 entries"),
    ],
)
def test_what_is_wrong_is_named(arguments, message):
    arguments = {"X": np.ones((3, 1)), "offsets": [0, 1, 3]} | arguments
    with pytest.raises(ValueError, match=message):
        Bags(**arguments)


@pytest.mark.parametrize(
    ("arrays", "arguments", "message"),
    [
        ([np.ones((1, 2)), np.ones((1, 3))], {}, "Bag 1 has 3 features but Bag 0 has 2"),
        ([np.ones((1, 2)), np.ones((1, 3))], {"ids": ["x", "Y"]}, r"Bag 1 \(id Y\) has 3 features"),
        ([np.ones((1, 2)), np.ones(2)], {"ids": ["x", "y"]}, r"Bag 1 \(id y\) must be 2-D"),
        ([np.ones((1, 2)), []], {}, "Bag 1 must be 2-D"),
        ([[["a"]]], {}, "Bag 0 must hold real numbers"),
        ([], {}, "at least one"),
        ([np.ones((1, 1))], {"ids": ["x", "y"]}, "ids must be 1-D with 1 entries"),
        ([np.ones((2, 1))], {"instance_labels": [["a"]]}, "Bag 0 has 2 instances but 1 labels"),
        ([np.ones((1, 1))], {"instance_labels": [["a"], ["b"]]}, "instance_labels must be 1-D"),
        ([np.ones((2, 1))], {"instance_labels": ["a"]}, "instance_labels must be 1-D"),
    ],
)
def test_what_is_wrong_in_a_list_is_named(arrays, arguments, message):
    with pytest.raises(ValueError, match=message):
        Bags.from_list(arrays, **arguments)


def test_there_may_be_no_bag_at_all():
    bags = Bags(np.empty((0, 3)), [0])
    assert bags.shape == (0, 3)
    assert list(bags) == []
    assert bags[:].shape == bags[[]].shape == (0, 3)


# Other features, and several containers in one


def test_with_features_keeps_everything_else():
    bags = make_bags([2, 0, 3])
    other = bags.with_features(bags.X[:, :1] * 10, feature_names=["tens"])
    np.testing.assert_array_equal(other[0], bags[0][:, :1] * 10)
    assert_same(other.with_features(bags.X), bags)
    assert bags.feature_names is None
    repeated = bags[[0, 0]]
    assert_same(repeated.with_features(repeated.X), repeated)


@pytest.mark.parametrize(
    ("X", "names", "message"),
    [
        (np.ones((4, 2)), None, "X has 4 rows for 5 instances"),
        (np.ones(5), None, "X must be 2-D"),
        (np.ones((5, 2)), ["f"], "feature_names must be 1-D with 2 entries"),
    ],
)
def test_features_that_do_not_fit_are_refused(X, names, message):
    with pytest.raises(ValueError, match=message):
        make_bags([2, 3]).with_features(X, names)


@given(sizes_of_bags, st.data())
def test_concatenating_the_pieces_gives_the_whole(sizes, data):
    bags = make_bags(sizes)
    cut = data.draw(st.integers(0, len(sizes)))
    assert_same(Bags.concatenate([bags[:cut], bags[cut:]]), bags)


def test_counted_ids_are_counted_on_and_given_ids_kept():
    counted, named = make_bags([1, 2], named=False), make_bags([1, 2])
    assert Bags.concatenate([counted, counted]).ids.tolist() == [0, 1, 2, 3]
    assert Bags.concatenate([counted[1:], counted[:1]]).ids.tolist() == [1, 0]
    assert Bags.concatenate([counted, named]).ids.tolist() == [0, 1, "rec0", "rec1"]
    with pytest.raises(ValueError, match="Bag 2 repeats the id 'rec0' of bag 0"):
        Bags.concatenate([named, named])
    assert Bags.concatenate([named, named], ids=range(4)).ids.tolist() == [0, 1, 2, 3]


def test_concatenating_keeps_what_the_parts_share():
    bags = make_bags([1, 2], named=False)
    plain = Bags(bags.X, bags.offsets)
    f_and_g = bags.with_features(bags.X, ["f", "g"])
    assert Bags.concatenate([bags, plain]).instance_labels is None
    assert Bags.concatenate([f_and_g, f_and_g]).feature_names.tolist() == ["f", "g"]
    assert Bags.concatenate([f_and_g, bags]).feature_names is None
    assert f_and_g[1:].feature_names.tolist() == ["f", "g"]
    thin = bags.with_features(sparse.csr_array(bags.X))
    np.testing.assert_array_equal(
        Bags.concatenate([bags, thin]).X.toarray(), np.vstack([bags.X, bags.X])
    )


def test_containers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="Part 1 has 3 features but Part 0 has 2"):
        Bags.concatenate([make_bags([1], 2), make_bags([1], 3)])
    with pytest.raises(ValueError, match="at least one"):
        Bags.concatenate([])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_pickles_and_copies_are_the_same(form):
    bags = make_bags([2, 0, 3])
    bags = bags.with_features(form(bags.X), ["f", "g"])
    for twin in [pickle.loads(pickle.dumps(bags)), copy.copy(bags), copy.deepcopy(bags)]:
        assert_same(twin, bags)
    assert not np.shares_memory(copy.deepcopy(bags).ids, bags.ids)


# Tables

CALLS = {
    "night": ["b", "a", "b", "c", "a"],
    "pitch": [1.0, 2.0, 3.0, 4.0, 5.0],
    "count": [10, 20, 30, 40, 50],
    "loud": [True, False, True, False, True],
    "bird": ["wren", "tit", "tit", "wren", "owl"],
}
LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas-nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "pandas-arrow": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "polars-lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}


@pytest.fixture(params=LIBRARIES)
def to_table(request):
    return LIBRARIES[request.param]


def test_rows_of_a_bag_need_not_be_neighbours(to_table):
    bags = Bags.from_table(to_table(CALLS), bag="night", instance_labels="bird")
    assert bags.ids.tolist() == ["b", "a", "c"]
    assert bags.sizes.tolist() == [2, 2, 1]
    assert bags.feature_names.tolist() == ["pitch", "count", "loud"]
    expected = [[1, 10, 1], [3, 30, 1], [2, 20, 0], [5, 50, 1], [4, 40, 0]]
    np.testing.assert_array_equal(bags.X, expected)
    assert bags.dtype == np.float64
    assert bags.instance_labels.tolist() == ["wren", "tit", "tit", "owl", "wren"]


def test_columns_may_be_numbered():
    table = pd.DataFrame([[5, 1.0, 7], [6, 2.0, 8], [5, 3.0, 9]], columns=[1, 0, 2])
    bags = Bags.from_table(table, bag=1, features=[0], instance_labels=2)
    assert bags.ids.tolist() == [5, 6]
    assert bags.X.ravel().tolist() == [1, 3, 2]
    assert bags.instance_labels.tolist() == [7, 9, 8]
    assert bags.feature_names.tolist() == ["0"]


def test_features_come_in_the_order_asked_for(to_table):
    bags = Bags.from_table(to_table(CALLS), bag="count", features=["loud", "pitch"])
    assert bags.ids.tolist() == [10, 20, 30, 40, 50]
    assert bags.instance_labels is None
    np.testing.assert_array_equal(bags[1], [[0, 2]])


def test_missing_features_become_nan(to_table):
    table = to_table({"night": [1, 2, 1], "count": [7, 8, None], "loud": [True, None, False]})
    bags = Bags.from_table(table, bag="night", features=["count"])
    np.testing.assert_array_equal(bags.X, [[7], [np.nan], [8]])


def test_a_missing_boolean_becomes_nan():
    table = pl.DataFrame({"night": [1, 2], "loud": [True, None]})
    np.testing.assert_array_equal(Bags.from_table(table, bag="night").X, [[1], [np.nan]])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_float32_columns_stay_float32_unless_mixed(library):
    single, double = np.ones(2, np.float32), np.ones(2)
    table = LIBRARIES[library]({"night": [0, 1], "single": single, "double": double})
    assert Bags.from_table(table, bag="night", features=["single"]).dtype == np.float32
    assert Bags.from_table(table, bag="night").dtype == np.float64


def test_a_table_without_rows_has_no_bags():
    bags = Bags.from_table(pl.DataFrame(schema={"night": str, "pitch": float}), bag="night")
    assert bags.shape == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bag": "day"}, r"no column 'day'; it has night, pitch, count, loud, bird"),
        ({"bag": "night", "features": ["pitch", "tempo"]}, "no column 'tempo'"),
        ({"bag": "night", "instance_labels": "species"}, "no column 'species'"),
        ({"bag": "night", "features": ["pitch", "bird"]}, "'bird' holds String, not numbers"),
        ({"bag": "night", "features": []}, "no column of numbers"),
    ],
)
def test_columns_that_do_not_fit_are_named(to_table, arguments, message):
    with pytest.raises(ValueError, match=message):
        Bags.from_table(to_table(CALLS), **arguments)


@pytest.mark.parametrize("night", [["a", "b", None], [1.5, 2.5, None]])
def test_a_row_without_a_bag_is_named(to_table, night):
    table = to_table({"night": night, "pitch": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="Row 2 has no bag: fill in 'night'"):
        Bags.from_table(table, bag="night")


def test_nan_names_no_bag():
    table = pl.DataFrame({"night": [1.0, float("nan")], "pitch": [1.0, 2.0]})
    with pytest.raises(ValueError, match="Row 1 has no bag"):
        Bags.from_table(table, bag="night")


# scikit-learn


@pytest.fixture(scope="module")
def two_kinds():
    """Forty bags around 0 or around 5, whose kind anyone can see."""
    rng = np.random.default_rng(0)
    kinds = np.tile([0, 1], 20)
    arrays = [rng.normal(5 * kind, 1, size=(rng.integers(1, 6), 3)) for kind in kinds]
    return Bags.from_list(arrays, ids=[f"rec{bag}" for bag in range(40)]), kinds


def test_scikit_learn_indexes_by_bag(two_kinds):
    bags, kinds = two_kinds
    assert indexable(bags, kinds)[0] is bags
    for key in [[3, 1], np.array([3, 1]), slice(2, 5), np.arange(40) < 7, (3, 1)]:
        expected = bags[list(key)] if isinstance(key, tuple) else bags[key]
        assert_same(_safe_indexing(bags, key), expected)
    np.testing.assert_array_equal(_safe_indexing(bags, 3), bags[3])
    with pytest.raises(IndexError, match=r"columns of bags\.X"):
        _safe_indexing(bags, [0], axis=1)


@pytest.mark.parametrize("splitter", [KFold(4), ShuffleSplit(3), StratifiedKFold(4)])
def test_splitters_split_bags(two_kinds, splitter):
    bags, kinds = two_kinds
    for train, test in splitter.split(bags, kinds):
        assert set(bags[train].ids).isdisjoint(bags[test].ids)
        assert bags[train].n_instances == bags.sizes[train].sum()
    train, test = train_test_split(bags, random_state=0)
    assert isinstance(train, Bags)
    assert sorted([*train.ids, *test.ids]) == sorted(bags.ids)


@pytest.mark.parametrize(("n_jobs", "form"), [(1, np.asarray), (2, sparse.csr_matrix)])
def test_cross_validation_takes_bags(two_kinds, n_jobs, form):
    bags, kinds = two_kinds
    bags = bags.with_features(form(bags.X))
    scores = cross_val_score(NearestMean(), bags, kinds, cv=4, n_jobs=n_jobs)
    np.testing.assert_array_equal(scores, np.ones(4))
    predicted = cross_val_predict(NearestMean(), bags, kinds, cv=4, n_jobs=n_jobs)
    np.testing.assert_array_equal(predicted, kinds)
    mistaken = cross_val_score(NearestMean(), bags, np.tile([0, 0, 1, 1], 10), cv=4, n_jobs=n_jobs)
    assert mistaken.mean() < 0.9


def test_pipelines_are_searched_over_bags(two_kinds):
    bags, kinds = two_kinds
    pipeline = make_pipeline(Shift(), NearestMean())
    grid = {"shift__by": [0.0, 10.0], "nearestmean__power": [1.0, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=4, error_score="raise")
    search.fit(bags, kinds)
    assert search.best_score_ == 1
    np.testing.assert_array_equal(search.predict(bags), kinds)
    # Without a shape, scikit-learn would have handed over a list of arrays.
    assert search.best_estimator_[-1].container_ == "Bags"
    assert search._repr_html_()


def test_workers_may_share_read_only_memory(two_kinds):
    bags = Bags(np.zeros((200_000, 2)), np.arange(0, 200_001, 5_000))
    scores = cross_val_score(NearestMean(), bags, two_kinds[1], cv=4, n_jobs=2)
    assert scores.tolist() == [0.5] * 4


def test_bags_are_no_array():
    for bags in [make_bags([2, 2]), make_bags([2, 3])]:
        with pytest.raises(TypeError, match=r"use bags\.X"):
            np.asarray(bags)
        with pytest.raises(TypeError, match=r"use bags\.X"):
            check_array(bags)


def test_importing_loads_no_table_library():
    code = """
import sys
before = set(sys.modules)
import unbag.bags, unbag.labels
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(loaded & {"pandas", "polars", "pyarrow", "torch", "matplotlib", "narwhals"})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# In a notebook


def test_bags_show_their_counts_and_first_bags_in_a_notebook():
    bags = make_bags([2, 0, 3, 1, 1, 4, 2])
    page = bags._repr_html_()
    assert "Bags(7 bags, 13 instances, 2 features, float64)" in page
    assert "<td>rec2</td><td>3</td>" in page
    assert "rec5" not in page
    assert "and 2 more" in page
    assert "<script" not in page


def test_what_tables_hold_is_escaped_in_a_notebook():
    bags = Bags([[1.0]], [0, 1], ids=["<script>a</script>"], feature_names=["<b>x</b>"])
    page = bags._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;a" in page


def test_empty_bags_show_in_a_notebook():
    assert "Bags(1 bags, 0 instances" in Bags(np.zeros((0, 2)), [0, 0])._repr_html_()


def test_ids_with_nanoseconds_do_not_merge_bags():
    polars = pytest.importorskip("polars")
    times = np.array([1, 2, 1], "datetime64[ns]")
    bags = Bags.from_table(polars.DataFrame({"t": times, "x": [1.0, 2.0, 3.0]}), bag="t")
    assert bags.sizes.tolist() == [2, 1]
    assert bags.ids.tolist() == [1, 2]
    assert bags.ids.dtype == "datetime64[ns]"


# What is NaN or infinite

STRANGE_NUMBERS = st.sampled_from([0.0, 1.0, -2.5, 3e38, -3e38, np.nan, np.inf, -np.inf])
ARRAYS_WITH_THEM = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
    elements=STRANGE_NUMBERS,
    fill=st.just(1.0),
)


def slow_search(X):
    """The same, entry by entry."""
    for row, column in np.ndindex(X.shape):
        if not np.isfinite(X[row, column]):
            return row, column, X[row, column].item()
    return None


@given(X=ARRAYS_WITH_THEM, block=st.integers(1, 8), layout=st.sampled_from(["C", "F"]))
def test_the_first_is_found(X, block, layout):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbag.bags.BLOCK_ENTRIES", block)
        found = first_nonfinite(np.array(X, order=layout))
    np.testing.assert_equal(found, slow_search(X))


@given(X=ARRAYS_WITH_THEM, seed=st.integers(0, 9))
def test_the_first_of_a_sparse_array_is_found(X, seed):
    csr = sparse.csr_array(X)
    rng = np.random.default_rng(seed)
    for row in range(X.shape[0]):
        entries = np.arange(csr.indptr[row], csr.indptr[row + 1])
        shuffled = rng.permutation(entries)
        csr.data[entries], csr.indices[entries] = csr.data[shuffled], csr.indices[shuffled]
    np.testing.assert_equal(first_nonfinite(csr), slow_search(X))
    np.testing.assert_equal(first_nonfinite(sparse.coo_matrix(X)), slow_search(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sum_that_overflows_is_no_fault(dtype):
    X = np.full((300, 3), np.finfo(dtype).max)
    with np.errstate(over="ignore"):
        assert not np.isfinite(X.sum())
    assert first_nonfinite(X) is None
    assert first_nonfinite(sparse.csr_array(X)) is None
    X[200, 1] = -np.inf
    assert first_nonfinite(X) == (200, 1, -np.inf)


def test_infinities_do_not_cancel():
    assert first_nonfinite(np.array([[np.inf, -np.inf]])) == (0, 0, np.inf)


def test_integers_are_finite():
    assert first_nonfinite(np.array([[1, 2]])) is None
    assert first_nonfinite(np.array([[True]])) is None


@pytest.mark.parametrize("largest", [1.0, np.finfo(float).max])
def test_the_search_needs_little_memory(largest):
    # So large that what other threads of the process allocate meanwhile does not count.
    X = np.broadcast_to(largest, (1_000_000, 20))
    tracemalloc.start()
    try:
        assert first_nonfinite(X) is None
        assert tracemalloc.get_traced_memory()[1] < X.size / 10
    finally:
        tracemalloc.stop()


# The rows of the table that bags were made from


def shuffled_frame(n_bags=12, n_rows=80, seed=0):
    """A table whose rows and bags are mixed, with an index that says nothing of its order."""
    random = np.random.default_rng(seed)
    number = random.permutation(n_rows)
    frame = pd.DataFrame(
        {
            "night": pd.Categorical([f"night{row % n_bags}" for row in number]),
            "pitch": number.astype(float),
            "volume": random.normal(size=n_rows),
        }
    )
    return frame.set_index(pd.Index(random.permutation(n_rows) + 7))


FORMS = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_pandas(frame.astype({"night": str})),
    "pyarrow": lambda frame: pa.Table.from_pandas(
        frame.astype({"night": str}), preserve_index=False
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_lead_from_instances_to_the_table(form):
    frame = shuffled_frame()
    bags = Bags.from_table(FORMS[form](frame), bag="night")
    np.testing.assert_array_equal(bags.X[:, 0], frame["pitch"].to_numpy()[bags.rows])
    np.testing.assert_array_equal(bags.in_table_order(bags.X), frame[["pitch", "volume"]])
    np.testing.assert_array_equal(
        bags.in_table_order(np.repeat(bags.ids, bags.sizes)), frame["night"].astype(str)
    )


def test_objects_keep_their_kind():
    bags = Bags.from_table(pl.DataFrame({"bag": [1, 2, 1], "x": [1.0, 2.0, 3.0]}), bag="bag")
    assert bags.in_table_order(["wren", None, "owl"]).tolist() == ["wren", "owl", None]


def test_bags_of_no_table_count_their_instances():
    bags = Bags.from_list([np.zeros((2, 1)), np.ones((3, 1))])
    assert bags.rows.tolist() == [0, 1, 2, 3, 4]
    assert bags[1:].rows.tolist() == [2, 3, 4]
    assert bags[[1, 0]].rows.tolist() == [2, 3, 4, 0, 1]
    answers = np.arange(5)
    ordered = bags.in_table_order(answers)
    ordered[0] = 9
    assert answers[0] == 0, "the answers themselves must not change with what is made of them"


def test_a_sorted_table_costs_no_memory():
    n_rows = 100_000
    frame = pl.DataFrame({"bag": np.arange(n_rows) // 10, "x": np.zeros(n_rows)})
    bags = Bags.from_table(frame, bag="bag")
    kept = pickle.dumps(bags)
    # 8 bytes an instance for X, and less than 2 for the offsets and ids of its bag.
    assert len(kept) < 11 * n_rows
    assert len(pickle.dumps(bags[:5000])) < 0.6 * len(kept)


@pytest.mark.parametrize(
    "carry",
    [
        lambda bags: bags[::-1],
        lambda bags: Bags.concatenate([bags[5:], bags[:5]]),
        lambda bags: Bags.concatenate(train_test_split(bags, random_state=0)),
        lambda bags: OnInstances(StandardScaler(with_mean=False, with_std=False)).fit_transform(
            bags
        ),
        lambda bags: BagContext(0).fit_transform(bags),
        lambda bags: bags.with_features(bags.X * 1),
        lambda bags: pickle.loads(pickle.dumps(bags)),
    ],
    ids=["reversed", "rejoined", "split", "scaled", "context", "features", "pickled"],
)
def test_rows_are_carried_along(carry):
    frame = shuffled_frame()
    bags = carry(Bags.from_table(frame, bag="night"))
    np.testing.assert_array_equal(bags.in_table_order(bags.X[:, 0]), frame["pitch"])


def test_a_pipeline_answers_in_the_order_of_the_bags_that_it_is_given():
    frame = shuffled_frame()
    bags = Bags.from_table(frame, bag="night")
    y = [{"high", "low"}] * len(bags)
    pipeline = BagPipeline(
        [("scale", OnInstances(StandardScaler())), ("model", ORLogisticRegression())]
    ).fit(bags, y)
    by_row = Bags(frame[["pitch", "volume"]].to_numpy(), [0, len(frame)])
    by_row = by_row.with_features(by_row.X, bags.feature_names)
    np.testing.assert_array_equal(
        bags.in_table_order(pipeline.predict_instances(bags)), pipeline.predict_instances(by_row)
    )


def test_several_tables_count_as_stacked():
    first, second = shuffled_frame(seed=1), shuffled_frame(seed=2)
    parts = [Bags.from_table(frame, bag="night") for frame in (first, second)]
    # A half of the first, the second, and the other half: the first still comes first.
    joined = Bags.concatenate([parts[0][:6], parts[1], parts[0][6:]], ids=np.arange(24))
    np.testing.assert_array_equal(
        joined.in_table_order(joined.X[:, 0]), pd.concat([first, second])["pitch"]
    )


def test_a_selection_names_the_rows_that_it_has_answers_for():
    frame = shuffled_frame()
    test = Bags.from_table(frame, bag="night")[3:7]
    with pytest.raises(ValueError, match=r"from \d+ of its 80 rows.*table\.iloc\[bags\.rows\]"):
        test.in_table_order(test.X[:, 0])
    np.testing.assert_array_equal(frame["pitch"].iloc[test.rows], test.X[:, 0])


@pytest.mark.parametrize(("picked", "rows"), [([0, 0], 4), ([0], 2)])
def test_bags_picked_twice_or_left_out_are_not_the_table(picked, rows):
    bags = Bags.from_list([np.zeros((2, 1)), np.ones((2, 1))])[picked]
    with pytest.raises(ValueError, match=f"{rows} instances from 2 of its 4 rows"):
        bags.in_table_order(np.zeros(rows))


def test_answers_must_be_one_per_instance():
    bags = Bags.from_list([np.zeros((2, 1)), np.ones((3, 1))])
    with pytest.raises(ValueError, match=r"shape \(4,\) for 5 instances"):
        bags.in_table_order(np.zeros(4))
    with pytest.raises(ValueError, match=r"np\.repeat\(values, bags\.sizes"):
        bags.in_table_order(np.zeros((2, 3)))


@pytest.mark.parametrize("rows", [[0, 1], [0.0, 1.0, 2.0], [0, -1, 2]])
def test_rows_are_whole_numbers_one_per_instance(rows):
    with pytest.raises(ValueError, match="rows must be"):
        Bags(np.zeros((3, 1)), [0, 3], rows=rows)


def test_bags_without_instances_have_no_rows():
    bags = Bags(np.zeros((0, 2)), [0, 0], rows=[])
    assert bags.rows.size == 0
    assert bags.in_table_order([]).size == 0


def test_bags_of_a_file_know_its_rows(tmp_path):
    frame = shuffled_frame()
    path = tmp_path / "nights.csv"
    frame.to_csv(path, index=False)
    table = tables.read(path, tables.Roles(bag="night"), need_labels=False)
    np.testing.assert_array_equal(table.bags.rows, table.rows)
    np.testing.assert_array_equal(table.bags.in_table_order(table.bags.X[:, 0]), frame["pitch"])
