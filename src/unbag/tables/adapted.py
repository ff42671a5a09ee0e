"""Arguments, results and helpers of the adapters of other tools' files.

An adapter gets the beginning of a file or folder (`Head`), by which it recognises its format, and
`Choices`; it makes instances and tags of it (`Adapted`).
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
from pyarrow import ArrowException, parquet

from unbag._files import (
    DELIMITED,
    PARQUET,
    DataError,
    PathLike,
    check,
    existing_file,
    parsed_json,
    refuse,
    suffix_of,
    unreadable,
)
from unbag._messages import argument, listed, shortened
from unbag.tagging import Tagging, label_text, warn_of_unused_names, write_cell

from .table import Table
from .tags import ABSENT, States, label_sets, matched, renamed_states, union_of

# What programs call it how sure they are.
SCORE = re.compile(r"\b(confidence|score|probability|prob|logits?)\b", re.IGNORECASE)
# Hours, minutes and seconds.
CLOCK = re.compile(r"(?:([0-9]{1,3}):)?([0-9]{1,4}):([0-5]?[0-9](?:\.[0-9]*)?)")
# Longer first lines are those of no format that is known here.
LONGEST_HEADER = 1 << 20


class Choices(TypedDict, total=False):
    """Options for reading another tool's file; see `read_from`."""

    tags: PathLike | None
    absent: str | None
    confidence: float | None
    annotation_column: str | None


def check_choices(choices: Choices) -> None:
    """Raise an error if there is no such choice, or no such value of it."""
    for name in choices:
        if name not in Choices.__annotations__:
            known = listed(Choices.__annotations__)
            raise TypeError(f"got an unexpected keyword argument {name!r}; there are {known}")
    absent = choices.get("absent")
    check(
        absent is None or absent in ABSENT,
        f"{argument('absent')} must be one of {', '.join(ABSENT)}, not {absent!r}.",
    )
    confidence = choices.get("confidence") or 0.0
    check(
        0 <= confidence <= 1,
        f"{argument('confidence')} must lie between 0 and 1, not {confidence}.",
    )


