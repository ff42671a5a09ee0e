"""Several files as one table: rows one after the other, and one id in two files is one bag."""

import glob
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from unbag._files import TABLES, DataError, check, refuse, suffix_of

from .bag_table import CHUNK_BYTES
from .formats.arrow import TypedTable
from .formats.csv import DelimitedFile, TextTable, cell_text, quoted, raw_cells
from .table import Paths, Table, open_source


def files_of(path: Paths) -> list[Path]:
    """Return the files that a path, a folder, a pattern or a list of these stands for.

    In a folder, its tables count, but those whose names begin with a dot or an underscore. A
    missing file is kept: opening it raises the error.
    """
    several = [path] if isinstance(path, str | os.PathLike) else path
    check(several, "No file is given: pass one.")
    found: list[Path] = []
    for each in map(Path, several):
        if each.is_dir() or (not each.exists() and any(sign in str(each) for sign in "*?[")):
            found += _files_below(each)
        else:
            found.append(each)
    return found


def _files_below(path):
    """Return the tables that lie in a folder, or the files that a pattern matches, sorted."""
    if path.is_dir():
        inside = (each for each in path.iterdir() if not each.name.startswith((".", "_")))
        found = sorted(each for each in inside if suffix_of(each) in TABLES and each.is_file())
        check(found, f"{path} is a folder without a table in it: pass a file, or another folder.")
        return found
    found = [Path(each) for each in sorted(glob.glob(str(path), recursive=True))]
    found = [each for each in found if each.is_file()]
    check(found, f"{path} matches no file: check the pattern and the folder.")
    return found


def open_joined(files: Sequence[Path], path: Paths) -> Table:
    """Open two or more files, found by `path`, as one table."""
    is_one = isinstance(path, str | os.PathLike)
    name = Path(path) if is_one else Path(f"{files[0]} and {len(files) - 1} more")
    places = [file.resolve() for file in files]
    refuse(
        (file for file, place in zip(files, places, strict=True) if places.count(place) > 1),
        lambda file: f"{file} is given twice: its rows would count twice.",
    )
    parts: list[Any] = []
    try:
        for file in files:
            parts.append(open_source(file, TABLES))
        text = [part for part in parts if part.is_text]
        check(
            len(text) in (0, len(parts)),
            f"{name}: the files of one table are all text or all Parquet and Feather: convert "
            "some by `unbag data convert`.",
        )
        return (JoinedText if text else JoinedTyped)(name, parts)
    except BaseException:
        for part in parts:
            part.close()
        raise


class JoinedTables(Table):
    """The rows of several tables of the same columns, one after the other."""

    def __init__(self, path: Path, parts: Sequence[Any]):
        self.path: Path = path
        self.parts: Any = parts
        self.columns: list[str] = list(parts[0].columns)
        for part in parts[1:]:
            self._check_columns(part)
        self.format: str = f"{len(parts)} files, {parts[0].format}"
        self.compression: str = parts[0].compression
        sizes = [part.n_rows for part in parts]
        if None not in sizes:
            self.n_rows: int | None = sum(size for size in sizes if size is not None)
        # Where the parts begin, as far as they have been read.
        self._starts = [0]

    def _check_columns(self, part):
        first = self.parts[0]
        for one, other in ((first, part), (part, first)):
            present = set(other.columns)
            refuse(
                (name for name in one.columns if name not in present),
                lambda name, one=one, other=other: (
                    f"{other.path} has no column {name!r}, which {one.path} has: files of one "
                    "table need the same columns."
                ),
            )

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        return [part.path for part in self.parts]

    def close(self) -> None:
        """Close the files."""
        for part in self.parts:
            part.close()

    def _chunks(self, texts, numbers, chunk_bytes, with_gaps):
        start = 0
        for place, part in enumerate(self.parts):
            if place == len(self._starts):
                self._starts.append(start)
            done = 0
            for first, table in part.chunks(texts, numbers, chunk_bytes, with_gaps=with_gaps):
                yield start + first, self._agreed(part, table)
                done = first + table.num_rows
            start += done

    def _agreed(self, part, table):
        """Return a chunk of a part with the types of the whole."""
        return table

    def _part_of(self, row):
        """Return the part that a row lies in, and its place there."""
        place = bisect_right(self._starts, row) - 1
        return self.parts[place], row - self._starts[place]

    def place(self, row: int) -> str:
        """Name a row by its file and its place there."""
        part, row = self._part_of(row)
        return f"{part.path.name}, {part.place(row)}"

    def file_and_place(self, row: int) -> str:
        """Name a row by the path of its file and its place there."""
        part, row = self._part_of(row)
        return part.file_and_place(row)

    def bad_number(self, row: int, column: str, value: object = None) -> DataError:
        """Make the error for a cell that should be a finite number."""
        part, row = self._part_of(row)
        return part.bad_number(row, column, value)


