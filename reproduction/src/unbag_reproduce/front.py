"""The first page: what was reproduced and what not, what was guessed, what is open, what is new.

All figures come from tables and ledgers; what was not made is not mentioned.
"""

import os
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec

from unbag.model_selection.methods import METHODS

from .additions import COMMITTEE, NETWORK, OURS, TOLD, row_units
from .cells import setting_of
from .claims import (
    DIRECTION_ONLY,
    FAILS,
    HOLDS,
    IN_PART,
    MOSTLY,
    NOT_MADE,
    UNKNOWN,
    Judgement,
)
from .differences import Finding, counted
from .elsewhere import level_with_best
from .explanations import EXPLAINED, NEAR, OPEN, REPRODUCED
from .figures import STYLES, Figure, legend_below, panels
from .readme import DATA, LAST, at_their_best, beside_published, network_row
from .recorded import Recorded
from .reproduce import read_plan
from .studies.beyond import rivals_at_ends
from .unit import Values
from .verdicts import ITEMS, counts_of, is_as_printed, on_the_best
from .worth import MLR, SHORT, SLR, guesses_section

#: The picture of the first page.
PICTURE = "cells"
RIVALS = tuple(METHODS[name].title for name in ("sim", "mimlfast", "lsbcmm"))
SHORTCUTS = ("Figure 10", "Figure 11", "Figure 12")
MISSING = """\
Three of the paper's seven data sets are not available: HJA bird with its original labels, VOC 2012
as it was cut into regions, and 50 Salads as it was cut into bags."""


def front_page(
    recorded: Recorded,
    judgements: Sequence[Judgement],
    findings: Sequence[Finding],
    *,
    picture: str,
    pages: Sequence[str],
) -> str:
    """Write the first page, in Markdown.

    Parameters
    ----------
    recorded : Recorded
    judgements : sequence of Judgement
        Of the claims of the paper's text.
    findings : sequence of Finding
        Of the figures of its tables.
    picture : str
        Where the picture of all figures is.
    pages : sequence of str
        Links to the other pages, one line each.
    """
    parts = [
        "# The paper, reproduced\n",
        "Pham, Raich and Fern, *Dynamic Programming for Instance Annotation in Multi-instance "
        "Multi-label Learning*, run again with this package, unbag, and compared with the "
        "published figures. MLR is its model, and K-MLR the same with a kernel; SLR is logistic "
        "regression that is told the label of every instance. SIM, MIMLfast, LSB-CMM, MIMLSVM and "
        "MIMLNN are its rivals, all of them implemented anew for this package, some with solvers "
        "of our own. "
        "*Context* is the mean instance of a bag, which its instances get as further features; a "
        "*committee* is several kinds of networks with a linear model and a kernel "
        "([words](#words)).\n",
        verdict(recorded, judgements, findings),
        f"![Ours against published: a dot for each figure of Tables 3 to 8]({picture})\n"
        if findings
        else "",
        six_rows(recorded),
        guesses_section(recorded),
        open_points(recorded, judgements, findings),
        COMMANDS,
        "\n".join(["## Pages", "", *pages, ""]),
    ]
    return "\n".join(filter(None, parts))


def verdict(
    recorded: Recorded, judgements: Sequence[Judgement], findings: Sequence[Finding]
) -> str:
    """Write what was reproduced, what was not, and what is new: a line each."""
    lines = [
        f"- **Reproduced.** {reproduced_line(recorded, findings)}" if findings else "",
        f"- **Not reproduced.** {not_reproduced_line(judgements, findings)}",
        f"- **New.** {new_line(recorded)}" if new_line(recorded) else "",
    ]
    return "\n".join([*filter(None, lines), ""])


