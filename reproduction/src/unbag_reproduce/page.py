"""The results that a folder holds, for people: a first page, and a page for each experiment.

The first page says what was reproduced, what was guessed and what is open. Behind it are what the
paper's text claims, what differs from its tables, a page per experiment, and an appendix.
"""

import os
import re
from importlib.resources import files
from pathlib import Path

from unbag._files import make_folder, write_text
from unbag.model_selection.methods import N_DRAWN
from unbag.model_selection.tables import ABOUT

from .claims import claims_page, judge_all
from .conditions import runs_section, settings_section, versions
from .confirm import note_on_confirmation
from .differences import (
    all_findings,
    differences_page,
    same_section,
    settings_alone_section,
)
from .elsewhere import other_data_section, other_folds_section
from .front import PICTURE, can_draw, cells_figure, front_page, relative
from .plan import Study
from .race import LAG
from .recorded import Recorded
from .reproduce import COMMITTED, LOAD, PAGE, read_plan, with_cells
from .studies import STUDIES, find_study
from .unit import Values
from .verdicts import ITEMS, verdicts_section

APPENDIX = f"""\
# Appendix: how it was made

How results are made and checked, where our protocol is not the paper's, what words mean, machines
and times, and the settings that were chosen.

## How to make it again

The command at the head of each page makes its experiment again; with `--output` it writes to
another folder. `unbag reproduce page` writes these pages from the results. `unbag reproduce cell`
computes any figure of any experiment again:
{", ".join(f"[{name}](#{name})" for name in with_cells())}.
`unbag reproduce NAME --confirm 20` does 20 finished fits again, drawn at random, and compares every
digit but times. A line *Sources* on a page says which results were made by an earlier version of
the code, and what became of those that were done again by this one. `unbag reproduce NAME --stale
--output docs/results` does them again, but for networks that another device has trained, and with
`--shown` only the fits that tables show: what has chosen their settings stays.

Letter Carroll and Letter Frost are drawn at random, and the paper's draw and folds are not known.

Times of [pruning](#pruning), [sampling](#sampling) and [complexity](#complexity) are CPU times of
one thread, one fit at a time; other work on the machine still slows memory and caches. To take them
again on a quiet machine:

```console
$ unbag reproduce pruning --stale --output docs/results
$ unbag reproduce sampling --stale --output docs/results
$ unbag reproduce complexity --stale --output docs/results
```

## Where the protocol is not the paper's

The level *standard* has as many folds as the paper, its iterations where it gives them, and its
grids, but for this:

- SIM has larger values, too; LSB-CMM and MIMLfast have two scalings of the features, MIMLSVM and
  MIMLNN instances with and without unit length, as the paper does not say which;
- of MIMLfast's grid, {N_DRAWN} settings drawn at random; its epochs are ten, where the paper gives
  none, and 100 with kernels, where it does; [beyond](#beyond) and [wider](#wider) tune them;
- with kernels, three of the paper's six values of SIM and four larger ones; MIMLfast's features are
  not divided by a constant, which the paper neither fixes nor names there; columns are
  standardised, of which it does not speak ([dictionary](#dictionary) has what that does);
- in [dictionary](#dictionary), one draw of the letters and, for the table of kernel columns, 3 of
  the 10 folds of HJA and MSRC v2.

The level *full* has all of it. At both, in the searches of [kernel](#kernel) and of the rivals in
[beyond](#beyond), a setting drops out once it is {LAG:g} points behind the best, summed over the
folds tried so far. In the 118 searches of [inductive](#inductive), [bag-level](#bag-level) and
[distances](#distances), which tried all settings on every fold, that would change no choice: the
one chosen in the end was never more than 20 points behind.
"""
FIRST_LOOK = (
    "**A first look, not a reproduction**: few folds, draws and settings. No verdict and no claim "
    "rests on it."
)
#: What the pages' words mean.
WORDS = (files("unbag_reproduce") / "words.md").read_text(encoding="utf-8")
#: A note on stale results within a table: the page says it once for all of them.
STALE_NOTE = re.compile(r"\n\n(?:†|Sources:) .*\n")
#: Rows of a table in Markdown.
ROWS = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
#: Pages that are no experiment, and their titles in the list of pages.
OTHER_PAGES = {
    "claims": "what the paper's text claims, claim by claim",
    "differences": "every figure that differs from the paper's, and what is known of it",
    "appendix": "how it was made: protocol, words, machines, settings",
}
#: Headings that texts link to, and the pages that have them.
HEADINGS = {
    "words": "appendix", "one-thing-several-figures": "differences",
}  # fmt: skip
#: A link to an experiment or heading, or to another page of the documentation.
HERE = re.compile(r"\]\(#([\w-]+)\)")
ELSEWHERE = re.compile(r"\]\(((?:howto|reference)/[^)]+|(?:mathematics|decisions)\.md[^)]*)\)")


