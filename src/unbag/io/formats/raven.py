"""Raven selection tables: segments of recordings, measured and perhaps labelled.

Checked against ``kitzeslab/opensoundscape`` (``opensoundscape/annotations.py``, `from_raven_files`
and `to_raven_files`), against ``birdnet-team/BirdNET-Analyzer``
(``birdnet_analyzer/analyze/utils.py``), and against tables that Raven Pro itself has saved: text
between tabs, a line per selection *and view*, ``File Offset (s)`` within ``Begin File`` where
several sounds were opened as one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from unbag._files import check, check_distinct
from unbag._messages import listed
from unbag.io.adapted import Adapted, Choices
from unbag.io.head import Head
from unbag.io.roles import label_text
from unbag.io.tags import union_of
from unbag.io.texts import finite_number, numbered_lines, span, within

from .csv import is_number

BEGIN, END, OFFSET = "Begin Time (s)", "End Time (s)", "File Offset (s)"
#: Columns that people and programs keep labels in, the first of which is taken.
LABELS = ("Annotation", "Species", "Common Name", "Label", "Tag", "Call Type")
# What tells nothing of the sound: where it lies, and what another program thinks of it.
STRUCTURE = {
    "Selection", "View", "Channel", BEGIN, END, OFFSET, "Begin File", "End File", "Begin Path",
    "End Path", "Begin Date", "Begin Clock Time", "End Clock Time", "Confidence", "Rank",
}  # fmt: skip


def is_selection_table(head: Head) -> bool:
    """Return whether a file, or the first of a folder, is a selection table."""
    if head.is_folder:
        first = head.first_of_folder()
        return first is not None and is_selection_table(first)
    return BEGIN in head.columns and END in head.columns


@dataclass(frozen=True)
class Selection:
    """A selection, once for all views of it.

    Parameters
    ----------
    recording : str
    start, end : float
        Seconds in the recording.
    cells : dict of str to str
        By column.
    where : str
        Its row, for messages.
    """

    recording: str
    start: float
    end: float
    cells: dict[str, str]
    where: str


def selection_rows(path: Path) -> Iterator[Selection]:
    """Yield the selections of a table; of the rows of one selection, that of the spectrogram.

    Parameters
    ----------
    path : Path
    """
    lines = numbered_lines(path)
    check(lines, f"{path} is empty: it needs a header and a row per selection.")
    header = [name.strip() for name in lines[0][1]]
    check_distinct(path, header)
    for name in (BEGIN, END):
        check(
            name in header,
            f"{path} has no column {name!r}, which selection tables need: it has {listed(header)}.",
        )
    selections: dict[tuple[str, ...], Selection] = {}
    for number, texts in lines[1:]:
        where = f"{path}, row {number}"
        check(
            len(texts) <= len(header),
            f"{where} has {len(texts)} cells, and the header has {len(header)}.",
        )
        cells = dict.fromkeys(header, "") | dict(zip(header, map(str.strip, texts), strict=False))
        recording = cells.get("Begin File") or cells.get("Begin Path") or recording_of(path)
        start, end = span(cells[BEGIN], cells[END], where)
        if cells.get(OFFSET):
            offset = finite_number(cells[OFFSET], where)
            start, end = offset, offset + end - start
        identity = tuple(cells.get(name, "") for name in ("Selection", BEGIN, END))
        key = (recording, *identity) if cells.get("Selection") else (where,)
        if key not in selections or cells.get("View", "").startswith("Spectrogram"):
            selections[key] = Selection(recording, start, end, cells, where)
    yield from selections.values()


def recording_of(path: Path) -> str:
    """Return the recording that a file of selections is named after.

    Examples
    --------
    >>> recording_of(Path("dawn.Table.1.selections.txt"))
    'dawn'
    >>> recording_of(Path("in/dawn.BirdNET.results.csv")), recording_of(Path("dawn.txt"))
    ('dawn', 'dawn')
    """
    endings = r"(\.Table\.\d+)?(\.BirdNET|\.unbag)?(\.selections|\.results)?\.(txt|csv|tsv)$"
    return re.sub(endings, "", path.name, flags=re.IGNORECASE)


def read_selection_tables(head: Head, choices: Choices) -> Adapted:
    """Read segments: a bag is a recording, an instance a selection, its measurements are features.

    Parameters
    ----------
    head : Head
        A table, or a folder of tables.
    choices : Choices
        `label_column` is the column of labels; by default, the first of `LABELS` that is there.

    Returns
    -------
    Adapted
        With tags, the union of the labels, if there are labels.
    """
    found = [
        selection for path in head.files("selection tables") for selection in selection_rows(path)
    ]
    check(found, f"{head.path} has no selections.")
    names = list(found[0].cells)
    for selection in found:
        strange = set(names) ^ selection.cells.keys()
        check(
            not strange,
            f"{selection.where}: the tables have different columns, such as "
            f"{min(strange, default='')!r}: give them the same.",
        )
    wanted = [choices.label_column] if choices.label_column is not None else LABELS
    label_column = next((name for name in wanted if name in names), None)
    check(
        label_column is not None or choices.label_column is None,
        f"{head.path} has no column {choices.label_column!r} of labels: it has {listed(names)}.",
    )
    columns = {
        "bag": [each.recording for each in found],
        "start": [each.start for each in found],
        "end": [each.end for each in found],
    }
    labels = [label_text(each.cells[label_column]) if label_column else "" for each in found]
    has_labels = any(labels)
    if has_labels:
        columns["instance_label"] = [label or None for label in labels]
    columns["duration"] = [each.end - each.start for each in found]
    for name in names:
        if name not in STRUCTURE and name != label_column and name not in columns:
            columns[name] = _typed([each.cells[name] for each in found])
    tags = union_of(columns["bag"], [[label] for label in labels]) if has_labels else None
    places = [within(each.where, head.path) for each in found]
    return Adapted(pa.table(columns), tags, places.__getitem__)


def _typed(texts: list[str]) -> pa.Array:
    """Return a column as numbers if all cells are such; else as text, null where it is empty."""
    if all(map(is_number, texts)):
        return pa.array([float(text) for text in texts])
    return pa.array([text or None for text in texts], pa.string())
