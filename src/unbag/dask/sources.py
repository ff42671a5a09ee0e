"""Data of several kinds as partitions: pairs of bags and labels, Dask DataFrames, Parquet sets."""

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

#: Bytes of features of a partition of a Parquet set, where that makes enough of them.
PARTITION_BYTES = 128 << 20
#: Partitions of a Parquet set for each thread of the workers, at least.
PARTITIONS_PER_THREAD = 2


def is_path(data: Any) -> bool:
    """Return whether data are the name of a file or folder, or were opened by it."""
    return isinstance(data, str | os.PathLike | StoredBags)


def is_pairs(data: Any) -> bool:
    """Return whether data are a list of what should be pairs of bags and labels."""
    return isinstance(data, list | tuple)


def check_kind(data: Any) -> None:
    """Raise an error unless data are of a kind that can be partitions."""
    is_frame = is_dask_collection(data) and hasattr(data, "to_delayed") and hasattr(data, "columns")
    if is_path(data) or is_pairs(data) or is_frame:
        return
    raise DataError(
        f"A {type(data).__name__} has no partitions: give a Dask DataFrame (dask.dataframe has "
        "from_pandas), a list of pairs of Bags and labels, or the path of a Parquet set."
    )


# Pairs.


def pairs_of(data: Sequence[Any], tasks: Tasks) -> list[Future]:
    """Return a `Partition` for each pair of bags and labels: as they are, delayed, or futures."""
    check(len(data), "There is no partition: the list of pairs is empty.")
    data = [delayed_whole(pair) for pair in data]
    later = [place for place, pair in enumerate(data) if is_dask_collection(pair)]
    coming = dict(zip(later, tasks.compute([data[place] for place in later]), strict=True))
    partitions = []
    for place, pair in enumerate(data):
        if place in coming or isinstance(pair, Future):
            # They are read where they lie.
            given = coming.get(place, pair)
        else:
            # What can be seen here need not go to a worker first.
            with faults_of(f"Partition {place}"):
                check_pair(pair)
            given = Pair(pair)
        partitions.append(tasks.submit(read_pair, given, place))
    return partitions


def delayed_whole(pair: Any) -> Any:
    """Return a pair as one delayed value, if its bags or its labels are."""
    is_plain = isinstance(pair, tuple | list)
    if is_plain and any(is_dask_collection(each) or isinstance(each, Future) for each in pair):
        return delayed(tuple(pair))
    return pair


# Dask DataFrames.


def frames_of(data: Any, tasks: Tasks) -> list[Future]:
    """Return the frame of each partition of a Dask DataFrame."""
    return tasks.compute(data.to_delayed())


def roles_of_frames(frames: list[Future], tasks: Tasks, roles: Roles, need_labels: bool) -> Roles:
    """Fill in the roles that were left out, by the first partition that has rows."""
    check(
        roles.missing_values != "mean",
        "A mean over all partitions is not taken for missing values: replace them before "
        "(data.fillna), or drop their rows (missing_values='drop').",
    )
    filled = np.flatnonzero(tasks.results(tasks.map(len, frames)))
    check(filled.size, "There is no bag: all partitions of the DataFrame are empty.")
    return tasks.results([tasks.submit(resolved_roles, frames[filled[0]], roles, need_labels)])[0]


def partitions_of_frames(frames: list[Future], tasks: Tasks, roles: Roles) -> list[Future]:
    """Return the bags of each frame, by roles that are resolved."""
    places = [f"Partition {place}" for place in range(len(frames))]
    return tasks.map(read_frame, frames, places, roles=roles)


# Parquet sets.


def runs_of(stored: StoredBags, n_threads: int) -> list[tuple[int, int]]:
    """Cut the bags of a Parquet set into partitions: first and last (not included) of each."""
    wanted = max(stored.feature_bytes / PARTITION_BYTES, PARTITIONS_PER_THREAD * n_threads)
    ends = np.linspace(0, stored.n_instances, int(np.ceil(wanted)) + 1)
    cuts = np.unique(np.searchsorted(stored.offsets, ends))
    return list(pairwise(cuts.tolist()))


def tables_of(
    stored: StoredBags, tasks: Tasks, columns: Sequence[str]
) -> tuple[list[Future], list[str]]:
    """Return rows of whole bags of a Parquet set as pyarrow tables, and the names of these.

    Workers read them from the same files. Which one reads what is left to the scheduler: tasks that
    are tied to a worker would wait for ever where all workers are lost at once.
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


def refuse_divided_bags(ids_of_partitions: Sequence[np.ndarray], places: Sequence[int]) -> None:
    """Raise an error if a bag is in more than one of some partitions."""
    place_of: dict[Any, int] = {}
    for place, ids in zip(places, ids_of_partitions, strict=True):
        for each in ids.tolist():
            if (first := place_of.setdefault(each, place)) != place:
                raise DataError(
                    f"Bag {each!r} is in partitions {first} and {place}, and has to be in one: "
                    "bring the rows of each bag together, as in data.shuffle(on=bag), or give bags "
                    "of different partitions different ids."
                )
