"""Pages and the README's table, from what runs have left."""

import re
from pathlib import Path

import pytest

from unbag.experiments import STUDIES, find_study, reproduce
from unbag.experiments.page import README_TABLE, readme_table, write_page, write_readme

REPOSITORY = Path(__file__).parents[2]
COMMITTED = REPOSITORY / "docs" / "results"


def test_a_page_of_all_that_is_done(tmp_path):
    with pytest.raises(ValueError, match="holds no finished experiment"):
        write_page(tmp_path / "results", tmp_path / "page.md")
    reproduce("datasets", ["letter-frost"], out=tmp_path / "results")
    assert write_page(tmp_path / "results", tmp_path / "docs" / "page.md") == ["datasets"]
    page = (tmp_path / "docs" / "page.md").read_text()
    assert "unbag reproduce datasets --data letter-frost --seed 0" in page
    assert "| letter-frost |" in page
    assert "\n‡" not in page


def without_marks(page):
    """A page without its notes on where results come from, which depend on the sources."""
    return re.sub(r"\n[†‡] .*\n", "", page)


def test_the_committed_page_is_what_the_committed_results_say(tmp_path):
    """All but the marks: those depend on the sources, and the figures on the results alone."""
    committed = (REPOSITORY / "docs" / "reproduction.md").read_text()
    page = tmp_path / "page.md"
    write_page(COMMITTED, page)
    text = re.sub(r"\]\([^)]*results/", "](results/", page.read_text())
    assert without_marks(text) == without_marks(committed)


def test_the_committed_readme_has_the_committed_results(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("# unbag\n\n<!-- results -->\nold\n<!-- end of results -->\nEnd.\n")
    assert write_readme(COMMITTED, readme)
    committed = README_TABLE.search((REPOSITORY / "README.md").read_text())[0]
    assert README_TABLE.search(readme.read_text())[0] == committed
    assert readme.read_text().endswith("-->\nEnd.\n")
    assert readme_table(COMMITTED) in committed


def test_a_readme_without_a_place_for_the_table_stays_as_it_is(tmp_path):
    readme = tmp_path / "README.md"
    assert not write_readme(COMMITTED, readme)
    assert not readme.exists()
    readme.write_text("# Mine\n")
    assert not write_readme(COMMITTED, readme)
    assert readme.read_text() == "# Mine\n"


def test_a_page_says_how_far_ledgers_back_it(tmp_path, monkeypatch):
    reproduce("stability", level="quick", out=tmp_path)
    page = tmp_path / "page.md"

    def marks():
        write_page(tmp_path, page)
        return [line for line in page.read_text().splitlines() if line.startswith(("†", "‡"))]

    assert marks() == []
    n_units = len(find_study("stability").units(find_plan(tmp_path), {}))
    with monkeypatch.context() as other:
        other.setattr("unbag.experiments.ledger.fingerprint", lambda task: "other")
        (mark,) = marks()
        assert mark.startswith(f"† {n_units} of {n_units} units of work were done by other sources")
    (tmp_path / "stability" / "units.jsonl.gz").unlink()
    assert marks() == ["‡ From committed results without a ledger."]


def find_plan(out):
    from unbag.experiments.reproduce import read_plan

    return read_plan(out / "stability")[0]


@pytest.mark.parametrize("name", STUDIES)
def test_every_experiment_has_committed_results(name):
    study = find_study(name)
    for table in study_tables(name):
        assert (COMMITTED / name / f"{table}.csv").exists()
        assert (COMMITTED / name / f"{table}.md").exists()
    assert study.title


def study_tables(name):
    from unbag.experiments.reproduce import read_plan

    return read_plan(COMMITTED / name)[1]["tables"]
