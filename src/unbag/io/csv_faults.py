"""What is wrong with delimited text, and in which row and column a spreadsheet shows it."""

import math
import re
from collections.abc import Callable, Mapping, Sequence

from unbag._files import DataError, PathLike, refuse
from unbag._messages import argument, listed, shortened

from .csv import (
    DELIMITER_NAMES,
    LONGEST_RECORD,
    MISSING,
    SPELT_MISSING,
    DelimitedFile,
    cell_text,
    is_number,
    raw_cells,
)


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


def unclosed_quote(path: PathLike, record: bytes) -> DataError:
    """Make the error for a quote that no other one closes."""
    start = record[:40].decode("utf-8", "replace")
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
    """Make the error for records of which one is not encoded in UTF-8.

    Parameters
    ----------
    path : str or path
    records : list of bytes
    place : callable
        Names the place of a record, given its number among `records`.
    """
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
) -> DataError:
    """Find the first record that cannot be read, and make the error that names it.

    Parameters
    ----------
    source : DelimitedFile
    records : list of bytes
    first : int
        Position of the first of them among the rows.
    numbers : sequence of str
        The columns that should hold numbers.
    error : object
        What is said where no record seems to be wrong.
    """
    positions = [(source.columns.index(name), name) for name in numbers]
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
            is_spelt = is_number(text, source.decimal)
            if not is_spelt or not math.isfinite(float(text.replace(",", "."))):
                return bad_number(source, row, name, text)
        if b"\r" in record[:-1]:
            return DataError(
                f"{source.path}, {source.place(row)} has a carriage return outside quotes: "
                "remove it."
            )
    return DataError(f"{source.path}, near {source.place(first)}: {error}.")