def write_page(
    out: str | os.PathLike[str] = COMMITTED, page: str | os.PathLike[str] = PAGE
) -> list[str]:
    """Write pages of what the experiments have left in an output folder.

    Parameters
    ----------
    out : path
        The output folder of `reproduce`.
    page : path
        The Markdown file of the first page; the others go to a folder of its name beside it.
        Figures of experiments are linked, not copied.

    Returns
    -------
    list of str
        Names of the experiments on the pages; first looks come last.
    """
    recorded, page = Recorded(out), Path(page)
    made = [name for name in STUDIES if (recorded.out / name / ABOUT).exists()]
    if not made:
        raise ValueError(
            f"{recorded.out} contains no finished experiment: run `unbag reproduce NAME` first."
        )
    made.sort(key=lambda name: not recorded.is_made(name))
    judgements, findings = judge_all(recorded), all_findings(recorded)
    folder = page.with_suffix("")
    make_folder(folder)
    if findings and can_draw():
        cells_figure(findings).save(folder)
    known = {*made, *OTHER_PAGES}
    texts = {
        "claims": claims_page(judgements),
        "differences": "\n".join(
            filter(
                None,
                [
                    differences_page(findings),
                    verdicts_section(recorded, judgements, findings),
                    settings_alone_section(recorded),
                    same_section(recorded),
                ],
            )
        ),
        "appendix": "\n".join(
            filter(
                None, [APPENDIX, WORDS, runs_section(recorded, made), settings_section(recorded)]
            )
        ),
        **{
            name: study_page(
                find_study(name), recorded, Path(relative(recorded.out / name, folder))
            )
            for name in made
        },
    }
    for name, text in texts.items():
        write_text(folder / f"{name}.md", relinked(text, known, up="../", of_page=name))
    first = front_page(
        recorded,
        judgements,
        findings,
        picture=f"{folder.name}/{PICTURE}.png",
        pages=contents(recorded, made),
    )
    write_text(page, relinked(first, known, folder=f"{folder.name}/"))
    return made


def relinked(
    text: str, known: set[str], *, folder: str = "", up: str = "", of_page: str = ""
) -> str:
    """Turn links to experiments and headings into links to their pages.

    Parameters
    ----------
    text : str
        In Markdown; ``#inductive`` links to that experiment, wherever it is shown.
    known : set of str
        The pages that there are. Other headings are on the page itself.
    folder, up : str
        What leads from the page to those of experiments, and to the documentation's folder.
    of_page : str
        The page's own name.

    Examples
    --------
    >>> relinked("[a](#kernel), [b](#words), [c](howto/models.md)", {"kernel"}, up="../")
    '[a](kernel.md), [b](appendix.md#words), [c](../howto/models.md)'
    """

    def to_page(found: re.Match[str]) -> str:
        name = found[1]
        if name in HEADINGS:
            page = HEADINGS[name]
            return found[0] if page == of_page else f"]({folder}{page}.md#{name})"
        return f"]({folder}{name}.md)" if name in known else found[0]

    return ELSEWHERE.sub(lambda found: f"]({up}{found[1]})", HERE.sub(to_page, text))


def contents(recorded: Recorded, made: list[str]) -> list[str]:
    """List the pages, each with the tables and figures of the paper that it has."""
    lines = [f"- [{name}](#{name}): {title}." for name, title in OTHER_PAGES.items()]
    for name in made:
        whose = in_the_paper(name) or " (ours)"
        look = "" if recorded.is_made(name) else " **A first look.**"
        lines.append(f"- [{name}](#{name}){whose}: {find_study(name).title}.{look}")
    return lines


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
    """Write the page of one experiment, whose files are linked below `link`.

    Tables of which a curve says the same are linked, not shown.
    """
    folder = recorded.out / study.name
    plan, about = read_plan(folder)
    options = "" if plan.level == "standard" else f" --{plan.level}"
    data = "".join(f" --data {each}" for each in plan.data)
    figures = [
        f"![{study.name}: {figure.stem}]({(link / figure.name).as_posix()})"
        for figure in sorted(folder.glob("*.png"))
    ]
    tables = [shown_table(study, folder, name, link) for name in about["tables"]]
    remarks = ["## What to know", "", study.remarks] if study.remarks else []
    sections = (other_data_section, other_folds_section) if study.name == "beyond" else ()
    other = [section(recorded.out) for section in sections]
    parts = [
        f"# {study.title[0].upper()}{study.title[1:]}{in_the_paper(study.name)}",
        f"`unbag reproduce {study.name}{data}{options} --seed {plan.seed}` ({versions(about)})",
        FIRST_LOOK if plan.level == "quick" else "",
        provenance(study.name, about, recorded),
        how_timed(study, about),
        *figures,
        "\n".join([*tables, *filter(None, other), *remarks]),
    ]
    return "\n\n".join(filter(None, parts))


def how_timed(study: Study, about: Values) -> str:
    """Say how an experiment that compares times took them; empty for others."""
    if not study.timed:
        return ""
    load = about.get(LOAD)
    beside = (
        "beside other work on the machine, whose load was not kept"
        if load is None
        else f"at a load of {load:g} (1: this experiment alone)"
    )
    return (
        f"Times are CPU times of one thread, one fit at a time, taken {beside}. Other work slows "
        "memory and caches: ratios say more than seconds."
    )


def shown_table(study: Study, folder: Path, name: str, link: Path) -> str:
    """Return a table as its page has it: without rows, where a picture has them."""
    text = STALE_NOTE.sub("\n", (folder / f"{name}.md").read_text(encoding="utf-8"))
    text = text.replace("### ", "## ", 1)
    if name not in study.drawn:
        return text
    rows = f"Drawn above; [the rows]({(link / f'{name}.md').as_posix()}).\n"
    return ROWS.sub(lambda _: rows, text, count=1)


def provenance(study: str, about: Values, recorded: Recorded) -> str:
    """Return how far a ledger backs the results of an experiment; empty if that is all the way.

    One line that begins with ``Sources:``, as it depends on the sources of the package.
    """
    ledger = recorded.ledger(study)
    units = recorded.units(study)
    n_done = sum(unit in ledger for unit in units)
    kept = f"whose ledger has {n_done} of {len(units)} units of work"
    gap = f"from committed results {kept if n_done else 'without a ledger'}."
    shown = recorded.shown(study) if n_done else []
    stale = ledger.note_on_stale(units, shown).removeprefix("Sources: ")
    notes = [gap if n_done < len(units) else "", stale, stale and note_on_confirmation(about)]
    said = " ".join(filter(None, map(str.strip, notes)))
    return f"Sources: {said}" if said else ""
