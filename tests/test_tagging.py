"""A blank in place of labels is not "none", in any layout; and what people write instead of it."""

import json
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import unbag
from unbag import Bags, LabelSets, ORLogisticRegression, Unknown, out_of_core
from unbag.tables import DataError, Roles, convert, convert_from, read, read_from, write_bags
from unbag.tables.frame import open_frame
from unbag.tagging import write_cell

REFUSAL = (
    r"2 of 4 bags have nothing in place of labels, such as 'b', 'd'\. If they were not looked .*"
    r"untagged='unknown'.*; if they were, and hold none, use .*untagged='absent'"
)
# Bag a: owl and wren; b: blank; c: owl; d: blank.
BLANKS = ["", "  ", None]


def long_frame(blank, **more):
    """Two rows a bag."""
    tags = ["owl|wren", blank, "owl", blank]
    return pd.DataFrame(
        {
            "bag": np.repeat(list("abcd"), 2),
            "labels": pd.Series(np.repeat(np.array(tags, dtype=object), 2), dtype=object),
            "x": np.arange(8.0),
            **more,
        }
    )


def states(labels):
    """Return the states of owl and wren, bag by bag."""
    return labels.reindex(["owl", "wren"]).indicator.tolist()


EXPECTED = {
    "unknown": [[1, 1], [-1, -1], [1, 0], [-1, -1]],
    "absent": [[1, 1], [0, 0], [1, 0], [0, 0]],
}


def sources(folder):
    """Yield the same table in many layouts, with its roles."""
    for blank in BLANKS:
        frame = long_frame(blank)
        frame.to_csv(path := folder / f"{blank!r}.csv", index=False)
        yield path, {}
        frame.to_parquet(path := folder / f"{blank!r}.parquet")
        yield path, {}
        yield frame, {}
    yield long_frame(np.nan), {}
    yield long_frame(pd.NA), {}
    yield long_frame(pd.NaT), {}
    yield long_frame(None).astype({"labels": "category"}), {}
    yield long_frame("").astype({"labels": "category"}), {}
    yield long_frame(None).astype({"labels": "string"}), {}
    frame = long_frame(None)
    yield pl.DataFrame(frame.to_dict("list")), {}
    yield pl.DataFrame(frame.to_dict("list")).lazy(), {}
    yield pa.Table.from_pandas(frame), {}
    lists = frame.assign(
        labels=[None if cell is None else cell.split("|") for cell in frame.labels]
    )
    yield lists, {}
    yield pl.DataFrame(lists.to_dict("list")), {}
    lists.to_parquet(path := folder / "lists.parquet")
    yield path, {}
    # As text, such as "['owl', 'wren']".
    lists.to_csv(path := folder / "lists.csv", index=False)
    yield path, {}
    # Labels in the first row of a bag alone, as in spreadsheets.
    first = frame.assign(labels=frame.labels.where(frame.index % 2 == 0, None))
    yield first, {}
    first.to_csv(path := folder / "first.csv", index=False)
    yield path, {}
    # ... or in the last.
    yield frame.assign(labels=frame.labels.where(frame.index % 2 == 1, None)), {}
    # A second table, in which bags have an empty label or no row.
    second = pd.DataFrame({"bag": list("aabc"), "label": ["owl", "wren", "", "owl"]})
    second.to_csv(path := folder / "second.csv", index=False)
    yield frame.drop(columns="labels"), {"label_table": path}
    # One row per bag.
    wide = {"bag": list("abcd"), "labels": frame.labels[::2].tolist(),
            "x": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]}  # fmt: skip
    yield pl.DataFrame(wide), {}


def test_blanks_are_refused_in_every_layout(tmp_path):
    for table, roles in sources(tmp_path):
        with pytest.raises(DataError, match=REFUSAL):
            unbag.fit(table, **roles)


