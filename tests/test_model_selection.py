"""Scorers on a toy whose answers are visible by eye; the laws of a splitter; tables of folds."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from toys import BagsOnly, Shift, Thresholds
from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.model_selection import (
    SCORERS,
    MultilabelStratifiedKFold,
    all_measures,
    cross_validate_bags,
    inductive_accuracy,
    transductive_accuracy,
)
from unbag.tagging import Unknown

# Tits lie below 1, wrens above; the one wren at 0.5 is out of place.
FEATURES = [[0.0], [2.0], [2.0], [0.5], [0.0], [2.0]]
TRUTH = ["tit", "wren", "wren", "wren", "tit", "wren"]
BAGS = Bags(FEATURES, offsets=[0, 2, 4, 6], instance_labels=TRUTH)
SETS = [{"tit", "wren"}, {"wren"}, {"tit", "wren"}]
BY_EYE = {
    "inductive_accuracy": 5 / 6,
    "transductive_accuracy": 1.0,
    "hamming_loss": 1 / 6,
    # Only the second bag has an absent class, and half its instances look like it.
    "ranking_loss": 1 / 3,
    "average_precision": 5 / 6,
    "one_error": 1.0,
    "coverage": 1 / 2,
}
MODEL = Thresholds().fit(BAGS, SETS)


def many_bags(n_copies):
    return Bags.concatenate([BAGS] * n_copies), SETS * n_copies


def test_measures_by_eye():
    assert all_measures(MODEL, BAGS, SETS) == pytest.approx(BY_EYE)


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_agree_with_the_measures(name):
    expected = BY_EYE[name.removeprefix("neg_")] * (-1 if name.startswith("neg_") else 1)
    assert SCORERS[name](MODEL, BAGS, SETS) == pytest.approx(expected)
    assert pickle.loads(pickle.dumps(SCORERS[name]))(MODEL, BAGS, SETS) == pytest.approx(expected)


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_serve_cross_val_score_in_workers(name):
    bags, sets = many_bags(4)
    folds = KFold(4)  # each fold is one copy of the toy
    scores = cross_val_score(Thresholds(), bags, sets, cv=folds, scoring=SCORERS[name], n_jobs=2)
    np.testing.assert_allclose(scores, SCORERS[name](MODEL, BAGS, SETS))


def test_scorers_serve_a_search():
    bags, sets = many_bags(3)
    grid = {"thresholds__cuts": [(1.0,), (3.0,)]}
    pipeline = make_pipeline(Shift(0.0), Thresholds())
    search = GridSearchCV(pipeline, grid, scoring=SCORERS, refit="inductive_accuracy", cv=3)
    search = search.set_params(estimator__shift__by=1.0)
    assert search.fit(bags, sets).best_params_ == {"thresholds__cuts": (1.0,)}
    # Moved up by one, 0.0 stays at the cut and 0.5 passes it.
    assert inductive_accuracy(search, bags) == 1.0
    assert all_measures(search, bags, sets)["hamming_loss"] == 0.0


def test_pipelines_may_have_one_step_or_idle_ones():
    assert inductive_accuracy(make_pipeline(MODEL), BAGS) == pytest.approx(5 / 6)
    idle = make_pipeline("passthrough", None, MODEL)
    assert transductive_accuracy(idle, BAGS, SETS) == 1.0


def test_columns_follow_the_classes_of_the_estimator():
    labels = LabelSets.parse(SETS, classes=["wren", "tit"])
    assert all_measures(MODEL, BAGS, labels) == pytest.approx(BY_EYE)
    assert SCORERS["neg_hamming_loss"](MODEL, BAGS, labels) == pytest.approx(-1 / 6)


def test_unknown_labels_are_left_out():
    sets = [{"tit", "wren"}, {"wren", Unknown("tit")}, {"tit", "wren"}]
    assert SCORERS["neg_hamming_loss"](MODEL, BAGS, sets) == 0.0


def test_measures_without_instances():
    bare = Bags(FEATURES, offsets=[0, 2, 4, 6])
    assert "inductive_accuracy" not in all_measures(MODEL, bare, SETS)
    measured = all_measures(BagsOnly().fit(BAGS, SETS), BAGS, SETS)
    assert set(measured) == set(BY_EYE) - {"inductive_accuracy", "transductive_accuracy"}


def test_scorers_name_what_is_missing():
    with pytest.raises(ValueError, match="no instance_labels"):
        inductive_accuracy(MODEL, Bags(FEATURES, offsets=[0, 2, 4, 6]))
    with pytest.raises(TypeError, match="must be Bags with instance_labels, not list"):
        transductive_accuracy(MODEL, list(BAGS), SETS)
    with pytest.raises(AttributeError, match="predict_instances"):
        inductive_accuracy(BagsOnly(), BAGS)
    with pytest.raises(ValueError, match=r"'owl'.*LabelSets\.parse"):
        SCORERS["neg_coverage"](MODEL, BAGS, [{"owl"}, set(), set()])


@st.composite
def labelled_bags(draw):
    """Number of folds, an indicator of at least as many bags, and a seed."""
    n_splits = draw(st.integers(2, 5))
    shape = draw(st.integers(n_splits, 30)), draw(st.integers(1, 4))
    seed = draw(st.integers(0, 1000))
    indicator = np.random.default_rng(seed).integers(-1, 2, shape)
    return n_splits, indicator, seed


@settings(deadline=None)
@given(labelled_bags())
def test_folds_partition_the_bags_evenly(case):
    n_splits, indicator, seed = case
    folds = MultilabelStratifiedKFold(n_splits, random_state=seed)
    splits = list(folds.split(indicator, indicator))
    assert len(splits) == folds.get_n_splits() == n_splits
    everything = np.arange(len(indicator))
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), everything)
    for train, test in splits:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), everything)
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1


@settings(deadline=None)
@given(labelled_bags(), st.integers(5, 12))
def test_groups_stay_together(case, n_groups):
    n_splits, indicator, seed = case
    groups = np.arange(len(indicator)) % n_groups
    if np.unique(groups).size < n_splits:
        return
    folds = MultilabelStratifiedKFold(n_splits, random_state=seed)
    tests = [test for _, test in folds.split(indicator, indicator, groups)]
    assert sorted(np.concatenate(tests)) == list(range(len(indicator)))
    assert sum(np.unique(groups[test]).size for test in tests) == np.unique(groups).size


def skewed_labels(n_bags=1000):
    """Twenty classes, from present in one bag of a hundred to one of three."""
    rng = np.random.default_rng(7)
    return (rng.random((n_bags, 20)) < np.geomspace(0.01, 0.3, 20)).astype(int)


def unevenness(splitter, y, groups=None):
    """Mean over classes of the standard deviation of its count over the folds."""
    counts = [y[test].sum(axis=0) for _, test in splitter.split(y, y, groups)]
    return np.std(counts, axis=0).mean()


def test_classes_are_spread_evenly():
    y = skewed_labels()
    ours = unevenness(MultilabelStratifiedKFold(10, random_state=0), y)
    assert ours < 0.25 * unevenness(KFold(10, shuffle=True, random_state=0), y)
    assert ours < 0.7


def test_rare_classes_reach_different_folds():
    y = np.zeros((50, 3), dtype=int)
    y[:5, 0] = y[3:8, 1] = y[:, 2] = 1
    tests = [test for _, test in MultilabelStratifiedKFold(5, random_state=1).split(y, y)]
    assert [y[test].sum(axis=0).tolist() for test in tests] == [[1, 1, 10]] * 5


def test_rare_classes_are_dealt_out_first():
    y = (np.random.default_rng(7).random((150, 13)) < 0.25).astype(int)
    folds = [MultilabelStratifiedKFold(5, random_state=seed) for seed in range(20)]
    # 0.51; in the order of the bags alone it would be 0.64, with common classes first 0.61.
    assert np.mean([unevenness(splitter, y) for splitter in folds]) < 0.56


def test_empty_label_sets_are_spread_evenly():
    y = np.zeros((40, 1), dtype=int)
    y[:30] = 1
    tests = [test for _, test in MultilabelStratifiedKFold(5, random_state=1).split(y, y)]
    assert [y[test].sum() for test in tests] == [6] * 5


def test_groups_are_spread_evenly():
    y = skewed_labels()
    # Each site has its own classes: a site's bags are neighbours once sorted by their rarest class.
    y = y[np.argsort(np.where(y.any(axis=1), y.argmax(axis=1), 20), kind="stable")]
    # Names without order, as GroupKFold deals groups of equal size out by name.
    groups = np.random.default_rng(0).permutation(100)[np.arange(len(y)) // 10]
    ours = MultilabelStratifiedKFold(5, random_state=0)
    assert unevenness(ours, y, groups) < 0.6 * unevenness(GroupKFold(5), y, groups)
    sizes = [len(test) for _, test in ours.split(y, y, groups)]
    assert max(sizes) - min(sizes) <= 10


def test_one_large_group_fills_a_fold():
    groups = np.array(list("abcdef") + ["site"] * 6)
    y = np.ones((12, 1), dtype=int)
    folds = MultilabelStratifiedKFold(3, shuffle=False)
    assert sorted(len(test) for _, test in folds.split(y, y, groups)) == [3, 3, 6]


def test_unknown_labels_do_not_count():
    known = skewed_labels(200)
    unknown = np.where((known == 0) & (np.arange(200)[:, None] % 3 == 0), -1, known)
    folds = MultilabelStratifiedKFold(4, random_state=3)
    for (_, expected), (_, test) in zip(
        folds.split(known, known), folds.split(unknown, unknown), strict=True
    ):
        np.testing.assert_array_equal(test, expected)


def test_seeds_decide_the_folds():
    y = skewed_labels(100)

    def tests(**parameters):
        folds = MultilabelStratifiedKFold(4, **parameters)
        return [test.tolist() for _, test in folds.split(y, y)]

    assert tests(random_state=0) == tests(random_state=0)
    assert tests(random_state=0) != tests(random_state=1)
    assert tests(shuffle=False) == tests(shuffle=False)


def test_folds_are_the_same_on_every_processor():
    code = (
        "import numpy as np; from unbag import MultilabelStratifiedKFold as Folds\n"
        "y = np.random.default_rng(0).random((150, 24)) < 0.15\n"
        "print([test.tolist() for _, test in Folds(10, random_state=0).split(np.zeros(150), y)])"
    )
    default = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    folds = {
        subprocess.run(
            [sys.executable, "-c", code], env=default | processor, capture_output=True, text=True,
            check=True,
        ).stdout
        for processor in ({}, {"OPENBLAS_CORETYPE": "Prescott"}, {"OPENBLAS_CORETYPE": "Haswell"})
    }  # fmt: skip
    assert len(folds) == 1


def test_all_forms_of_labels_give_the_same_folds():
    indicator = skewed_labels(60)[:, -3:]
    labels = LabelSets(indicator, ["owl", "tit", "wren"])
    forms = [indicator, sparse.csr_matrix(indicator), labels, labels.to_sets()]
    splits = [MultilabelStratifiedKFold(3, random_state=0).split(indicator, y) for y in forms]
    for folds in zip(*splits, strict=True):
        for _, test in folds:
            np.testing.assert_array_equal(test, folds[0][1])


@pytest.mark.parametrize(
    "y", [["a"] * 6 + ["b"] * 3, [1] * 6 + [0] * 3, np.array([True] * 6 + [False] * 3)]
)
def test_one_class_per_bag(y):
    tests = [test for _, test in MultilabelStratifiedKFold(3, random_state=0).split(y, y)]
    assert [sum(y[bag] == y[0] for bag in test) for test in tests] == [2, 2, 2]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_splits": 1}, "at least 2, not 1"),
        ({"n_splits": 2.5}, "at least 2, not 2.5"),
        ({"shuffle": False, "random_state": 0}, "no effect without shuffle"),
    ],
)
def test_splitter_refuses_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        MultilabelStratifiedKFold(**parameters)


def test_splitter_refuses_data():
    folds, y = MultilabelStratifiedKFold(3), [{"a"}, {"a"}, {"b"}, set()]
    with pytest.raises(ValueError, match="2 bags cannot fill n_splits=3"):
        list(folds.split(y[:2], y[:2]))
    with pytest.raises(ValueError, match="2 groups cannot fill n_splits=3"):
        list(folds.split(y, y, groups=[0, 0, 1, 1]))
    with pytest.raises(ValueError, match="not None"):
        list(folds.split(y, None))


def test_splitter_shows_its_parameters():
    shown = repr(MultilabelStratifiedKFold(3, random_state=5))
    assert shown == "MultilabelStratifiedKFold(n_splits=3, random_state=5, shuffle=True)"


def test_table_has_one_row_per_fold():
    bags, sets = many_bags(6)
    folds = cross_validate_bags(Thresholds(), bags, sets, cv=3, random_state=0)
    counted = ["fold", "n_train", "n_test", "fit_time", "score_time"]
    assert list(folds) == [*counted, *BY_EYE]
    assert folds["fold"].tolist() == [0, 1, 2]
    assert folds["n_train"].tolist() == [12] * 3
    assert folds["n_test"].tolist() == [6] * 3
    # Stratified: the same two {wren} bags and four {tit, wren} bags in every fold.
    for name, value in BY_EYE.items():
        np.testing.assert_allclose(folds[name], value, err_msg=name)


def test_tables_become_data_frames():
    pandas = pytest.importorskip("pandas")
    folds = cross_validate_bags(Thresholds(), *many_bags(2), cv=2, random_state=0)
    assert pandas.DataFrame(folds).shape == (2, 12)


def test_folds_of_ones_own_and_scoring():
    bags, sets = many_bags(3)
    groups = np.repeat([0, 1, 2], 3)
    folds = cross_validate_bags(
        Thresholds(), bags, sets, groups=groups, cv=GroupKFold(3), scoring=SCORERS, n_jobs=2
    )
    np.testing.assert_allclose(folds["neg_hamming_loss"], -1 / 6)
    splits = [([0, 1, 2], [3, 4, 5])]
    several = cross_validate_bags(Thresholds(), bags, sets, cv=splits, scoring=SCORERS)
    for names in ("average_precision", ["average_precision", "neg_one_error"]):
        named = cross_validate_bags(Thresholds(), bags, sets, cv=splits, scoring=names)
        np.testing.assert_allclose(named["average_precision"], several["average_precision"])
        assert ("neg_one_error" in named) == isinstance(names, list)
    with pytest.raises(ValueError, match="scoring is 'accuracy': give one of inductive_accuracy"):
        cross_validate_bags(Thresholds(), bags, sets, cv=splits, scoring="accuracy")
    single = cross_validate_bags(Thresholds(), bags, sets, cv=splits, scoring=inductive_accuracy)
    np.testing.assert_allclose(single["score"], [5 / 6])


def test_groups_reach_the_default_folds():
    bags, sets = many_bags(4)
    groups = np.repeat([0, 1], [9, 3])
    folds = cross_validate_bags(Thresholds(), bags, sets, groups=groups, cv=2, random_state=0)
    assert sorted(folds["n_test"].tolist()) == [3, 9]


def test_classes_that_only_test_bags_have():
    bags, sets = many_bags(2)
    sets[0] = {"tit", "wren", "zebra finch"}
    folds = cross_validate_bags(Thresholds(), bags, sets, cv=2, random_state=0)
    assert np.isfinite(folds["hamming_loss"]).all()


def test_failures_are_loud():
    with pytest.raises(AttributeError, match="predict_instances"):
        cross_validate_bags(BagsOnly(), BAGS, SETS, cv=3, scoring=inductive_accuracy)
    with pytest.raises(ValueError, match="write"):
        cross_validate_bags(Thresholds(), BAGS, ["tit", "wren", "tit"], cv=3)
