"""Figures of Tables 3 to 8, judged one by one, and lists of those that are not the paper's."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .explanations import (
    EXPLAINED,
    LONGER,
    OPEN,
    REPRODUCED,
    TIED,
    Cell,
    judge_cell,
    scatter_p_value,
    settings_alone,
)
from .recorded import Recorded
from .statistics import SIGNIFICANT, words
from .tables import DATA, NEAR, markdown_table

#: Tables 3 to 8, and the tables of ours that are compared with them. The paper does not say by what
#: Table 7 was tuned: of the two readings the one counts that is nearer to it.
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
    """A figure of a table of the paper with ours: its status, and why.

    `within_scatter` says of one that is open whether it is no further away than chance takes such
    means, by a test at 95 %. That does not explain it.
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


def near(findings: Sequence[Finding]) -> str:
    """Write how many figures are reproduced, of how many; nothing if there are none."""
    n_near = sum(each.status == REPRODUCED for each in findings)
    return f"{n_near} of {len(findings)}" if findings else ""


def rule_of_words() -> str:
    """Write what the three words mean."""
    return (
        f"*{REPRODUCED.capitalize()}*: within {NEAR:g} points of the paper's figure, before "
        f"rounding. *{EXPLAINED.capitalize()}*: the paper leaves one cause open, and one "
        "experiment with it takes the figure that near, at least halves the difference, and takes "
        "no other figure of that method in the table away from the paper's. "
        f"*{OPEN.capitalize()}*: all others. *Scatter*: an open figure that is no further from the "
        "paper's than means over other folds or other draws of letters lie apart, by a t-test "
        "(95 %, uncorrected). That neither rules a difference out nor explains it."
    )


#: What is known of what stays open, where the tables cannot say it.
KNOWN = {
    "MLR": f"on HJA, within {NEAR:g} points after 100 steps; the paper has 50",
    "SLR": "on HJA, the same as MLR",
    "SIM": "no published code",
    "MIMLfast": "a solver of ours, a sampled grid, and a guessed number of epochs",
    "LSB-CMM": "an inference of ours",
    "MIMLNN": "the paper names neither the scaling of features nor the distance between bags",
    "dummy": "no constant answer has the published one-error on HJA",
}


def open_section(findings: Sequence[Finding]) -> str:
    """Write what is open, by method, in Markdown."""
    still = [each for each in findings if each.status == OPEN]
    rows = []
    for method in dict.fromkeys(each.cell.row for each in still):
        of_method = [each for each in still if each.cell.row == method]
        record = max(
            (each.cell.record for each in of_method), key=lambda each: abs(each["difference"])
        )
        rows.append(
            [
                method, f"{len(of_method)} of {sum(e.cell.row == method for e in findings)}",
                sum(each.within_scatter for each in of_method),
                f"{record['difference']:+.1f} ({record['measure'].replace('_', ' ')}, "
                f"{DATA[record['data']]})",
                KNOWN.get(method, ""),
            ]
        )  # fmt: skip
    header = ["", "open", "scatter", "largest difference", "known"]
    return f"## Open figures by method\n\n{markdown_table(header, rows)}\n"


def differences_list(findings: Sequence[Finding]) -> str:
    """Write the list of all figures that are not reproduced, in Markdown."""
    listed = {each.cell.key: each for each in findings if each.status != REPRODUCED}
    rows = [
        [
            f"[{each.table}](#{cell.study})", DATA[cell.record["data"]], cell.row,
            words(cell.measure), f"{cell.record['ours']:.1f}", f"{cell.record['published']:.1f}",
            f"{cell.record['difference']:+.1f}",
            f"{each.status}{', scatter' * each.within_scatter}", each.why,
        ]
        for each in sorted(listed.values(), key=lambda each: each.status != EXPLAINED)
        for cell in [each.cell]
    ]  # fmt: skip
    header = [
        "table", "data", "method", "measure", "ours", "published", "difference", "", "known",
    ]  # fmt: skip
    return "\n\n".join(
        [
            "# Every figure that differs from the paper's",
            f"{counted(findings)}, of {len(findings)} figures of Tables 3 to 8. A figure that two "
            f"tables of the paper print alike is listed once. {rule_of_words()}",
            "The last column has what else is known: more steps than the paper has, another "
            f"tuning, settings within {TIED:g} points of the best Hamming loss that reach both "
            "sides of the published figure, or how a rival was built.",
            markdown_table(header, rows),
            "",
        ]
    )


def settings_alone_section(recorded: Recorded) -> str:
    """Write what rivals reach at some of their settings alone, in Markdown."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for study, table in ALONE:
        for cell in cells(recorded, study, table):
            for alone in settings_alone(recorded, cell):
                where = (f"[{table}](#{study})", cell.row, alone.entry["settings"])
                mark = " *" if alone.is_chosen else ""
                rows.setdefault(where, {})[cell.record["data"]] = (
                    f"{alone.reached:.1f}{mark} ({cell.record['published']:.1f})"
                )
    return "\n\n".join(
        [
            "## Rivals at some of their settings alone",
            "The best of these settings on the folds that tuned them, each fold on one draw of the "
            "letters. In brackets: published. Marked *: the best of all settings is among them.",
            markdown_table(
                ["table", "method", "settings", *DATA.values()],
                [[*where, *(row.get(name, "") for name in DATA)] for where, row in rows.items()],
            ),
            "",
        ]
    )
