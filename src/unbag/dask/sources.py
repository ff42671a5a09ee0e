"""Partitions of data: pairs of bags and labels, Dask DataFrames and Parquet sets."""

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas
from dask.base import is_dask_collection
from dask.delayed import delayed
from distributed import Future

from unbag._files import DataError, check
from unbag.io import Roles
from unbag.io.frame import open_frame
from unbag.io.guess import with_known
from unbag.io.stored import StoredBags

from .clusters import Tasks
from .partitions import (
    Pair,
    check_pair,
    faults_of,
    first_rows,
    read_frame,
    read_pair,
    read_rows,
)

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
    """Raise an error unless data are of a supported kind."""
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
    data = [delayed_pair(pair) for pair in data]
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


def delayed_pair(pair: Any) -> Any:
    """Return a pair as one delayed value if its bags or labels are delayed."""
    is_plain = isinstance(pair, tuple | list)
    if is_plain and any(is_dask_collection(each) or isinstance(each, Future) for each in pair):
        return delayed(tuple(pair))
    return pair


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
    """Return the bags of each frame, with resolved roles."""
    places = [f"Partition {place}" for place in range(len(frames))]
    return tasks.map(read_frame, frames, places, roles=roles)


# Parquet sets.


def runs_of(stored: StoredBags, n_threads: int) -> list[tuple[int, int]]:
    """Split the bags of a Parquet set into partitions; return the start and stop of each."""
    wanted = max(stored.feature_bytes / PARTITION_BYTES, PARTITIONS_PER_THREAD * n_threads)
    ends = np.linspace(0, stored.n_instances, int(np.ceil(wanted)) + 1)
    cuts = np.unique(np.searchsorted(stored.offsets, ends))
    return list(pairwise(cuts.tolist()))


def tables_of(
    stored: StoredBags, tasks: Tasks, columns: Sequence[str]
) -> tuple[list[Future], list[str]]:
    """Return the rows of each partition of a Parquet set as pyarrow tables, with their names.

    Workers read them from the same files. The scheduler decides which worker reads what: tasks that
    are restricted to a worker would wait for ever if all workers are lost at once.
    """
    tables, names = [], []
    for place, (first, last) in enumerate(runs_of(stored, tasks.n_threads())):
        bounds = (first, last) if stored.is_wide else stored.offsets[[first, last]].tolist()
        given = stored.table.holding(*bounds), list(columns), *bounds
        tables.append(tasks.submit(read_rows, *given))
        names.append(f"Partition {place}, from {stored.table.place(bounds[0])} on")
    return tables, names


def partitions_of_set(stored: StoredBags, tasks: Tasks) -> list[Future]:
    """Return the bags of each partition of a Parquet set, without their labels."""
    roles = Roles(bag=stored.roles.bag, features=stored.feature_names.tolist())
    tables, names = tables_of(stored, tasks, [column for _, column in roles.columns()])
    return tasks.map(read_frame, tables, names, roles=roles, need_labels=False)


def check_bags_not_split(ids_of_partitions: Sequence[np.ndarray], places: Sequence[int]) -> None:
    """Raise an error if a bag is in more than one partition."""
    place_of: dict[Any, int] = {}
    for place, ids in zip(places, ids_of_partitions, strict=True):
        for each in ids.tolist():
            if (first := place_of.setdefault(each, place)) != place:
                raise DataError(
                    f"Bag {each!r} is in partitions {first} and {place}: put the rows of each bag "
                    "into one partition, as data.shuffle(on=bag) does, or give different bags "
                    "different ids."
                )
