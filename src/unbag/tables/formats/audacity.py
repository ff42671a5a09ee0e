r"""Audacity label tracks: segments of recordings, perhaps labelled.

Checked against ``audacity/audacity-manual``
(``manual/man/importing_and_exporting_labels.html``): no header; start, end and label between tabs,
start and end the same for a point; a line that begins with a backslash gives the frequencies of
the label above it. BirdNET-Analyzer and unbag write a fourth cell, the confidence of a program.
"""

from pathlib import Path

import pyarrow as pa

from unbag._files import PathLike, check
from unbag.tables.adapted import (
    Adapted,
    Choices,
    Head,
    finite_number,
    labelled_segments,
    numbered_lines,
    span,
)
from unbag.tables.spans import Spans, seconds, write_recordings
from unbag.tagging import label_text

from .raven import US, recording_of

# A name that no other program gives its files: those of people lie beside their recordings.
SUFFIX = ".unbag.txt"
FREQUENCIES = ("low_frequency", "high_frequency")


def is_label_track(head: Head) -> bool:
    """Return whether a file, or the first of a folder, is a label track."""
    cells = head.first_file().first_line.split("\t")
    try:
        return len(cells) >= 2 and float(cells[0]) <= float(cells[1])
    except ValueError:
        return False


def read_label_tracks(head: Head, _: Choices) -> Adapted:
    """Read segments: a bag is a label track, an instance a label in it.

    The union of the labels are the tags. Frequencies are features if all labels have them. Labels
    are known, unless a program wrote them.
    """
    bags, spans, labels, bands, by_people = [], [], [], [], []
    for path in head.files("label tracks"):
        lines = numbered_lines(path)
        check(lines, f"{path} is empty: it needs a line per label.")
        for number, cells in lines:
            where = f"{path}, line {number}"
            check(
                len(cells) >= 2,
                f"{where}: a label has a start and an end, separated by a tab.",
            )
            if cells[0].strip() == "\\":
                check(len(cells) == 3 and spans, f"{where}: no label for these frequencies.")
                bands[-1] = tuple(finite_number(cell, where) for cell in cells[1:])
                continue
            bags.append(recording_of(path))
            spans.append(span(cells[0], cells[1], where))
            labels.append(label_text(cells[2]) if len(cells) > 2 else "")
            by_people.append(not any(map(str.strip, cells[3:])) and not path.name.endswith(SUFFIX))
            bands.append(None)
    check(spans, f"{head.path} has no labels.")
    columns, tags, notes = labelled_segments(bags, spans, labels, by_people)
    n_without = sum(band is None for band in bands)
    if not n_without:
        columns |= dict(zip(FREQUENCIES, map(list, zip(*bands, strict=True)), strict=True))
    elif n_without < len(bands):
        notes = (
            *notes,
            f"Frequencies are not used, since {n_without:,} of {len(bands):,} labels have none.",
        )
    return Adapted(pa.table(columns), tags, notes)


def write_audacity(path: PathLike, spans: Spans) -> list[Path]:
    """Write annotated instances as label tracks that Audacity imports; return their paths.

    Frequencies, if they were looked for, go into a second line of each label.
    """

    def lines(_, instances):
        for i in instances:
            yield [seconds(spans.start[i]), seconds(spans.end[i]), spans.labels[i], US]
            if spans.band:
                yield ["\\", *(seconds(values[i]) for values in spans.band)]

    return write_recordings(path, spans, lines, SUFFIX)
