"""Tables in memory: frames of pandas and polars, and tables of pyarrow.

They are read as files are, some rows at a time, and get new columns back, each kind in its own way.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import narwhals.dependencies as kinds
import numpy as np
import pyarrow as pa

from unbag._files import DataError, check, check_distinct
from unbag._messages import shortened

from .formats.arrow import TypedTable

#: A frame of pandas or polars, or a table of pyarrow.
Frame = TypeVar("Frame")

# What messages call a frame.
NAME = Path("The frame")
# Cells by which a column of Python objects is judged.
SAMPLE_CELLS = 1000
MIXED = ("mixed-integer", "mixed-integer-float")


def open_frame(frame: Any) -> "FrameTable":
    """Find out about the columns of a frame, without a copy of it."""
    if kinds.is_pandas_dataframe(frame):
        return PandasTable(frame)
    if kinds.is_polars_lazyframe(frame):
        return LazyTable(frame)
    if kinds.is_polars_dataframe(frame):
        return PolarsTable(frame)
    if kinds.is_pyarrow_table(frame):
        return PyarrowTable(frame)
    check(
        not kinds.is_dask_dataframe(frame),
        "expected a table in memory, got a Dask DataFrame: call its compute(), or use "
        "unbag.dask.fit and unbag.dask.annotate.",
    )
    raise DataError(
        f"expected a DataFrame of pandas or polars, a pyarrow Table, or a path; got "
        f"{type(frame).__name__}."
    )


class FrameTable(TypedTable):
    """A table in memory; a row takes about `row_bytes`."""

    def __init__(self, frame: Any):
        self.path: Path = NAME
        self.frame: Any = frame
        self.format: str = f"{type(frame).__module__.partition('.')[0]} {type(frame).__name__}"
        self.n_rows: int | None = len(self._rows)
        self.schema: pa.Schema = self._schema()
        self.columns: list[str] = list(self.schema.names)
        check_distinct(self.path, self.columns)
        self.row_bytes: int = max(8 * len(self.columns), self._n_bytes() // max(1, self.n_rows))

    @property
    def _rows(self) -> Any:
        """What the rows are taken from."""
        return self.frame

    @abstractmethod
    def _schema(self) -> pa.Schema:
        """Return the types of the columns."""

    @abstractmethod
    def _n_bytes(self) -> int:
        """Return what the frame takes in memory, roughly."""

    @abstractmethod
    def _part(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """Return some rows and columns as a pyarrow table."""

    @abstractmethod
    def with_columns(self, columns: Mapping[str, pa.Array], metadata: Mapping[bytes, bytes]) -> Any:
        """Return the frame with new columns, which take the place of old ones of the same name."""

    def _chunks(self, texts, numbers, chunk_bytes, with_gaps):
        columns = list(dict.fromkeys([*texts, *numbers]))
        n_rows = max(1, chunk_bytes // self.row_bytes)
        for start in range(0, self.n_rows or 0, n_rows):
            yield start, self._part(columns, start, start + n_rows)

    def place(self, row: int) -> str:
        """Name a row, counted from 0 as frames do."""
        return f"row {row}"


class PyarrowTable(FrameTable):
    """A pyarrow.Table, as a table of bags."""

    def _schema(self):
        return self.frame.schema

    def _n_bytes(self):
        return self.frame.nbytes

    def _part(self, columns, start, stop):
        return self.frame.select(columns).slice(start, stop - start)

    def with_columns(self, columns: Mapping[str, pa.Array], metadata: Mapping[bytes, bytes]) -> Any:
        """Return the table with new columns; see `FrameTable.with_columns`."""
        result = self.frame
        for name, values in columns.items():
            if name in result.column_names:
                result = result.set_column(result.column_names.index(name), name, values)
            else:
                result = result.append_column(name, values)
        return result.replace_schema_metadata(metadata or None)


class PolarsTable(FrameTable):
    """A polars.DataFrame, as a table of bags."""

    def _schema(self):
        return pa.schema([(name, self._type(name)) for name in self._rows.columns])

    def _type(self, name):
        if self._holds_objects(name):
            # Refused if it has a role; otherwise it does not matter.
            return pa.binary()
        return self._rows.select(name).head(0).to_arrow().schema.field(0).type

    def _holds_objects(self, name):
        return "Object" in str(self._rows.schema[name])

    def _n_bytes(self):
        # Some releases cannot measure objects.
        known = [name for name in self._rows.columns if not self._holds_objects(name)]
        return self._rows.select(known).estimated_size()

    def _part(self, columns, start, stop):
        return self._rows.select(columns).slice(start, stop - start).to_arrow()

    def with_columns(self, columns: Mapping[str, pa.Array], metadata: Mapping[bytes, bytes]) -> Any:
        """Return the frame with new columns; see `FrameTable.with_columns`."""
        import polars

        series: Any = [polars.Series(name, values) for name, values in columns.items()]
        return self._rows.with_columns(series)


class LazyTable(PolarsTable):
    """A polars.LazyFrame, collected once."""

    def __init__(self, frame: Any):
        self._collected = frame.collect()
        super().__init__(frame)

    @property
    def _rows(self) -> Any:
        return self._collected

    def with_columns(self, columns: Mapping[str, pa.Array], metadata: Mapping[bytes, bytes]) -> Any:
        """Return a lazy frame with new columns; see `FrameTable.with_columns`."""
        return super().with_columns(columns, metadata).lazy()


class PandasTable(FrameTable):
    """A pandas.DataFrame, as a table of bags; the named levels of its index are columns too."""

    def _schema(self):
        frame = self.frame
        check(
            frame.columns.nlevels == 1,
            f"{self.path} has columns of {frame.columns.nlevels} levels: give them one name each.",
        )
        self._own = [str(name) for name in frame.columns]
        check_distinct(self.path, self._own)
        self._place = {name: place for place, name in enumerate(self._own)}
        levels = [(str(name), level) for level, name in enumerate(frame.index.names)
                  if name is not None]  # fmt: skip
        self._level = {name: level for name, level in levels if name not in self._place}
        self._mixed = set()
        # What the objects of a row take, roughly; pandas counts only where they lie.
        self._object_bytes = 0
        return pa.schema([(name, self._type(name)) for name in (*self._place, *self._level)])

    def _cells(self, name, rows):
        """Return some cells of a column, or of a level of the index."""
        if name in self._level:
            return self.frame.index[rows].get_level_values(self._level[name])
        return self.frame.iloc[rows, self._place[name]]

    def _type(self, name):
        """Return the type of a column; that of Python's objects is inferred from some of them."""
        empty = self._cells(name, slice(0, 0))
        if empty.dtype != object:
            return self._array(name, empty).type
        from pandas.api.types import infer_dtype

        cells = self._cells(name, slice(None))
        if infer_dtype(cells, skipna=True) in MIXED:
            # Refused if it has a role; otherwise it does not matter.
            self._mixed.add(name)
            return pa.binary()
        filled = np.flatnonzero(cells.notna())[:SAMPLE_CELLS]
        sample = self._array(name, cells.take(filled), pa.binary())
        self._object_bytes += sample.nbytes // max(1, len(sample))
        return sample.type

    def _array(self, name, cells, otherwise=None):
        """Return some cells of a column as a pyarrow array."""
        values = cells
        if cells.dtype == object:
            # Arrays of more than one dimension are lists of lists.
            values = [each.tolist() if isinstance(each, np.ndarray) and each.ndim > 1 else each
                      for each in cells]  # fmt: skip
        elif type(cells.dtype).__name__ == "SparseDtype":
            values = np.asarray(cells)
        try:
            array = pa.array(values, from_pandas=True)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            if otherwise is not None:
                return pa.array([], otherwise)
            fault = "mixes values of several types"
            if cells.dtype != object:
                fault = f"holds {cells.dtype}, which cannot be read"
            raise DataError(
                f"{self.path}, column {name!r} {fault}: {shortened(str(error))}."
            ) from error
        return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array

    def _n_bytes(self):
        held = int(self.frame.memory_usage(index=False, deep=False).sum())
        return held + self._object_bytes * len(self.frame)

    def _part(self, columns, start, stop):
        rows = slice(start, stop)
        return pa.table({name: self._array(name, self._cells(name, rows)) for name in columns})

    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns that hold numbers; what the index holds describes no instance."""
        return [name for name in super().numbers(is_wide) if name in self._own]

    def check_type(self, column: str, role: str, is_wide: bool = False) -> None:
        """Raise an error if a role does not allow the type of a column."""
        check(
            column not in self._mixed,
            f"{self.path}, column {column!r} mixes numbers and text: make it one of them, such as "
            "by astype(str).",
        )
        super().check_type(column, role, is_wide)

    def place(self, row: int) -> str:
        """Name a row by its position and, if it differs, by its index."""
        label = self.frame.index[row]
        return f"row {row}" if label == row else f"row {row} (index {shortened(label)})"

    def with_columns(self, columns: Mapping[str, pa.Array], metadata: Mapping[bytes, bytes]) -> Any:
        """Return the frame with new columns; see `FrameTable.with_columns`."""
        result = self.frame.copy(deep=self._is_shared_by_shallow_copies())
        names = dict(zip(self._own, self.frame.columns, strict=True))
        for name, values in columns.items():
            # Without an index, which pandas would align.
            result[names.get(name, name)] = values.to_pandas().array
        return result

    def _is_shared_by_shallow_copies(self):
        """Return whether a change of a shallow copy changes the frame, as before pandas 3."""
        import pandas

        return int(pandas.__version__.partition(".")[0]) < 3
