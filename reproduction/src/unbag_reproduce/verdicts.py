"""A verdict on each table and figure of the paper, from what experiments have found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from unbag.model_selection.methods import METHODS
from unbag.model_selection.statistics import HIGHER_IS_BETTER

from .claims import HOLDS, MOSTLY, NOT_MADE, UNKNOWN, Judgement, counted
from .comparison import OUTSIDE
from .differences import Difference, cells
from .explanations import NEAR, NOT_TUNED, RULES, Cell, settings_alone
from .published import published_figure
from .recorded import Recorded
from .reproduce import read_plan
from .unit import Values

REPRODUCED, IN_PART, NOT = "reproduced", "in part", "not reproduced"
UNFINISHED = "not finished"
#: Of several tables, the one that comes first here counts.
WORST_FIRST = (NOT_MADE, UNFINISHED, NOT, IN_PART, REPRODUCED)
#: Shares of the cells that must be near the paper, and of the readings that must hold.
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
    tables : tuple of str
        The tables with its figures: several where the paper does not say how it tuned; none if it
        exists as a picture only, and is judged by what the text reads from it.
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
    tables: tuple[str, ...] = ()
    n_data: int = 7
    published: tuple[str, ...] = ()
    exact: bool = False
    on_bird: bool = False
    where: Values = field(default_factory=dict)


ITEMS = (
    Item("Table 2", "datasets", ("datasets",), 6, exact=True, on_bird=True),
    Item("Table 3", "inductive", ("inductive-accuracy",), published=("inductive", "accuracy")),
    Item("Table 4", "inductive", ("inductive-hamming",), published=("inductive", "hamming")),
    Item(
        "Table 5", "transductive", ("transductive-accuracy",),
        published=("transductive", "accuracy"),
    ),
    Item(
        "Table 6", "transductive", ("transductive-hamming",),
        published=("transductive", "hamming"),
    ),
    Item("Figure 8", "training-size", n_data=6, on_bird=True),
    Item("Figure 9", "training-size", n_data=1),
    Item(
        "Table 7", "bag-level", ("bag-level-measure", "bag-level-hamming"),
        published=("bag-level",),
    ),
    Item("Table 8", "kernel", ("kernel",), published=("kernel",)),
    Item("Table 9", "complexity", ("complexity",), exact=True),
    Item(
        "Table 10", "pruning", ("pruning-ratio",), 4, exact=True, on_bird=True,
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
    differences: Sequence[Difference],
) -> Verdict:
    """Judge a table or figure of the paper."""
    if not item.tables:
        return of_readings(item, judgements)
    if item.exact:
        return of_counts(item, recorded)
    return of_cells(item, recorded, differences)


def of_readings(item: Item, judgements: Sequence[Judgement]) -> Verdict:
    """Judge a picture by what the paper's text reads from it."""
    found = [each for each in judgements if each.claim["on"] == item.title]
    checked = [each for each in found if each.verdict not in (UNKNOWN, NOT_MADE)]
    if not checked:
        verdict = found[0].verdict if found else NOT_MADE
        return Verdict(item, verdict, "Its data are not here." * (verdict == UNKNOWN))
    share = sum(each.verdict in (HOLDS, MOSTLY) for each in checked) / len(checked)
    stand_in = " HJA union stands for HJA bird." * item.on_bird
    return Verdict(
        item, by_share(share),
        f"A picture. Of the readings in its text {len(checked)} can be checked: "
        f"{counted(checked)}.{stand_in}",
    )  # fmt: skip


def by_share(share: float) -> str:
    """Return the verdict on a share of cells that are near the paper, or of readings that hold.

    Examples
    --------
    >>> [by_share(share) for share in (0.95, 0.5, 0.4)]
    ['reproduced', 'in part', 'not reproduced']
    """
    return REPRODUCED if share >= ENOUGH else IN_PART if share >= SOME else NOT


