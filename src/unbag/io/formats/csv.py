"""Delimited text, such as CSV: read in blocks of whole records, in several passes if need be.

A record ends at the end of a line, unless that lies within quotes. Quotes count only at the
beginning of a cell, as in a spreadsheet: ``5" pipe`` is a cell like any other. Records are written
again with more cells, and the old ones stay what they were to the letter.
"""

import gzip
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, types

from unbag._files import (
    DELIMITED,
    TAB_SEPARATED,
    DataError,
    OpenFile,
    PathLike,
    check,
    check_distinct,
    check_rows,
    check_same,
    check_unpacked,
    is_gzipped,
    refuse,
    suffix_of,
    writing,
)
from unbag._messages import argument, listed, shortened
from unbag.io.bag_table import CHUNK_BYTES, SAMPLE_ROWS, Progress
from unbag.io.roles import Roles
from unbag.io.table import Table

# A quoted cell that is longer than this was probably never meant to be opened.
LONGEST_RECORD = 64 << 20
# Size of the first rows, from which columns of numbers are recognised.
SAMPLE_BYTES = 4 << 20
MOST_COLUMNS = 1_000_000
# Rows of tables of very many columns that are read at a time, if they take no more bytes than that.
FEWEST_ROWS = 16
LARGEST_CHUNK = 128 << 20

