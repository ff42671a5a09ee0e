"""Delimited text, such as CSV: read at once into an Arrow table of strings, and written again.

Cells stay what they were to the letter; they become numbers where they are used as such. Quotes
count only at the beginning of a cell, as in a spreadsheet: ``5" pipe`` is a cell like any other.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyarrow import types

from unbag._files import (
    DELIMITED,
    TAB_SEPARATED,
    DataError,
    PathLike,
    check,
    check_distinct,
    check_rows,
    check_same,
    check_unpacked,
    file_state,
    is_gzipped,
    refuse,
    suffix_of,
    unreadable,
)
from unbag._messages import listed, shortened
from unbag.tables.bag_table import SAMPLE_ROWS
from unbag.tables.roles import Roles
from unbag.tables.table import Table

# A quoted cell that is longer than this was probably never meant to be opened.
LONGEST_RECORD = 64 << 20
# What is read at a time, and of a table of many columns, how many rows at least.
BLOCK_BYTES = 4 << 20
FEWEST_ROWS = 16
# Size of the first rows, from which columns of numbers are recognised.
SAMPLE_BYTES = 4 << 20
MOST_COLUMNS = 1_000_000

BOM = b"\xef\xbb\xbf"
FOREIGN = {
    b"PK\x03\x04": "a ZIP or Excel file", b"PAR1": "a Parquet file", b"ARROW1": "Feather",
    b"\xff\xfe": "encoded in UTF-16", b"\xfe\xff": "encoded in UTF-16",
}  # fmt: skip
DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab"}
# No two repetitions in it can share out the same digits, which would take time squared in them.
NUMBER = r"[ \t]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*"
PATTERNS = {".": re.compile(NUMBER), ",": re.compile(NUMBER.replace(r"\.", ","))}
# What stands for a missing value, in lower case; and what else is no number in a column of numbers.
GAPS = ("", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "-")
NO_NUMBERS = (*GAPS, "inf", "-inf")


@dataclass(frozen=True)
class TextStyle:
    """How text is written: its suffix, delimiter, decimal mark, line end, byte order mark."""

    path: Path
    delimiter: str
    decimal: str
    line_end: str
    has_mark: bool

    def stored(self) -> dict[str, str]:
        """Return it as the metadata of a file has it; see `of`."""
        return {"suffix": self.path.suffix, "delimiter": self.delimiter, "decimal": self.decimal,
                "line_end": self.line_end, "mark": "yes" if self.has_mark else ""}  # fmt: skip

    @classmethod
    def of(cls, stored: Mapping[str, str]) -> "TextStyle | None":
        """Return a style that was stored; None if it is none."""
        found = cls(
            Path("x" + stored.get("suffix", "")), stored.get("delimiter", ""),
            stored.get("decimal", ""), stored.get("line_end", ""), bool(stored.get("mark")),
        )  # fmt: skip
        is_known = found.delimiter in DELIMITER_NAMES and found.decimal in PATTERNS
        return found if is_known and found.line_end in ("\n", "\r\n") else None


class TextTable(Table):
    """A table of text in one or several files, its `parts`; `rows` has all its cells as text."""

    is_text: bool = True
    parts: Any
    rows: pa.Table
    delimiter: str
    decimal: Any
    line_end: str
    has_mark: bool

    @property
    def style(self) -> TextStyle:
        """How a table like this one is written."""
        return TextStyle(self.path, self.delimiter, self.decimal, self.line_end, self.has_mark)

    def is_wide(self, roles: Roles) -> bool:
        """Return False: text has no lists, so that a row is an instance."""
        return False

    def check_type(self, column: str, role: str, is_wide: bool = False) -> None:
        """Do nothing: text has no types."""

    def dtype(self, columns: object) -> type[np.floating]:
        """Return double precision: text has none of its own."""
        return np.float64

    def bad_number(self, row: int, column: str, value: object = None) -> DataError:
        """Make the error for a cell that should be a finite number."""
        text = self.rows.column(column)[row].as_py()
        return super().bad_number(row, column, None if is_gap(text) else text)


class TextFile(TextTable):
    """A file of delimited text whose first record names the columns.

    The delimiter of ``.csv`` and ``.txt`` is the one of comma, semicolon and tab that gives the
    header the most columns; that of ``.tsv`` is the tab. A file ``.gz`` is compressed. Its rows are
    written again with its delimiter, its line end, and its byte order mark (`has_mark`).
    """

    def __init__(self, path: PathLike):
        self.path: Path = Path(path)
        self._state = file_state(path)
        # Until its rows are asked for.
        self._text: bytes | None = self._read()
        self._read_header(self._text)

    @property
    def parts(self) -> "list[TextFile]":
        """The file itself."""
        return [self]

    def _read(self):
        """Return all of the text, unpacked, without a byte order mark."""
        pieces, n_bytes = [], 0
        opener = gzip.open if is_gzipped(self.path) else Path.open
        try:
            with opener(self.path, "rb") as file:
                head = file.read(4096)
                self._check_is_text(head)
                self.has_mark: bool = head.startswith(BOM)
                file.seek(len(BOM) * self.has_mark)
                while data := file.read(BLOCK_BYTES if is_gzipped(self.path) else -1):
                    n_bytes += len(data)
                    if is_gzipped(self.path):
                        check_unpacked(self.path, n_bytes, self._state[1])
                    pieces.append(data)
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(self.path, error) from error
        check_same(self.path, file_state(self.path) == self._state)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _check_is_text(self, head):
        refuse(
            (what for mark, what in FOREIGN.items() if head.startswith(mark)),
            lambda what: (
                f"{self.path} is {what}, not text in UTF-8: give it the right suffix, or save it "
                "as 'CSV UTF-8'."
            ),
        )
        check(
            b"\0" not in head,
            f"{self.path} holds binary data, not text: is it the right file?",
        )

    def _read_header(self, text):
        guess = "\t" if suffix_of(self.path) in TAB_SEPARATED else ","
        start = 0
        # The delimiter hardly ever matters for where the header ends.
        for cells, end in records_of(self.path, text, guess):
            if cells:
                break
            start = end
        else:
            raise DataError(f"{self.path} is empty: it needs a header and a row per instance.")
        header = text[start:end].removesuffix(b"\n")
        # So that no mark after it is taken for a BOM, what follows begins with the end of its line.
        self._end_of_header: int = start + len(header)
        self.line_end: str = "\r\n" if header.endswith(b"\r") else "\n"
        names = {each: self._cells(header, each) for each in DELIMITER_NAMES}
        candidates = [guess] if guess == "\t" else list(DELIMITER_NAMES)
        self.delimiter: str = max(candidates, key=lambda each: len(names[each]))
        self.columns: list[str] = names[self.delimiter]
        check(
            max(map(len, names.values())) <= MOST_COLUMNS,
            f"{self.path}: the header names more than {MOST_COLUMNS:,} columns: is it one?",
        )
        self.format: str = f"text separated by {DELIMITER_NAMES[self.delimiter]}s"
        check_distinct(self.path, self.columns)

    def _cells(self, header, delimiter):
        """Return the cells of a header, none if its quotes have no end between such delimiters."""
        try:
            return next(records_of(self.path, header, delimiter))[0]
        except DataError:
            return []

    @cached_property
    def rows(self) -> pa.Table:
        """All cells, as text."""
        text, self._text = self._text or self._read(), None
        body = pa.py_buffer(text).slice(self._end_of_header)
        kinds = dict.fromkeys(self.columns, pa.string())
        if not body.size:
            return pa.schema(kinds.items()).empty_table()
        has_quotes = b'"' in text
        parse = pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=has_quotes)
        convert = pa.csv.ConvertOptions(column_types=kinds, strings_can_be_null=False)
        table, fault = None, None
        for n_bytes in (BLOCK_BYTES, LONGEST_RECORD):
            read = pa.csv.ReadOptions(
                # Threads would hold several blocks at a time.
                use_threads=False, column_names=self.columns, block_size=n_bytes
            )  # fmt: skip
            try:
                table = pa.csv.read_csv(pa.BufferReader(body), read, parse, convert)
                break
            except pa.ArrowInvalid as error:
                fault = error
                if "straddling" not in str(error):
                    break
        # Both are taken for the end of a record without a word.
        has_carriage = text.count(b"\r") != text.count(b"\r\n")
        if table is None or has_carriage or (has_quotes and self._may_be_torn(text, table)):
            self._check_records(text)
        if table is None:
            raise DataError(f"{self.path}: {fault}.") from fault
        return table

    def _may_be_torn(self, text, table):
        """Return whether the last cell of a table may be one whose quote is never closed."""
        if not table.num_rows:
            return False
        last = table.column(table.num_columns - 1)[-1].as_py()
        return text.endswith(b'"' + last.replace('"', '""').encode())

    def _check_records(self, text):
        """Raise an error about the first record that cannot be read, if there is one."""
        for row, (cells, _) in enumerate(records_of(self.path, text, self.delimiter), 1):
            check(
                len(cells) in (0, len(self.columns)),
                f"{self.path}, row {row} has {len(cells)} cells, but the header names "
                f"{len(self.columns)} columns ({listed(self.columns)}): is a delimiter missing, or "
                "a quote?",
            )

    def place(self, row: int) -> str:
        """Name a row as a spreadsheet does: the header is row 1, and blank lines count."""
        return f"row {self._places[row + 1]}"

    @cached_property
    def _places(self):
        """The places of the header and of all rows among the records and blank lines."""
        records = records_of(self.path, self._read(), self.delimiter)
        places = [place for place, (cells, _) in enumerate(records, 1) if cells]
        check_same(self.path, len(places) == self.rows.num_rows + 1)
        return places

    # Numbers.

    @cached_property
    def sample(self) -> pa.Table:
        """The first rows: they decide which columns hold numbers."""
        row_bytes = self.rows.nbytes // max(1, self.rows.num_rows) + 1
        return self.rows.slice(0, min(SAMPLE_ROWS, SAMPLE_BYTES // row_bytes + 1))

    def _judged(self, decimal):
        """Return which columns hold numbers, in half of their filled cells or more.

        Return also which of them have the decimal mark in a number.
        """
        shape = len(self.columns), self.sample.num_rows
        # In one go, which is much faster than column by column.
        chunks = [chunk for column in self.sample.columns for chunk in column.chunks]
        cells = pa.chunked_array(chunks, pa.string())
        is_missing = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(cells)), pa.array(NO_NUMBERS))
        is_number = self.are_numbers(cells, decimal)
        filled = ~is_missing.to_numpy().reshape(shape)
        found = is_number.to_numpy().reshape(shape) & filled
        has_mark = pc.match_substring(cells, decimal).to_numpy().reshape(shape) & found
        are_numbers = filled.any(axis=1) & (2 * found.sum(axis=1) >= filled.sum(axis=1))
        return are_numbers, are_numbers & has_mark.any(axis=1)

    def are_numbers(self, cells: Any, decimal: str | None = None) -> Any:
        """Return which cells are numbers, by the decimal mark of the file or another."""
        return pc.match_substring_regex(cells, f"^(?:{PATTERNS[decimal or self.decimal].pattern})$")

    @cached_property
    def decimal(self) -> str:
        """The decimal mark: a comma only where no number of the first rows has a point."""
        if self.delimiter == "," or not self.rows.num_rows or self._judged(".")[1].any():
            return "."
        return "," if self._judged(",")[1].any() else "."

    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns of numbers: half of the filled cells of the first rows, or more."""
        check_rows(self.path, self.rows.num_rows)
        are_numbers, _ = self._judged(self.decimal)
        return [name for name, is_of in zip(self.columns, are_numbers, strict=True) if is_of]

    def _chunks(self, texts, numbers, chunk_bytes, with_gaps):
        rows = self.rows.select(list(dict.fromkeys([*texts, *numbers])))
        n_rows = chunk_bytes * rows.num_rows // max(1, self.rows.nbytes)
        for first in range(0, rows.num_rows, max(n_rows, FEWEST_ROWS)):
            part = rows.slice(first, max(n_rows, FEWEST_ROWS))
            columns = dict(zip(part.column_names, part.columns, strict=True))
            for name in numbers:
                found = as_numbers(columns[name], self.decimal, with_gaps)
                if found is None:
                    raise self._first_bad_number(first, part, numbers, with_gaps)
                columns[name] = found
            yield first, pa.table(columns) if numbers else part

    def _first_bad_number(self, first, part, numbers, with_gaps):
        """Make the error for the first row in which a number cannot be read."""
        rows = zip(*(part.column(name).to_pylist() for name in numbers), strict=True)
        row, name = next(
            (row, name)
            for row, cells in enumerate(rows)
            for name, text in zip(numbers, cells, strict=True)
            if not is_number(text, self.decimal) and not (with_gaps and is_gap(text))
        )
        return self.bad_number(first + row, name)


