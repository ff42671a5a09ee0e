"""What can be wrong with a command: a code, one line that says what, and nothing half-written."""

import os
import pickle
import re
import subprocess
import sys
import zipfile

import pytest

from platforms import posix_only
from toys import ROLES, word_lines
from unbag.models import container


def fit(*options, table="words.csv", output="m.unbag"):
    return ("fit", table, *options, "-o", output)


FIT = fit(*ROLES)
ANNOTATE = ("annotate", "m.unbag", "words.csv", "-o", "out.csv")


def write(folder, lines, name="words.csv"):
    (folder / name).write_text("\n".join(lines) + "\n")


def replace_cell(lines, row, column, text):
    cells = lines[row].split(",")
    cells[column] = text
    return [*lines[:row], ",".join(cells), *lines[row + 1 :]]


def text_in_a_feature(folder):
    write(folder, replace_cell(word_lines(), 5, -1, "loud"))


def nothing(folder):
    pass


def bad_toml(folder):
    write(folder, word_lines())
    (folder / "roles.toml").write_text("bag = [")


def good(folder):
    write(folder, word_lines())


# What is wrong in tables and roles: `tests/tables`. Here one of each kind.
CASES = {
    "no such file": (nothing, FIT, 1, "words.csv"),
    "text in a feature": (text_in_a_feature, (*FIT, "--features", "x-box,yegvx"), 1, "loud"),
    "a broken TOML": (bad_toml, fit("--roles", "roles.toml"), 1, "roles.toml"),
    "a folder that is not there": (good, fit(*ROLES, output="no/m.unbag"), 1, "folder"),
    "a folder as output": (good, fit(*ROLES, output="."), 1, "folder"),
    "a negative penalty": (good, (*FIT, "--alpha", "-1"), 1, "alpha"),
    "no iterations": (good, (*FIT, "--max-iter", "0"), 1, "max_iter"),
    "a word for a number": (good, (*FIT, "--context", "much"), 2, "context"),
    "no output": (good, ("fit", "words.csv", *ROLES), 2, "output"),
    "an unknown command": (good, ("fitt", "words.csv"), 2, "fitt"),
    "an unknown option": (good, (*FIT, "--colour", "red"), 2, "colour"),
    "no such model": (good, ANNOTATE, 1, "m.unbag"),
    "an unknown method": (
        good, ("compare", "words.csv", *ROLES[:4], "--methods", "magic"), 1, "magic",
    ),
}  # fmt: skip


def check(result, code, words, folder, before):
    exit_code, out, errors = result
    assert exit_code == code, errors
    assert words in errors
    assert "Traceback" not in errors + out
    if code == 1:
        assert len([line for line in errors.splitlines() if "error:" in line]) == 1
    assert set(os.listdir(folder)) == before


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case, run, tmp_path, monkeypatch):
    prepare, arguments, code, words = CASES[case]
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    check(run(*arguments), code, words, tmp_path, set(os.listdir(tmp_path)))


class Touch:
    """Unpickled, it would leave a file behind."""

    def __reduce__(self):
        return open, ("touched", "w")


@pytest.mark.parametrize("kind", ["zip", "pickle", "random", "truncated", "text"])
def test_a_file_that_is_no_model_runs_nothing(kind, run, words, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "stranger.unbag"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data.pkl", pickle.dumps(Touch()))
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Touch()))
    elif kind == "random":
        path.write_bytes(os.urandom(4096))
    elif kind == "truncated":
        path.write_bytes(model.read_bytes()[:-100])
    else:
        path.write_text("hello")
    before = set(os.listdir(tmp_path))
    check(run("annotate", path, words, "-o", "out.csv"), 1, "stranger.unbag", tmp_path, before)
    assert not (tmp_path / "touched").exists()


def test_what_is_read_is_not_overwritten(run, words, model, tmp_path):
    before = set(os.listdir(tmp_path))
    kept = words.read_bytes(), model.read_bytes()
    check(run("fit", words, *ROLES, "-o", words), 1, "is also the input", tmp_path, before)
    check(run("report", model, words, "-o", model), 1, "is also the input", tmp_path, before)
    assert (words.read_bytes(), model.read_bytes()) == kept


def test_a_report_is_called_a_page(run, words, model, tmp_path):
    before = set(os.listdir(tmp_path))
    arguments = "report", model, words, "-o", tmp_path / "report.pdf"
    check(run(*arguments), 1, "report.pdf must end in .html", tmp_path, before)


def test_a_named_column_must_be_there(run, words, model, tmp_path):
    before = set(os.listdir(tmp_path))
    out = tmp_path / "out.csv"
    check(run("annotate", model, words, "--labels", "tgas", "-o", out), 1, "tags", tmp_path, before)
    for_raven = ("--write", f"raven={tmp_path / 'r'}")
    check(run("annotate", model, words, *for_raven, "-o", out), 1, "start", tmp_path, before)
    check(run("predict", model, words, "-o", tmp_path / "o.xlsx"), 1, "xlsx", tmp_path, before)


