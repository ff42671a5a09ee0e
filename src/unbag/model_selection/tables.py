"""Tables of figures: for people as Markdown, for machines as CSV."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from unbag._files import make_folder, write_text, written_together

from .ledger import Values

#: The file beside tables that says how they were made.
ABOUT = "about.json"


@dataclass(frozen=True)
class Table:
    """A table for people (header, and body in Markdown) and the records behind it, one per figure.

    All records have the same keys. The name is that of its files. Notes say how it was made.
    """

    name: str
    title: str
    header: list[str]
    body: list[list[str]]
    records: list[Values]
    notes: list[str] = field(default_factory=list)

    def to_markdown(self) -> str:
        """Write the table, its title above and its notes below."""
        rows = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.body]
        table = "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
        return "\n\n".join([f"### {self.title}", table, *self.notes]) + "\n"

    def to_csv(self) -> str:
        """Write the records, numbers in full."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return text.getvalue()


def with_deviation(mean: float, std: float | None = None, bold: bool = False) -> str:
    """Write a mean in Markdown, and its deviation where there is one.

    Examples
    --------
    >>> with_deviation(70.66, 3.5, bold=True)
    '**70.7 ± 3.5**'
    >>> with_deviation(70.66)
    '70.7'
    """
    text = f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"
    return f"**{text}**" if bold else text


def record_cell(record: Values) -> str:
    """Write the cell of a record: what it has of ``std`` and ``bold``."""
    return with_deviation(record["ours"], record.get("std"), record.get("bold", False))


def comparison_table(
    name: str,
    title: str,
    records: list[Values],
    notes: list[str],
    *,
    row: str | Callable[[Values], str],
    column: str | Callable[[Values], str],
    write: Callable[[Values], str] = record_cell,
    rows: Iterable[str] = (),
) -> Table:
    """Arrange records, one per figure, as a table.

    The entries `row` and `column` of a record, or functions of it, say where it belongs; `write`
    returns the text of its cell. Columns come in the order of their first records, and so do rows,
    after those of `rows`.

    Examples
    --------
    >>> records = [{"data": "hja", "method": "SIM", "ours": 61.2, "std": 3.5}]
    >>> comparison_table("t", "Accuracy", records, [], row="method", column="data").body
    [['SIM', '61.2 ± 3.5']]
    """
    columns: dict[str, None] = {}
    cells: dict[str, dict[str, str]] = {name: {} for name in rows}
    for record in records:
        here, there = (key(record) if callable(key) else record[key] for key in (row, column))
        columns[there] = None
        cells.setdefault(here, {})[there] = write(record)
    body = [[here, *(each.get(there, "") for there in columns)] for here, each in cells.items()]
    return Table(name, title, ["", *columns], body, records, notes)


def write_tables(tables: Iterable[Table], folder: Path, about: Values) -> None:
    """Write tables as Markdown and CSV to a folder, and `about`, how they were made, as JSON."""
    with written_together():
        make_folder(folder)
        for table in tables:
            write_text(folder / f"{table.name}.md", table.to_markdown())
            write_text(folder / f"{table.name}.csv", table.to_csv())
        write_text(folder / ABOUT, json.dumps(about, indent=2) + "\n")
