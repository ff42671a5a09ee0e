"""Bags that stay in their Parquet files: what is small is known, features are read when needed."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from unbag._files import DataError, PathLike, check
from unbag._platform import temporary_folder
from unbag.bags import Bags, first_nonfinite, value_array
from unbag.labels import LabelSets

from .bag_table import Progress
from .parquet_set import ParquetSet, RowReader
from .roles import Roles
from .scan import Scan, float_array, list_sizes

#: Bytes of features that are read together, as long as groups of rows allow it.
BLOCK_BYTES = 16 << 20
#: Rows whose columns are put side by side at a time, in the cache.
SIDE_BY_SIDE = 4096
# Where compression saves more than this, reading the compressed file may be faster.
LEAST_RATIO = 0.5
# How much more room there must be than features need.
ROOM = 1.25


class StoredBags:
    """Bags and label sets of a Parquet set that is sorted by bag, with the features left on disk.

    Memory holds the size, the id and the label set of each bag; of instances, only labels that
    people gave, if they are read `with_known`.
    """

    def __init__(
        self,
        path: PathLike | ParquetSet,
        roles: Roles | None = None,
        *,
        need_labels: bool = True,
        with_known: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.table: ParquetSet = path if isinstance(path, ParquetSet) else ParquetSet(path)
        self.roles: Roles = self.table.resolved(roles, need_labels)
        check_stays_on_disk(self.table, self.roles)
        self.is_wide: bool = self.table.is_wide(self.roles)
        read = replace(self.roles, instance_labels=None)
        read = read if with_known else replace(read, known=None)
        scan = Scan(self.table, read, progress, is_sorted=True)
        self.offsets: NDArray[np.intp] = scan.offsets
        self.labels: LabelSets | None = scan.label_sets()
        self._ids: pa.Array = scan.ids
        self._known: tuple[list[str], NDArray[np.int32]] | None = scan.known_codes()
        #: Labels that the roles rename, and that the set does not have.
        self.unused_names: tuple[str, ...] = scan.tagging.unused_names()
        self.feature_names: NDArray[Any] = np.array(list(self.roles.features or ()))
        self.dtype: np.dtype = np.dtype(self.table.dtype(self.feature_names.tolist()))
        self.scratch: FeatureScratch | None = None
        #: Bags whose features have been read, and are finite.
        self.is_finite: NDArray[np.bool_] = np.zeros(len(self), dtype=bool)

    # What bags in memory have as well.

    def __len__(self) -> int:
        return self.offsets.size - 1

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of instances in each bag; computed each time."""
        return np.diff(self.offsets)

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        """Number of features of an instance."""
        return self.feature_names.size

    @cached_property
    def ids(self) -> NDArray[Any]:
        """Names of the bags, of shape (n_bags,); made when first asked for."""
        if types.is_integer(self._ids.type):
            return self._ids.to_numpy(zero_copy_only=False)
        return value_array(self._ids.to_pylist())

    @property
    def known(self) -> NDArray[np.object_] | None:
        """Labels of instances that people gave, of shape (n_instances,); None if there are none."""
        if self._known is None or not self._known[0]:
            return None
        names, codes = self._known
        return np.array([*names, None], dtype=object)[codes]

    @property
    def feature_bytes(self) -> int:
        """Bytes that the features would take in memory."""
        return self.n_instances * self.n_features * self.dtype.itemsize

    # Features.

    @contextmanager
    def decoded_once(self, folder: PathLike | Literal["auto"] | None = "auto") -> Iterator[None]:
        """Keep features as they are decoded, in a temporary file, for as long as the context lasts.

        "auto" is a folder for temporary files, if there is room, and if compression saves less than
        half of it. None is nowhere.
        """
        if folder == "auto":
            columns = self.feature_names.tolist()
            folder = scratch_folder(self.feature_bytes, self.table.packed_bytes(columns))
        if folder is None:
            yield
            return
        # It has no name, and is gone even when the process is killed.
        with tempfile.TemporaryFile(dir=folder, prefix=".unbag-") as file:
            self.scratch = FeatureScratch(file, self.offsets, self.n_features, self.dtype)
            try:
                yield
            finally:
                self.scratch = None

    def block_of(self, bags: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return which block of the files the first row of some bags lies in.

        A block is what is read together: a group of rows, several small ones, or a part of a large
        one.
        """
        rows = bags if self.is_wide else self.offsets[bags]
        return np.searchsorted(self._block_ends(), rows, side="right")

    def _block_ends(self):
        n_rows = self.table.n_rows
        row_bytes = max(self.feature_bytes / n_rows, 1.0)
        wanted = max(int(BLOCK_BYTES / row_bytes), 1)
        ends, last = [], 0
        for end in self.table.group_ends.tolist():
            # Groups of rows are small or large as their writer liked.
            while end - last > 2 * wanted:
                last += wanted
                ends.append(last)
            if end - last >= wanted:
                last = end
                ends.append(last)
        return np.array(ends, dtype=np.int64)

    def reader(self) -> "FeatureReader":
        """Return what reads features: one for each pass, and for each thread."""
        return FeatureReader(self)

    def bags(self, first: int, last: int, reader: "FeatureReader | None" = None) -> Bags:
        """Read the bags from `first` to before `last`, by a reader that has read those before."""
        X = (self.reader() if reader is None else reader).read(first, last)
        offsets = self.offsets[first : last + 1] - self.offsets[first]
        ids = value_array(self._ids.slice(first, last - first).to_pylist())
        return Bags(X, offsets, ids, feature_names=self.feature_names)

    def sample(self, n_bytes: int) -> tuple[Bags, NDArray[np.intp]]:
        """Read bags of about `n_bytes` into memory, and return their places as well.

        These are whole blocks, spread evenly over the files: at least one, or all.
        """
        runs = list(self.runs())
        share = min(n_bytes / max(self.feature_bytes, 1), 1.0)
        n_runs = max(int(share * len(runs)), 1)
        chosen = [runs[i] for i in np.linspace(0, len(runs) - 1, n_runs).round().astype(int)]
        reader = self.reader()
        bags = Bags.concatenate(self.bags(first, last, reader) for first, last in chosen)
        return bags, np.concatenate([np.arange(first, last) for first, last in chosen])

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield first and last (not included) of the bags that are read together, in order."""
        cuts = np.flatnonzero(np.diff(self.block_of(np.arange(len(self))))) + 1
        yield from zip([0, *cuts.tolist()], [*cuts.tolist(), len(self)], strict=True)


def check_stays_on_disk(table: ParquetSet, roles: Roles) -> None:
    """Raise an error if a resolved role is one that only tables in memory can have."""
    check(
        roles.embedding is None,
        f"{table.path}, column {roles.embedding!r} holds vectors, which are not read out of core: "
        "give each of their numbers a column, or read the table into memory (unbag.fit, or unbag "
        "fit --in-memory).",
    )
    check(
        roles.missing_values is None,
        f"{table.path}: missing values are not replaced or dropped out of core: do so before, or "
        "read the table into memory (unbag.fit, or unbag fit --in-memory).",
    )


class FeatureReader:
    """Reads the features of bags; those that follow the last ones without going back."""

    def __init__(self, stored: StoredBags) -> None:
        self.stored = stored
        self._rows = RowReader(stored.table, stored.feature_names.tolist())

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Read the features of the bags from `first` to before `last`."""
        stored, scratch = self.stored, self.stored.scratch
        if scratch is not None and scratch.has(first, last):
            return scratch.read(first, last)
        start, stop = int(stored.offsets[first]), int(stored.offsets[last])
        X = np.empty((stop - start, stored.n_features), stored.dtype)
        done = 0
        found = self._columns_of_bags(first, last) if stored.is_wide else self._columns(start, stop)
        for columns in found:
            put_side_by_side(X[done : done + columns[0].size], columns)
            done += columns[0].size
        if not stored.is_finite[first:last].all():
            self._check_finite(X, first)
            stored.is_finite[first:last] = True
        if scratch is not None:
            scratch.write(first, last, X)
        return X

    def _columns(self, start, stop):
        """Yield arrays of the features of some rows, each an instance, batch after batch."""
        for batch in self._rows.read(start, stop):
            yield [float_array(column, self.stored.dtype) for column in batch.columns]

    def _columns_of_bags(self, first, last):
        """Yield arrays of the features of some rows, each a bag, batch after batch."""
        table, names = self.stored.table, self.stored.feature_names
        sizes = np.diff(self.stored.offsets[first : last + 1])
        for batch in self._rows.read(first, last):
            own, sizes = sizes[: batch.num_rows], sizes[batch.num_rows :]
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                list_sizes(table, first, name, column, own, names[0])
            yield [float_array(pc.list_flatten(each), self.stored.dtype) for each in batch.columns]
            first += batch.num_rows

    def _check_finite(self, X, first):
        stored = self.stored
        found = first_nonfinite(X)
        if found is None:
            return
        instance = int(stored.offsets[first]) + found.row
        bag = int(np.searchsorted(stored.offsets, instance, side="right")) - 1
        name = str(stored.feature_names[found.column])
        cell = X[found.row, found.column]
        # A missing value came as NaN.
        value = None if np.isnan(cell) else float(cell)
        if stored.is_wide:
            entry = instance - int(stored.offsets[bag]) + 1
            raise DataError(f"{stored.table.bad_number(bag, name, value)} It is entry {entry}.")
        raise stored.table.bad_number(instance, name, value)


def put_side_by_side(X: NDArray[Any], columns: list[NDArray[Any]]) -> None:
    """Write columns into an array of rows; as many rows at a time as the cache holds."""
    for start in range(0, len(X), SIDE_BY_SIDE):
        part = X[start : start + SIDE_BY_SIDE]
        for place, column in enumerate(columns):
            part[:, place] = column[start : start + SIDE_BY_SIDE]


# Features as they were decoded, in a file without a name: decoded once, and read many times. A fit
# goes over all features at each iteration. To decode Parquet and to put its columns side by side
# takes about as long as the mathematics; to read the same bytes again takes a fraction of that.


class FeatureScratch:
    """Features of bags in a temporary file, which is closed when the disk is full."""

    def __init__(
        self, file: Any, offsets: NDArray[np.intp], n_features: int, dtype: np.dtype
    ) -> None:
        self._file = file
        self._offsets = offsets
        self._row: tuple[int, np.dtype] = n_features, dtype
        self._is_here: NDArray[np.bool_] = np.zeros(len(offsets) - 1, dtype=bool)

    def has(self, first: int, last: int) -> bool:
        """Return whether the bags from `first` to before `last` are here."""
        return bool(self._is_here[first:last].all())

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Return the features of bags that are here."""
        n_features, dtype = self._row
        start, stop = self._offsets[[first, last]].tolist()
        X = np.empty((stop - start, n_features), dtype)
        self._file.seek(start * n_features * dtype.itemsize)
        flat: Any = X.reshape(-1).view(np.uint8)
        room, done = memoryview(flat), 0
        while done < len(room):
            read = self._file.readinto(room[done:])
            if not read:
                raise OSError("The file of decoded features has been cut short.")
            done += read
        return X

    def write(self, first: int, last: int, X: NDArray[Any]) -> None:
        """Keep the features of some bags; if the disk is full, all are forgotten."""
        if self._file.closed:
            return
        n_features, dtype = self._row
        try:
            self._file.seek(int(self._offsets[first]) * n_features * dtype.itemsize)
            self._file.write(X.reshape(-1).view(np.uint8))
            self._file.flush()
        except OSError:
            self._is_here[:] = False
            with suppress(OSError):
                self._file.close()
        else:
            self._is_here[first:last] = True


def scratch_folder(n_bytes: int, packed_bytes: int) -> Path | None:
    """Return a folder for decoded features of `n_bytes`; None to decode them each time."""
    folder = temporary_folder()
    is_worth_it = packed_bytes > LEAST_RATIO * n_bytes
    has_room = shutil.disk_usage(folder).free > ROOM * n_bytes
    return folder if is_worth_it and has_room else None
