"""Methods compared on a table: what is fitted to what, chosen by what, and what is bold."""

import csv
import json

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import KFold

from toys import word_lines
from unbag import ORLogisticRegression
from unbag.compare import METHODS, compare, holm, paired_p_value, with_bold
from unbag.model_selection import all_measures
from unbag.paper import SIM
from unbag.tables import Roles, read

ROLES = Roles(bag="word", labels="tags", instance_labels="letter", carry=("note",))


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("\n".join(word_lines()) + "\n")
    return path


def by_hand(path, model):
    """Measure a model on the three folds of a first look, in percent."""
    table = read(path, ROLES)
    bags, labels = table.bags, table.labels
    folds = KFold(3, shuffle=True, random_state=0).split(range(len(bags)))
    found = [
        all_measures(model.fit(bags[train], labels[train]), bags[test], labels[test])
        for train, test in folds
    ]
    return {name: 100 * np.array([each[name] for each in found]) for name in found[0]}


@pytest.fixture
def made(words, tmp_path):
    table = compare(
        words, ROLES, methods=["unbag", "sim", "dummy-bags"], quick=True, out=tmp_path / "out"
    )
    return {(record["method"], record["measure"]): record for record in table.records}


def test_figures_are_those_of_fits_to_the_training_bags(words, made):
    for name, values in by_hand(words, ORLogisticRegression()).items():
        record = made["MLR, unbag's default", name]
        assert record["ours"] == pytest.approx(values.mean(), abs=1e-9)
        assert record["std"] == pytest.approx(values.std(ddof=1), abs=1e-9)
        assert record["settings_tried"] == 1
        assert not record["bold"], "a first look"


def test_settings_are_chosen_by_the_hamming_loss_of_the_test_bags(words, made):
    settings = METHODS["sim"].quick
    tried = [by_hand(words, SIM(**setting)) for setting in settings]
    best = int(np.argmin([each["hamming_loss"].mean() for each in tried]))
    for name, values in tried[best].items():
        record = made["SIM", name]
        assert record["setting"] == settings[best]
        assert record["settings_tried"] == 2
        assert record["ours"] == pytest.approx(values.mean(), abs=1e-9)


def test_who_answers_for_bags_alone_has_no_instance_accuracy(made):
    measures = {measure for method, measure in made if method == "dummy, bags alone"}
    assert measures == {
        "hamming_loss", "ranking_loss", "average_precision", "one_error", "coverage",
    }  # fmt: skip


def test_what_is_written(words, made, tmp_path):
    folder = tmp_path / "out" / "compare"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["about.json", "compare.csv", "compare.md"]
    with (folder / "compare.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "data", "method", "measure", "ours", "std", "p_value", "p_holm", "bold",
        "settings_tried", "setting",
    ]  # fmt: skip
    assert {row["data"] for row in rows} == {"words.csv"}
    assert len(rows) == len(made)
    about = json.loads((folder / "about.json").read_text())
    assert (about["level"], about["seed"], about["tables"]) == ("quick", 0, ["compare"])
    assert {"python", "unbag", "machine"} < about.keys()


def test_bold_is_for_methods_that_compete(words, tmp_path):
    """What sees instance labels, or nothing, is a bound: never bold, whatever its figures are."""
    table = compare(words, ROLES, methods=["dummy", "unbag"], out=tmp_path / "out")
    bold = {(record["method"], record["bold"]) for record in table.records}
    assert bold == {("dummy", False), ("MLR, unbag's default", True)}
    assert "10 folds; seed 0." in table.notes[0]


def test_what_cannot_be_compared_is_named(words, tmp_path):
    with pytest.raises(ValueError, match="Unknown method 'magic'; there are mlr, "):
        compare(words, ROLES, methods=["magic"], out=tmp_path / "out")
    with pytest.raises(ValueError, match="n_jobs must be a number"):
        compare(words, ROLES, n_jobs=0, out=tmp_path / "out")
    header, *lines = word_lines()
    words.write_text("\n".join([header, *(line for line in lines if line < "w005")]) + "\n")
    with pytest.raises(ValueError, match=r"words\.csv has only 5 bags: 10 folds need at least 10"):
        compare(words, ROLES, methods=["dummy"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.torch if n == "network" else ()) for n in METHODS],
)
def test_who_has_probabilities_predicts_what_is_likely(name):
    for setting in (METHODS[name].settings[0], METHODS[name].settings_at(quick=True)[0]):
        model = METHODS[name].model(setting, seed=3)
        if hasattr(model, "threshold"):
            assert model.threshold == 0.5
        assert {value for key, value in model.get_params().items()
                if key.rpartition("__")[2] == "random_state"} <= {3}  # fmt: skip


def test_paired_differences_without_spread_are_no_matter_of_a_test():
    assert paired_p_value([70.0, 71.0], [70.0, 71.0]) == 1.0
    assert paired_p_value([71.0, 72.0], [70.0, 71.0]) == 0.0
    # Nor are those of a single fold, however often it was drawn.
    assert paired_p_value([[71.0, 72.0, 74.0]], [[70.0, 71.0, 71.0]]) == 0.0


def test_the_variance_is_corrected_as_nadeau_and_bengio_do():
    """Differences 1, 2, 3, 2: mean 2, variance 2/3; four folds of which three train."""
    some, others = np.array([70.0, 60.0, 74.0, 66.0]), np.array([69.0, 58.0, 71.0, 64.0])
    statistic = 2 / np.sqrt((1 / 4 + 1 / 3) * 2 / 3)
    expected = 2 * stats.t.sf(statistic, 3)
    assert paired_p_value(some, others) == pytest.approx(expected)
    assert expected > stats.ttest_rel(some, others).pvalue


def test_folds_are_the_units_however_often_data_are_drawn(rng):
    some, others = rng.normal(70, 3, (10, 1)), rng.normal(68, 3, (10, 1))
    once = paired_p_value(some, others)
    assert paired_p_value(np.repeat(some, 5, axis=1), np.repeat(others, 5, axis=1)) == (
        pytest.approx(once)
    )
    draws = rng.normal(0, 3, (10, 5))
    assert paired_p_value(some + draws, others + draws) == pytest.approx(once)


def test_bold_is_corrected_for_all_tests_of_a_table():
    alone = [{"p_value": None, "bold": True}, {"p_value": 0.02, "bold": False}]
    assert [each["bold"] for each in with_bold(alone)] == [True, False]
    table = with_bold(alone * 3)
    assert [each["bold"] for each in table] == [True] * 6
    assert [each["p_holm"] for each in table] == pytest.approx([None, 0.06] * 3)
    # Who is outside is not bold, and no test.
    outside = {"p_value": None, "bold": False}
    assert [each["bold"] for each in with_bold([*alone, outside])] == [True, False, False]


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        # 4 * 0.005; 3 * 0.01; 2 * 0.03; and 1 * 0.04, which may not be below the one before.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.02], [0.02]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([0.03, 0.03], [0.06, 0.06]),
        ([], []),
    ],
)
def test_holm_by_hand(p_values, corrected):
    np.testing.assert_allclose(holm(p_values), corrected)
