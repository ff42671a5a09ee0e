"""Pages and the README's table, from what runs have left."""

import ast
import json
import re
from pathlib import Path

import pytest

from made_results import figure, make_results
from unbag import ORLogisticRegression
from unbag.model_selection.compare import compared_method
from unbag_reproduce import METHODS, STUDIES, additions, find_study, published, reproduce
from unbag_reproduce.cells import remake
from unbag_reproduce.conditions import runs_section
from unbag_reproduce.confirm import confirm
from unbag_reproduce.page import APPENDIX, write_page
from unbag_reproduce.readme import (
    DATA,
    KERNEL,
    OURS,
    TABLE,
    network_row,
    readme_table,
    write_readme,
)
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.reproduce import ABOUT, CONFIRMED

REPOSITORY = Path(__file__).parents[2]
COMMITTED = REPOSITORY / "docs" / "results"


def test_a_page_of_all_that_is_done(tmp_path):
    with pytest.raises(ValueError, match="contains no finished experiment"):
        write_page(tmp_path / "results", tmp_path / "page.md")
    reproduce("datasets", ["letter-frost"], out=tmp_path / "results")
    assert write_page(tmp_path / "results", tmp_path / "docs" / "page.md") == ["datasets"]
    assert "(page/datasets.md)" in (tmp_path / "docs" / "page.md").read_text()
    page = (tmp_path / "docs" / "page" / "datasets.md").read_text()
    assert "unbag reproduce datasets --data letter-frost --seed 0" in page
    assert "| letter-frost |" in page
    assert "\nSources:" not in page


