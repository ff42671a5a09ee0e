"""Several files as one table: rows one after the other, and one id in two files is one bag."""

import glob
import os
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from unbag._files import TABLES, DataError, check, refuse, suffix_of
from unbag._messages import shortened

from .formats.arrow import TypedTable
from .table import Paths, Table, open_source
from .text import TextFile, TextTable


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
        # Pipes and broken links are not passed over: opening them raises the error.
        found = sorted(each for each in inside if suffix_of(each) in TABLES and not each.is_dir())
        check(found, f"{path} is a folder without a table in it: pass a file, or another folder.")
        return found
    found = [Path(each) for each in sorted(glob.glob(str(path), recursive=True))]
    found = [each for each in found if not each.is_dir()]
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
    parts: Any = [open_source(file, TABLES) for file in files]
    text = [part for part in parts if part.is_text]
    check(
        len(text) in (0, len(parts)),
        f"{name}: the files of one table are all text or all Parquet and Feather: convert some by "
        "`unbag data convert`.",
    )
    return (JoinedText if text else JoinedTyped)(name, parts)


class JoinedTables(Table):
    """The rows of several tables of the same columns, one after the other."""

    def __init__(self, path: Path, parts: Sequence[Any]):
        self.path: Path = path
        self.parts: Any = parts
        self.columns: list[str] = list(parts[0].columns)
        for part in parts[1:]:
            self._check_columns(part)
        self.format: str = parts[0].format
        if len(parts) > 1:
            self.format = f"{len(parts):,} files, {self.format}"
        self.compression: str = parts[0].compression

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

    @cached_property
    def starts(self) -> list[int]:
        """The places where the files begin."""
        sizes = (part.rows.num_rows if part.is_text else part.n_rows for part in self.parts)
        return list(accumulate(sizes, initial=0))[:-1]

    def _chunks(self, texts, numbers, chunk_bytes, with_gaps):
        for start, part in zip(self.starts, self.parts, strict=True):
            for first, table in part.chunks(texts, numbers, chunk_bytes, with_gaps=with_gaps):
                yield start + first, self._agreed(part, table)

    def _agreed(self, part, table):
        """Return a chunk of a part with the types of the whole."""
        return table

    def _part_of(self, row):
        """Return the part that a row lies in, and its place there."""
        place = bisect_right(self.starts, row) - 1
        return self.parts[place], row - self.starts[place]

    def place(self, row: int) -> str:
        """Name a row by its place in its file, and by the file if there are several."""
        part, row = self._part_of(row)
        return part.place(row) if len(self.parts) == 1 else f"{part.path.name}, {part.place(row)}"

    def file_and_place(self, row: int) -> str:
        """Name a row by the path of its file and its place there."""
        part, row = self._part_of(row)
        return part.file_and_place(row)


class JoinedTyped(JoinedTables, TypedTable):
    """Several tables whose columns have types of Arrow, which agree or can be made to."""

    def __init__(self, path: Path, parts: Sequence[Any]):
        super().__init__(path, parts)
        fields = [self._joined_type(name) for name in self.columns]
        self.schema: pa.Schema = pa.schema(fields, self.parts[0].schema.metadata)
        self.n_rows: Any = sum(part.n_rows for part in parts)

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
                # No type of integers holds all that have a sign, and all that have none.
                is_wide = found.type == pa.int64() and pa.uint64() in kinds
                return fields[0].with_type(pa.decimal128(20) if is_wide else found.type)
        return fields[0]

    def _agreed(self, part, table):
        fields = [self.schema.field(name) for name in table.schema.names]
        columns = []
        for field, column in zip(fields, table.columns, strict=True):
            try:
                columns.append(column if column.type == field.type else column.cast(field.type))
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"{part.path}, column {field.name!r} holds {column.type}, and with the other "
                    f"files it would be {field.type}, which cannot hold every number of it: give "
                    f"it one type in all files ({shortened(str(error))})."
                ) from error
        return type(table).from_arrays(columns, schema=pa.schema(fields))


class JoinedText(JoinedTables, TextTable):
    """Several files of delimited text; what is written after them is like the first."""

    def __init__(self, path: Path, parts: Sequence[TextFile]):
        super().__init__(path, parts)
        self.delimiter: str = parts[0].delimiter
        self.line_end: str = parts[0].line_end
        self.has_mark: bool = parts[0].has_mark

    @property
    def rows(self) -> pa.Table:
        """All cells of all files, as text."""
        return pa.concat_tables([part.rows.select(self.columns) for part in self.parts])

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