def as_numbers(column: pa.ChunkedArray, decimal: str, with_gaps: bool) -> pa.ChunkedArray | None:
    """Return cells as numbers, and empty ones as null; None if one of them is not a number.

    With gaps, text such as NA is null as well.
    """
    if decimal == ",":
        if pc.any(pc.match_substring(column, ".")).as_py():
            return None
        column = pc.replace_substring(column, ",", ".")
    try:
        return pc.cast(column, pa.float64())
    except pa.ArrowInvalid:
        gaps = pa.array(GAPS if with_gaps else [""])
    is_missing = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(column)), gaps)
    column = pc.if_else(is_missing, pa.scalar(None, pa.string()), column)
    try:
        return pc.cast(pc.utf8_trim(column, " \t"), pa.float64())
    except pa.ArrowInvalid:
        return None


def is_gap(text: str) -> bool:
    """Return whether a cell stands for a missing value."""
    return text.strip().lower() in GAPS


def is_number(text: str, decimal: str = ".") -> bool:
    """Return whether a cell is read as a number, given the decimal mark.

    Examples
    --------
    >>> is_number(" -1.5e3"), is_number("1,5"), is_number("1,5", ","), is_number("0x10")
    (True, False, True, False)
    """
    return PATTERNS[decimal].fullmatch(text) is not None


