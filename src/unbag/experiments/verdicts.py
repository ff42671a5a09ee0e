"""A verdict on each table and figure of the paper, from what experiments have found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .claims import HOLDS, NOT_MADE, UNKNOWN, Judgement
from .comparison import HIGHER_IS_BETTER
from .differences import Difference, cells
from .explanations import NEAR, NOT_TUNED, UNEXPLAINED, Cell
from .methods import METHODS, OUTSIDE
from .published import published_figure
from .recorded import Recorded
from .reproduce import read_plan
from .unit import Values

REPRODUCED, IN_PART, NOT = "reproduced", "in part", "not reproduced"
UNFINISHED = "not finished"
#: Shares of the cells that must be near the paper.
ENOUGH, SOME = 0.9, 0.5
#: Half of the last digit of figures that must come out as printed.
AS_PRINTED = 0.05


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    Parameters
    ----------
    title : str
        As a reader sees it in print.
    study : str
        The experiment that makes it anew.
    table : str
        The table with its figures; empty if it exists as a picture only, and is judged by what the
        text reads from it.
    n_data : int
        How many data sets it has in the paper.
    published : tuple of str
        Where the paper's cells are, as in `published_figure`; below that, by data set.
    exact : bool
        Whether figures must come out as printed.
    where : dict
        Which records of the table it has.
    """

    title: str
    study: str
    table: str = ""
    n_data: int = 7
    published: tuple[str, ...] = ()
    exact: bool = False
    where: Values = field(default_factory=dict)


