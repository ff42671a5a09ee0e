"""perch-hoplite's Parquet database: windows of recordings, their embeddings and annotations.

Checked against ``google-research/perch-hoplite``: ``perch_hoplite/db/parquet_impl.py`` has the
files and their columns (``windows``, ``recordings``, ``annotations`` and ``deployments`` in a file
each, pairs of ids and embeddings in any number of files under ``embeddings/``), and
``perch_hoplite/db/datatypes.py`` the types of labels: 0 negative, 1 positive, 2 uncertain.
"""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from unbag._files import DataError, check, existing_file, refuse
from unbag.tables.adapted import (
    Adapted,
    Choices,
    Head,
    read_columns,
    segment_columns,
    span,
    written_by,
)
from unbag.tables.tags import States, only_label
from unbag.tables.vectors import feature_columns
from unbag.tagging import label_text

from .arrow import ArrowFile

WINDOWS, RECORDINGS, ANNOTATIONS = "windows.parquet", "recordings.parquet", "annotations.parquet"
DEPLOYMENTS, EMBEDDINGS = "deployments.parquet", "embeddings"
#: Their types of labels, and what we call them.
STATE_OF_TYPE = {0: 0, 1: 1, 2: -1}

Span = tuple[float, float]


def is_database(head: Head) -> bool:
    """Return whether a folder is such a database, or one of its files is."""
    return WINDOWS in head.names or EMBEDDINGS in head.names or _is_sqlite(head)


def _is_sqlite(head: Head) -> bool:
    return any(name.endswith(".sqlite") for name in head.names)


def read_database(head: Head, _: Choices) -> Adapted:
    """Read a database: a bag is a recording, an instance a window, its embedding the features.

    There are tags if there are annotations. A label is present in a recording where one of its
    annotations is positive; else unknown where one is uncertain; absent where negative ones cover
    all windows. A window has a known label if exactly one annotation of its span is positive.
    """
    check(
        WINDOWS in head.names or not _is_sqlite(head),
        f"{head.path} is a SQLite database of perch-hoplite, which is not supported: pass the "
        "folder of a Parquet database, with windows.parquet and embeddings.",
    )
    for name in (WINDOWS, RECORDINGS, EMBEDDINGS):
        check(name in head.names, f"{head.path} has no {name}: pass a folder of perch-hoplite.")
    path = head.path / WINDOWS
    windows = _read(path, ("id", "recording_id", "offsets")).to_pydict()
    check(windows["id"], f"{path} has no windows.")
    names = _recording_names(head)
    bags, spans = [], []
    for row, (recording, offsets) in enumerate(
        zip(windows["recording_id"], windows["offsets"], strict=True)
    ):
        where = f"{path}, row {row + 1}"
        with written_by("perch-hoplite", where):
            start, end = offsets
            bags.append(names[recording])
        spans.append(span(start, end, where))
    columns = segment_columns(bags, spans)
    tags = None
    annotations = _annotations(head, names)
    if annotations:
        tags, known = _labels(annotations, list(zip(bags, spans, strict=True)))
        columns["instance_label"] = pa.array(known, pa.string())
    columns |= _features(head, windows["id"])
    return Adapted(pa.table(columns), tags)


def _read(path: Path, columns: tuple[str, ...]) -> pa.Table:
    source = ArrowFile(existing_file(path))
    with source:
        return read_columns(source, columns, "perch-hoplite's databases")


def _recording_names(head: Head) -> dict[int, str]:
    """Return the name of each recording by its id; with its deployment where two share it."""
    path = head.path / RECORDINGS
    found = _read(path, ("id", "filename", "deployment_id")).to_pydict()
    refuse(
        (row for row, name in enumerate(found["filename"]) if not name),
        lambda row: f"{path}, row {row + 1}, column 'filename': the recording has no name.",
    )
    places = {}
    if DEPLOYMENTS in head.names:
        rows = _read(head.path / DEPLOYMENTS, ("id", "name")).to_pylist()
        places = {row["id"]: row["name"] for row in rows}
    counts = Counter(found["filename"])
    return {
        each: name if counts[name] == 1 else f"{places.get(place, place)}/{name}"
        for each, name, place in zip(*found.values(), strict=True)
    }


def _annotations(head: Head, names: dict[int, str]) -> list[tuple[str, Span, str, int]]:
    """Return recording, span, label and state of each annotation."""
    if ANNOTATIONS not in head.names:
        return []
    path = head.path / ANNOTATIONS
    found = _read(path, ("recording_id", "offsets", "label", "label_type")).to_pydict()
    annotations = []
    for row, (recording, offsets, label, kind) in enumerate(zip(*found.values(), strict=True)):
        where = f"{path}, row {row + 1}"
        check(label_text(label), f"{where}, column 'label': the annotation has no label.")
        with written_by("perch-hoplite", where):
            start, end = offsets
            bag, state = names[recording], STATE_OF_TYPE[kind]
        annotations.append((bag, span(start, end, where), label_text(label), state))
    return annotations


def _labels(
    annotations: list[tuple[str, Span, str, int]], windows: list[tuple[str, Span]]
) -> tuple[States, list[str | None]]:
    """Return the tags of the recordings, and the known label of each window."""
    tags: States = {bag: {} for bag, _ in windows}
    positive = defaultdict(list)
    negative = defaultdict(list)
    for bag, (start, end), label, state in annotations:
        states = tags.setdefault(bag, {})
        if state == 0:
            negative[bag, label].append((start, end))
            continue
        states[label] = max(state, states.get(label, -1))
        if state == 1:
            positive[bag, start, end].append(label)
    spans_of = defaultdict(list)
    for bag, window in windows:
        spans_of[bag].append(window)
    for (bag, label), spans in negative.items():
        if label not in tags[bag] and all(
            any(first <= start and end <= last for first, last in spans)
            for start, end in spans_of[bag]
        ):
            tags[bag][label] = 0
    known = [only_label(positive.get((bag, *window), ())) for bag, window in windows]
    return tags, known


def _features(head: Head, ids: list[int]) -> dict[str, pa.Array]:
    """Return the embeddings of windows as columns; of two of one window, the later file's."""
    folder = head.path / EMBEDDINGS
    files = sorted(folder.rglob("*.parquet"))
    check(files, f"{folder} holds no Parquet file: there are no embeddings.")
    tables = [_read(path, ("id", "embedding")) for path in files]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(f"{folder}: its files hold different types: {error}.") from error
    row_of = {each: row for row, each in enumerate(table.column("id").to_pylist())}
    refuse(
        (each for each in ids if each not in row_of),
        lambda each: f"{folder} has no embedding of the window {each} of {WINDOWS}.",
    )
    vectors = table.column("embedding").take(pa.array([row_of[each] for each in ids]))
    return feature_columns(vectors, lambda row: f"{folder}, window {ids[row]}", np.float32)