@pytest.mark.parametrize("untagged", EXPECTED)
def test_what_blanks_mean_is_the_same_in_every_layout(tmp_path, untagged):
    from unbag.learning import open_table

    coefficients = []
    for table, roles in sources(tmp_path):
        with open_table(table) as source:
            found = source.read(Roles(untagged=untagged, **roles))
        assert states(found.labels) == EXPECTED[untagged]
        assert found.bags.ids.tolist() == list("abcd")
        model = unbag.fit(table, untagged=untagged, background=True, max_iter=5, **roles)
        coefficients.append(model.coef_)
    bags = Bags(np.arange(8.0)[:, None], [0, 2, 4, 6, 8])
    for y in (["owl|wren", "", "owl", None], [["owl", "wren"], None, ["owl"], np.nan],
              [{"owl", "wren"}, pd.NA, {"owl"}, ""]):  # fmt: skip
        assert states(LabelSets.parse(unbag.learning.training_set(
            bags, y, None, untagged=untagged).labels)) == EXPECTED[untagged]  # fmt: skip
        coefficients.append(
            unbag.fit(bags, y, untagged=untagged, background=True, max_iter=5).coef_
        )
    assert len(coefficients) > 25
    for one, other in pairwise(coefficients):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize(
    "y",
    [
        ["owl|wren", "", "owl", None],
        [{"owl"}, None, {"wren"}, " "],
        ["owl", "", "wren", None],
        [["owl"], [None], ["wren"], [""]],
    ],
)
def test_blanks_in_lists_are_refused(y):
    bags = Bags(np.arange(8.0)[:, None], [0, 2, 4, 6, 8], list("abcd"))
    for fit in (ORLogisticRegression().fit, unbag.fit):
        with pytest.raises(ValueError, match="2 of 4 bags have nothing in place of labels"):
            fit(bags, y)


def test_an_explicit_empty_collection_is_none():
    labels = LabelSets.parse([{"owl"}, set(), (), [], frozenset()])
    assert labels.indicator.tolist() == [[1], [0], [0], [0], [0]]
    frame = pd.DataFrame({"bag": ["a", "b"], "labels": [["owl"], []], "x": [1.0, 2.0]})
    for table in (frame, pl.DataFrame(frame.to_dict("list")), pa.Table.from_pandas(frame)):
        with unbag.learning.open_table(table) as source:
            assert source.read().labels.to_sets() == [{"owl"}, set()]


# Words for none.


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("['owl', 'wren']", ["owl", "wren"]),
        ('["owl", "caf\\u00e9"]', ["owl", "caf\u00e9"]),
        ("['owl' 'wren']", ["owl", "wren"]),
        ("{'owl'}", ["owl"]),
        ("('owl',)", ["owl"]),
        ("[3, 4]", ["3", "4"]),
        ("[\"it's\", 'a|b', 'c\\'d']", ["it's", "a|b", "c'd"]),
        ("[]", []),
        ("set()", []),
        ("[owl]", ["[owl]"]),
        ("(3)", ["(3)"]),
        ("['owl', nan]", ["['owl', nan]"]),
    ],
)
def test_lists_that_were_written_as_text(text, labels):
    table = pd.DataFrame({"bag": ["a", "b"], "labels": [text, "wren"], "x": [0.0, 1.0]})
    found = open_frame(table).read().labels.to_sets()
    assert found[0] == set(labels)


def test_a_list_as_text_that_cannot_be_read_is_warned_of():
    table = long_frame("['owl', nan]")
    with pytest.warns(UserWarning, match="looks like a list that was written as text"):
        unbag.fit(table)


def test_words_that_mean_none():
    frame = long_frame("None")
    model = unbag.fit(frame, none=["none", "silence"], max_iter=3)
    assert model.classes_.tolist() == ["owl", "wren"]
    with unbag.learning.open_table(frame) as source:
        assert states(source.read(Roles(none="none")).labels) == EXPECTED["absent"]
    assert LabelSets.parse([{"owl"}, {"none"}], none="none").to_sets() == [{"owl"}, set()]
    # Blanks are still blanks.
    frame.loc[6:, "labels"] = ""
    with pytest.raises(DataError, match="1 of 4 bags has nothing in place of labels, such as 'd'"):
        unbag.fit(frame, none="none")


def test_a_word_for_none_beside_a_label_is_refused():
    frame = long_frame("owl|none")
    with pytest.raises(DataError, match=r"row 2, column 'labels'.*'none', which means .* 'owl'"):
        unbag.fit(frame, none="none")


@pytest.mark.parametrize("word", ["none", "Nothing", "noise", "n/a", "unknown", "-", "nocall"])
def test_words_that_may_mean_none_are_warned_of(word):
    with pytest.warns(UserWarning, match=rf"'{word}' \(2 bags\).*none='{word}'"):
        unbag.fit(long_frame(word), max_iter=3)


def test_a_lone_question_mark_has_a_remedy():
    with pytest.raises(DataError, match=r"question mark without a label: write \(unknown\)"):
        unbag.fit(long_frame("?"))


