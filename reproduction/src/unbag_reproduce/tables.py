"""Tables of results next to the published ones: for people as Markdown, for machines as CSV."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from unbag._files import make_folder, write_text
from unbag.compare import Table

from .unit import Values

#: What pages call the data sets of the paper that are here.
DATA = {
    "hja-union": "HJA", "msrcv2": "MSRC v2", "letter-carroll": "Carroll", "letter-frost": "Frost",
}  # fmt: skip
KEY = re.compile(rf"(?<![\w/`-])(?:{'|'.join(DATA)})(?![\w/`-])")
#: The file next to tables that says how they were made.
ABOUT = "about.json"
#: A figure within so many points of the paper's is reproduced.
NEAR = 1.5
#: Corrected p-values that are close to the level of 0.05, on either side.
EDGE = (0.01, 0.1)


def in_names(text: str) -> str:
    """Put the names of data sets in the place of the keys by which commands know them.

    Examples
    --------
    >>> in_names("msrcv2, MLR 54.6 (`--data msrcv2`)")
    'MSRC v2, MLR 54.6 (`--data msrcv2`)'
    """
    return KEY.sub(lambda found: DATA[found[0]], text)


def markdown_table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Write a table in Markdown, all columns to the left.

    Examples
    --------
    >>> print(markdown_table(["", "HJA"], [["MLR", 70.7]]))
    |  | HJA |
    |---|---|
    | MLR | 70.7 |
    """
    lines = [header, *rows]
    text = [f"| {' | '.join(map(str, line))} |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(header), *text[1:]])


def difference(ours: float | None, published: float | None) -> float | None:
    """Subtract the published figure from ours; None where one of them is missing."""
    return None if ours is None or published is None else ours - published


def beside(ours: float | None, published: float | None, **between: float | None) -> Values:
    """Return the entries of a record that compare our figure with the published one.

    Examples
    --------
    >>> beside(71.0, 72.0, std=3.5)
    {'ours': 71.0, 'std': 3.5, 'published': 72.0, 'difference': -1.0}
    """
    return {
        "ours": ours, **between, "published": published, "difference": difference(ours, published),
    }  # fmt: skip


def cell(
    ours: float, std: float | None = None, published: float | None = None, bold: bool = False
) -> str:
    """Write a figure as Markdown: ours, and in brackets the published one.

    Examples
    --------
    >>> cell(70.7, 3.5, 72.3, bold=True)
    '**70.7 ± 3.5** (72.3)'
    >>> cell(70.7)
    '70.7'
    """
    text = f"{ours:.1f}" if std is None else f"{ours:.1f} ± {std:.1f}"
    text = f"**{text}**" if bold else text
    return text if published is None else f"{text} ({published:.1f})"


def record_cell(record: Values) -> str:
    """Write the cell of a record: what it has of ``std``, ``published`` and ``bold``."""
    return cell(
        record["ours"], record.get("std"), record.get("published"), record.get("bold", False)
    )


def judged_cell(record: Values) -> str:
    """Write the cell of a record with its verdict, if it has one."""
    words = ", ".join(filter(None, [record["verdict"], near_the_edge(record)]))
    verdict = f" ({words})" if record["verdict"] else ""
    return f"{cell(record['ours'], record['std'])}{verdict}"


def near_the_edge(record: Values) -> str:
    """Write the corrected p-value of a test, where it is near the level of 0.05.

    Examples
    --------
    >>> near_the_edge({"p_holm": 0.0482}), near_the_edge({"p_holm": 0.0001})
    ('p = 0.048', '')
    """
    p_value = record.get("p_holm")
    is_near = p_value is not None and EDGE[0] <= p_value <= EDGE[1]
    return f"p = {p_value:.2g}" if is_near else ""


def comparison_table(
    name: str,
    title: str,
    records: list[Values],
    notes: list[str],
    *,
    row: str | Callable[[Values], str],
    column: str | Callable[[Values], str],
    write: Callable[[Values], str] = record_cell,
) -> Table:
    """Arrange records, one per figure, as a table.

    The entries `row` and `column` of a record, or functions of it, say where it belongs; `write`
    returns the text of its cell. Columns and rows come in the order of their first records.

    Examples
    --------
    >>> records = [{"data": "hja", "method": "SIM", "ours": 61.2, "std": 3.5}]
    >>> comparison_table("t", "Accuracy", records, [], row="method", column="data").body
    [['SIM', '61.2 ± 3.5']]
    """
    columns: dict[str, None] = {}
    cells: dict[str, dict[str, str]] = {}
    for record in records:
        here, there = (key(record) if callable(key) else record[key] for key in (row, column))
        columns[there] = None
        cells.setdefault(here, {})[there] = write(record)
    body = [
        [in_names(here), *(each.get(there, "") for there in columns)]
        for here, each in cells.items()
    ]
    header = ["", *map(in_names, columns)]
    return Table(name, title, header, body, records, [in_names(note) for note in notes if note])


def write_tables(tables: Iterable[Table], folder: Path, about: Values) -> None:
    """Write tables as Markdown and CSV to a folder, and `about`, how they were made, as JSON."""
    make_folder(folder)
    for table in tables:
        write_text(folder / f"{table.name}.md", table.to_markdown())
        write_text(folder / f"{table.name}.csv", table.to_csv())
    write_text(folder / ABOUT, json.dumps(about, indent=2) + "\n")
