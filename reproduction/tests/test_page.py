"""The pages and the README's table: what the committed results say."""

import re
from pathlib import Path
from shutil import copytree

import pytest

from made_results import figure, make_results
from unbag import ORLogisticRegression
from unbag_reproduce.differences import all_findings
from unbag_reproduce.front import (
    NOT_IN_README,
    RIVALS,
    accuracy_rows,
    at_their_best,
    cells_figure,
    write_readme,
)
from unbag_reproduce.methods import METHODS
from unbag_reproduce.page import how_timed, rewrite_tables, write_pages
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.reproduce import reproduce
from unbag_reproduce.studies import STUDIES, find_study
from unbag_reproduce.tables import DATA

REPOSITORY = Path(__file__).parents[2]
COMMITTED = REPOSITORY / "docs" / "results"
RECORDED = Recorded(COMMITTED)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The pages and lists of the committed results, by name, as they would be written now."""
    docs = tmp_path_factory.mktemp("docs")
    copytree(COMMITTED, docs / "results")
    write_pages(docs / "results", docs / "reproduction.md")
    paths = [docs / "reproduction.md", *docs.glob("reproduction/*.md"), *docs.glob("results/*.md")]
    return {path.relative_to(docs).as_posix(): path.read_text() for path in paths}


def test_the_committed_pages_are_what_the_committed_results_say(written):
    for name, text in written.items():
        assert text == (REPOSITORY / "docs" / name).read_text(), name


def test_links_of_the_pages_lead_somewhere(written):
    for name, text in written.items():
        for link in re.findall(r"\]\((?!https)([^)#]+)(?:#[^)]*)?\)", text):
            assert (REPOSITORY / "docs" / name).parent.joinpath(link).exists(), (name, link)
        headings = {
            re.sub(r"[^\w -]", "", each).strip().lower().replace(" ", "-")
            for each in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        }
        assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings, name


def test_long_tables_are_linked_and_the_pages_are_short(written):
    for name in STUDIES:
        text = written[f"reproduction/{name}.md"]
        for table in find_study(name).listed:
            assert f"(../results/{name}/{table}.md)" in text
        assert text.count("The rows: ") == len(find_study(name).listed)
    pages = [text for name, text in written.items() if name.startswith("reproduction")]
    assert sum(len(text.split()) for text in pages) <= 15_000


def test_a_data_set_has_one_name_on_all_pages(written):
    for name, text in written.items():
        prose = re.sub(r"`[^`]*`|```.*?```", "", text, flags=re.DOTALL)
        assert not [key for key in DATA if key in prose], name
        assert not re.search(r"HJA union|Letter (Carroll|Frost)|MSRCv2", prose), name


def test_the_first_page_counts_reproduced_figures_by_method_and_table(written):
    rows = [line.split(" | ") for line in written["reproduction.md"].splitlines()]
    (mlr, *_) = (row for row in rows if row[0] == "| MLR")
    assert mlr[1] == "1 of 4"
    (accuracies,) = (row for row in rows if row[0].startswith("| instance accuracy, without"))
    (total,) = (row for row in rows if row[0] == "| **all**")
    assert (accuracies[-1], total[-1]) == ("49 of 88 |", "190 of 268 |")


def test_every_method_of_the_tables_is_explained(written):
    words = written["reproduction/appendix.md"].split("\n## Words\n")[1].split("\n## ")[0]
    titles = {method.title.split(",")[0] for method in METHODS.values()}
    assert [title for title in titles if f"**{title}**" not in words] == []


def test_tables_can_be_written_again_from_the_ledger(tmp_path):
    reproduce("convergence", ["letter-frost"], level="quick", out=tmp_path)
    folder = tmp_path / "convergence"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "convergence-accuracy.md").write_text("old")
    rewrite_tables(tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_pages_need_every_experiment(tmp_path):
    make_results(tmp_path, "datasets")
    make_results(tmp_path, "inductive", level="quick")
    with pytest.raises(ValueError, match="first looks: pages also need inductive, guesses, "):
        write_pages(tmp_path, tmp_path / "page.md")


def test_the_committed_readme_has_the_committed_results(tmp_path):
    text = (REPOSITORY / "README.md").read_text()
    before, _, after = text.partition("<!-- results -->\n")
    _, _, end = after.partition("<!-- end of results -->")
    old = f"{before}<!-- results -->\nold\n<!-- end of results -->{end}"
    (tmp_path / "README.md").write_text(old)
    write_readme(COMMITTED, tmp_path / "README.md")
    assert (tmp_path / "README.md").read_text() == text
    rows = accuracy_rows(RECORDED)
    assert len(set(rows) - set(NOT_IN_README)) == len(rows) - len(NOT_IN_README) == 4


def test_rivals_are_at_their_best_with_or_without_our_additions(tmp_path):
    make_results(tmp_path, "inductive", inductive_accuracy=[figure("SIM", 48.0)])
    make_results(tmp_path, "beyond", beyond_rivals=[figure("SIM", 61.0), figure("LSB-CMM", 59.0)])
    make_results(tmp_path, "kernel", kernel=[figure("SIM", 63.0), figure("MLR", 62.0)])
    best = at_their_best(Recorded(tmp_path))
    assert list(best) == list(RIVALS)
    assert {method: row["msrcv2"]["ours"] for method, row in best.items() if row} == {
        "SIM": 63.0, "LSB-CMM": 59.0,
    }  # fmt: skip


def test_the_default_is_the_default():
    (setting,) = METHODS["unbag"].grids["standard"]
    assert METHODS["unbag"].build(**setting).get_params() == ORLogisticRegression().get_params()
    for place in (("inductive", "inductive-accuracy"), ("bag-level", "bag-level-hamming")):
        recorded = [
            each["setting"]
            for each in RECORDED.records(*place)
            if each["method"] == METHODS["unbag"].title
        ]
        assert recorded[:1] == [setting]
        assert all(each == setting for each in recorded)


def test_times_say_how_they_were_taken():
    assert "at an unknown load" in how_timed({})
    assert "at a load of 1.1 (1: this experiment alone)" in how_timed({"load": 1.1})


def test_the_picture_has_every_figure(tmp_path):
    pytest.importorskip("matplotlib")
    records = [figure("SIM", 47.0, 50.0), figure("MLR", 50.0, 50.0), figure("MLR", 40.0, 41.0)]
    make_results(tmp_path, "inductive", inductive_accuracy=records)
    drawn = cells_figure(all_findings(Recorded(tmp_path))).draw()
    for axis in drawn.axes:
        dots = [each for each in axis.collections if each.get_label() in ("SIM", "MLR")]
        assert sum(len(each.get_offsets()) for each in dots) == len(records)