class Head:
    """The beginning of a file or folder that exists, or all of it if it is JSON."""

    def __init__(self, path: PathLike):
        self.path: Path = Path(path)
        self.is_folder: bool = self.path.is_dir()
        if not self.is_folder:
            existing_file(self.path)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in a folder; of a file, none."""
        if not self.is_folder:
            return frozenset()
        return frozenset(each.name for each in self.path.iterdir())

    @cached_property
    def first_line(self) -> str:
        """The first line of a text that is not blank; of anything else, nothing."""
        if self.is_folder or self.path.suffix.lower() not in DELIMITED:
            return ""
        with self.path.open("rb") as file:
            for line in file.read(LONGEST_HEADER).splitlines():
                if line.strip():
                    return line.decode("utf-8-sig", "replace").rstrip("\r")
        return ""

    @cached_property
    def columns(self) -> list[str]:
        """The names of columns that a text or a Parquet file begins with, if it does."""
        if not self.is_folder and suffix_of(self.path) in PARQUET:
            try:
                return parquet.read_schema(self.path).names
            except (OSError, ArrowException, UnicodeDecodeError):
                return []
        separator = max("\t,;", key=self.first_line.count)
        return [cell.strip().strip('"') for cell in self.first_line.split(separator)]

    @cached_property
    def document(self) -> Any:
        """The content of a JSON file; None for anything else."""
        if self.is_folder or self.path.suffix.lower() != ".json":
            return None
        try:
            content = self.path.read_bytes()
            document = parsed_json(content)
            if b"\\ud" in content.lower() or b"\xed" in content:
                # There may be half a character, which no table can hold.
                json.dumps(document, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path} is not a JSON file, or is damaged: {error}.") from error
        return document

    def first_file(self) -> "Head":
        """Return the head of the first text file of a folder, if it has any; otherwise this."""
        texts = self._text_files()
        return Head(texts[0]) if texts else self

    def files(self, what: str) -> list[Path]:
        """Return the file, or the text files of a folder, by name; `what` names them in errors."""
        if not self.is_folder:
            return [self.path]
        texts = self._text_files()
        check(texts, f"{self.path} is a folder without {what}: choose another.")
        return [existing_file(each) for each in texts]

    def _text_files(self):
        names = sorted(name for name in self.names if name.lower().endswith(DELIMITED))
        return [self.path / name for name in names]


@dataclass(frozen=True)
class Adapted:
    """The content of another tool's file.

    `detections` are rows of recording, start, end, label and state (1 or -1), where the tags were
    made of them, and there are no instances. An empty label means that there is none.
    """

    instances: pa.Table | None
    tags: States | None
    notes: tuple[str, ...] = field(default=())
    detections: Sequence[tuple[str, float, float, str, int]] = ()

    def timed_tags(self) -> Sequence[tuple[str, float, float, str, int]]:
        """Return what is known of stretches of recordings, as rows like `detections`."""
        columns = ("bag", "start", "end", "instance_label")
        if self.instances is None or not set(columns) <= set(self.instances.column_names):
            return self.detections
        cells = (self.instances.column(name).to_pylist() for name in columns)
        return [(*row, 1) for row in zip(*cells, strict=True) if row[-1]]

    def with_tags(self, other: "Adapted", path: PathLike) -> "Adapted":
        """Return the instances of this file with the tags of another one, at `path`."""
        if self.instances is None:
            return self
        bags = self.instances.column("bag").unique().to_pylist()
        tags, notes = matched(bags, other.tags or {}, path)
        return replace(self, tags=tags, notes=(*self.notes, *other.notes, *notes))

    def renamed(self, tagging: Tagging, path: PathLike) -> "Adapted":
        """Return the same with the labels of a file, at `path`, named as people say."""
        if not (tagging.none or tagging.fold_case or tagging.rename):
            return self
        tags, instances = self.tags, self.instances
        if tags is not None:
            try:
                tags = {bag: renamed_states(states, tagging) for bag, states in tags.items()}
            except ValueError as error:
                raise DataError(f"{path}: {error}") from error
        for name in ("instance_label", "known_label"):
            if instances is not None and name in instances.column_names:
                given = instances.column(name).to_pylist()
                cells = [tagging.name_of_instance(each) or None for each in given]
                column = pa.array(cells, pa.string())
                instances = instances.set_column(instances.column_names.index(name), name, column)
        classes = {name for states in (tags or {}).values() for name in states}
        warn_of_unused_names(path, tagging.unused_names(), classes)
        return replace(self, tags=tags, instances=instances)

    def labelled(
        self, absent: str, delimiter: str, path: PathLike, tagging: Tagging | None = None
    ) -> Any:
        """Return the instances with a column of the labels of their bags, if there are any.

        The cells of bags without tags are null, unless `tagging` says what that means.
        """
        instances = self.instances
        if self.tags is None or instances is None:
            return instances
        sets: dict[str, frozenset[Any]] = label_sets(self.tags, absent)
        bags = instances.column("bag").combine_chunks().dictionary_encode()
        names = bags.dictionary.to_pylist()
        is_blank = np.array([name not in sets for name in names], dtype=bool)
        otherwise: frozenset[Any] = frozenset()
        if tagging is not None:
            otherwise = tagging.meaning_of_blanks(is_blank, names, path)
        try:
            cells = [write_cell(sets.get(str(name), otherwise), delimiter) for name in names]
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        # As categories, since cells that name every unknown label are long.
        indices = bags.indices.to_numpy(zero_copy_only=False)
        hidden = is_blank[indices] if tagging is None else None
        column = pa.DictionaryArray.from_arrays(
            pa.array(indices, pa.int32(), mask=hidden), pa.array(cells, pa.string())
        )
        return instances.add_column(1, "labels", column)


# What files of several tools have in common.


@contextmanager
def written_by(tool: str, where: object) -> Iterator[None]:
    """Refuse a part of a file that is not laid out as a tool writes it."""
    try:
        yield
    except DataError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        what = f"there is no {error}" if isinstance(error, KeyError) else error
        raise DataError(
            f"{where} is not as {tool} writes it ({what}): export it again, or correct it."
        ) from error


def finite_number(value: object, where: str) -> float:
    """Return text or a number as a finite number; `where` names the cell in messages."""
    try:
        # Python takes an underscore for a part of a number.
        is_number = not isinstance(value, bool) and "_" not in str(value)
        number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where}: {shortened(value)} is not a finite number: correct it.")
    return number


def seconds_of(value: object, where: str) -> float:
    """Return a time in seconds, which may be written as 1:02:03.5; `where` names the cell.

    Examples
    --------
    >>> seconds_of("2.5", ""), seconds_of("1:30", ""), seconds_of("00:01:03.50", "")
    (2.5, 90.0, 63.5)
    """
    found = CLOCK.fullmatch(str(value).strip())
    if found is None:
        return finite_number(value, where)
    hours, minutes, seconds = found.groups()
    return 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds)


def span(start: object, end: object, where: str) -> tuple[float, float]:
    """Return the start and end of a segment, in seconds; `where` names the row in messages."""
    first, last = seconds_of(start, where), seconds_of(end, where)
    check(first <= last, f"{where}: the segment ends at {last}, before it begins at {first}.")
    return first, last


def data_row(path: Path, row: Any) -> str:
    """Name a row of a table, counted from 1 after its header."""
    return f"{path}, data row {row + 1}"


def segments(path: Path, names: Any, starts: Any, ends: Any) -> dict[str, Any]:
    """Return columns of bag, start and end, given those of a table of segments of recordings."""
    spans = []
    for row, (name, start, end) in enumerate(zip(names, starts, ends, strict=True)):
        check(label_text(name), f"{data_row(path, row)}: the row names no recording.")
        spans.append(span(start, end, data_row(path, row)))
    return segment_columns(list(map(str, names)), spans)


def segment_columns(bags: Sequence[str], spans: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return the columns that tables of segments begin with."""
    starts, ends = zip(*spans, strict=True)
    return {"bag": bags, "start": pa.array(starts), "end": pa.array(ends)}


