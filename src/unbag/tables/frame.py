"""Tables in memory: frames of pandas and polars, and tables of pyarrow.

They are read as files are, some rows at a time, and get new columns back, each kind in its own way.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import narwhals.dependencies as kinds
import numpy as np
import pyarrow as pa

from unbag._files import DataError, check, check_distinct
from unbag._messages import shortened
from unbag.tagging import ANY_LABEL, UNKNOWN_MARK, Unknown, label_text

from .formats.arrow import TypedTable, with_new_columns

#: A frame of pandas or polars, or a table of pyarrow.
Frame = TypeVar("Frame")

# What messages call a frame.
NAME = Path("The frame")
# What Arrow raises where it cannot take objects.
ERRORS = (pa.ArrowException, ValueError, TypeError, OverflowError)


def open_frame(frame: Any) -> "FrameTable":
    """Find out about the columns of a frame, without a copy of it."""
    if kinds.is_pandas_dataframe(frame):
        return PandasTable(frame)
    if kinds.is_polars_lazyframe(frame):
        return PolarsTable(frame.collect(), is_lazy=True)
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
        self.n_rows: int | None = len(frame)
        # Columns of Python's objects; what is wrong with them matters only if they have a role.
        self._objects: dict[str, pa.Array] = {}
        self._faults: dict[str, str] = {}
        self.schema: pa.Schema = self._schema()
        self.columns: list[str] = list(self.schema.names)
        check_distinct(self.path, self.columns)
        n_bytes = self._n_bytes() + sum(column.nbytes for column in self._objects.values())
        self.row_bytes: int = max(8 * len(self.columns), n_bytes // max(1, self.n_rows))

    @abstractmethod
    def _schema(self) -> pa.Schema:
        """Return the types of the columns."""

    @abstractmethod
    def _n_bytes(self) -> int:
        """Return what the frame takes in memory, roughly, without Python's objects."""

    @abstractmethod
    def _part(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """Return some rows and columns, which hold no objects, as a pyarrow table."""

    @abstractmethod
    def with_columns(self, columns: Mapping[str, pa.Array], metadata: Mapping[bytes, bytes]) -> Any:
        """Return the frame with new columns, which take the place of old ones of the same name."""

    def _chunks(self, texts, numbers, chunk_bytes, with_gaps):
        columns = list(dict.fromkeys([*texts, *numbers]))
        for name in columns:
            self._check_readable(name)
        typed = [name for name in columns if name not in self._objects]
        n_rows = max(1, chunk_bytes // self.row_bytes)
        for start in range(0, self.n_rows or 0, n_rows):
            part = self._part(typed, start, start + n_rows)
            found = dict(zip(typed, part.columns, strict=True))
            found |= {name: self._objects[name].slice(start, n_rows)
                      for name in columns if name in self._objects}  # fmt: skip
            yield start, pa.table({name: found[name] for name in columns})

    def _type_of_objects(self, name, cells):
        """Return the type of a column of Python's objects, and keep them as an array."""
        try:
            self._objects[name] = array_of_objects(cells)
        except ERRORS as error:
            self._faults[name] = (
                f"mixes types, or holds objects that cannot be read: {shortened(str(error))} Make "
                "all of its cells alike, such as by astype(str)."
            )
            return pa.binary()
        return self._objects[name].type

    def check_type(self, column: str, role: str, is_wide: bool = False) -> None:
        """Raise an error if a role does not allow the type of a column."""
        self._check_readable(column)
        super().check_type(column, role, is_wide)

    def _check_readable(self, column):
        fault = self._faults.get(column)
        check(fault is None, f"{self.path}, column {column!r} {fault}")

    def place(self, row: int) -> str:
        """Name a row, counted from 0 as frames do."""
        return f"row {row}"


def array_of_objects(cells: Iterable[Any]) -> pa.Array:
    """Make a pyarrow array of Python's objects. Sets become sorted lists.

    Whole numbers of more than 64 bits are text.

    Examples
    --------
    >>> array_of_objects([frozenset({"wren", "owl"}), {Unknown("owl")}, None]).to_pylist()
    [['owl', 'wren'], ['?owl'], None]
    >>> array_of_objects([1, 2**64]).to_pylist()
    ['1', '18446744073709551616']
    """
    plain = [_plain(each) for each in cells]
    for kind in (None, pa.uint64()):
        with suppress(OverflowError):
            return pa.array(plain, kind, from_pandas=True)
    texts = [str(each) if isinstance(each, int) else each for each in plain]
    return pa.array(texts, from_pandas=True)


def _plain(cell):
    """Return what Arrow takes for a cell."""
    if isinstance(cell, np.ndarray) and cell.ndim > 1:
        # Arrays of more than one dimension are lists of lists.
        return cell.tolist()
    if isinstance(cell, set | frozenset):
        return sorted(map(_plain, cell), key=label_text)
    if isinstance(cell, list | tuple) and any(isinstance(each, Unknown) for each in cell):
        return [_plain(each) for each in cell]
    if isinstance(cell, Unknown):
        return ANY_LABEL if cell.label is ... else f"{UNKNOWN_MARK}{cell.label}"
    return cell


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
        return with_new_columns(self.frame, columns).replace_schema_metadata(metadata or None)


class PolarsTable(FrameTable):
    """A polars.DataFrame, or a LazyFrame that was collected, as a table of bags."""

    def __init__(self, frame: Any, is_lazy: bool = False):
        super().__init__(frame)
        self._is_lazy = is_lazy

    def _schema(self):
        rows = self.frame
        kinds = {name: self._type_of_objects(name, rows[name].to_list())
                 for name, kind in rows.schema.items() if "Object" in str(kind)}  # fmt: skip
        self._typed = [name for name in rows.columns if name not in kinds]
        kinds |= {field.name: field.type for field in self._part(self._typed, 0, 0).schema}
        return pa.schema([(name, kinds[name]) for name in rows.columns])

    def _n_bytes(self):
        # Some releases cannot measure objects.
        return self.frame.select(self._typed).estimated_size()

    def _part(self, columns, start, stop):
        import polars

        rows = self.frame.select(columns).slice(start, stop - start)
        # Integers of 128 bits are text.
        wide = [name for name in columns if str(rows.schema[name]) in ("Int128", "UInt128")]
        return rows.with_columns(polars.col(wide).cast(polars.String)).to_arrow()

    def with_columns(self, columns: Mapping[str, pa.Array], metadata: Mapping[bytes, bytes]) -> Any:
        """Return the frame with new columns; see `FrameTable.with_columns`."""
        import polars

        series: Any = [polars.Series(name, values) for name, values in columns.items()]
        result = self.frame.with_columns(series)
        return result.lazy() if self._is_lazy else result


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
        return pa.schema([(name, self._type(name)) for name in (*self._place, *self._level)])

    def _cells(self, name, rows):
        """Return some cells of a column, or of a level of the index."""
        if name in self._level:
            return self.frame.index[rows].get_level_values(self._level[name])
        return self.frame.iloc[rows, self._place[name]]

    def _type(self, name):
        if self._cells(name, slice(0, 0)).dtype == object:
            return self._type_of_objects(name, self._cells(name, slice(None)))
        return self._array(name, slice(0, 0)).type

    def _array(self, name, rows):
        """Return some cells of a column as a pyarrow array."""
        cells = self._cells(name, rows)
        is_sparse = type(cells.dtype).__name__ == "SparseDtype"
        try:
            array = pa.array(np.asarray(cells) if is_sparse else cells, from_pandas=True)
        except ERRORS as error:
            raise DataError(
                f"{self.path}, column {name!r} holds {cells.dtype}, which cannot be read: "
                f"{shortened(str(error))}."
            ) from error
        return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array

    def _n_bytes(self):
        return int(self.frame.memory_usage(index=False, deep=False).sum())

    def _part(self, columns, start, stop):
        return pa.table({name: self._array(name, slice(start, stop)) for name in columns})

    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns that hold numbers; what the index holds describes no instance."""
        return [name for name in super().numbers(is_wide) if name in self._own]

    def place(self, row: int) -> str:
        """Name a row by its position and, if it differs, by its index."""
        label = self.frame.index[row]
        return f"row {row}" if label == row else f"row {row} (index {shortened(label)})"

    def with_columns(self, columns: Mapping[str, pa.Array], metadata: Mapping[bytes, bytes]) -> Any:
        """Return the frame with new columns; see `FrameTable.with_columns`."""
        import pandas

        # Before pandas 3, a change of a shallow copy changes the frame.
        result = self.frame.copy(deep=int(pandas.__version__.partition(".")[0]) < 3)
        names = dict(zip(self._own, self.frame.columns, strict=True))
        for name, values in columns.items():
            # Without an index, which pandas would align.
            result[names.get(name, name)] = values.to_pandas().array
        return result
