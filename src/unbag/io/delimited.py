"""Delimited text, such as CSV: read in blocks of whole records, several times if need be."""

import gzip
import math
import os
import re
import zlib
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import csv

from .errors import DataError, listed, no_rows, shown
from .files import existing_file, is_gzipped, suffix_of, unreadable
from .records import are_lines_records, cell_text, raw_cells, whole_records

CHUNK_BYTES = 8 << 20
# A quoted cell that is longer than this was probably never meant to be opened.
LONGEST_RECORD = 64 << 20
# Rows by which columns of numbers are told from columns of text.
SAMPLE_ROWS = 1000

BOM = b"\xef\xbb\xbf"
BLANK = (b"", b"\r")
UTF16 = (b"\xff\xfe", b"\xfe\xff")
FOREIGN = {b"PK\x03\x04": "a ZIP or Excel file", b"PAR1": "a Parquet file", b"ARROW1": "Feather"}
DELIMITER_NAMES = {b",": "comma", b";": "semicolon", b"\t": "tab"}
NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
MISSING = {"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "inf", "-inf", "-"}


class DelimitedFile:
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
    n_rows : None
        Nobody knows before having read them.
    """

    n_rows = None

    def __init__(self, path):
        self.path = existing_file(path)
        self.state = _state(self.path)
        first = self._first_record()
        self.line_end = b"\r\n" if first.endswith(b"\r") else b"\n"
        self.header = first.rstrip(b"\r")
        self.delimiter = self._delimiter_of(self.header)
        self.columns = [cell_text(raw) for raw in raw_cells(self.header, self.delimiter)]
        if len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if self.columns.count(name) > 1)
            raise DataError(f"{self.path} has two columns named {twice!r}: rename one.")

    def _first_record(self):
        with self._open() as file:
            head = file.read(4096)
            for mark, what in FOREIGN.items():
                if head.startswith(mark):
                    raise DataError(f"{self.path} is {what}, not text: name or save it rightly.")
            if head.startswith(UTF16):
                raise DataError(f"{self.path} is encoded in UTF-16: save it as UTF-8.")
            if b"\0" in head:
                raise DataError(f"{self.path} holds binary data, not text: is it the right file?")
        self.has_mark = head.startswith(BOM)
        # The header tells the delimiter, which hardly ever matters for where the header ends.
        self.delimiter = b"," if suffix_of(self.path) != ".tsv" else b"\t"
        for records in self._records(1 << 16):
            for record in records:
                if record not in BLANK:
                    self._decoded(record, "the header")
                    if b"\r" in record[:-1] and b'"' not in record:
                        raise DataError(
                            f"{self.path}: lines end in carriage returns alone, as on old "
                            "Macintoshes: save it with the usual line ends."
                        )
                    return record
        raise DataError(f"{self.path} is empty: it needs a header and a row per instance.")

    def _delimiter_of(self, header):
        widths = {each: len(raw_cells(header, each)) for each in DELIMITER_NAMES}
        candidates = [b"\t"] if suffix_of(self.path) == ".tsv" else list(DELIMITER_NAMES)
        best = max(candidates, key=widths.get)
        if widths[best] == 1:
            others = [name for each, name in DELIMITER_NAMES.items() if widths[each] > 1]
            if others:
                raise DataError(
                    f"{self.path} should be separated by tabs, but its header has a {others[0]}: "
                    "name the file .csv."
                )
            signs = [sign for sign in "|:^~ " if sign.encode() in header]
            if signs:
                raise DataError(
                    f"{self.path} has one column only, {shown(header.decode())}: is it separated "
                    f"by {signs[0]!r}? Use comma, semicolon or tab."
                )
        return best

    # Reading.

    @contextmanager
    def _open(self):
        if _state(self.path) != self.state:
            raise DataError(f"{self.path} has changed while it was read: start again.")
        opened = gzip.open if is_gzipped(self.path) else open
        try:
            with opened(self.path, "rb") as file:
                yield file
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(self.path, error) from error

    def _records(self, chunk_bytes):
        """Yield lists of whole records, blank lines among them, the header first."""
        pending = []
        with self._open() as file:
            if self.has_mark:
                file.read(len(BOM))
            while data := file.read(chunk_bytes):
                pending.append(data)
                if b"\n" not in data:
                    continue
                text = b"".join(pending)
                *lines, rest = text.split(b"\n")
                if are_lines_records(text[: len(text) - len(rest)], self.delimiter):
                    records, torn = lines, []
                else:
                    records, torn = whole_records(lines, self.delimiter)
                pending = [b"\n".join([*torn, rest])]
                if len(pending[0]) > LONGEST_RECORD:
                    self._complain_of_quote(pending[0])
                if records:
                    yield records
        if rest := b"".join(pending):
            records, torn = whole_records(rest.split(b"\n"), self.delimiter)
            if torn:
                self._complain_of_quote(b"\n".join(torn))
            yield records

    def blocks(self, chunk_bytes=CHUNK_BYTES):
        """Yield lists of the records of rows: neither the header nor blank lines."""
        header_seen = False
        for records in self._records(chunk_bytes):
            if any(blank in records for blank in BLANK):
                records = [record for record in records if record not in BLANK]
            if records and not header_seen:
                header_seen = True
                records = records[1:]
            if records:
                yield records

    def chunks(self, texts=(), numbers=(), chunk_bytes=CHUNK_BYTES):
        """Yield pairs of the first row's position and a pyarrow table of some columns.

        Parameters
        ----------
        texts, numbers : sequence of str
            Columns to be read as strings and as float64, where null is an empty cell.
        chunk_bytes : int
            Bytes of text in a chunk, roughly.
        """
        types = dict.fromkeys(texts, pa.string()) | dict.fromkeys(numbers, pa.float64())
        convert = csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[""]
        )
        first = 0
        for records in self.blocks(chunk_bytes):
            data = b"\n".join([*records, b""])
            if texts and not data.isascii():
                self._check_encoding(data, records, first)
            read = csv.ReadOptions(column_names=self.columns, block_size=len(data) + 1)
            newlines = data.count(b"\n") > len(records)
            parse = csv.ParseOptions(delimiter=self.delimiter.decode(), newlines_in_values=newlines)
            try:
                table = csv.read_csv(pa.BufferReader(data), read, parse, convert)
            except pa.ArrowInvalid as error:
                raise self._explained(records, first, numbers, error) from error
            if table.num_rows != len(records):
                raise self._explained(records, first, numbers, "a stray carriage return")
            yield first, table
            first += len(records)

    def is_wide(self, _):
        """Tell whether there are list columns: not in text."""
        return False

    def numbers(self, is_wide=False):
        """Columns of which at least half of the filled cells of the first rows are numbers."""
        filled = [0] * len(self.columns)
        numeric = [0] * len(self.columns)
        seen = 0
        for records in self.blocks(1 << 18):
            for record in records[: SAMPLE_ROWS - seen]:
                cells = raw_cells(record.rstrip(b"\r"), self.delimiter)
                for column, raw in enumerate(cells[: len(self.columns)]):
                    text = raw.decode("utf-8", "replace").strip('"')
                    if text.strip().lower() not in MISSING:
                        filled[column] += 1
                        numeric[column] += NUMBER.fullmatch(text) is not None
            seen += len(records)
            if seen >= SAMPLE_ROWS:
                break
        if not seen:
            raise no_rows(self.path)
        counts = zip(self.columns, filled, numeric, strict=True)
        return [name for name, total, count in counts if total and 2 * count >= total]

    def single(self, _):
        """Whether a column holds numbers of single precision: text has no precision."""
        return False

    # Places and what is wrong with them.

    def place(self, row):
        """Name a row as a spreadsheet does: the header is row 1, and blank lines count."""
        line, data_rows = 0, -1
        for records in self._records(CHUNK_BYTES):
            for record in records:
                line += 1
                data_rows += record not in BLANK
                if data_rows > row:
                    return f"row {line}"
        return f"row {row + 2}"

    def cell(self, row, column):
        """Text of a cell."""
        position = self.columns.index(column)
        for records in self.blocks():
            if row < len(records):
                return cell_text(raw_cells(records[row].rstrip(b"\r"), self.delimiter)[position])
            row -= len(records)
        raise DataError(f"{self.path} has changed while it was read: start again.")

    def bad_number(self, row, column, _=None):
        """Make the error for a cell that should be a finite number."""
        return self._bad_number(row, column, self.cell(row, column))

    def _bad_number(self, row, column, text):
        where = f"{self.path}, {self.place(row)}, column {column!r}"
        if not text.strip():
            return DataError(f"{where}: the cell is empty; a feature needs a number in every row.")
        if re.fullmatch(r"\s*[+-]?\d+,\d+\s*", text):
            return DataError(f"{where}: {shown(text)} has a decimal comma: write a point instead.")
        what = "finite number" if text.strip().lower() in MISSING or is_number(text) else "number"
        return DataError(
            f"{where}: {shown(text)} is not a {what}: correct it, or do not use the column as a "
            "feature."
        )

    def _explained(self, records, first, numbers, error):
        """Find the first record that cannot be read, and make the error that names it."""
        positions = [(self.columns.index(name), name) for name in numbers]
        for row, record in enumerate(records, first):
            cells = raw_cells(record.rstrip(b"\r"), self.delimiter)
            if len(cells) != len(self.columns):
                return DataError(
                    f"{self.path}, {self.place(row)} has {len(cells)} cells, but the header names "
                    f"{len(self.columns)} columns ({listed(self.columns)}): is a delimiter "
                    "missing, or a quote?"
                )
            for position, name in positions:
                text = cell_text(cells[position])
                if not is_number(text) or not math.isfinite(float(text)):
                    return self._bad_number(row, name, text)
            if b"\r" in record[:-1]:
                return DataError(
                    f"{self.path}, {self.place(row)} has a carriage return outside quotes: "
                    "remove it."
                )
        return DataError(f"{self.path}, near {self.place(first)}: {error}.")

    def _check_encoding(self, data, records, first):
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            for row, record in enumerate(records, first):
                try:
                    record.decode("utf-8")
                except UnicodeDecodeError:
                    self._decoded(record, self.place(row))

    def _decoded(self, record, place):
        try:
            return record.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = record[max(error.start - 10, 0) : error.start + 10]
            raise DataError(
                f"{self.path}, {place}: {shown(wrong)} is not encoded in UTF-8: save the file as "
                "'CSV UTF-8'."
            ) from error

    def _complain_of_quote(self, record):
        start = record[:40].decode("utf-8", "replace")
        raise DataError(
            f"{self.path}: a quote is opened but never closed in the row that begins with "
            f"{shown(start)}: close it, or double it if it belongs to the text."
        )


def is_number(text):
    """Tell whether a cell is read as a number.

    Examples
    --------
    >>> is_number(" -1.5e3"), is_number("1,5"), is_number("0x10")
    (True, False, False)
    """
    return NUMBER.fullmatch(text) is not None


def _state(path):
    try:
        status = os.stat(path)
    except OSError as error:
        raise unreadable(path, error) from error
    return status.st_ino, status.st_size, status.st_mtime_ns
