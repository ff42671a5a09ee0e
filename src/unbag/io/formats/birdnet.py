"""BirdNET-Analyzer: embeddings of windows, and detections of species.

Checked against ``birdnet-team/BirdNET-Analyzer``: `create_csv_output` in
``birdnet_analyzer/embeddings/core.py`` writes ``file_path,start,end,embedding``, the embedding a
quoted string of numbers between commas; ``birdnet_analyzer/analyze/utils.py`` has the headers of
its results, CSV and Raven tables, and the row ``nocall`` that the latter have where nothing was
found.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from unbag._files import check, check_rows, refuse
from unbag.io.adapted import (
    Adapted,
    Choices,
    Head,
    finite_number,
    need_columns,
    read_columns,
    segment_columns,
    spans_of,
)
from unbag.io.tags import States
from unbag.io.vectors import as_lists, as_rows, first_length, named_columns
from unbag.tagging import label_text

from .csv import DelimitedFile
from .raven import recording_of, selection_rows

EMBEDDINGS = ("file_path", "start", "end", "embedding")
RESULTS = ("Start (s)", "End (s)", "Scientific name", "Common name", "Confidence")
SELECTIONS = ("Begin Time (s)", "End Time (s)", "Common Name", "Species Code", "Confidence")
# What stands in a Raven table in place of a species where there was none.
NOTHING = "nocall"


def are_embeddings(head: Head) -> bool:
    """Return whether a file holds BirdNET's embeddings."""
    return set(EMBEDDINGS) <= set(head.columns)


def read_embeddings(head: Head, _: Choices) -> Adapted:
    """Read embeddings, without tags: a bag is a recording, an instance a window."""
    check(not head.is_folder, f"{head.path} is a folder: name a file in it.")
    source = DelimitedFile(head.path)
    with source:
        need_columns(source, EMBEDDINGS, "BirdNET's embeddings")

        def at(first, row):
            return f"{head.path}, {source.place(first + int(row))}"

        def vector_at(first, row):
            return f"{at(first, row)}, column 'embedding'"

        bags, spans, vectors, length = [], [], [], 0
        # Chunk by chunk, since numbers take less room than their text.
        for first, table in source.chunks(EMBEDDINGS):
            names, starts, ends = (table.column(name).to_pylist() for name in EMBEDDINGS[:3])
            refuse(
                (row for row, bag in enumerate(names) if not (bag or "").strip()),
                lambda row, first=first: (
                    f"{at(first, row)}, column 'file_path': it names no recording."
                ),
            )
            bags += names
            spans += spans_of(starts, ends, partial(at, first))
            lists = as_lists(table.column("embedding"))
            length = length or first_length(lists)
            vectors.append(as_rows(lists, partial(vector_at, first), length, np.float64))
        check_rows(head.path, bags)
    columns = segment_columns(bags, spans) | named_columns(np.concatenate(vectors))
    return Adapted(pa.table(columns), None, lambda row: f"row {row + 2}")


def are_detections(head: Head) -> bool:
    """Return whether a file, or the first of a folder, holds what BirdNET has detected."""
    columns = set(head.first_file().columns)
    return set(RESULTS) <= columns or set(SELECTIONS) <= columns


def read_detections(head: Head, choices: Choices) -> Adapted:
    """Read which species were detected in which recordings, as tags without instances.

    A species whose detections all lie below `confidence` is unknown. `annotation_column` may be
    ``Scientific name``. Recordings without detections have tags only if a Raven table lists them.
    """
    tags: States = {}
    threshold = choices.get("confidence") or 0.0
    for path in head.files("BirdNET's results"):
        for recording, label, confidence in _detections(Head(path), choices):
            of_bag = tags.setdefault(recording, {})
            if label:
                state = 1 if confidence >= threshold else -1
                of_bag[label] = max(state, of_bag.get(label, -1))
    check(tags, f"{head.path} holds no detections: choose another file.")
    return Adapted(None, tags)


def _detections(head: Head, choices: Choices) -> Iterator[tuple[str, str, float]]:
    """Yield recording, label and confidence of each detection."""
    if set(SELECTIONS) <= set(head.columns):
        label_column = choices.get("annotation_column") or "Common Name"
        for row in selection_rows(head.path):
            label = row.cells.get(label_column)
            check(label is not None, f"{row.where}: the table has no column {label_column!r}.")
            number = finite_number(row.cells["Confidence"], row.where)
            yield row.recording, "" if label == NOTHING else label_text(label), number
        return
    label_column = choices.get("annotation_column") or "Common name"
    source = DelimitedFile(head.path)
    with source:
        has_file = "File" in source.columns
        names = [label_column, "Confidence", *(["File"] if has_file else [])]
        table = read_columns(source, names, "BirdNET's results")
        cells = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        for row, (label, confidence, *file) in enumerate(cells):
            recording = file[0] if file and file[0] else recording_of(head.path)
            where = f"{head.path}, data row {row + 1}, column 'Confidence'"
            yield recording, label_text(label), finite_number(confidence, where)
