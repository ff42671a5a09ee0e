"""The first page: what was reproduced and what not, what was guessed, what is open, what is new.

All figures come from tables and ledgers; what was not made is not mentioned.
"""

import os
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec

from unbag.model_selection.methods import METHODS

from .additions import COMMITTEE, NETWORK, OURS, TOLD
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
from .confirm import is_by_these_sources
from .differences import Finding, counted
from .elsewhere import had_a_part, level_with_best
from .explanations import EXPLAINED, NEAR, OPEN, REPRODUCED
from .figures import STYLES, Figure, legend_below, panels
from .readme import DATA, LAST, at_their_best, beside_published, network_row
from .recorded import Recorded
from .reproduce import CONFIRMED, read_plan
from .rests_on import setting_of
from .studies import STUDIES
from .studies.beyond import rivals_at_ends
from .tables import near_the_edge
from .unit import Unit, Values
from .verdicts import ITEMS, counts_of, is_as_printed, on_the_best
from .worth import MLR, SHORT, SLR, guesses_section

#: The picture of the first page.
PICTURE = "cells"
RIVALS = tuple(METHODS[name].title for name in ("sim", "mimlfast", "lsbcmm"))
NOISY_OR, UNKNOWN_SETS = "noisy-or of the softmax", "label sets unknown"
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
        "regression that is told the label of every instance, and the *dummy* a constant answer. "
        "SIM, MIMLfast, LSB-CMM, MIMLSVM and MIMLNN are its rivals, all of them implemented anew "
        "for this package, some with solvers of our own. The bags of the two letter data sets are "
        "words; which pictures spell them is drawn at random, five times (*draws*). "
        "*Context* is the mean instance of a bag, which its instances get as further features. "
        "Networks *of one kind* differ only in their random numbers; a *committee* is several "
        "kinds of networks with a linear model and a kernel ([words](#words)).\n",
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
    of_headline = f" (MLR in Table 3: {n_headline} of {len(headline)})" if headline else ""
    first = on_the_best([each.cell for each in findings])
    return (
        f"On the four data sets that are available, {n_near} of {len(findings)} figures of Tables "
        f"3 to 8 are within {NEAR:g} points of the paper's, a tolerance that we chose. Among "
        f"them: {n_model} of {len(of_model)} of MLR and SLR, kernels included{of_headline}"
        f"{accuracy_share(findings)}{dummy_share(findings)}. Of the rest, {n_explained} have a "
        f"known cause, and {n_open}{in_every_table(findings)} are open. "
        f"{leading_line(recorded)}{first}{as_printed}"
    )


def accuracy_share(findings: Sequence[Finding]) -> str:
    """Say how many accuracies are near: of bags, measures are smaller, and so are differences."""
    found = [
        each.status == REPRODUCED
        for each in findings
        if each.cell.measure.endswith("accuracy") and each.cell.row != LAST
    ]
    return f"; {sum(found)} of {len(found)} accuracies, without the dummy's" if found else ""


def leading_line(recorded: Recorded) -> str:
    """Say on how many data sets MLR is ahead of its rivals in Table 3, by the means."""
    found = [
        each
        for each in recorded.records("inductive", "inductive-accuracy")
        if each["method"] in (MLR, *RIVALS)
    ]
    means: dict[str, dict[str, float]] = {}
    for each in found:
        means.setdefault(each["data"], {})[each["method"]] = each["ours"]
    full = [each for each in means.values() if len(each) == 1 + len(RIVALS)]
    if not full:
        return ""
    n_ahead = sum(max(each, key=lambda method: each[method]) == MLR for each in full)
    return f"MLR leads Table 3 on {n_ahead} of {len(full)} data sets. "


def dummy_share(findings: Sequence[Finding]) -> str:
    """Say how many figures are those of a constant answer, which are easily reproduced."""
    found = [each.status == REPRODUCED for each in findings if each.cell.row == LAST]
    return f"; {sum(found)} of {len(found)} of the dummy" if found else ""


def in_every_table(findings: Sequence[Finding]) -> str:
    """Say that no table is free of open figures, where that is so."""
    tables = {each.cell.table for each in findings}
    still = {each.cell.table for each in findings if each.status == OPEN}
    return ", some in every table," if still == tables else ""


