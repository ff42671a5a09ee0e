"""A verdict on each table and figure of the paper, from what experiments have found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .claims import HOLDS, MOSTLY, UNKNOWN, Judgement
from .claims import counted as counted_claims
from .comparison import OUTSIDE
from .differences import OTHER_READING, TABLES, Finding, cells, counted, rule_of_words
from .explanations import OPEN, REPRODUCED, Cell, settings_alone
from .methods import METHODS
from .recorded import Recorded
from .statistics import HIGHER_IS_BETTER
from .tables import DATA, NEAR, markdown_table
from .unit import Values

#: Half of the last digit of figures that must come out as printed.
AS_PRINTED = 0.05


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper, on so many data sets.

    The table of ours is empty if the paper has a picture only, which is judged by what the text
    reads from it. The figures of an `exact` one must come out as printed; `where` says which
    records of the table count.
    """

    title: str
    study: str
    table: str = ""
    n_data: int = 7
    exact: bool = False
    where: Values = field(default_factory=dict)


ITEMS = (
    Item("Table 2", "datasets", "datasets", 6, exact=True),
    Item("Table 3", *TABLES["Table 3"]),
    Item("Table 4", *TABLES["Table 4"]),
    Item("Table 5", *TABLES["Table 5"]),
    Item("Table 6", *TABLES["Table 6"]),
    Item("Figure 8", "training-size", n_data=6),
    Item("Figure 9", "training-size", n_data=1),
    Item("Table 7", *TABLES["Table 7"]),
    Item("Table 8", *TABLES["Table 8"]),
    Item("Table 9", "complexity", "complexity", exact=True),
    Item("Table 10", "pruning", "pruning-ratio", 4, exact=True,
         where={"of": "counted steps of FAST"}),
    Item("Figure 10", "pruning", n_data=3),
    Item("Figure 11", "sampling", n_data=3),
    Item("Figure 12", "dictionary", n_data=3),
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A verdict on a table or figure, and the figures behind it."""

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
    checked = [each for each in found if each.verdict != UNKNOWN]
    if not checked:
        return Verdict(item, UNKNOWN, "its data are not here")
    is_good = all(each.verdict in (HOLDS, MOSTLY) for each in checked)
    return Verdict(
        item, REPRODUCED if is_good else OPEN,
        f"{len(checked)} claims that the text reads from it: {counted_claims(checked)}",
    )  # fmt: skip


def of_counts(item: Item, recorded: Recorded) -> Verdict:
    """Judge a table of counts: they come out as printed, or not."""
    found = counts_of(item, recorded)
    n_equal = sum(map(is_as_printed, found))
    return Verdict(
        item, REPRODUCED if n_equal == len(found) else OPEN,
        f"{n_equal} of {len(found)} figures as printed; {on_data(found, item)}",
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
    found = [each.cell for each in findings]
    beyond = dict.fromkeys(
        each.cell.row
        for each in findings
        if each.status == REPRODUCED and is_far_at_published_settings(recorded, each.cell)
    )
    farthest = max((cell.record for cell in found), key=lambda each: abs(each["difference"]))
    parts = [
        counted(findings),
        f"some reproduced only outside the paper's grid ({', '.join(beyond)})" if beyond else "",
        f"largest difference {farthest['difference']:+.1f} ({farthest['method']}, "
        f"{DATA[farthest['data']]})",
        on_the_best(found),
        other_reading(recorded) if item.study == OTHER_READING[0] else "",
        on_data([cell.record for cell in found], item),
    ]
    is_open = any(each.status == OPEN for each in findings)
    return Verdict(item, OPEN if is_open else REPRODUCED, "; ".join(filter(None, parts)))


def other_reading(recorded: Recorded) -> str:
    """Say how near the other reading of Table 7 comes, as the paper leaves two."""
    other = cells(recorded, *OTHER_READING)
    n_near = sum(cell.is_near for cell in other)
    return f"tuned by each measure (by Hamming loss, {n_near} of {len(other)} are reproduced)"


def is_far_at_published_settings(recorded: Recorded, cell: Cell) -> bool:
    """Return whether at the paper's own settings a figure would not be near the paper's."""
    return any(
        not each.is_chosen and abs(each.reached - cell.record["published"]) > NEAR
        for each in settings_alone(recorded, cell)
        if each.entry.get("published", False)
    )


def on_data(records: Iterable[Values], item: Item) -> str:
    """Say on how many of the paper's data sets."""
    return f"{len({each['data'] for each in records})} of {item.n_data} data sets"


def on_the_best(found: Sequence[Cell]) -> str:
    """Say how often the method that is best is the same as in the paper, of several that compete.

    Nothing is said where no two of them do. A comparison is a table, a data set and a measure.
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
    same = sum(bool(best(each, "ours") & best(each, "published")) for each in contests)
    return f"the same method is best in {same} of {len(contests)} comparisons" if contests else ""


def verdicts_section(
    recorded: Recorded, judgements: Sequence[Judgement], findings: Sequence[Finding]
) -> str:
    """Write the table of verdicts, in Markdown."""
    rows = [
        [f"[{each.item.title}](#{each.item.study})", each.verdict, each.why]
        for item in ITEMS
        for each in [judge_item(item, recorded, judgements, findings)]
    ]
    return "\n\n".join(
        [
            "## Table by table",
            f"{rule_of_words()} A table is open as long as one of its figures is. Counts must come "
            "out as printed. A figure, which the paper has as a picture, is judged by the claims "
            "of its text, and open unless all of them hold or mostly hold. Figures "
            "for HJA bird alone are compared with HJA. Table 1 and Figures 1 to 7 are "
            "notation and drawings.",
            markdown_table(["", "verdict", "figures"], rows),
            "",
        ]
    )
