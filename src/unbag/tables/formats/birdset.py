"""Parquet files like BirdSet's: recordings or segments of them, with lists of labels.

Checked against ``DBD-research-group/BirdSet`` and the features in ``BirdSet.py`` of the data set of
that name: ``filepath``, ``start_time``, ``end_time``, ``ebird_code_multilabel``, a list of classes,
and ``detected_events``, a list of pairs of seconds. Classes are numbers whose names the Hugging
Face library keeps in the metadata of the file (``huggingface/datasets``,
``src/datasets/arrow_writer.py``), or they are text.
"""

from typing import Any

import pyarrow as pa
from pyarrow import types

from unbag._files import PARQUET, check, check_rows, parsed_json, suffix_of
from unbag._messages import shortened
from unbag.tables.adapted import (
    Adapted,
    Choices,
    Head,
    read_columns,
    span,
    written_by,
)
from unbag.tables.tags import only_label, union_of
from unbag.tables.vectors import feature_columns
from unbag.tagging import label_text

from .arrow import ArrowFile, is_list

RECORDING, LABELS, EVENTS = "filepath", "ebird_code_multilabel", "detected_events"
VECTORS = ("embedding", "embeddings")
SPAN = {"start_time", "end_time"}


def is_birdset(head: Head) -> bool:
    """Return whether a file has the columns of BirdSet."""
    return {RECORDING, LABELS} <= set(head.columns)


def read_birdset(head: Head, _: Choices) -> Adapted:
    """Read recordings and their segments: a bag is a recording, its tags the union of its rows'.

    Where there are ``detected_events`` and no embeddings, an instance is an event. Else it is a
    row, with a known label if it has exactly one; its embedding, if any, is the features.
    """
    check(
        not head.is_folder and suffix_of(head.path) in PARQUET,
        f"{head.path} is not a Parquet file, as BirdSet's are.",
    )
    source = ArrowFile(head.path)
    with source:
        names = source.columns
        vectors = next((name for name in VECTORS if name in names), None)
        others = (*SPAN, EVENTS, vectors)
        wanted = [RECORDING, LABELS, *(name for name in others if name in names)]
        table = read_columns(source, wanted, "files like BirdSet's")
    check_rows(head.path, table.num_rows)

    def at(row, column):
        return f"{head.path}, row {row + 1}, column {column!r}"

    names = table.column(RECORDING).to_pylist()
    for row, name in enumerate(names):
        check(label_text(name), f"{at(row, RECORDING)}: the row names no recording.")
    bags = list(map(str, names))
    labels = _labels(table, source.schema.metadata, at)
    tags = union_of(bags, labels)
    # Segments that people have labelled have the column, too, but no events.
    has_events = EVENTS in table.column_names and any(table.column(EVENTS).to_pylist())
    if has_events and vectors is None:
        return Adapted(_event_table(table, bags, at), tags)
    columns: dict[str, Any] = {"bag": bags}
    if set(table.column_names) >= SPAN:
        spans = [_span(row, table, at) for row in range(len(bags))]
        columns |= {"start": [each[0] for each in spans], "end": [each[1] for each in spans]}
    known = [only_label(each) for each in labels]
    columns["instance_label"] = pa.array(known, pa.string())
    if vectors is not None:
        columns |= feature_columns(table.column(vectors), lambda row: at(row, vectors))
    elif "start" in columns:
        columns["duration"] = [
            None if start is None or end is None else end - start for start, end in spans
        ]
    return Adapted(pa.table(columns), tags)


def _labels(table: pa.Table, metadata: dict[bytes, bytes] | None, at: Any) -> list[list[str]]:
    """Return the labels of each row, as text."""
    column = table.column(LABELS)
    kind = column.type
    is_text = is_list(kind) and (
        types.is_string(kind.value_type) or types.is_large_string(kind.value_type)
    )
    check(
        is_text or (is_list(kind) and types.is_integer(kind.value_type)),
        f"{at(0, LABELS)} holds {kind}, but should hold a list of labels.",
    )
    names = [] if is_text else class_names(metadata, LABELS)
    labels = []
    for row, cell in enumerate(column.to_pylist()):
        check(cell is not None, f"{at(row, LABELS)}: expected a list; [] means no labels.")
        check(None not in cell, f"{at(row, LABELS)}: a label in the list is missing.")
        for each in cell:
            check(
                not names or 0 <= each < len(names),
                f"{at(row, LABELS)}: {shortened(each)} is not among the {len(names)} classes.",
            )
        labels.append([label_text(names[each] if names else each) for each in cell])
    return labels


def class_names(metadata: dict[bytes, bytes] | None, column: str) -> list[str]:
    """Return the class names of the numbers in a column, if the metadata of the file has them."""
    try:
        kept = parsed_json((metadata or {}).get(b"huggingface", b"{}"))
        feature = kept["info"]["features"][column]
        # Lists are written as a list of one kind, or as one that has a kind within.
        inner = feature[0] if isinstance(feature, list) else feature.get("feature", feature)
        return [str(name) for name in inner["names"]]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return []


def _span(row: int, table: pa.Table, at: Any) -> tuple[float | None, float | None]:
    """Return where a row begins and ends; None for whole recordings."""
    if not set(table.column_names) >= SPAN:
        return None, None
    start, end = (table.column(name)[row].as_py() for name in ("start_time", "end_time"))
    if start is None or end is None:
        return None, None
    return span(start, end, at(row, "start_time"))


def _event_table(table: pa.Table, bags: list[str], at: Any) -> pa.Table:
    """Return a row per event; a recording without events is one itself."""
    rows = []
    for row, (bag, events) in enumerate(zip(bags, table.column(EVENTS).to_pylist(), strict=True)):
        with written_by("BirdSet", at(row, EVENTS)):
            pairs = [(start, end) for start, end in events or ()]
        rows += [(bag, *span(*pair, at(row, EVENTS))) for pair in pairs]
        if not pairs:
            rows.append((bag, *_span(row, table, at)))
    names = ("bag", "start", "end")
    cells = map(list, zip(*rows, strict=True))
    columns: dict[str, Any] = dict(zip(names, cells, strict=True))
    columns["duration"] = [None if end is None else end - start for _, start, end in rows]
    kinds = {"start": pa.float64(), "end": pa.float64(), "duration": pa.float64()}
    return pa.table({name: pa.array(cells, kinds.get(name)) for name, cells in columns.items()})
