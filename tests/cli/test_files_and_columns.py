"""Options that name a column or a file: what is said where one is given for the other."""

import json
import re

import numpy as np
import pytest

import unbag
from toys import ROLES, word_lines


@pytest.fixture
def folder(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ("fit", "words.csv", "--bag", "word", "--labels", "tags", "-o", "new.unbag")


def test_a_corrected_table_that_is_not_there(run, folder):
    code, _, errors = run(*FIT, "--corrections", "corr.csv")
    assert code == 1
    assert "corr.csv does not exist" in errors
    assert "column" not in errors


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--labels", "labels.csv", ("labels.csv looks like a file", "--label-table")),
        ("--bag", "bags/list.txt", ("bags/list.txt looks like a file", "column of words.csv")),
        ("--features", "columns.txt", ("columns.txt looks like a file",)),
        ("--instance-id", "ids.parquet", ("ids.parquet looks like a file",)),
        (
            "--label-table",
            "tags",
            ("tags is a column of words.csv", "pass the column with --labels"),
        ),
        ("--label-table", "lables.csv", ("lables.csv does not exist",)),
        ("--known", "leter", ("no column 'leter'", "Did you mean 'letter'?")),
    ],
)
def test_a_file_for_a_column_and_the_reverse(option, value, said, run, folder):
    needed = {"--bag": "word", "--labels": "tags"} | {option: value}
    if option == "--label-table":
        del needed["--labels"]
    options = [each for pair in needed.items() for each in pair]
    code, _, errors = run("fit", "words.csv", *options, "-o", "new.unbag")
    assert code == 1
    assert all(each in errors for each in said), errors


def test_a_corrected_table_is_for_fit_alone(run, model, folder):
    (folder / "corr.csv").write_text("letter\n")
    code, _, errors = run("evaluate", model, "words.csv", "--instance-labels", "corr.csv")
    assert code == 1
    assert "corr.csv looks like a file" in errors
    assert "Pass a corrected table to fit with --corrections" in errors


def test_a_column_is_preferred_to_a_file_of_its_name(run, folder):
    (folder / "letter").write_text("no table at all")
    code, _, errors = run(*FIT, "--known", "letter", "--max-iter", "3")
    assert code == 0, errors


def test_a_data_set_that_is_not_there(run, folder):
    code, _, errors = run("data", "convert", "leter-frost", "new.csv")
    assert code == 1
    assert "Did you mean 'letter-frost'?" in errors
    assert "letters.csv does not exist" in run("data", "convert", "letters.csv", "new.csv")[2]


@pytest.mark.parametrize("carried_by", ["fit", "annotate", "nobody"])
def test_seconds_that_are_carried_can_be_written(carried_by, run, folder):
    """Whoever lists them under carry, so that they are no features, still has them."""
    header, *lines = word_lines()
    places = np.arange(len(lines))
    timed = [f"{line},{2 * i},{2 * i + 1}" for i, line in zip(places, lines, strict=True)]
    (folder / "timed.csv").write_text("\n".join([f"{header},start,end", *timed]) + "\n")
    (folder / "roles.toml").write_text('bag = "word"\nlabels = "tags"\ncarry = ["start", "end"]\n')
    roles = {"fit": ("--roles", "roles.toml")}.get(carried_by, ROLES)
    code, _, errors = run("fit", "timed.csv", *roles, "-o", "timed.unbag", "--max-iter", "3")
    assert code == 0, errors
    more = ("--roles", "roles.toml") if carried_by == "annotate" else ()
    code, _, errors = run(
        "annotate",
        "timed.unbag",
        "timed.csv",
        *more,
        "-o",
        "out.csv",
        "--write",
        "raven=selections",
    )
    assert code == 0, errors
    assert len(list((folder / "selections").iterdir())) == 60
    code, _, errors = run("annotate", "timed.unbag", "timed.csv", "-o", "out.csv", "--json")
    assert code == 0, errors