def reproduced_line(recorded: Recorded, findings: Sequence[Finding]) -> str:
    """Say how many figures are the paper's."""
    counts = [each for item in ITEMS if item.exact for each in counts_of(item, recorded)]
    of_model = [each for each in findings if each.cell.row in (MLR, SLR)]
    n_model = sum(each.status == REPRODUCED for each in of_model)
    n_open = sum(each.status == OPEN for each in findings)
    n_near = sum(each.status == REPRODUCED for each in findings)
    n_explained = sum(each.status == EXPLAINED for each in findings)
    as_printed = (
        f" The counts of Tables 2, 9 and 10 are as printed ({sum(map(is_as_printed, counts))} of "
        f"{len(counts)})."
        if counts
        else ""
    )
    headline = [
        each for each in of_model if (each.cell.row, each.cell.table) == (MLR, "inductive-accuracy")
    ]
    n_headline = sum(each.status == REPRODUCED for each in headline)
    of_headline = f"; MLR in Table 3, {n_headline} of {len(headline)}" if headline else ""
    of_dummy = dummy_share(findings)
    return (
        f"On the four data sets that are available, {n_near} of {len(findings)} figures of Tables "
        f"3 to 8 are within {NEAR:g} points of the paper's before rounding, a tolerance that we "
        f"chose ({n_model} of {len(of_model)} of MLR and SLR{of_headline}{of_dummy}); "
        f"{n_explained} more are explained, {n_open} open{in_every_table(findings)}. "
        f"{on_the_best([each.cell for each in findings])}{as_printed}"
    )


def dummy_share(findings: Sequence[Finding]) -> str:
    """Say how many figures are those of a constant answer, which are easily reproduced."""
    found = [each.status == REPRODUCED for each in findings if each.cell.row == LAST]
    return f"; of a constant answer, {sum(found)} of {len(found)}" if found else ""


def in_every_table(findings: Sequence[Finding]) -> str:
    """Say that no table is free of open figures, where that is so."""
    tables = {each.cell.table for each in findings}
    still = {each.cell.table for each in findings if each.status == OPEN}
    return ", some of them in each of these tables" if still == tables else ""


def not_reproduced_line(judgements: Sequence[Judgement], findings: Sequence[Finding]) -> str:
    """Say what is not the paper's."""
    checked = [each for each in judgements if each.verdict not in (UNKNOWN, NOT_MADE)]
    counts = Counter(each.verdict for each in checked)
    of_shortcuts = [each for each in checked if each.claim["on"] in SHORTCUTS]
    n_shortcuts = sum(each.verdict in (HOLDS, MOSTLY) for each in of_shortcuts)
    said = [
        f"Of {len(checked)} claims of its text that can be checked, {counts[IN_PART]} hold in "
        f"part, {counts[DIRECTION_ONLY]} in direction only, {counts[FAILS]} not at all."
        if checked
        else "",
        f"Of {len(of_shortcuts)} statements about Figures 10 to 12, on time and accuracy with "
        f"pruning, sampling and smaller dictionaries, {len(of_shortcuts) - n_shortcuts} are among "
        "them."
        if of_shortcuts
        else "",
        " ".join(MISSING.split()),
    ]
    return " ".join(filter(None, said))


def new_line(recorded: Recorded) -> str:
    """Say what our own models add, and what that owes to these data."""
    row = network_row(recorded)
    kernel, network = (ours_by_data(recorded, each) for each in (OURS, row))
    published = best_published(recorded)
    if not kernel:
        return ""

    def gained(row: dict[str, Values]) -> str:
        gaps = [row[name]["ours"] - best for name, best in published.items() if name in row]
        return f"between {min(gaps):+.1f} and {max(gaps):+.1f} points"

    said = (
        f"A kernel with context adds {gained(kernel)} to the best published figure of the model, "
        "linear or kernel, with settings chosen within the training folds."
    )
    if network:
        said += f" {ADDS[row].format(gained(network))} {other_data_line(recorded, row)}"
    if network and is_tied_with_noisy_or(recorded):
        said += (
            " Networks of one kind that were trained by the exact likelihood are not significantly "
            "better than those trained by a noisy-or loss: so exact inference cannot be credited "
            "with what networks gain."
        )
    return said


#: What networks add, and what they owe to these data, by the row that is shown.
ADDS = {
    NETWORK: (
        "A network adds {}; but its defaults and candidates come from prototypes that were tried "
        "by ten folds on these same four data sets."
    ),
    COMMITTEE: (
        "Today's default of the network, a committee, adds {}; but it was built with these same "
        "four data sets in view, on other folds of the same bags."
    ),
}


