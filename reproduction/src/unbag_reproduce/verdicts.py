"""A verdict on each table and figure of the paper, from what experiments have found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from unbag.model_selection.methods import METHODS
from unbag.model_selection.statistics import HIGHER_IS_BETTER

from .claims import HOLDS, MOSTLY, NOT_MADE, UNKNOWN, Judgement
from .claims import counted as counted_claims
from .comparison import OUTSIDE
from .differences import OTHER_READING, TABLES, Finding, cells, counted, rule_of_words
from .explanations import EXPLAINED, NEAR, OPEN, REPRODUCED, Cell, settings_alone
from .published import published_figure
from .recorded import Recorded
from .reproduce import read_plan
from .unit import Values

UNFINISHED = "not finished"
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
        The table of ours with its figures; empty if it exists as a picture only, and is judged by
        what the text reads from it.
    n_data : int
        How many data sets it has in the paper.
    published : tuple of str
        Where the paper's cells are, as in `published_figure`; below that, by data set.
    exact : bool
        Whether figures must come out as printed.
    on_bird : bool
        Whether it has HJA bird, for which HJA union stands here.
    where : dict
        Which records of the table it has.
    """

    title: str
    study: str
    table: str = ""
    n_data: int = 7
    published: tuple[str, ...] = ()
    exact: bool = False
    on_bird: bool = False
    where: Values = field(default_factory=dict)


ITEMS = (
    Item("Table 2", "datasets", "datasets", 6, exact=True, on_bird=True),
    Item("Table 3", *TABLES["Table 3"], published=("inductive", "accuracy")),
    Item("Table 4", *TABLES["Table 4"], published=("inductive", "hamming")),
    Item("Table 5", *TABLES["Table 5"], published=("transductive", "accuracy")),
    Item("Table 6", *TABLES["Table 6"], published=("transductive", "hamming")),
    Item("Figure 8", "training-size", n_data=6, on_bird=True),
    Item("Figure 9", "training-size", n_data=1),
    Item("Table 7", *TABLES["Table 7"], published=("bag-level",)),
    Item("Table 8", *TABLES["Table 8"], published=("kernel",)),
    Item("Table 9", "complexity", "complexity", exact=True),
    Item(
        "Table 10", "pruning", "pruning-ratio", 4, exact=True, on_bird=True,
        where={"of": "counted steps of FAST"},
    ),
    Item("Figure 10", "pruning", n_data=3, on_bird=True),
    Item("Figure 11", "sampling", n_data=3, on_bird=True),
    Item("Figure 12", "dictionary", n_data=3, on_bird=True),
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
    findings: Sequence[Finding],
) -> Verdict:
    """Judge a table or figure of the paper."""
    if not item.table:
        return of_readings(item, judgements)
    if item.exact:
        return of_counts(item, recorded)
    return of_cells(item, recorded, [each for each in findings if each.table == item.title])


def of_readings(item: Item, judgements: Sequence[Judgement]) -> Verdict:
    """Judge a picture by what the paper's text reads from it."""
    found = [each for each in judgements if each.claim["on"] == item.title]
    checked = [each for each in found if each.verdict not in (UNKNOWN, NOT_MADE)]
    if not checked:
        verdict = found[0].verdict if found else NOT_MADE
        return Verdict(item, verdict, "Its data are not here." * (verdict == UNKNOWN))
    holding = [each for each in checked if each.verdict in (HOLDS, MOSTLY)]
    stand_in = " HJA union stands for HJA bird." * item.on_bird
    return Verdict(
        item, REPRODUCED if len(holding) == len(checked) else OPEN,
        f"A picture. Of the readings in its text {len(checked)} can be checked: "
        f"{counted_claims(checked)}.{stand_in}",
    )  # fmt: skip


def of_counts(item: Item, recorded: Recorded) -> Verdict:
    """Judge a table of counts: they come out as printed, or not."""
    found = counts_of(item, recorded)
    if not found:
        return Verdict(item, NOT_MADE, "")
    n_equal = sum(map(is_as_printed, found))
    return Verdict(
        item, REPRODUCED if n_equal == len(found) else OPEN,
        f"{n_equal} of {len(found)} figures as printed; {on_data(found, item)}.",
    )  # fmt: skip


def counts_of(item: Item, recorded: Recorded) -> list[Values]:
    """Return the counts of a table that the paper has too."""
    where = {"study": item.study, "table": item.table, **item.where}
    return [each for each in recorded.find(where) if each["difference"] is not None]


