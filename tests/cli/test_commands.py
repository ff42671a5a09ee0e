"""The commands, from a table to annotated instances and a report."""

import csv
import json
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import unbag
from toys import ROLES, word_lines
from unbag.corrections import corrected_labels
from unbag.datasets import make_bags
from unbag.metrics import average_precision
from unbag.models import read_header
from unbag.tables import Roles, read
from unbag.tables.annotated import ANSWERS, KNOWN_LABEL

OURS = (*ANSWERS, KNOWN_LABEL)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_fit_and_annotate_a_table(words, model, run, tmp_path):
    """The library's own answers, row by row, and everything else untouched."""
    out = tmp_path / "out.csv"
    code, _, errors = run("annotate", model, words, "-o", out, "--features")
    assert code == 0
    assert "using the tags of the bags" in errors
    before, after = rows_of(words), rows_of(out)
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        assert {name: new[name] for name in old} == old
    table = read(words, Roles(bag="word", labels="tags", carry=("letter", "note")))
    loaded = unbag.load(model)
    proba = loaded.annotate_proba(table.bags, table.labels.reindex(loaded.classes_))
    written = np.array([float(row["probability"]) for row in after])[table.rows]
    np.testing.assert_allclose(written, proba.max(axis=1), rtol=0, atol=1e-12)
    chosen = np.array([row["annotation"] for row in after])[table.rows]
    np.testing.assert_array_equal(chosen, loaded.classes_[proba.argmax(axis=1)])
    assert {row["review"] for row in after} == {"true", "false"}
    right = np.mean([row["annotation"] == row["letter"] for row in after])
    assert right > 0.8


def test_labels_are_used_only_if_wanted(words, model, run, tmp_path):
    known, ignored = tmp_path / "known.csv", tmp_path / "ignored.csv"
    run("annotate", model, words, "-o", known)
    code, _, errors = run("annotate", model, words, "-o", ignored, "--ignore-labels")
    assert code == 0
    assert "without the tags of the bags" in errors
    right = [
        np.mean([row["annotation"] == row["letter"] for row in rows_of(path)])
        for path in (known, ignored)
    ]
    assert right[0] > right[1]
    bare = tmp_path / "bare.csv"
    lines = [",".join(f'"{cell}"' for name, cell in row.items() if name != "tags")
             for row in rows_of(words)]  # fmt: skip
    header = ",".join(name for name in rows_of(words)[0] if name != "tags")
    bare.write_text("\n".join([header, *lines]).replace('"0', '"0') + "\n")
    code, _, errors = run("annotate", model, bare, "-o", tmp_path / "bare_out.csv")
    assert code == 0, errors
    assert "without the tags of the bags" in errors


def test_parquet_in_parquet_out(words, model, run, tmp_path):
    source = tmp_path / "words.parquet"
    import pyarrow.csv

    pq.write_table(pyarrow.csv.read_csv(words), source)
    out = tmp_path / "out.parquet"
    assert run("annotate", model, source, "-o", out)[0] == 0
    before, after = pq.read_table(source), pq.read_table(out)
    assert after.select(before.column_names).equals(before)
    assert after.schema.field("review").type == "bool"


def test_predict_bags(words, model, run, tmp_path):
    out = tmp_path / "bags.csv"
    assert run("predict", model, words, "-o", out)[0] == 0
    rows = rows_of(out)
    assert len(rows) == 60
    assert {"word", "predicted", "p(A)"} <= set(rows[0])
    assert all(0 <= float(row["p(A)"]) <= 1 for row in rows)


@pytest.mark.parametrize("command", ["predict", "check"])
def test_tables_are_written_as_they_are_read(command, words, model, run, tmp_path):
    """A spreadsheet with decimal commas opens both, or neither."""
    header, *lines = words.read_text().replace(",", ";").splitlines()
    text = "\n".join([header, *(f"{line},5" for line in lines), ""])
    table, out = tmp_path / "german.csv", tmp_path / "bags.csv"
    table.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    given = ["predict", model, table] if command == "predict" else ["check", table, *ROLES]
    assert run(*given, "-o", out)[0] == 0
    written = out.read_bytes()
    assert written.startswith(b"\xef\xbb\xbf")
    header, *lines = written[3:].decode().split("\r\n")
    name, numbers = ("p(A)", 2) if command == "predict" else ("p_wrong", 3)
    assert name in header.split(";")
    assert lines.pop() == ""
    assert len({line.count(";") for line in [header, *lines]}) == 1
    number = lines[0].split(";")[numbers]
    assert "," in number
    assert 0 <= float(number.replace(",", ".")) <= 1


