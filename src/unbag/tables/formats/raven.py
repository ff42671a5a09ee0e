"""Raven selection tables: segments of recordings, measured and perhaps labelled.

Checked against ``kitzeslab/opensoundscape`` (``opensoundscape/annotations.py``, `from_raven_files`
and `to_raven_files`), against ``birdnet-team/BirdNET-Analyzer``
(``birdnet_analyzer/analyze/utils.py``), and against tables that Raven Pro itself has saved: text
between tabs, a line per selection *and view*, ``File Offset (s)`` within ``Begin File`` where
several sounds were opened as one.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa

from unbag._files import PathLike, check, check_distinct
from unbag._messages import listed
from unbag.tables.adapted import (
    Adapted,
    Choices,
    Head,
    finite_number,
    has_score,
    labelled_segments,
    numbered_lines,
    span,
)
from unbag.tables.bag_table import BagTable
from unbag.tables.extracted import extracted_facts
from unbag.tables.spans import Spans, is_one_table, one_line, seconds, write_lines, write_recordings
from unbag.tables.text import is_number
from unbag.tagging import label_text

# A name that no other program gives its files: those of people lie beside their recordings.
SUFFIX = ".unbag.selections.txt"
BEGIN, END, OFFSET = "Begin Time (s)", "End Time (s)", "File Offset (s)"
HEADER = ("Selection", "View", "Channel", BEGIN, END)
#: Columns that people and programs keep labels in: the first one is used.
LABELS = ("Annotation", "Species", "Common Name", "Label", "Tag", "Call Type")
# Its labels are no classes, unless somebody says so.
CALL_TYPE = "Call Type"
# Who gave a label. Where a person has corrected ours, they write another name, or nothing.
LABELLED_BY, US = "Labelled By", "unbag"
# Columns that do not describe the sound: where it lies, and what another program found.
STRUCTURE = {
    "Selection", "View", "Channel", BEGIN, END, OFFSET, "Begin File", "End File", "Begin Path",
    "End Path", "Begin Date", "Begin Clock Time", "End Clock Time", "Confidence", "Rank",
    LABELLED_BY,
}  # fmt: skip


def is_selection_table(head: Head) -> bool:
    """Return whether a file, or the first of a folder, is a selection table."""
    return {BEGIN, END} <= set(head.first_file().columns)


@dataclass(frozen=True)
class Selection:
    """A selection, once for all views of it: its seconds in the recording, its cells by column."""

    recording: str
    start: float
    end: float
    cells: dict[str, str]
    where: str


def selection_rows(path: Path) -> Iterator[Selection]:
    """Yield the selections of a table; if one has several rows, the row of the spectrogram."""
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
    """Return the recording that a file of selections is named after."""
    endings = r"(\.Table\.\d+)?(\.BirdNET|\.unbag)?(\.selections|\.results)?\.(txt|csv|tsv)$"
    return re.sub(endings, "", path.name, flags=re.IGNORECASE)


def read_selection_tables(head: Head, choices: Choices) -> Adapted:
    """Read segments: a bag is a recording, an instance a selection, its measurements are features.

    Labels are in `annotation_column`, or in the first of `LABELS` there is; the tags are their
    union. They are known labels if people gave them: not where a program says how sure it was, nor
    in what unbag wrote, nor call types.
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
    named = choices.get("annotation_column")
    label_column = next((name for name in ([named] if named else LABELS) if name in names), None)
    check(
        label_column is not None or named is None,
        f"{head.path} has no column {named!r} of labels: it has {listed(names)}.",
    )
    labels = [label_text(each.cells[label_column]) if label_column else "" for each in found]
    spans = [(each.start, each.end) for each in found]
    is_class = label_column != CALL_TYPE or named is not None
    by_people = [is_class and is_by_person(each) for each in found]
    recordings = [each.recording for each in found]
    columns, tags, notes = labelled_segments(recordings, spans, labels, by_people)
    for name in names:
        # How sure a program was says nothing about the sound.
        is_other = name in STRUCTURE or has_score([name])
        if not is_other and name != label_column and name not in columns:
            columns[name] = _typed([each.cells[name] for each in found])
    return Adapted(pa.table(columns), tags, notes)


