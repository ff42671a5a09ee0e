"""Where instances lie in their recordings, for tools by which people listen and label."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._files import (
    DataError,
    PathLike,
    check,
    make_folder,
    refuse,
    writing,
)
from unbag._messages import argument, shortened, words

from .arrays import is_unknown
from .bag_table import BagTable
from .text import is_number

#: Columns of the lowest and the highest frequency of instances, as tables call them.
BANDS = (("low", "high"), ("Low Freq (Hz)", "High Freq (Hz)"), ("low_frequency", "high_frequency"))
#: Bytes of a file's name on the systems that people have, and characters of its stem.
LONGEST_NAME = 255
LONGEST_STEM = 120


class Spans:
    """Where every instance lies in its recording or picture, and its label.

    Instances of pictures do not `need_times`. With `find_band`, columns of frequencies are found by
    their usual names.
    """

    def __init__(
        self,
        table: BagTable,
        labels: ArrayLike,
        score: ArrayLike | None = None,
        *,
        need_times: bool = True,
        find_band: bool = False,
    ):
        self.table: BagTable = table
        labels = np.asarray(labels, dtype=object)
        self.shape: tuple[int] = (table.bags.n_instances,)
        check(labels.shape == self.shape, f"labels have shape {labels.shape}, not {self.shape}.")
        self.labels: list[Any] = [
            None if is_unknown(label) else one_line(label) for label in labels
        ]
        self.score: NDArray[np.float64] | None = None
        if score is not None:
            self.score = np.asarray(score, dtype=float)
            shape = self.score.shape
            check(shape == self.shape, f"score has shape {shape}, not {self.shape}.")
        self.start: NDArray[np.float64] = np.zeros(self.shape)
        self.end: NDArray[np.float64] = np.zeros(self.shape)
        if need_times:
            self.start = column_numbers(table, table.roles.start, "start")
            self.end = column_numbers(table, table.roles.end, "end")
        refuse(
            np.flatnonzero(self.end < self.start),
            lambda i: (
                f"{_place(table, i)}: the {words().instance} ends at {self.end[i]}, before it "
                f"starts at {self.start[i]}: exchange the two."
            ),
        )
        self.band: list[NDArray[np.float64]] = found_band(table) if find_band else []
        self.groups: dict[str, list[int]] = {}
        self.recordings: list[str] = recordings_of(table)
        for i, (group, label) in enumerate(zip(self.recordings, self.labels, strict=True)):
            instances = self.groups.setdefault(group, [])
            if label is not None:
                instances.append(i)
        for instances in self.groups.values():
            instances.sort(key=self.start.__getitem__)


def found_band(table: BagTable) -> list[NDArray[np.float64]]:
    """Return the lowest and the highest frequencies of instances, by usual names of columns.

    There are none if columns of these names hold something else.
    """
    columns = set(getattr(table.source, "columns", ()))
    for names in BANDS:
        if set(names) <= columns:
            try:
                low, high = (column_numbers(table, name, "band") for name in names)
            except DataError:
                continue
            if (low >= 0).all() and (low <= high).all():
                return [low, high]
    return []


def recordings_of(table: BagTable) -> list[str]:
    """Return the recording or picture of each instance; without such a column, the bag."""
    media = table.roles.media
    bag_of_instance = np.repeat(table.bags.ids, table.bags.sizes)
    found = bag_of_instance if media is None else table.column(media, "media")
    return ["" if each is None else str(each) for each in found.tolist()]


def column_numbers(table: BagTable, column: str | None, role: str) -> NDArray[np.float64]:
    """Read a column of finite numbers, in the order of ``bags.X``; None is an error."""
    if column is None:
        raise DataError(
            f"{table.path}: pass {argument(role)}, the column of {role} times in seconds."
        )
    values = table.column(column, role)
    numbers = np.empty(len(values))
    texts = table.source.parts if table.source.is_text else ()
    has_commas = any(part.decimal == "," for part in texts)
    for i, value in enumerate(values):
        text = str(value)
        if has_commas and is_number(text, ","):
            text = text.replace(",", ".")
        try:
            # Python takes an underscore for a part of a number.
            numbers[i] = np.nan if value is None or not text or "_" in text else float(text)
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
    files = recording_files(path, spans.groups, suffix)
    if len(files) > 1 or Path(path).is_dir():
        for folder in sorted({each.parent for each in files}):
            make_folder(folder)
    for file_path, (group, instances) in zip(files, spans.groups.items(), strict=True):
        write_lines(file_path, lines(group, instances))
    return files


def write_lines(path: PathLike, lines: Iterable[list[str]]) -> None:
    """Write a file of tab-separated cells."""
    with writing(path) as file:
        for cells in lines:
            file.write(("\t".join(cells) + "\n").encode())


def is_one_table(path: PathLike) -> bool:
    """Return whether a path names a file of text, and no folder."""
    return Path(path).suffix == ".txt" and not Path(path).is_dir()


def recording_files(
    path: PathLike, recordings: Iterable[str], suffix: str, *, in_one: bool = False
) -> list[Path]:
    """Return the file of each recording, in the order in which they first occur.

    With `in_one`, one file holds several recordings, if the path names a file.
    """
    path, names = Path(path), list(dict.fromkeys(recordings))
    if in_one and is_one_table(path):
        return [path]
    if len(names) <= 1 and not path.is_dir():
        return [path] * len(names)
    check(
        path.suffix != ".txt" and not path.is_file(),
        f"{path}: there are {len(names)} recordings, and each needs a file of its own: "
        "name a folder.",
    )
    taken, files = set(), []
    for name, folders in zip(names, folders_of(names), strict=True):
        stem = Path(name.replace("\\", "/")).name
        stem = re.sub(r"\.(wav|mp3|flac|ogg|aiff?|m4a|wma)$", "", stem, flags=re.IGNORECASE)
        stem = _allowed(stem)
        own, count = cut(stem, suffix), 1
        # Some systems do not tell cases, or forms of Unicode, apart.
        while (key := unicodedata.normalize("NFC", "/".join([*folders, own])).casefold()) in taken:
            count += 1
            own = cut(stem, f"-{count}{suffix}")
        taken.add(key)
        files.append(path.joinpath(*folders, own))
    return files


def folders_of(names: Sequence[str]) -> list[list[str]]:
    """Return the folders of recordings, as they may be made below another folder.

    Of absolute names, the folders that all of them share are left out.

    Examples
    --------
    >>> folders_of(["north/dawn.wav", "dawn.wav", "../x/dawn.wav"])
    [['north'], [], ['x']]
    >>> folders_of(["/data/north/dawn.wav", "/data/south/dawn.wav"])
    [['north'], ['south']]
    """
    parts = [name.replace("\\", "/").split("/")[:-1] for name in names]
    if any(each[:1] == [""] or each[0].endswith(":") for each in parts if each):
        are_shared = takewhile(lambda each: len({*each}) == 1, zip(*parts, strict=False))
        n_shared = len(list(are_shared))
        parts = [each[n_shared:] for each in parts]
    return [[_allowed(part) for part in each if part.strip(". ")] for each in parts]


def _allowed(name):
    """Return a name of a file or folder that every system allows."""
    return re.sub(r'[\x00-\x1f<>:"/\\|?*]', "_", name).strip(". ") or "recording"


def cut(stem: str, end: str) -> str:
    """Put the end of a file's name behind its stem, which is cut where the name gets too long."""
    room = LONGEST_NAME - len(end.encode())
    # What cannot be written as UTF-8, such as half a character, is replaced.
    whole = stem[:LONGEST_STEM].encode(errors="replace")
    return whole[:room].decode(errors="ignore") + end


def one_line(value: object) -> str:
    """Write a value as text without tabs and line ends: these formats know no quotes."""
    return re.sub(r"[\t\r\n]+", " ", str(value))


def seconds(value: Any) -> str:
    """Write a number of seconds or hertz, to a millionth."""
    return f"{value:.6f}"