def test_evaluate(words, model, run):
    code, out, _ = run("evaluate", model, words, "--instance-labels", "letter", "--json")
    assert code == 0
    measures = json.loads(out)
    assert measures["transductive_accuracy"] > measures["inductive_accuracy"] > 0.6
    assert 0 <= measures["hamming_loss"] < 0.2
    code, out, _ = run("evaluate", model, words, "--instance-labels", "letter")
    assert "labels right given tags" in out
    assert "predict nothing" in out
    assert "on the 237 labelled rows of this table" in " ".join(out.split())
    assert "The model was fitted to this table" in out


def test_a_dry_run_reads_little_and_writes_nothing(words, run, tmp_path):
    target = tmp_path / "never.unbag"
    code, out, _ = run("fit", words, *ROLES, "-o", target, "--dry-run")
    assert code == 0
    assert not target.exists()
    assert "bag: word" in out
    assert "labels: tags" in out
    assert "carried through: " in out


def test_roles_from_a_file(words, model, run, tmp_path):
    roles = tmp_path / "roles.toml"
    roles.write_text('bag = "word"\nlabels = "tags"\ncarry = ["letter", "note"]\n')
    again = tmp_path / "again.unbag"
    assert run("fit", words, "--roles", roles, "-o", again, "--max-iter", "30")[0] == 0
    np.testing.assert_array_equal(unbag.load(again).coef_, unbag.load(model).coef_)


def test_a_model_remembers_what_it_was_fitted_to(model):
    header = read_header(model)
    assert header["info"]["source"] == "words.csv"
    assert header["info"]["bags"] == 60
    assert header["info"]["roles"]["bag"] == "word"


@pytest.mark.parametrize(
    "options",
    [("--context", "0.5"), ("--kernel", "1.0", "--dictionary", "50"), ("--background", "yes"),
     ("--kernel", "0.5", "--context", "1", "--dictionary", "50")],
)  # fmt: skip
def test_other_models(options, words, run, tmp_path):
    path, out = tmp_path / "other.unbag", tmp_path / "out.csv"
    code, _, errors = run("fit", words, *ROLES, "-o", path, "--max-iter", "20", *options)
    assert code == 0, errors
    assert run("annotate", path, words, "-o", out)[0] == 0
    assert np.mean([row["annotation"] == row["letter"] for row in rows_of(out)]) > 0.6


@pytest.mark.parametrize(("share", "wanted"), [(0.0, False), (2 / 3, True)])
def test_background_is_decided_and_said(share, wanted, run, tmp_path):
    toy = make_bags(80, bag_size=(6, 12), labels_per_bag=(1, 3), background=share, random_state=0)
    table, path = tmp_path / "toy.npz", tmp_path / "toy.unbag"
    arrays = {"X": toy.bags.X, "offsets": toy.bags.offsets, "class_names": toy.class_names}
    np.savez(table, bag_labels=toy.y, **arrays)
    code, _, said = run("fit", table, "-o", path)
    assert code == 0, said
    assert ("of the rows look like none of the tags" in said) is wanted
    facts = json.loads(run("fit", table, "-o", path, "--json")[1])["decision"]
    assert (facts["kind"] == "background") is wanted
    assert facts["held_out"]["n_bags"] == 80
    assert read_header(path)["info"]["decision"] == facts
    for answer, used in (("yes", True), ("no", False)):
        facts = json.loads(run("fit", table, "-o", path, "--background", answer, "--json")[1])
        assert (facts["decision"]["kind"] == "background") is used
        assert unbag.load(path).has_background_ is used


