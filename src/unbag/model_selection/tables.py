"""Tables of results beside the published ones, as Markdown and CSV, and the rule for bold."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from .statistics import SIGNIFICANT, paired_p_value
from .unit import Values


@dataclass(frozen=True)
class Table:
    """A table for people (header and body) and the records behind it (for machines).

    Parameters
    ----------
    name : str
        Of its files.
    title : str
    header : list of str
    body : list of list of str
        In Markdown.
    records : list of dict
        One per figure: all have the same keys.
    notes : list of str
        How it was made, and what to know.
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


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read the records of a table, as `Table.to_csv` writes them."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def best_methods(scores: Mapping[str, ArrayLike], *, higher_is_better: bool = True) -> set[str]:
    """Find the best method, and those that a paired t-test cannot tell from it.

    Two-tailed, at 95 %, over the folds: the paper's rule for bold. Where data are drawn several
    times, pairs are of the same fold of the same draw.

    Parameters
    ----------
    scores : dict of str to array-like of shape (n_folds,) or (n_folds, n_draws)
    higher_is_better : bool

    Returns
    -------
    set of str

    Examples
    --------
    >>> best = best_methods({"a": [70, 72, 71], "b": [71, 71, 71], "c": [50, 52, 50]})
    >>> sorted(best)
    ['a', 'b']
    """
    if not scores:
        return set()
    scores = {name: np.ravel(values) for name, values in scores.items()}
    sign = 1 if higher_is_better else -1
    best = max(scores, key=lambda name: sign * scores[name].mean())

    return {
        name
        for name, values in scores.items()
        if paired_p_value(values, scores[best]) > SIGNIFICANT
    }


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


def spread(values: ArrayLike) -> Values:
    """Return the entries of a record that hold a mean over folds, and its deviations.

    Parameters
    ----------
    values : array-like of shape (n_folds,) or (n_folds, n_draws)

    Returns
    -------
    dict
        ``ours``, the mean; ``std``, over the folds of one draw, as the paper has it (the root of
        the mean variance, where there are several); ``draw_std``, of the means of draws.

    Examples
    --------
    >>> spread([70.0, 72.0, 74.0])
    {'ours': 72.0, 'std': 2.0, 'draw_std': None}
    >>> spread([[70.0, 71.0], [72.0, 73.0], [74.0, 75.0]])["std"]
    2.0
    """
    values = np.asarray(values, dtype=float)
    values = values.reshape(len(values), -1)
    n_folds, n_draws = values.shape
    return {
        "ours": float(values.mean()),
        "std": float(np.sqrt(values.var(axis=0, ddof=1).mean())) if n_folds > 1 else None,
        "draw_std": float(values.mean(axis=0).std(ddof=1)) if n_draws > 1 else None,
    }


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
    text = with_deviation(ours, std)
    text = f"**{text}**" if bold else text
    if published is None:
        return text
    return f"{text} ({with_deviation(published, published_std)}, {ours - published:+.1f})"


def with_deviation(mean: float, std: float | None) -> str:
    """Write a mean, and its deviation where there is one."""
    return f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"


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
    """Arrange records as a table.

    Parameters
    ----------
    name, title : str
    records : list of dict
        One per figure; columns come in the order of their first records, and so do rows.
    notes : list of str
    row, column : str or callable
        The entry of a record that says where it belongs, or a function of the record.
    write : callable
        Takes a record; returns the text of its cell.
    rows : iterable of str
        Rows that come first.

    Examples
    --------
    >>> records = [{"data": "hja", "method": "SIM", "ours": 61.2, "published": 61.0}]
    >>> comparison_table("t", "Accuracy", records, [], row="method", column="data").body
    [['SIM', '61.2 (61.0, +0.2)']]
    """
    columns: dict[str, None] = {}
    cells: dict[str, dict[str, str]] = {name: {} for name in rows}
    for record in records:
        here, there = (key(record) if callable(key) else record[key] for key in (row, column))
        columns[there] = None
        cells.setdefault(here, {})[there] = write(record)
    body = [[here, *(each.get(there, "") for there in columns)] for here, each in cells.items()]
    return Table(name, title, ["", *columns], body, records, notes)