def is_as_printed(record: Values) -> bool:
    """Return whether a count is the paper's."""
    return abs(record["difference"]) < AS_PRINTED


def of_cells(item: Item, recorded: Recorded, findings: Sequence[Finding]) -> Verdict:
    """Judge a table of percentages: reproduced where no figure is open."""
    if not findings:
        return Verdict(item, NOT_MADE, "")
    found = [each.cell for each in findings]
    plan, _ = read_plan(recorded.out / item.study)
    n_published = sum(n_cells(published_figure(*item.published, name)) for name in plan.data)
    is_settled = all(each.status in (REPRODUCED, EXPLAINED) for each in findings)
    beyond = [
        each.cell
        for each in findings
        if each.status == REPRODUCED and is_far_at_published_settings(recorded, each.cell)
    ]
    farthest = max((cell.record for cell in found), key=lambda each: abs(each["difference"]))
    n_missing = n_published - len(found)
    parts = [
        f"{len(found)} of {n_published} figures are there." if n_missing else "",
        f"{len(found)} figures: {counted(findings)}"
        + (
            f"; {len(beyond)} reproduced only outside the paper's grid "
            f"({', '.join(dict.fromkeys(cell.row for cell in beyond))})"
            if beyond
            else ""
        )
        + ".",
        f"The largest difference is {farthest['difference']:+.1f} ({farthest['method']}, "
        f"{farthest['data']}).",
        on_the_best(found),
        other_reading(item, recorded),
        f"{on_data([cell.record for cell in found], item)}.",
    ]
    verdict = UNFINISHED if n_missing else REPRODUCED if is_settled else OPEN
    return Verdict(item, verdict, " ".join(filter(None, parts)))


def other_reading(item: Item, recorded: Recorded) -> str:
    """Say how near the other reading of a table comes, where the paper leaves two."""
    if TABLES.get(item.title, ("",))[0] != OTHER_READING[0]:
        return ""
    other = cells(recorded, *OTHER_READING)
    if not other:
        return ""
    n_near = sum(cell.is_near for cell in other)
    return (
        "Tuned by each measure, which the paper does not say; tuned by Hamming loss, "
        f"{n_near} of {len(other)} are reproduced."
    )


def is_far_at_published_settings(recorded: Recorded, cell: Cell) -> bool:
    """Return whether at the paper's own settings a figure would not be near the paper's."""
    return any(
        not each.is_chosen and abs(each.reached - cell.record["published"]) > NEAR
        for each in settings_alone(recorded, cell)
        if each.entry.get("published", False)
    )


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
    names = {each["data"] for each in records}
    stand_in = ", HJA union for HJA bird" * (item.on_bird and "hja-union" in names)
    return f"{len(names)} of {item.n_data} data sets{stand_in}"


def on_the_best(found: Sequence[Cell]) -> str:
    """Say how often the method that is best is the same as in the paper, of several that compete.

    Nothing is said where no two of them do.
    """
    outside = {METHODS[name].title for name in OUTSIDE}
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in found:
        if cell.row not in outside:
            where = (cell.table, cell.record["data"], cell.measure)
            groups.setdefault(where, []).append(cell)

    def best(group: Sequence[Cell], column: str) -> set[str]:
        sign = 1 if HIGHER_IS_BETTER[group[0].measure] else -1
        highest = max(sign * cell.record[column] for cell in group)
        return {cell.row for cell in group if sign * cell.record[column] == highest}

    contests = [each for each in groups.values() if len({cell.row for cell in each}) > 1]
    if not contests:
        return ""
    same = sum(bool(best(each, "ours") & best(each, "published")) for each in contests)
    return (
        f"The same method comes first as in the paper in {same} of {len(contests)} comparisons (a "
        "table, a data set and a measure each)."
    )


def verdicts_section(
    recorded: Recorded, judgements: Sequence[Judgement], findings: Sequence[Finding]
) -> str:
    """Write the table of verdicts, in Markdown."""
    found = [judge_item(item, recorded, judgements, findings) for item in ITEMS]
    rows = [
        f"| [{each.item.title}](#{each.item.study}) | {each.verdict} | {each.why} |"
        for each in found
    ]
    return "\n".join(
        [
            "## Table by table",
            "",
            f"{rule_of_words()} A table is open as long as one of its figures is. Counts must come "
            "out as printed. A figure, which the paper has as a picture only, is judged by what "
            "its text reads from it, and open unless all of that holds or mostly holds. Table 1 "
            "and Figures 1 to 7 are notation and drawings: there is nothing to reproduce.",
            "",
            "| | | |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
