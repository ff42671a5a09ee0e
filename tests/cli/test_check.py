"""``unbag check``: as a table, as JSON, as a file; in the report; and how it fails."""

import csv
import json

import numpy as np
import pandas
import pytest

from toys import ROLES


@pytest.fixture
def mistaken(words):
    """The table of words, in which the first is said to hold a z."""
    text = words.read_text()
    first = min(line for line in text.splitlines() if line.startswith("w"))
    word, tags = first.split(",")[:2]
    words.write_text(text.replace(f"{word},{tags},", f"{word},{tags}|z,"))
    return words, word


def test_a_tag_that_no_instance_bears_out_comes_first(mistaken, run, tmp_path):
    words, word = mistaken
    out = tmp_path / "suspicious.csv"
    code, shown, errors = run("check", words, *ROLES, "-o", out, "--top", "3", "--folds", "3")
    assert code == 0, errors
    assert f"Written to {out}" in errors
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["bag", "class", "tagged", "p_wrong"]
    assert (rows[0]["bag"], rows[0]["class"], rows[0]["tagged"]) == (word, "z", "true")
    assert float(rows[0]["p_wrong"]) > 0.9
    shown_bags = [line for line in shown.splitlines() if line.startswith("│")]
    assert len(shown_bags) == 3
    assert word in shown_bags[0]


def test_machines_get_the_same(mistaken, run):
    words, word = mistaken
    code, out, errors = run("check", words, *ROLES, "--top", "2", "--folds", "3", "--json")
    assert code == 0, errors
    found = json.loads(out)
    assert found["output"] is None
    assert found["checked"] > 60
    first, _ = found["suspicious"]
    assert (first["bag"], first["class"], first["tagged"]) == (word, "z", True)


def test_the_report_lists_what_looks_wrong(words, model, run, tmp_path):
    page = tmp_path / "report.html"
    assert run("report", model, words, "-o", page)[0] == 0
    assert "Labels that look wrong" not in page.read_text()
    code, _, errors = run("report", model, words, "-o", page, "--check")
    assert code == 0, errors
    assert 'id="suspicious-table"' in page.read_text()
    untagged = words.with_name("untagged.csv")
    frame = pandas.read_csv(words)
    frame.drop(columns="tags").to_csv(untagged, index=False)
    code, _, errors = run("report", model, untagged, "-o", page, "--check")
    assert code == 1
    assert "has no tags to check" in errors


def test_an_interrupted_check_writes_nothing(words, run, tmp_path, monkeypatch):
    out = tmp_path / "suspicious.csv"
    out.write_text("the old one")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unbag.fitting.linear.Objective.statistics", interrupt)
    code, _, errors = run("check", words, *ROLES, "-o", out)
    assert code == 130, errors
    assert out.read_text() == "the old one"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-o", "suspicious.html"), 1, "must end in one of"),
        (("--folds", "61"), 1, "words.csv has 60 bags, which cannot fill --folds 61"),
        (("--folds", "1"), 2, "Invalid value for '--folds'"),
        (("--labels", "none"), 1, "none"),
    ],
)
def test_what_cannot_be_checked_is_named(arguments, code, message, words, run, monkeypatch):
    monkeypatch.chdir(words.parent)
    found, _, errors = run("check", words, *ROLES, *arguments)
    assert found == code
    assert message in errors


@pytest.mark.parametrize("size", [1.7e308, 1e301, 1e171])
def test_huge_features_are_named_with_their_size(tmp_path, run, size):
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(20), 3)
    tags, pitch = np.where(bags % 2, "owl", "wren"), rng.normal(size=60)
    big = rng.uniform(-1, 1, 60) * size
    frame = pandas.DataFrame({"bag": bags, "labels": tags, "pitch": pitch, "big": big})
    frame.to_csv(path := tmp_path / "t.csv", index=False)
    for command in (["check", path], ["fit", path, "--kernel", 1, "-o", tmp_path / "m.unbag"]):
        code, _, err = run(*command)
        assert code == 1
        assert "Column 1 (big) has values up to" in err
        assert "scale the features down first" in err
        assert "NaN" not in err
        assert "encountered" not in err
