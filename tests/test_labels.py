import pickle
from itertools import compress

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold, cross_val_score

from unbag.bags import Bags
from unbag.labels import LabelSets, hard_to_tell, without_contrast
from unbag.tagging import Unknown
from unbag.validation import check_known_labels

BIRDS = ["owl", "robin", "tit", "wren"]

indicators = arrays(
    np.int8, array_shapes(min_dims=2, max_dims=2, max_side=4), elements=st.integers(-1, 1)
)


@st.composite
def sets_of(draw, labels):
    """Label sets in which no label is both present and unknown."""
    states = st.dictionaries(st.sampled_from(labels), st.booleans())
    drawn = draw(st.lists(states, max_size=6))
    return [{label if known else Unknown(label) for label, known in bag.items()} for bag in drawn]


def assert_same(left, right):
    np.testing.assert_array_equal(left.indicator, right.indicator)
    assert left.indicator.dtype == right.indicator.dtype == np.int8
    assert left.classes.tolist() == right.classes.tolist()


# Unknown


def test_unknown_is_a_value():
    assert Unknown("wren") == Unknown("wren") != Unknown("tit")
    assert Unknown("wren") != "wren"
    assert len({Unknown("wren"), Unknown("wren"), "wren"}) == 2
    assert repr(Unknown("wren")) == "Unknown('wren')"
    assert pickle.loads(pickle.dumps(Unknown(3))) == Unknown(3)
    with pytest.raises(AttributeError):
        Unknown("wren").label = "tit"


# The three states


@given(indicators)
def test_every_class_is_required_optional_or_forbidden(indicator):
    labels = LabelSets(indicator)
    masks = np.stack([labels.required, labels.optional, labels.forbidden])
    assert masks.dtype == bool
    assert (masks.sum(axis=0) == 1).all()
    np.testing.assert_array_equal(labels.required, indicator == 1)
    np.testing.assert_array_equal(labels.optional, indicator == -1)
    np.testing.assert_array_equal(labels.cardinality, (indicator == 1).sum(axis=1))


def test_int8_is_kept_without_a_copy():
    indicator = np.array([[1, 0, -1]], dtype=np.int8)
    assert np.shares_memory(LabelSets(indicator).indicator, indicator)


def test_what_there_is_to_know():
    labels = LabelSets.parse([{"wren", "tit"}, set(), {Unknown("wren")}])
    assert len(labels) == 3
    assert labels.shape == (3, 2)
    assert labels.cardinality.tolist() == [2, 0, 0]
    assert repr(labels) == "LabelSets(3 bags, 2 classes)"
    assert_same(pickle.loads(pickle.dumps(labels)), labels)


# Parsing label sets


@given(st.one_of(sets_of(BIRDS), sets_of([3, 5, 8]), sets_of([0.5, 2])))
def test_sets_come_back_from_their_indicator(sets):
    labels = LabelSets.parse(sets)
    assert labels.to_sets() == list(labels) == sets
    named = {getattr(member, "label", member) for bag in sets for member in bag}
    assert labels.classes.tolist() == sorted(named)


@given(indicators)
def test_indicators_come_back_from_their_sets(indicator):
    labels = LabelSets(indicator, classes=BIRDS[: indicator.shape[1]])
    assert_same(LabelSets.parse(labels.to_sets(), classes=labels.classes), labels)


@pytest.mark.parametrize("collection", [set, frozenset, list, tuple, np.array])
@pytest.mark.parametrize(
    "sequence",
    [list, tuple, iter, pd.Series, lambda sets: np.array([*sets, None], dtype=object)[:-1]],
)
def test_any_collection_in_any_sequence_will_do(collection, sequence):
    if sequence is pd.Series:
        y = pd.Series([collection(["wren", "tit"]), collection(["tit"])], index=[7, 3])
    else:
        y = sequence([collection(["wren", "tit"]), collection(["tit"])])
    labels = LabelSets.parse(y)
    assert labels.classes.tolist() == ["tit", "wren"]
    assert labels.indicator.tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("series", [pl.Series, pa.array, lambda y: pa.chunked_array([y])])
def test_list_columns_are_label_sets(series):
    labels = LabelSets.parse(series([["wren", "tit"], ["tit"], []]))
    assert labels.to_sets() == [{"wren", "tit"}, {"tit"}, set()]


def test_instance_labels_of_a_bag_may_repeat():
    assert LabelSets.parse([["wren", "wren", "tit"], [7 * "x"]]).cardinality.tolist() == [2, 1]
    assert LabelSets.parse([[2, 2, 1], [1]]).cardinality.tolist() == [2, 1]


