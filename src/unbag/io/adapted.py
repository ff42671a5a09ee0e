"""What adapters of other tools' files are given, what they make, and what they share.

An adapter gets the beginning of a file or folder (`Head`), by which it recognises its format, and
`Choices`; it makes instances and tags of it (`Adapted`).
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

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
from unbag.tagging import UNTAGGED, Tagging, warn_of_unused_names

from .table import Table
from .tags import ABSENT, States, matched, renamed_states, union_of

# What programs call it how sure they are.
SCORE = re.compile(r"\b(confidence|score|probability|prob|logits?)\b", re.IGNORECASE)
# Longer first lines are those of no format that is known here.
LONGEST_HEADER = 1 << 20


class Choices(TypedDict, total=False):
    """What a person decides about the reading of another tool's file; see `read_from`."""

    tags: PathLike | None
    absent: str | None
    untagged: str | None
    confidence: float | None
    annotation_column: str | None


def check_choices(choices: Choices) -> None:
    """Raise an error if there is no such choice, or no such value of it."""
    for name in choices:
        if name not in Choices.__annotations__:
            known = listed(Choices.__annotations__)
            raise TypeError(f"got an unexpected keyword argument {name!r}; there are {known}")
    for name, words in (("absent", ABSENT), ("untagged", UNTAGGED)):
        given = choices.get(name)
        check(
            given is None or given in words,
            f"{argument(name)} must be one of {', '.join(words)}, not {given!r}.",
        )
    confidence = choices.get("confidence") or 0.0
    check(
        0 <= confidence <= 1,
        f"{argument('confidence')} must lie between 0 and 1, not {confidence}.",
    )


class Head:
    """What is known of a file or folder that exists: its beginning, or all of it if it is JSON."""

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
        """What a JSON file holds; None for anything else."""
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
        return texts

    def _text_files(self):
        names = sorted(name for name in self.names if name.lower().endswith(DELIMITED))
        return [self.path / name for name in names]


def nth_row(row: int) -> str:
    """Name a row, counted from 1."""
    return f"row {row + 1}"


@dataclass(frozen=True)
class Adapted:
    """What a file of another tool holds.

    Parameters
    ----------
    instances : pyarrow.Table or None
        One row per instance, with a column ``bag``; perhaps ``start``, ``end``,
        ``instance_label``, and ``known_label`` for labels that people gave, from which a fit
        learns; other columns of numbers are features. None if the file is about whole recordings
        only.
    tags : dict of str to dict of str to int, or None
        For bags by name: 1 for labels that are present, 0 for absent, -1 for unknown ones. A bag
        that nobody has tagged is not there. None if the file has no labels.
    place : callable
        Names a row of the instances, as the file has it.
    notes : tuple of str
        What people should know about what was left out.
    """

    instances: pa.Table | None
    tags: States | None
    place: Callable[[int], str] = nth_row
    notes: tuple[str, ...] = field(default=())

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


# What text files and tables of several tools have in common.


def finite_number(value: object, where: str) -> float:
    """Return text or a number as a finite number; `where` names the cell in messages.

    Examples
    --------
    >>> finite_number(" 2.5", "row 1")
    2.5
    """
    try:
        # Python takes an underscore for a part of a number.
        is_number = not isinstance(value, bool) and "_" not in str(value)
        number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where}: {shortened(value)} is not a finite number: correct it.")
    return number


def span(start: object, end: object, where: str) -> tuple[float, float]:
    """Return the start and end of a segment, in seconds; `where` names the row in messages."""
    first, last = finite_number(start, where), finite_number(end, where)
    check(first <= last, f"{where}: the segment ends at {last}, before it begins at {first}.")
    return first, last


def spans_of(
    starts: Iterable[object], ends: Iterable[object], where: Callable[[int], str]
) -> list[tuple[float, float]]:
    """Return the start and end of each segment; `where` is called only to name a wrong row."""
    spans = []
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        try:
            spans.append(span(start, end, ""))
        except DataError:
            # To name a row takes a pass over the file.
            span(start, end, where(row))
    return spans


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
        columns["instance_label"] = [label or None for label in labels]
        known = [
            label if is_known and label else None
            for label, is_known in zip(labels, by_people, strict=True)
        ]
        columns["known_label"] = pa.array(known, pa.string())
        n_guessed = sum(map(bool, labels)) - sum(each is not None for each in known)
        if n_guessed:
            notes = (
                f"Labels of single segments that are not learnt from, since a program gave them or "
                f"they are no classes: {n_guessed:,}. Labels of recordings are made of them, "
                f"unless {argument('tags')} has others. If people have checked them, use "
                f"{argument('known', 'instance_label')}.",
            )
    columns["duration"] = [end - start for start, end in spans]
    tags = union_of(bags, [[label] for label in labels]) if has_labels else None
    return columns, tags, notes


def has_score(columns: Iterable[str]) -> bool:
    """Return whether a table says how sure a program was of its labels.

    Examples
    --------
    >>> has_score(["Selection", "Confidence"]), has_score(["Selection", "Low Freq (Hz)"])
    (True, False)
    """
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


def within(where: str, path: Path) -> str:
    """Return the rest of the name of a row that begins with its file or folder.

    Examples
    --------
    >>> within("in/dawn.txt, row 3", Path("in")), within("in/dawn.txt, row 3", Path("in/dawn.txt"))
    ('dawn.txt, row 3', 'row 3')
    """
    return where.removeprefix(str(path)).lstrip("/\\, ")


def need_columns(source: Table, columns: Sequence[str], format: str) -> None:
    """Raise an error that names the first missing column, and the `format` that needs it."""
    refuse(
        (name for name in columns if name not in source.columns),
        lambda name: (
            f"{source.path} has no column {name!r}, which {format} need; its columns are "
            f"{listed(source.columns)}."
        ),
    )


def read_columns(source: Table, columns: Sequence[str], format: str) -> pa.Table:
    """Read some columns of a table, perhaps of no rows, as they are; see `need_columns`."""
    need_columns(source, columns, format)
    chunks = [table for _, table in source.chunks(columns)]
    if not chunks:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return pa.concat_tables(chunks)