# What a model remembers.


def test_a_model_reads_tables_to_come_by_the_same_rule(tmp_path):
    frame = long_frame("")
    model = unbag.fit(frame, untagged="unknown", none="nothing", background=False, max_iter=20)
    model.save(tmp_path / "m.unbag")
    model = unbag.load(tmp_path / "m.unbag")
    assert model.roles_["untagged"] == "unknown"
    answers = model.annotate_frame(frame)
    known = model.annotate_frame(frame, untagged="absent")
    assert not answers.equals(known)
    with pytest.raises(DataError, match="2 of 4 bags have nothing in place of labels"):
        model.annotate_frame(frame, untagged="refuse")
    # All bags untagged: every class may occur, and not none of them.
    blank = frame.assign(labels=None)
    alone = frame.drop(columns="labels")
    np.testing.assert_allclose(
        model.annotate_frame(blank).probability, model.annotate_frame(alone).probability
    )


def test_an_untagged_bag_may_have_classes_that_its_table_does_not_name():
    frame = long_frame(None)
    model = unbag.fit(frame.dropna(), background=False, max_iter=20)
    part = frame[frame.bag != "a"]
    given = model.annotate_frame(part, untagged="unknown")
    alone = model.annotate_frame(part.drop(columns="labels"))
    blank = part.bag.isin(["b", "d"])
    np.testing.assert_allclose(given.probability[blank], alone.probability[blank])


# Writers.


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".npz", ".arff"])
@pytest.mark.parametrize("untagged", EXPECTED)
def test_what_is_converted_needs_no_further_word(tmp_path, suffix, untagged):
    long_frame("").to_csv(path := tmp_path / "in.csv", index=False)
    convert(path, target := tmp_path / f"out{suffix}", Roles(untagged=untagged))
    assert states(read(target).labels) == EXPECTED[untagged]
    convert(target, again := tmp_path / "again.csv")
    assert states(read(again).labels) == EXPECTED[untagged]


@pytest.mark.parametrize("untagged", EXPECTED)
def test_lists_are_converted_to_lists(tmp_path, untagged):
    frame = long_frame(None)
    frame["labels"] = [None if cell is None else cell.split("|") for cell in frame.labels]
    frame.to_parquet(path := tmp_path / "in.parquet")
    convert(path, target := tmp_path / "out.parquet", Roles(untagged=untagged))
    assert states(read(target).labels) == EXPECTED[untagged]
    assert pa.types.is_list(pa.parquet.read_schema(target).field("labels").type)


def test_written_words_are_read_again(tmp_path):
    bags = Bags(np.arange(4.0)[:, None], [0, 1, 2, 3, 4])
    labels = LabelSets([[1, 0], [0, 0], [-1, -1], [1, -1]], ["owl", "wren"], [0, 0, 1, 0])
    write_bags(path := tmp_path / "out.csv", bags, labels)
    assert pd.read_csv(path).labels.tolist() == ["owl", "(none)", "(unknown)", "owl|?wren"]
    again = read(path).labels
    assert again.indicator.tolist() == labels.indicator.tolist()
    assert again.open.tolist() == labels.open.tolist()


