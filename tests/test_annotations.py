"""What tables say of instances: why there is a label or none, and what is flagged for review."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import unbag
from shared_fixtures import run
from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.annotations import annotate
from unbag.corrections import corrected_labels
from unbag.tables import Roles, read
from unbag.tables.annotated import ANSWERS, KNOWN_LABEL, Status

__all__ = ["run"]

# Where owls, wrens and noise lie.
PLACES = {"owl": (0.0, 0.0), "wren": (9.0, 0.0), "noise": (4.5, 20.0)}


def nights(n_bags=24, seed=0):
    """Windows of nights: an owl, a wren or both, and noise in every one; one column per label."""
    rng = np.random.default_rng(seed)
    rows = []
    for night in range(n_bags):
        birds = (["owl"], ["wren"], ["owl", "wren"])[night % 3]
        for second, truth in enumerate([*birds, "noise", "noise"]):
            x, y = rng.normal(PLACES[truth], 0.3).round(3)
            rows.append(
                {"night": f"n{night}", "owl": int("owl" in birds), "wren": int("wren" in birds),
                 "start": float(second), "end": second + 1.0, "x": x, "y": y, "truth": truth}
            )  # fmt: skip
    return pd.DataFrame(rows)


BIRDS = ("owl", "wren")
ROLES = Roles(bag="night", label_columns=BIRDS, features=("x", "y"), start="start", end="end")


@pytest.fixture(scope="module")
def model():
    return unbag.fit(nights(), roles=ROLES, background=True)


@pytest.fixture
def files(tmp_path, model):
    """The table and the model, as files, in a folder."""
    nights().to_csv(tmp_path / "nights.csv", index=False)
    model.save(tmp_path / "m.unbag")
    return tmp_path


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# A blank says why.


def test_background_is_called_so(model):
    annotated = model.annotate_frame(nights())
    is_noise = annotated["truth"] == "noise"
    assert set(annotated["annotation"][is_noise]) == {"background"}
    assert annotated["status"].tolist() == np.where(is_noise, "background", "labelled").tolist()
    assert annotated["annotation"][~is_noise].equals(annotated["truth"][~is_noise])
    # What estimators say stays as it is.
    bags = read_bags(nights())
    assert model.predict_instances(bags)[is_noise.to_numpy()].tolist() == [None] * 48


def read_bags(frame):
    sizes = frame.groupby("night", sort=False).size().to_numpy()
    return Bags(frame[["x", "y"]].to_numpy(), np.append(0, np.cumsum(sizes)))


def test_a_second_choice_may_be_background(model):
    annotated = model.annotate_frame(nights())
    birds = annotated[annotated["status"] == "labelled"]
    assert "background" in set(birds["second_choice"])


def test_background_may_have_another_name(model, files, run):
    annotated = model.annotate_frame(nights(), background_name="noise")
    assert annotated["annotation"].equals(annotated["truth"])
    assert set(annotated["status"]) == {"labelled", "background"}
    code, _, errors = run(
        "annotate", files / "m.unbag", files / "nights.csv", "-o", files / "a.csv",
        "--background-name", "noise",
    )  # fmt: skip
    assert code == 0, errors
    assert [row["annotation"] for row in rows_of(files / "a.csv")] == nights()["truth"].tolist()


def test_no_class_is_called_as_the_background(model, files, run):
    with pytest.raises(ValueError, match=r"'owl' is a class of the model.*background_name="):
        model.annotate_frame(nights(), background_name="owl")
    with pytest.raises(ValueError, match="must be a word"):
        model.annotate_frame(nights(), background_name=" ")
    code, _, errors = run(
        "annotate", files / "m.unbag", files / "nights.csv", "-o", files / "a.csv",
        "--background-name", "owl",
    )  # fmt: skip
    assert code == 1
    assert "'owl' is a class of the model" in errors
    assert "--background-name" in errors
    assert not (files / "a.csv").exists()


def test_a_class_may_be_called_background_where_nothing_else_is():
    frame = nights().rename(columns={"wren": "background"})
    frame = frame[frame["truth"] != "noise"]
    columns = ["owl", "background"]
    model = unbag.fit(frame, roles=ROLES, label_columns=columns, background=False)
    annotated = model.annotate_frame(frame)
    assert set(annotated["annotation"]) == {"owl", "background"}
    assert set(annotated["status"]) == {"labelled"}
    # A night without anything would be background in another sense.
    empty = frame.assign(owl=0, background=0)
    with pytest.raises(ValueError, match="'background' is a class of the model"):
        model.annotate_frame(empty)
    assert set(model.annotate_frame(empty, background_name="nothing")["annotation"]) == {"nothing"}


def test_rows_below_the_least_probability_are_unsure(model):
    frame = nights()
    # Windows between owls and wrens.
    frame.loc[:4, "x"] = [3.0, 4.0, 4.5, 5.0, 6.0]
    frame.loc[:4, "y"] = 0.0
    annotated = model.annotate_frame(frame, ignore_labels=True, unknown_below=0.9)
    is_unsure = annotated["status"] == "unsure"
    assert 0 < is_unsure.sum() < len(annotated)
    assert (annotated["probability"][is_unsure] < 0.9).all()
    assert (annotated["probability"][~is_unsure] >= 0.9).all()
    assert annotated["annotation"].isna().equals(is_unsure)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_that_were_dropped_say_so(model, files, run, suffix):
    frame = nights()
    frame.loc[3, "x"] = np.nan
    frame.to_csv(files / "gap.csv", index=False)
    out = files / f"a{suffix}"
    (files / "roles.toml").write_text('missing_values = "drop"\n')
    code, result, errors = run(
        "annotate", files / "m.unbag", files / "gap.csv", "-o", out, "--roles",
        files / "roles.toml", "--json",
    )  # fmt: skip
    assert code == 0, errors
    assert json.loads(result)["status"]["dropped"] == 1
    annotated = pd.read_csv(out) if suffix == ".csv" else pd.read_parquet(out)
    assert (annotated["status"] == "dropped").tolist() == [row == 3 for row in range(len(frame))]
    assert pd.isna(annotated.loc[3, "annotation"])
    own = model.annotate_frame(frame, roles=Roles(missing_values="drop"))
    assert own["status"].tolist() == annotated["status"].tolist()


def test_the_summary_counts_each_reason(files, run):
    arguments = ["annotate", files / "m.unbag", files / "nights.csv", "-o", files / "a.csv"]
    code, result, _ = run(*arguments, "--json")
    assert code == 0
    assert json.loads(result)["status"] == {
        "labelled": 32, "background": 48, "no tagged class": 0, "unsure": 0, "dropped": 0,
    }  # fmt: skip
    code, _, words = run(*arguments)
    assert "32 labelled (a class), 48 background (none of the classes)" in words
    assert "no tagged class" not in words


def test_selections_leave_background_out_and_say_how_many(files, run):
    arguments = [
        "annotate", files / "m.unbag", files / "nights.csv", "-o", files / "a.csv",
        "--write", f"raven={files / 'raven'}", "--write", f"audacity={files / 'audacity'}",
        "--write", f"label-studio={files / 'tasks.json'}",
    ]  # fmt: skip
    code, result, errors = run(*arguments, "--json")
    assert code == 0, errors
    assert json.loads(result)["background_left_out"] == 48
    written = [*(files / "raven").iterdir(), *(files / "audacity").iterdir(), files / "tasks.json"]
    assert len(written) == 49
    assert not any("background" in path.read_text() for path in written)
    tracks = [path.read_text().splitlines() for path in (files / "audacity").iterdir()]
    assert sum(map(len, tracks)) == 32
    _, _, words = run(*arguments)
    assert "Left out of the files for other tools: 48 rows of background." in words
    frame = nights()
    is_noise = frame["truth"] == "noise"
    frame[~is_noise | (is_noise.cumsum() == 1)].to_csv(files / "nights.csv", index=False)
    _, _, words = run(*arguments)
    assert "Left out of the files for other tools: 1 row of background." in words


# Bags that are said to hold nothing.


@pytest.mark.parametrize("background", [True, False])
def test_bags_that_are_said_to_hold_none_are_background(background, files, run):
    frame = nights()
    fitted = unbag.fit(frame, roles=ROLES, background=background)
    silent = frame["night"].isin(["n0", "n1"])
    frame.loc[silent, ["owl", "wren"]] = 0
    annotated = fitted.annotate_frame(frame)
    assert set(annotated["annotation"][silent]) == {"background"}
    assert set(annotated["status"][silent]) == {"no tagged class"}
    assert set(annotated["probability"][silent]) == {1.0}
    assert not annotated["review"][silent].any()
    assert "no tagged class" not in set(annotated["status"][~silent])
    fitted.save(files / "m.unbag")
    frame.to_csv(files / "nights.csv", index=False)
    code, result, errors = run(
        "annotate", files / "m.unbag", files / "nights.csv", "-o", files / "a.csv", "--json"
    )
    assert code == 0, errors
    assert json.loads(result)["status"]["no tagged class"] == silent.sum()
    assert json.loads(result)["impossible_bags"] == 0


def test_a_model_that_knows_of_missed_labels_looks_for_them():
    frame = nights()
    fitted = unbag.fit(frame, roles=ROLES, background=True, missed_rate=0.4)
    frame[["owl", "wren"]] = 0
    annotated = fitted.annotate_frame(frame)
    assert "no tagged class" not in set(annotated["status"])
    assert (annotated["status"] == "labelled").any()


def test_evaluate_and_report_know_background_by_its_word(files, run):
    frame = nights().replace({"truth": {"noise": "background"}})
    frame.loc[frame["night"] == "n0", ["owl", "wren"]] = 0
    frame.loc[frame["night"] == "n0", "truth"] = "background"
    frame.to_csv(files / "nights.csv", index=False)
    given = [files / "m.unbag", files / "nights.csv", "--instance-labels", "truth"]
    code, result, errors = run("evaluate", *given, "--json")
    assert code == 0, errors
    found = json.loads(result)
    assert found["transductive_accuracy"] == 1.0
    assert found["inductive_accuracy"] == pytest.approx(1 - 1 / len(frame))
    assert found["per_class"]["background"]["recall"] > 0.9
    fitted = unbag.fit(nights(), roles=ROLES, background=False)
    fitted.save(files / "m.unbag")
    code, _, errors = run("report", *given, "-o", files / "r.html")
    assert code == 0, errors
    page = (files / "r.html").read_text()
    assert "rows: no tagged class" in page


# Tags that no instance got.

THREE_ALIKE = [[[0.0, 0.0], [0.1, 0.0], [0.0, 0.1]]]


def test_joint_labels_cover_the_tags(model):
    bags, labels = Bags.from_list(THREE_ALIKE), LabelSets([[1, 1]], ["owl", "wren"])
    alone = annotate(model, bags, labels)
    assert set(alone.label) == {"owl"}
    assert alone.n_uncovered.tolist() == [1]
    likeliest = model.annotate_proba(bags, labels)[:, 1].argmax()
    assert alone.review[likeliest]
    assert alone.figures().tags_without_instance == 1
    joint = annotate(model, bags, labels, joint=True)
    assert sorted(joint.label) == ["owl", "owl", "wren"]
    assert joint.figures().tags_without_instance == 0
    # Probabilities are those of the labels that were chosen.
    proba = model.annotate_proba(bags, labels)
    columns = [list(model.classes_).index(label) for label in joint.label]
    np.testing.assert_array_equal(joint.probability, proba[np.arange(3), columns])
    changed = joint.label == "wren"
    assert joint.second_label[changed].tolist() == ["owl"]
    assert joint.second_probability[changed] > joint.probability[changed]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_are_labelled_jointly(kind, model):
    import polars as pl
    import pyarrow as pa

    frame = pd.DataFrame(THREE_ALIKE[0], columns=["x", "y"])
    frame = frame.assign(night="n", owl=1, wren=1)
    given = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
    annotated = model.annotate_frame(given[kind](frame), joint=True)
    found = annotated["annotation"]
    assert sorted(found.to_pylist() if kind == "pyarrow" else found.to_list()) == [
        "owl", "owl", "wren",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="there are no tags"):
        model.annotate_frame(given[kind](frame), joint=True, ignore_labels=True)


def test_the_command_counts_tags_without_an_instance(files, run):
    frame = pd.DataFrame(THREE_ALIKE[0], columns=["x", "y"])
    frame.assign(night="n", owl=1, wren=1).to_csv(files / "n.csv", index=False)
    arguments = ["annotate", files / "m.unbag", files / "n.csv", "-o", files / "a.csv"]
    code, result, errors = run(*arguments, "--json", "--review-share", "0")
    assert code == 0, errors
    found = json.loads(result)
    assert (found["tags"], found["tags_without_instance"], found["review"]) == (2, 1, 1)
    _, _, words = run(*arguments)
    assert "Tags that no row got: 1 of 2." in words
    assert "--joint" in words
    code, result, errors = run(*arguments, "--json", "--joint", "--review-share", "0")
    assert code == 0, errors
    assert json.loads(result)["tags_without_instance"] == 0
    assert sorted(row["annotation"] for row in rows_of(files / "a.csv")) == ["owl", "owl", "wren"]
    code, _, errors = run(*arguments, "--joint", "--ignore-labels")
    assert code == 1
    assert "there are no tags" in errors


@pytest.mark.parametrize("options", [[], ["--joint", "--background-name", "noise"]])
def test_tables_on_disk_say_the_same(files, run, options, monkeypatch):
    monkeypatch.setattr("unbag.annotations.BLOCK", 7)
    frame = pd.concat([nights(), pd.DataFrame(THREE_ALIKE[0], columns=["x", "y"]).assign(
        night="alike", owl=1, wren=1, start=0.0, end=1.0, truth="owl",
    )])  # fmt: skip
    frame.loc[frame["night"] == "n4", ["owl", "wren"]] = 0
    frame.to_parquet(files / "n.parquet", index=False)
    given = ["annotate", files / "m.unbag", files / "n.parquet", "--unknown-below", "0.7"]
    results, words = [], []
    for where in ("--in-memory", "--out-of-core"):
        out = files / f"{where}.parquet"
        code, result, errors = run(*given, "-o", out, where, "--json", *options)
        assert code == 0, errors
        results.append(json.loads(result))
        words.append(run(*given, "-o", out, where, *options)[2].splitlines()[:-1])
    memory, disk = (pd.read_parquet(files / f"{each}.parquet") for each in (
        "--in-memory", "--out-of-core",
    ))  # fmt: skip
    pd.testing.assert_frame_equal(memory, disk)
    assert set(memory["status"]) == {"labelled", "background", "no tagged class", "unsure"}
    assert words[0] == words[1]
    for name in ("status", "tags", "tags_without_instance", "review", "rare_tags", "rare_rows"):
        assert results[0][name] == results[1][name]


# Rare classes.


def with_a_stranger(seed=0):
    """Nights, one of which has a kite that is next to its wren: which one is it?"""
    frame = nights(seed=seed)
    frame["kite"] = (frame["night"] == "n1").astype(int)
    more = frame[(frame["night"] == "n1") & (frame["truth"] == "wren")].assign(truth="kite", x=9.4)
    return pd.concat([frame, more], ignore_index=True)


@pytest.mark.filterwarnings("ignore:The frame. 1 class is in fewer than three bags")
def test_classes_of_one_bag_are_never_sure(tmp_path):
    frame = with_a_stranger()
    fitted = unbag.fit(frame, roles=ROLES, label_columns=["kite", *BIRDS], background=True)
    assert fitted.classes_.tolist() == ["kite", "owl", "wren"]
    assert fitted.class_counts_.tolist() == [1, 16, 16]
    annotated = fitted.annotate_frame(frame, review_share=0.0)
    could_be = annotated["truth"].isin(["kite", "wren"]) & (annotated["night"] == "n1")
    assert annotated["review"][could_be].all()
    assert not annotated["review"][annotated["night"] != "n1"].any()
    # The file of a model knows it too; a model that does not know flags no rare classes.
    fitted.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag").annotate_frame(frame, review_share=0.0)
    assert again["review"].equals(annotated["review"])
    del fitted.class_counts_
    fitted.save(tmp_path / "old.unbag")
    old = unbag.load(tmp_path / "old.unbag").annotate_frame(frame, review_share=0.0)
    # What is left is the likeliest instance of a tag that none got.
    assert old["review"].sum() == 1 < annotated["review"].sum()


@pytest.mark.parametrize("background", [True, False])
def test_all_classes_may_be_rare(background):
    bags = Bags.from_list([[[0.0], [9.0]], [[1.0]], [[8.0], [8.5]]])
    sets = LabelSets.parse([{"a", "b"}, {"a"}, {"b"}])
    model = ORLogisticRegression(background=background).fit(bags, sets)
    answers = annotate(model, bags, sets)
    assert answers.rare.all()
    assert answers.rare_tags == ["a", "b"]
    # Without tags, nobody says that there is a rare class.
    assert not annotate(model, bags).rare.any()


@pytest.mark.filterwarnings("ignore:The frame. 1 class is in fewer than three bags")
def test_the_command_names_rare_classes(tmp_path, run):
    frame = with_a_stranger()
    frame.to_csv(tmp_path / "n.csv", index=False)
    fitted = unbag.fit(frame, roles=ROLES, label_columns=["kite", *BIRDS], background=True)
    fitted.save(tmp_path / "m.unbag")
    arguments = ["annotate", tmp_path / "m.unbag", tmp_path / "n.csv", "-o", tmp_path / "a.csv"]
    code, result, errors = run(*arguments, "--json")
    assert code == 0, errors
    found = json.loads(result)
    assert found["rare_tags"] == ["kite"]
    assert found["rare_rows"] >= 2
    _, _, words = run(*arguments)
    assert "fewer than 3 training bags" in words
    assert "kite" in words


# Corrections.


def test_background_is_a_known_label():
    frame = nights()
    sets = [{"owl"}, {"wren"}, {"owl", "wren"}] * 8
    known = np.where(frame["truth"] == "noise", "background", None)
    known[: len(known) // 2] = None
    bags = read_bags(frame)
    model = ORLogisticRegression(background="auto").fit(bags, sets, instance_labels=known)
    assert model.has_background_
    is_noise = (frame["truth"] == "noise").to_numpy()
    assert unbag.is_background(model.predict_instances(bags)[is_noise]).all()
    # Pinned instances stay what they are said to be, whatever the model thinks.
    wrong = np.full(bags.n_instances, None)
    wrong[2] = "background"
    assert model.annotate(bags, sets, wrong)[2] is None
    with pytest.raises(ValueError, match=r"bag 12 is known to be background.*background='auto'"):
        ORLogisticRegression().fit(bags, sets, instance_labels=known)


def test_corrections_may_say_background_by_any_name(model, files):
    annotated = model.annotate_frame(nights(), background_name="noise")
    annotated["known_label"] = None
    annotated.loc[0, "known_label"] = "noise"
    annotated.loc[1, "known_label"] = "background"
    annotated.loc[3, "known_label"] = "wren"
    annotated.to_csv(files / "corrected.csv", index=False)
    data = read(files / "nights.csv", ROLES)
    known = corrected_labels(files / "corrected.csv", data)
    assert known[:4].tolist() == ["background", "background", None, "wren"]


def test_each_answer_is_an_attribute_of_annotations(model):
    answers = annotate(model, read_bags(nights()))
    assert list(answers.columns()) == [*ANSWERS, KNOWN_LABEL]
    assert {len(values) for values in answers.columns().values()} == {80}
    assert set(answers.status) <= set(Status)
