"""The pages of all results: a first one, one for each experiment, and what they rest on.

The first page says what was reproduced, what was guessed and what is new. Behind it are what the
paper's text claims, what differs from its tables, a page per experiment, and an appendix. Lists
too long for a page are next to the tables, in the folder of results.
"""

import os
import re
from importlib.resources import files
from pathlib import Path

from unbag._files import make_folder, write_text
from unbag._threads import PACKAGES

from .claims import claims_list, claims_page, judge_all
from .differences import (
    all_findings,
    differences_list,
    open_section,
    settings_alone_section,
)
from .figures import Figure
from .front import PICTURE, cells_figure, front_page
from .ledger import DEVICE
from .plan import Study
from .recorded import Recorded
from .reproduce import COMMITTED, LOAD, write
from .studies import STUDIES, find_study
from .tables import ABOUT
from .unit import Values
from .verdicts import ITEMS, verdicts_section

#: The first page of the committed results.
PAGE = Path("docs/reproduction.md")
#: How it was made, and what words mean.
APPENDIX = (files("unbag_reproduce") / "appendix.md").read_text(encoding="utf-8")
#: Rows of a table in Markdown.
ROWS = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
#: Pages that are not an experiment, and their titles in the list of pages.
OTHER_PAGES = {
    "claims": "what the paper's text claims",
    "differences": "verdicts on each table and figure, and what is open",
    "appendix": "how to read the tables: protocol, words, machines",
}
#: Headings that texts link to, and the pages that have them.
HEADINGS = {"words": "appendix"}
#: A link to an experiment or heading, or to another page of the documentation.
HERE = re.compile(r"\]\(#([\w-]+)\)")
ELSEWHERE = re.compile(r"\]\(((?:howto|reference)/[^)]+|(?:mathematics|decisions)\.md[^)]*)\)")
HOUR = 3600


def rewrite_tables(out: str | os.PathLike[str] = COMMITTED) -> None:
    """Write the tables and figures of all experiments in a folder again, from its ledger."""
    recorded = Recorded(out)
    for name in STUDIES:
        if not (recorded.out / name / ABOUT).exists():
            continue
        plan = recorded.plan(name)
        made = find_study(name).present(plan, recorded.ledger)
        shown = [each for each in made if isinstance(each, Figure) or each.records]
        write(shown, recorded.out / name, recorded.about(name))


def write_pages(
    out: str | os.PathLike[str] = COMMITTED, page: str | os.PathLike[str] = PAGE
) -> None:
    """Write the pages of all experiments in a folder of results.

    `page` is the first; the others go to a folder of its name next to it. Figures of experiments
    are linked, not copied.
    """
    recorded, page = Recorded(out), Path(page)
    missing = [
        name
        for name in STUDIES
        if not (recorded.out / name / ABOUT).exists() or recorded.plan(name).level == "quick"
    ]
    if missing:
        raise ValueError(
            f"{recorded.out} has not all experiments, or only first looks: pages also need "
            f"{', '.join(missing)}."
        )
    judgements, findings = judge_all(recorded), all_findings(recorded)
    folder = page.with_suffix("")
    make_folder(folder)
    cells_figure(findings).save(folder)
    results = Path(os.path.relpath(recorded.out, folder))
    texts = {
        "claims": claims_page(judgements),
        "differences": "\n".join(
            [
                "# What differs from the paper\n",
                verdicts_section(recorded, judgements, findings),
                open_section(findings),
                "Every figure that differs, and rivals at some of their settings alone, are in "
                "[docs/results/differences.md](../results/differences.md).\n",
            ]
        ),
        "appendix": APPENDIX.format(made=machines(recorded)),
        **{name: study_page(find_study(name), recorded, results / name) for name in STUDIES},
    }
    for name, text in texts.items():
        write_text(folder / f"{name}.md", relinked(text, up="../", of_page=name))
    lists = {
        "claims": claims_list(judgements),
        "differences": "\n".join([differences_list(findings), settings_alone_section(recorded)]),
    }
    back = Path(os.path.relpath(folder, recorded.out)).as_posix()
    for name, text in lists.items():
        write_text(recorded.out / f"{name}.md", relinked(text, folder=f"{back}/", up="../"))
    first = front_page(
        recorded, judgements, findings, picture=f"{folder.name}/{PICTURE}.png", pages=contents()
    )
    write_text(page, relinked(first, folder=f"{folder.name}/"))


