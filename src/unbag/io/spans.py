"""Selections for people who listen: Raven selection tables and Audacity label files."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._files import DataError, PathLike, check, make_folder, refuse, writing
from unbag._messages import shortened

from .arrays import is_unknown
from .bag_table import BagTable

RAVEN = ("Selection", "View", "Channel", "Begin Time (s)", "End Time (s)")
# Names that no other program gives its files: those of people lie beside their recordings.
RAVEN_SUFFIX, AUDACITY_SUFFIX = ".unbag.selections.txt", ".unbag.txt"


def write_raven(
    path: PathLike,
    table: BagTable,
    labels: ArrayLike,
    *,
    start: str | None = None,
    end: str | None = None,
    low: str | None = None,
    high: str | None = None,
    media: str | None = None,
    more: Mapping[str, ArrayLike] | None = None,
) -> list[Path]:
    """Write annotated instances as selection tables that Raven opens.

    Parameters
    ----------
    path : str or path
        The file; or, if there are several recordings, a folder for one file each, such as
        ``dawn.unbag.selections.txt``.
    table : BagTable
        Read from a table that has the columns below.
    labels : array-like of shape (n_instances,)
        The label of each instance, in the order of ``bags.X``; an instance without one (None or
        empty) is left out.
    start, end : str, optional
        Columns of seconds; by default those with these roles.
    low, high : str, optional
        Columns of frequencies in hertz.
    media : str, optional
        The column of the recording; by default the one with this role, or else the bag.
    more : dict of str to array-like of shape (n_instances,), optional
        Further columns, such as the probability.

    Returns
    -------
    list of Path
        What was written.
    """
    spans = Spans(table, labels, start, end, low, high, media)
    more = {name: np.asarray(values) for name, values in (more or {}).items()}
    for name, values in more.items():
        check(
            values.shape == spans.shape,
            f"The column {name!r} has shape {values.shape}, not {spans.shape}.",
        )
    frequencies = ["Low Freq (Hz)", "High Freq (Hz)"][: len(spans.band)]
    header = [*RAVEN, *frequencies, "Begin File", *map(_line, more), "Annotation"]
    refuse(
        (name for name in more if header.count(_line(name)) > 1),
        lambda name: f"Selection tables have a column {name!r} already: choose another name.",
    )

    def lines(group, instances):
        yield header
        for selection, i in enumerate(instances, 1):
            yield [
                str(selection), "Spectrogram 1", "1",
                *(_number(values[i]) for values in (spans.start, spans.end, *spans.band)),
                _line(Path(str(group)).name),
                *(_line(values[i]) for values in more.values()), spans.labels[i],
            ]  # fmt: skip

    return _write_groups(path, spans, lines, RAVEN_SUFFIX)


def write_audacity(
    path: PathLike,
    table: BagTable,
    labels: ArrayLike,
    *,
    start: str | None = None,
    end: str | None = None,
    low: str | None = None,
    high: str | None = None,
    media: str | None = None,
) -> list[Path]:
    """Write annotated instances as label tracks that Audacity imports.

    Parameters
    ----------
    path : str or path
        The file; or, if there are several recordings, a folder for one file each, such as
        ``dawn.unbag.txt``.
    table : BagTable
        Read from a table that has the columns below.
    labels : array-like of shape (n_instances,)
        The label of each instance, in the order of ``bags.X``; an instance without one (None or
        empty) is left out.
    start, end : str, optional
        Columns of seconds; by default those with these roles.
    low, high : str, optional
        Columns of frequencies in hertz.
    media : str, optional
        The column of the recording; by default the one with this role, or else the bag.

    Returns
    -------
    list of Path
        What was written.
    """
    spans = Spans(table, labels, start, end, low, high, media)

    def lines(_, instances):
        for i in instances:
            yield [_number(spans.start[i]), _number(spans.end[i]), spans.labels[i]]
            if spans.band:
                yield ["\\", *(_number(values[i]) for values in spans.band)]

    return _write_groups(path, spans, lines, AUDACITY_SUFFIX)


class Spans:
    """Where every instance lies in its recording or picture, and what it is.

    Parameters
    ----------
    table, labels, start, end, low, high, media
        As in `write_raven`.
    need_times : bool, default=True
        Whether instances have a start and an end; those of pictures have none.

    Attributes
    ----------
    labels : list of str or None
        None where there is none.
    start, end : ndarray of shape (n_instances,)
    band : list of ndarray of shape (n_instances,)
        The low and the high frequencies, or nothing.
    groups : dict of str to list of int
        The instances that have a label, by their recording or picture, in the order of time.
    """

    def __init__(
        self,
        table: BagTable,
        labels: ArrayLike,
        start: str | None = None,
        end: str | None = None,
        low: str | None = None,
        high: str | None = None,
        media: str | None = None,
        *,
        need_times: bool = True,
    ):
        labels = np.asarray(labels, dtype=object)
        self.shape: tuple[int] = (table.bags.n_instances,)
        check(labels.shape == self.shape, f"labels have shape {labels.shape}, not {self.shape}.")
        self.labels: list[Any] = [None if is_unknown(label) else _line(label) for label in labels]
        self.start: NDArray[np.float64] = np.zeros(self.shape)
        self.end: NDArray[np.float64] = np.zeros(self.shape)
        if need_times:
            self.start = column_numbers(table, start or table.roles.start, "start")
            self.end = column_numbers(table, end or table.roles.end, "end")
        refuse(
            np.flatnonzero(self.end < self.start),
            lambda i: (
                f"{_place(table, i)}: the instance ends at {self.end[i]}, before it starts "
                f"at {self.start[i]}: exchange the two."
            ),
        )
        check((low is None) == (high is None), "Name both columns of frequencies, or none.")
        self.band: list[NDArray[np.float64]] = [
            column_numbers(table, each, "band") for each in (low, high) if each is not None
        ]
        media = media or table.roles.media
        bag_of_instance = np.repeat(table.bags.ids, table.bags.sizes)
        group_of = bag_of_instance if media is None else table.column(media, "media")
        self.groups: dict[str, list[int]] = {}
        for i, (group, label) in enumerate(zip(group_of.tolist(), self.labels, strict=True)):
            instances = self.groups.setdefault("" if group is None else str(group), [])
            if label is not None:
                instances.append(i)
        for instances in self.groups.values():
            instances.sort(key=self.start.__getitem__)


def column_numbers(table: BagTable, column: str | None, role: str) -> NDArray[np.float64]:
    """Read a column of finite numbers, in the order of ``bags.X``.

    Parameters
    ----------
    table : BagTable
    column : str or None
        None is an error.
    role : str
        What the column is needed for.
    """
    if column is None:
        raise DataError(
            f"{table.path}: which column tells {role} of each instance, in seconds? Name it."
        )
    values = table.column(column, role)
    numbers = np.empty(len(values))
    for i, value in enumerate(values):
        try:
            numbers[i] = np.nan if value in (None, "") else float(value)
            lacking = "" if math.isfinite(numbers[i]) else "finite number"
        except (TypeError, ValueError):
            lacking = "number"
        if lacking:
            where = f"{_place(table, i)}, column {column!r}"
            raise DataError(f"{where}: {shortened(value)} is not a {lacking}.")
    return numbers


def _place(table, instance):
    return f"{table.path}, {table.source.place(int(table.rows[instance]))}"


def _write_groups(path, spans, lines, suffix):
    path = Path(path)
    files = [path]
    if len(spans.groups) > 1 or path.is_dir():
        check(
            path.suffix != ".txt" and not path.is_file(),
            f"{path}: there are {len(spans.groups)} recordings, and each needs a file of its own: "
            "name a folder.",
        )
        make_folder(path)
        files = _file_names(path, spans.groups, suffix)
    for file_path, (group, instances) in zip(files, spans.groups.items(), strict=True):
        with writing(file_path) as file:
            for cells in lines(group, instances):
                file.write(("\t".join(cells) + "\n").encode())
    return files


def _file_names(folder, groups, suffix):
    taken, files = set(), []
    for group in groups:
        stem = Path(group.replace("\\", "/")).name
        stem = re.sub(r"\.(wav|mp3|flac|ogg|aiff?|m4a|wma)$", "", stem, flags=re.IGNORECASE)
        stem = re.sub(r'[\x00-\x1f<>:"/\\|?*]', "_", stem).strip(". ")[:120] or "recording"
        name, count = stem, 1
        while name.lower() in taken:
            count += 1
            name = f"{stem}-{count}"
        taken.add(name.lower())
        files.append(folder / f"{name}{suffix}")
    return files


def _line(value):
    """Text that keeps to its line and its column: these formats know no quotes."""
    return re.sub(r"[\t\r\n]+", " ", str(value))


def _number(value):
    return f"{value:.6f}"
