"""Segments of recordings that are given: windows, and boxes and embeddings of other programs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unbag._files import TABLES, DataError, PathLike, check
from unbag._messages import argument, listed, shortened
from unbag._warnings import warn_caller
from unbag.io.adapted import Head, finite_number
from unbag.io.adapters import adapted, recognised
from unbag.io.formats.raven import recording_of
from unbag.io.spans import BANDS
from unbag.io.table import open_source

from .sound_files import BLOCK_SECONDS

# Windows of embeddings that are longer may hold several birds.
LONG_WINDOW = 1.5


def checked_windows(windows: float, hop: float | None) -> tuple[float, float]:
    """Return the length of windows and the step from one to the next, in seconds."""
    step = windows if hop is None else hop
    check(
        0.05 <= windows <= BLOCK_SECONDS,
        f"{argument('windows')} must be from 0.05 to {BLOCK_SECONDS} seconds, not {windows}.",
    )
    check(
        0 < step <= windows,
        f"{argument('hop')} must be more than 0 and at most {windows} seconds, not {step}.",
    )
    return windows, step


def window_boxes(seconds: float, windows: float, hop: float, highest: float) -> NDArray[Any]:
    """Return the boxes of windows; the last one ends with the recording, if half of it is there."""
    n_windows = max(1, 1 + int(np.floor((seconds - 0.5 * windows) / hop + 1e-9)))
    starts = hop * np.arange(n_windows)
    ends = np.minimum(starts + windows, seconds)
    # Those that would only repeat the end of the recording are left out.
    kept = np.append(True, ends[1:] > ends[:-1])
    starts, ends = starts[kept], ends[kept]
    return np.column_stack([starts, ends, np.zeros(len(starts)), np.full(len(starts), highest)])


@dataclass(frozen=True)
class Vectors:
    """Vectors of windows of one recording, such as embeddings.

    Attributes
    ----------
    start, end : ndarray of shape (n_windows,)
        Seconds.
    values : ndarray of float32 of shape (n_windows, n_features)
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    values: NDArray[np.float32]

    def at(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the vectors of the windows that share most time with spans, then the nearest."""
        common = np.minimum(end[:, None], self.end) - np.maximum(start[:, None], self.start)
        away = np.abs((start + end)[:, None] - (self.start + self.end)) / 2
        # Of those that hold a span entirely, the one in whose middle it is.
        score = np.minimum(common, 0.999 * (end - start)[:, None]) - 1e-3 * away
        return self.values[score.argmax(axis=1)]


def read_boxes(path: PathLike, highest: float) -> dict[str, NDArray[np.float64]]:
    """Read start, end, low and high of segments by recording.

    The file is of Raven, Audacity or BirdNET, or a folder of such; or a table with columns file,
    start and end, and perhaps low and high. Segments without frequencies have all.
    """
    head = Head(path)
    format = recognised(head)
    if format == "birdnet-detections":
        return _unique_boxes(_birdnet_boxes(head, highest))
    if format is not None:
        table: Any = adapted(path, format, {}).instances
        if table is None or not {"start", "end"} <= set(table.column_names):
            raise DataError(f"{path} looks like {format}, which has no segments of recordings.")
        names = table.column("bag").to_pylist()
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        where = [str(path)] * len(names)
    else:
        source: Any = open_source(path, TABLES)
        with source:
            file = next(
                (name for name in ("file", "bag", "recording") if name in source.columns), None
            )
            needed = [file, "start", "end"]
            check(
                file is not None and {"start", "end"} <= set(source.columns),
                f"{path} is no file of segments: it needs columns file, start and end, and has "
                f"{listed(source.columns)}.",
            )
            names_of_columns = [*needed, *(n for n in ("low", "high") if n in source.columns)]
            chunks = [chunk for _, chunk in source.chunks(texts=names_of_columns)]
        check(chunks, f"{path} has no segments.")
        table = pa.concat_tables(chunks)
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        names = [str(each) for each in columns[str(file)]]
        where = [f"{path}, row {row + 2}" for row in range(len(names))]
    band = next((pair for pair in BANDS if set(pair) <= columns.keys()), None)
    found: dict[str, list[list[float]]] = {}
    for row, name in enumerate(names):
        ends = [columns["start"][row], columns["end"][row]]
        frequencies = [0.0, highest] if band is None else [columns[each][row] for each in band]
        box = [finite_number(each, where[row]) for each in (*ends, *frequencies)]
        check(
            0 <= box[0] < box[1] and 0 <= box[2] < box[3],
            f"{where[row]}: {shortened(name)} from {box[0]} to {box[1]} s and {box[2]} to {box[3]} "
            "Hz is no segment: it has no length, or no band.",
        )
        found.setdefault(name, []).append(box)
    return {name: np.array(sorted(boxes)) for name, boxes in found.items()}


def _birdnet_boxes(head, highest):
    for path in head.files("BirdNET's results"):
        own = Head(path)
        if "Begin Time (s)" in own.columns:
            from unbag.io.formats.raven import selection_rows

            for row in selection_rows(path):
                cells = [row.cells.get(name) for name in BANDS[1]]
                band = [0.0, highest]
                if all(cells):
                    band = [finite_number(each, row.where) for each in cells]
                yield row.recording, [row.start, row.end, band[0], min(band[1], highest)]
            continue
        source: Any = open_source(path, TABLES)
        with source:
            has_file = "File" in source.columns
            names = ["Start (s)", "End (s)", *(["File"] if has_file else [])]
            for first, chunk in source.chunks(texts=names):
                cells = zip(*(chunk.column(name).to_pylist() for name in names), strict=True)
                for row, (start, end, *file) in enumerate(cells, first):
                    where = f"{path}, {source.place(row)}"
                    recording = file[0] if file and file[0] else recording_of(path)
                    ends = [finite_number(each, where) for each in (start, end)]
                    yield recording, [*ends, 0.0, highest]


def _unique_boxes(rows):
    """Return each box once: there is one for each species that may be in it."""
    found: dict[str, set[tuple[float, ...]]] = {}
    for name, box in rows:
        found.setdefault(name, set()).add(tuple(box))
    return {name: np.array(sorted(boxes)) for name, boxes in found.items()}


def read_vectors(path: PathLike) -> tuple[dict[str, Vectors], tuple[str, ...]]:
    """Read vectors of windows by recording, such as BirdNET's embeddings, and their names."""
    head = Head(path)
    format = recognised(head)
    check(
        format in ("birdnet-embeddings", "hoplite"),
        f"{path} holds no embeddings that are known: those of BirdNET (CSV) and Perch (hoplite) "
        "are.",
    )
    table: Any = adapted(path, str(format), {}).instances
    texts = {"bag", "start", "end", "instance_label", "known_label", "duration"}
    names = tuple(name for name in table.column_names if name not in texts)
    check({"start", "end"} <= set(table.column_names), f"{path} does not say when windows begin.")
    values = np.column_stack([table.column(name).to_numpy() for name in names]).astype(np.float32)
    start: NDArray[np.float64] = table.column("start").to_numpy().astype(float)
    end: NDArray[np.float64] = table.column("end").to_numpy().astype(float)
    bags = np.array(table.column("bag").to_pylist(), dtype=object)
    found = {}
    order = np.argsort(bags.astype(str), kind="stable")
    for rows in np.split(order, np.flatnonzero(bags[order][1:] != bags[order][:-1]) + 1):
        found[str(bags[rows[0]])] = Vectors(start[rows], end[rows], values[rows])
    length = float(np.median(end - start))
    steps = [float(step) for each in found.values() for step in np.diff(np.sort(each.start))]
    step = float(np.median(steps)) if steps else length
    if length > LONG_WINDOW and step > 0.5 * length:
        warn_caller(
            f"{path}: windows of {length:g} s, one every {step:g} s, may hold several birds, which "
            "then get the same vector. Embed overlapping windows, such as one every second."
        )
    return found, names
