"""What workers hold and compute: the bags of a partition, and the results of its parts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from unbag._files import DataError
from unbag._threads import one_blas_thread
from unbag.bags import Bags
from unbag.fitting import Part, make_parts
from unbag.groups import Groups
from unbag.io import Roles
from unbag.io.frame import open_frame
from unbag.io.guess import rows_judged
from unbag.io.parquet_set import ParquetSet, RowReader
from unbag.io.roles import check_column
from unbag.io.scan import factorized, spelt_out
from unbag.labels import LabelSets
from unbag.union import UnionProblem
from unbag.union.dispatch import Method
from unbag.validation import check_finite, in_bag_order

from .allocation import keep_freed_memory
from .clusters import add_up


@dataclass(frozen=True, eq=False)
class PartitionProblem:
    """The problem of a fit for the bags of one partition: label sets, known labels, weights.

    `groups` are those of classes that its bags require.

    `first` is the position of its first bag among all bags, `chosen` are the bags to fit to, and
    `centre` and `method` are as in `Part`. `make` creates parts. Cached parts are recognised by
    `name`.
    """

    first: int
    y: np.ndarray
    instance_labels: np.ndarray | None
    chosen: np.ndarray
    weight: np.ndarray | None
    centre: np.ndarray | None
    method: Method
    make: Callable[..., Part]
    groups: Groups | None = None
    name: str = field(default_factory=lambda: uuid4().hex)

    def parts(self, bags: Bags, sample: np.ndarray | None) -> list[Part]:
        """Split the chosen bags, or a sample of them, into parts."""
        chosen = self.chosen if sample is None else sample
        problem = UnionProblem(bags.offsets, self.y, self.instance_labels, self.groups)
        given = bags, problem, chosen, self.weight, self.centre, self.method
        return make_parts(*given, gather=sample is not None, part=self._part)

    def _part(self, X, rows, own, *given):
        return self.make(X, rows, own + self.first, *given)


class Partition:
    """Bags on a worker, with their labels and known labels as given, or None."""

    def __init__(self, bags: Bags, labels: Any = None, known: Any = None) -> None:
        self.bags = bags
        self.labels = labels
        self.known = known
        # The parts of the last evaluation, and their problem and sample.
        self._parts: tuple[str, np.ndarray | None, list[Part]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_parts": None}

    def __sizeof__(self) -> int:
        # Dask uses this to decide what to move, and when memory is full.
        X = self.bags.X
        return object.__sizeof__(self) + (X.data.nbytes if sparse.issparse(X) else X.nbytes)

    def parts(self, problem: PartitionProblem, sample: np.ndarray | None) -> list[Part]:
        """Return the parts of a problem, cached together with what they cache themselves."""
        if self._parts is not None:
            name, known, parts = self._parts
            if name == problem.name and is_same_sample(known, sample):
                return parts
        parts = problem.parts(self.bags, sample)
        self._parts = problem.name, sample, parts
        return parts

    def forget(self) -> None:
        """Clear the cached parts."""
        self._parts = None


def is_same_sample(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Return whether two samples have the same bags; None means all bags."""
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


def answer(
    partition: Partition,
    problem: PartitionProblem,
    sample: np.ndarray | None,
    question: Callable[[Part], Any],
) -> Any:
    """Evaluate a function on all parts of a partition, and add up the results."""
    keep_freed_memory()
    with one_blas_thread():
        total = add_up([question(part) for part in partition.parts(problem, sample)])
    if isinstance(total, dict):
        # The parts have relaxed labels. If the task were repeated, they would relax more.
        partition.forget()
    return total


def identity(thing: Any) -> Any:
    """Return the argument: as a task, any worker can repeat it if the result is lost."""
    return thing


def problem_on_worker(partition: Partition, problem: PartitionProblem) -> PartitionProblem:
    """Return the problem, on the worker that holds the partition, where it will be needed."""
    return problem


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
    """Convert a `Pair`, or bags and labels, to a partition; None if there are no bags."""
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
    if not isinstance(items, tuple | list):
        raise TypeError(f"expected a pair of Bags and labels, got {type(items).__name__}.")
    if len(items) != 2:
        raise TypeError(f"expected a pair of Bags and labels, got {len(items)} items.")
    if not isinstance(items[0], Bags):
        raise TypeError(f"the first of a pair must be Bags, got {type(items[0]).__name__}.")


def plain_labels(labels: Any, bags: Bags) -> Any:
    """Return labels as LabelSets, an indicator or a list, with one entry per bag."""
    labels = in_bag_order(labels, bags, "y")
    if sparse.issparse(labels) or hasattr(type(labels), "columns"):
        labels = LabelSets.parse(labels)
    if not isinstance(labels, LabelSets):
        labels = np.asarray(labels) if np.ndim(labels) == 2 and is_array(labels) else list(labels)
    if len(labels) != len(bags):
        raise ValueError(f"it has {len(bags)} bags but {len(labels)} label sets.")
    return labels


def is_array(labels: Any) -> bool:
    """Return whether labels are an array; nested lists are label sets."""
    return hasattr(labels, "__array__")


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