def of_counts(item: Item, recorded: Recorded) -> Verdict:
    """Judge a table of counts: they come out as printed, or not."""
    found = [
        each
        for table in item.tables
        for each in recorded.find({"study": item.study, "table": table, **item.where})
        if each["difference"] is not None
    ]
    if not found:
        return Verdict(item, NOT_MADE, "")
    n_equal = sum(abs(each["difference"]) < AS_PRINTED for each in found)
    verdict = REPRODUCED if n_equal == len(found) else IN_PART if n_equal else NOT
    return Verdict(
        item, verdict, f"{n_equal} of {len(found)} figures as printed; {on_data(found, item)}."
    )


def of_cells(item: Item, recorded: Recorded, differences: Sequence[Difference]) -> Verdict:
    """Judge percentages by how near they are, and by who is the best; the worst table counts."""
    judged = []
    for table in item.tables:
        found = cells(recorded, item.study, table)
        verdict, why = judge_cells(item, found, recorded, differences)
        tuned_by = next((cell.record.get("tuned_by") for cell in found), None)
        label = f"Tuned by {tuned_by}: " if tuned_by and len(item.tables) > 1 else ""
        judged.append((WORST_FIRST.index(verdict), f"{label}{why}"))
    return Verdict(item, WORST_FIRST[min(judged)[0]], " ".join(why for _, why in judged).strip())


def judge_cells(
    item: Item, found: Sequence[Cell], recorded: Recorded, differences: Sequence[Difference]
) -> tuple[str, str]:
    """Judge the cells of one table, and say why."""
    if not found:
        return NOT_MADE, ""
    near = [abs(cell.record["difference"]) <= NEAR for cell in found]
    plain = [cell for cell in found if cell.row in NOT_TUNED]
    open_ones = {each.cell.key for each in differences if each.explained_by not in RULES}
    settled = [cell.key not in open_ones for cell in plain]
    beyond = [cell for cell, is_near in zip(found, near, strict=True) if is_near
              and is_far_at_published_settings(recorded, cell)]  # fmt: skip
    farthest = max((cell.record for cell in found), key=lambda each: abs(each["difference"]))
    plan, _ = read_plan(recorded.out / item.study)
    n_published = sum(n_cells(published_figure(*item.published, name)) for name in plan.data)
    verdict = by_share(sum(near) / len(near))
    if len(found) < n_published:
        verdict = UNFINISHED
    elif verdict == REPRODUCED and not all(settled):
        verdict = IN_PART
    return verdict, (
        (f"{len(found)} of {n_published} cells are there. " if verdict == UNFINISHED else "")
        + f"{sum(near)} of {len(near)} cells within {NEAR:g} points"
        + (
            f", {len(beyond)} of them only at settings that the paper lacks "
            f"({', '.join(dict.fromkeys(cell.row for cell in beyond))})"
            if beyond
            else ""
        )
        + "; of "
        f"{', '.join(dict.fromkeys(cell.row for cell in plain))} {sum(settled)} of {len(settled)} "
        "so or explained. The largest difference is "
        f"{farthest['difference']:+.1f} ({farthest['method']}, {farthest['data']}). "
        f"{on_the_best(found)}{on_data([cell.record for cell in found], item)}."
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
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in found:
        if cell.row not in outside:
            groups.setdefault((cell.record["data"], cell.measure), []).append(cell)

    def best(group: Sequence[Cell], column: str) -> set[str]:
        sign = 1 if HIGHER_IS_BETTER[group[0].measure] else -1
        highest = max(sign * cell.record[column] for cell in group)
        return {cell.row for cell in group if sign * cell.record[column] == highest}

    contests = [each for each in groups.values() if len({cell.row for cell in each}) > 1]
    if not contests:
        return ""
    same = sum(bool(best(each, "ours") & best(each, "published")) for each in contests)
    return f"The best is who is the best in the paper in {same} of {len(contests)} comparisons; "


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
            f"experiment on this page; *{IN_PART}* from {100 * SOME:g} % on. Counts must all come "
            "out as printed. Where the paper does not say how it tuned, the worse of two tables of "
            "ours counts. A figure, which the paper has as a picture only, is judged by what its "
            f"text reads from it: *{REPRODUCED}* where at least {100 * ENOUGH:g} % of these claims "
            f"hold or mostly hold, *{IN_PART}* from {100 * SOME:g} % on. Table 1 and Figures 1 to "
            "7 are notation and drawings: there is nothing to reproduce.",
            "",
            "| | | |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
