"""Options that name a column or a file: what is said where one is given for the other."""

import numpy as np
import pytest

from toys import ROLES, word_lines


@pytest.fixture
def folder(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ("fit", "words.csv", "--bag", "word", "--labels", "tags", "-o", "new.unbag")


def test_a_corrected_table_that_is_not_there(run, folder):
    code, _, errors = run(*FIT, "--instance-labels", "corr.csv")
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
        ("--label-table", "tags", ("tags is a column of words.csv", "give the column as labels")),
        ("--label-table", "lables.csv", ("lables.csv does not exist",)),
        ("--instance-labels", "leter", ("no column 'leter'", "Did you mean 'letter'?")),
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
    assert "for fit alone" in errors


def test_a_column_is_preferred_to_a_file_of_its_name(run, folder):
    (folder / "letter").write_text("no table at all")
    code, _, errors = run(*FIT, "--instance-labels", "letter", "--max-iter", "3")
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
        "annotate", "timed.unbag", "timed.csv", *more, "-o", "out.csv", "--raven", "selections"
    )
    assert code == 0, errors
    assert len(list((folder / "selections").iterdir())) == 60
    code, _, errors = run("annotate", "timed.unbag", "timed.csv", "-o", "out.csv", "--json")
    assert code == 0, errors