@pytest.mark.parametrize("suffix", [".npz", ".arff"])
def test_names_hold_for_files_without_columns(tmp_path, suffix):
    frame = long_frame("nothing", instance_label=["owl", "wren"] * 4)
    frame.to_csv(path := tmp_path / "in.csv", index=False)
    convert(path, bag_file := tmp_path / f"out{suffix}")
    roles = Roles(none="nothing", fold_case=True, rename={"owl": "Eule"})
    found = read(bag_file, roles)
    assert found.labels.to_sets() == [{"Eule", "wren"}, set(), {"Eule"}, set()]
    assert found.bags.instance_labels.tolist() == ["Eule", "wren"] * 4
    assert unbag.fit(bag_file, roles=roles).classes_.tolist() == ["Eule", "wren"]
    with pytest.warns(UserWarning, match="'Owl' is a label to rename"):
        unbag.fit(bag_file, rename={"Owl": "Eule"}, none="nothing")
    with pytest.raises(DataError, match=f"out{suffix} has no columns: .*Leave out labels="):
        unbag.fit(bag_file, labels="tags")
    with pytest.raises(DataError, match=r"has no columns: .*Leave out bag="):
        convert(bag_file, tmp_path / "new.csv", Roles(bag="night"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_converted_tables_have_the_new_names_everywhere(tmp_path, suffix):
    frame = long_frame("tit", instance_label=["owl", "Wren"] * 4, known_label=["", "owl"] * 4)
    frame.to_csv(path := tmp_path / "in.csv", index=False)
    roles = Roles(fold_case=True, rename={"owl": "Eule"}, known="known_label")
    convert(path, target := tmp_path / f"out{suffix}", roles)
    found = read(target)
    assert found.labels.classes.tolist() == ["Eule", "tit", "wren"]
    assert found.bags.instance_labels.tolist() == ["Eule", "wren"] * 4
    if suffix != ".npz":
        found = read(target, Roles(known="known_label"))
        assert found.known.tolist() == [None, "Eule"] * 4


def test_names_of_other_tools_are_converted(tmp_path):
    rows = ["0.5\t1.5\tOwl", "2.5\t3.5\towl", "4.5\t5.5\twren"]
    (path := tmp_path / "dawn.txt").write_text("\n".join(rows))
    roles = Roles(fold_case=True, rename={"owl": "Eule"})
    convert_from(path, "audacity", target := tmp_path / "out.csv", roles)
    written = pd.read_csv(target)
    assert written.labels.unique().tolist() == ["Eule|wren"]
    assert written.known_label.tolist() == ["Eule", "Eule", "wren"]
    with pytest.warns(UserWarning, match="'star' is a label to rename"):
        convert_from(path, "audacity", target, Roles(rename={"star": "Star"}))
    (path := tmp_path / "xc.csv").write_text("id,gen,sp,also\n1,Strix,aluco,Turdus merula\n")
    convert_from(path, "xeno-canto", target, Roles(rename={"Strix aluco": "owl"}))
    assert sorted(pd.read_csv(target).label) == ["Turdus merula", "owl"]


def test_a_segment_that_is_noise_says_nothing_about_its_recording(tmp_path, run):
    """Not even if the others have labels, and although a word for none beside a tag is refused."""
    (folder := tmp_path / "tracks").mkdir()
    for place, labels in enumerate(
        [["owl", "noise"], ["wren", "owl"], ["Noise"], ["wren", "noise"]]
    ):
        rows = [f"{3 * i}\t{3 * i + 1 + place}\t{label}" for i, label in enumerate(labels)]
        (folder / f"r{place}.txt").write_text("\n".join(rows))
    found = read_from(folder, "audacity", Roles(none="noise", known="known_label"))
    assert found.labels.to_sets() == [{"owl"}, {"owl", "wren"}, set(), {"wren"}]
    expected = ["owl", "background", "wren", "owl", "background", "wren", "background"]
    assert found.known.tolist() == expected
    convert_from(folder, "audacity", target := tmp_path / "t.csv", Roles(none="noise"))
    again = read(target, Roles(known="known_label"))
    assert again.labels.to_sets() == found.labels.to_sets()
    assert again.known.tolist() == expected
    (roles := tmp_path / "roles.toml").write_text('none = ["noise"]\n')
    options = ["--from", "audacity", "--roles", roles]
    assert run("data", "convert", *options, folder, target)[0] == 0
    code, _, err = run("fit", target, "-o", tmp_path / "m.unbag")
    assert code == 0
    assert "Bags with each class: owl 2, wren 2." in err
    assert "they are background and get no label" in err
    assert run("annotate", tmp_path / "m.unbag", target, "-o", tmp_path / "a.csv")[0] == 0


def test_columns_of_labels_keep_their_names_when_converted(tmp_path):
    frame = pd.DataFrame({"bag": ["a", "b"], "is_owl": [1, 0], "none": [0, 1], "x": [0.0, 1.0]})
    frame.to_csv(path := tmp_path / "in.csv", index=False)
    columns = {"label_columns": ["is_owl", "none"], "none": "none", "rename": {"is_owl": "owl"}}
    with pytest.raises(DataError, match="have the names of these columns"):
        convert(path, tmp_path / "out.csv", Roles(**columns))
    convert(path, target := tmp_path / "out.npz", Roles(**columns))
    assert read(target).labels.to_sets() == [{"owl"}, set()]


def test_a_column_of_a_label_may_mean_none():
    frame = pd.DataFrame(
        {"bag": list("abc"), "owl": [1, 0, 0], "none": [0, 1, 0], "(?)": [0, 0, 1], "x": [0.0] * 3}
    )
    columns = {"label_columns": ["owl", "none", "(?)"], "rename": {"(?)": "(unknown)"}}
    found = open_frame(frame).read(Roles(none="none", **columns)).labels
    assert found.indicator.tolist() == [[1], [0], [-1]]
    assert found.open.tolist() == [False, False, True]
    with pytest.raises(DataError, match=r"Bag a has 'none', which means .* next to a label"):
        open_frame(frame.assign(none=1)).read(Roles(none="none", **columns))
    labels = LabelSets([[1, 0], [0, 1]], ["none", "owl"])
    assert LabelSets.parse(labels, none="none").to_sets() == [set(), {"owl"}]


def test_a_class_cannot_have_a_reserved_name(tmp_path):
    bags = Bags(np.arange(2.0)[:, None], [0, 1, 2])
    with pytest.raises(DataError, match=r"The label '\(none\)' cannot be written"):
        write_bags(tmp_path / "out.csv", bags, LabelSets([[1], [0]], ["(none)"]))


# Layouts.


def test_two_rows_with_different_labels_are_still_an_error():
    frame = long_frame("owl")
    frame["labels"] = ["", "owl", "owl", "", "owl", "", "owl", "wren"]
    with pytest.raises(DataError, match=r"row 7.*'d' has 'wren' here but 'owl' in row 6"):
        unbag.fit(frame)
    frame["labels"] = ["", "owl", "owl", "", "owl", "", "", "owl"]
    frame = pd.concat([frame, pd.DataFrame({"bag": ["a"], "labels": ["wren"], "x": [1.0]})],
                      ignore_index=True)  # fmt: skip
    with pytest.raises(DataError, match=r"row 8.*'a' has 'wren' here but 'owl' in row 1"):
        unbag.fit(frame)


def test_label_columns_may_be_filled_in_the_first_row_alone():
    frame = long_frame("x").drop(columns="labels")
    frame["owl"] = [1, None, None, None, 1, None, 0, None]
    frame["wren"] = [1, None, None, None, None, 0, 0, 0]
    with unbag.learning.open_table(frame) as source:
        labels = source.read(Roles(label_columns=["owl", "wren"])).labels
    assert labels.indicator.tolist() == [[1, 1], [-1, -1], [1, 0], [0, 0]]


def test_a_label_table_says_none_in_words(tmp_path):
    frame = long_frame("x").drop(columns="labels")
    second = pd.DataFrame({"bag": list("aabcd"), "label": ["owl", "wren", "(none)", "owl", "no"]})
    second.to_csv(path := tmp_path / "labels.csv", index=False)
    with unbag.learning.open_table(frame) as source:
        labels = source.read(Roles(label_table=path, none="no")).labels
    assert states(labels) == EXPECTED["absent"]
    second.loc[5] = ["b", "owl"]
    second.to_csv(path, index=False)
    with pytest.raises(DataError, match="row 4: bag 'b' has no labels by this row, and labels by"):
        unbag.fit(frame, label_table=path)


def test_tables_that_stay_on_disk(tmp_path):
    long_frame("").to_parquet(path := tmp_path / "t.parquet")
    with pytest.raises(DataError, match=REFUSAL):
        out_of_core.fit(ORLogisticRegression(), path)
    stored = out_of_core.fit(ORLogisticRegression(max_iter=5), path, untagged="unknown")
    inside = unbag.fit(path, untagged="unknown", model=ORLogisticRegression(max_iter=5))
    np.testing.assert_allclose(stored.coef_, inside.coef_, rtol=1e-6)
    assert stored.roles_["untagged"] == "unknown"
    out_of_core.annotate(stored, path, out := tmp_path / "out.parquet")
    frame = inside.annotate_frame(pd.read_parquet(path))
    np.testing.assert_allclose(pd.read_parquet(out).probability, frame.probability, atol=1e-6)


def test_unknown_labels_of_other_tools_are_also_those_that_only_the_model_knows(tmp_path):
    (path := tmp_path / "dawn.txt").write_text("0.5\t1.5\towl\n2.5\t9.5\towl")
    read_as = read_from(path, "audacity", absent="unknown").labels
    assert read_as.open.all()
    model = unbag.fit(
        pd.DataFrame({"bag": list("abcd"), "labels": ["owl", "wren"] * 2, "duration": [1, 7] * 2}),
        known=None,
    )
    for absent, labels in (("unknown", ["owl", "wren"]), ("absent", ["owl", "owl"])):
        convert_from(path, "audacity", target := tmp_path / "out.csv", absent=absent)
        found = model.annotate_frame(pd.read_csv(target))
        assert found.annotation.tolist() == labels
    # Also in a table of labels alone.
    (path := tmp_path / "xc.csv").write_text("id,gen,sp,also\n1,Strix,aluco,Turdus merula\n")
    convert_from(path, "xeno-canto", target := tmp_path / "tags.csv", absent="unknown")
    frame = pd.DataFrame({"bag": ["XC1"], "x": [0.0]})
    found = open_frame(frame).read(Roles(label_table=target)).labels
    assert found.open.tolist() == [True]
    assert found.required.sum() == 2


def test_selections_without_a_label_say_nothing_about_their_recording(tmp_path):
    header = "Selection\tView\tBegin Time (s)\tEnd Time (s)\tBegin File\tAnnotation\n"
    rows = ["1\ts\t0\t1\ta.wav\towl\n", "2\ts\t1\t2\ta.wav\t\n", "3\ts\t0\t2\tb.wav\t\n"]
    (path := tmp_path / "s.txt").write_text(header + "".join(rows))
    with pytest.raises(DataError, match="1 of 2 bags has nothing in place of labels"):
        read_from(path, "raven")
    assert read_from(path, "raven", Roles(untagged="absent")).labels.to_sets() == [{"owl"}, set()]
    assert read_from(path, "raven", Roles(untagged="unknown")).labels.open.tolist() == [False, True]


# Names.


def test_spaces_and_unicode_forms_are_one():
    frame = long_frame("caf\u00e9")
    frame.loc[4:5, "labels"] = " cafe\u0301"
    model = unbag.fit(frame, max_iter=3)
    assert model.classes_.tolist() == ["caf\u00e9", "owl", "wren"]


@pytest.mark.parametrize(
    ("tag", "settings"),
    [("wren | owl", {}), ("tit", {"fold_case": True, "rename": {"OWL": "Eule"}})],
)
def test_spaces_beside_a_delimiter_and_folded_names_are_not_warned_of(recwarn, tag, settings):
    unbag.fit(long_frame(tag), max_iter=3, **settings)
    said = [str(each.message) for each in recwarn]
    assert not [text for text in said if "spaces" in text or "to rename" in text]


@pytest.mark.parametrize(("one", "other"), [("Owl", "owl"), ("owl", "\u00d6wl")])
def test_twins_are_warned_of(one, other):
    frame = long_frame("x").replace({"x": one, "owl": other, "owl|wren": other})
    with pytest.warns(UserWarning, match=rf"{one} \(2 bags\) and {other} \(2 bags\).*rename="):
        unbag.fit(frame, max_iter=3)


def test_case_may_be_folded():
    frame = long_frame("Owl")
    model = unbag.fit(frame, fold_case=True, max_iter=5)
    assert model.classes_.tolist() == ["owl", "wren"]
    # A model reads tables to come alike.
    shouted = frame.assign(labels=frame.labels.str.upper())
    assert model.annotate_frame(shouted).equals(
        model.annotate_frame(frame).assign(labels=shouted.labels)
    )
    assert LabelSets.parse([{"Owl"}, {"owl"}], fold_case=True).classes.tolist() == ["owl"]


def test_labels_may_be_renamed(tmp_path):
    frame = long_frame("Strix")
    pd.DataFrame({"old": ["Strix"], "new": ["owl"]}).to_csv(path := tmp_path / "n.csv", index=False)
    for rename in ({"Strix": "owl"}, path, str(path)):
        model = unbag.fit(frame, rename=rename, max_iter=5)
        assert model.classes_.tolist() == ["owl", "wren"]
    assert model.roles_["rename"] == [["Strix", "owl"]]
    model.save(tmp_path / "m.unbag")
    assert (
        unbag.load(tmp_path / "m.unbag").annotate_frame(frame).equals(model.annotate_frame(frame))
    )
    columns = frame.drop(columns="labels").assign(
        Strix=[1, 1, 1, 1, 1, 1, 0, 0], owl=[0, 0, 1, 1, 0, 0, 0, 0]
    )
    assert unbag.fit(columns, label_columns=["Strix", "owl"], rename={"Strix": "owl"},
                     max_iter=3).classes_.tolist() == ["owl"]  # fmt: skip


def test_names_that_are_not_there_to_be_renamed_are_warned_of(tmp_path, run):
    frame = long_frame("tit")
    message = "'Owl' is a label to rename that nothing has: .*Did you mean 'owl'"
    with pytest.warns(UserWarning, match=message):
        unbag.fit(frame, rename={"Owl": "Eule", "tit": "Meise"})
    with pytest.warns(UserWarning, match="'a', 'b' are labels to rename"):
        LabelSets.parse([{"owl"}], rename={"a": "x", "b": "y"})
    with pytest.warns(UserWarning, match="'a' is a label to rename"):
        LabelSets.parse(LabelSets([[1]], ["owl"]), rename={"a": "x"})
    (names := tmp_path / "names.csv").write_text("old,new\nstar,Star\nowl,Eule\n")
    frame.to_csv(path := tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.warns(UserWarning, match="'star' is a label to rename"):
        out_of_core.fit(ORLogisticRegression(), tmp_path / "t.parquet", roles=Roles(rename=names))
    (roles := tmp_path / "roles.toml").write_text('rename = "names.csv"\n')
    for command, output, said in (
        (["fit", path, "--rename", names], ["-o", tmp_path / "m.unbag"], "--rename"),
        (["check", path, "--folds", "2", "--roles", roles], [], "rename (in a file for --roles)"),
        (["data", "convert", path, "--rename", names], [tmp_path / "new.csv"], "--rename"),
    ):
        code, _, err = run(*command, *output)
        assert code == 0
        assert "'star' is a label to rename that nothing has" in err
        assert said in err
    # What a model remembers need not be in tables to come; nor a label that instances have.
    tables_to_come = long_frame("Eule")
    model = unbag.fit(frame, rename={"owl": "Eule"})
    model.annotate_frame(tables_to_come, untagged="unknown")
    known = [None] * 7 + ["star"]
    unbag.fit(long_frame("tit", known_label=known), rename={"star": "tit"})


def test_a_label_may_be_renamed_to_none_or_unknown():
    frame = long_frame("n/a")
    with unbag.learning.open_table(frame) as source:
        labels = source.read(Roles(rename={"n/a": "(unknown)"})).labels
    assert states(labels) == EXPECTED["unknown"]


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"untagged": "maybe"}, "untagged= must be one of refuse, unknown, absent, not 'maybe'"),
        ({"none": ""}, "none= must be a word"),
        ({"rename": {"a": ""}}, "rename= needs an old and a new name"),
        ({"rename": [("a", "b"), (" a", "c")]}, "two new names for one label"),
    ],
)
def test_what_makes_no_sense_is_refused(roles, message):
    with pytest.raises(DataError, match=message):
        Roles(**roles)


