"""One page of all results: every table and figure that an output folder holds."""

import json
import os
from pathlib import Path

from unbag._files import write_text

from .reproduce import EXPERIMENTS, PACKAGES, find_experiment

INTRODUCTION = """\
# The paper, reproduced

Every table and figure of Pham, Raich and Fern, *Dynamic Programming for Instance Annotation in
Multi-instance Multi-label Learning*, made anew by this package, beside the published figures; then
some of our own. This page is written by

    {command}

from real runs, each by the command named in its section. An interrupted run goes on where it
stopped. "Published" figures are the paper's; differences are ours minus theirs. Letter Carroll and
Letter Frost are drawn at random, and the paper's draw and folds are not known, so differences of a
point or two there mean nothing. The levels are: *quick* for a first look, *standard* with the
paper's folds and iterations but thinned grids for the methods whose grid is large, *full* with the
paper's grids.
"""


def write_page(out, page):
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
    folder = Path(os.path.relpath(out, page.parent))
    sections, contents = [], []
    for name in EXPERIMENTS:
        about = out / name / "about.json"
        if about.exists():
            contents.append(name)
            sections.append(section(name, json.loads(about.read_text()), out / name, folder / name))
    if not contents:
        raise ValueError(f"{out} holds no finished experiment: run `unbag reproduce NAME` first.")
    command = f"unbag reproduce none --output {out} --page {page}"
    links = "\n".join(f"- [{name}](#{name}): {find_experiment(name).title}" for name in contents)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, "\n".join([INTRODUCTION.format(command=command), links, "", *sections]))
    return contents


def section(name, about, folder, link):
    """Write the section of one experiment."""
    experiment = find_experiment(name)
    versions = ", ".join(f"{package} {about[package]}" for package in PACKAGES)
    options = "" if about["level"] == "standard" else f" --{about['level']}"
    data = "".join(f" --data {each}" for each in about["data"])
    parts = [
        f"## {name}", "", f"{experiment.title[0].upper()}{experiment.title[1:]}.", "",
        f"`unbag reproduce {name}{data}{options} --seed {about['seed']}` "
        f"(Python {about['python']}; {versions})", "",
    ]  # fmt: skip
    if about["level"] == "quick":
        parts += ["**A first look, not a reproduction**: few folds, draws and settings.", ""]
    for figure in sorted(folder.glob("*.png")):
        parts += [f"![{name}: {figure.stem}]({(link / figure.name).as_posix()})", ""]
    for table in about["tables"]:
        parts += [(folder / f"{table}.md").read_text(encoding="utf-8")]
    if experiment.remarks:
        parts += [experiment.remarks, ""]
    return "\n".join(parts)