def not_reproduced_line(judgements: Sequence[Judgement], findings: Sequence[Finding]) -> str:
    """Say what is not the paper's."""
    checked = [each for each in judgements if each.verdict not in (UNKNOWN, NOT_MADE)]
    counts = Counter(each.verdict for each in checked)
    of_shortcuts = [each for each in checked if each.claim["on"] in SHORTCUTS]
    n_shortcuts = sum(each.verdict in (HOLDS, MOSTLY) for each in of_shortcuts)
    said = [
        f"Of {len(checked)} claims of its text that can be checked, {counts[HOLDS]} hold, "
        f"{counts[MOSTLY]} mostly, {counts[IN_PART]} in part, {counts[DIRECTION_ONLY]} in "
        f"direction only, {counts[FAILS]} not at all. HJA bird's are checked on its union labels."
        if checked
        else "",
        f"Of the {len(of_shortcuts)} on time and accuracy with pruning, sampling and smaller "
        f"dictionaries (Figures 10 to 12), only {n_shortcuts} hold or mostly hold."
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
        return f"{min(gaps):+.1f} to {max(gaps):+.1f} points"

    said = (
        f"A kernel with context, tuned within the training folds, adds {gained(kernel)} to the "
        f"best published figure of the model, linear or kernel{on_own_kernel(recorded, kernel)}. "
        "Some of its candidates were first found on these folds."
    )
    if network:
        said += f" {ADDS[row].format(gained(network))}{other_data_line(recorded, row)}"
    if network and is_tied_with_noisy_or(recorded):
        said += (
            f" Networks of one kind change by {noisy_or_gaps(recorded)} points if they learn by a "
            "noisy-or loss instead of the exact likelihood, which no test tells from nothing: so "
            "it is not shown that what networks gain is due to exact inference."
        )
    return said


def on_own_kernel(recorded: Recorded, kernel: dict[str, Values]) -> str:
    """Say how far our kernel is above our own K-MLR, rather than the paper's."""
    own = {
        each["data"]: each["ours"]
        for each in recorded.records("kernel", "kernel")
        if each["method"] == MLR
    }
    gaps = [record["ours"] - own[name] for name, record in kernel.items() if name in own]
    return f" ({min(gaps):+.1f} to {max(gaps):+.1f} to our own K-MLR)" if gaps else ""


def noisy_or_gaps(recorded: Recorded) -> str:
    """Write by how much a noisy-or loss differs from the exact one, from the least to the most."""
    where = {"study": "beyond", "table": "beyond-losses", "loss": NOISY_OR, "measure": UNKNOWN_SETS}
    gaps = [each["difference"] for each in recorded.find(where)]
    return f"{min(gaps):+.1f} to {max(gaps):+.1f}"


#: What networks add, and what they owe to these data, by the row that is shown.
ADDS = {
    NETWORK: (
        "A network adds {}; but its defaults and candidates come from prototypes that were tried "
        "by ten folds on these same four data sets."
    ),
    COMMITTEE: (
        "The network's default of today, a committee, adds {}. But what it is made of was chosen "
        "by instance accuracies on these same four data sets, on other folds of the same bags: on "
        "other data it may add less."
    ),
}


def other_data_line(recorded: Recorded, row: str) -> str:
    """Say what other data tell of our models."""
    if row == NETWORK:
        return " So what both do on [other data](#beyond) counts for more."
    n_level, n_all = level_with_best(recorded.out)
    n_level_made, n_made = level_with_best(recorded.out, had_a_part)
    if not n_all:
        return ""
    return (
        f" On {n_level} of {n_all} [other data sets](#beyond) it is within a point of the best of "
        f"our four models, itself included (not tested): on {n_level_made} of the {n_made} "
        f"synthetic ones, which had a part in building it, and on {n_level - n_level_made} of the "
        f"{n_all - n_made} sizes of a set of digits, which had none."
    )


def is_tied_with_noisy_or(recorded: Recorded) -> bool:
    """Return whether no test tells the network apart from the same with a noisy-or loss."""
    found = recorded.find({"study": "beyond", "table": "beyond-losses", "loss": NOISY_OR})
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
            "setting that is best on the test folds (on the letters, on one draw for each fold), "
            f"{'our kernel' if row == COMMITTEE else 'ours'} at "
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
            sources_note(recorded),
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
        f"SLR is no bound for networks: told every instance's label, those of one kind reach "
        f"{each} ([beyond](#beyond)).\n"
    )


