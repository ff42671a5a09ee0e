"""A benchmark for methods of others."""

import csv
import json
from zlib import crc32

import numpy as np
import pytest

from unbag_reproduce import benchmark, datasets
from unbag_reproduce.benchmark import (
    N_DRAWS,
    Answers,
    benchmark_estimator,
    fold_of_bags,
    units_of,
    write_folds,
)
from unbag_reproduce.calibration import calibration_error, reliability
from unbag_reproduce.data import load, split
from unbag_reproduce.predictions import benchmark_predictions

#: An estimator that knows the labels of bags, and guesses the most frequent one.
MINE = """
import numpy as np

class Guess:
    def fit(self, X, y):
        assert X.instance_labels is None
        self.label_ = int(np.asarray(y).sum(axis=0).argmax())
        self.n_classes_ = y.shape[1]
        return self

    def predict_instances(self, X):
        assert X.instance_labels is None
        return np.full(X.n_instances, self.label_)

class Sure(Guess):
    def predict_instances_proba(self, X):
        return np.tile(np.arange(self.n_classes_) == self.label_, (X.n_instances, 1)).astype(float)

class Named(Guess):
    def predict_instances(self, X):
        return np.full(X.n_instances, "wren")

class Short(Guess):
    def predict_instances(self, X):
        return [self.label_]

class Deaf:
    def fit(self, X, y):
        return self

def with_arguments(alpha):
    return Guess()

number = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of estimators in the working folder."""
    name = f"mine_{crc32(str(tmp_path).encode())}"
    (tmp_path / f"{name}.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(benchmark, "N_DRAWS", {"letter-frost": 2, "made-pairs": 1})
    return name


def test_every_data_set_can_be_loaded_or_is_named():
    assert set(N_DRAWS) <= set(datasets.names())
    for name in N_DRAWS:
        if name.startswith("made"):
            first, second = (datasets.load(name, draw) for draw in (0, 1))
            assert first.bags.instance_labels.max() < first.y.shape[1]
            assert not np.array_equal(first.bags.X[:5], second.bags.X[:5])
            assert len(first.bags) >= 200
            # Every label of a bag is that of an instance, and the other way round.
            labels = np.split(first.bags.instance_labels, first.bags.offsets[1:-1])
            for own, row in zip(labels, first.y, strict=True):
                assert set(own.tolist()) == set(np.flatnonzero(row).tolist())


def test_every_bag_is_tested_once():
    folds = fold_of_bags(53, 10)
    for place in range(10):
        np.testing.assert_array_equal(np.flatnonzero(folds == place), split(53, 10, place, 0)[1])


def test_calibration_is_over_the_bins_of_all_folds():
    sure = np.array([[1.0, 0.0]] * 4)
    half = [reliability(sure, np.full(4, right)) for right in (True, False)]
    assert calibration_error(half) == 50.0
    assert calibration_error(half[:1]) == 0.0
    assert Answers(np.array([0, 1])).measures(np.array([0, 0])) == {"new": 50.0}


def test_an_estimator_gets_a_row(mine, tmp_path):
    table = benchmark_estimator(f"{mine}:Sure", level="standard", out=tmp_path / "r")
    assert table.header == ["", "letter-frost", "made-pairs"]
    assert [row[0] for row in table.body] == [
        f"{mine}:Sure, new bags", f"{mine}:Sure, calibration error, new bags",
    ]  # fmt: skip
    accuracy, error = (
        next(r for r in table.records if (r["data"], r["measure"]) == ("letter-frost", measure))
        for measure in ("new bags", "calibration error, new bags")
    )
    assert (accuracy["n_draws"], accuracy["n_folds"]) == (2, 10)
    right, n_instances = 0, 0
    for draw in (0, 1):
        bags, y = load("letter-frost", draw)
        for place in range(10):
            train, test = split(len(bags), 10, place, 0)
            right += (bags[test].instance_labels == y[train].sum(axis=0).argmax()).sum()
        n_instances += bags.n_instances
    # Who is sure of everything is off by all that is wrong.
    assert error["ours"] == pytest.approx(100 - 100 * right / n_instances)
    assert error["draw_std"] is not None
    assert accuracy["std"] > 0
    (text,) = (tmp_path / "r" / "benchmark").glob("*.md")
    assert text.read_text() == table.to_markdown()


def test_a_run_goes_on_and_a_changed_method_is_fitted_again(mine, tmp_path, monkeypatch):
    names = ["made-pairs"]
    before = units_of(f"{mine}:Guess", names, "quick")
    table = benchmark_estimator(f"{mine}:Guess", names, level="quick", out=tmp_path / "r")

    def fit_again(unit):
        raise AssertionError("this was done before")

    with monkeypatch.context() as patch:
        patch.setattr("unbag.model_selection.work.do_timed", fit_again)
        again = benchmark_estimator(f"{mine}:Guess", names, level="quick", out=tmp_path / "r")
    assert again.records == table.records
    with (tmp_path / f"{mine}.py").open("a") as file:
        file.write("\n# Better now.\n")
    assert not set(before) & set(units_of(f"{mine}:Guess", names, "quick"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine", "give module:factory"),
        ("no_such_module:Model", "no_such_module cannot be imported: No module named"),
        ("MINE:Missing", "has no class or function of this name"),
        ("MINE:number", "has no class or function of this name"),
        ("MINE:with_arguments", "cannot be called without arguments"),
        ("MINE:Deaf", "gives a Deaf, which has no predict_instances"),
        ("MINE:Named", "fails on made-pairs, draw 0, fold 0: .*labels an instance 'wren'"),
        ("MINE:Short", r"fails on made-pairs, draw 0, fold 0: .*1 labels for \d+ instances"),
    ],
)
def test_estimators_that_cannot_take_part(mine, tmp_path, name, message):
    with pytest.raises(ValueError, match=message) as caught:
        benchmark_estimator(name.replace("MINE", mine), ["made-pairs"], level="quick", out=tmp_path)
    assert "\n" not in str(caught.value)


def test_data_that_are_not_there(mine, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="The benchmark has no data set 'birds'; it has letter"):
        benchmark_estimator(f"{mine}:Guess", ["birds"], out=tmp_path)
    monkeypatch.setattr(benchmark, "N_DRAWS", {"hja-union": 1, "made-pairs": 1})
    monkeypatch.setattr(datasets, "is_available", lambda name: name == "made-pairs")
    assert benchmark.chosen_data(None) == ["made-pairs"]
    with pytest.raises(ValueError, match="None of these data sets is on this machine"):
        benchmark.chosen_data(["hja-union"])


@pytest.fixture
def predictions(tmp_path):
    """Rows of predictions that are right but for the first instance, on exported folds."""
    (path,) = write_folds(tmp_path / "folds", ["made-pairs"], level="quick")
    data = datasets.load("made-pairs")
    with path.open(newline="") as file:
        exported = list(csv.DictReader(file))
    assert "label" not in exported[0]
    assert {row["labels"] for row in exported if row["bag"] == "0"} == {
        "|".join(data.class_names[data.y[0] == 1])
    }
    np.testing.assert_array_equal(
        [float(row["x3"]) for row in exported], data.bags.X[:, 3], strict=True
    )
    names = data.class_names[data.bags.instance_labels]
    rows = [
        {"data": "made-pairs", "instance": row["instance"], "fold": row["fold"], "bag": row["bag"],
         "label": name}
        for row, name in zip(exported, names, strict=True)
    ]  # fmt: skip
    rows[0]["label"] = "a" if rows[0]["label"] != "a" else "b"
    return rows


def saved(rows, folder, name="mine.csv"):
    path = folder / name
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_predictions_are_measured_whatever_their_order(predictions, tmp_path):
    path = saved(predictions[::-1], tmp_path)
    table = benchmark_predictions(path, level="quick", out=tmp_path / "r")
    (record,) = table.records
    n_instances = len(predictions)
    bags, _ = load("made-pairs", 0)
    (place,) = {int(row["fold"]) for row in predictions if row["instance"] == "0"}
    sizes = bags.sizes[fold_of_bags(len(bags), 3) == place]
    assert sum(bags.sizes) == n_instances
    assert record["ours"] == pytest.approx(100 - 100 / 3 / sizes.sum())
    without_data = [{k: v for k, v in row.items() if k != "data"} for row in predictions]
    named = benchmark_predictions(
        saved(without_data, tmp_path), ["made-pairs"], level="quick", out=tmp_path / "r"
    )
    assert named.records == table.records


def test_probabilities_answer_for_tags_and_calibration(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    data = datasets.load("made-pairs")
    n_classes = data.y.shape[1]
    proba = np.full((data.bags.n_instances, n_classes), 1 / n_classes)
    columns = {name: proba[:, place] for place, name in enumerate(data.class_names.tolist())}
    table = pa.table({"instance": np.arange(len(proba)), **columns})
    path = tmp_path / "flat.parquet"
    parquet.write_table(table, path)
    found = benchmark_predictions(path, ["made-pairs"], level="quick", out=tmp_path / "r")
    by_measure = {record["measure"]: record["ours"] for record in found.records}
    first = (data.bags.instance_labels == 0).mean()
    assert by_measure["new bags"] == pytest.approx(100 * first, abs=2)
    assert by_measure["given the tags"] > by_measure["new bags"]
    assert by_measure["calibration error, new bags"] == pytest.approx(
        100 * abs(first - 1 / n_classes)
    )


def spoiled(rows, **changes):
    return [{**rows[0], **changes}, *rows[1:]]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda rows: rows[1:], r"1 of \d+ instances have no row; the first is instance 0 of bag"),
        (lambda rows: [*rows, rows[3]], "instance 3 has several rows"),
        (lambda rows: spoiled(rows, label="wren"), "instance 0 has 'wren', which is no class; the"),
        (lambda rows: spoiled(rows, fold=7), r"instance 0 is in fold \d, not 7; the folds are"),
        (lambda rows: spoiled(rows, bag=7), "instance 0 is in bag 0, not 7"),
        (lambda rows: spoiled(rows, instance=10**6), "instances are numbers from 0 to"),
        (lambda rows: spoiled(rows, data="birds"), "column data: the benchmark has no data set 'b"),
        (lambda rows: [{**row, "draw": 4} for row in rows], "draws 0 to 0, and the table has draw"),
        (lambda rows: [{**row, "wren": 1.0} for row in rows], "column 'wren' is no class"),
        (lambda rows: [{**row, "a": 1.0} for row in rows], "no column of probabilities for 'b'"),
        (
            lambda rows: [{**row, **dict.fromkeys("abcdefgh", 1.0)} for row in rows],
            "the probabilities of instance 0 are no probabilities",
        ),
        (
            lambda rows: [{k: v for k, v in row.items() if k != "label"} for row in rows],
            "neither a column label nor one of probabilities",
        ),
        (
            lambda rows: [{k: v for k, v in row.items() if k != "instance"} for row in rows],
            "has no column instance",
        ),
        (
            lambda rows: [{k: v for k, v in row.items() if k != "data"} for row in rows],
            "has no column data: name its data set with --data",
        ),
    ],
)
def test_predictions_that_cannot_be_measured(predictions, tmp_path, spoil, message):
    path = saved(spoil(predictions), tmp_path)
    with pytest.raises(ValueError, match=message) as caught:
        benchmark_predictions(path, level="quick", out=tmp_path / "r")
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_data_set_of_several_draws_needs_their_numbers(predictions, tmp_path):
    path = saved(predictions, tmp_path)
    with pytest.raises(ValueError, match="has no column draw, but made-pairs has 3 draws"):
        benchmark_predictions(path, out=tmp_path / "r")