def other_data_line(recorded: Recorded, row: str) -> str:
    """Say what other data tell of our models."""
    said = "The kernel's grid contains candidates first found on these folds."
    if row == NETWORK:
        return (
            f"{said} So what both do on [other data](#beyond), made families and digits, counts "
            "for more."
        )
    n_level, n_all = level_with_best(recorded.out)
    if not n_all:
        return said
    return (
        f"{said} Of {n_all} [other data sets](#beyond), made families and digits, some had a part "
        "in building the committee as well; on "
        f"{n_level} of them it is within a point of the best of four models, itself among them "
        "(three draws of each, not tested)."
    )


def is_tied_with_noisy_or(recorded: Recorded) -> bool:
    """Return whether no test tells the network apart from the same with a noisy-or loss."""
    where = {"study": "beyond", "table": "beyond-losses", "loss": "noisy-or of the softmax"}
    found = recorded.find(where)
    return bool(found) and all(each["verdict"] == "tied" for each in found)


def ours_by_data(recorded: Recorded, row: str) -> dict[str, Values]:
    """Return the records of one of our own models, by data set."""
    where = {"study": "beyond", "table": "beyond-accuracy", "variant": row}
    return {each["data"]: each for each in recorded.find(where)}


def best_published(recorded: Recorded) -> dict[str, float]:
    """Return the best published figure of the model on each data set, linear or kernel."""
    found = ours_by_data(recorded, OURS)
    return {name: each["best_published"] for name, each in found.items()}


NETWORK_TITLES = {
    NETWORK: "our network (eight of one kind; today's default is a committee)",
    COMMITTEE: "our network (today's default, a committee)",
}


def six_rows(recorded: Recorded) -> str:
    """Write the table of six rows, in Markdown; empty if nothing was made."""
    row = network_row(recorded)
    plain, kernel = (
        recorded.records(*place)
        for place in (("inductive", "inductive-accuracy"), ("kernel", "kernel"))
    )
    rows = {
        "MLR, the paper's model": {
            each["data"]: beside_published(each) for each in plain if each["method"] == MLR
        },
        "SLR, told every instance's label": {
            each["data"]: beside_published(each) for each in plain if each["method"] == SLR
        },
        "best rival, with context and kernel where that helps": best_rivals(recorded),
        "K-MLR, the paper's kernel version": {
            each["data"]: beside_published(each) for each in kernel if each["method"] == MLR
        },
        "our kernel, with context": in_short(ours_by_data(recorded, OURS)),
        NETWORK_TITLES[row]: in_short(ours_by_data(recorded, row)),
    }
    if not any(rows.values()):
        return ""
    return "\n".join(
        [
            "## In one table",
            "",
            "Instance accuracy in % on new bags, mean over ten folds (letters: five draws); in "
            "brackets: published; for rivals, the best of those published, without our context. "
            "Union labels: the label set of a recording is the union of its segments' labels, as "
            "the model assumes. MLR and SLR take 50 steps, K-MLR 500. Rivals and K-MLR are at the "
            f"best setting on the test folds, {'our kernel' if row == COMMITTEE else 'ours'} at "
            "settings chosen within the training folds"
            f"{' and our network at its defaults' * (row == COMMITTEE)}.",
            "",
            f"| | {' | '.join(DATA.values())} |",
            f"|---|{'---:|' * len(DATA)}",
            *(
                f"| {title} | {' | '.join(row.get(name, '') for name in DATA)} |"
                for title, row in rows.items()
                if row
            ),
            "",
            tests_note(recorded),
            told_note(recorded),
            network_sources(recorded),
        ]
    )


def told_note(recorded: Recorded) -> str:
    """Say what a network reaches that is told the label of every instance; empty if not made."""
    told = next(row for row, (of, _) in TOLD.items() if of == NETWORK)
    found = ours_by_data(recorded, told)
    if not found:
        return ""
    each = ", ".join(f"{SHORT[name]} {record['ours']:.1f}" for name, record in found.items())
    return (
        f"SLR is no bound for networks: told every instance's label, those of one kind have {each} "
        "([beyond](#beyond)).\n"
    )