def test_labels_separated_by_something_else(run, tmp_path):
    header, *rest = word_lines()
    letters = sorted({c for line in rest for c in line.split(",")[1].split("|")})
    singles = [f"s{c},{c},{c},n,{','.join('1' * 16)}" for c in letters]
    write(tmp_path, [header, *(x.replace("|", ";") for x in rest), *singles], "semi.csv")
    before = set(os.listdir(tmp_path))
    result = run("fit", tmp_path / "semi.csv", *ROLES, "-o", tmp_path / "m2.unbag")
    check(result, 1, "--label-separator", tmp_path, before)


def test_unused_labels_may_be_bad(run, words, model, tmp_path):
    lines = words.read_text().splitlines()
    write(tmp_path, [lines[0], replace_cell(lines, 1, 1, "A|Z")[1], *lines[2:]], "two.csv")
    out = tmp_path / "out.csv"
    assert run("annotate", model, tmp_path / "two.csv", "-o", out)[0] == 1
    assert run("annotate", model, tmp_path / "two.csv", "--ignore-labels", "-o", out)[0] == 0
    assert run("predict", model, tmp_path / "two.csv", "-o", out)[0] == 0


def test_names_that_look_like_markup(run, words, tmp_path):
    import json

    marked = tmp_path / "marked.csv"
    marked.write_text(words.read_text().replace("|T", "|[/b]").replace(",T,", ",[/b],"))
    path = tmp_path / "marked.unbag"
    assert run("fit", marked, *ROLES, "-o", path, "--max-iter", "3")[0] == 0
    code, out, errors = run("evaluate", path, marked, "--instance-labels", "letter")
    assert code == 0, errors
    assert "[/b]" in out
    code, out, _ = run("evaluate", path, marked, "--instance-labels", "letter", "--json")
    json.loads(out, parse_constant=lambda name: pytest.fail(name))


def test_a_label_never_seen(run, words, model, tmp_path):
    lines = words.read_text().replace("|T", "|THETA").splitlines()
    write(tmp_path, lines, "strange.csv")
    before = set(os.listdir(tmp_path))
    result = run("annotate", model, tmp_path / "strange.csv", "-o", tmp_path / "out.csv")
    check(result, 1, "THETA", tmp_path, before)
    result = run(
        "annotate", model, tmp_path / "strange.csv", "-o", tmp_path / "out.csv", "--ignore-labels"
    )
    assert result[0] == 0


def test_features_of_another_table(run, words, model, tmp_path):
    lines = words.read_text().splitlines()
    write(tmp_path, [lines[0].replace("x-box", "xbox"), *lines[1:]], "other.csv")
    before = set(os.listdir(tmp_path))
    result = run("annotate", model, tmp_path / "other.csv", "-o", tmp_path / "out.csv")
    check(result, 1, "x-box", tmp_path, before)


def test_a_full_disk(run, words, model, tmp_path, monkeypatch):
    """Writing fails half way: the old file stays, and nothing else."""
    import errno

    out = tmp_path / "out.csv"
    out.write_text("the old file")
    before = set(os.listdir(tmp_path))

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    result = run("annotate", model, words, "-o", out)
    check(result, 1, "No space left on device", tmp_path, before)
    assert out.read_text() == "the old file"
    saved = model.read_bytes()
    result = run("fit", words, *ROLES, "-o", model, "--max-iter", "3")
    check(result, 1, "No space left on device", tmp_path, before)
    assert model.read_bytes() == saved


def test_a_misspelt_column_to_be_carried_is_named(run, words, model, tmp_path):
    out = ("-o", tmp_path / "n.unbag")
    code, _, errors = run("fit", words, *ROLES[:4], "--carry", "letter,note,leter", *out)
    assert code == 1
    assert "no column 'leter' for carry" in errors
    assert "Did you mean 'letter'?" in errors
    # What a model remembers of another table need not be in this one.
    lines = [line.split(",", 3) for line in words.read_text().splitlines()]
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(f"{word},{tags},{rest}\n" for word, tags, _, rest in lines))
    code, _, errors = run("annotate", model, bare, "-o", tmp_path / "o.csv", "--ignore-labels")
    assert code == 0, errors


def test_no_feature_is_not_every_feature(run, words, tmp_path):
    code, _, errors = run("fit", words, *ROLES, "--features", "", "-o", tmp_path / "n.unbag")
    assert code == 1
    assert "--features names no column" in errors


# Whole files that somebody made by hand.


def with_header(path, **changes):
    """Change the header of a model file, which gets the right checksum."""
    header, arrays = container.read(path)
    container.write(path, {**header, **changes}, arrays)


@pytest.mark.parametrize("versions", [{}, {"unbag": 7}, {"numpy": "\x1b[31m"}])
def test_a_model_may_not_say_who_wrote_it(model, words, run, tmp_path, versions):
    with_header(model, versions=versions)
    code, _, said = run("report", model, words, "-o", tmp_path / "r.html")
    assert code == 0, said