# Records, for headers, for what is wrong in a file, and for where a spreadsheet shows it.


def records_of(path: PathLike, text: bytes, delimiter: str) -> Iterator[tuple[list[str], int]]:
    r"""Yield the cells of each record, none of a blank line, and where the record ends.

    Examples
    --------
    >>> list(records_of("a.csv", b'007,"a,b"\n\n5" pipe,', ","))
    [(['007', 'a,b'], 10), ([], 11), (['5" pipe', ''], 19)]
    """
    file, is_over = io.BytesIO(text), False

    def lines():
        nonlocal is_over
        for line in file:
            # The csv module takes four bytes for each character.
            if len(line) > LONGEST_RECORD:
                raise csv.Error
            yield line.decode()
        is_over = True

    reader = csv.reader(lines(), delimiter=delimiter)
    for row in count(1):
        start, limit = file.tell(), csv.field_size_limit(LONGEST_RECORD)
        try:
            cells = next(reader, None)
            if cells is None:
                return
            # A quote that is never closed takes all that follows.
            if is_over or file.tell() - start > LONGEST_RECORD:
                raise csv.Error
        except (csv.Error, UnicodeDecodeError) as error:
            raise bad_record(path, row, text[start : file.tell()], error) from error
        finally:
            csv.field_size_limit(limit)
        yield cells, file.tell()