def test_predict_and_evaluate_have_one_score(words, model, run, tmp_path):
    out = tmp_path / "bags.csv"
    assert run("predict", model, words, "-o", out)[0] == 0
    rows = rows_of(out)
    classes = [name[2:-1] for name in rows[0] if name.startswith("p(")]
    proba = np.array([[float(row[f"p({name})"]) for name in classes] for row in rows])
    predicted = np.array([[name in row["predicted"].split("|") for name in classes]
                          for row in rows])  # fmt: skip
    np.testing.assert_array_equal(predicted, proba >= 0.5)
    truth = read(words, Roles(bag="word", labels="tags")).labels.reindex(classes)
    found = json.loads(run("evaluate", model, words, "--json")[1])
    assert found["average_precision"] == pytest.approx(average_precision(truth, proba))
    assert found["hamming_loss"] == pytest.approx(np.mean(predicted != truth.indicator))


def test_corrections_go_back_in(words, model, run, tmp_path):
    """What a person fills in is known from then on."""
    out = tmp_path / "out.csv"
    run("annotate", model, words, "-o", out, "--features")
    rows = rows_of(out)
    wrong = [row for row in rows if row["annotation"] != row["letter"]]
    assert wrong
    for row in wrong:
        row["known_label"] = row["letter"]
    corrected = tmp_path / "corrected.csv"
    with corrected.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    better = tmp_path / "better.unbag"
    code, out_text, errors = run(
        "fit", words, *ROLES, "-o", better, "--corrections", corrected, "--max-iter", "30",
        "--json",
    )  # fmt: skip
    assert code == 0, errors
    assert json.loads(out_text)["known_instance_labels"] == len(wrong)
    accuracy = [
        json.loads(run("evaluate", path, words, "--instance-labels", "letter", "--json")[1])
        for path in (model, better)
    ]
    assert accuracy[1]["inductive_accuracy"] > accuracy[0]["inductive_accuracy"]
    # They are left out of a comparison, as soon as it is known which they are.
    evaluate = ("evaluate", better, words, "--instance-labels", "letter")
    said = run(*evaluate)[2]
    assert f"The model has learnt from {len(wrong)} known labels of rows." in said
    left = json.loads(run(*evaluate, "--corrections", corrected, "--json")[1])
    assert left["instances"] == len(rows) - len(wrong)
    on_corrected = run("evaluate", better, corrected, "--instance-labels", "letter")
    assert f"{len(wrong)} labelled rows are left out of the comparison" in on_corrected[2]


def filled_in(path, target, *, order=None):
    """Fill in all known labels of annotate's output, perhaps in another order of rows."""
    rows = rows_of(path)
    for row in rows:
        row["known_label"] = row["letter"]
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows if order is None else sorted(rows, key=order))
    return target


def test_corrections_in_another_order_are_refused(words, model, run, tmp_path):
    """Sorted within bags: bags stand where they stood, instances do not."""
    out = tmp_path / "out.csv"
    words.write_text("\n".join(word_lines()) + "\n")
    run("annotate", model, words, "-o", out, "--features")
    shuffled = filled_in(out, tmp_path / "c.csv", order=lambda row: (row["word"], row["entropy"]))
    code, _, errors = run(
        "fit", words, *ROLES, "-o", tmp_path / "n.unbag", "--corrections", shuffled
    )
    assert code == 1
    assert "in another order" in errors
    code, out_text, errors = run(
        "fit", words, *ROLES[:4], "--carry", "letter", "--instance-id", "note", "-o",
        tmp_path / "n.unbag", "--corrections", shuffled, "--max-iter", "5", "--json",
    )  # fmt: skip
    assert code == 0, errors
    assert json.loads(out_text)["known_instance_labels"] == len(rows_of(words))