@pytest.mark.parametrize(
    "info",
    [
        {"roles": {"carry": 5}}, {"roles": {"bag": ["x"]}}, {"roles": {"label_separator": 7}},
        {"roles": {"features": "x"}, "tuning": {"chosen": 5}}, {"tuning": {"tried": 5}},
    ],
    ids=repr,
)  # fmt: skip
def test_what_a_model_says_of_its_table_has_the_right_form(model, words, run, tmp_path, info):
    with_header(model, info=info)
    for command in (("report", "r.html"), ("annotate", "o.csv")):
        code, _, said = run(command[0], model, words, "-o", tmp_path / command[1])
        assert code == 1, said
        assert "m.unbag is damaged, was edited, or comes from another version" in said


@pytest.mark.parametrize("info", [{"source": {"a": [1]}}, {"tuning": {"threshold": {"a": 1}}}])
def test_other_facts_of_a_model_may_be_anything(model, words, run, tmp_path, info):
    with_header(model, info=info)
    roles = ("--bag", "word", "--labels", "tags")
    code, _, said = run("report", model, words, *roles, "-o", tmp_path / "r.html")
    assert code == 0, said


@pytest.mark.parametrize(
    "content", ["bag = " + "[" * 10**5, "a = {" * 10**4, "a." * 10**4 + "b = 1"]
)
def test_toml_may_be_nested_too_deep(words, run, tmp_path, content):
    roles = tmp_path / "roles.toml"
    roles.write_text(content)
    code, _, said = run("fit", words, "--roles", roles, "-o", tmp_path / "m.unbag")
    assert code == 1
    assert "roles.toml" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("number", ["100000", "9" * 30])
def test_numbers_of_any_size(words, run, number):
    code, _, said = run("check", words, *ROLES, "--folds", number)
    assert code == 1
    assert re.search(rf"words.csv has \d+ bags, which cannot fill --folds {number}", said)


def test_more_labels_to_show_than_any_computer_counts(words, run):
    code, out, said = run("check", words, *ROLES, "--folds", "2", "--top", "9" * 30)
    assert code == 0, said
    # The name of the folder may be so long that the title is broken.
    assert "the most suspicious of" in " ".join(out.split())


def test_numbers_that_overflow_are_in_a_file(model, words, run, tmp_path):
    header, *lines = words.read_text().splitlines()
    huge = tmp_path / "huge.csv"
    lines = [replace_cell([line], 0, -1, "1e200")[0] for line in lines]
    huge.write_text("\n".join([header, *lines]) + "\n")
    commands = (
        ("fit", huge, *ROLES, "-o", tmp_path / "n.unbag"),
        ("annotate", model, huge, "-o", tmp_path / "o.csv"),
    )  # fmt: skip
    for command in commands:
        code, _, said = run(*command)
        assert code == 1, said
        assert f"unbag: error: {huge}: " in said


NAME = "wren\x1b[2J\nred"


@pytest.mark.parametrize("place", ["column", "label", "bag"])
def test_names_do_not_reach_the_terminal_raw(words, run, tmp_path, place):
    table, model = tmp_path / "names.csv", tmp_path / "n.unbag"
    lines = [f"b{i // 2},{'owl|wren' if i % 4 < 2 else 'owl'},{i % 3},{i % 2}" for i in range(20)]
    text = "\n".join(["bag,labels,x,y", *lines]) + "\n"
    old = {"column": "x", "label": "owl|wren", "bag": "b1,"}[place]
    new = {"column": f'"{NAME}"', "label": f'"owl|{NAME}"', "bag": f'"{NAME}",'}[place]
    table.write_text(text.replace(old, new))
    assert "\x1b" in table.read_text()
    for command in (
        ("fit", table, "-o", model, "--max-iter", "3"), ("fit", table, "-o", model, "--dry-run"),
        ("fit", table, "-o", model, "--bag", "nothing"), ("evaluate", model, table),
        ("check", table, "--folds", "2", "--top", "100"), ("fit", NAME, "-o", model),
        ("annotate", model, words, "-o", tmp_path / "o.csv"),
    ):  # fmt: skip
        code, out, said = run(*command)
        assert code in (0, 1), said
        assert "\x1b" not in out + said


@posix_only
def test_a_device_that_is_full_is_named(model, words, run, tmp_path):
    (tmp_path / "full.csv").symlink_to("/dev/full")
    code, _, errors = run("annotate", model, words, "-o", tmp_path / "full.csv")
    assert code == 1
    assert "full.csv cannot be written: No space left on device." in errors


@posix_only
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_standard_streams_may_be_closed(model, words, closed):
    """Where both are, the files that are opened next have their numbers."""
    command = "evaluate" if closed == ">&- 2>&-" else "data formats"
    given = (model, words) if command == "evaluate" else ()
    line = f'"{sys.executable}" -m unbag.cli {command} "$@" {closed}'
    done = subprocess.run(("sh", "-c", line, "sh", *given), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