def sources_note(recorded: Recorded) -> str:
    """Say which version of the code made the fits that pages show, and what was done again.

    One line that begins with ``Sources:``, as it depends on the sources of the package.
    """
    studies = [name for name in STUDIES if recorded.is_made(name)]
    shown: dict[Unit, bool] = {}
    n_stale = 0
    for name in studies:
        ledger = recorded.ledger(name)
        done = [unit for unit in recorded.units(name) if unit in ledger]
        if not done:
            continue
        n_stale += sum(map(ledger.is_stale, done))
        shown |= {unit: ledger.is_stale(unit) for unit in recorded.shown(name) if unit in ledger}
    if not n_stale:
        return ""
    n_shown = sum(shown.values())
    made = (
        f"{n_shown:,} of the {len(shown):,} fits that these pages show were made by earlier "
        "versions of the code"
        if n_shown
        else f"all {len(shown):,} fits that these pages show were made by this version of the "
        "code; of those that chose their settings, some by earlier ones"
    )
    return f"Sources: {made}.{again_note(recorded, studies)}\n"


def again_note(recorded: Recorded, studies: Sequence[str]) -> str:
    """Say what became of fits, drawn at random, that this version has done again; empty if none."""
    confirmed = [
        found
        for name in studies
        for found in [read_plan(recorded.out / name)[1].get(CONFIRMED)]
        if found and is_by_these_sources(found)
    ]
    if not confirmed:
        return ""
    n_units, n_same, n_printed, n_networks = (
        sum(found.get(key, 0) for found in confirmed)
        for key in ("units", "same_digits", "same_as_printed", "networks")
    )
    others = f", {n_printed - n_same} others as printed" if n_printed > n_same else ""
    differ = f", {n_units - n_printed} differ" if n_units > n_printed else ""
    return (
        f" {n_units} finished units of work of {len(confirmed)} experiments, drawn at random, "
        f"{n_networks or 'none'} of them networks, were done again: {n_same} agree to the last "
        f"digit{others}{differ}."
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
        " The best setting of a rival lies at an end of its grid, and more might be better ([what "
        f"was tried](#beyond)): {'; '.join(found)}."
    )


def tests_note(recorded: Recorded) -> str:
    """Say on which data sets ours are better than the best rival, by a test."""
    said = []
    for row, title in ((OURS, "our kernel"), (network_row(recorded), "our network")):
        found = recorded.find({"study": "beyond", "table": "beyond-rivals", "method": row})
        by_word: dict[str, list[str]] = {}
        for each in found:
            if each["verdict"]:
                edge = near_the_edge(each)
                name = SHORT[each["data"]] + (f" ({edge})" if edge else "")
                by_word.setdefault(each["verdict"], []).append(name)
        listed = "; ".join(f"{word} on {', '.join(names)}" for word, names in by_word.items())
        if listed:
            said.append(f"{title}: {listed}")
    if not said:
        return ""
    return (
        f"Against the best rival, {'. '.join(said).replace('. our', '. Our')}. Tied means that a "
        "paired t-test over ten folds does not tell them apart, with the correction of Nadeau and "
        f"Bengio, and Holm's for multiple tests ([beyond](#beyond)).{ends_note(recorded)}\n"
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
            f"- **{title}**: {len(of_method)} of {n_all} figures are open, {n_scattered} of them "
            f"within what folds and letters vary by; the largest difference is {gap}."
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
            "a figure that several tables print alike is listed once). "
            f"{sum(each.within_scatter for each in still)} of the open differences are no larger "
            "than the variation between folds, or between draws of the letters; that does not show "
            "that the figures agree.",
            "",
            *lines,
            "",
        ]
    )


#: What is known of what stays open, where the tables cannot say it.
KNOWN = {
    "MLR": " On HJA its accuracy on new bags is within 1.5 points after 100 steps; the paper has "
    "50.",
    "SLR": " On HJA the same holds as for MLR.",
    "SIM": " It has no published code.",
    "MIMLfast": " The solver is ours, its grid is sampled, and its epochs are a guess.",
    "LSB-CMM": " The inference is ours.",
    "MIMLNN": " No distance between bags that we tried gives its figures on the letters "
    "([distances](#distances)).",
    "dummy": " No constant answer has its published one-error on HJA.",
}

COMMANDS = """\
## Check it yourself

First run `pip install . ./reproduction` in a clone of the repository; `reproduction/README.md` says
where data are looked for. The networks' figures were made on a GPU.

```console
$ unbag reproduce cell inductive letter-frost mlr    # one figure of Table 3, in seconds
$ unbag reproduce all --confirm 20                   # 20 fits of each experiment, drawn at random
$ unbag reproduce inductive --data letter-frost      # one experiment anew, into the folder results
```

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