def network_sources(recorded: Recorded) -> str:
    """Say which versions of the package made the figures of our own models, if not this one.

    One line that begins with ``Sources:``, as it depends on the sources of the package.
    """
    row = network_row(recorded)
    if not ours_by_data(recorded, row):
        return ""
    plan, _ = read_plan(recorded.out / "beyond")
    ledger = recorded.ledger("beyond")
    kernel, network = (
        {
            ledger.version(unit)
            for name in plan.data
            for fold in row_units(plan, ledger, name, each)
            for unit in fold
            if unit in ledger and ledger.is_stale(unit)
        }
        for each in (OURS, row)
    )
    if not kernel | network:
        return ""
    whose = f"the network's by {', '.join(sorted(network))}" if network else "not the network's"
    return (
        f"Sources: these figures were made by earlier versions of the code, {whose}; the pages say "
        "how many units of work, and what was checked since.\n"
    )


def in_short(records: dict[str, Values]) -> dict[str, str]:
    """Write our figures by data set."""
    return {name: f"{each['ours']:.1f}" for name, each in records.items()}


def best_rivals(recorded: Recorded) -> dict[str, str]:
    """Write the best rival on each data set, and in brackets the best published one."""
    best = at_their_best(recorded) or {
        each["method"]: {} for each in recorded.records("inductive", "inductive-accuracy")
    }
    plain = [
        each
        for place in (("inductive", "inductive-accuracy"), ("kernel", "kernel"))
        for each in recorded.records(*place)
        if each["method"] in RIVALS
    ]
    cells = {}
    for name in DATA:
        ours = [(row[name]["ours"], method) for method, row in best.items()
                if method in RIVALS and name in row]  # fmt: skip
        known = [(each["published"], each["method"]) for each in plain
                 if each["data"] == name and each["published"] is not None]  # fmt: skip
        if ours:
            figure, method = max(ours)
            beside = " ({1} {0:.1f})".format(*max(known)) if known else ""
            cells[name] = f"{method} {figure:.1f}{beside}"
    return cells


def ends_note(recorded: Recorded) -> str:
    """Say of which rivals the best setting lies at an end of what was tried; empty if of none."""
    found = rivals_at_ends(
        [
            {**record, "data": SHORT[record["data"]], "setting": setting_of(record)}
            for record in recorded.records("beyond", "beyond-rivals")
            if record["method"] in RIVALS and record.get("setting")
        ]
    )
    if not found:
        return ""
    return (
        " The best setting of a rival lies at an end of its grid, and more might be better: "
        f"{'; '.join(found)}."
    )


def tests_note(recorded: Recorded) -> str:
    """Say on which data sets ours are better than the best rival, by a test."""
    said = []
    for row, title in ((OURS, "our kernel"), (network_row(recorded), "our network")):
        found = recorded.find({"study": "beyond", "table": "beyond-rivals", "method": row})
        by_word: dict[str, list[str]] = {}
        for each in found:
            if each["verdict"]:
                by_word.setdefault(each["verdict"], []).append(SHORT[each["data"]])
        listed = "; ".join(f"{word} on {', '.join(names)}" for word, names in by_word.items())
        if listed:
            said.append(f"{title}: {listed}")
    if not said:
        return ""
    return (
        f"Beside the best rival, {'. '.join(said).replace('. our', '. Our')}. Paired t-tests over "
        "ten folds, with the correction of Nadeau and Bengio, and Holm's for their number "
        f"([beyond](#beyond)).{ends_note(recorded)}\n"
    )


