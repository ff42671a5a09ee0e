"""Files of a corrected table: the table itself, Label Studio tasks, Raven selections."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unbag._files import TABLES, PathLike, check, check_format, suffix_of
from unbag.labels import LabelSets
from unbag.tables import BagTable
from unbag.tables.annotated import KNOWN_LABEL, answer_names, known_label_column
from unbag.tables.annotated import written_columns as columns_of_annotate
from unbag.tables.answers import corrected_tags
from unbag.tables.for_tools import write_for_tool
from unbag.tables.roles import USUAL
from unbag.tables.writing import own_columns, write_rows
from unbag.tagging import DELIMITER, NO_LABEL

from .session import Session

#: The programs for which files with some suffixes are.
TOOLS = {".json": "label-studio", ".txt": "raven"}


def write_corrected(
    outputs: Sequence[PathLike],
    session: Session,
    table: BagTable,
    *,
    media_root: PathLike | None = None,
) -> None:
    """Write all files, each of them whole."""
    for path in outputs:
        if suffix_of(path) not in TOOLS:
            check_format(path, TABLES)
    answers = session.annotations()
    for path in map(Path, outputs):
        if (tool := TOOLS.get(suffix_of(path))) is not None:
            write_for_tool(tool, path, table, answers.selected, answers.probability, media_root)
        else:
            write_corrected_table(path, session, table)


def write_corrected_table(path: PathLike, session: Session, table: BagTable) -> None:
    """Write the rows of the table with what the model says, the answers, and corrected tags."""
    columns = session.annotations().columns(session.known())
    known = columns.pop(KNOWN_LABEL)
    taken = own_columns(table)
    source = table.source
    written = {} if source is None else columns_of_annotate(source, table.roles)
    names = answer_names([*columns, KNOWN_LABEL], taken, written)
    new: dict[str, Any] = {names[name]: values for name, values in columns.items()}
    tagged = [] if table.labels is None else list(map(str, table.labels.classes.tolist()))
    stands_for = table.roles.tagging.classes_of_groups(
        tagged, [str(each) for each in session.model.classes_.tolist()]
    )
    labels = corrected_tags(table.labels, table.bags, session.corrections_of_tags(), stands_for)
    cells = {} if labels is None else _tag_cells(labels, table, new)
    column = None if source is None else known_label_column(source)
    if column is None:
        new[names[KNOWN_LABEL]] = known
    else:
        names[KNOWN_LABEL] = column
        cells[column] = _in_rows(pa.array(known.tolist(), pa.string()), table)
    write_rows(table, path, new, annotated=names, label_cells=cells)


def _in_rows(cells: pa.Array, table: BagTable) -> pa.Array:
    """Put what belongs to instances into the order of the rows; null where a row was left out."""
    if table.is_wide:
        return pa.ListArray.from_arrays(pa.array(table.bags.offsets, pa.int32()), cells)
    place = np.full(table.n_rows, -1, np.intp)
    place[table.rows] = np.arange(len(table.rows))
    return cells.take(pa.array(place, mask=place < 0))


def _tag_cells(labels: LabelSets, table: BagTable, new: dict[str, Any]) -> dict[str, pa.Array]:
    """Return the columns of tags if they have changed, in the order of the rows.

    Tags from a second table become a column of this one: it is added to `new`.
    """
    roles = table.roles
    delimiter = roles.label_separator or DELIMITER
    if table.labels is not None and _are_same(labels, table.labels):
        return {}
    if roles.label_columns:
        return _indicator_cells(labels, table)
    texts = labels.to_cells(delimiter)
    if roles.labels is None:
        name = USUAL["labels"]
        check(
            name not in own_columns(table),
            f"{table.path} has a column {name!r} which does not hold the labels of bags, and the "
            "corrected ones would replace it: rename it.",
        )
        new[name] = np.repeat(np.array(texts, dtype=object), table.bags.sizes)
        return {}
    schema = getattr(table.source, "schema", None)
    cells: Any = texts
    if schema is not None and pa.types.is_nested(schema.field(roles.labels).type):
        cells = [[] if cell == NO_LABEL else cell.split(delimiter) for cell in texts]
    return {roles.labels: pa.array(cells).take(_bag_of_row(table))}


def _indicator_cells(labels: LabelSets, table: BagTable) -> dict[str, pa.Array]:
    """Return columns of 1, 0 and empty cells; a new class gets its own column."""
    rows = _bag_of_row(table)
    found = {}
    for name, states in zip(labels.classes.tolist(), labels.indicator.T, strict=True):
        cells = [None if state < 0 else int(state) for state in states.tolist()]
        column = pa.array(cells, pa.int64()).take(rows)
        is_text = table.source is not None and table.source.is_text
        found[str(name)] = column.cast(pa.string()) if is_text else column
    return found


def _bag_of_row(table: BagTable) -> pa.Array:
    """Return the bag of each row, null where a row was left out."""
    if table.is_wide:
        return pa.array(np.arange(len(table.bags)))
    return _in_rows(pa.array(np.repeat(np.arange(len(table.bags)), table.bags.sizes)), table)


def _are_same(labels: LabelSets, others: LabelSets) -> bool:
    """Return whether all bags have the same tags; classes without a bag do not count."""
    return (
        labels.to_sets()
        == LabelSets(
            others.indicator, np.array([str(each) for each in others.classes.tolist()]), others.open
        ).to_sets()
    )
