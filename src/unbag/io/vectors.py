"""A column of vectors, all of one length, whose numbers are the features of an instance.

In typed tables they are lists; in text, and where somebody has put text into a typed table, numbers
between commas, semicolons or blanks, perhaps in brackets. Where a row is a bag, the column holds
lists of vectors.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from unbag._checks import bag_of
from unbag._files import DataError, check, check_same, refuse
from unbag._messages import argument, shortened

from .arrow_types import is_list, is_text
from .scan import Scan, float_array
from .wide import WideScan

# Rows by which vectors are told from other text.
SAMPLE_ROWS = 20
# A number; or the dots in place of those that numpy and pandas leave out of long vectors.
_ENTRY = r"(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|\.{3})"
# Two numbers between commas may be one with a decimal comma; blanks are common in other text.
VECTOR = re.compile(
    rf"\s*(?:{_ENTRY}(?:\s*[,;]\s*{_ENTRY}){{2,}}"
    rf"|[\[(]\s*{_ENTRY}(?:(?:\s*[,;]\s*|\s+){_ENTRY})*\s*[\])])\s*"
)


def are_vectors(texts: Sequence[str | None]) -> bool:
    """Return whether most cells of a column, as far as they are filled, are vectors.

    Examples
    --------
    >>> are_vectors(["0.5,1,2e-3", "[0.5 1]", None]), are_vectors(["1,5", "wren"])
    (True, False)
    """
    filled = [text for text in texts if text is not None and text.strip()][:SAMPLE_ROWS]
    return bool(filled) and 2 * sum(map(is_vector, filled)) >= len(filled)


def is_vector(text: str) -> bool:
    """Return whether a text is a vector beyond doubt."""
    return VECTOR.fullmatch(text) is not None


class VectorScan(Scan):
    """What is known of the rows of a table that has one row per instance, and a vector in each."""

    width: int = 0

    @property
    def feature_columns(self) -> dict[str, Sequence[str]]:
        """What the second pass reads, as `Table.chunks` wants to be asked."""
        return {"texts": [self.roles.embedding], "numbers": self.roles.features}

    @property
    def feature_names(self) -> list[str]:
        """Names of the features: the numbers of a vector are counted."""
        name = self.roles.embedding
        return [*(f"{name}[{place}]" for place in range(self.width)), *self.roles.features]

    def empty_features(self) -> NDArray[Any]:
        """Return an array for the features, as wide as the first vector says."""
        name, features = self.roles.embedding, self.roles.features
        for _, table in self.source.chunks(texts=[name]):
            lengths = self._lists(table.column(name)).value_lengths().drop_null()
            if len(lengths):
                self.width = lengths[0].as_py()
                break
        check(self.width, f"{self.source.path}, column {name!r} holds no vector in any row.")
        dtype = self.source.dtype([name, *features])
        return np.empty((self.rows.size, self.width + len(features)), dtype)

    def _lists(self, column):
        """Return the vectors of a chunk as one array of lists."""
        return as_lists(column)

    def _fill(self, chunk, first, table):
        name, width = self.roles.embedding, self.width
        super()._fill(chunk[:, width:], first, table)
        self._fill_vectors(
            chunk[:, :width],
            self._lists(table.column(name)),
            lambda row: self.at(first + row, name),
        )

    def _fill_vectors(self, chunk, lists, place):
        """Read vectors, and check that they are of one length and finite."""
        missing = lists.is_null().to_numpy(zero_copy_only=False)
        if self.roles.missing_values is None:
            refuse(
                np.flatnonzero(missing),
                lambda row: (
                    f"{place(row)}: the vector is missing; an instance needs one, unless missing "
                    f"values are dropped or replaced by the mean ({argument('missing_values')})."
                ),
            )
        flat = pc.list_flatten(lists)
        if types.is_string(flat.type) or types.is_large_string(flat.type):
            # Before the lengths, which are wrong where a vector was cut.
            flat = self._parsed(flat, lists, place)
        lengths = pc.list_value_length(lists).fill_null(self.width).to_numpy(zero_copy_only=False)
        refuse(
            np.flatnonzero(lengths != self.width),
            lambda row: (
                f"{place(row)}: the vector has {lengths[row]} numbers, but the first one has "
                f"{self.width}: all need as many."
            ),
        )
        chunk[missing] = np.nan
        chunk[~missing] = float_array(flat, chunk.dtype).reshape(-1, self.width)
        found = self._first_fault(chunk)
        if found is not None:
            value = "is missing" if np.isnan(found.value) else "is not a finite number"
            raise DataError(
                f"{place(found.row)}: entry {found.column + 1} of the vector {value}: correct it, "
                "or do not use the column as a feature."
            )

    def _parsed(self, flat, lists, place):
        try:
            return flat.cast(pa.float64())
        except pa.ArrowInvalid:
            for row, cells in enumerate(lists.to_pylist()):
                for entry, cell in enumerate(cells or (), 1):
                    try:
                        float(cell)
                    except ValueError:
                        raise DataError(
                            f"{place(row)}: entry {entry} of the vector, {shortened(cell)}, is no "
                            f"number{CUT if '...' in cell else ''}."
                        ) from None
            raise


# What numpy and pandas write of long arrays.
CUT = ": the vector was cut when it was written as text, and the rest of it is lost"


class WideVectorScan(VectorScan, WideScan):
    """What is known of the rows of a table that has one row per bag, and a list of vectors."""

    def __init__(self, source: Any, roles: Any):
        check(
            not roles.features,
            f"{source.path}: beside lists of vectors there are no other features, such as "
            f"{next(iter(roles.features or ()), '')!r}: leave them out.",
        )
        super().__init__(source, roles)

    def _lists(self, column):
        return as_lists(pc.list_flatten(column))

    def put_features(self, X: NDArray[Any], first: int, table: pa.Table) -> None:
        """Put a chunk of features where they belong; see `Scan.put_features`."""
        name = self.roles.embedding
        check_same(self.source.path, first + table.num_rows <= self.n_rows)
        bounds = self.offsets[first : first + table.num_rows + 1]
        self._check_sizes(first, name, table, np.diff(bounds))

        def place(instance):
            row = bag_of(bounds - bounds[0], instance)
            entry = instance - (bounds[row] - bounds[0]) + 1
            return f"{self.at(first + row, name)}, instance {entry}"

        self._fill_vectors(X[bounds[0] : bounds[-1]], self._lists(table.column(name)), place)


def as_lists(column: pa.ChunkedArray | pa.Array) -> Any:
    """Return a column of vectors as one array of lists: of numbers, or of their texts.

    Examples
    --------
    >>> as_lists(pa.chunked_array([["[1, 2]", None, "3;4"]])).to_pylist()
    [['1', '2'], None, ['3', '4']]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
    if types.is_fixed_size_list(column.type):
        # Flattened, they would keep the room of vectors that are missing.
        return column.cast(pa.list_(column.type.value_type))
    if is_list(column.type):
        return column
    if types.is_null(column.type):
        return column.cast(pa.list_(pa.float64()))
    if not is_text(column.type):
        raise DataError(f"vectors are lists of numbers, or text of numbers, not {column.type}.")
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = column.cast(pa.string())
    inside = pc.utf8_trim(column, characters=" \t\r\n[]()")
    inside = pc.if_else(pc.equal(inside, ""), pa.scalar(None, pa.string()), inside)
    # Between semicolons, a comma can only be a decimal one.
    has_semicolons = pc.match_substring(inside, ";")
    inside = pc.if_else(has_semicolons, pc.replace_substring(inside, ",", "."), inside)
    return pc.split_pattern_regex(inside, r"\s*[,;]\s*|\s+")