def bad_record(path: PathLike, row: int, record: bytes, error: Exception) -> DataError:
    """Make the error for a record that cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        wrong = error.object[max(error.start - 10, 0) : error.start + 10].rstrip(b"\r\n")
        # As most programs that do not write UTF-8 would have written it.
        shown = wrong.decode("cp1252", "replace")
        return DataError(
            f"{path}, row {row}: {shortened(shown)} is not encoded in UTF-8: save the file as 'CSV "
            "UTF-8'."
        )
    if "new-line" in str(error):
        return DataError(
            f"{path}, row {row} has a carriage return outside quotes: remove it, or save the file "
            "with the usual line ends."
        )
    first = record[:40].split(b"\n")[0]
    begins = f"begins with {shortened(first.decode('utf-8', 'replace'))}"
    return DataError(
        f"{path}: a quote is opened but never closed in the row that {begins}, or the row is too "
        "long: close the quote, or double it if it belongs to the text."
    )


# Writing.


class TextWriter:
    """Writes tables as text, perhaps in the style of another: its delimiter, line ends and BOM.

    The suffix of `path` may demand another delimiter.
    """

    def __init__(
        self, path: PathLike, file: BinaryIO, names: list[str], style: TextStyle | None = None
    ) -> None:
        self._file = file
        self._delimiter = _delimiter(path, style)
        self._line_end = "\n" if style is None else style.line_end
        if style is not None and style.has_mark:
            file.write(BOM)
        self.write_table(pa.table([[name] for name in names], names))

    def write_table(self, table: pa.Table) -> None:
        """Write some rows."""
        n_rows = max(BLOCK_BYTES * table.num_rows // max(1, table.nbytes), FEWEST_ROWS)
        for first in range(0, table.num_rows, n_rows):
            part = table.slice(first, n_rows).combine_chunks()
            texts = [column.cast(pa.string()).fill_null("").chunk(0) for column in part.columns]
            cells = [with_quotes(each, self._delimiter) for each in texts]
            records = pc.binary_join_element_wise(*cells, self._delimiter)
            records = pc.binary_join_element_wise(records, self._line_end, "")
            # Their texts lie side by side.
            start, stop = np.frombuffer(records.buffers()[1], np.int32)[[0, len(records)]].tolist()
            self._file.write(records.buffers()[2][start:stop])


def as_text(column: Any, style: TextStyle) -> Any:
    """Return a new column in the style of a text, null where a number is NaN."""
    if not types.is_floating(column.type):
        return column.cast(pa.string())
    texts = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column).cast(pa.string())
    return texts if style.decimal == "." else pc.replace_substring(texts, ".", style.decimal)


def with_quotes(cells: pa.Array, delimiter: str) -> pa.Array:
    """Put quotes around the cells that need them."""
    texts = b"" if cells.buffers()[2] is None else cells.buffers()[2].to_pybytes()
    # Most columns need none, and a look at all bytes at once is fast.
    if not any(sign in texts for sign in (b'"', b"\n", b"\r", delimiter.encode())):
        return cells
    needs = pc.match_substring_regex(cells, f'[{delimiter}"\r\n]')
    doubled = pc.replace_substring(cells, '"', '""')
    return pc.if_else(needs, pc.binary_join_element_wise('"', doubled, '"', ""), cells)


@contextmanager
def compressed(path: PathLike, file: BinaryIO) -> Iterator[BinaryIO]:
    """Compress text if its name ends in ``.gz``."""
    if is_gzipped(path) and suffix_of(path) in DELIMITED:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as out:
            yield cast(BinaryIO, out)
    else:
        yield file


def _delimiter(path, style):
    """Return the delimiter of a file, which is that of its style unless their suffixes differ."""
    of_suffix = "\t" if suffix_of(path) in TAB_SEPARATED else ","
    if style is None:
        return of_suffix
    is_alike = suffix_of(path) in (suffix_of(style.path), ".txt")
    return style.delimiter if is_alike or (of_suffix, style.delimiter) == (",", ";") else of_suffix
