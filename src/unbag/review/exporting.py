"""What a review has corrected, as files: a table, or what Label Studio and Raven open."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unbag._files import TABLES, PathLike, check, check_format, suffix_of, written_together
from unbag.io import BagTable, write_label_studio, write_raven
from unbag.io.annotated import KNOWN_LABEL, Status, answer_names, known_label_column
from unbag.io.annotated import written_columns as columns_of_annotate
from unbag.io.answers import corrected_tags
from unbag.io.bag_table import CHUNK_BYTES
from unbag.io.roles import USUAL
from unbag.io.writing import own_columns, write_rows
from unbag.labels import LabelSets
from unbag.tagging import DELIMITER, NO_LABEL

from .session import Session

#: Suffixes of the files of other tools.
LABEL_STUDIO, RAVEN = ".json", ".txt"


def write_corrected(
    outputs: Sequence[PathLike],
    session: Session,
    table: BagTable,
    *,
    media_root: PathLike | None = None,
) -> None:
    """Write all files, or none.

    Parameters
    ----------
    outputs : sequence of paths
        ``.json`` for Label Studio, ``.txt`` for Raven; else a table, whose suffix selects the
        format.
    session : Session
    table : BagTable
        What the session reviews.
    media_root : str or path, optional
        Folder of the recordings, for Raven.
    """
    for path in outputs:
        if suffix_of(path) not in (LABEL_STUDIO, RAVEN):
            check_format(path, TABLES)
    answers = session.annotations()
    # As `annotate` writes them: people listen to these, and background would be in their way.
    selected = answers.annotation.copy()
    selected[answers.status != Status.LABELLED] = None
    with written_together():
        for path in map(Path, outputs):
            if suffix_of(path) == LABEL_STUDIO:
                write_label_studio(
                    path, table, selected, score=answers.probability, background_name=None
                )
            elif suffix_of(path) == RAVEN:
                more = {"Probability": answers.probability.round(4)}
                write_raven(
                    path, table, selected, media_root=media_root, more=more, background_name=None
                )
            else:
                write_corrected_table(path, session, table)


def write_corrected_table(path: PathLike, session: Session, table: BagTable) -> None:
    """Write the rows of the table with what the model says, the answers, and corrected tags."""
    columns = session.annotations().columns()
    known = columns.pop(KNOWN_LABEL)
    known[:] = session.known()
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
        cells[column] = _in_rows(known, table)
    write_rows(table, path, new, None, CHUNK_BYTES, annotated=names, label_cells=cells)


def _in_rows(values: Any, table: BagTable) -> pa.Array:
    """Put labels of instances into the order of the rows."""
    cells = pa.array(list(values), pa.string())
    if table.is_wide:
        return pa.ListArray.from_arrays(pa.array(table.bags.offsets, pa.int32()), cells)
    place = np.full(table.n_rows, -1, np.intp)
    place[table.rows] = np.arange(len(table.rows))
    return cells.take(pa.array(place, mask=place < 0))


def _tag_cells(labels: LabelSets, table: BagTable, new: dict[str, Any]) -> dict[str, pa.Array]:
    """Make the columns of tags anew, in the order of the rows, where they have changed.

    Tags that a second table has become a column of this one, which is added to `new`.
    """
    roles = table.roles
    delimiter = roles.delimiter or DELIMITER
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
    """Make columns of 1, 0 and empty cells; a class that is new gets one of its own."""
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
    bag = np.full(table.n_rows, -1)
    bag[table.rows] = np.repeat(np.arange(len(table.bags)), table.bags.sizes)
    return pa.array(bag, mask=bag < 0)


def _are_same(labels: LabelSets, others: LabelSets) -> bool:
    """Return whether nobody has changed a tag, classes that no bag has aside."""
    return (
        labels.to_sets()
        == LabelSets(
            others.indicator, np.array([str(each) for each in others.classes.tolist()]), others.open
        ).to_sets()
    )
