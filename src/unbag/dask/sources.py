"""Partitions of data: pairs of bags and labels, Dask DataFrames and Parquet sets."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
from dask.base import is_dask_collection
from distributed import Future

from unbag._files import DataError, check
from unbag.labels import LabelSets
from unbag.tables import Roles
from unbag.tables.frame import PyarrowTable, open_frame
from unbag.tables.guess import with_known
from unbag.tables.roles import OF_LABELS
from unbag.tables.scan import Scan
from unbag.tables.stored import StoredBags

from .clusters import Tasks
from .partitions import (
    Pair,
    check_pair,
    faults_of,
    first_rows,
    read_frame,
    read_pair,
    read_rows,
    rows_with_tags,
)

#: What messages call a Dask DataFrame.
DATAFRAME = Path("The DataFrame")

#: Bytes of features per partition of a Parquet set, if that gives enough partitions.
PARTITION_BYTES = 128 << 20
#: Least number of partitions of a Parquet set per thread of the workers.
PARTITIONS_PER_THREAD = 2


def is_path(data: Any) -> bool:
    """Return whether data are a path, or `StoredBags`."""
    return isinstance(data, str | os.PathLike | StoredBags)


def is_pairs(data: Any) -> bool:
    """Return whether data are a list, which should contain pairs of bags and labels."""
    return isinstance(data, list | tuple)


def check_kind(data: Any) -> None:
    """Raise an error unless data have a supported kind."""
    is_frame = is_dask_collection(data) and hasattr(data, "to_delayed") and hasattr(data, "columns")
    if is_path(data) or is_pairs(data) or is_frame:
        return
    raise DataError(
        f"expected a Dask DataFrame (see dask.dataframe.from_pandas), a list of pairs of Bags and "
        f"labels, or the path of a Parquet set, got {type(data).__name__}."
    )


# Pairs.


def pairs_of(data: Sequence[Any], tasks: Tasks) -> list[Future]:
    """Return a `Partition` for each pair of bags and labels: values, delayed, or futures."""
    check(len(data), "There are no partitions: the list of pairs is empty.")
    later = [place for place, pair in enumerate(data) if is_dask_collection(pair)]
    coming = dict(zip(later, tasks.compute([data[place] for place in later]), strict=True))
    partitions = []
    for place, pair in enumerate(data):
        if place in coming or isinstance(pair, Future):
            # Futures are read on their workers.
            given = coming.get(place, pair)
        else:
            # Values are checked here, before they are sent to a worker.
            with faults_of(f"Partition {place}"):
                check_pair(pair)
            given = Pair(pair)
        partitions.append(tasks.submit(read_pair, given, place))
    return partitions


# Dask DataFrames.


def frames_of(data: Any, tasks: Tasks) -> list[Future]:
    """Return the frame of each partition of a Dask DataFrame."""
    return tasks.compute(data.to_delayed())


def roles_of_frames(
    frames: list[Future], tasks: Tasks, roles: Roles, ignore_known: bool = False
) -> Roles:
    """Guess the roles that were not given, from the first rows of all partitions, as in memory."""
    check(
        roles.missing_values != "mean",
        "missing_values='mean' is not supported on a cluster: fill missing values beforehand "
        "(data.fillna), or drop their rows (missing_values='drop').",
    )
    heads, n_rows = [], 0
    for place in np.flatnonzero(tasks.results(tasks.map(len, frames))):
        head = tasks.results([tasks.submit(first_rows, frames[place], n_rows)])[0]
        # Other columns are refused when the partition is read.
        if heads and (not len(head) or list(head.columns) != list(heads[0].columns)):
            break
        heads.append(head)
        n_rows += len(head)
    check(heads, "There are no bags: all partitions of the DataFrame are empty.")
    # Here, and not on a worker, so that warnings are seen.
    table = open_frame(pandas.concat(heads))
    return table.resolved(with_known(table, roles, ignore_known))


def partitions_of_frames(frames: list[Future], tasks: Tasks, roles: Roles) -> list[Future]:
    """Return the bags of each frame without their labels; the roles are resolved."""
    return tasks.map(read_frame, frames, names_of(frames), roles=without_labels(roles))


def names_of(frames: Sequence[Future]) -> list[str]:
    """Return what messages call the partitions of a DataFrame."""
    return [f"Partition {place}" for place in range(len(frames))]


class TaggedRows(PyarrowTable):
    """The rows of all partitions that tell how bags are tagged; see `rows_with_tags`."""

    def __init__(self, table: pa.Table, places: Sequence[tuple[int, int]]) -> None:
        super().__init__(table)
        self.path: Path = DATAFRAME
        self._places = places

    def place(self, row: int) -> str:
        """Name a row by its partition."""
        partition, own = self._places[row]
        return f"row {own} of partition {partition}"


@dataclass(frozen=True, eq=False)
class TaggedBags:
    """The names and labels of all bags of a DataFrame, and how many bags each partition has."""

    ids: list[Any]
    labels: LabelSets | None
    sizes_of_partitions: list[int]
    unused_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)


def tagged_bags(frames: list[Future], tasks: Tasks, roles: Roles) -> TaggedBags:
    """Read the labels of all bags, as those of one table; the roles are resolved.

    That is done here: a worker does not know how many bags of other partitions are blank, how
    labels are spelt there, or which bags of a second table are there.
    """
    # A second table is read here, too.
    here = roles.label_columns if roles.label_table is None else None
    wanted = Roles(
        bag=roles.bag, labels=roles.labels, unknown=roles.unknown, features=(), label_columns=here,
        **{name: getattr(roles, name) for name in ("label_separator", *OF_LABELS)},
    )  # fmt: skip
    found = tasks.results(tasks.map(rows_with_tags, frames, names_of(frames), roles=wanted))
    filled = {place: each for place, each in enumerate(found) if each is not None}
    check(filled, "There are no bags: all partitions of the DataFrame are empty.")
    tables = {place: table for place, (table, _) in filled.items()}
    ids = {place: each.column(0).unique().to_pylist() for place, each in tables.items()}
    check_bags_not_split(list(ids.values()), list(ids))
    rows = [(place, row) for place, (_, own) in filled.items() for row in own.tolist()]
    try:
        table = pa.concat_tables(tables.values(), promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(
            f"The partitions of the DataFrame have columns of different types: {error} Give each "
            "column one type, as data.astype does."
        ) from error
    source = TaggedRows(table, rows)
    if roles.label_table is not None:
        wanted = replace(wanted, label_table=roles.label_table, label_columns=roles.label_columns)
    scan = Scan(source, wanted)
    n_bags = [len(ids.get(place, ())) for place in range(len(frames))]
    return TaggedBags(scan.ids.to_pylist(), scan.label_sets(), n_bags, scan.tagging.unused_names())


def without_labels(roles: Roles) -> Roles:
    """Return roles by which a table is read without the labels of its bags."""
    names = [roles.labels, roles.unknown]
    if roles.label_table is None:
        names += roles.label_columns or ()
    unread = [name for name in names if name is not None]
    none = dict.fromkeys(("labels", "unknown", "label_columns", "label_table"))
    return replace(roles, **none, carry=(*roles.carry, *unread))


# Parquet sets.


def runs_of(stored: StoredBags, n_threads: int) -> list[tuple[int, int]]:
    """Split the bags of a Parquet set into partitions; return the start and stop of each."""
    wanted = max(stored.feature_bytes / PARTITION_BYTES, PARTITIONS_PER_THREAD * n_threads)
    ends = np.linspace(0, stored.n_instances, int(np.ceil(wanted)) + 1)
    cuts = np.unique(np.searchsorted(stored.offsets, ends))
    return list(pairwise(cuts.tolist()))


def tables_of(
    stored: StoredBags, tasks: Tasks, columns: Sequence[str], runs: Sequence[tuple[int, int]]
) -> tuple[list[Future], list[str]]:
    """Return the rows of runs of bags of a Parquet set as pyarrow tables, with their names.

    Workers read them from the same files. The scheduler decides which worker reads what: tasks that
    are restricted to a worker would wait for ever if all workers are lost at once.
    """
    tables, names = [], []
    for place, (first, last) in enumerate(runs):
        bounds = (first, last) if stored.is_wide else stored.offsets[[first, last]].tolist()
        given = stored.table.holding(*bounds), list(columns), *bounds
        tables.append(tasks.submit(read_rows, *given))
        names.append(f"Partition {place}, from {stored.table.place(bounds[0])} on")
    return tables, names


def partitions_of_set(stored: StoredBags, tasks: Tasks) -> list[Future]:
    """Return the bags of each partition of a Parquet set, without their labels."""
    roles = Roles(bag=stored.roles.bag, features=stored.feature_names.tolist())
    columns = [column for _, column in roles.columns()]
    runs = runs_of(stored, tasks.n_threads())
    tables, names = tables_of(stored, tasks, columns, runs)
    return tasks.map(read_frame, tables, names, roles=roles)


def check_bags_not_split(ids_of_partitions: Sequence[list[Any]], places: Sequence[int]) -> None:
    """Raise an error if a bag is in more than one partition."""
    place_of: dict[Any, int] = {}
    for place, ids in zip(places, ids_of_partitions, strict=True):
        for each in ids:
            if (first := place_of.setdefault(each, place)) != place:
                raise DataError(
                    f"Bag {each!r} is in partitions {first} and {place}: put the rows of each bag "
                    "into one partition, as data.shuffle(on=bag) does, or give different bags "
                    "different ids."
                )