# The command line.


def test_the_command_line_names_options(tmp_path, run):
    long_frame("").to_csv(path := tmp_path / "t.csv", index=False)
    code, _, err = run("fit", path, "-o", tmp_path / "m.unbag")
    assert code == 1
    assert "2 of 4 bags have nothing in place of labels, such as 'b', 'd'" in err
    assert "--untagged unknown" in err
    assert "--untagged absent" in err
    code, _, err = run("fit", path, "--untagged", "unknown", "-o", tmp_path / "m.unbag")
    assert code == 0
    assert "owl 2, wren 1" in err
    code, _, err = run("annotate", tmp_path / "m.unbag", path, "-o", tmp_path / "a.csv")
    assert code == 0
    code, _, err = run("data", "convert", path, tmp_path / "c.csv", "--untagged", "absent")
    assert code == 0
    assert "(none)" in err
    assert "(none)" in (tmp_path / "c.csv").read_text()


def test_names_on_the_command_line(tmp_path, run):
    frame = long_frame("Owl")
    frame.loc[4:5, "labels"] = "nothing"
    frame.to_csv(path := tmp_path / "t.csv", index=False)
    code, _, err = run("fit", path, "-o", tmp_path / "m.unbag")
    assert code == 0
    assert "--fold-case" in err
    assert "--rename owl=Owl" in err
    assert "--none nothing" in err
    assert "in fewer than three bags" in err
    code, out, _ = run("fit", path, "-o", tmp_path / "m.unbag", "--fold-case", "--none",
                     "nothing,silence", "--rename", "wren=Wren", "--json")  # fmt: skip
    assert code == 0
    assert json.loads(out)["bags_per_class"] == {"Wren": 1, "owl": 3}