def labelled_segments(
    bags: Sequence[str],
    spans: Sequence[tuple[float, float]],
    labels: Sequence[str],
    by_people: Sequence[bool],
) -> tuple[dict[str, Any], States | None, tuple[str, ...]]:
    """Return columns of segments with labels, perhaps empty ones, their union as tags, and notes.

    Labels that people gave are known labels as well.
    """
    columns = segment_columns(bags, spans)
    has_labels, notes = any(labels), ()
    if has_labels:
        known = [label or None if is_known else None
                 for label, is_known in zip(labels, by_people, strict=True)]  # fmt: skip
        columns["instance_label"] = [label or None for label in labels]
        columns["known_label"] = pa.array(known, pa.string())
        n_guessed = sum(map(bool, labels)) - sum(map(bool, known))
        if n_guessed:
            notes = (
                f"Labels of single segments that are not learnt from, since a program gave them or "
                f"they are not classes: {n_guessed:,}. Labels of recordings are made of them, "
                f"unless {argument('tags')} has others. If people have checked them, use "
                f"{argument('known', 'instance_label')}.",
            )
    columns["duration"] = [end - start for start, end in spans]
    tags = union_of(bags, [[label] for label in labels]) if has_labels else None
    return columns, tags, notes


def has_score(columns: Iterable[str]) -> bool:
    """Return whether a table has probabilities of its labels."""
    return any(SCORE.search(name) for name in columns)


def numbered_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Read UTF-8 text without quotes: number and tab-separated cells of each filled line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not encoded in UTF-8: save it as UTF-8.") from error
    # By line feeds alone: other marks, such as form feeds, may stand within a cell.
    lines = enumerate(text.split("\n"), 1)
    return [(number, line.rstrip("\r").split("\t")) for number, line in lines if line.strip()]


def read_columns(source: Table, columns: Sequence[str], format: str) -> pa.Table:
    """Read some columns of a table, perhaps of no rows, which the files of a `format` have."""
    refuse(
        (name for name in columns if name not in source.columns),
        lambda name: (
            f"{source.path} has no column {name!r}, which {format} need; its columns are "
            f"{listed(source.columns)}."
        ),
    )
    chunks = [table for _, table in source.chunks(columns)]
    if not chunks:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return pa.concat_tables(chunks)
