"""Lists for the pages: figures that are not the paper's, and things of which there are several."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unbag.model_selection.statistics import SIGNIFICANT, words

from .explanations import (
    EXPLAINED,
    LONGER,
    NEAR,
    OPEN,
    REPRODUCED,
    TIED,
    Cell,
    judge_cell,
    known_explanations,
    scatter_p_value,
    settings_alone,
)
from .recorded import Recorded

#: Tables 3 to 8, and the tables of ours whose figures stand beside theirs. The paper does not say
#: by what Table 7 was tuned: of the two readings the one counts that is nearer to it.
TABLES = {
    "Table 3": ("inductive", "inductive-accuracy"),
    "Table 4": ("inductive", "inductive-hamming"),
    "Table 5": ("transductive", "transductive-accuracy"),
    "Table 6": ("transductive", "transductive-hamming"),
    "Table 7": ("bag-level", "bag-level-measure"),
    "Table 8": ("kernel", "kernel"),
}
#: The other reading of Table 7.
OTHER_READING = ("bag-level", "bag-level-hamming")
#: Those in which rivals are looked at by some of their settings alone.
ALONE = [place for place in TABLES.values() if place[0] != "bag-level"]


@dataclass(frozen=True)
class Finding:
    """What became of a figure of the paper.

    Parameters
    ----------
    table : str
        The paper's, as "Table 3".
    cell : Cell
        Ours beside it.
    status : str
        `REPRODUCED`, `EXPLAINED` or `OPEN`.
    why : str
        What explains it, or what is known of it.
    within_scatter : bool
        Whether one that is open is no further away than chance takes such means, by a test at 95 %.
        That is no explanation.
    """

    table: str
    cell: Cell
    status: str
    why: str
    within_scatter: bool = False


def cells(recorded: Recorded, study: str, table: str) -> list[Cell]:
    """Return the cells of a table that the paper has too."""
    longer = [title for titles in LONGER.values() for title in titles]
    found = [
        Cell(study, table, record)
        for record in recorded.records(study, table)
        if record.get("difference") is not None
    ]
    return [cell for cell in found if cell.row not in longer]


def all_findings(recorded: Recorded) -> list[Finding]:
    """Judge every figure of Tables 3 to 8 that there is."""
    judged: dict[tuple[object, ...], tuple[str, str]] = {}
    found = []
    for title, (study, table) in TABLES.items():
        for cell in cells(recorded, study, table):
            if cell.key not in judged:
                judged[cell.key] = judge_cell(recorded, cell)
            found.append(Finding(title, cell, *judged[cell.key]))
    return [
        replace(each, within_scatter=(scatter_p_value(recorded, each.cell) or 0.0) > SIGNIFICANT)
        if each.status == OPEN
        else each
        for each in found
    ]


def counted(findings: Sequence[Finding]) -> str:
    """Write how many figures have each of the three words.

    Examples
    --------
    >>> cell = Cell("kernel", "kernel", {})
    >>> counted([Finding("Table 8", cell, "open", ""), Finding("Table 8", cell, "reproduced", "")])
    '1 reproduced, 0 explained, 1 open'
    """
    kinds = Counter(each.status for each in findings)
    return ", ".join(f"{kinds[word]} {word}" for word in (REPRODUCED, EXPLAINED, OPEN))


def rule_of_words() -> str:
    """Write what the three words mean."""
    return (
        f"*{REPRODUCED.capitalize()}*: within {NEAR:g} points of the paper's figure, before "
        f"rounding. *{EXPLAINED.capitalize()}*: one cause that the paper leaves open, and one "
        "experiment with it that takes the figure that near, at least halves the difference, and "
        "takes no other figure of that method in the table away from the paper's. "
        f"*{OPEN.capitalize()}*: all else."
    )


def differences_page(findings: Sequence[Finding]) -> str:
    """Write the list of figures that are not reproduced, in Markdown."""
    listed = {each.cell.key: each for each in findings if each.status != REPRODUCED}
    n_open = sum(each.status == OPEN for each in listed.values())
    n_scattered = sum(each.within_scatter for each in listed.values())
    rows = [
        f"| [{each.table}](#{cell.study}) | {cell.record['data']} | {cell.row} | "
        f"{words(cell.measure)} | {cell.record['ours']:.1f} | {cell.record['published']:.1f} | "
        f"{cell.record['difference']:+.1f} | {word(each)} | {each.why} |"
        for each in sorted(listed.values(), key=lambda each: each.status != EXPLAINED)
        for cell in [each.cell]
    ]
    return "\n".join(
        [
            "# What differs from the paper",
            "",
            f"Of {len(findings)} figures of Tables 3 to 8 on the data sets that can be had: "
            f"{counted(findings)}. A figure that two tables of the paper print alike is listed "
            "once here.",
            "",
            rule_of_words(),
            "",
            f"*Scatter*: of the {n_open} open ones that are listed, {n_scattered} are no further "
            "from the paper's than means over other folds or other draws of letters lie apart, by "
            "a t-test each (95 %, uncorrected; a correction would add more). That neither rules a "
            "difference out nor explains it.",
            "",
            "What else is known stands in the last column: more steps than the paper has, another "
            f"tuning, settings within {TIED:g} points of the best Hamming loss that reach both "
            "sides of the published figure, or how a rival was built.",
            "",
            "| table | data | method | measure | ours | published | difference | | what is known |",
            "|---|---|---|---|---:|---:|---:|---|---|",
            *rows,
            "",
        ]
    )


def word(finding: Finding) -> str:
    """Write the word for a figure, and whether scatter may be all there is to it."""
    return f"{finding.status}{', scatter' * finding.within_scatter}"


def settings_alone_section(recorded: Recorded) -> str:
    """Write what rivals reach at some of their settings alone, in Markdown; empty if nothing."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for study, table in ALONE:
        for cell in cells(recorded, study, table):
            for alone in settings_alone(recorded, cell):
                row = rows.setdefault((study, table, cell.row, alone.entry["settings"]), {})
                mark = " *" if alone.is_chosen else ""
                row[cell.record["data"]] = (
                    f"{alone.reached:.1f}{mark} ({cell.record['published']:.1f})"
                )
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    if not rows:
        return ""
    return "\n".join(
        [
            "## Rivals at some of their settings alone",
            "",
            "The best of these settings on the folds that tuned them, each fold on one draw of the "
            "letters. In brackets: published. Marked *: the best of all settings is among "
            "them.",
            "",
            f"| table | method | settings | {' | '.join(names)} |",
            f"|---|---|---|{'---:|' * len(names)}",
            *(
                f"| [{table}](#{study}) | {method} | {settings} | "
                + " | ".join(row.get(name, "") for name in names)
                + " |"
                for (study, table, method, settings), row in rows.items()
            ),
            "",
        ]
    )


def same_section(recorded: Recorded) -> str:
    """Write what several experiments have figures of, in Markdown; empty if nothing."""
    parts = []
    for entry in known_explanations()["same"]:
        found = {}
        for place in entry["of"]:
            asked = {key: value for key, value in place.items() if key != "how"}
            for record in recorded.find(asked):
                row = found.setdefault((place["study"], place["how"]), {})
                row[record["data"]] = record["ours"]
        names = list(dict.fromkeys(name for row in found.values() for name in row))
        if len(found) < 2:
            continue
        parts += [
            f"{entry['thing']}. {entry['why']}",
            "",
            f"| | {' | '.join(names)} |",
            f"|---|{'---:|' * len(names)}",
            *(
                f"| [{study}](#{study}): {how} | "
                + " | ".join(f"{row[name]:.1f}" if name in row else "" for name in names)
                + " |"
                for (study, how), row in found.items()
            ),
            "",
        ]
    if not parts:
        return ""
    intro = "Some things are measured by several experiments, each by its own protocol."
    return "\n".join(["## One thing, several figures", "", intro, "", *parts])
