"""The results that a folder holds, for people: one page of all of them, and the README's table."""

import os
import re
from pathlib import Path

from unbag._files import write_text

from .ledger import Ledger
from .plan import Plan, Study
from .reproduce import ABOUT, COMMITTED, PACKAGES, PAGE, read_plan
from .studies import STUDIES, find_study
from .tables import read_csv

INTRODUCTION = """\
# The paper, reproduced

The tables and figures of Pham, Raich and Fern, *Dynamic Programming for Instance Annotation in
Multi-instance Multi-label Learning*, made anew by this package, beside the published figures; then
some of our own.

**What is missing.** Of the paper's seven data sets three cannot be had: HJA bird with its original
labels, VOC 2012 as it was cut into regions, and 50 Salads as it was cut into bags. Their columns
are absent from every table, and one figure with them. What was published of them is converted where
somebody has the files (`unbag data list`), and `unbag reproduce` takes them up then. Sections that
say so are a first look, not a reproduction.

This page is written by

    unbag reproduce page

from real runs, each by the command named in its section. An interrupted run goes on where it
stopped. "Published" figures are the paper's; differences are ours minus theirs. Letter Carroll and
Letter Frost are drawn at random, and the paper's draw and folds are not known, so differences of a
point or two there mean nothing. The levels are: *quick* for a first look, *standard* with the
paper's folds and iterations but thinned grids for the methods whose grid is large, *full* with the
paper's grids. † marks results of which some were made by other sources of the package than these; ‡
marks those whose records, unit of work by unit of work, are not all kept.
"""
#: What the README calls the data sets of its table.
README_DATA = {
    "hja-union": "HJA birdsong",
    "msrcv2": "MSRC v2",
    "letter-carroll": "Letter Carroll",
    "letter-frost": "Letter Frost",
}
#: What it calls those of our own models that it shows.
README_ROWS = {
    "penalty, context, kernel": "MLR with context and kernel, chosen without the test folds",
    "network, encoding and distillation chosen": "network, chosen without the test folds",
}
README_TABLE = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)


def write_page(
    out: str | os.PathLike[str] = COMMITTED, page: str | os.PathLike[str] = PAGE
) -> list[str]:
    """Write a page of what the experiments have left in an output folder.

    Parameters
    ----------
    out : path
        The output folder of `reproduce`.
    page : path
        The Markdown file to write. Figures are linked, not copied.

    Returns
    -------
    list of str
        Names of the experiments on the page.
    """
    out, page = Path(out), Path(page)
    link = Path(os.path.relpath(out, page.parent))
    made = {name: find_study(name) for name in STUDIES if (out / name / ABOUT).exists()}
    if not made:
        raise ValueError(f"{out} holds no finished experiment: run `unbag reproduce NAME` first.")
    contents = "\n".join(f"- [{name}](#{name}): {study.title}" for name, study in made.items())
    sections = [section(study, out, link / name) for name, study in made.items()]
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, "\n".join([INTRODUCTION, contents, "", *sections]))
    return list(made)


def section(study: Study, out: Path, link: Path) -> str:
    """Write the section of one experiment, whose files are linked below `link`."""
    folder = out / study.name
    plan, about = read_plan(folder)
    versions = ", ".join(f"{package} {about[package]}" for package in PACKAGES)
    options = "" if plan.level == "standard" else f" --{plan.level}"
    data = "".join(f" --data {each}" for each in plan.data)
    quick = "**A first look, not a reproduction**: few folds, draws and settings."
    figures = [
        f"![{study.name}: {figure.stem}]({(link / figure.name).as_posix()})"
        for figure in sorted(folder.glob("*.png"))
    ]
    tables = [(folder / f"{name}.md").read_text(encoding="utf-8") for name in about["tables"]]
    remarks = [study.remarks, ""] if study.remarks else []
    parts = [
        f"## {study.name}",
        f"{study.title[0].upper()}{study.title[1:]}.",
        f"`unbag reproduce {study.name}{data}{options} --seed {plan.seed}` "
        f"(Python {about['python']}; {versions})",
        quick if plan.level == "quick" else "",
        provenance(study, plan, out),
        *figures,
        "\n".join([*tables, *remarks]),
    ]
    return "\n\n".join(filter(None, parts))


def provenance(study: Study, plan: Plan, out: Path) -> str:
    """Return how far a ledger backs the results of an experiment; empty if that is all the way."""
    ledger = Ledger(out, study.name)
    units = study.units(plan, ledger)
    n_done = sum(unit in ledger for unit in units)
    kept = f"whose ledger has {n_done} of {len(units)} units of work"
    gap = f"‡ From committed results {kept if n_done else 'without a ledger'}. "
    return f"{gap if n_done < len(units) else ''}{ledger.note_on_stale(units)}".strip()


def readme_table(out: Path) -> str:
    """Write the README's table of instance accuracies, in Markdown."""
    rows: dict[str, dict[str, str]] = {}
    for record in read_csv(out / "inductive" / "inductive-accuracy.csv"):
        known = f" ({float(record['published']):.1f})" if record["published"] else ""
        row = rows.setdefault(record["method"], {})
        row[record["data"]] = f"{float(record['ours']):.1f}{known}"
    for record in read_csv(out / "beyond" / "beyond-accuracy.csv"):
        if record["variant"] in README_ROWS:
            row = rows.setdefault(README_ROWS[record["variant"]], {})
            row[record["data"]] = f"**{float(record['ours']):.1f}**"
    rows["SLR, told every instance's label"] = rows.pop("SLR")
    rows["dummy"] = rows.pop("dummy")
    lines = [
        "| | " + " | ".join(README_DATA.values()) + " |",
        "|---|" + "---:|" * len(README_DATA),
        *(
            f"| {method} | " + " | ".join(row.get(name, "") for name in README_DATA) + " |"
            for method, row in rows.items()
        ),
    ]
    return "\n".join(lines)


def write_readme(
    out: str | os.PathLike[str] = COMMITTED, readme: str | os.PathLike[str] = "README.md"
) -> bool:
    """Write the table of results into a README, between the comments that mark its place.

    Returns
    -------
    bool
        Whether there is such a README.
    """
    readme = Path(readme)
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    if not README_TABLE.search(text):
        return False
    table = readme_table(Path(out))
    write_text(readme, README_TABLE.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text))
    return True