def test_the_command(mine, run, predictions, tmp_path):
    command = ("reproduce", "benchmark", "--data", "made-pairs", "--quick", "--jobs", "1")
    code, out, errors = run(*command, "--estimator", f"{mine}:Guess", "-o", tmp_path / "r")
    assert code == 0, errors
    assert f"| {mine}:Guess, new bags | " in out
    code, out, _ = run(
        *command, "--predictions", saved(predictions, tmp_path), "-o", tmp_path / "r", "--json"
    )
    assert code == 0
    assert json.loads(out)["benchmark-mine"][0]["ours"] > 99
    code, out, errors = run(*command, "--folds", tmp_path / "f")
    assert (code, [path.name for path in (tmp_path / "f").iterdir()]) == (0, ["made-pairs-0.csv"])
    code, _, errors = run(*command)
    assert code == 2
    assert "needs one of --estimator" in " ".join(errors.replace("│", " ").split())
    code, _, errors = run("reproduce", "datasets", "--folds", tmp_path / "f")
    assert code == 2
    code, _, errors = run(*command, "--estimator", f"{mine}:Guess", "--seed", "1")
    assert code == 2
    code, _, errors = run(*command, "--predictions", tmp_path / "none.csv")
    assert code == 1
    assert "none.csv does not exist" in " ".join(errors.split())