def test_check_and_report_list_doubtful_names(tmp_path, run):
    tags = ["Owl", "owl|wren", "wren", "owl", "Owl|wren"] * 4
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"bag": np.repeat(np.arange(20), 3), "labels": np.repeat(tags, 3),
                          "x": rng.normal(size=60)})  # fmt: skip
    frame.to_csv(path := tmp_path / "t.csv", index=False)
    code, _, err = run("check", path, "--folds", 2)
    assert code == 0
    assert "Owl (8 bags) and owl (8 bags) differ in case or accents only" in err
    assert run("fit", path, "-o", tmp_path / "m.unbag")[0] == 0
    assert run("report", tmp_path / "m.unbag", path, "-o", tmp_path / "r.html")[0] == 0
    assert "Owl (8 bags) and owl (8 bags) differ" in (tmp_path / "r.html").read_text("utf-8")


def test_label_sets_carry_what_is_unknown_beyond_their_classes():
    labels = LabelSets.parse([{"owl"}, {Unknown(...)}, {"wren", Unknown(...)}])
    assert labels.indicator.tolist() == [[1, 0], [-1, -1], [-1, 1]]
    wider = labels.reindex(["tit", "owl", "wren"]).indicator.tolist()
    assert wider == [[0, 1, 0], [-1, -1, -1], [-1, -1, 1]]
    assert labels[[1]].open.tolist() == [True]