def test_given_classes_set_the_order_and_may_be_unused():
    labels = LabelSets.parse([{"wren"}, {Unknown("owl")}], classes=["wren", "tit", "owl"])
    assert labels.indicator.tolist() == [[1, 0, 0], [0, 0, -1]]


def test_there_may_be_no_label_and_no_bag():
    assert LabelSets.parse([set(), set()]).shape == (2, 0)
    assert LabelSets.parse([]).shape == (0, 0)
    assert LabelSets.parse([], classes=["wren"]).shape == (0, 1)
    assert LabelSets.parse([set()]).to_sets() == [set()]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([{"tit"}, "wren"], r"Bag 1 has 'wren' in place of a label set: write \{'wren'\}"),
        (np.array(["tit", "wren"]), r"Bag 0 has 'tit' in place of a label set"),
        (np.array([2, 3]), r"Bag 0 has 2 in place of a label set: write \{2\}"),
        ([{"tit"}, Unknown("wren")], r"Bag 1 has Unknown\('wren'\).*write \{Unknown\('wren'\)\}"),
        ([{"tit"}, None], r"1 of 2 bags has nothing.*such as 1\..*untagged='unknown'.*set\(\)"),
        ([{"tit"}, float("nan")], "1 of 2 bags has nothing in place of labels, such as 1"),
        ([{"tit"}, " "], "1 of 2 bags has nothing in place of labels, such as 1"),
        ([{"tit"}, {None}], "1 of 2 bags has nothing in place of labels, such as 1"),
        ([{"tit"}, {Unknown(None)}], "1 of 2 bags has nothing in place of labels"),
        ([{1.0}, {float("nan")}], "1 of 2 bags has nothing in place of labels"),
        ([{"tit"}, {"tit", "(none)"}], r"Bag 1 has '\(none\)', which means .* next to 'tit'"),
        ([{"tit"}, [["wren"]]], r"Bag 1 has the label \['wren'\]"),
        ([{"tit"}, {b"wren"}], "Bag 1 has the label b'wren'"),
        ([{"tit"}, {3}], "Bag 1 has the label 3 where others have 'tit'"),
        ([{3}, {Unknown("tit")}], "Bag 1 has the label 'tit' where others have 3"),
        ([set(), {"wren", Unknown("wren")}], "Bag 1 has the label .wren. both as present"),
        ([[1, 1], [1, 0]], "Bag 0 repeats labels among 0, 1 and -1.*np.array"),
        ([(0, 1), (1, 0), (-1, -1)], "Bag 2 repeats labels"),
        ("wren", "not 'wren'"),
        (7, "not 7"),
        (None, "not None"),
    ],
)
def test_what_is_wrong_in_label_sets_is_named(y, message):
    with pytest.raises(ValueError, match=message):
        LabelSets.parse(y)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["tit"], "Bag 1 has the label 'wren', which is not among the classes"),
        (["tit", "wren", "tit"], "Class 'tit' occurs twice"),
        (["tit", "wren", 3], "3 cannot be a class as well as 'tit'"),
        (["tit", None], "None cannot be a class"),
        ([float("nan")], "nan cannot be a class"),
        ([["tit", "wren"]], r"\['tit', 'wren'\] cannot be a class"),
    ],
)
def test_classes_that_do_not_fit_are_named(classes, message):
    with pytest.raises(ValueError, match=message):
        LabelSets.parse([{"tit"}, {"tit", Unknown("wren")}], classes=classes)


# Parsing indicators

INDICATOR = np.array([[1, 0, -1], [0, 0, 1]])


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        np.int8,
        np.float64,
        sparse.csr_matrix,
        sparse.coo_array,
        sparse.csc_matrix,
        sparse.lil_array,
        sparse.dok_matrix,
    ],
)
def test_an_indicator_in_any_form_is_the_same(form):
    labels = LabelSets.parse(form(INDICATOR))
    assert_same(labels, LabelSets(INDICATOR))
    assert labels.classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_mask_knows_everything(form):
    mask = np.array([[True, False], [False, True]])
    assert LabelSets.parse(form(mask)).to_sets() == [{0}, {1}]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame,
        lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
        pl.DataFrame,
        pl.LazyFrame,
        pa.table,
    ],
)
def test_the_columns_of_a_table_are_classes(frame):
    table = frame({"wren": [1, 0], "owl": [False, True], "tit": [-1.0, 1.0]})
    labels = LabelSets.parse(table)
    assert labels.classes.tolist() == ["wren", "owl", "tit"]
    assert labels.indicator.tolist() == [[1, 0, -1], [0, 1, 1]]
    aligned = LabelSets.parse(table, classes=["tit", "wren", "robin", "owl"])
    assert aligned.to_sets() == labels.to_sets()
    with pytest.raises(ValueError, match="Column 'owl' holds String"):
        LabelSets.parse(frame({"wren": [1, 0], "owl": ["yes", "no"]}))
    assert LabelSets.parse(frame({"wren": [1, None]})).indicator.tolist() == [[1], [-1]]