class JoinedTyped(JoinedTables, TypedTable):
    """Several tables whose columns have types of Arrow, which agree or can be made to."""

    def __init__(self, path: Path, parts: Sequence[Any]):
        super().__init__(path, parts)
        fields = [self._joined_type(name) for name in self.columns]
        self.schema: pa.Schema = pa.schema(fields, self.parts[0].schema.metadata)

    def _joined_type(self, name):
        fields = [part.schema.field(name) for part in self.parts]
        for part, field in zip(self.parts, fields, strict=True):
            if not field.type.equals(fields[0].type):
                kinds = {each.type.value_type if pa.types.is_dictionary(each.type) else each.type
                         for each in fields}  # fmt: skip
                schemas = [pa.schema([(name, kind)]) for kind in kinds]
                try:
                    found = pa.unify_schemas(schemas, promote_options="permissive").field(name)
                except pa.ArrowException as error:
                    raise DataError(
                        f"{part.path}, column {name!r} holds {field.type}, but in "
                        f"{self.parts[0].path} it holds {fields[0].type}: make them alike."
                    ) from error
                return fields[0].with_type(found.type)
        return fields[0]

    def _agreed(self, part, table):
        wanted = pa.schema([self.schema.field(name) for name in table.column_names])
        if table.schema.equals(wanted):
            return table
        return table.cast(wanted)


class JoinedText(JoinedTables, TextTable):
    """Several files of delimited text; what is written after them is like the first."""

    def __init__(self, path: Path, parts: Sequence[DelimitedFile]):
        super().__init__(path, parts)
        first = parts[0]
        self.delimiter: bytes = first.delimiter
        self.header: bytes = first.header
        self.line_end: bytes = first.line_end
        self.has_mark: bool = first.has_mark

    @cached_property
    def decimal(self) -> str:
        """The decimal mark, on which the files have to agree."""
        marks = {part.decimal: part.path for part in self.parts}
        check(
            len(marks) == 1,
            f"Numbers have a decimal comma in {marks.get(',')} and a point in {marks.get('.')}: "
            "write them alike.",
        )
        return next(iter(marks))

    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns that hold numbers in any of the files: then all have to."""
        found = {name for part in self.parts for name in part.numbers()}
        return [name for name in self.columns if name in found]

    def blocks(self, chunk_bytes: int = CHUNK_BYTES) -> Iterator[list[bytes]]:
        """Yield lists of the records of rows, spelt as those of the first file are."""
        for part in self.parts:
            place = {name: at for at, name in enumerate(part.columns)}
            order = [place[name] for name in self.columns]
            is_alike = part.delimiter == self.delimiter and order == sorted(order)
            for records in part.blocks(chunk_bytes):
                yield (
                    records
                    if is_alike
                    else [
                        self._respelt(record.rstrip(b"\r"), part.delimiter, order)
                        for record in records
                    ]
                )

    def _respelt(self, record, delimiter, order):
        cells = raw_cells(record, delimiter)
        return self.delimiter.join(quoted(cell_text(cells[at]), self.delimiter) for at in order)