QUOTE = b'"'
BOM = b"\xef\xbb\xbf"
BLANK = (b"", b"\r")
UTF16 = (b"\xff\xfe", b"\xfe\xff")
FOREIGN = {b"PK\x03\x04": "a ZIP or Excel file", b"PAR1": "a Parquet file", b"ARROW1": "Feather"}
DELIMITER_NAMES = {b",": "comma", b";": "semicolon", b"\t": "tab"}
# A cell up to the quote that closes it; quotes within are doubled.
IN_QUOTES = re.compile(rb'"[^"]*(?:""[^"]*)*')
# No two repetitions in it can share out the same digits, which would take time squared in them.
NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
# With a decimal comma.
COMMA_NUMBER = re.compile(NUMBER.pattern.replace(r"\.", ","))
MISSING = {"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "inf", "-inf", "-"}
# As they are spelt in text, in lower and upper case.
SPELT_MISSING = {form(text) for text in ("na", "n/a", "#n/a", "nan", "-nan", "null", "none", "-")
                 for form in (str.lower, str.upper, str.capitalize)} | {"NaN", "N/a"}  # fmt: skip


class TextTable(Table):
    """A table of text in one or several files, its `parts`."""

    is_text: bool = True
    parts: Any

    def is_wide(self, roles: Roles) -> bool:
        """Return False: text has no lists, so that a row is an instance."""
        return False

    def check_type(self, column: str, role: str, is_wide: bool = False) -> None:
        """Do nothing: text has no types."""

    def dtype(self, columns: Sequence[str]) -> type[np.floating]:
        """Return double precision: text has none of its own."""
        return np.float64


class DelimitedFile(TextTable):
    """A file of delimited text whose first record names the columns.

    The delimiter of ``.csv`` and ``.txt`` is the one of comma, semicolon and tab that gives the
    header the most columns; that of ``.tsv`` is the tab. A file ``.gz`` is compressed. What is
    written after the file has its header as it stands, its line end, and its byte order mark
    (`has_mark`).
    """

    def __init__(self, path: PathLike):
        self.path: Path = Path(path)
        opener = partial(gzip.open, path) if is_gzipped(path) else self.path.open
        self._file: OpenFile = OpenFile(
            path, partial(opener, "rb"), (OSError, EOFError, zlib.error)
        )
        try:
            self._read_header()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, if it is open."""
        self._file.close()

    @property
    def parts(self) -> "list[DelimitedFile]":
        """The file itself."""
        return [self]

    def _read_header(self):
        with self._file.one_pass() as file:
            head = file.read(4096)
        refuse(
            (what for mark, what in FOREIGN.items() if head.startswith(mark)),
            lambda what: (
                f"{self.path} is {what}, not text: give it the right suffix, or save it as CSV."
            ),
        )
        check(not head.startswith(UTF16), f"{self.path} is encoded in UTF-16: save it as UTF-8.")
        check(
            b"\0" not in head,
            f"{self.path} holds binary data, not text: is it the right file?",
        )
        self.has_mark: bool = head.startswith(BOM)
        # A guess, until the header is known; it hardly ever matters for where the header ends.
        self.delimiter: bytes = b"\t" if suffix_of(self.path) in TAB_SEPARATED else b","
        first = self._first_record()
        self.line_end: bytes = b"\r\n" if first.endswith(b"\r") else b"\n"
        self.header: bytes = first.rstrip(b"\r")
        check(
            max(map(self.header.count, DELIMITER_NAMES)) < MOST_COLUMNS,
            f"{self.path}: the header names more than {MOST_COLUMNS:,} columns: is it one?",
        )
        self.delimiter = self._delimiter_of(self.header)
        self.format: str = f"text separated by {DELIMITER_NAMES[self.delimiter]}s"
        self.columns: list[str] = [cell_text(raw) for raw in raw_cells(self.header, self.delimiter)]
        check_distinct(self.path, self.columns)

    def _first_record(self):
        for record in chain.from_iterable(self._records(1 << 16)):
            if record not in BLANK:
                self._check_encoding(record, [record], lambda _: "the header")
                check(
                    b"\r" not in record[:-1] or QUOTE in record,
                    f"{self.path}: lines end in carriage returns alone, as on old Macintoshes: "
                    "save it with the usual line ends.",
                )
                return record
        raise DataError(f"{self.path} is empty: it needs a header and a row per instance.")

    def _check_encoding(self, data, records, place):
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise wrong_encoding(self.path, records, place) from error

    def _delimiter_of(self, header):
        widths = {each: len(raw_cells(header, each)) for each in DELIMITER_NAMES}
        candidates = [b"\t"] if suffix_of(self.path) in TAB_SEPARATED else list(DELIMITER_NAMES)
        best = max(candidates, key=widths.__getitem__)
        if widths[best] == 1:
            check_single_column(self.path, header, widths)
        return best

    def _records(self, chunk_bytes):
        """Yield lists of whole records, blank lines among them, the header first."""
        # Pieces of a line that has no end yet, and the lines of a record whose quotes are open. No
        # line is looked at twice, else one stray quote would take time squared in what follows it.
        pieces, torn, n_bytes, n_open, n_records = [], [], 0, 0, 0
        with self._file.one_pass() as file:
            if self.has_mark:
                file.read(len(BOM))
            while data := file.read(chunk_bytes):
                n_bytes += len(data)
                if is_gzipped(self.path):
                    check_unpacked(self.path, n_bytes, self._file.n_bytes)
                pieces.append(data)
                n_open += len(data)
                if b"\n" not in data:
                    if n_open > LONGEST_RECORD and torn:
                        raise unclosed_quote(self.path, torn)
                    if n_open > LONGEST_RECORD:
                        raise overlong_record(self.path, n_records + 1, pieces[0])
                    continue
                text = b"".join(pieces)
                *lines, rest = text.split(b"\n")
                pieces = [rest]
                if not torn and are_lines_records(text[: len(text) - len(rest)], self.delimiter):
                    records = lines
                else:
                    records, torn = whole_records(lines, self.delimiter, torn)
                n_records += len(records)
                if records:
                    n_open = len(rest) + sum(map(len, torn))
                if n_open > LONGEST_RECORD and torn:
                    raise unclosed_quote(self.path, torn)
                if records:
                    yield records
        if torn or any(pieces):
            records, torn = whole_records([b"".join(pieces)], self.delimiter, torn)
            if torn:
                raise unclosed_quote(self.path, torn)
            yield records

    def blocks(self, chunk_bytes: int = CHUNK_BYTES) -> Iterator[list[bytes]]:
        """Yield lists of the records of rows: neither the header nor blank lines."""
        n_headers = 1
        for records in self._records(chunk_bytes):
            if any(blank in records for blank in BLANK):
                records = [record for record in records if record not in BLANK]
            if len(records) > n_headers:
                yield records[n_headers:]
            n_headers = 0 if records else n_headers

    def _chunks(self, texts, numbers, chunk_bytes, with_gaps):
        decimal = self.decimal if numbers or "sample" in vars(self) else "."
        # What columns were judged by can go.
        vars(self).pop("sample", None)
        kinds = dict.fromkeys(texts, pa.string()) | dict.fromkeys(numbers, pa.float64())
        convert = csv.ConvertOptions(
            column_types=kinds, include_columns=list(kinds),
            null_values=sorted({"", *SPELT_MISSING} if with_gaps else {""}),
            decimal_point=decimal,
        )  # fmt: skip
        first = 0
        # Each chunk takes time for each column, however few rows it has; a header is about as long
        # as a row.
        chunk_bytes = max(chunk_bytes, min(FEWEST_ROWS * len(self.header), LARGEST_CHUNK))
        for records in self.blocks(chunk_bytes):
            data = b"\n".join([*records, b""])
            if texts and not data.isascii():
                self._check_encoding(
                    data, records, lambda row, first=first: self.place(first + row)
                )
            read = csv.ReadOptions(column_names=self.columns, block_size=len(data) + 1)
            newlines = data.count(b"\n") > len(records)
            parse = csv.ParseOptions(delimiter=self.delimiter.decode(), newlines_in_values=newlines)
            try:
                table = csv.read_csv(pa.BufferReader(data), read, parse, convert)
                if table.num_rows != len(records):
                    raise pa.ArrowInvalid("a stray carriage return")
            except pa.ArrowInvalid as error:
                raise bad_record(self, records, first, numbers, error, with_gaps) from error
            yield first, table
            first += len(records)

    @cached_property
    def sample(self) -> dict[str, list[str]]:
        """Some cells of each column, from the first rows, as text."""
        records = islice(chain.from_iterable(self.blocks(1 << 18)), SAMPLE_ROWS)
        rows, n_bytes = [], 0
        for record in records:
            rows.append(raw_cells(record.rstrip(b"\r"), self.delimiter))
            n_bytes += len(record)
            if n_bytes > SAMPLE_BYTES:
                break
        columns = zip(self.columns, zip_longest(*rows, fillvalue=b""), strict=False)
        return {
            name: [raw.decode("utf-8", "replace").strip('"') for raw in cells]
            for name, cells in columns
        }

    @cached_property
    def decimal(self) -> str:
        """The decimal mark: a comma only where no number of the first rows has a point."""
        if self.delimiter == b"," or any(map(self._mostly(NUMBER, "."), self.sample)):
            return "."
        return "," if any(map(self._mostly(COMMA_NUMBER, ","), self.sample)) else "."

    def _mostly(self, pattern, mark=""):
        """Return a test of columns: half of their filled cells or more match, one with a mark."""

        def holds(name):
            filled = [text for text in self.sample[name] if text.strip().lower() not in MISSING]
            found = [text for text in filled if pattern.fullmatch(text)]
            return bool(filled) and 2 * len(found) >= len(filled) and any(mark in t for t in found)

        return holds

    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns of numbers: half of the filled cells of the first rows, or more."""
        check_rows(self.path, self.sample)
        pattern = COMMA_NUMBER if self.decimal == "," else NUMBER
        return [name for name in self.sample if self._mostly(pattern)(name)]

    def place(self, row: int) -> str:
        """Name a row as a spreadsheet does: the header is row 1, and blank lines count."""
        data_rows = -1
        for line, record in enumerate(chain.from_iterable(self._records(CHUNK_BYTES)), 1):
            data_rows += record not in BLANK
            if data_rows > row:
                return f"row {line}"
        return f"row {row + 2}"

    def cell(self, row: int, column: str) -> str:
        """Return the text of a cell."""
        record = next(islice(chain.from_iterable(self.blocks()), row, None), b"")
        check_same(self.path, record)
        cells = raw_cells(record.rstrip(b"\r"), self.delimiter)
        return cell_text(cells[self.columns.index(column)])

    def bad_number(self, row: int, column: str, value: object = None) -> DataError:
        """Make the error for a cell that should be a finite number."""
        return bad_number(self, row, column, self.cell(row, column))


# The syntax of records, cells and numbers.


def whole_records(
    lines: list[bytes], delimiter: bytes, torn: list[bytes] | None = None
) -> tuple[list[bytes], list[bytes]]:
    r"""Join the lines that a quoted cell has torn apart; return records, and lines of an open one.

    `torn` are the lines of the record that was open before these, as it was returned then.

    Examples
    --------
    >>> whole_records([b'a,"two', b'lines"', b"b,c"], b",")
    ([b'a,"two\nlines"', b'b,c'], [])
    """
    torn = torn or []
    if not torn and not any(QUOTE in line for line in lines):
        return lines, []
    records = []
    for line in lines:
        if not torn:
            if QUOTE in line and ends_quoted(line, delimiter):
                torn = [line]
            else:
                records.append(line)
            continue
        torn.append(line)
        # Within quotes, a line goes on as if it had opened them: those before it need no look.
        if QUOTE in line and not ends_quoted(QUOTE + line, delimiter):
            records.append(b"\n".join(torn))
            torn = []
    return records, torn


def are_lines_records(text: bytes, delimiter: bytes) -> bool:
    r"""Return whether each line of a text of whole lines is a record.

    So it is if quotes only enclose whole cells within a line, as in most files. Looking at all
    bytes at once is much faster than at each line.

    Examples
    --------
    >>> are_lines_records(b'a,"b"\n', b","), are_lines_records(b'a,"b\nc"\n', b",")
    (True, False)
    """
    data = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(data == QUOTE[0])
    opening, closing = quotes[::2], quotes[1::2]
    if opening.size != closing.size:
        return False
    # If every other quote opens a cell, then none of the others is doubled, and they close it.
    before = data[opening[opening > 0] - 1]
    if not np.isin(before, [delimiter[0], 10]).all():
        return False
    ends = np.flatnonzero(data == 10)
    return np.array_equal(np.searchsorted(ends, opening), np.searchsorted(ends, closing))


def ends_quoted(record: bytes, delimiter: bytes) -> bool:
    """Return whether a quoted cell is still open where the bytes end.

    Examples
    --------
    >>> ends_quoted(b'a,"b', b","), ends_quoted(b'a,"b"', b","), ends_quoted(b'5" pipe,b', b",")
    (True, False, False)
    """
    return IN_QUOTES.fullmatch(raw_cells(record, delimiter)[-1]) is not None


def raw_cells(record: bytes, delimiter: bytes) -> list[bytes]:
    """Split a record into its cells, with the quotes that they have.

    Examples
    --------
    >>> raw_cells(b'007,"a,b",', b",")
    [b'007', b'"a,b"', b'']
    """
    if QUOTE not in record:
        return record.split(delimiter)
    pattern = rb'(?:^|%b)(%b(?:"[^%b]*)?|[^%b]*)'
    return re.findall(pattern % (delimiter, IN_QUOTES.pattern, delimiter, delimiter), record)


def cell_text(raw: bytes) -> str:
    """Read the text of a cell.

    Examples
    --------
    >>> cell_text(b'"a ""b"" c"'), cell_text(b"1.50")
    ('a "b" c', '1.50')
    """
    if inside := IN_QUOTES.match(raw):
        raw = inside[0][1:].replace(b'""', QUOTE) + raw[inside.end() + 1 :]
    return raw.decode("utf-8")


def is_number(text: str, decimal: str = ".") -> bool:
    """Return whether a cell is read as a number, given the decimal mark.

    Examples
    --------
    >>> is_number(" -1.5e3"), is_number("1,5"), is_number("1,5", ","), is_number("0x10")
    (True, False, True, False)
    """
    return (COMMA_NUMBER if decimal == "," else NUMBER).fullmatch(text) is not None


def quoted(text: str, delimiter: bytes) -> bytes:
    """Write a cell, with quotes only where it needs them.

    Examples
    --------
    >>> quoted("a,b", b","), quoted("a b", b",")
    (b'"a,b"', b'a b')
    """
    raw = text.encode("utf-8")
    if any(sign in raw for sign in (delimiter, QUOTE, b"\n", b"\r")):
        return QUOTE + raw.replace(QUOTE, b'""') + QUOTE
    return raw


# What is wrong with a file, and in which row and column a spreadsheet shows it.


def check_single_column(path: PathLike, header: bytes, widths: Mapping[bytes, int]) -> None:
    """Raise an error if a header of one column seems to be separated by something else."""
    refuse(
        (name for each, name in DELIMITER_NAMES.items() if widths[each] > 1),
        lambda name: (
            f"{path} should be separated by tabs, but its header has a {name}: name the file .csv."
        ),
    )
    refuse(
        (sign for sign in "|:^~ " if sign.encode() in header),
        lambda sign: (
            f"{path} has one column only, {shortened(header.decode())}: is it separated "
            f"by {sign!r}? Use comma, semicolon or tab."
        ),
    )


def unclosed_quote(path: PathLike, torn: Sequence[bytes]) -> DataError:
    """Make the error for a quote that no other one closes, given the lines from it on."""
    start = torn[0][:40].decode("utf-8", "replace")
    return DataError(
        f"{path}: a quote is opened but never closed in the row that begins with "
        f"{shortened(start)}: close it, or double it if it belongs to the text."
    )


def overlong_record(path: PathLike, row: int, beginning: bytes) -> DataError:
    """Make the error for a line that has no end for longer than any record is."""
    start = beginning[:40].decode("utf-8", "replace")
    return DataError(
        f"{path}, row {row}, which begins with {shortened(start)}, does not end for more than "
        f"{LONGEST_RECORD:,} bytes: is it the right file?"
    )


def wrong_encoding(
    path: PathLike, records: Sequence[bytes], place: Callable[[int], str]
) -> DataError:
    """Make the error for the first record that is not UTF-8; `place` names it by its number."""
    for row, record in enumerate(records):
        try:
            record.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = record[max(error.start - 10, 0) : error.start + 10]
            return DataError(
                f"{path}, {place(row)}: {shortened(wrong)} is not encoded in UTF-8: save the file "
                "as 'CSV UTF-8'."
            )
    raise ValueError("All of the records are encoded in UTF-8.")


def bad_number(source: DelimitedFile, row: int, column: str, text: str) -> DataError:
    """Make the error for a cell that should be a finite number."""
    where = f"{source.path}, {source.place(row)}, column {column!r}"
    if not text.strip():
        return DataError(
            f"{where}: the cell is empty; a feature needs a number in every row, unless missing "
            f"values are dropped or replaced by the mean ({argument('missing_values')})."
        )
    if source.decimal == "." and re.fullmatch(r"\s*[+-]?\d+,\d+\s*", text):
        return DataError(f"{where}: {shortened(text)} has a decimal comma: write a point instead.")
    if source.decimal == "," and is_number(text):
        return DataError(
            f"{where}: {shortened(text)} has a decimal point, where the others have a comma: write "
            "that instead."
        )
    if text.strip() in SPELT_MISSING:
        return DataError(
            f"{where}: {shortened(text)} is not a finite number; a feature needs one in every row, "
            "unless missing values are dropped or replaced by the mean "
            f"({argument('missing_values')})."
        )
    is_spelt = is_number(text, source.decimal)
    what = "finite number" if text.strip().lower() in MISSING or is_spelt else "number"
    return DataError(
        f"{where}: {shortened(text)} is not a {what}: correct it, or do not use the column as a "
        "feature."
    )


def bad_record(
    source: DelimitedFile,
    records: Sequence[bytes],
    first: int,
    numbers: Sequence[str],
    error: object,
    with_gaps: bool = False,
) -> DataError:
    """Make the error for the first of some records, from row `first` on, that cannot be read.

    Its message has `error` where no record seems to be wrong. With gaps, numbers may be missing.
    """
    place = {name: position for position, name in enumerate(source.columns)}
    positions = [(place[name], name) for name in numbers]
    for row, record in enumerate(records, first):
        cells = raw_cells(record.rstrip(b"\r"), source.delimiter)
        if len(cells) != len(source.columns):
            return DataError(
                f"{source.path}, {source.place(row)} has {len(cells)} cells, but the header names "
                f"{len(source.columns)} columns ({listed(source.columns)}): is a delimiter "
                "missing, or a quote?"
            )
        for position, name in positions:
            text = cell_text(cells[position])
            if with_gaps and (not text or text in SPELT_MISSING):
                continue
            is_spelt = is_number(text, source.decimal)
            if not is_spelt or not math.isfinite(float(text.replace(",", "."))):
                return bad_number(source, row, name, text)
        if b"\r" in record[:-1]:
            return DataError(
                f"{source.path}, {source.place(row)} has a carriage return outside quotes: "
                "remove it."
            )
    return DataError(f"{source.path}, near {source.place(first)}: {error}.")


# Writing.


def write_records(
    source: Any,
    path: PathLike,
    columns: Mapping[str, pa.Array],
    n_rows: int,
    progress: Progress | None,
    chunk_bytes: int,
) -> None:
    """Write the `n_rows` records of a text table with more cells; see `BagTable.write`.

    If the suffix of `path` demands another delimiter, cells are quoted again where that needs it.
    """
    old, new = source.delimiter, _delimiter(path, source)
    cells = {name: _Cells(column, new, source.decimal) for name, column in columns.items()}
    place = {at: name for at, name in enumerate(source.columns) if name in columns}
    present = set(source.columns)
    added = [name for name in columns if name not in present]
    done = 0
    with writing(path) as file, compressed(path, file) as out:
        header = [source.header] if old == new else _respelt(source.header, old, new)
        header += [quoted(name, new) for name in added]
        out.write(BOM * source.has_mark + new.join(header) + source.line_end)
        for records in source.blocks(chunk_bytes):
            rows = slice(done, done + len(records))
            if any(record.endswith(b"\r") for record in records):
                records = [record.rstrip(b"\r") for record in records]
            if old != new:
                records = [new.join(_respelt(record, old, new)) for record in records]
            if place:
                records = _replaced(records, new, {at: cells[place[at]][rows] for at in place})
            parts = zip(records, *(cells[name][rows] for name in added), strict=True)
            out.write(source.line_end.join([*map(new.join, parts), b""]))
            done = rows.stop
            if progress is not None:
                progress(done, n_rows)
        check_same(source.path, done == n_rows)


def write_new_records(source: Any, path: PathLike, columns: Mapping[str, pa.ChunkedArray]) -> None:
    """Write columns in the style of a text: its delimiter, decimal mark, line ends and BOM."""
    delimiter = _delimiter(path, source)
    cells = [
        _Cells(column.combine_chunks(), delimiter, source.decimal) for column in columns.values()
    ]
    rows = slice(0, max(map(len, columns.values()), default=0))
    header = delimiter.join(quoted(name, delimiter) for name in columns)
    records = map(delimiter.join, zip(*(each[rows] for each in cells), strict=True))
    with writing(path) as file, compressed(path, file) as out:
        out.write(BOM * source.has_mark)
        out.write(source.line_end.join([header, *records, b""]))


def text_writer(path: PathLike, file: BinaryIO, schema: pa.Schema) -> Any:
    """Open a writer of pyarrow tables as delimited text, between tabs in a ``.tsv`` file."""
    delimiter = "\t" if suffix_of(path) in TAB_SEPARATED else ","
    options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
    return csv.CSVWriter(file, schema, write_options=options)


@contextmanager
def compressed(path: PathLike, file: BinaryIO) -> Iterator[BinaryIO]:
    """Compress text if its name ends in ``.gz``."""
    if is_gzipped(path) and suffix_of(path) in DELIMITED:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as out:
            yield cast(BinaryIO, out)
    else:
        yield file


def _delimiter(path, source):
    """Return the delimiter of the source, unless the suffixes of the two files differ."""
    of_suffix = {".csv": b",", **dict.fromkeys(TAB_SEPARATED, b"\t")}.get(suffix_of(path))
    if of_suffix is None or suffix_of(path) == suffix_of(source.path):
        return source.delimiter
    return source.delimiter if of_suffix == b"," and source.delimiter == b";" else of_suffix


def _respelt(record, old, new):
    return [quoted(cell_text(raw), new) for raw in raw_cells(record, old)]


def _replaced(records, delimiter, cells):
    result = []
    for row, record in enumerate(records):
        parts = raw_cells(record, delimiter)
        for position, values in cells.items():
            parts[position] = values[row]
        result.append(delimiter.join(parts))
    return result


class _Cells:
    """The cells of a new column as bytes, some rows at a time; empty where there is no value."""

    def __init__(self, column, delimiter, decimal):
        self.values, self.column, self.decimal = None, column, decimal
        if types.is_string(column.type) or types.is_large_string(column.type):
            # Labels repeat, so each is quoted once.
            encoded = column.dictionary_encode(null_encoding="encode")
            texts = encoded.dictionary.to_pylist()
            self.values = np.array([quoted(text or "", delimiter) for text in texts], dtype=object)
            self.column = encoded.indices.to_numpy(zero_copy_only=False)
        elif types.is_floating(column.type):
            self.column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)

    def __getitem__(self, rows):
        part = self.column[rows]
        if self.values is not None:
            return self.values[part].tolist()
        texts = part.cast(pa.string())
        if self.decimal != "." and types.is_floating(part.type):
            texts = pc.replace_substring(texts, ".", self.decimal)
        return [text or b"" for text in texts.cast(pa.binary()).to_pylist()]