def without_sources(page):
    """A page without its notes on where results come from, which depend on the sources."""
    return re.sub(r"\nSources: .*\n", "", page)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The pages of the committed results, by name, as they would be written now."""
    page = tmp_path_factory.mktemp("pages") / "reproduction.md"
    write_page(COMMITTED, page)
    paths = [page, *sorted(page.with_suffix("").glob("*.md"))]
    return {
        path.relative_to(page.parent).as_posix(): re.sub(
            r"\]\([^)]*/results/", "](../results/", path.read_text()
        )
        for path in paths
    }


def test_the_committed_pages_are_what_the_committed_results_say(written):
    """All but the notes on sources: the figures depend on the results alone."""
    docs = REPOSITORY / "docs"
    for name, text in written.items():
        assert without_sources(text) == without_sources((docs / name).read_text()), name


def test_no_page_is_long_and_the_first_has_what_matters_at_its_top(written):
    assert max(text.count("\n") for text in written.values()) <= 400
    top = written["reproduction.md"].splitlines()[:120]
    for part in (
        "- **Reproduced.**", "- **Not reproduced.**", "- **New.**", "![Ours against published",
        "## In one table", "## What we had to guess", "## What is open", "## Check it yourself",
    ):  # fmt: skip
        assert any(line.startswith(part) for line in top), part
    guesses = written["reproduction.md"].split("## What we had to guess")[1]
    assert re.search(r"\|---.*\n\| (.*?) \|", guesses)[1] == (
        "How features are scaled, for MLR and SLR"
    )


def test_links_of_the_pages_lead_somewhere(written):
    docs = REPOSITORY / "docs"
    for name, text in written.items():
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            assert (docs / name).parent.joinpath(link).exists(), (name, link)
        headings = {
            re.sub(r"[^\w -]", "", each).strip().lower().replace(" ", "-")
            for each in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        }
        assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings, name


def test_the_committed_readme_has_the_committed_results(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("# unbag\n\n<!-- results -->\nold\n<!-- end of results -->\nEnd.\n")
    assert write_readme(COMMITTED, readme)
    committed = TABLE.search((REPOSITORY / "README.md").read_text())[0]
    assert TABLE.search(readme.read_text())[0] == committed
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

    def marks():
        write_page(tmp_path, tmp_path / "page.md")
        text = (tmp_path / "page" / "stability.md").read_text()
        return [line for line in text.splitlines() if line.startswith("Sources:")]

    assert marks() == []
    n_units = len(find_study("stability").units(find_plan(tmp_path), {}))
    with monkeypatch.context() as other:
        other.setattr("unbag_reproduce.sources.fingerprint", lambda task: "other")
        (mark,) = marks()
        assert mark.startswith(f"Sources: {n_units} of {n_units} units of work were done by an ear")
        assert "drawn at random" not in mark
        confirm("stability", 2, out=tmp_path)
        (mark,) = marks()
        assert mark.endswith(
            "2 of them, drawn at random, were done anew by these sources and gave the same "
            "figures, all but times, to the last digit."
        )
    (tmp_path / "stability" / "units.jsonl.gz").unlink()
    assert marks() == ["Sources: from committed results without a ledger."]


def find_plan(out):
    from unbag_reproduce.reproduce import read_plan

    return read_plan(out / "stability")[0]


def test_first_looks_come_last_and_are_marked(tmp_path):
    page = tmp_path / "page.md"
    record = figure("SIM", 40.0, 50.0)
    make_results(tmp_path, "inductive", level="quick", inductive_accuracy=[record])
    reproduce("datasets", ["letter-frost"], out=tmp_path)
    assert write_page(tmp_path, page) == ["datasets", "inductive"]
    assert "**A first look, not a reproduction**" in (tmp_path / "page/inductive.md").read_text()
    assert "**A first look.**" in page.read_text()
    # Neither a verdict nor a difference rests on it.
    text = (tmp_path / "page" / "differences.md").read_text()
    assert "| [Table 3](inductive.md) | not made yet |" in text
    assert "| msrcv2 | SIM |" not in text


def test_nothing_that_is_committed_is_a_first_look():
    recorded = Recorded(COMMITTED)
    assert all(recorded.is_made(name) for name in STUDIES)


def test_pages_have_every_part(tmp_path):
    record = figure("SIM", 40.0, 50.0, settings_tried=11, bold=False, setting="{'alpha': 0.1}")
    make_results(tmp_path, "inductive", inductive_accuracy=[record])
    write_page(tmp_path, tmp_path / "page.md")

    def headings(name):
        return re.findall(r"^##? (.*)$", (tmp_path / name).read_text(), re.MULTILINE)

    assert headings("page.md") == [
        "The paper, reproduced", "What is open", "Check it yourself", "Pages",
    ]  # fmt: skip
    assert headings("page/appendix.md") == [
        "Appendix: how it was made", "How to make it again",
        "Where the protocol is not the paper's", "Words", "Machines and times", "Settings chosen",
    ]  # fmt: skip
    assert headings("page/differences.md") == ["What differs from the paper", "Table by table"]
    assert headings("page/claims.md") == ["What the paper's text claims"]
    appendix = (tmp_path / "page" / "appendix.md").read_text()
    assert "| SIM | 11 | alpha 0.1 |" in appendix
    # Every method of the tables is explained.
    words = appendix.split("\n## Words\n")[1].split("\n## ")[0]
    titles = {method.title.split(",")[0] for method in METHODS.values()} - {"network"}
    assert [title for title in titles if f"**{title}**" not in words] == []
    # What a table says of stale results its page says.
    assert "Sources: stale." not in (tmp_path / "page" / "inductive.md").read_text()


def test_curves_stand_for_the_rows_of_their_tables(written):
    for name in STUDIES:
        text = written[f"reproduction/{name}.md"]
        for table in find_study(name).drawn:
            assert (COMMITTED / name / f"{table}.md").exists()
            assert f"[the rows](../results/{name}/{table}.md)" in text
        assert text.count("Drawn above;") == len(find_study(name).drawn)


def test_the_appendix_names_the_experiments_whose_cells_can_be_made_anew():
    (paragraph,) = (part for part in APPENDIX.split("\n\n") if "unbag reproduce cell" in part)
    named = re.findall(r"\]\(#([\w-]+)\)", paragraph)
    assert set(named) == set(STUDIES)
    for name in STUDIES:
        with pytest.raises(ValueError, match=f"The tables of {name} have no record of nobody"):
            remake(name, ["nobody"], out=COMMITTED)


def test_the_default_is_the_default():
    method = METHODS["unbag"]
    assert method.title == "MLR, unbag's default"
    (setting,) = method.grids["standard"]
    assert method.build(**setting).get_params() == ORLogisticRegression().get_params()
    users = compared_method("unbag")
    assert users.title == method.title
    assert users.build(**users.grids["standard"][0]).get_params() == (
        ORLogisticRegression().get_params()
    )
    recorded = Recorded(COMMITTED)
    for place in (("inductive", "inductive-accuracy"), ("bag-level", "bag-level-hamming")):
        (found,) = {each["setting"] for each in recorded.records(*place)
                    if each["method"] == method.title}  # fmt: skip
        assert ast.literal_eval(found) == setting


def test_times_that_were_not_kept_are_estimated_and_devices_are_named(tmp_path):
    reproduce("stability", level="quick", out=tmp_path)
    recorded = Recorded(tmp_path)
    units, ledger = recorded.units("stability"), recorded.ledger("stability")
    seconds, n_units = ledger.cpu_seconds(units)
    assert n_units == len(units)
    text = runs_section(recorded, ["stability"])
    assert f"{seconds / 3600:.1f} hours in all, of which 0.0 on the letters" in text
    assert "GPU" not in text
    first, second, *_ = (ledger._records[unit.key] for unit in units)
    del first["cpu_seconds"]
    second["result"]["device"] = "a fast one"
    about = json.loads((tmp_path / "stability" / ABOUT).read_text())
    about[CONFIRMED] = {"units": 2, "cpu_seconds": 7200.0}
    (tmp_path / "stability" / ABOUT).write_text(json.dumps(about))
    text = runs_section(recorded, ["stability"])
    assert "1.0 hours in all" in text
    assert f"| {len(units)} | {len(units) - 2} | about 1.00 |" in text
    assert "GPU (a fast one)" in text


def test_the_readme_has_rivals_at_their_best(tmp_path):
    accuracies = [
        figure("MLR", 54.0, 54.8), figure("MLR, 200 steps", 55.0, 54.8), figure("SIM", 48.0, 46.7),
        figure("SLR", 60.0, 60.2), figure("dummy", 14.0, 14.5),
    ]  # fmt: skip
    make_results(tmp_path, "inductive", inductive_accuracy=accuracies)
    assert "best of context" not in readme_table(tmp_path)
    rivals = [
        figure("SIM, context", 61.0),
        figure("SIM, kernel", 52.0),
        figure("SLR, kernel", 59.0),
    ]
    ours = {"data": "msrcv2", "variant": "penalty, context, kernel", "ours": 69.6}
    make_results(tmp_path, "beyond", beyond_rivals=rivals, beyond_accuracy=[ours])
    rows = [line.split(" | ")[0].lstrip("| ") for line in readme_table(tmp_path).splitlines()[2:]]
    assert rows == [
        "MLR", "SIM", "SIM, with what is best of context and kernel",
        "MLR with context and kernel, chosen without the test folds",
        "SLR, told every instance's label",
        "SLR, told every instance's label, with what is best of context and kernel", "dummy",
    ]  # fmt: skip
    assert "| SIM, with what is best of context and kernel |  | 61.0 |" in readme_table(tmp_path)
    # With a kernel it is worse: then its best is without.
    assert "label, with what is best of context and kernel |  | 60.0 |" in readme_table(tmp_path)
    make_results(tmp_path, "kernel", kernel=[figure("SIM", 63.0), figure("MLR", 62.0)])
    assert "| SIM, with what is best of context and kernel |  | 63.0 |" in readme_table(tmp_path)
    assert "MLR, with what is best" not in readme_table(tmp_path)


def test_the_readme_has_the_published_kernel_version_and_says_what_is_bold():
    rows = {line.split(" | ")[0]: line for line in readme_table(COMMITTED).splitlines()[2:]}
    kernel = published()["kernel"]
    in_brackets = re.findall(r"\(([\d.]+)\)", rows[f"| {KERNEL}"])
    assert in_brackets == [f"{kernel[name]['mlr']['mean']:.1f}" for name in DATA]
    bold = [line.split(" | ")[0].lstrip("| ") for line in rows.values() if "**" in line]
    shown = (additions.OURS, network_row(Recorded(COMMITTED)))
    assert bold == [OURS[row] for row in shown]
    assert all(rows[f"| {title}"].count("**") == 2 * len(DATA) for title in bold)
    committed = TABLE.search((REPOSITORY / "README.md").read_text())[0]
    assert "Bold are our own models" in committed


@pytest.mark.parametrize("name", STUDIES)
def test_every_experiment_has_committed_results(name):
    study = find_study(name)
    for table in study_tables(name):
        assert (COMMITTED / name / f"{table}.csv").exists()
        assert (COMMITTED / name / f"{table}.md").exists()
    assert study.title


def study_tables(name):
    from unbag_reproduce.reproduce import read_plan

    return read_plan(COMMITTED / name)[1]["tables"]
