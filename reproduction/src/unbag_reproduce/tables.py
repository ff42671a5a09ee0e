"""Tables of results beside the published ones."""

import csv
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from unbag.model_selection import tables
from unbag.model_selection.tables import Table, with_deviation

from .unit import Values

#: Corrected p-values that are close to the level of 0.05, on either side.
EDGE = (0.01, 0.1)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read the records of a table, as `Table.to_csv` writes them."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_word(value: Any) -> str:
    """Write an entry of a record as a word of the command line: whole numbers without a point.

    Examples
    --------
    >>> as_word(50.0), as_word(0.1), as_word("MLR")
    ('50', '0.1', 'MLR')
    """
    return f"{value:g}" if isinstance(value, float) else str(value)


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


#: As `unbag.model_selection.tables.comparison_table`, with the published figures in the cells.
comparison_table: Callable[..., Table] = partial(tables.comparison_table, write=record_cell)