def is_by_person(selection: Selection) -> bool:
    """Return whether a person gave the label of a selection, as far as its table says."""
    if LABELLED_BY in selection.cells:
        return selection.cells[LABELLED_BY].strip().lower() != US
    is_ours = SUFFIX in selection.where
    return not is_ours and not has_score(selection.cells)


def _typed(texts: list[str]) -> pa.Array:
    """Return a column as numbers if all cells are such; else as text, null where it is empty."""
    if all(map(is_number, texts)):
        return pa.array([float(text) for text in texts])
    return pa.array([text or None for text in texts], pa.string())


def write_raven(path: PathLike, spans: Spans, media_root: PathLike | None = None) -> list[Path]:
    """Write annotated instances as selection tables that Raven opens; return their paths.

    ``Begin Path`` and ``File Offset (s)`` say in one table of several recordings where a selection
    is.
    """
    is_one = is_one_table(path) and len(spans.groups) > 1
    frequencies = ["Low Freq (Hz)", "High Freq (Hz)"][: len(spans.band)]
    files = ["Begin File", "Begin Path", OFFSET] if is_one else ["Begin File"]
    scores = [] if spans.score is None else [np.round(spans.score, 4)]
    probability = ["Probability"] * len(scores)
    header = [*HEADER, *frequencies, *files, *probability, LABELLED_BY, "Annotation"]
    begins = begin_times(spans) if is_one else dict.fromkeys(spans.groups, 0.0)

    def lines(group, instances, numbers):
        file = one_line(Path(group).name)
        for i, number in zip(instances, numbers, strict=False):
            begin, start, end = begins[group], spans.start[i], spans.end[i]
            places = [file]
            if is_one:
                places += [one_line(begin_path(spans.table, group, media_root)), seconds(start)]
            yield [
                str(number), "Spectrogram 1", "1", seconds(begin + start), seconds(begin + end),
                *(seconds(values[i]) for values in spans.band), *places,
                *(str(values[i]) for values in scores), US, spans.labels[i],
            ]  # fmt: skip

    if not is_one:
        return write_recordings(
            path, spans, lambda name, own: [header, *lines(name, own, count(1))], SUFFIX
        )
    numbers = count(1)
    of_all = (line for group in spans.groups.items() for line in lines(*group, numbers))
    write_lines(path, [header, *of_all])
    return [Path(path)]


def begin_times(spans: Spans) -> dict[str, float]:
    """Return when each recording begins, if they are played one after the other.

    That is how Raven counts ``Begin Time (s)`` where several sounds are opened as one. A recording
    of unknown length is taken to end with its last instance.
    """
    facts = extracted_facts(spans.table.source)
    known = {} if facts is None else facts.seconds
    lengths = dict.fromkeys(spans.groups, 0.0)
    for group, end in zip(spans.recordings, spans.end.tolist(), strict=True):
        lengths[group] = max(lengths[group], end)
    begins, begin = {}, 0.0
    for group, length in lengths.items():
        begins[group] = begin
        begin += known.get(group, length)
    return begins


def begin_path(table: BagTable, recording: str, media_root: PathLike | None) -> str:
    """Return the path of a recording: in the folder that is named, or that the table knows."""
    facts = extracted_facts(table.source)
    root = media_root if media_root is not None else None if facts is None else facts.folder
    if root is None or os.path.isabs(recording):
        return recording
    # One file may have been extracted from, rather than a folder.
    is_file = Path(root).name == recording and not Path(root).is_dir()
    return os.path.abspath(root if is_file else os.path.join(root, recording))
