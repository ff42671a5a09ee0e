"""Tables that are annotated twice: what annotate wrote is written anew, all else stays."""

import csv
import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from toys import ROLES
from unbag.tables import Roles, convert, read
from unbag.tables.annotated import ANSWERS, KNOWN_LABEL, MARK

OURS = (*ANSWERS, KNOWN_LABEL)
SUFFIXES = (".csv", ".parquet", ".feather")


def columns_of(path):
    """Read a table of any format as a dict of columns."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
        return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    table = pq.read_table(path) if path.suffix == ".parquet" else pa.feather.read_table(path)
    return table.to_pydict()


def with_columns(words, path, **more):
    """Write the words with more columns, each full of one value, in any format."""
    table = pa_csv.read_csv(words)
    for name, value in more.items():
        table = table.append_column(name, pa.array([value] * table.num_rows))
    if path.suffix == ".csv":
        pa_csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        pa.feather.write_feather(table, str(path))
    return path


def annotate_twice(run, model, first, folder, suffix):
    once, twice = folder / f"once{suffix}", folder / f"twice{suffix}"
    for table, out in ((first, once), (once, twice)):
        code, _, errors = run("annotate", model, table, "-o", out, "--features")
        assert code == 0, errors
    return columns_of(once), columns_of(twice)


# Columns that users may have: none, some, all but in another order, and prefixed ones.
OWN = {
    "none": (),
    "annotation": ("annotation",),
    "some": ("review", "known_label", "entropy"),
    "prefixed": ("annotation", "unbag_annotation", "unbag_annotation_2"),
    "all in another order": tuple(reversed(OURS)),
    "all prefixed": tuple(f"unbag_{name}" for name in reversed(OURS)),
    "all but one in our order": ANSWERS[:-1],
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("case", OWN)
def test_columns_of_the_users_own_outlive_any_number_of_runs(
    words, model, run, tmp_path, case, suffix
):
    own = {name: f"my {name}" for name in OWN[case]}
    first = with_columns(words, tmp_path / f"own{suffix}", **own)
    before = columns_of(first)
    once, twice = annotate_twice(run, model, first, tmp_path, suffix)
    assert list(once) == list(twice)
    # There is one place for what people know.
    assert len(once) == len(before) + len(OURS) - ("known_label" in before)
    assert {name: twice[name] for name in before} == before
    assert once == twice


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_column_of_all_our_names_that_holds_other_things_is_not_ours(
    words, model, run, tmp_path, suffix
):
    """Names alone, side by side and in our order, do not do where the numbers are none."""
    first = with_columns(words, tmp_path / f"own{suffix}", **dict.fromkeys(OURS, "mine"))
    before = columns_of(first)
    once, twice = annotate_twice(run, model, first, tmp_path, suffix)
    assert {name: twice[name] for name in before} == before
    assert once == twice


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_people_filled_in_is_kept_and_goes_into_a_fit(words, model, run, tmp_path, suffix):
    """Also where there is a column known_label already: annotate adds no other."""
    first = with_columns(words, tmp_path / f"own{suffix}", known_label="")
    out = tmp_path / f"out{suffix}"
    assert run("annotate", model, first, "-o", out, "--features")[0] == 0
    assert not [name for name in columns_of(out) if name.startswith("unbag_")]
    table = read(out, Roles(bag="word", labels="tags", carry=["letter", "note"]))
    assert table.bags.n_features == 16
    filled = tmp_path / f"filled{suffix}"
    fit = ("fit", first, *ROLES, "-o", tmp_path / "n.unbag", "--max-iter", "3", "--json")
    code, _, errors = run(*fit, "--corrections", out)
    assert code == 1
    assert "no label is filled in in the column 'known_label'" in errors
    table.write(filled, {"known_label": table.column("letter")})
    code, text, errors = run(*fit, "--corrections", filled)
    assert code == 0, errors
    assert json.loads(text)["known_instance_labels"] == table.bags.n_instances

    # Annotated anew, the labels stay; a file that holds them is not replaced by another table's.
    again = tmp_path / f"again{suffix}"
    assert run("annotate", model, filled, "-o", again, "--features")[0] == 0
    found = columns_of(again)
    assert found["known_label"] == found["letter"]
    assert len(found) == len(columns_of(out))
    code, _, errors = run("annotate", model, first, "-o", again)
    assert code == 1
    assert "labels that were filled in, in its column 'known_label'" in errors
    assert columns_of(again) == found


def test_a_marked_column_that_the_user_writes_is_no_longer_ours(words, model, run, tmp_path):
    out, own = tmp_path / "out.parquet", tmp_path / "own.parquet"
    assert run("annotate", model, words, "-o", out)[0] == 0
    assert json.loads(pq.read_schema(out).metadata[MARK]) == dict(zip(OURS, OURS, strict=True))
    table = read(out, Roles(bag="word", labels="tags", carry=["letter", "note"]))
    table.write(own, {"annotation": table.column("letter")})
    assert "annotation" not in json.loads(pq.read_schema(own).metadata[MARK])
    again = tmp_path / "again.parquet"
    assert run("annotate", model, own, "-o", again)[0] == 0
    found = columns_of(again)
    assert found["annotation"] == found["letter"]
    assert "unbag_annotation" in found


@pytest.mark.parametrize("mark", [b"no JSON", b"[1]", b'{"annotation": ["letter"]}', b"\xff"])
def test_a_mark_that_makes_no_sense_is_passed_over(words, model, run, tmp_path, mark):
    first = with_columns(words, tmp_path / "own.parquet", annotation="mine")
    table = pq.read_table(first)
    pq.write_table(table.replace_schema_metadata({MARK: mark}), first)
    assert run("annotate", model, first, "-o", tmp_path / "out.parquet")[0] == 0
    assert set(columns_of(tmp_path / "out.parquet")["annotation"]) == {"mine"}


def test_features_of_bags_without_rows_are_kept(words, model, run, tmp_path):
    """The long table of an ARFF file has columns, too: one may be called entropy."""
    named = tmp_path / "named.csv"
    named.write_text(words.read_text().replace("x-box", "entropy"))
    roles = Roles(bag="word", labels="tags", carry=["letter", "note"])
    convert(named, tmp_path / "w.arff", roles)
    path, out = tmp_path / "n.unbag", tmp_path / "out.csv"
    assert run("fit", tmp_path / "w.arff", "-o", path, "--max-iter", "3")[0] == 0
    code, _, errors = run("annotate", path, tmp_path / "w.arff", "-o", out)
    assert code == 0, errors
    found = columns_of(out)
    bags = read(tmp_path / "w.arff").bags
    assert list(map(float, found["entropy"])) == bags.X[:, 0].tolist()
    assert "unbag_entropy" in found


def test_annotated_tables_have_no_more_features(words, model, run, tmp_path):
    own = with_columns(words, tmp_path / "own.csv", probability=0.5)
    assert run("annotate", model, own, "-o", tmp_path / "out.csv", "--features")[0] == 0
    roles = Roles(bag="word", labels="tags", carry=["letter", "note"])
    names = [read(tmp_path / name, roles).bags.feature_names for name in ("own.csv", "out.csv")]
    assert names[0].tolist() == names[1].tolist()
    assert "probability" in names[1]


def test_a_fit_says_that_features_may_have_been_left_out(words, model, run, tmp_path):
    out, own = tmp_path / "out.csv", with_columns(words, tmp_path / "own.csv", low=1)
    assert run("annotate", model, own, "-o", out)[0] == 0
    fit = ("fit", out, *ROLES, "-o", tmp_path / "n.unbag", "--alpha", "1", "--untagged", "unknown")
    _, _, errors = run(*fit)
    assert "low may not be all" in " ".join(errors.split())
    _, _, errors = run(*fit, "--features", "low")
    assert "may not be all" not in errors


@pytest.mark.parametrize("name", ["predicted", "p(E)"])
def test_predict_replaces_no_column_of_bags(words, run, tmp_path, name):
    words.write_text(words.read_text().replace("word", name, 1))
    model, out = tmp_path / "n.unbag", tmp_path / "bags.csv"
    roles = ("--bag", name, *ROLES[2:])
    assert run("fit", words, *roles, "-o", model, "--max-iter", "3")[0] == 0
    assert run("predict", model, words, "-o", out)[0] == 0
    found = columns_of(out)
    assert all(each.startswith("w") for each in found[name])
    assert f"unbag_{name}" in found


def test_labels_of_a_second_table_replace_no_column(run, tmp_path):
    (tmp_path / "t.csv").write_text("bag,labels,x\na,mine,1\nb,mine,2\n")
    (tmp_path / "l.csv").write_text("bag,label\na,u\nb,v\n")
    code, _, errors = run(
        "data", "convert", tmp_path / "t.csv", tmp_path / "t.parquet",
        "--label-table", tmp_path / "l.csv",
    )  # fmt: skip
    assert code == 1
    assert "has a column 'labels' already" in errors
    assert not (tmp_path / "t.parquet").exists()


@pytest.mark.parametrize("tool", ["raven", "audacity"])
def test_selections_do_not_replace_what_is_read(words, model, run, tmp_path, tool):
    own = with_columns(words, tmp_path / "own.csv", start=0.0, end=1.0, media="one.wav")
    before, out = own.read_bytes(), tmp_path / "out.csv"
    code, _, errors = run("annotate", model, own, "-o", out, "--write", f"{tool}={own}")
    assert code == 1
    assert "is also the input" in errors
    assert own.read_bytes() == before
    written = f"{tool}={tmp_path / 's.txt'}"
    code, _, errors = run("annotate", model, own, "-o", out, "--write", written)
    assert code == 0, errors


@pytest.mark.parametrize(("tool", "name"), [("raven", "words.csv"), ("audacity", "one.txt")])
def test_selections_that_cannot_be_written_cost_no_table(words, model, run, tmp_path, tool, name):
    own = with_columns(words, tmp_path / "own.csv", start=0.0, end=1.0)
    out = tmp_path / "out.csv"
    out.write_text("what was there before")
    written = f"{tool}={tmp_path / name}"
    code, _, errors = run("annotate", model, own, "-o", out, "--write", written)
    assert code == 1
    assert "each needs a file of its own" in errors
    assert out.read_text() == "what was there before"


def test_the_column_that_is_named_is_the_one_that_was_written(words, model, run, tmp_path):
    own = with_columns(words, tmp_path / "own.csv", review="by Ann")
    code, _, errors = run("annotate", model, own, "-o", tmp_path / "out.csv")
    assert code == 0
    assert "flagged for review (column unbag_review)" in errors


def test_labels_that_people_gave_are_compared_with_annotations(tmp_path, run):
    rows = ["a,owl,0,owl", "a,owl,1,background", "b,wren,9,", "b,wren,8,Wren", "c,owl|wren,9,owl",
            "c,owl|wren,0,"]  # fmt: skip
    (path := tmp_path / "t.csv").write_text("bag,labels,x,known_label\n" + "\n".join(rows))
    model = tmp_path / "m.unbag"
    assert run("fit", path, "--ignore-known", "-o", model)[0] == 0
    code, _, err = run("annotate", model, path, "-o", tmp_path / "a.csv")
    assert code == 0
    assert "4 rows have a label that people gave (column known_label), which stays" in err
    # Background, another case, and the owl among wrens.
    assert "3 of them are annotated otherwise" in err
    code, out, _ = run("annotate", model, path, "-o", tmp_path / "a2.csv", "--json")
    assert json.loads(out)["known_labels_annotated_otherwise"] == 3