def test_names_that_look_like_one_are_said_beside_blanks(tmp_path):
    """So nobody has to come again to learn of the next fault."""
    frame = long_frame(None)
    frame.loc[0:1, "labels"] = "OWL|none"
    frame.to_parquet(path := tmp_path / "t.parquet")
    for fit in (
        lambda: unbag.fit(frame),
        lambda: unbag.fit(path),
        lambda: out_of_core.fit(ORLogisticRegression(), path),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with pytest.raises(DataError, match="2 of 4 bags"):
                fit()
        texts = [str(each.message) for each in said]
        assert any("OWL (1 bag) and owl (1 bag) differ in case" in text for text in texts)
        assert any("'none' (1 bag) is read as a class" in text for text in texts)


def test_a_word_for_none_is_background_where_an_instance_has_it(tmp_path, run):
    known = ["owl", None, "Noise", None, "(none)", "(unknown)", None, "noise"]
    frame = long_frame("tit", known_label=known)
    model = unbag.fit(frame, none="noise")
    assert model.has_background_
    assert model.classes_.tolist() == ["owl", "tit", "wren"]
    message = "'Noise', which is not among the classes: .* write 'background'"
    with pytest.raises(ValueError, match=message):
        unbag.fit(frame)
    # Also in corrections, and where answers are compared with the truth.
    frame.drop(columns="known_label").to_csv(table := tmp_path / "t.csv", index=False)
    frame.to_csv(corrected := tmp_path / "c.csv", index=False)
    assert unbag.fit(table, corrections=corrected, none="noise").has_background_
    model.save(saved := tmp_path / "m.unbag")
    frame["truth"] = known
    frame.drop(columns="known_label").to_csv(table, index=False)
    code, out, _ = run("evaluate", saved, table, "--instance-labels", "truth", "--json")
    assert code == 0
    assert json.loads(out)["unknown_labels"] == {}
    unbag.fit(frame.drop(columns="known_label"), carry=["truth"]).save(saved)
    code, out, err = run("evaluate", saved, table, "--instance-labels", "truth")
    assert "2 of the 4 labelled rows have labels that the model does not know" in " ".join(
        (out + err).split()
    )
    assert "none (in a file for --roles)" in " ".join((out + err).split())


@pytest.mark.parametrize("cell", ["owl?", "owl ?", "?owl", "owl??"])
def test_a_question_mark_before_or_after_a_label_means_that_it_is_unsure(cell):
    labels = open_frame(long_frame(cell)).read().labels
    assert labels.classes.tolist() == ["owl", "wren"]
    assert {Unknown("owl")} in labels.to_sets()


def test_a_name_that_would_be_read_as_unsure_is_not_written():
    with pytest.raises(DataError, match=r"label 'owl\?' cannot be written into a cell"):
        write_cell({"owl?"}, "|")


def test_labels_that_a_model_spells_otherwise_are_suggested():
    model = unbag.fit(long_frame("tit"))
    with pytest.raises(DataError, match=r"unknown label 'TIT'.*Did you mean 'tit'"):
        model.annotate_frame(long_frame("TIT"))
