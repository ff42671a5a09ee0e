"""Delimited text, such as CSV: read in blocks of whole records, several times if need be.

A record ends at the end of a line, unless that lies within quotes. Quotes count only at the
beginning of a cell, as in a spreadsheet: ``5" pipe`` is a cell like any other.
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice, zip_longest

import numpy as np
import pyarrow as pa
from pyarrow import csv

from unbag._checks import is_counter
from unbag._files import (
    DataError,
    check,
    check_distinct,
    check_rows,
    check_same,
    check_unpacked,
    is_gzipped,
    refuse,
    suffix_of,
)
from unbag.io.bag_table import CHUNK_BYTES, SAMPLE_ROWS
from unbag.io.reading import TableFile
from unbag.io.roles import USUAL, Roles

# A quoted cell that is longer than this was probably never meant to be opened.
LONGEST_RECORD = 64 << 20
# Of the rows by which columns of numbers are told from columns of text.
SAMPLE_BYTES = 4 << 20
MOST_COLUMNS = 1_000_000

QUOTE = b'"'
BOM = b"\xef\xbb\xbf"
BLANK = (b"", b"\r")
UTF16 = (b"\xff\xfe", b"\xfe\xff")
FOREIGN = {b"PK\x03\x04": "a ZIP or Excel file", b"PAR1": "a Parquet file", b"ARROW1": "Feather"}
DELIMITER_NAMES = {b",": "comma", b";": "semicolon", b"\t": "tab"}
# A cell up to the quote that closes it; quotes within are doubled.
IN_QUOTES = re.compile(rb'"[^"]*(?:""[^"]*)*')
NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
# With a decimal comma.
COMMA_NUMBER = re.compile(NUMBER.pattern.replace(r"\.", ","))
MISSING = {"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "inf", "-inf", "-"}


# As they are spelt in text, in lower and upper case.
SPELT_MISSING = {form(text) for text in ("na", "n/a", "#n/a", "nan", "-nan", "null", "none", "-")
                 for form in (str.lower, str.upper, str.capitalize)} | {"NaN", "N/a"}  # fmt: skip
WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
VECTOR_MARKS = re.compile(r"[0-9][ ]*[,;\s\])]")


class DelimitedFile(TableFile):
    """A file of delimited text whose first record names the columns.

    Parameters
    ----------
    path : str or path
        The delimiter of ``.csv`` and ``.txt`` is the one of comma, semicolon and tab that gives
        the header the most columns; that of ``.tsv`` is the tab. Compressed if it ends in ``.gz``.

    Attributes
    ----------
    columns : list of str
    delimiter : bytes
    header : bytes
        The first record as it stands.
    line_end : bytes
        As after the header.
    has_mark : bool
        Whether the file begins with a byte order mark.
    """

    is_text: bool = True
    errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)

    def _open(self):
        return gzip.open(self.path) if is_gzipped(self.path) else self.path.open("rb")

    def _read_header(self):
        head = self._file.read(4096)
        refuse(
            (what for mark, what in FOREIGN.items() if head.startswith(mark)),
            lambda what: f"{self.path} is {what}, not text: name or save it rightly.",
        )
        check(not head.startswith(UTF16), f"{self.path} is encoded in UTF-16: save it as UTF-8.")
        check(
            b"\0" not in head,
            f"{self.path} holds binary data, not text: is it the right file?",
        )
        self.has_mark: bool = head.startswith(BOM)
        # The header tells the delimiter, which hardly ever matters for where the header ends.
        self.delimiter: bytes = b"," if suffix_of(self.path) != ".tsv" else b"\t"
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

    @property
    def _faults(self):
        # Loaded only where something is wrong.
        from . import csv_faults

        return csv_faults

    def _check_encoding(self, data, records, place):
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._faults.wrong_encoding(self.path, records, place) from error

    def _delimiter_of(self, header):
        widths = {each: len(raw_cells(header, each)) for each in DELIMITER_NAMES}
        candidates = [b"\t"] if suffix_of(self.path) == ".tsv" else list(DELIMITER_NAMES)
        best = max(candidates, key=widths.__getitem__)
        if widths[best] == 1:
            self._faults.check_single_column(self.path, header, widths)
        return best

    def _records(self, chunk_bytes):
        """Yield lists of whole records, blank lines among them, the header first."""
        pending, n_bytes, n_pending, n_records = [], 0, 0, 0
        with self.opened() as file:
            if self.has_mark:
                file.read(len(BOM))
            while data := file.read(chunk_bytes):
                n_bytes += len(data)
                if is_gzipped(self.path):
                    check_unpacked(self.path, n_bytes, self._state[1])
                pending.append(data)
                n_pending += len(data)
                if b"\n" not in data:
                    if n_pending > LONGEST_RECORD:
                        raise self._faults.overlong_record(self.path, n_records + 1, pending[0])
                    continue
                text = b"".join(pending)
                *lines, rest = text.split(b"\n")
                if are_lines_records(text[: len(text) - len(rest)], self.delimiter):
                    records, torn = lines, []
                else:
                    records, torn = whole_records(lines, self.delimiter)
                pending = [b"\n".join([*torn, rest])]
                n_pending = len(pending[0])
                n_records += len(records)
                if n_pending > LONGEST_RECORD and torn:
                    raise self._faults.unclosed_quote(self.path, pending[0])
                if records:
                    yield records
        if rest := b"".join(pending):
            records, torn = whole_records(rest.split(b"\n"), self.delimiter)
            if torn:
                raise self._faults.unclosed_quote(self.path, b"\n".join(torn))
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

    def chunks(
        self,
        texts: Sequence[str] = (),
        numbers: Sequence[str] = (),
        chunk_bytes: int = CHUNK_BYTES,
        *,
        with_gaps: bool = False,
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield pairs of the first row's position and a pyarrow table of some columns.

        Parameters
        ----------
        texts, numbers : sequence of str
            Columns to be read as strings and as float64, where null is an empty cell.
        chunk_bytes : int
            Bytes of text in a chunk, roughly.
        with_gaps : bool
            Whether NA and the like are missing numbers; else they are none.
        """
        types = dict.fromkeys(texts, pa.string()) | dict.fromkeys(numbers, pa.float64())
        convert = csv.ConvertOptions(
            column_types=types, include_columns=list(types),
            null_values=sorted({"", *SPELT_MISSING} if with_gaps else {""}),
            decimal_point=self.decimal if numbers else ".",
        )  # fmt: skip
        first = 0
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
                raise self._faults.bad_record(self, records, first, numbers, error) from error
            yield first, table
            first += len(records)

    @cached_property
    def _sample(self):
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

    def resolved(self, roles: Roles | None, need_labels: bool = True) -> Roles:
        """Fill in the roles; then what columns were judged by can go."""
        resolved, _ = super().resolved(roles, need_labels), self.decimal
        vars(self).pop("_sample", None)
        return resolved

    @cached_property
    def decimal(self) -> str:
        """The decimal mark: a comma only where no number of the first rows has a point."""
        if self.delimiter == b"," or any(map(self._mostly(NUMBER, "."), self._sample)):
            return "."
        return "," if any(map(self._mostly(COMMA_NUMBER, ","), self._sample)) else "."

    def _mostly(self, pattern, mark=""):
        """Return a test of columns: half of their filled cells or more match, one with a mark."""

        def holds(name):
            filled = [text for text in self._sample[name] if text.strip().lower() not in MISSING]
            found = [text for text in filled if pattern.fullmatch(text)]
            return bool(filled) and 2 * len(found) >= len(filled) and any(mark in t for t in found)

        return holds

    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns of numbers: half of the filled cells of the first rows, or more."""
        check_rows(self.path, self._sample)
        pattern = COMMA_NUMBER if self.decimal == "," else NUMBER
        return [name for name in self._sample if self._mostly(pattern)(name)]

    def with_embedding(self, roles: Roles) -> Roles:
        """Find the column of vectors, where nobody has named it."""
        if roles.embedding is not None:
            return roles
        others = {column for role, column in roles.columns() if role != "features"}
        names = set(self.columns) - {*USUAL.values()} if roles.features is None else roles.features
        sample = self._sample.items()
        found = {name: texts for name, texts in sample if name in names and name not in others}
        # Most columns are none, which a look at few cells tells.
        found = {name: texts for name, texts in found.items()
                 if any(map(VECTOR_MARKS.search, texts[:20]))}  # fmt: skip
        if found:
            from unbag.io.number_texts import warn_of_numbers_in_text
            from unbag.io.vectors import are_vectors

            warn_of_numbers_in_text(self.path, found, roles, "," if self.decimal == "." else ".")
            found = {name: texts for name, texts in found.items() if are_vectors(texts)}
        if len(found) != 1:
            return roles
        rest = tuple(name for name in roles.features or () if name not in found)
        return replace(roles, embedding=next(iter(found)), features=rest)

    def counters(self, features: Sequence[str]) -> list[str]:
        """Return those of some columns of numbers that look like a counter or an id."""
        whole = {
            name: [int(text) for text in self._sample[name]]
            for name in features
            if all(map(WHOLE.fullmatch, self._sample[name]))
        }
        return [name for name, values in whole.items() if is_counter(name, values)]

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
        return self._faults.bad_number(self, row, column, self.cell(row, column))


def whole_records(lines: list[bytes], delimiter: bytes) -> tuple[list[bytes], list[bytes]]:
    r"""Join the lines that a quoted cell has torn apart.

    Parameters
    ----------
    lines : list of bytes
        Without the line feeds at their ends.
    delimiter : bytes

    Returns
    -------
    records : list of bytes
    rest : list of bytes
        Lines of a record whose end has not come yet.

    Examples
    --------
    >>> whole_records([b'a,"two', b'lines"', b"b,c"], b",")
    ([b'a,"two\nlines"', b'b,c'], [])
    """
    if not any(QUOTE in line for line in lines):
        return lines, []
    records, rest = [], []
    for line in lines:
        if not rest:
            if QUOTE in line and ends_quoted(line, delimiter):
                rest = [line]
            else:
                records.append(line)
            continue
        rest.append(line)
        # Within quotes, a line goes on as if it had opened them: those before it need no look.
        if QUOTE in line and not ends_quoted(QUOTE + line, delimiter):
            records.append(b"\n".join(rest))
            rest = []
    return records, rest


def are_lines_records(text: bytes, delimiter: bytes) -> bool:
    r"""Return whether quotes do nothing but enclose whole cells that lie within a line each.

    Then every line is a record. So it is in most files that have quotes at all, and looking at
    all of their bytes at once is much faster than at each line.

    Parameters
    ----------
    text : bytes
        Whole lines, from the beginning of a record on.
    delimiter : bytes

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
