"""Where instances lie in their recordings, for tools by which people listen and label."""

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._files import DataError, PathLike, check, make_folder, refuse, writing
from unbag._messages import argument, shortened

from .arrays import is_unknown
from .bag_table import BagTable


class Spans:
    """Where every instance lies in its recording or picture, and what it is; see `write_raven`.

    Instances of pictures do not `need_times`.

    Attributes
    ----------
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
        self.labels: list[Any] = [
            None if is_unknown(label) else one_line(label) for label in labels
        ]
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
        check(
            (low is None) == (high is None),
            f"Pass both {argument('low')} and {argument('high')}, or neither.",
        )
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
    """Read a column of finite numbers, in the order of ``bags.X``; None is an error."""
    if column is None:
        raise DataError(
            f"{table.path}: pass {argument(role)}, the column of {role} times in seconds."
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


def write_recordings(
    path: PathLike,
    spans: Spans,
    lines: Callable[[str, list[int]], Iterable[list[str]]],
    suffix: str,
) -> list[Path]:
    """Write one file of tab-separated cells for each recording; return their paths.

    `path` is the file or, if there are several recordings, the folder of files with the `suffix`.
    `lines` makes the cells of each line, given a recording and its instances.
    """
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


def one_line(value: object) -> str:
    """Write a value as text without tabs and line ends: these formats know no quotes."""
    return re.sub(r"[\t\r\n]+", " ", str(value))


def seconds(value: Any) -> str:
    """Write a number of seconds or hertz, to a millionth."""
    return f"{value:.6f}"
