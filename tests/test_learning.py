"""One way to a model: whichever door somebody comes through, the same is meant and refused."""

import ast
import pydoc
import re
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unbag
from unbag import _messages, out_of_core
from unbag.cli import main
from unbag.compare import compare
from unbag.learning import taught_labels, training_set
from unbag.settings import FitArguments, Settings
from unbag.tables import DataError, Roles
from unbag.tables.frame import open_frame
from unbag.tables.roles import ColumnRoles

FEATURES = ["a", "b", "c"]
SOURCES = Path(unbag.__file__).parent


@pytest.fixture(scope="module")
def frame():
    """Three classes a few deviations apart, four instances a bag; two columns name bags."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 120)
    classes, file = np.array(["owl", "tit", "wren"]), np.repeat(np.arange(30), 4)
    frame = pd.DataFrame(rng.normal(size=(120, 3)) + 4 * np.eye(3)[labels], columns=FEATURES)
    frame["file"] = [f"f{bag:02}.wav" for bag in file]
    frame["night"] = [f"n{bag // 2:02}" for bag in file]
    for column, bags in (("tags", file), ("tags_of_night", file // 2)):
        frame[column] = ["|".join(sorted(set(classes[labels[bags == bag]]))) for bag in bags]
    frame["truth"] = classes[labels]
    return frame


@pytest.fixture(scope="module")
def bags(frame):
    return unbag.Bags.from_table(frame, bag="file", features=FEATURES, instance_labels="truth")


@pytest.fixture(scope="module")
def y(frame):
    return frame.groupby("file", sort=False)["tags"].first()


@pytest.fixture
def folder(frame, tmp_path):
    """The table as a Parquet set."""
    (tmp_path / "set").mkdir()
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "set" / "part-0.parquet")
    return tmp_path / "set"


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main(list(map(str, arguments)))
    return left.value.code or 0


# What is named in a call wins over roles.

# Of bags by night, with the labels of the nights, there are half as many as of bags by file.
ROLES = Roles(bag="night", labels="tags_of_night", features=FEATURES, carry=["truth"])
NAMED = {"bag": "file", "labels": "tags", "roles": ROLES}


def bags_of_fit(frame, folder):
    return unbag.fit(frame, **NAMED).roles_


def bags_of_fit_to_a_file(frame, folder):
    return unbag.fit(folder / "part-0.parquet", **NAMED).roles_


def bags_of_tune(frame, folder):
    return unbag.tune(frame, networks=False, minutes=0, **NAMED).roles_


def bags_of_fit_out_of_core(frame, folder):
    return out_of_core.fit(unbag.ORLogisticRegression(), folder, **NAMED).roles_


@pytest.mark.parametrize(
    "door", [bags_of_fit, bags_of_fit_to_a_file, bags_of_tune, bags_of_fit_out_of_core]
)
def test_what_is_named_wins_in_every_fit(door, frame, folder):
    roles = door(frame, folder)
    assert (roles["bag"], roles["labels"]) == ("file", "tags")


def test_what_is_named_wins_in_checks(frame):
    found = unbag.check_labels(unbag.ORLogisticRegression(), frame, cv=2, random_state=0, **NAMED)
    assert set(found["bag"].to_pylist()) == set(frame["file"])


def test_what_is_named_wins_in_annotations(frame, folder, tmp_path):
    model = unbag.fit(frame, bag="night", labels="tags_of_night", features=FEATURES, alpha=1.0)
    by_file = model.annotate_frame(frame, bag="file", labels="tags", roles=ROLES)
    assert not (by_file["annotation"] == model.annotate_frame(frame)["annotation"]).all()
    named = {"bag": "file", "roles": ROLES}
    predicted = model.predict_frame(frame, **named)
    assert predicted.groupby("file")["predicted"].nunique().max() == 1
    assert predicted.groupby("night")["predicted"].nunique().max() == 2
    found = out_of_core.annotate(model, folder, tmp_path / "out.parquet", **NAMED)
    assert found.bags == 30
    written = pq.read_table(tmp_path / "out.parquet")
    assert written["annotation"].to_pylist() == by_file["annotation"].tolist()


def test_labels_of_instances_are_named_by_roles_as_well(frame, folder):
    roles = Roles(bag="file", labels="tags", features=FEATURES, known="truth")
    plain, told = (
        out_of_core.fit(unbag.ORLogisticRegression(), folder, roles=each)
        for each in (Roles(bag="file", labels="tags", features=FEATURES), roles)
    )
    here = unbag.fit(frame, roles=roles, background=False, alpha=1.0)
    assert not np.allclose(told.coef_, plain.coef_)
    np.testing.assert_array_equal(told.coef_, here.coef_)


# Settings.


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", 2.0), ("context", 0.5), ("kernel", 1.0), ("dictionary", 50)]
)
def test_settings_that_networks_lack_are_refused_at_every_door(name, value, frame, capsys):
    said = "is a setting of linear models, not of networks"
    with pytest.raises(ValueError, match=f"^{name}= {said}"):
        Settings(model="network", **{name: value})
    with pytest.raises(ValueError, match=f"^{name}= {said}"):
        unbag.fit(frame, model="network", **{name: value}, **NAMED)
    # Before the table is looked for.
    code = run("fit", "no.csv", "-o", "m.unbag", "--model", "network", f"--{name}", value)
    assert code == 2
    assert f"--{name} {said}" in capsys.readouterr().err


def test_settings_of_a_model_that_is_given_are_its_own():
    with pytest.raises(ValueError, match="max_iter= is a setting of the model that fit builds"):
        Settings(model=unbag.paper.SIM(), max_iter=3)
    with pytest.raises(ValueError, match="missed_rate= is a setting of the model that fit builds"):
        Settings(model=unbag.paper.SIM(), missed_rate=np.array([0.1, 0.0]))
    model = unbag.paper.SIM()
    assert Settings(model=model, context=0.5).unfitted().model is not model


def test_the_command_and_python_fit_the_same_model(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("t.csv", index=False)
    assert not run(
        "fit", "t.csv", "--bag", "file", "--labels", "tags", "--features", "a,b,c", "--context",
        "0.5", "--kernel", "1", "--dictionary", "20", "--missed-rate", "learn", "--seed", "3",
        "-o", "m.unbag",
    )  # fmt: skip
    settings = {"context": 0.5, "kernel": 1.0, "dictionary": 20, "missed_rate": "learn", "seed": 3}
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    ours = unbag.fit(Path("t.csv"), **columns, **settings)
    theirs = unbag.load("m.unbag")
    np.testing.assert_array_equal(theirs.model.coef_, ours.model.coef_)
    assert theirs.roles_ == ours.roles_


def test_each_role_and_setting_is_declared_once():
    """What calls may name are these, in their order; help begins with what the function does."""
    roles = [each.name for each in fields(Roles)]
    assert list(ColumnRoles.__annotations__) == [*roles, "roles", "corrections", "ignore_known"]
    settings = {each.name for each in fields(Settings)} - {"model"}
    assert set(FitArguments.__annotations__) - set(ColumnRoles.__annotations__) == settings
    # Some versions of Python write the signature above it in many lines.
    assert pydoc.getdoc(unbag.fit).startswith("Learn to label the instances of a table")
    text = pydoc.plain(pydoc.render_doc(unbag.fit))
    assert '    background : bool or "auto", default="auto"' in text


# Tables, or bags and their labels.


@pytest.mark.parametrize("context", [0.0, 0.5])
def test_a_fit_and_that_of_its_teacher_are_watched(bags, y, context):
    data, settings = (
        training_set(bags, y, None),
        Settings(background=False, alpha=1.0, context=context),
    )
    seen = []
    model = data.fit(settings.unfitted(), watch=lambda fit: seen.append(len(fit.history))).model
    assert seen.count(1) == (2 if context else 1)
    assert seen[-model.n_iter_ :] == list(range(1, model.n_iter_ + 1))
    stopped = data.fit(settings.unfitted(), watch=lambda fit: len(fit.history) == 2).model
    assert stopped.n_iter_ == 2 < model.n_iter_


def test_bags_are_fitted_as_their_table_is(frame, bags, y):
    table = unbag.fit(frame, bag="file", labels="tags", features=FEATURES)
    for given in (bags, list(bags)):
        labels = y if given is bags else y.to_list()
        np.testing.assert_array_equal(unbag.fit(given, labels).coef_, table.coef_)
    assert not hasattr(unbag.fit(bags, y), "roles_")


def test_labels_of_instances_come_as_an_array_with_bags(frame, bags, y):
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    by_column = unbag.fit(frame, known="truth", **columns)
    by_array = unbag.fit(bags, y, known=bags.instance_labels)
    np.testing.assert_array_equal(by_column.coef_, by_array.coef_)


def test_checks_and_searches_take_both(frame, bags, y):
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    model = unbag.ORLogisticRegression()
    checked = [
        unbag.check_labels(model, *given, cv=2, random_state=0, **named)
        for given, named in (((bags, y), {}), ((frame,), columns))
    ]
    assert checked[0].equals(checked[1])
    tuned = [
        unbag.tune(*given, networks=False, minutes=0, **named)
        for given, named in (((bags, y), {}), ((list(bags), y.to_list()), {}), ((frame,), columns))
    ]
    np.testing.assert_array_equal(tuned[0].coef_, tuned[2].coef_)
    np.testing.assert_array_equal(tuned[1].coef_, tuned[2].coef_)


DOORS = {
    "fit": unbag.fit,
    "tune": lambda *given, **named: unbag.tune(*given, networks=False, **named),
    "check": lambda *given, **named: unbag.check_labels(
        unbag.ORLogisticRegression(), *given, **named
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_wrong_combinations_are_refused_alike(door, frame, bags, y):
    call = DOORS[door]
    with pytest.raises(
        TypeError, match=r"^y is for Bags: name the column of the labels by labels="
    ):
        call(frame, y, bag="file")
    with pytest.raises(TypeError, match=r"since bag, labels name columns; got Bags"):
        call(bags, y, bag="file", labels="tags")
    with pytest.raises(TypeError, match=r"since roles name columns; got Bags"):
        call(bags, y, roles=ROLES)
    with pytest.raises(TypeError, match=r"^y is missing: give the label sets of the bags"):
        call(bags)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lables'"):
        call(frame, lables="tags")
    with pytest.raises(DataError, match=r"roles must be unbag\.tables\.Roles, not a dict"):
        call(frame, roles={"bag": "file"})


# The truth.


class Spy(unbag.DummyBags):
    """A model that remembers what it was shown."""

    def fit(self, X, y, **more):
        self.shown_ = X.instance_labels, more
        return super().fit(X, y)


def test_the_truth_is_hidden_unless_it_is_named(frame, bags, y):
    usual = frame.rename(columns={"truth": "instance_label"})
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    assert open_frame(usual).read(Roles(**columns)).bags.instance_labels is not None
    for model in (unbag.fit(usual, model=Spy(), **columns), unbag.fit(bags, y, model=Spy())):
        assert model.shown_ == (None, {})
    named = training_set(usual, None, None, known="instance_label", **columns)
    assert named.bags.instance_labels is None
    assert set(named.known) == {"owl", "tit", "wren"}


# Labels of instances: those that people gave are learnt from, and the truth never is.


def test_labels_to_compare_with_are_refused_at_every_door(frame, bags, y, folder, capsys):
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    model = unbag.ORLogisticRegression()
    for call in (
        lambda: unbag.fit(frame, instance_labels="truth", **columns),
        lambda: unbag.fit(frame, instance_labels="corrected.csv", **columns),
        lambda: unbag.fit(bags, y, instance_labels=bags.instance_labels),
        lambda: unbag.tune(frame, instance_labels="truth", **columns),
        lambda: unbag.check_labels(model, frame, instance_labels="truth", **columns),
        lambda: out_of_core.fit(model, folder, instance_labels="truth"),
    ):
        with pytest.raises(DataError, match=r"nothing learns from them.* known=.* corrections=\.$"):
            call()
    named = ("--bag", "file", "--labels", "tags", "--instance-labels", "truth")
    for command in (("fit", folder, "-o", "m.unbag"), ("check", folder)):
        assert run(*command, *named) == 2
        assert "No such option: --instance-labels" in capsys.readouterr().err


def test_what_roles_call_the_truth_is_not_learnt_from(frame, folder):
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    roles = Roles(**columns, instance_labels="truth")
    plain = unbag.fit(frame, background=False, alpha=1.0, **columns)
    found = [
        unbag.fit(frame, roles=roles, background=False, alpha=1.0),
        out_of_core.fit(unbag.ORLogisticRegression(), folder, roles=roles),
    ]
    for model in found:
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
        assert "known" not in model.roles_


@pytest.mark.parametrize("name", ["known_label", "unbag_known_label"])
def test_what_people_filled_in_is_learnt_from_unless_it_is_ignored(frame, tmp_path, name):
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    plain = unbag.fit(frame, background=False, alpha=1.0, **columns)
    annotated = plain.annotate_frame(frame).rename(columns={"known_label": name})
    if name != "known_label":
        answers = ["annotation", "probability", "second_choice", "second_probability", "entropy"]
        annotated = annotated.rename(columns={each: f"unbag_{each}" for each in answers})
        annotated = annotated.rename(columns={"review": "unbag_review"})
    empty = unbag.fit(annotated, background=False, alpha=1.0, **columns)
    np.testing.assert_array_equal(empty.coef_, plain.coef_)
    assert "known" not in empty.roles_
    annotated.loc[::3, name] = frame.loc[::3, "truth"]
    told = unbag.fit(annotated, background=False, alpha=1.0, **columns)
    named = unbag.fit(
        frame.assign(mine=annotated[name]), known="mine", background=False, alpha=1.0, **columns
    )
    np.testing.assert_array_equal(told.coef_, named.coef_)
    assert not np.allclose(told.coef_, plain.coef_)
    assert told.roles_["known"] == name
    without = unbag.fit(annotated, ignore_known=True, background=False, alpha=1.0, **columns)
    np.testing.assert_array_equal(without.coef_, plain.coef_)
    pq.write_table(pa.Table.from_pandas(annotated), tmp_path / "t.parquet")
    stored = out_of_core.fit(unbag.ORLogisticRegression(), tmp_path / "t.parquet", **NAMED)
    np.testing.assert_allclose(stored.coef_, told.coef_, atol=1e-6)


def test_known_labels_are_used_or_refused(frame, bags, y, tmp_path):
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    annotated = unbag.fit(frame, **columns).annotate_frame(frame)
    with pytest.raises(DataError, match="annotation is what annotate answered, not what a person"):
        unbag.fit(annotated, known="annotation", **columns)
    with pytest.raises(DataError, match="known= and ignore_known=True: choose one"):
        unbag.fit(frame, known="truth", ignore_known=True, **columns)
    with pytest.raises(DataError, match=r"no column 'trueth' for known.*'truth'"):
        unbag.fit(frame, known="trueth", **columns)
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=r"learn from labels of bags alone: leave out known="):
        compare(tmp_path / "t.csv", Roles(known="truth", **columns))
    path = tmp_path / "t.npz"
    unbag.tables.write_bags(path, bags, training_set(frame, None, None, **columns).labels)
    told = unbag.fit(path, known="instance_label")
    np.testing.assert_allclose(told.coef_, unbag.fit(bags, y, known=bags.instance_labels).coef_)
    with pytest.raises(DataError, match="has no column 'truth': files of this format"):
        unbag.fit(path, known="truth")


def test_known_labels_reach_the_fits_of_a_check(frame, monkeypatch):
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    told = []
    own_fit = unbag.ORLogisticRegression.fit

    def fit(self, X, y, **more):
        told.append((X, more["instance_labels"]))
        return own_fit(self, X, y, **more)

    monkeypatch.setattr(unbag.ORLogisticRegression, "fit", fit)
    model = unbag.ORLogisticRegression()
    unbag.check_labels(model, frame, known="truth", cv=3, random_state=0, **columns)
    assert len(told) == 3
    truth = {
        tuple(row): label
        for row, label in zip(frame[FEATURES].to_numpy(), frame["truth"], strict=True)
    }
    for bags, known in told:
        assert list(known) == [truth[tuple(row)] for row in bags.X]


def test_a_fit_says_which_roles_it_uses(frame, caplog):
    caplog.set_level("INFO", logger="unbag")
    known = frame.assign(mine=frame["truth"].where(np.arange(len(frame)) % 4 == 0), site="hut")
    roles = Roles(bag="file", labels="tags", features=FEATURES, instance_labels="truth")
    unbag.fit(known, known="mine", roles=roles)
    said = caplog.text
    assert "Roles: bag = file; labels = tags; known = mine." in said
    assert "Not learnt from: instance_labels = truth. " in said
    assert "Labels of instances that people gave, learnt from: 30." in said
    assert "Features (3): " in said
    assert re.search(r"Columns that are not used \(\d+\): .*site", said)


# Something to learn.


def test_labels_that_look_like_several_are_refused_at_every_door(frame, folder, capsys):
    odd = frame.assign(tags=np.repeat(["owl;tit", "owl", "tit"], 40))
    pq.write_table(pa.Table.from_pandas(odd), folder / "part-0.parquet")
    columns = {"bag": "file", "labels": "tags"}
    said = r"looks like several, separated by ';' rather than '\|': use "
    model = unbag.ORLogisticRegression()
    for call in (
        lambda: unbag.fit(odd, **columns),
        lambda: unbag.tune(odd, **columns),
        lambda: unbag.check_labels(model, odd, **columns),
        lambda: out_of_core.fit(model, folder, **columns),
    ):
        with pytest.raises(DataError, match=f"{said}label_separator=';'"):
            call()
    for more in ((), ("--out-of-core",)):
        assert run("fit", folder, "--bag", "file", "--labels", "tags", "-o", "m", *more) == 1
        assert re.search(f"{said}--label-separator ';'", capsys.readouterr().err)


def test_bags_without_a_label_teach_nothing(frame, bags):
    for call in (
        lambda: unbag.fit(frame.assign(tags="(none)"), bag="file", labels="tags"),
        lambda: unbag.fit(bags, [set()] * 30),
        lambda: unbag.tune(bags, [set()] * 30),
    ):
        with pytest.raises(DataError, match="no bag has a label, and nothing can be learnt"):
            call()


# Corrected tables.


def test_a_corrected_table_is_taken_in_python_too(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"bag": "file", "labels": "tags", "features": FEATURES}
    first = unbag.fit(frame, **columns)
    corrected = first.annotate_frame(frame)
    corrected.loc[::5, "known_label"] = frame.loc[::5, "truth"]
    corrected.to_csv("corrected.csv", index=False)
    told = unbag.fit(frame, corrections="corrected.csv", **columns)
    by_column = unbag.fit(frame.assign(known=corrected["known_label"]), known="known", **columns)
    np.testing.assert_array_equal(told.coef_, by_column.coef_)
    assert not np.allclose(told.coef_, first.coef_)
    corrected.iloc[1:].to_csv("corrected.csv", index=False)
    with pytest.raises(DataError, match="name a column of ids by instance_id"):
        unbag.fit(frame, corrections="corrected.csv", **columns)


def test_corrected_tables_are_refused_out_of_core_at_every_door(folder, tmp_path, capsys):
    (tmp_path / "corrected.csv").write_text("known_label\n")
    with pytest.raises(DataError, match=r"corrected\.csv looks like a file, but known must be a"):
        out_of_core.fit(unbag.ORLogisticRegression(), folder, known=str(tmp_path / "corrected.csv"))
    options = ("--out-of-core", "--corrections", tmp_path / "corrected.csv", "-o", "m.unbag")
    assert run("fit", folder, *options) == 1
    assert "--corrections cannot be used out of core" in capsys.readouterr().err


# Labels in the classes of a model.


def test_labels_are_aligned_in_one_way(frame, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # The same word with its accent in one character, and in two.
    named = {"bag": "file", "labels": "tags"}
    one, two = "tr\u00e4", "tra\u0308"
    model = unbag.fit(frame.replace({"tags": "owl"}, one, regex=True), features=FEATURES, **named)
    spelt = frame.replace({"tags": "owl"}, two, regex=True)
    pq.write_table(pa.Table.from_pandas(spelt), folder / "part-0.parquet")
    out_of_core.annotate(model, folder, "out.parquet", **named)
    found = pq.read_table("out.parquet")["annotation"].to_pylist()
    assert found == model.annotate_frame(spelt, **named)["annotation"].tolist()
    model.save("m.unbag")
    pq.write_table(pa.Table.from_pandas(frame), folder / "part-0.parquet")
    said = "the unknown label 'owl'; the model knows tit, .* fit again with it, or use "
    with pytest.raises(DataError, match=f"{said}ignore_labels=True"):
        model.annotate_frame(frame, **named)
    with pytest.raises(DataError, match=f"{said}use_labels=False"):
        out_of_core.annotate(model, folder, "out.parquet", **named)
    for more in ((), ("--out-of-core",)):
        assert run("annotate", "m.unbag", folder, "-o", "out.parquet", *more) == 1
        assert re.search(f"{said}--ignore-labels", capsys.readouterr().err)


# Arguments and options.


def test_arguments_are_options_while_a_command_runs(frame, tmp_path, capsys):
    (tmp_path / "t.csv").write_text("bag,labels,x\n1,a,\n")
    with pytest.raises(DataError, match=r"replaced by the mean \(missing_values=\)"):
        unbag.fit(tmp_path / "t.csv", features=["x"])
    assert run("fit", tmp_path / "t.csv", "--features", "x", "-o", tmp_path / "m.unbag") == 1
    assert "replaced by the mean (--missing-values)" in capsys.readouterr().err
    assert _messages.argument("missing_values", "drop") == "missing_values='drop'"


def texts_with_options(file):
    """Yield the texts of a file, but for docstrings, that speak of an option."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings and re.search(r"--[a-z{]", node.value):
            yield node.value


def test_only_the_command_line_speaks_of_options():
    # Demos print the commands that do what they do.
    apart = {SOURCES / "cli", SOURCES / "demo.py"}
    files = [file for file in SOURCES.rglob("*.py") if not apart & {file, *file.parents}]
    assert len(files) > 100
    # A command to run may have options.
    commands = re.compile(r"(unbag [a-z]+|pip install) --[a-z-]+")
    found = [(file.name, text) for file in files for text in texts_with_options(file)]
    assert [each for each in found if re.search(r"--[a-z{]", commands.sub("", each[1]))] == []
    assert list(texts_with_options(SOURCES / "cli" / "large.py"))


def test_a_context_is_not_taught_labels_that_its_bag_lacks():
    # A model that believes label sets to be wrong is sure of all instances of two bags.
    proba = np.array([[0.95, 0.05], [0.05, 0.95], [0.95, 0.05], [0.05, 0.95]])
    plain = SimpleNamespace(
        classes_=np.array(["owl", "tit"]), annotate_proba=lambda bags, labels: proba
    )
    bags = unbag.Bags(np.zeros((4, 1)), [0, 2, 4])
    sets = unbag.LabelSets.parse([{"owl"}, {"owl", "tit"}])
    taught = taught_labels(plain, bags, sets, None)
    assert taught.tolist() == ["owl", None, "owl", "tit"]


# Labels by the ids of bags.


def by_id(bags, y):
    """Label sets by id, in another order than the bags."""
    return {str(bag): set(y[bag].split("|")) for bag in bags.ids[::-1]}


def test_labels_may_be_a_dict_by_the_ids_of_bags(bags, y):
    given = by_id(bags, y)
    expected = unbag.fit(bags, [given[bag] for bag in bags.ids], max_iter=5)
    model = unbag.fit(bags, given, max_iter=5)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.score(bags, given) == expected.score(bags, list(y[bags.ids]))
    np.testing.assert_array_equal(model.annotate(bags, given), expected.annotate(bags, y))
    # Bags without ids are counted.
    counted = {b: given[bag] for b, bag in enumerate(bags.ids)}
    again = unbag.fit(list(bags), counted, max_iter=5)
    np.testing.assert_array_equal(again.coef_, expected.coef_)
    weights = dict(zip(bags.ids.tolist(), np.arange(1.0, 31.0).tolist(), strict=True))
    one, other = (
        unbag.ORLogisticRegression(max_iter=5).fit(bags, given, sample_weight=weight)
        for weight in (dict(reversed(weights.items())), list(weights.values()))
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)


WRONG_KEYS = {
    "one is missing": (lambda given: given.pop("f03.wav"), "it lacks 'f03.wav': give one entry"),
    "one is strange": (lambda given: given.update(f99={"owl"}), "it has 'f99', which is none:"),
}


@pytest.mark.parametrize("case", WRONG_KEYS)
def test_keys_that_are_not_the_ids_are_named(case, bags, y):
    change, message = WRONG_KEYS[case]
    change(given := by_id(bags, y))
    with pytest.raises(
        ValueError, match=re.escape(f"The keys of y must be the ids of the bags, but {message}")
    ):
        unbag.fit(bags, given)


def test_a_dict_without_bags_is_refused(bags, y):
    with pytest.raises(ValueError, match="together with the bags only"):
        unbag.LabelSets.parse(by_id(bags, y))
    with pytest.raises(ValueError, match=r"known is an array .*, not a dict"):
        unbag.fit(bags, by_id(bags, y), known={"f03.wav": ["owl"]})


# Where nothing can be learnt.

ALIKE = {
    "one bag": (["owl|wren"], r"there is one bag \(owl, wren\), and nothing can be learnt"),
    "one class": (["owl"] * 3, r"all 3 bags have the same labels \(owl\), and nothing can be"),
    "the same classes": (["owl|wren"] * 3, r"all 3 bags have the same labels \(owl, wren\), and"),
    "one bag with labels": (["owl", "(unknown)"], r"there is one bag with known labels \(owl\)"),
}


def few(tags):
    return pd.DataFrame(
        {"bag": np.repeat(np.arange(len(tags)), 2), "labels": np.repeat(tags, 2),
         "x": np.arange(2.0 * len(tags))}
    )  # fmt: skip


@pytest.mark.parametrize("case", ALIKE)
def test_label_sets_that_are_all_alike_are_warned_of(case, tmp_path, capsys):
    tags, message = ALIKE[case]
    with pytest.warns(UserWarning, match=f"The frame: {message}.* by known="):
        unbag.fit(few(tags), max_iter=2)
    # Whoever knows the labels of instances can learn from one bag.
    assert unbag.fit(
        few(tags).assign(known_label=["owl", *[None] * (2 * len(tags) - 1)]), max_iter=2
    )
    few(tags).to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.unbag", "--max-iter", 2)
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(message, said)
    assert "--known" in said


@pytest.mark.parametrize("tags", [["owl", "(none)"], ["owl", "owl|wren"], ["owl|tit", "owl|?tit"],
                                  ["owl/wren", "owl/tit", "owl", "wren", "tit"]])  # fmt: skip
def test_label_sets_that_differ_are_not(tags):
    assert unbag.fit(few(tags), any_of="/", max_iter=2, background=True)
