"""Partitions of data: pairs of bags and labels, Dask DataFrames and Parquet sets."""

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import delayed
from distributed import Future

from unbag._files import DataError, check
from unbag.io import Roles
from unbag.io.stored import StoredBags

from .clusters import Tasks
from .partitions import (
    Pair,
    check_pair,
    faults_of,
    read_frame,
    read_pair,
    read_rows,
    resolved_roles,
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
    workers = tasks.threads()
    partitions = []
    for place, pair in enumerate(data):
        if place in coming or isinstance(pair, Future):
            # Futures are read on their workers.
            given, options = coming.get(place, pair), {}
        else:
            # Values are checked here, before they are sent to a worker.
            with faults_of(f"Partition {place}"):
                check_pair(pair)
            given, options = Pair(pair), next_worker(workers, place)
        partitions.append(tasks.submit(read_pair, given, place, **options))
    return partitions


def delayed_pair(pair: Any) -> Any:
    """Return a pair as one delayed value if its bags or labels are delayed."""
    is_plain = isinstance(pair, tuple | list)
    if is_plain and any(is_dask_collection(each) or isinstance(each, Future) for each in pair):
        return delayed(tuple(pair))
    return pair


def next_worker(workers: list[str], place: int) -> dict[str, Any]:
    """Return options that assign a partition to the next worker, or to another if it is lost."""
    return {"workers": [workers[place % len(workers)]], "allow_other_workers": True}


# Dask DataFrames.


def frames_of(data: Any, tasks: Tasks) -> list[Future]:
    """Return the frame of each partition of a Dask DataFrame."""
    return tasks.compute(data.to_delayed())


def roles_of_frames(frames: list[Future], tasks: Tasks, roles: Roles, need_labels: bool) -> Roles:
    """Guess the roles that were not given, from the first partition with rows."""
    check(
        roles.missing_values != "mean",
        "missing_values='mean' is not supported on a cluster: fill missing values beforehand "
        "(data.fillna), or drop their rows (missing_values='drop').",
    )
    filled = np.flatnonzero(tasks.results(tasks.map(len, frames)))
    check(filled.size, "There are no bags: all partitions of the DataFrame are empty.")
    return tasks.results([tasks.submit(resolved_roles, frames[filled[0]], roles, need_labels)])[0]


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

    Workers read them from the same files.
    """
    workers = tasks.threads()
    tables, names = [], []
    for place, (first, last) in enumerate(runs_of(stored, len(workers))):
        bounds = (first, last) if stored.is_wide else stored.offsets[[first, last]].tolist()
        given = stored.table.holding(*bounds), list(columns), *bounds
        tables.append(tasks.submit(read_rows, *given, **next_worker(workers, place)))
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
