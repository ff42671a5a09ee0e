"""opensoundscape's frames of clips, saved as CSV: labels, scores or embeddings of each clip.

Checked against ``kitzeslab/opensoundscape``: ``opensoundscape/annotations.py`` makes frames of
labels whose index is ``file,start_time,end_time``, with a column of 0 and 1 for each class, and
``opensoundscape/ml/cnn.py`` frames of scores and embeddings with the same index; those of
embeddings have numbered columns.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unbag._files import DataError, check, check_rows, refuse
from unbag._messages import shortened
from unbag.tables.adapted import (
    Adapted,
    Choices,
    Head,
    data_row,
    read_columns,
    segments,
)
from unbag.tables.tags import States
from unbag.tables.text import TextFile, is_number
from unbag.tables.vectors import PREFIX
from unbag.tagging import label_text

INDEX = ("file", "start_time", "end_time")
#: What a cell of a class may hold; if it is empty, the label is unknown.
STATES = {
    "1": 1, "1.0": 1, "true": 1, "0": 0, "0.0": 0, "false": 0, "": -1, "nan": -1,
}  # fmt: skip


def is_frame(head: Head) -> bool:
    """Return whether a text has the index of opensoundscape's frames."""
    return set(INDEX) <= set(head.columns) and bool(head.first_line)


def read_frame(head: Head, _: Choices) -> Adapted:
    """Read clips: a bag is a recording, an instance a clip.

    Columns of nothing but 0 and 1 are labels: of the recording they are the union, and a clip with
    exactly one has a known label. Any other columns of numbers are features.
    """
    check(not head.is_folder, f"{head.path} is a folder: name a file in it.")
    source = TextFile(head.path)
    with source:
        others = [name for name in source.columns if name not in INDEX and name.strip()]
        table = read_columns(source, [*INDEX, *others], "opensoundscape's frames")
        check(others, f"{head.path} has no columns of classes or embeddings.")
        check_rows(head.path, table.num_rows)

        def at(row, column):
            return f"{data_row(head.path, row)}, column {column!r}"

        columns = segments(head.path, *(table.column(each).to_pylist() for each in INDEX))
        texts = {name: table.column(name).fill_null("") for name in others}
        if all(_is_of_classes(column) for column in texts.values()):
            tags, known = _labels(columns["bag"], texts)
            columns["instance_label"] = pa.array(known, pa.string())
            columns["duration"] = pc.subtract(columns["end"], columns["start"])
        else:
            _refuse_counts(texts, at)
            tags = None
            prefix = PREFIX if all(name.isdecimal() for name in others) else ""
            for name, column in texts.items():
                numbers = _numbers(column)
                refuse(
                    np.flatnonzero(~np.isfinite(numbers)),
                    lambda row, name=name, column=column: (
                        f"{at(row, name)}: {shortened(column[int(row)].as_py())} is not a finite "
                        "number."
                    ),
                )
                columns[f"{prefix}{name}"] = numbers
    return Adapted(pa.table(columns), tags)


def _is_of_classes(column: pa.ChunkedArray) -> bool:
    return all(text.strip().lower() in STATES for text in column.unique().to_pylist())


def _refuse_counts(texts: dict[str, pa.ChunkedArray], at: Any) -> None:
    """Refuse labels with a number other than 0 and 1 among them: no scores are all whole."""
    whole = r"(?i)^\s*(-?\d*(\.0)?|true|false|nan)\s*$"
    if all(pc.all(pc.match_substring_regex(each, whole)).as_py() for each in texts.values()):
        name = next(name for name, column in texts.items() if not _is_of_classes(column))
        cells = texts[name].to_pylist()
        row = next(row for row, cell in enumerate(cells) if cell.strip().lower() not in STATES)
        raise DataError(f"{at(row, name)}: a label is 0 or 1, not {shortened(cells[row])}.")


def _labels(bags: list[str], texts: dict[str, pa.ChunkedArray]) -> tuple[States, list[str | None]]:
    """Return the tags of the recordings, and the known label of each clip."""
    tags: States = {bag: {} for bag in bags}
    n_labels = np.zeros(len(bags), int)
    known: list[str | None] = [None] * len(bags)
    for name, column in texts.items():
        label = label_text(name)
        for row, text in enumerate(column.to_pylist()):
            state = STATES[text.strip().lower()]
            before = tags[bags[row]].get(label, 0)
            # One clip with the label is enough; otherwise, one unknown clip makes it unknown.
            tags[bags[row]][label] = 1 if 1 in (state, before) else min(state, before)
            if state == 1:
                n_labels[row] += 1
                known[row] = label
    return tags, [label if n == 1 else None for label, n in zip(known, n_labels, strict=True)]


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as numbers; NaN where a cell is none."""
    texts = pc.utf8_trim_whitespace(column)
    try:
        return texts.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return np.array([float(text) if is_number(text) else np.nan for text in texts.to_pylist()])
