"""Tables of results beside the published ones."""

import csv
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from unbag.model_selection import tables
from unbag.model_selection.tables import Table, with_deviation

from .unit import Values


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read the records of a table, as `Table.to_csv` writes them."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def difference(ours: float | None, published: float | None) -> float | None:
    """Subtract the published figure from ours; None where one of them is missing."""
    return None if ours is None or published is None else ours - published


def beside(ours: float | None, published: float | None, **between: float | None) -> Values:
    """Return the entries of a record that set our figure beside the published one.

    Examples
    --------
    >>> beside(71.0, 72.0, std=3.5)
    {'ours': 71.0, 'std': 3.5, 'published': 72.0, 'difference': -1.0}
    """
    return {
        "ours": ours, **between, "published": published, "difference": difference(ours, published),
    }  # fmt: skip


def draw_note(records: Iterable[Values], row: str = "method") -> list[str]:
    """Say how far the means of single draws lie apart, where data were drawn several times.

    Examples
    --------
    >>> draw_note([{"data": "letter-frost", "method": "MLR", "draw_std": 1.23}])
    ['Deviation of the means of single draws, in points: letter-frost, MLR 1.2.']

    Where a row has several measures, each has its figure.

    >>> of_row = {"data": "letter-frost", "method": "MLR"}
    >>> draw_note([{**of_row, "draw_std": 1.23}, {**of_row, "draw_std": 0.5}])
    ['Deviation of the means of single draws, in points, measures in the order of the table:
    letter-frost, MLR 1.2/0.5.']
    """
    listed: dict[str, dict[str, list[str]]] = {}
    for record in records:
        if record.get("draw_std") is not None:
            of_data = listed.setdefault(record["data"], {})
            of_data.setdefault(record[row], []).append(f"{record['draw_std']:.1f}")
    if not listed:
        return []
    several = any(len(figures) > 1 for rows in listed.values() for figures in rows.values())
    text = "; ".join(
        f"{name}, " + ", ".join(f"{each} {'/'.join(figures)}" for each, figures in rows.items())
        for name, rows in listed.items()
    )
    by_measure = ", measures in the order of the table" if several else ""
    return [f"Deviation of the means of single draws, in points{by_measure}: {text}."]


def cell(
    ours: float,
    std: float | None = None,
    published: float | None = None,
    bold: bool = False,
    published_std: float | None = None,
) -> str:
    """Write a figure as Markdown: ours, and in brackets the published one and the difference.

    Examples
    --------
    >>> cell(70.7, 3.5, 72.3, bold=True)
    '**70.7 ± 3.5** (72.3, -1.6)'
    >>> cell(70.7, 3.5, 72.3, published_std=3.8)
    '70.7 ± 3.5 (72.3 ± 3.8, -1.6)'
    >>> cell(70.7)
    '70.7'
    """
    text = with_deviation(ours, std, bold)
    if published is None:
        return text
    return f"{text} ({with_deviation(published, published_std)}, {ours - published:+.1f})"


def record_cell(record: Values) -> str:
    """Write the cell of a record: what it has of ``std``, ``published`` and ``bold``."""
    return cell(
        record["ours"], record.get("std"), record.get("published"), record.get("bold", False),
        record.get("published_std"),
    )  # fmt: skip


def judged_cell(record: Values) -> str:
    """Write the cell of a record with its verdict, if it has one."""
    verdict = f" ({record['verdict']})" if record["verdict"] else ""
    return f"{cell(record['ours'], record['std'])}{verdict}"


#: As `unbag.model_selection.tables.comparison_table`, with the published figures in the cells.
comparison_table: Callable[..., Table] = partial(tables.comparison_table, write=record_cell)
