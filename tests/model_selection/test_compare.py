"""Methods compared on a table: what is fitted to what, chosen by what, and done only once."""

import csv
import json
from itertools import product

import numpy as np
import pytest
from sklearn.model_selection import KFold

from toys import word_lines
from unbag import SIM, ORLogisticRegression
from unbag.io import Roles, read
from unbag.model_selection import all_measures
from unbag.model_selection.compare import Trial, compare, compared_method
from unbag.model_selection.methods import FAST_DRAWN, METHODS

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
    (table,) = compare(
        words, ROLES, methods=["unbag", "sim", "dummy-bags"], level="quick", out=tmp_path / "out"
    )
    return {(record["method"], record["measure"]): record for record in table.records}


def test_figures_are_those_of_fits_to_the_training_bags(words, made):
    for name, values in by_hand(words, ORLogisticRegression(random_state=0)).items():
        record = made["MLR, unbag's default", name]
        assert record["ours"] == pytest.approx(values.mean(), abs=1e-9)
        assert record["std"] == pytest.approx(values.std(ddof=1), abs=1e-9)
        assert record["settings_tried"] == 1
        assert not record["bold"], "a first look"


def test_settings_are_chosen_by_the_hamming_loss_of_the_test_bags(words, made):
    settings = METHODS["sim"].grids["quick"]
    tried = [by_hand(words, SIM(**setting, random_state=0)) for setting in settings]
    best = int(np.argmin([each["hamming_loss"].mean() for each in tried]))
    for name, values in tried[best].items():
        record = made["SIM", name]
        assert record["setting"] == settings[best]
        assert record["settings_tried"] == 2
        assert record["ours"] == pytest.approx(values.mean(), abs=1e-9)


def test_who_answers_for_bags_alone_has_no_instance_accuracy(made):
    measures = {measure for method, measure in made if method == "dummy"}
    assert measures == {
        "hamming_loss", "ranking_loss", "average_precision", "one_error", "coverage",
    }  # fmt: skip


def test_what_is_written(words, made, tmp_path):
    folder = tmp_path / "out" / "compare"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["about.json", "compare.csv", "compare.md", "units.jsonl.gz"]
    with (folder / "compare.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "data", "method", "measure", "ours", "std", "draw_std", "p_value", "p_holm", "bold",
        "settings_tried", "setting",
    ]  # fmt: skip
    assert {row["data"] for row in rows} == {"words.csv"}
    assert len(rows) == len(made)
    about = json.loads((folder / "about.json").read_text())
    assert (about["level"], about["seed"], about["tables"]) == ("quick", 0, ["compare"])
    assert {"python", "unbag", "machine"} < about.keys()


def test_a_run_that_was_stopped_goes_on(words, tmp_path, monkeypatch):
    """No fit twice, and the same table as without a stop."""
    options = {"methods": ["sim", "dummy"], "level": "quick"}
    (whole,) = compare(words, ROLES, out=tmp_path / "whole", **options)
    done, result = [], Trial.result

    def counted(trial):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(trial.key)
        return result(trial)

    monkeypatch.setattr(Trial, "result", counted)
    with pytest.raises(KeyboardInterrupt):
        compare(words, ROLES, out=tmp_path / "halves", **options)
    monkeypatch.setattr(Trial, "result", lambda trial: done.append(trial.key) or result(trial))
    (table,) = compare(words, ROLES, out=tmp_path / "halves", **options)
    assert table == whole
    assert len(done) == len(set(done)) == 3 * (2 + 1)
    # Another seed and another state of the table are other work.
    compare(words, ROLES, out=tmp_path / "halves", seed=1, **options)
    assert len(done) == 18
    words.write_text(words.read_text().replace("w001", "v001"))
    compare(words, ROLES, out=tmp_path / "halves", **options)
    assert len(done) == 27


def test_two_dummies_are_told_apart(words, tmp_path):
    (table,) = compare(
        words, ROLES, methods=["dummy", "dummy-bags"], level="quick", out=tmp_path / "out"
    )
    assert [row[0] for row in table.body] == ["dummy", "dummy, bags alone"]


def test_bold_is_for_methods_that_compete(words, tmp_path):
    """What sees instance labels, or nothing, is a bound: never bold, whatever its figures are."""
    (table,) = compare(words, ROLES, methods=["dummy", "unbag"], out=tmp_path / "out")
    bold = {(record["method"], record["bold"]) for record in table.records}
    assert bold == {("dummy", False), ("MLR, unbag's default", True)}
    assert "10 folds; standard grids; seed 0." in table.notes[0]


def test_what_cannot_be_compared_is_named(words, tmp_path):
    with pytest.raises(ValueError, match="no method 'magic'; there are mlr, "):
        compare(words, ROLES, methods=["magic"], out=tmp_path / "out")
    with pytest.raises(ValueError, match="n_jobs must be at least 1"):
        compare(words, ROLES, n_jobs=0, out=tmp_path / "out")
    header, *lines = word_lines()
    words.write_text("\n".join([header, *(line for line in lines if line < "w005")]) + "\n")
    with pytest.raises(ValueError, match=r"words\.csv has 5 bags, too few for 10 folds"):
        compare(words, ROLES, methods=["dummy"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_users_get_their_own_rule_and_fewer_settings():
    assert compared_method("unbag").grids["full"] == [
        {"max_iter": 1000, "tol": 1e-6, "threshold": "auto"}
    ]
    for name, level in product(METHODS, ("quick", "standard", "full")):
        settings, of_paper = compared_method(name).grids[level], METHODS[name].grids[level]
        assert len(settings) <= (12 if level == "standard" else len(of_paper))
        assert all(setting.get("threshold", 0.5) in (0.5, "auto") for setting in settings)
    fast = compared_method("mimlfast").grids["standard"]
    assert all(setting in FAST_DRAWN for setting in fast)


def test_work_on_a_label_table_that_changed_is_done_anew(tmp_path):
    """Its results are those of other labels, though the table itself is the same."""
    rng = np.random.default_rng(0)
    path, second = tmp_path / "table.csv", tmp_path / "labels.csv"
    rows = [f"{bag},{x:.3f},{y:.3f}" for bag in range(24) for x, y in rng.normal(size=(3, 2))]
    path.write_text("\n".join(["bag,x,y", *rows]) + "\n")
    roles = Roles(label_table=second)
    found = []
    for seed in (1, 2):
        labels = np.random.default_rng(seed).choice(["owl", "wren"], 24)
        rows = [f"{bag},{label}" for bag, label in enumerate(labels)]
        second.write_text("\n".join(["bag,label", *rows]) + "\n")
        options = {"methods": ["unbag"], "level": "quick"}
        alone = compare(path, roles, out=tmp_path / f"alone-{seed}", **options)[0].records
        again = compare(path, roles, out=tmp_path / "out", **options)[0].records
        assert [record["ours"] for record in again] == [record["ours"] for record in alone]
        found.append([record["ours"] for record in again])
    assert found[0] != found[1]