def test_numbered_columns_are_numbered_classes():
    labels = LabelSets.parse(pd.DataFrame(INDICATOR, columns=[4, 0, 1]))
    assert_same(labels, LabelSets(INDICATOR, classes=[4, 0, 1]))


def test_classes_name_the_columns_of_an_array():
    labels = LabelSets.parse(INDICATOR, classes=["wren", "owl", "tit"])
    assert labels.to_sets() == [{"wren", Unknown("tit")}, {"tit"}]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("value", [2, 0.5, 256, -3, np.nan])
def test_other_values_are_named(form, value):
    with pytest.raises(ValueError, match=f"Bag 1 has the value {value}.* for class tit"):
        LabelSets.parse(form([[1.0, 0.0], [0.0, value]]), classes=["owl", "tit"])


@pytest.mark.parametrize(
    ("indicator", "classes", "message"),
    [
        (np.array([["wren", "tit"]]), None, "2-D array of numbers.*list of sets"),
        (np.array([1, 0]), None, r"2-D array of numbers.*shape \(2,\)"),
        (INDICATOR, ["wren"], "3 columns for 1 classes"),
        (INDICATOR, ["wren", "tit", "wren"], "Class 'wren' occurs twice"),
    ],
)
def test_indicators_that_do_not_fit_are_refused(indicator, classes, message):
    with pytest.raises(ValueError, match=message):
        LabelSets(indicator, classes)


# Aligning and selecting


def test_label_sets_parse_to_themselves():
    labels = LabelSets(INDICATOR)
    assert LabelSets.parse(labels) is labels
    assert LabelSets.parse(labels, classes=[2, 1, 0]).indicator.tolist() == [[-1, 0, 1], [1, 0, 0]]


@given(indicators, st.permutations(BIRDS))
def test_reindexing_keeps_the_sets(indicator, order):
    labels = LabelSets(indicator, classes=BIRDS[: indicator.shape[1]])
    moved = labels.reindex(order)
    assert moved.classes.tolist() == order
    assert moved.to_sets() == labels.to_sets()
    assert_same(moved.reindex(labels.classes), labels)


def test_only_absent_or_unknown_classes_can_be_left_out():
    labels = LabelSets([[0, -1, 0], [0, 0, 1]], classes=["owl", "tit", "wren"])
    assert labels.reindex(["wren"]).to_sets() == [set(), {"wren"}]
    with pytest.raises(ValueError, match="Class 'wren' is present in bag 1 but left out"):
        labels.reindex(["owl", "tit"])


@given(indicators, st.data())
def test_selecting_label_sets_selects_sets(indicator, data):
    labels = LabelSets(indicator)
    sets = labels.to_sets()
    positions = data.draw(st.lists(st.integers(-len(sets), len(sets) - 1)))
    key = data.draw(st.slices(len(sets)))
    mask = data.draw(st.lists(st.booleans(), min_size=len(sets), max_size=len(sets)))
    assert labels[positions].to_sets() == [sets[position] for position in positions]
    assert labels[key].to_sets() == sets[key]
    assert labels[mask, ...].to_sets() == list(compress(sets, mask))
    assert labels[-1] == sets[-1]
    assert labels[key].classes.tolist() == labels.classes.tolist()


@pytest.mark.parametrize("key", [2, [True], (slice(None), [2, 1, 0])])
def test_bad_keys_are_index_errors(key):
    with pytest.raises(IndexError):
        LabelSets(INDICATOR)[key]


class Guess(ClassifierMixin, BaseEstimator):
    """Check what scikit-learn hands over as y."""

    def fit(self, X, y):
        assert len(X) == len(y)
        self.labels_ = LabelSets.parse(y)
        return self

    def score(self, X, y):
        classes = self.labels_.classes
        return LabelSets.parse(y, classes=classes).cardinality.mean()