def open_points(
    recorded: Recorded, judgements: Sequence[Judgement], findings: Sequence[Finding]
) -> str:
    """Write what is open, in Markdown: by method, then what the text claims."""
    still = [each for each in findings if each.status == OPEN]
    failing = [
        each for each in judgements if each.verdict not in (HOLDS, MOSTLY, UNKNOWN, NOT_MADE)
    ]
    lines = []
    for method in dict.fromkeys(each.cell.row for each in still):
        of_method = [each for each in still if each.cell.row == method]
        n_scattered = sum(each.within_scatter for each in of_method)
        farthest_cell = max(of_method, key=lambda each: abs(each.cell.record["difference"])).cell
        farthest = farthest_cell.record
        measure = farthest_cell.measure.replace("_", " ")
        gap = f"{farthest['difference']:+.1f} ({measure}, {SHORT[farthest['data']]})"
        n_all = sum(each.cell.row == method for each in findings)
        title = f"{MLR}, and K-MLR" if method == MLR else method
        lines.append(
            f"- **{title}**: {len(of_method)} of {n_all} figures are open; the largest difference "
            f"is {gap}; {n_scattered} of them are within what folds and letters vary by."
            f"{KNOWN.get(method, '')}"
        )
    if failing:
        shortcuts = sum(each.claim["on"] in SHORTCUTS for each in failing)
        lines.append(
            f"- **The text**: {len(failing)} claims hold in part, in direction only or not at all "
            f"([claims](#claims)); {shortcuts} of them are of the shortcuts of Figures 10 to 12: "
            "fits become faster here, too, but by less than in the paper, or lose more accuracy."
        )
    if not lines:
        return ""
    return "\n".join(
        [
            "## What is open",
            "",
            f"Of {len(findings)} figures: {counted(findings)} ([all of them](#differences), where "
            "a figure that several tables print alike is listed once). Some open differences are "
            "no larger than the variation between folds, or between draws of the letters; that "
            "does not show that the figures agree.",
            "",
            *lines,
            "",
        ]
    )


#: What is known of what stays open, where the tables cannot say it.
KNOWN = {
    "MLR": " On HJA it reaches the published figures only after 200 steps; the paper has 50.",
    "SLR": " On HJA the same holds as for MLR.",
    "SIM": " It has no published code.",
    "MIMLfast": " The solver is ours, and its grid is sampled.",
    "LSB-CMM": " The inference is ours.",
    "MIMLNN": " No distance between bags that we tried gives its figures on the letters "
    "([distances](#distances)).",
    "dummy": " No constant answer has its published one-error on HJA.",
}

COMMANDS = """\
## Check it yourself

```console
$ unbag reproduce cell inductive letter-frost mlr    # one figure, in seconds
$ unbag reproduce all --confirm 20                   # 20 fits of each experiment, drawn at random
$ unbag reproduce inductive --data letter-frost      # one experiment anew, into the folder results
```

The experiments are a package of their own: `pip install ./reproduction` in a clone of the
repository; its README says where data are looked for. The networks' figures were made on a GPU.

To set your own method beside these, see [Benchmark your own method](howto/benchmark.md).
"""


def cells_figure(findings: Sequence[Finding]) -> Figure:
    """Make the picture of all figures of Tables 3 to 8: ours against published, by method."""
    points: dict[str, list[tuple[float, float]]] = {}
    for each in findings:
        record = each.cell.record
        points.setdefault(each.cell.row, []).append((record["published"], record["ours"]))

    def draw():
        figure, (whole, apart) = panels(2, size=(5.2, 4.4))
        ends = [0.0, 100.0]
        for axis, line in ((whole, ends), (apart, [0.0, 0.0])):
            axis.fill_between(
                ends, [each - NEAR for each in line], [each + NEAR for each in line],
                color="#bbbbbb", label=f"± {NEAR:g} points",
            )  # fmt: skip
            axis.plot(ends, line, color="#555555", linewidth=0.8)
        for (method, of_method), style in zip(points.items(), STYLES, strict=False):
            colour, marker, _ = style
            published, ours = zip(*of_method, strict=True)
            gaps = [own - known for known, own in of_method]
            look = {"color": colour, "marker": marker, "s": 22, "alpha": 0.75, "linewidths": 0}
            whole.scatter(published, ours, label=method, **look)
            apart.scatter(published, gaps, label=method, **look)
        whole.set(xlabel="published, %", ylabel="ours, %", title="Tables 3 to 8")
        apart.set(xlabel="published, %", ylabel="ours minus published, points",
                  title="The same, differences")  # fmt: skip
        legend_below(figure, 5)
        return figure

    return Figure(PICTURE, "Ours against published", draw)


def can_draw() -> bool:
    """Return whether pictures can be drawn here."""
    return find_spec("matplotlib") is not None


def relative(path: os.PathLike[str], start: os.PathLike[str]) -> str:
    """Return a path as seen from a folder, as links have it."""
    return os.path.relpath(path, start).replace(os.sep, "/")