ITEMS = (
    Item("Table 2", "datasets", "datasets", 6, exact=True),
    Item("Table 3", "inductive", "inductive-accuracy", published=("inductive", "accuracy")),
    Item("Table 4", "inductive", "inductive-hamming", published=("inductive", "hamming")),
    Item(
        "Table 5", "transductive", "transductive-accuracy",
        published=("transductive", "accuracy"),
    ),
    Item("Table 6", "transductive", "transductive-hamming", published=("transductive", "hamming")),
    Item("Figure 8", "training-size", n_data=6),
    Item("Figure 9", "training-size", n_data=1),
    Item("Table 7", "bag-level", "bag-level-measure", published=("bag-level",)),
    Item("Table 8", "kernel", "kernel", published=("kernel",)),
    Item("Table 9", "complexity", "complexity", exact=True),
    Item(
        "Table 10", "pruning", "pruning-ratio", 4, exact=True,
        where={"of": "counted steps of FAST"},
    ),
    Item("Figure 10", "pruning", n_data=3),
    Item("Figure 11", "sampling", n_data=3),
    Item("Figure 12", "dictionary", n_data=3),
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What became of a table or figure, and the figures that say so."""

    item: Item
    verdict: str
    why: str


def judge_item(
    item: Item,
    recorded: Recorded,
    judgements: Sequence[Judgement],
    differences: Sequence[Difference],
) -> Verdict:
    """Judge a table or figure of the paper."""
    if not item.table:
        return of_readings(item, judgements)
    if item.exact:
        return of_counts(item, recorded)
    return of_cells(item, recorded, differences)


def of_readings(item: Item, judgements: Sequence[Judgement]) -> Verdict:
    """Judge a picture by what the paper's text reads from it."""
    found = [each.verdict for each in judgements if each.claim["on"] == item.title]
    checked = [each for each in found if each not in (UNKNOWN, NOT_MADE)]
    if not checked:
        return Verdict(
            item, next(iter(found), NOT_MADE), "Its data are not here." * (UNKNOWN in found)
        )
    whole = checked.count(HOLDS)
    verdict = REPRODUCED if whole == len(checked) else IN_PART if whole else NOT
    return Verdict(
        item, verdict,
        f"The paper has it as a picture. Of {len(checked)} readings in its text that can be "
        f"checked {whole} hold.",
    )  # fmt: skip


def of_counts(item: Item, recorded: Recorded) -> Verdict:
    """Judge a table of counts: they come out as printed, or not."""
    place = {"study": item.study, "table": item.table, **item.where}
    found = [each for each in recorded.find(place) if each["difference"] is not None]
    if not found:
        return Verdict(item, NOT_MADE, "")
    n_equal = sum(abs(each["difference"]) < AS_PRINTED for each in found)
    verdict = REPRODUCED if n_equal == len(found) else IN_PART if n_equal else NOT
    return Verdict(
        item, verdict, f"{n_equal} of {len(found)} figures as printed; {on_data(found, item)}."
    )


def of_cells(item: Item, recorded: Recorded, differences: Sequence[Difference]) -> Verdict:
    """Judge a table of percentages by how near its cells are, and by who is the best."""
    found = cells(recorded, item.study, item.table)
    if not found:
        return Verdict(item, NOT_MADE, "")
    near = [abs(cell.record["difference"]) <= NEAR for cell in found]
    plain = [cell for cell in found if cell.row in NOT_TUNED]
    unexplained = {each.cell.key for each in differences if each.explained_by == UNEXPLAINED}
    settled = [cell.key not in unexplained for cell in plain]
    farthest = max((cell.record for cell in found), key=lambda each: abs(each["difference"]))
    share = sum(near) / len(near)
    plan, _ = read_plan(recorded.out / item.study)
    n_published = sum(n_cells(published_figure(*item.published, name)) for name in plan.data)
    if len(found) < n_published:
        verdict = UNFINISHED
    elif share >= ENOUGH and all(settled):
        verdict = REPRODUCED
    else:
        verdict = IN_PART if share >= SOME else NOT
    return Verdict(
        item, verdict,
        (f"{len(found)} of {n_published} cells are there. " if verdict == UNFINISHED else "")
        + f"{sum(near)} of {len(near)} cells within {NEAR:g} points; of {', '.join(NOT_TUNED)} "
        f"{sum(settled)} of {len(settled)} so or explained. The largest difference is "
        f"{farthest['difference']:+.1f} ({farthest['method']}, {farthest['data']}). "
        f"{on_the_best(found)}; {on_data([cell.record for cell in found], item)}.",
    )  # fmt: skip


def n_cells(figures: Values) -> int:
    """Count the published figures of a data set, by method and maybe by measure.

    Examples
    --------
    >>> n_cells({"mlr": {"mean": 72.3}, "sim": {"mean": 62.7, "std": 4.1}})
    2
    """
    return 1 if "mean" in figures else sum(map(n_cells, figures.values()))


def on_data(records: Iterable[Values], item: Item) -> str:
    """Say on how many of the paper's data sets."""
    return f"{len({each['data'] for each in records})} of {item.n_data} data sets"


def on_the_best(found: Sequence[Cell]) -> str:
    """Say how often the method that is best is the same as in the paper."""
    outside = {METHODS[name].title for name in OUTSIDE}
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in found:
        if cell.row not in outside:
            groups.setdefault((cell.record["data"], cell.measure), []).append(cell)

    def best(group: Sequence[Cell], column: str) -> set[str]:
        sign = 1 if HIGHER_IS_BETTER[group[0].measure] else -1
        highest = max(sign * cell.record[column] for cell in group)
        return {cell.row for cell in group if sign * cell.record[column] == highest}

    same = sum(bool(best(each, "ours") & best(each, "published")) for each in groups.values())
    return f"The best is who is the best in the paper in {same} of {len(groups)} comparisons"


def verdicts_section(
    recorded: Recorded, judgements: Sequence[Judgement], differences: Sequence[Difference]
) -> str:
    """Write the table of verdicts, in Markdown."""
    found = [judge_item(item, recorded, judgements, differences) for item in ITEMS]
    rows = [
        f"| [{each.item.title}](#{each.item.study}) | {each.verdict} | {each.why} |"
        for each in found
    ]
    return "\n".join(
        [
            "## Verdicts",
            "",
            f"A table is *{REPRODUCED}* where at least {100 * ENOUGH:g} % of its cells are within "
            f"{NEAR:g} points and those of {', '.join(NOT_TUNED)} all are or are explained by an "
            f"experiment on this page; *{IN_PART}* from {100 * SOME:g} % on. A figure, which the "
            "paper has as a picture only, is judged by what its text reads from it. Table 1 and "
            "Figures 1 to 7 are notation and drawings: there is nothing to reproduce.",
            "",
            "| | | |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