@pytest.mark.parametrize("form", [list, LabelSets.parse])
def test_scikit_learn_splits_label_sets(form):
    sets = [{"owl"}, {"owl", "tit"}, {"tit", Unknown("owl")}, {"owl", "tit", "wren"}] * 3
    bags = Bags.from_list([[[float(bag)]] for bag in range(12)])
    scores = cross_val_score(Guess(), bags, form(sets), cv=KFold(3), error_score="raise")
    assert scores.tolist() == [7 / 4] * 3
    assert cross_val_score(Guess(), bags, form(sets), cv=3).tolist() == [7 / 4] * 3


def test_label_sets_are_an_array():
    labels = LabelSets(INDICATOR)
    np.testing.assert_array_equal(np.asarray(labels), INDICATOR)
    assert np.asarray(labels, dtype=float).dtype == float


def test_many_sets_are_parsed_at_once():
    rng = np.random.default_rng(0)
    indicator = (rng.random((100_000, 10)) < 0.3).astype(np.int8)
    labels = LabelSets(indicator)
    assert_same(LabelSets.parse(labels.to_sets(), classes=labels.classes), labels)


# One class, however it is spelt: composed, decomposed, and with spaces around it.
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


def test_spellings_of_one_label_are_one_class():
    labels = LabelSets.parse([{COMPOSED}, {DECOMPOSED}, {f" {COMPOSED} ", Unknown("tea ")}])
    assert labels.classes.tolist() == [COMPOSED, "tea"]
    assert labels.indicator.tolist() == [[1, 0], [1, 0], [1, -1]]
    with pytest.raises(ValueError, match="both as present and as unknown"):
        LabelSets.parse([{COMPOSED, Unknown(DECOMPOSED)}], [COMPOSED])


def test_columns_of_a_table_are_spelt_like_labels():
    table = pytest.importorskip("pyarrow").table({DECOMPOSED: [1, 0]})
    assert LabelSets.parse(table).classes.tolist() == [COMPOSED]


def test_classes_keep_their_spelling_and_are_found_by_any():
    classes = [DECOMPOSED, " tea"]
    sets = [{COMPOSED}, {"tea", Unknown(DECOMPOSED)}]
    by_name = LabelSets.parse(sets).reindex(classes)
    for labels in (LabelSets.parse(sets, classes), by_name):
        assert labels.classes.tolist() == classes
        assert labels.indicator.tolist() == [[1, 0], [-1, 1]]
    both = [DECOMPOSED, COMPOSED]
    assert LabelSets.parse([{COMPOSED}, {DECOMPOSED}], both).indicator.tolist() == [[0, 1], [1, 0]]
    assert LabelSets.parse([{COMPOSED}]).reindex(both).indicator.tolist() == [[0, 1]]
    told_apart = LabelSets([[1, 0], [0, -1], [-1, 1]], both)
    assert told_apart.reindex([COMPOSED]).indicator.tolist() == [[1], [-1], [1]]


def test_a_label_of_nothing_but_nuls_is_none():
    labels = LabelSets.parse([{"wren\0"}, {"wren"}])
    assert labels.classes.tolist() == ["wren"]


@pytest.mark.parametrize(("groups", "are_alike"), [
    ([[[0, 1]], [[1, 0]]], True), ([[[0, 1]], []], False), ([[[0, 1]], [[0, 1, 2]]], False),
])  # fmt: skip
def test_groups_tell_label_sets_apart(groups, are_alike):
    labels = LabelSets([[-1, -1, 1], [-1, -1, 1]], ["hawk", "owl", "wren"], groups=groups)
    assert (without_contrast(labels) is not None) == are_alike


def test_classes_that_tags_cannot_tell_apart_are_named():
    rng = np.random.default_rng(0)
    y = np.hstack([rng.random((40, 3)) < 0.5, np.ones((40, 1))]).astype(int)
    y[:, 1] = y[:, 0]
    y[0, 3] = 0
    labels = LabelSets(y, ["owl", "wren", "jay", "crow"])
    everywhere, together = hard_to_tell(labels)
    assert everywhere.startswith("crow (98%): in nearly every bag")
    assert together.startswith("owl, wren: always together")
    y[0, :2] = 0, 1
    y[1:3, 3] = 0
    assert hard_to_tell(LabelSets(y, labels.classes)) == []


def test_a_known_label_that_its_bag_lacks_is_named_however_long():
    bags, labels = Bags([[0.0]], [0, 1]), LabelSets([[0, 1]], ["a" * 200, "b"])
    with pytest.raises(ValueError, match="Instance 0 of bag 0 has the label 'aaa"):
        check_known_labels(np.array([0]), bags, labels)
