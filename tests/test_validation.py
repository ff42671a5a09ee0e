"""Label sets as a column of pandas or polars gives them: strings to split, an index to align."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler

from unbag import (
    BagPipeline,
    Bags,
    DummyBags,
    LabelSets,
    OnInstances,
    ORLogisticRegression,
    SupervisedLogisticRegression,
    Unknown,
    cross_validate_bags,
)
from unbag.model_selection import SCORERS, MultilabelStratifiedKFold, all_measures
from unbag.validation import as_labels, in_bag_order

SETS = [{"owl", "wren"}, {"wren"}, {"owl"}, {"owl", "wren"}, {"wren"}, {"owl"}]
CELLS = ["owl|wren", "wren", "owl", "wren | owl", "wren", "owl"]
IDS = ["dawn", "day", "dusk", "eve", "night", "noon"]
ANY_ORDER = [4, 0, 5, 2, 1, 3]


def make_bags(ids=IDS, seed=0):
    """Owls lie at -2, wrens at 2; each bag has two of each of its labels."""
    random = np.random.default_rng(seed)
    places = {"owl": -2, "wren": 2}
    arrays = [
        random.normal(np.repeat([places[name] for name in sorted(labels)], 2)[:, None], size=None)
        for labels in SETS
    ]
    return Bags.from_list(arrays, ids=ids)


@pytest.fixture(scope="module")
def bags():
    return make_bags()


@pytest.fixture(scope="module")
def model(bags):
    return ORLogisticRegression().fit(bags, SETS)


FORMS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda cells: np.array(cells, dtype=object),
    "pandas": pd.Series,
    "pandas strings": lambda cells: pd.Series(cells, dtype="string"),
    "pandas categories": lambda cells: pd.Series(pd.Categorical(cells)),
    "pandas, other index": lambda cells: pd.Series(cells, index=list("abcdef")),
    "pandas, ids in other order": lambda cells: pd.Series(cells, index=IDS).iloc[ANY_ORDER],
    "polars": pl.Series,
    "polars categories": lambda cells: pl.Series(cells, dtype=pl.Categorical),
}


# Strings that hold several labels


@pytest.mark.parametrize("form", FORMS)
def test_strings_are_split_as_on_the_command_line(form, bags, model):
    y = FORMS[form](CELLS)
    fitted = ORLogisticRegression().fit(bags, y)
    assert fitted.classes_.tolist() == ["owl", "wren"]
    assert not fitted.single_label_
    np.testing.assert_array_equal(fitted.coef_, model.coef_)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["annotate", "annotate_proba", "log_likelihood", "score"])
def test_every_method_that_takes_labels_splits_them(form, method, bags, model):
    answer = getattr(model, method)
    np.testing.assert_array_equal(answer(bags, FORMS[form](CELLS)), answer(bags, SETS))


def test_question_marks_and_missing_cells_are_those_of_the_command_line(bags):
    cells = pd.Series(["owl|?wren", "wren", None, np.nan, "", "owl"], dtype=object)
    expected = [{"owl", Unknown("wren")}, {"wren"}, None, None, None, {"owl"}]
    assert as_labels(cells, bags) == expected


def test_one_label_per_bag_stays_one_label_per_bag(bags):
    y = pd.Series(["owl", "wren", "owl", "owl", "wren", "wren"], index=IDS)
    fitted = DummyBags().fit(bags, y)
    assert fitted.single_label_
    assert fitted.predict(bags).shape == (6,)


def test_where_no_string_of_a_part_holds_two_labels_they_are_still_sets(bags, model):
    np.testing.assert_array_equal(
        model.log_likelihood(bags[1:3], ["wren", "owl"]),
        model.log_likelihood(bags[1:3], [{"wren"}, {"owl"}]),
    )


def test_what_cannot_be_split_names_its_bag(bags):
    with pytest.raises(ValueError, match="Bag dusk has a question mark without a label"):
        ORLogisticRegression().fit(bags, ["owl|wren", "wren", "?|owl", "owl", "owl", "owl"])
    with pytest.raises(ValueError, match=r"y: 1 of 6 bags has nothing .* such as 'day'"):
        ORLogisticRegression().fit(bags, ["owl", None, "owl", "wren", "owl", "owl"])
    with pytest.raises(ValueError, match=r"write set\('owl\|wren'\.split\('\|'\)\)"):
        LabelSets.parse(CELLS)


# Rows that are bags of one instance


def frame_of(bags):
    frame = pd.DataFrame(bags.X, columns=["pitch"])
    frame["night"] = np.repeat(bags.ids, bags.sizes)
    frame["tags"] = np.repeat(CELLS, bags.sizes)
    return frame.sample(frac=1, random_state=0)


@pytest.mark.parametrize("as_rows", [lambda X: X, np.asarray, lambda X: X.to_numpy().tolist()])
def test_rows_with_strings_of_labels_warn_and_stay_rows(as_rows, bags):
    frame = frame_of(bags)
    X = as_rows(frame[["pitch"]])
    with pytest.warns(UserWarning, match=r"'.*\|.*' was taken for one label.*from_table"):
        fitted = DummyBags().fit(X, frame["tags"])
    assert set(fitted.classes_) == set(CELLS)
    assert fitted.predict(X).shape == (len(frame),)


def test_a_warning_stands_on_the_line_that_asked(bags):
    rows, labels = bags.X[:2], ["owl|wren", "owl"]
    with pytest.warns(UserWarning, match="one label") as in_fit:
        model = ORLogisticRegression().fit(rows, labels)
    with pytest.warns(UserWarning, match="one label") as in_score:
        model.score(rows, labels)
    assert {each.filename for each in [*in_fit, *in_score]} == {__file__}


def test_rows_go_by_position_whatever_their_index(bags):
    X = bags.X
    y = pd.Series(np.where(X[:, 0] > 0, "wren", "owl"), index=np.arange(len(X))[::-1])
    weight = pd.Series(np.arange(len(X)), index=np.arange(len(X))[::-1])
    fitted = ORLogisticRegression().fit(X, y, sample_weight=weight)
    expected = ORLogisticRegression().fit(X, y.to_numpy(), sample_weight=weight.to_numpy())
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    assert fitted.score(X, y, sample_weight=weight) == 1.0


def test_rows_with_one_label_each_do_not_warn(bags):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DummyBags().fit(bags.X, ["owl"] * bags.n_instances)


def test_a_column_of_the_table_of_instances_is_refused_with_the_remedy(bags):
    frame = frame_of(bags)
    made = Bags.from_table(frame, bag="night", features=["pitch"])
    with pytest.raises(ValueError, match=r"one per instance: take one per bag.*groupby"):
        ORLogisticRegression().fit(made, frame["tags"])
    with pytest.raises(ValueError, match=r"several entries for bag '.*groupby\(level=0"):
        ORLogisticRegression().fit(made, frame.set_index("night")["tags"])
    one_each = frame.groupby("night")["tags"].first()
    fitted = ORLogisticRegression().fit(made, one_each)
    truth = [CELLS[IDS.index(name)] for name in made.ids]
    np.testing.assert_array_equal(fitted.coef_, ORLogisticRegression().fit(made, truth).coef_)


# An index of bag ids


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(SETS, index=IDS),
        pd.Series([sorted(labels) for labels in SETS], index=IDS),
        pd.Series(CELLS, index=IDS),
        pd.DataFrame(LabelSets.parse(SETS).indicator, columns=["owl", "wren"], index=IDS),
        pd.Series(CELLS, index=pd.CategoricalIndex(IDS)),
    ],
    ids=["sets", "lists", "strings", "indicator", "categories"],
)
def test_an_index_of_ids_aligns(values, bags, model):
    shuffled = values.iloc[ANY_ORDER]
    np.testing.assert_array_equal(ORLogisticRegression().fit(bags, shuffled).coef_, model.coef_)
    np.testing.assert_array_equal(
        model.log_likelihood(bags, shuffled), model.log_likelihood(bags, SETS)
    )


@pytest.mark.parametrize(
    "ids",
    [
        [30, 10, 20, 60, 50, 40],
        pd.date_range("2024-05-01", periods=6).to_numpy(),
        pd.date_range("2024-05-01", periods=6).tolist(),
        [3.5, 1.5, 2.5, 6.5, 5.5, 4.5],
    ],
    ids=["numbers", "numpy dates", "dates", "floats"],
)
def test_ids_of_any_type_align(ids):
    bags = make_bags(ids)
    values = pd.Series(np.arange(6), index=pd.Index(ids)).iloc[ANY_ORDER]
    assert in_bag_order(values, bags, "y").tolist() == [0, 1, 2, 3, 4, 5]


def test_a_selection_that_shows_a_bag_twice_is_aligned(bags):
    twice = bags[[1, 0, 1]]
    assert in_bag_order(pd.Series([10, 20], index=["dawn", "day"]), twice, "y").tolist() == [
        20,
        10,
        20,
    ]
    values = pd.Series(np.arange(6), index=IDS).iloc[[1, 0, 1]]
    assert in_bag_order(values, twice, "y").tolist() == [1, 0, 1]


@pytest.mark.parametrize("index", [pd.RangeIndex(6), pd.RangeIndex(6, 12), list("abcdef")])
def test_an_index_that_knows_nothing_of_the_bags_goes_by_position(index, bags):
    assert in_bag_order(pd.Series(CELLS, index=index), bags, "y").tolist() == CELLS


def test_an_index_that_counts_from_one_goes_by_position_if_it_counts_rows():
    bags = make_bags([1, 2, 3, 4, 5, 6])
    assert in_bag_order(pd.Series(CELLS), bags, "y").tolist() == CELLS


@pytest.mark.parametrize(
    ("index", "fault"),
    [
        (["dawn", "day", "dusk", "eve", "night", "midday"], "lacks 'noon' and has 'midday'"),
        (["dawn", "day", "dusk", "eve", "night"], "lacks 'noon':"),
        ([*IDS, "midday"], "has 'midday', which is none"),
    ],
)
def test_an_index_of_some_ids_is_refused(index, fault, bags):
    y = pd.Series(["owl"] * len(index), index=index)
    with pytest.raises(ValueError, match=rf"index of y .*{fault}.*y\.loc\[bags\.ids\]"):
        ORLogisticRegression().fit(bags, y)


def test_numbers_and_their_texts_are_not_taken_for_strangers():
    bags = make_bags([3, 1, 2, 6, 5, 4])
    y = pd.Series(CELLS, index=["1", "2", "3", "4", "5", "6"])
    with pytest.raises(ValueError, match="lacks 3 and has '1', which is none"):
        ORLogisticRegression().fit(bags, y)


def test_an_index_that_counts_and_is_all_ids_aligns_with_a_warning():
    bags = make_bags([3, 1, 2, 0, 5, 4])
    with pytest.warns(UserWarning, match=r"aligned with the bags by id.*to_numpy\(\)"):
        aligned = in_bag_order(pd.Series(np.arange(6)), bags, "y")
    assert aligned.tolist() == [3, 1, 2, 0, 5, 4]


# Weights, groups and labels of instances


@pytest.mark.parametrize("estimator", [ORLogisticRegression(), DummyBags()])
def test_weights_are_aligned(estimator, bags):
    weight = np.arange(1.0, 7.0)
    series = pd.Series(weight, index=IDS).iloc[ANY_ORDER]
    first = estimator.fit(bags, SETS, sample_weight=weight).decision_function(bags)
    second = estimator.fit(bags, SETS, sample_weight=series).decision_function(bags)
    np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match=r"The index of sample_weight .*lacks 'noon'"):
        estimator.fit(bags, SETS, sample_weight=series.drop("noon"))


def test_weights_of_a_score_are_aligned(bags, model):
    weight = pd.Series([1.0, 0, 0, 0, 0, 0], index=IDS)
    wrong = [{"owl", "wren"}, *[{"wren"}] * 5]
    expected = model.score(bags, wrong, sample_weight=weight.to_numpy())
    assert model.score(bags, wrong, sample_weight=weight.iloc[ANY_ORDER]) == expected


def test_labels_of_instances_in_the_order_of_a_table_are_not_guessed(bags):
    frame = frame_of(bags)
    made = Bags.from_table(frame, bag="night", features=["pitch"])
    frame["known"] = np.where(frame["pitch"] > 0, "wren", None)
    y = frame.groupby("night")["tags"].first()
    with pytest.raises(ValueError, match=r"to_numpy\(\)\[bags\.rows\]"):
        ORLogisticRegression().fit(made, y, instance_labels=frame["known"])
    known = frame["known"].to_numpy()[made.rows]
    fitted = ORLogisticRegression().fit(made, y, instance_labels=known)
    np.testing.assert_array_equal(
        fitted.annotate(made, y, instance_labels=known)[made.X[:, 0] > 0], "wren"
    )
    # Where bags are runs of rows, both orders are one.
    sorted_frame = frame.sort_values("night")
    in_runs = Bags.from_table(sorted_frame, bag="night", features=["pitch"])
    ORLogisticRegression().fit(in_runs, y, instance_labels=sorted_frame["known"])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_labels_of_instances_are_not_known(missing, bags):
    known = np.array([missing] * bags.n_instances, dtype=object)
    known[0] = "owl"
    fitted = ORLogisticRegression().fit(bags, SETS, instance_labels=known)
    expected = ORLogisticRegression().fit(bags, SETS, ["owl"] + [None] * (bags.n_instances - 1))
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)


@pytest.mark.parametrize("estimator", [ORLogisticRegression()])
def test_a_label_that_its_bag_forbids_is_named_with_the_bag(estimator, bags):
    known = np.full(bags.n_instances, None, dtype=object)
    known[bags.offsets[2] + 1] = "wren"
    fault = r"Instance 1 of bag dusk has the label 'wren', which is not among .*: \['owl'\]"
    with pytest.raises(ValueError, match=fault):
        estimator.fit(bags, SETS, instance_labels=known)
    with pytest.raises(ValueError, match=fault):
        estimator.fit(bags, SETS).annotate(bags, SETS, instance_labels=known)
    known[bags.offsets[2] + 1] = "wrn"
    with pytest.raises(ValueError, match="Instance 1 of bag dusk has the label 'wrn'"):
        estimator.fit(bags, SETS, instance_labels=known)


# Splitters, scorers and pipelines


def test_folds_are_stratified_by_the_labels_in_strings(bags):
    folds = MultilabelStratifiedKFold(2, shuffle=False)
    expected = [test.tolist() for _, test in folds.split(bags, SETS)]
    shuffled = pd.Series(CELLS, index=IDS).iloc[ANY_ORDER]
    for X, y in [(bags, CELLS), (np.zeros(6), CELLS), (bags, shuffled)]:
        assert [test.tolist() for _, test in folds.split(X, y)] == expected


def test_groups_are_aligned(bags):
    groups = np.array([0, 0, 1, 1, 2, 2])
    series = pd.Series(groups, index=IDS).iloc[ANY_ORDER]
    folds = MultilabelStratifiedKFold(3, shuffle=False)
    expected = [test.tolist() for _, test in folds.split(bags, SETS, groups)]
    assert [test.tolist() for _, test in folds.split(bags, SETS, series)] == expected


def test_cross_validation_reads_strings_and_ids(bags):
    options = {"cv": 2, "random_state": 0, "scoring": {"loss": SCORERS["neg_hamming_loss"]}}
    expected = cross_validate_bags(ORLogisticRegression(), bags, SETS, **options)["loss"]
    for y in [CELLS, pd.Series(CELLS, index=IDS).iloc[ANY_ORDER]]:
        found = cross_validate_bags(ORLogisticRegression(), bags, y, **options)["loss"]
        np.testing.assert_array_equal(found, expected)


def test_scorers_read_strings_and_ids(bags, model):
    shuffled = pd.Series(CELLS, index=IDS).iloc[ANY_ORDER]
    for name, scorer in SCORERS.items():
        if "inductive" not in name and "transductive" not in name:
            assert scorer(model, bags, shuffled) == scorer(model, bags, SETS)
    assert all_measures(model, bags, shuffled) == all_measures(model, bags, SETS)


def test_searches_of_scikit_learn_take_a_column(bags):
    y = pd.Series(CELLS)
    double = Bags.concatenate([bags, make_bags([name + "2" for name in IDS], seed=1)])
    y = pd.concat([y, y], ignore_index=True)
    scores = cross_val_score(ORLogisticRegression(), double, y, cv=2, error_score="raise")
    assert np.isfinite(scores).all()
    search = GridSearchCV(ORLogisticRegression(), {"alpha": [0.1, 1.0]}, cv=2, error_score="raise")
    assert search.fit(double, y).best_estimator_.classes_.tolist() == ["owl", "wren"]


def test_pipelines_take_a_column(bags):
    shuffled = pd.Series(CELLS, index=IDS).iloc[ANY_ORDER]
    steps = [("scale", OnInstances(StandardScaler())), ("model", ORLogisticRegression())]
    pipeline = BagPipeline(steps).fit(bags, shuffled)
    for method in ["annotate_proba", "log_likelihood", "score"]:
        answer = getattr(pipeline, method)
        np.testing.assert_array_equal(answer(bags, shuffled), answer(bags, SETS))


def test_the_supervised_bound_takes_a_column(bags):
    known = np.where(bags.X[:, 0] > 0, "wren", "owl")
    shuffled = pd.Series(CELLS, index=IDS).iloc[ANY_ORDER]
    fitted = SupervisedLogisticRegression().fit(bags, shuffled, instance_labels=known)
    assert fitted.classes_.tolist() == ["owl", "wren"]
