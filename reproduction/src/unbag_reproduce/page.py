"""The results that a folder holds, for people: one page that a referee can read from the top."""

import os
import re
from importlib.resources import files
from pathlib import Path

from unbag._files import write_text
from unbag.model_selection.methods import N_DRAWN
from unbag.model_selection.tables import ABOUT

from .claims import claims_section, judge_all
from .conditions import runs_section, settings_section, versions
from .confirm import note_on_confirmation
from .differences import (
    all_differences,
    differences_section,
    same_section,
    settings_alone_section,
)
from .plan import Study
from .race import LAG
from .recorded import Recorded
from .reproduce import COMMITTED, PAGE, read_plan, with_cells
from .studies import STUDIES, find_study
from .unit import Values
from .verdicts import ITEMS, verdicts_section

INTRODUCTION = f"""\
# The paper, reproduced

The tables and figures of Pham, Raich and Fern, *Dynamic Programming for Instance Annotation in
Multi-instance Multi-label Learning*, made anew by this package, beside the published figures; then
some of our own.

**What is missing.** Of the paper's seven data sets three cannot be had: HJA bird with its original
labels, VOC 2012 as it was cut into regions, and 50 Salads as it was cut into bags. Their columns
are absent from every table, and one figure with them. If you have the files as published,
`unbag data list` says how to convert them, and `unbag reproduce` takes them up then.

**What is assumed.** MLR and SLR, where they stand beside the paper's figures, are fitted to
standardised features, each of mean zero and variance one over the training instances. The paper
does not say how it scaled features.

This page is written by

    unbag reproduce page

from the tables and ledgers of real runs, each by the command named in its section. In
{len(with_cells())} of the {len(STUDIES)} experiments, those that compare methods, single figures
can be made anew (`unbag reproduce cell`), in the tables whose CSV files have a column `setting`:
{", ".join(f"[{name}](#{name})" for name in with_cells())}.
Of all experiments with a ledger, some units of work, drawn at random, can be done anew
(`unbag reproduce NAME --confirm 20`).

"Published" figures are the paper's; differences are ours minus theirs. Letter Carroll and Letter
Frost are drawn at random, and the paper's draw and folds are not known. The mark † is on results of
which some were made by other sources of the package than these, and ‡ on those whose records, unit
of work by unit of work, are not all kept. What words mean is said [below](#words).

The level *standard* has as many folds as the paper, its iterations where it gives them, and its
grids, but for this:

- SIM has larger values, too; LSB-CMM and MIMLfast have two scalings of the features, MIMLSVM and
  MIMLNN instances with and without unit length, as the paper does not say which;
- of MIMLfast's grid, {N_DRAWN} settings drawn at random;
- with kernels, three of the paper's six values of SIM and four larger ones; MIMLfast's features are
  not divided by a constant, which the paper neither fixes nor names there; columns are
  standardised, of which it does not speak ([dictionary](#dictionary) has what that does);
- in [dictionary](#dictionary), one draw of the letters and, for the table of kernel columns, 3 of
  the 10 folds of HJA and MSRC v2.

The level *full* has all of it. At both, in the searches of [kernel](#kernel) and of the rivals in
[beyond](#beyond), a setting drops out once it is {LAG:g} points behind the best, summed over the
folds tried so far. In the 130 searches of [inductive](#inductive), [bag-level](#bag-level) and
[distances](#distances), which tried all settings on every fold, that would change no choice: the
one chosen in the end was never more than 20 points behind.
"""
FIRST_LOOK = (
    "**A first look, not a reproduction**: few folds, draws and settings. No verdict and no claim "
    "above rests on it."
)
#: What the page's words mean, for who starts to read at its top.
WORDS = (files("unbag_reproduce") / "words.md").read_text(encoding="utf-8")
#: A note on stale results within a table: the section says it once for all of them.
STALE_NOTE = re.compile(r"\n\n† .*\n")


def write_page(
    out: str | os.PathLike[str] = COMMITTED, page: str | os.PathLike[str] = PAGE
) -> list[str]:
    """Write a page of what the experiments have left in an output folder.

    Verdicts come first, then what words mean, what the paper claims, what differs from it and why,
    how it was made, and a section for each experiment. First looks come last, marked as such.

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
    recorded, page = Recorded(out), Path(page)
    link = Path(os.path.relpath(recorded.out, page.parent))
    made = [name for name in STUDIES if (recorded.out / name / ABOUT).exists()]
    if not made:
        raise ValueError(
            f"{recorded.out} contains no finished experiment: run `unbag reproduce NAME` first."
        )
    made.sort(key=lambda name: not recorded.is_made(name))
    judgements, differences = judge_all(recorded), all_differences(recorded)
    parts = [
        INTRODUCTION,
        contents(recorded, made),
        verdicts_section(recorded, judgements, differences),
        WORDS,
        claims_section(judgements),
        differences_section(differences),
        settings_alone_section(recorded),
        same_section(recorded),
        runs_section(recorded, made),
        settings_section(recorded),
        *(section(find_study(name), recorded, link / name) for name in made),
    ]
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, "\n".join(filter(None, parts)))
    return made


def contents(recorded: Recorded, made: list[str]) -> str:
    """List the experiments on the page, each with the tables and figures that it makes anew."""
    items: dict[str, list[str]] = {}
    for item in ITEMS:
        items.setdefault(item.study, []).append(item.title)
    lines = []
    for name in made:
        whose = ", ".join(items.get(name, ["ours"]))
        look = "" if recorded.is_made(name) else " **A first look.**"
        lines.append(f"- [{name}](#{name}) ({whose}): {find_study(name).title}.{look}")
    return "\n".join([*lines, ""])


def section(study: Study, recorded: Recorded, link: Path) -> str:
    """Write the section of one experiment, whose files are linked below `link`."""
    folder = recorded.out / study.name
    plan, about = read_plan(folder)
    options = "" if plan.level == "standard" else f" --{plan.level}"
    data = "".join(f" --data {each}" for each in plan.data)
    figures = [
        f"![{study.name}: {figure.stem}]({(link / figure.name).as_posix()})"
        for figure in sorted(folder.glob("*.png"))
    ]
    tables = [
        STALE_NOTE.sub("\n", (folder / f"{name}.md").read_text(encoding="utf-8"))
        for name in about["tables"]
    ]
    remarks = [study.remarks, ""] if study.remarks else []
    parts = [
        f"## {study.name}",
        f"{study.title[0].upper()}{study.title[1:]}.",
        f"`unbag reproduce {study.name}{data}{options} --seed {plan.seed}` ({versions(about)})",
        FIRST_LOOK if plan.level == "quick" else "",
        provenance(study.name, about, recorded),
        *figures,
        "\n".join([*tables, *remarks]),
    ]
    return "\n\n".join(filter(None, parts))


def provenance(study: str, about: Values, recorded: Recorded) -> str:
    """Return how far a ledger backs the results of an experiment; empty if that is all the way."""
    ledger = recorded.ledger(study)
    units = recorded.units(study)
    n_done = sum(unit in ledger for unit in units)
    kept = f"whose ledger has {n_done} of {len(units)} units of work"
    gap = f"‡ From committed results {kept if n_done else 'without a ledger'}. "
    stale = ledger.note_on_stale(units)
    notes = [gap if n_done < len(units) else "", stale, stale and note_on_confirmation(about)]
    return " ".join(filter(None, map(str.strip, notes)))