def test_a_table_without_features_comes_home_in_any_order(words, model, run, tmp_path):
    """Rows have numbers there: also where no column of ids is named."""
    out, fit = tmp_path / "out.csv", ("fit", words, *ROLES, "-o", tmp_path / "n.unbag")
    code, _, errors = run("annotate", model, words, "-o", out)
    assert code == 0
    assert f"16 columns of features left out of {out}; --features keeps them." in errors
    assert list(rows_of(out)[0]) == ["word", *OURS, "tags", "letter", "note", "unbag_row"]
    sorted_ = filled_in(out, tmp_path / "c.csv", order=lambda row: row["entropy"])
    code, out_text, errors = run(*fit, "--corrections", sorted_, "--max-iter", "5", "--json")
    assert code == 0, errors
    assert json.loads(out_text)["known_instance_labels"] == len(rows_of(words))
    known = read(words, Roles(bag="word", labels="tags", carry=("letter", "note")))
    corrected = corrected_labels(sorted_, known)
    assert corrected.tolist() == known.texts("letter")
    again = run("annotate", model, out, "-o", tmp_path / "again.csv")
    assert again[0] == 1
    assert "lacks the features, such as 'x-box', since annotate leaves them out" in again[2]
    # A row that is another one now, and one that is there twice.
    for change, message in (
        (lambda row: row | {"word": "w99"}, "belongs to bag 'w99', and it belongs to 'w"),
        (lambda row: row | {"unbag_row": "1"}, "has the unbag_row '1' twice"),
        (lambda row: row | {"unbag_row": "9999"}, "the unbag_row '9999'"),
    ):
        rows = rows_of(sorted_)
        with (tmp_path / "d.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows([change(rows[0]), *rows[1:]])
        code, _, errors = run(*fit, "--corrections", tmp_path / "d.csv")
        assert code == 1
        assert message in errors


def test_corrections_of_a_parquet_table_may_be_csv(words, model, run, tmp_path):
    import pyarrow as pa
    import pyarrow.csv

    table = pyarrow.csv.read_csv(words)
    table = table.append_column("id", pa.array(range(table.num_rows)))
    pq.write_table(table, tmp_path / "w.parquet")
    run("annotate", model, tmp_path / "w.parquet", "-o", tmp_path / "out.csv")
    corrected = filled_in(
        tmp_path / "out.csv", tmp_path / "c.csv", order=lambda row: row["entropy"]
    )
    code, out, errors = run(
        "fit", tmp_path / "w.parquet", *ROLES, "--instance-id", "id", "--max-iter", "5", "--json",
        "-o", tmp_path / "n.unbag", "--corrections", corrected,
    )  # fmt: skip
    assert code == 0, errors
    assert json.loads(out)["known_instance_labels"] == table.num_rows


def test_a_table_may_separate_labels_otherwise_than_the_model(words, model, run, tmp_path):
    outs = [tmp_path / name for name in ("out.csv", "semicolons.csv")]
    assert run("annotate", model, words, "-o", outs[0])[0] == 0
    words.write_text(words.read_text().replace("|", ";"))
    (roles := tmp_path / "roles.toml").write_text('label_separator = ";"\n')
    code, _, errors = run("annotate", model, words, "-o", outs[1], "--roles", roles)
    assert code == 0, errors
    expected, found = map(rows_of, outs)
    assert [row["annotation"] for row in found] == [row["annotation"] for row in expected]


def test_annotate_says_which_probability_a_label_of_a_level_needs(run, tmp_path):
    table, taxonomy = tmp_path / "nights.csv", tmp_path / "birds.csv"
    table.write_text("night,tags,pitch\n1,owl,1\n2,wren,4\n3,owl,1.2\n4,wren,3.9\n5,bird,2.6\n")
    taxonomy.write_text("child,parent,rank\nowl,bird,species\nwren,bird,species\n")
    model, out = tmp_path / "m.unbag", tmp_path / "out.csv"
    roles = ("--bag", "night", "--labels", "tags")
    assert run("fit", table, *roles, "--taxonomy", taxonomy, "-o", model)[0] == 0
    arguments = ("annotate", model, table, "-o", out, "--level", "species", "--back-off", "0.99")
    code, _, errors = run(*arguments)
    assert code == 0
    assert "no label is as probable as 0.99" in " ".join(errors.split())
    code, _, errors = run(*arguments, "--joint")
    assert code == 1
    assert "leave it out, or --level and --back-off" in " ".join(errors.split())


@pytest.mark.parametrize("options", [("--level", "order"), ("--back-off", "0.9")])
def test_levels_of_tables_on_disk_are_those_in_memory(options, run, tmp_path):
    rng = np.random.default_rng(0)
    kind = np.repeat(rng.integers(0, 4, 20), 3)
    table = pa.table({
        "night": np.repeat(np.arange(20), 3), "pitch": kind % 3 + 0.5 * rng.normal(size=60),
        "tags": np.array(["owl", "hawk", "wren", "raptor"])[kind],
    })  # fmt: skip
    pq.write_table(table, path := tmp_path / "nights.parquet")
    taxonomy = tmp_path / "birds.csv"
    taxonomy.write_text(
        "child,parent,rank\nowl,raptor,species\nhawk,raptor,species\nraptor,bird,order\n"
        "wren,songbird,species\nsongbird,bird,order\n"
    )
    model = tmp_path / "m.unbag"
    given = ("--bag", "night", "--labels", "tags", "--taxonomy", taxonomy)
    given = (*given, "--background", "no", "--in-memory")
    assert run("fit", path, *given, "-o", model)[0] == 0
    found = []
    for where in ("--in-memory", "--out-of-core"):
        out = tmp_path / f"out{where}.parquet"
        given = (model, path, "--ignore-labels", where, *options)
        code, _, errors = run("annotate", *given, "-o", out)
        assert code == 0, errors
        found.append(pq.read_table(out).to_pydict())
    assert found[0]["annotation"] == found[1]["annotation"]
    assert {"raptor", "songbird", "bird"} & set(found[0]["annotation"])
    np.testing.assert_allclose(found[0]["probability"], found[1]["probability"], rtol=1e-9)


def test_models_without_probabilities_and_of_numbers(words, run, tmp_path):
    table = read(words, Roles(bag="word", labels="tags", carry=("letter", "note")))
    bags = unbag.Bags(table.bags.X, table.bags.offsets, feature_names=table.bags.feature_names)
    path = tmp_path / "sim.unbag"
    unbag.paper.SIM(n_phases=2, n_steps=10).fit(bags, table.labels).save(path)
    out = tmp_path / "bags.csv"
    code, _, errors = run("predict", path, words, "--bag", "word", "-o", out)
    assert code == 0, errors
    assert list(rows_of(out)[0]) == ["word", "predicted"]
    code, _, errors = run(
        "annotate", path, words, "--bag", "word", "--labels", "tags", "-o", tmp_path / "o.csv"
    )
    assert code == 1
    assert "SIM gives rows no probabilities" in errors
    codes = {name: place for place, name in enumerate(table.labels.classes)}
    numbers = tmp_path / "numbers.csv"
    lines = words.read_text().splitlines()
    changed = [lines[0]]
    for line in lines[1:]:
        word, tags, rest = line.split(",", 2)
        changed.append(",".join([word, "|".join(str(codes[t]) for t in tags.split("|")), rest]))
    numbers.write_text("\n".join(changed) + "\n")
    model = unbag.ORLogisticRegression(max_iter=5).fit(bags, table.labels.indicator)
    model.save(tmp_path / "int.unbag")
    code, _, errors = run(
        "annotate", tmp_path / "int.unbag", numbers, "--bag", "word", "--labels", "tags", "-o",
        tmp_path / "o.csv",
    )  # fmt: skip
    assert code == 0, errors


def test_arff_knows_its_roles(words, run, tmp_path):
    arff, path = tmp_path / "train.arff", tmp_path / "birds.unbag"
    assert run("data", "convert", words, arff, *ROLES)[0] == 0
    assert run("fit", arff, "-o", path, "--max-iter", "10")[0] == 0
    out = tmp_path / "out.csv"
    assert run("annotate", path, arff, "-o", out)[0] == 0
    assert len(rows_of(out)) == len(rows_of(words))


def test_compare_on_a_table_of_ones_own(words, run, tmp_path):
    code, out, errors = run(
        "compare", words, *ROLES[:4], "--instance-labels", "letter", "--quick",
        "--methods", "unbag,dummy", "--jobs", "1", "-o", tmp_path / "results",
    )  # fmt: skip
    assert code == 0, errors
    assert "compared" in out
    assert "inductive_accuracy" in (tmp_path / "results/compare/compare.csv").read_text()


def test_help_and_version(run):
    for arguments in (["--help"], ["fit", "--help"], ["annotate", "-h"], ["data", "--help"]):
        code, out, _ = run(*arguments)
        assert code == 0
        assert "Usage" in out
    assert run("--version")[1].startswith("unbag ")


@pytest.mark.parametrize("background", ["auto", "no"])
def test_an_interrupted_fit_leaves_the_old_model(words, run, tmp_path, monkeypatch, background):
    model = tmp_path / "m.unbag"
    model.write_text("the old one")

    def interrupt(self, weights):
        raise KeyboardInterrupt

    monkeypatch.setattr("unbag.fitting.linear.Objective.statistics", interrupt)
    arguments = ["--bag", "word", "--labels", "tags", "--background", background, "-o", model]
    code, _, errors = run("fit", words, *arguments)
    assert code == 130, errors
    assert model.read_text() == "the old one"
    assert list(tmp_path.glob(".unbag-*")) == []


def test_ids_keep_their_type_in_what_is_predicted(words, model, run, tmp_path):
    table = pa_csv.read_csv(words)
    codes = table.column("word").combine_chunks().dictionary_encode().indices
    times = codes.cast("int64").cast(pa.timestamp("ns"))
    pq.write_table(table.set_column(0, "word", times), tmp_path / "w.parquet")
    code, _, errors = run("predict", model, tmp_path / "w.parquet", "-o", tmp_path / "b.parquet")
    assert code == 0, errors
    predicted = pq.read_table(tmp_path / "b.parquet").column("word")
    assert predicted.type == times.type
    assert predicted.to_pylist() == times.unique().to_pylist()


def test_a_model_of_old_knows_its_classes_by_any_spelling(words, run, tmp_path):
    """Files from before labels had one spelling keep their classes; tables still fit them."""
    words.write_text(words.read_text().replace("|E", "|\u00c9").replace("E|", "\u00c9|"))
    table = read(words, Roles(bag="word", labels="tags", carry=("letter", "note")))
    old = [f"{unicodedata.normalize('NFD', label)} " for label in table.labels.classes.tolist()]
    bags = unbag.Bags(table.bags.X, table.bags.offsets, feature_names=table.bags.feature_names)
    fitted = unbag.ORLogisticRegression(max_iter=5)
    fitted.fit(bags, unbag.LabelSets(table.labels.indicator, old)).save(tmp_path / "old.unbag")
    assert fitted.classes_.tolist() == old
    run_on = (tmp_path / "old.unbag", words, "--bag", "word", "--labels", "tags")
    assert run("annotate", *run_on, "-o", tmp_path / "out.csv")[0] == 0
    annotated = {row["annotation"] for row in rows_of(tmp_path / "out.csv")}
    assert annotated <= set(old)
    code, out, errors = run("evaluate", *run_on, "--instance-labels", "letter", "--json")
    assert code == 0, errors
    assert json.loads(out)["transductive_accuracy"] > 0.5


def test_rates_of_wrong_labels_are_given_or_learnt(words, run, tmp_path):
    path = tmp_path / "noisy.unbag"
    code, _, said = run(
        "fit", words, *ROLES, "-o", path, "--missed-rate", "0.1", "--false-rate", "learn"
    )
    assert code == 0, said
    model = unbag.models.load(path)
    assert (model.missed_rate_ == 0.1).all()
    assert ((model.false_rate_ > 0) & (model.false_rate_ < 0.2)).all()
    # What is missing is an estimate, and never the rate of unnoticed instances.
    assert "Wrong labels, an estimate: " in said
    for option, rate in [
        ("--missed-rate", "often"),
        ("--false-rate", "often"),
        ("--missed-rate", "1e-300"),
    ]:
        code, _, said = run("fit", words, *ROLES, "-o", path, option, rate)
        assert code == 1
        assert f"{option} must be 0, or at least 1e-12 and below 1, learn or" in said