def test_corrections_of_a_table_of_vectors(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [("a", "o|w", 0), ("a", "o|w", 9), ("b", "o", 1), ("c", "w", 8)]
    lines = [f'{word},{tags},"{x},0.5,1"' for word, tags, x in cells]
    (tmp_path / "t.csv").write_text("\n".join(["word,tags,v", *lines]) + "\n")
    roles = ("--bag", "word", "--labels", "tags")
    assert run("fit", "t.csv", *roles, "-o", "m.unbag")[0] == 0
    assert run("annotate", "m.unbag", "t.csv", "-o", "out.csv")[0] == 0
    rows = (tmp_path / "out.csv").read_text().splitlines()
    last = rows[-1].split(",")
    last[rows[0].split(",").index("known_label")] = "w"
    (tmp_path / "out.csv").write_text("\n".join([*rows[:-1], ",".join(last)]) + "\n")
    code, out, errors = run(
        "fit", "t.csv", *roles, "--corrections", "out.csv", "-o", "n.unbag", "--json"
    )
    assert code == 0, errors
    assert '"known_instance_labels": 1' in out


def test_several_tables_of_a_command(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header, *lines = words.read_text().splitlines()
    (tmp_path / "parts").mkdir()
    half = len(lines) // 2
    for name, part in (("1", lines[:half]), ("2", lines[half:])):
        (tmp_path / "parts" / f"{name}.csv").write_text("\n".join([header, *part]) + "\n")
    expected = run("fit", "words.csv", *ROLES, "-o", "m.unbag", "--json", "--max-iter", "30")
    whole = run("annotate", "m.unbag", "words.csv", "-o", "whole.csv")
    assert expected[0] == whole[0] == 0
    for given in (("parts",), ("parts/*.csv",), ("parts/1.csv", "parts/2.csv")):
        found = run("fit", *given, *ROLES, "-o", "m.unbag", "--json", "--max-iter", "30")
        assert found == expected
        assert run("annotate", "m.unbag", *given, "-o", "out.csv")[0] == 0
        assert (tmp_path / "out.csv").read_text() == (tmp_path / "whole.csv").read_text()
        assert run("predict", "m.unbag", *given, "-o", "bags.csv")[0] == 0
        assert run("evaluate", "m.unbag", *given)[0] == 0
        assert run("check", *given, *ROLES, "--json")[0] == 0


def test_columns_of_times_by_options(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["rec,tags,from,to,x", "a,o|w,0,1,0", "a,o|w,1,2,9", "b,o,0,1,1", "c,w,0,1,8"]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    times = ("--start", "from", "--end", "to", "--media", "rec")
    code, _, errors = run("fit", "t.csv", "--bag", "rec", "--labels", "tags", *times, "-o", "m")
    assert code == 0, errors
    assert run("annotate", "m", "t.csv", "-o", "o.csv", "--write", "audacity=labels")[0] == 0
    assert sorted(each.name for each in (tmp_path / "labels").iterdir()) == [
        "a.unbag.txt", "b.unbag.txt", "c.unbag.txt",
    ]  # fmt: skip
    # They may be named when they are needed, too.
    roles = ("--bag", "rec", "--labels", "tags", "--features", "x")
    assert run("fit", "t.csv", *roles, "-o", "n")[0] == 0
    (tmp_path / "roles.toml").write_text('start = "from"\nend = "to"\n')
    more = ("--roles", "roles.toml", "--write", "audacity=l")
    code, _, errors = run("annotate", "n", "t.csv", "-o", "o.csv", *more)
    assert code == 0, errors


def test_no_label_where_none_is_likely_enough(run, model, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("annotate", model, words, "-o", "o.csv", "--unknown-below", 1, "--json")
    assert code == 0
    assert '"without_label": 0' not in out
    code, _, errors = run("annotate", model, words, "-o", "p.csv", "--unknown-below", 2)
    assert code == 2
    assert "--unknown-below" in errors
    assert not (tmp_path / "p.csv").exists()


def add_columns(path, **columns):
    """Add columns to a table of text, and return its path."""
    header, *lines = path.read_text().splitlines()
    rows = zip(lines, *columns.values(), strict=False)
    texts = [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join([",".join([header, *columns]), *texts]) + "\n")
    return path


def test_fit_prints_its_features_and_what_is_no_feature(run, words):
    n_rows = len(words.read_text().splitlines()) - 1
    years = 2000 + np.arange(n_rows) * 7 % 20
    table = add_columns(words, year=years, site=["hut"] * n_rows, lat=years / 8)
    fit = ("fit", table, *ROLES, "-o", table.with_name("n.unbag"), "--max-iter", "3")
    code, _, said = run(*fit)
    assert code == 0, said
    assert "year, lat (a time or a place by its name)" in said
    assert "To use one of them as well, pass --features '*," in said
    assert "to silence this warning, name it in --carry" in said
    assert "Features (16): x-box, y-box, " in said
    assert re.search(r"Columns that are not used \(.*year, site, lat", said)
    code, out, said = run(*fit, "--json")
    result = json.loads(out)
    assert len(result["feature_names"]) == 16
    assert {"year", "site", "lat"} <= set(result["columns_not_used"])
    loaded = unbag.load(table.with_name("n.unbag"))
    assert "year" not in loaded.feature_names_in_
    # What was decided holds for other tables, whatever is in them.
    other = add_columns(words, day=years)
    assert run("annotate", table.with_name("n.unbag"), other, "-o", "a.csv", "--dry-run")[0] == 0
