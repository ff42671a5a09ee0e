"""BirdNET-Analyzer and the package birdnet: embeddings of windows, and detections of species.

Checked against ``birdnet-team/BirdNET-Analyzer``: `create_csv_output` in
``birdnet_analyzer/embeddings/core.py`` writes ``file_path,start,end,embedding``, the embedding a
quoted string of numbers between commas; ``birdnet_analyzer/analyze/utils.py`` has the headers of
its results, CSV and Raven tables, and the row ``nocall`` that the latter have where nothing was
found. The package ``birdnet-team/birdnet`` writes ``input,start_time,end_time,species_name`` and
``confidence`` as CSV and Parquet (``acoustic_models/inference/prediction/result.py``): times of its
CSV are like ``00:00:03.00``, and species like ``Turdus merula_Eurasian Blackbird``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unbag._files import TABLES, check, check_rows
from unbag.tables.adapted import (
    Adapted,
    Choices,
    Head,
    data_row,
    finite_number,
    read_columns,
    segments,
    span,
)
from unbag.tables.table import open_source
from unbag.tables.tags import States
from unbag.tables.text import TextFile
from unbag.tables.vectors import as_lists, as_rows, first_length, named_columns
from unbag.tagging import label_text

from .raven import recording_of, selection_rows

EMBEDDINGS = ("file_path", "start", "end", "embedding")
RESULTS = ("Start (s)", "End (s)", "Scientific name", "Common name", "Confidence")
SELECTIONS = ("Begin Time (s)", "End Time (s)", "Common Name", "Species Code", "Confidence")
PACKAGE = ("start_time", "end_time", "species_name", "confidence")
#: Columns of recordings, in results of several files.
FILES = ("File", "input", "file_path")
# What stands in a Raven table in place of a species where there was none.
NOTHING = "nocall"


@dataclass(frozen=True)
class Detection:
    """A species in a window; `label` is empty where nothing was found. The band is in hertz."""

    recording: str
    start: float
    end: float
    band: tuple[float, float] | None
    label: str
    confidence: float


def are_embeddings(head: Head) -> bool:
    """Return whether a file holds BirdNET's embeddings."""
    return set(EMBEDDINGS) <= set(head.columns)


def read_embeddings(head: Head, _: Choices) -> Adapted:
    """Read embeddings, without tags: a bag is a recording, an instance a window."""
    check(not head.is_folder, f"{head.path} is a folder: name a file in it.")
    source = TextFile(head.path)
    with source:
        table = read_columns(source, EMBEDDINGS, "BirdNET's embeddings")
        check_rows(head.path, table.num_rows)
        columns = segments(head.path, *(table.column(each).to_pylist() for each in EMBEDDINGS[:3]))

        def place(first, row):
            return f"{data_row(head.path, first + row)}, column 'embedding'"

        vectors, length = [], 0
        # Chunk by chunk, since numbers take less room than their text.
        for first, chunk in source.chunks(EMBEDDINGS[3:]):
            lists = as_lists(chunk.column("embedding"))
            length = length or first_length(lists)
            vectors.append(as_rows(lists, partial(place, first), length, np.float64))
    columns |= named_columns(np.concatenate(vectors))
    return Adapted(pa.table(columns), None)


def are_detections(head: Head) -> bool:
    """Return whether a file, or the first of a folder, holds what BirdNET has detected."""
    columns = set(head.first_file().columns)
    return any(set(each) <= columns for each in (RESULTS, SELECTIONS, PACKAGE))


def read_detections(head: Head, choices: Choices) -> Adapted:
    """Read which species were detected in which recordings, as tags without instances.

    A species whose detections all lie below `confidence` is unknown. `annotation_column` may be
    ``Scientific name``. Recordings without detections have tags only if a Raven table lists them.
    """
    tags: States = {}
    rows = []
    threshold = choices.get("confidence") or 0.0
    for each in detections(head, choices.get("annotation_column")):
        of_bag = tags.setdefault(each.recording, {})
        state = 1 if each.confidence >= threshold else -1
        rows.append((each.recording, each.start, each.end, each.label, state))
        if each.label:
            of_bag[each.label] = max(state, of_bag.get(each.label, -1))
    check(tags, f"{head.path} holds no detections: choose another file.")
    return Adapted(None, tags, detections=rows)


def detections(head: Head, label_column: str | None = None) -> Iterator[Detection]:
    """Yield the detections of a file, or of those of a folder."""
    for path in head.files("BirdNET's results"):
        columns = set(Head(path).columns)
        if set(SELECTIONS) <= columns:
            yield from _selected(path, label_column or "Common Name")
        elif set(PACKAGE) <= columns:
            yield from _rows(path, (*PACKAGE[:2], "species_name", PACKAGE[3]), label_column)
        else:
            label = label_column or "Common name"
            yield from _rows(path, (*RESULTS[:2], label, "Confidence"), None)


def _selected(path: Path, label_column: str) -> Iterator[Detection]:
    for row in selection_rows(path):
        label = row.cells.get(label_column)
        check(label is not None, f"{row.where}: the table has no column {label_column!r}.")
        number = finite_number(row.cells["Confidence"], row.where)
        cells = [row.cells.get(name) for name in ("Low Freq (Hz)", "High Freq (Hz)")]
        low, high = (finite_number(each, row.where) if all(cells) else 0.0 for each in cells)
        label = "" if label == NOTHING else label_text(label)
        band = (low, high) if all(cells) else None
        yield Detection(row.recording, row.start, row.end, band, label, number)


def _rows(path: Path, columns: Sequence[str], part: str | None) -> Iterator[Detection]:
    """Yield detections of a table with columns of start, end, label and confidence.

    `part` is the part of a species' name to take, of ``Turdus merula_Eurasian Blackbird``.
    """
    source: Any = open_source(path, TABLES)
    with source:
        file = next((name for name in FILES if name in source.columns), None)
        names = [*columns, *([] if file is None else [file])]
        table = read_columns(source, names, "BirdNET's results")
    cells = (table.column(name).to_pylist() for name in names)
    for row, (start, end, label, confidence, *recording) in enumerate(zip(*cells, strict=True)):
        where = data_row(path, row)
        label = label_text(label)
        if columns[2] == "species_name":
            scientific, _, common = label.partition("_")
            label = scientific if part == "Scientific name" else common or scientific
        yield Detection(
            str(recording[0]) if recording and recording[0] else recording_of(path),
            *span(start, end, where), None, label,
            finite_number(confidence, f"{where}, column {columns[3]!r}"),
        )  # fmt: skip
