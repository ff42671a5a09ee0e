"""The first page: what is reproduced, what decides that, and what is new; and the README's rows.

All figures come from tables and ledgers.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from unbag._files import write_text

from .additions import COMMITTEE, NETWORK, OURS, TOLD
from .claims import DIRECTION_ONLY, FAILS, HOLDS, IN_PART, MOSTLY, UNKNOWN, Judgement
from .differences import TABLES, Finding, near
from .explanations import EXPLAINED, OPEN
from .figures import STYLES, Figure, legend_below, panels
from .methods import METHODS
from .recorded import Recorded
from .reproduce import COMMITTED
from .studies.beyond import rivals_at_ends
from .tables import DATA, NEAR, in_names, markdown_table, near_the_edge
from .unit import Values
from .verdicts import ITEMS, counts_of, is_as_printed, on_the_best
from .worth import DUMMY, MLR, SLR, guesses_section, lost_by_scaling, scaling_rows

#: The picture of the first page.
PICTURE = "cells"
RIVALS = tuple(METHODS[name].title for name in ("sim", "mimlfast", "lsbcmm"))
SHORTCUTS = ("Figure 10", "Figure 11", "Figure 12")
PAGE = """\
# Reproducing the paper

Pham, Raich and Fern, *Dynamic Programming for Instance Annotation in Multi-instance Multi-label \
Learning* ([arXiv 1411.4068](https://arxiv.org/abs/1411.4068)), run again with unbag.

**Methods.** MLR is the paper's model and K-MLR the same with a kernel. SLR is logistic regression \
that is told the label of every instance, and the *dummy* a constant answer. SIM, MIMLfast, \
LSB-CMM, MIMLSVM and MIMLNN are rivals. All were implemented for this package, some with solvers \
of our own ([words](#words)).

**Data.** Four of the paper's seven data sets are available. *HJA* is birdsong with union labels: \
the labels of a recording are those of its segments. *MSRC v2* is photos. *Carroll* and *Frost* \
are words made of pictures of letters; which pictures spell them is drawn at random, five times. \
Not available are HJA bird (with the original labels), VOC 2012 as it was cut into regions, and \
50 Salads as it was cut into bags.

## How much is reproduced

Figures of Tables 3 to 8 within {near:g} points of the paper's, a tolerance that we chose. Table 8 \
has kernels: MLR there is K-MLR.

{grid}

{reproduced}

![Ours and published: a dot for each figure of Tables 3 to 8]({picture})

## Standardising features decides the result

The paper does not say how it scaled features. We standardise them. Without that, MLR loses \
{least:.0f} to {most:.0f} points ([guesses](#guesses)). Instance accuracy in % on new bags:

{scaling}

## With networks, noisy-or does as well as the exact loss

The same network, taught by the exact likelihood and by noisy-or of a softmax, which scores each \
label by itself. Instance accuracy in % on new bags ([all losses](#beyond)):

{losses}

{no_gain} So nothing here shows that networks gain from exact inference. Max, linear softmax and \
attention pooling fall behind.

## Accuracies

Instance accuracy in % on new bags, the mean over ten folds; in brackets: published. Rivals and \
K-MLR are at the setting that is best on the test folds, our kernel at settings chosen within the \
training folds, and our network at its defaults.

{table}

{tests}

{new}

## Guesses

{guesses}

## The text

{claims}

## Check it yourself

Run `pip install . ./reproduction` in a clone of the repository; `reproduction/README.md` says
where data are looked for. The networks' figures were computed on a GPU.

```console
$ unbag-reproduce confirm 20                          # 20 finished fits, drawn at random
$ unbag-reproduce run inductive --data letter-frost   # one experiment, into the folder results
```

## Pages

{pages}
"""
#: The rows of the README.
README = """\
Instance accuracy in % on new bags of birdsong (HJA), photos (MSRC v2) and letters (Carroll, \
Frost); in brackets: published.

{table}

The network's parts were chosen on other folds of the same bags, and rivals are shown at the \
setting that did best on the test folds ([details](docs/reproduction.md)).
"""
NOT_IN_README = ("K-MLR, the paper's kernel version", "our kernel, with context")
IN_README = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)


def front_page(
    recorded: Recorded,
    judgements: Sequence[Judgement],
    findings: Sequence[Finding],
    *,
    picture: str,
    pages: Sequence[str],
) -> str:
    """Write the first page, in Markdown.

    It takes the judgements of the claims of the paper's text, the findings on the figures of its
    tables, where the picture of all figures is, and links to the other pages, one line each.
    """
    rows, (least, most) = accuracy_rows(recorded), lost_by_scaling(recorded)
    return PAGE.format(
        near=NEAR,
        grid=grid(findings),
        reproduced=reproduced_line(recorded, findings),
        picture=picture,
        least=least,
        most=most,
        scaling=markdown_table(["", "features", *DATA.values()], scaling_rows(recorded)),
        losses=markdown_table(["", *DATA.values()], loss_rows(recorded)),
        no_gain=noisy_or_line(recorded),
        table=markdown_table(["", *DATA.values()], [[title, *row] for title, row in rows.items()]),
        tests=tests_note(recorded),
        new=new_line(recorded),
        guesses=guesses_section(recorded),
        claims=claims_line(judgements),
        pages="\n".join(pages),
    )


def grid(findings: Sequence[Finding]) -> str:
    """Write how many figures of each method and table are reproduced, in Markdown."""

    def row(title: str, found: Iterable[Finding]) -> list[str]:
        found = list(found)
        by_table = (near([each for each in found if each.table == table]) for table in TABLES)
        return [title, *by_table, near(found)]

    methods = dict.fromkeys(each.cell.row for each in findings)
    return markdown_table(
        ["", *TABLES, "all"],
        [
            *(row(title, (e for e in findings if e.cell.row == title)) for title in methods),
            row("instance accuracy, without the dummy", accuracies(findings)),
            row("**all**", findings),
        ],
    )


def accuracies(findings: Sequence[Finding]) -> list[Finding]:
    """Return the instance accuracies, without the dummy's."""
    return [
        each
        for each in findings
        if each.cell.measure.endswith("accuracy") and each.cell.row != DUMMY
    ]


def reproduced_line(recorded: Recorded, findings: Sequence[Finding]) -> str:
    """Say what is known of the other figures, and who comes first."""
    counts = [each for item in ITEMS if item.exact for each in counts_of(item, recorded)]
    statuses = Counter(each.status for each in findings)
    scattered = sum(each.within_scatter for each in findings)
    n_led, n_data = leads(recorded)
    return (
        f"As for the rest, {statuses[EXPLAINED]} have a known cause and {statuses[OPEN]} are open; "
        f"{scattered} of the open ones differ by no more than folds and draws of letters do, which "
        "does not show that they agree ([differences](#differences)). MLR leads Table 3 on "
        f"{n_led} of {n_data} data sets. As in the paper, "
        f"{on_the_best([each.cell for each in findings])} (a table, a data set and a measure "
        "each). The counts of Tables 2, 9 and 10 are as printed "
        f"({sum(map(is_as_printed, counts))} of {len(counts)})."
    )


def leads(recorded: Recorded) -> tuple[int, int]:
    """Count the data sets on which MLR is ahead of its rivals in Table 3, and all of them."""
    means: dict[str, dict[str, float]] = {}
    for each in recorded.records("inductive", "inductive-accuracy"):
        if each["method"] in (MLR, *RIVALS):
            means.setdefault(each["data"], {})[each["method"]] = each["ours"]
    return sum(max(each, key=each.__getitem__) == MLR for each in means.values()), len(means)


def claims_line(judgements: Sequence[Judgement]) -> str:
    """Say how many claims of the text hold."""
    checked = [each for each in judgements if each.verdict != UNKNOWN]
    counts = Counter(each.verdict for each in checked)
    of_shortcuts = [each for each in checked if each.claim["on"] in SHORTCUTS]
    n_shortcuts = sum(each.verdict in (HOLDS, MOSTLY) for each in of_shortcuts)
    return (
        f"{len(checked)} claims of the text can be checked: {counts[HOLDS]} hold, {counts[MOSTLY]} "
        f"mostly hold, {counts[IN_PART]} hold in part, {counts[DIRECTION_ONLY]} in direction only, "
        f"{counts[FAILS]} not at all ([claims](#claims)). Only {n_shortcuts} of the "
        f"{len(of_shortcuts)} on pruning, sampling and smaller dictionaries (Figures 10 to 12) "
        "hold or mostly hold: fits become faster here as well, but by less than in the paper, or "
        "they lose more accuracy."
    )


def of_losses(recorded: Recorded, loss: str) -> dict[str, Values]:
    """Return the records of a network taught by a loss, label sets unknown, by data set."""
    place = {"study": "beyond", "table": "beyond-losses", "measure": "label sets unknown"}
    return {each["data"]: each for each in recorded.find({**place, "loss": loss})}


def loss_rows(recorded: Recorded) -> list[list[str]]:
    """Return the rows of the exact loss and of noisy-or, with the verdict of the test."""
    rows = []
    for loss in ("exact", "noisy-or of the softmax"):
        found = of_losses(recorded, loss)
        rows.append(
            [loss, *(
                f"{found[name]['ours']:.1f}"
                + (f" ({word})" if (word := found[name]["verdict"]) else "")
                for name in DATA
            )]
        )  # fmt: skip
    return rows


def noisy_or_line(recorded: Recorded) -> str:
    """Say by how much noisy-or differs."""
    found = of_losses(recorded, "noisy-or of the softmax").values()
    gaps, n_tied = [each["difference"] for each in found], Counter(e["verdict"] for e in found)
    return (
        f"Noisy-or changes accuracy by {min(gaps):+.1f} to {max(gaps):+.1f} points; on "
        f"{n_tied['tied']} of {len(gaps)} data sets a test cannot distinguish the two."
    )


def new_line(recorded: Recorded) -> str:
    """Say what our own models add, and what that owes to these data."""
    kernel, network = (ours_by_data(recorded, each) for each in (OURS, COMMITTEE))

    def gained(row: dict[str, Values]) -> str:
        gaps = [row[name]["ours"] - each["best_published"] for name, each in kernel.items()]
        return f"{min(gaps):+.1f} to {max(gaps):+.1f}"

    told = next(row for row, (of, _) in TOLD.items() if of == NETWORK)
    reached = ", ".join(
        f"{DATA[name]} {each['ours']:.1f}" for name, each in ours_by_data(recorded, told).items()
    )
    return (
        f"Our kernel adds {gained(kernel)} points to the best published figure of the model, and "
        f"our network {gained(network)}. But some candidates of the kernel were first found on "
        "these folds, and the parts of the network were chosen by instance accuracies on other "
        "folds of the same bags: on other data they may add less ([beyond](#beyond)). SLR does not "
        f"bound networks: told every instance's label, they reach {reached}."
    )


def ours_by_data(recorded: Recorded, row: str) -> dict[str, Values]:
    """Return the records of one of our own models, by data set."""
    where = {"study": "beyond", "table": "beyond-accuracy", "variant": row}
    return {each["data"]: each for each in recorded.find(where)}


def accuracy_rows(recorded: Recorded) -> dict[str, list[str]]:
    """Return the rows of the table of accuracies, by title; the data sets are its columns."""

    def published(study: str, table: str, method: str) -> list[str]:
        found = recorded.find({"study": study, "table": table, "method": method})
        of = {each["data"]: f"{each['ours']:.1f} ({each['published']:.1f})" for each in found}
        return [of[name] for name in DATA]

    def ours(row: str) -> list[str]:
        found = ours_by_data(recorded, row)
        return [f"{found[name]['ours']:.1f}" for name in DATA]

    return {
        "MLR, the paper's model": published("inductive", "inductive-accuracy", MLR),
        "SLR, told every instance's label": published("inductive", "inductive-accuracy", SLR),
        "best rival, with context and kernel where that helps": best_rivals(recorded),
        NOT_IN_README[0]: published("kernel", "kernel", MLR),
        NOT_IN_README[1]: ours(OURS),
        "our network (an earlier committee)": ours(COMMITTEE),
    }


def at_their_best(recorded: Recorded) -> dict[str, dict[str, Values]]:
    """Return the best that each rival reaches on each data set, without or with our additions."""
    best: dict[str, dict[str, Values]] = {method: {} for method in RIVALS}
    for place in (("inductive", "inductive-accuracy"), ("kernel", "kernel"),
                  ("beyond", "beyond-rivals")):  # fmt: skip
        for record in recorded.records(*place):
            of_method = best.get(record["method"], {})
            if record["ours"] > of_method.get(record["data"], {}).get("ours", 0):
                of_method[record["data"]] = record
    return best


def best_rivals(recorded: Recorded) -> list[str]:
    """Write the best rival on each data set, and in brackets the best published one."""
    best = at_their_best(recorded)
    plain = [
        each
        for place in (("inductive", "inductive-accuracy"), ("kernel", "kernel"))
        for each in recorded.records(*place)
        if each["method"] in RIVALS and each["published"] is not None
    ]
    cells = []
    for name in DATA:
        ours, method = max((best[method][name]["ours"], method) for method in RIVALS)
        known, other = max(
            (each["published"], each["method"]) for each in plain if each["data"] == name
        )
        cells.append(f"{method} {ours:.1f} ({other} {known:.1f})")
    return cells


def tests_note(recorded: Recorded) -> str:
    """Say on which data sets ours are better than the best rival, by a test."""
    said = []
    for row, title in ((OURS, "our kernel"), (COMMITTEE, "our network")):
        by_word: dict[str, list[str]] = {}
        for each in recorded.find({"study": "beyond", "table": "beyond-rivals", "method": row}):
            edge = near_the_edge(each)
            name = DATA[each["data"]] + (f" ({edge})" if edge else "")
            by_word.setdefault(each["verdict"], []).append(name)
        listed = " and ".join(f"{word} on {', '.join(names)}" for word, names in by_word.items())
        said.append(f"{title} is {listed}")
    rivals = recorded.records("beyond", "beyond-rivals")
    at_ends = rivals_at_ends([each for each in rivals if each["method"] in RIVALS])
    return (
        f"Compared with the best rival, {'; '.join(said)}. Tied means that a corrected, paired "
        "t-test over ten folds cannot distinguish them. Some best settings of rivals lie at an end "
        f"of what was tried: {in_names('; '.join(at_ends))}."
    )


def write_readme(
    out: str | os.PathLike[str] = COMMITTED, readme: str | os.PathLike[str] = "README.md"
) -> None:
    """Write four rows of results between the comments that mark their place in the README."""
    rows = accuracy_rows(Recorded(out)).items()
    shown = [[title, *row] for title, row in rows if title not in NOT_IN_README]
    body = README.format(table=markdown_table(["", *DATA.values()], shown))
    text = Path(readme).read_text(encoding="utf-8")
    write_text(readme, IN_README.sub(lambda found: f"{found[1]}{body}{found[2]}", text))


def cells_figure(findings: Sequence[Finding]) -> Figure:
    """Make the picture of all figures of Tables 3 to 8: ours and published, by method."""
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

    return Figure(PICTURE, "Ours and published", draw)
