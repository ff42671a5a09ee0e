"""``unbag reproduce``: pages of results, and cells made anew."""

import json
from pathlib import Path
from shutil import copytree

import pytest

from unbag_reproduce import reproduce

COMMITTED = Path(__file__).parents[2] / "docs" / "results"


def test_a_cell_is_made_anew(run):
    code, out, errors = run(
        "reproduce", "cell", "transductive", "letter-frost", "dummy", "-o", COMMITTED
    )
    assert code == 0, errors
    assert out.count("+0.0e+00") == 2


def test_a_cell_that_differs_fails(run, tmp_path):
    copytree(COMMITTED / "transductive", tmp_path / "transductive")
    table = tmp_path / "transductive" / "transductive-hamming.csv"
    text = table.read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("letter-frost,dummy"))
    ours = line.split(",")[4]
    table.write_text(text.replace(f",{ours},", f",{float(ours) + 1},"))
    code, out, errors = run(
        "reproduce", "cell", "transductive", "letter-frost", "dummy", "-o", tmp_path
    )
    assert code == 1
    assert "-1.0e+00" in out
    assert "differ by more than the rounding of the tables, 0.05" in errors


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("cell",), 2, "'cell' needs an experiment and words of its tables"),
        (("cell", "inductive"), 2, "'cell' needs an experiment and words of its tables"),
        (("cell", "tabel", "letter-frost", "mlr"), 1, "no experiment 'tabel'"),
        (("inductive", "letter-frost"), 2, "'inductive' takes no arguments; got letter-frost"),
        (("none",), 2, "there is no experiment 'none'"),
        (("datasets", "--quick", "--full"), 2, "choose one of --quick and --full"),
        (("datasets", "--jobs", "-1"), 2, "--jobs"),
        (("inductive", "--data", "birds"), 1, "no data set 'birds'"),
        (("list", "--method", "sim"), 2, "--method is for the work of one experiment"),
        (("inductive", "--tables", "--method", "sim"), 2, "--method is for the work of one"),
        (("inductive", "--shown"), 2, "--shown says what of --stale to do: pass --stale, too"),
        (("page", "--stale"), 2, "--stale and --networks are for the work of experiments"),
        (("inductive", "--stale", "--tables"), 2, "are for the work of experiments"),
        (("beyond", "--no-networks", "--confirm", "1"), 2, "are for the work of experiments"),
    ],
)
def test_what_cannot_be_done_is_named(run, words, code, message):
    left, _, errors = run("reproduce", *words)
    assert left == code
    assert message in " ".join(errors.replace("│", " ").split())


def test_the_page_of_committed_results_and_the_readme(run, tmp_path, monkeypatch):
    """Run where the repository's folders are; elsewhere no README is touched."""
    # Some of the results: of all of them, pages take a minute.
    for study in ("inductive", "datasets"):
        copytree(COMMITTED / study, tmp_path / "docs" / "results" / study)
    readme = tmp_path / "README.md"
    empty = "<!-- results -->\n<!-- end of results -->\n"
    readme.write_text(empty)
    monkeypatch.chdir(tmp_path)
    code, _, errors = run("reproduce", "page", "-o", "docs/results", "--page", "mine.md")
    assert (code, readme.read_text()) == (0, empty), errors
    assert (tmp_path / "mine.md").exists()
    code, _, errors = run("reproduce", "page")
    assert code == 0, errors
    assert "docs/reproduction.md" in errors
    assert "| MLR |" in readme.read_text()
    assert (tmp_path / "docs" / "reproduction.md").exists()
    assert (tmp_path / "docs" / "reproduction" / "inductive.md").exists()


def test_finished_work_is_done_anew_and_compared(run, tmp_path, monkeypatch):
    reproduce("stability", level="quick", out=tmp_path)
    command = ("reproduce", "stability", "--confirm", "2", "-o", tmp_path)
    code, printed, _ = run(*command, "--json")
    assert code == 0
    assert json.loads(printed)["stability"]["same_digits"] == 2
    code, _, messages = run(*command)
    assert code == 0
    assert "of 2 recomputed units, 2 gave the same digits" in messages
    reproduce("datasets", ["letter-frost"], level="quick", out=tmp_path)
    code, printed, _ = run("reproduce", "all", "--confirm", "1", "-o", tmp_path, "--json")
    assert (code, list(json.loads(printed))) == (0, ["stability"]), "what does work, and was made"
    monkeypatch.setattr("unbag_reproduce.confirm.do_timed", lambda unit: ({"surprise": 1.0}, 0.0))
    code, _, messages = run(*command)
    assert code == 1
    assert "surprise was None, and is 1.0" in " ".join(messages.split())
    assert "studies.stability" in messages
    code, _, messages = run("reproduce", "stability", "--confirm", "0", "-o", tmp_path)
    assert code == 2
    assert "--confirm" in messages
