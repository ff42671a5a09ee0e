"""Lists for the page: figures that are not the paper's, and things of which there are several."""

from collections import Counter
from dataclasses import dataclass

from .comparison import words
from .explanations import (
    LONGER,
    NEAR,
    NEAR_TUNED,
    NOT_TUNED,
    RULES,
    TIED,
    UNEXPLAINED,
    Cell,
    explain,
    known_explanations,
)
from .recorded import Recorded

#: Tables whose figures are percentages beside the paper's.
TABLES = {
    "inductive": ("inductive-accuracy", "inductive-hamming"),
    "transductive": ("transductive-accuracy", "transductive-hamming"),
    "bag-level": ("bag-level-measure", "bag-level-hamming"),
    "kernel": ("kernel",),
    "dictionary": ("dictionary-accuracy",),
}


@dataclass(frozen=True)
class Difference:
    """A figure that is not near the paper's, by what that is explained, and why it is so."""

    cell: Cell
    explained_by: str
    why: str


def cells(recorded: Recorded, study: str, table: str) -> list[Cell]:
    """Return the cells of a table that the paper has too."""
    longer = [title for titles in LONGER.values() for title in titles]
    found = [
        Cell(study, table, record)
        for record in recorded.records(study, table)
        if record.get("difference") is not None
    ]
    return [cell for cell in found if cell.row not in longer]


def all_differences(recorded: Recorded) -> list[Difference]:
    """List the figures that are not near the paper's, each with what explains it."""
    found = {}
    for study, tables in TABLES.items():
        for table in tables:
            for cell in cells(recorded, study, table):
                if not cell.is_near and cell.key not in found:
                    found[cell.key] = Difference(cell, *explain(recorded, cell))
    return list(found.values())


def differences_section(found: list[Difference]) -> str:
    """Write the list of differences, in Markdown."""
    kinds = Counter(each.explained_by for each in found)
    counts = ", ".join(
        f"{kinds[kind]} by {kind}" if kind in RULES else f"{kinds[kind]} {kind}"
        for kind in (*RULES, UNEXPLAINED)
        if kinds[kind]
    )
    rows = [
        f"| [{cell.table}](#{cell.study}) | {cell.record['data']} | {cell.row} | "
        f"{words(cell.measure)} | {cell.record['ours']:.1f} | {cell.record['published']:.1f} | "
        f"{cell.record['difference']:+.1f} | {each.why} |"
        for each in found
        for cell in [each.cell]
    ]
    return "\n".join(
        [
            "## What differs, and why",
            "",
            "Every figure of Tables 3 to 8, and of the dictionary's curves at their end, that is "
            f"more than {NEAR_TUNED:g} points from the paper's ({', '.join(NOT_TUNED)}: {NEAR:g} "
            f"points), before rounding: {len(found)}; {counts}. A figure that two tables of an "
            "experiment share is listed once.",
            "",
            "A difference counts as explained, in this order: where more steps come that near to "
            "the paper, and leave no more than half of it; on the letters, where it is within two "
            "deviations of the means of single draws; where the tuning that the paper may have "
            "used, or the scalings or values that it has, come that near and leave no more than "
            f"half; where settings within {TIED:g} points of the best Hamming loss reach both "
            "sides of the published figure; where it is within two deviations of means over folds "
            "drawn anew, at the same setting; where the best kernel width explains it; and where "
            "an experiment named in the row does.",
            "",
            "| table | data | method | measure | ours | published | difference | why |",
            "|---|---|---|---|---:|---:|---:|---|",
            *rows,
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
