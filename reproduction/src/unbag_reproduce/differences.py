"""Lists for the page: figures that are not the paper's, and things of which there are several."""

from collections import Counter
from dataclasses import dataclass

from unbag.model_selection.statistics import words

from .explanations import (
    CONJECTURE,
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
    settings_alone,
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


#: Those in which rivals are looked at by some of their settings alone.
ALONE = [(study, table) for study, tables in TABLES.items() for table in tables
         if study in ("inductive", "transductive", "kernel")]  # fmt: skip


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
        f"{kinds[kind]} {kind}" if kind == UNEXPLAINED else f"{kinds[kind]} by {kind}"
        for kind in (*RULES, CONJECTURE, UNEXPLAINED)
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
            "drawn anew (of the letters too, where they are drawn), at the same setting; where the "
            "best kernel width comes that near, or leaves what one of these explains; and where "
            "what the row names shows that nobody's figure of the kind can be the published one. A "
            "conjecture fits, without more evidence. A scaling may explain one figure and miss "
            "others, which the table below has of Tables 3 to 6 and 8; so may a way to tune: the "
            "paper had one, and by either reading the rows that need the other stay open.",
            "",
            "| table | data | method | measure | ours | published | difference | why |",
            "|---|---|---|---|---:|---:|---:|---|",
            *rows,
            "",
        ]
    )


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
            "### Rivals at some of their settings alone",
            "",
            "The best of these settings, where they are tuned: with folds, on one draw of the "
            "letters each. In brackets: published. Marked *: the best of all settings is among "
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