def relinked(text: str, *, folder: str = "", up: str = "", of_page: str = "") -> str:
    """Turn links to experiments and headings into links to their pages.

    `folder` and `up` lead from the page to those of experiments, and to the documentation's folder.

    Examples
    --------
    >>> relinked("[a](#kernel), [b](#words), [c](howto/models.md)", up="../")
    '[a](kernel.md), [b](appendix.md#words), [c](../howto/models.md)'
    """

    def to_page(found: re.Match[str]) -> str:
        name = found[1]
        if name in (*STUDIES, *OTHER_PAGES):
            return f"]({folder}{name}.md)"
        page = HEADINGS.get(name, of_page)
        return found[0] if page == of_page else f"]({folder}{page}.md#{name})"

    return ELSEWHERE.sub(lambda found: f"]({up}{found[1]})", HERE.sub(to_page, text))


def contents() -> list[str]:
    """List the pages, each with the tables and figures of the paper that it has."""
    return [
        *(f"- [{name}](#{name}): {title}." for name, title in OTHER_PAGES.items()),
        *(
            f"- [{name}](#{name}){in_the_paper(name) or ' (ours)'}: {find_study(name).title}."
            for name in STUDIES
        ),
    ]


def in_the_paper(study: str) -> str:
    """Return the tables and figures of the paper that an experiment makes again, in brackets.

    Examples
    --------
    >>> in_the_paper("inductive"), in_the_paper("beyond")
    (' (Table 3, Table 4)', '')
    """
    titles = [item.title for item in ITEMS if item.study == study]
    return f" ({', '.join(titles)})" if titles else ""


def study_page(study: Study, recorded: Recorded, link: Path) -> str:
    """Write the page of one experiment, whose files are linked below `link`."""
    folder, about = recorded.out / study.name, recorded.about(study.name)
    figures = [
        f"![{study.name}: {figure.stem}]({(link / figure.name).as_posix()})"
        for figure in sorted(folder.glob("*.png"))
    ]
    tables = [shown_table(study, folder, name, link) for name in about["tables"]]
    # These were measured separately, by a benchmark.
    others = [
        f"Other measurements: {list_link(link, path.stem)}.\n"
        for path in sorted(folder.glob("*.md"))
        if path.stem not in about["tables"]
    ]
    remarks = ["## What to know", "", study.remarks] if study.remarks else []
    parts = [
        f"# {study.title[0].upper()}{study.title[1:]}{in_the_paper(study.name)}",
        f"`unbag-reproduce run {study.name}` ([how to read the tables](#appendix))",
        how_timed(about) if study.timed else "",
        *figures,
        "\n".join([*tables, *others, *remarks]),
    ]
    return "\n\n".join(filter(None, parts))


def how_timed(about: Values) -> str:
    """Say how an experiment that compares times took them."""
    load = about.get(LOAD)
    words = "an unknown load" if load is None else f"a load of {load:g} (1: this experiment alone)"
    return f"Times are CPU times of one thread, one fit at a time, at {words}."


def shown_table(study: Study, folder: Path, name: str, link: Path) -> str:
    """Return a table as its page has it: without rows, where these are too many."""
    text = (folder / f"{name}.md").read_text(encoding="utf-8").replace("### ", "## ", 1)
    if name not in study.listed:
        return text
    return ROWS.sub(lambda _: f"The rows: {list_link(link, name)}.\n", text, count=1)


def list_link(link: Path, name: str) -> str:
    """Link to a table in the folder of results, by its place in the repository."""
    return f"[docs/results/{link.name}/{name}.md]({(link / f'{name}.md').as_posix()})"


def machines(recorded: Recorded) -> str:
    """Say on which machines, with which versions and how long experiments ran."""
    units = {unit for name in STUDIES for unit in recorded.units(name)}
    timed = {unit for unit in units if DEVICE not in recorded.ledger[unit]}
    devices = {recorded.ledger[unit][DEVICE] for unit in units - timed}
    abouts = [recorded.about(name) for name in STUDIES]
    made_by = {
        "{processor}, {cores} cores, {system}".format(**each["machine"])
        + f"; Python {each['python']}"
        + "".join(f", {package} {each[package]}" for package in PACKAGES)
        for each in abouts
    }
    return (
        f"{len(units):,} units of work took {recorded.ledger.cpu_seconds(timed) / HOUR:.1f} hours "
        f"of CPU time. Networks were trained on a GPU ({', '.join(sorted(devices))}) and are not "
        f"counted. The tables were written on: {'; or '.join(sorted(made_by))}."
    )
