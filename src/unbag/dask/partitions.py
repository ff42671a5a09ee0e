"""Bags of a partition on a worker, and the results of its parts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from unbag._files import DataError
from unbag._threads import one_blas_thread
from unbag.bags import Bags
from unbag.fitting.linear import Question
from unbag.fitting.parts import Part, PartMaker
from unbag.labels import LabelSets
from unbag.tables import Roles
from unbag.tables.frame import open_frame
from unbag.tables.guess import rows_judged
from unbag.tables.parquet_set import ParquetSet, RowReader
from unbag.tables.roles import check_column
from unbag.tables.scan import factorized, spelt_out
from unbag.validation import check_finite, in_bag_order

from .allocation import keep_freed_memory
from .clusters import add_up


class Partition:
    """Bags on a worker, with their labels and known labels as given, or None."""

    def __init__(self, bags: Bags, labels: Any = None, known: Any = None) -> None:
        self.bags = bags
        self.labels = labels
        self.known = known
        # What was asked last, and what has made it.
        self._made: tuple[PartMaker, list[Part]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_made": None}

    def __sizeof__(self) -> int:
        # Dask uses this to decide what to move, and when memory is full.
        X = self.bags.X
        return object.__sizeof__(self) + (X.data.nbytes if sparse.issparse(X) else X.nbytes)

    def parts(self, maker: PartMaker, first_bag: int) -> list[Part]:
        """Return the parts of the bags; the last ones are kept for the next question."""
        if self._made is None or self._made[0] is not maker:
            X, runs = self.bags.X, maker.runs(self.bags.n_features)
            self._made = maker, [maker.part(X, own, first_bag=first_bag) for own in runs]
        return self._made[1]


def answer(partition: Partition, maker: PartMaker, first_bag: int, question: Question) -> Any:
    """Ask all parts of a partition, whose first bag has a position among all, and add up."""
    keep_freed_memory()
    with one_blas_thread():
        return add_up([question(part) for part in partition.parts(maker, first_bag)])


def identity(thing: Any) -> Any:
    """Return the argument: as a task, any worker can repeat it if the result is lost."""
    return thing


def maker_on_worker(partition: Partition, maker: PartMaker) -> PartMaker:
    """Return the maker, on the worker that holds the partition, where it will be needed."""
    return maker


def some_bags(partition: Partition, places: np.ndarray) -> Bags:
    """Return some bags of a partition."""
    return partition.bags[places]


# Where partitions come from.


@dataclass(frozen=True, eq=False)
class Pair:
    """Bags and labels as given, wrapped so that Dask does not look for tasks inside."""

    items: Any


@contextmanager
def faults_of(name: str) -> Iterator[None]:
    """Add the name of the partition to errors."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise DataError(f"{name}: {error}") from error


def read_pair(pair: Any, place: int) -> Partition | None:
    """Convert a `Pair`, or bags and labels, to a partition; None if it has no bags."""
    items = pair.items if isinstance(pair, Pair) else pair
    with faults_of(f"Partition {place}"):
        check_pair(items)
        bags, labels = items
        check_finite(bags)
        if labels is not None:
            labels = plain_labels(labels, bags)
    return Partition(bags, labels) if len(bags) else None


def check_pair(items: Any) -> None:
    """Raise an error unless items are a pair of Bags and labels."""
    is_pair = isinstance(items, tuple | list) and len(items) == 2
    if not is_pair or not isinstance(items[0], Bags):
        raise TypeError(f"expected a pair of Bags and labels, got {items!r:.80}.")


def plain_labels(labels: Any, bags: Bags) -> Any:
    """Return labels as LabelSets, an indicator or a list, with one entry per bag."""
    labels = in_bag_order(labels, bags, "y")
    if sparse.issparse(labels) or hasattr(type(labels), "columns"):
        labels = LabelSets.parse(labels)
    if not isinstance(labels, LabelSets):
        is_indicator = hasattr(labels, "__array__") and np.ndim(labels) == 2
        labels = np.asarray(labels) if is_indicator else list(labels)
    if len(labels) != len(bags):
        raise ValueError(f"it has {len(bags)} bags but {len(labels)} label sets.")
    return labels


def first_rows(frame: Any, n_before: int) -> Any:
    """Return the rows of a partition that columns are judged by, after `n_before` of others."""
    wanted = rows_judged(len(open_frame(frame).columns)) - n_before
    return frame.iloc[: max(wanted, 0)]


def read_frame(frame: Any, name: str, roles: Roles) -> Partition | None:
    """Read the bags of a frame, without labels, by resolved roles; None if it has no rows."""
    if not len(frame):
        return None
    with faults_of(name):
        found = open_frame(frame).read(roles, need_labels=False)
    return Partition(found.bags, known=found.known)


def rows_with_tags(frame: Any, name: str, roles: Roles) -> tuple[pa.Table, NDArray[np.intp]] | None:
    """Return the rows that tell how the bags of a frame are tagged, and their positions.

    Of the rows of a bag that have the same labels, that is the first. The roles are resolved, and
    have nothing but the bag and the columns of labels; without rows, there is nothing to return.
    """
    if not len(frame):
        return None
    with faults_of(name):
        source = open_frame(frame)
        for role, column in roles.columns():
            check_column(source.path, column, source.columns, role)
            source.check_type(column, role)
        names = [column for _, column in roles.columns()]
        table = pa.concat_tables([chunk for _, chunk in source.chunks(texts=names)])
    columns = {column: spelt_out(table.column(column)) for column in names}
    codes = np.column_stack([factorized(column)[1] for column in columns.values()])
    rows = np.sort(np.unique(codes, axis=0, return_index=True)[1])
    return pa.table(columns).take(rows), rows


def read_rows(table: ParquetSet, columns: list[str], start: int, stop: int) -> pa.Table:
    """Read rows of a Parquet set, whose files this worker sees under the same paths."""
    return pa.Table.from_batches(RowReader(table, columns).read(start, stop))


@dataclass(frozen=True, eq=False)
class Description:
    """A partition without its features: sizes, ids and labels of its bags."""

    sizes: np.ndarray
    ids: np.ndarray
    labels: Any
    known: Any
    feature_names: Any
    n_features: int
    dtype: np.dtype
    is_sparse: bool


def describe(partition: Partition | None) -> Description | None:
    """Describe a partition; None if it is empty."""
    if partition is None:
        return None
    bags = partition.bags
    return Description(
        bags.sizes, bags.ids, partition.labels, partition.known,
        bags.feature_names, bags.n_features, bags.dtype, sparse.issparse(bags.X),
    )  # fmt: skip
