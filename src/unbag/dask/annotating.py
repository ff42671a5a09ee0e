"""Annotation on a cluster: workers annotate their partitions, and write a file for each.

Workers write into a temporary folder next to the output, which is renamed when all files are
complete.
"""

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from distributed import Future
from sklearn.utils.validation import check_is_fitted

from unbag import annotations
from unbag._files import DataError, PathLike, check, unwritable
from unbag.annotations import AnnotateOptions, Figures
from unbag.bags import Bags, offsets_of
from unbag.frames import in_classes, read_for_model, remembered_roles, roles_for_model
from unbag.labels import LabelSets
from unbag.out_of_core import Annotated
from unbag.out_of_core.annotating import opened_for_model
from unbag.tables import Roles
from unbag.tables.annotated import write_annotated, written_columns
from unbag.tables.arrays import bag_table
from unbag.tables.bag_table import BagTable
from unbag.tables.frame import open_frame
from unbag.tables.roles import OF_LABELS
from unbag.tagging import BACKGROUND_NAME

from .bags import ClusterBags
from .clusters import ClientLike, Tasks, connected
from .partitions import Partition, faults_of, first_rows, identity
from .sources import (
    DATAFRAME,
    TaggedBags,
    check_bags_not_split,
    check_kind,
    frames_of,
    is_pairs,
    is_path,
    names_of,
    pairs_of,
    runs_of,
    tables_of,
    tagged_bags,
)


def annotate(
    model: Any,
    data: Any,
    output: PathLike,
    client: ClientLike = None,
    *,
    bag: str | None = None,
    labels: str | None = None,
    untagged: str | None = None,
    roles: Roles | None = None,
    use_labels: bool = True,
    **options: Unpack[AnnotateOptions],
) -> Annotated:
    """Label every instance of bags on a cluster, and write a Parquet file for each partition.

    Parameters
    ----------
    model : fitted estimator or BagPipeline
        With ``annotate_proba`` and ``predict_instances_proba``.
    data : dask DataFrame, list of (Bags, labels), str or path
        As in `unbag.dask.fit`; labels may be None.
    output : str or path
        A folder that does not exist yet, or is empty. This machine and all workers must see it
        under the same path. It appears when all files are written: ``part-00000.parquet`` and so
        on, which is a Parquet set again.
    client : distributed.Client or str, optional
        As in `unbag.dask.fit`.
    bag, labels : str, optional
        The columns of the bag and of its labels; by default those of the training table.
    untagged : {"refuse", "unknown", "absent"}, optional
        What an empty cell in place of labels means; by default as in the training table.
    roles : Roles, optional
        The roles of other columns; by default, features are those of the model. `bag` and `labels`
        take precedence.
    use_labels : bool, default=True
        Whether to use the labels of bags, if there are any.
    **options
        As in `unbag.annotations.annotate`, such as `joint`; `review_share` is that of each
        partition.

    Returns
    -------
    unbag.out_of_core.Annotated

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import unbag.dask
    >>> from unbag import Bags, ORLogisticRegression
    >>> bags = Bags.from_list([[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]])
    >>> sets = [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}]
    >>> model = ORLogisticRegression().fit(bags, sets)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     output = pathlib.Path(folder, "annotated")
    ...     found = unbag.dask.annotate(model, [(bags[:2], sets[:2]), (bags[2:], sets[2:])], output)
    ...     sorted(file.name for file in output.iterdir())
    ['part-00000.parquet', 'part-00001.parquet']
    >>> found.bags, found.instances
    (4, 7)
    """
    if not hasattr(model, "predict_instances_proba"):
        raise DataError(
            f"{type(model).__name__} gives instances no probabilities, so it cannot annotate them: "
            "fit a model that does, such as ORLogisticRegression."
        )
    check_is_fitted(model)
    check_kind(data)
    given = Roles.given(roles, bag=bag, labels=labels, untagged=untagged)
    name = options.get("background_name", BACKGROUND_NAME)
    annotations.check_background_name(model, None, name)
    wanted = Wanted(given, use_labels, options)
    with connected(client) as own, staged(Path(output)) as folder, Tasks(own) as tasks:
        found = tasks.results(annotated_partitions(model, data, tasks, wanted, folder))
        filled = [place for place, each in enumerate(found) if each is not None]
        check(filled, "All partitions are empty: a cluster needs bags to annotate.")
        if not is_path(data):
            # For frames and pairs, this is known only after reading them.
            check_bags_not_split([found[place].ids.tolist() for place in filled], filled)
        figures = annotations.added([found[place].figures for place in filled])
        return Annotated(**asdict(figures), columns=found[filled[0]].columns)


@dataclass(frozen=True)
class Wanted:
    """Options of an annotation."""

    roles: Roles
    use_labels: bool
    options: AnnotateOptions


@contextmanager
def staged(output: Path) -> Iterator[Path]:
    """Create a folder that is renamed to `output` at the end, or deleted on an error."""
    check(
        not output.exists() or (output.is_dir() and not any(output.iterdir())),
        f"{output} already exists and is not an empty folder: choose another, or remove it.",
    )
    staging = output.absolute().with_name(f".unbag-{secrets.token_hex(6)}")
    try:
        staging.mkdir(parents=True)
    except OSError as error:
        raise unwritable(output, error) from error
    try:
        yield staging
        # Remove what killed workers left half-written.
        for part in staging.glob(".unbag-*.part"):
            part.unlink()
        # Windows cannot replace a folder, not even an empty one.
        if output.exists():
            output.rmdir()
        os.replace(staging, output)
    except BaseException:
        # Renamed, so that workers that are still writing fail.
        gone = staging.with_name(f"{staging.name}.gone")
        # Windows cannot rename a folder with an open file.
        with suppress(OSError):
            os.replace(staging, gone)
        for folder in (gone, staging):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def annotated_partitions(
    model: Any, data: Any, tasks: Tasks, wanted: Wanted, folder: Path
) -> list[Future]:
    """Submit tasks that annotate each partition and write it."""
    same = {"model": tasks.submit(identity, model), "wanted": wanted}
    if is_pairs(data):
        bags = ClusterBags(tasks, pairs_of(data, tasks))
        ids = np.split(bags.ids, bags.firsts[1:-1])
        return tasks.map(annotate_pair, bags.partitions, ids, files(folder, ids), **same)
    if is_path(data):
        stored = opened_for_model(model, data, wanted.roles, wanted.use_labels)
        runs = runs_of(stored, tasks.n_threads())
        frames, names = tables_of(stored, tasks, stored.table.columns, runs)
        path, bags, sizes = stored.table.path, stored, [last - first for first, last in runs]
    else:
        frames = frames_of(data, tasks)
        path, names = DATAFRAME, names_of(frames)
        bags = tagged_frames(model, frames, tasks, wanted) if wanted.use_labels else None
        sizes = [] if bags is None else bags.sizes_of_partitions
    labels: list[LabelSets | None] = [None] * len(frames)
    if wanted.use_labels and bags is not None and bags.labels is not None:
        # Read here: a worker does not know what other partitions have.
        tagging = remembered_roles(model).overridden_by(wanted.roles).tagging
        remedy = ("use_labels", False)
        found = in_classes(bags.labels, model.classes_, bags, path, remedy, tagging)
        firsts = offsets_of(sizes).tolist()
        labels = [found[first:last] for first, last in pairwise(firsts)]
    return tasks.map(annotate_frame, frames, labels, files(folder, frames), names, **same)


def tagged_frames(
    model: Any, frames: list[Future], tasks: Tasks, wanted: Wanted
) -> TaggedBags | None:
    """Read the labels of bags in frames, by the roles that a model remembers; None without rows."""
    filled = np.flatnonzero(tasks.results(tasks.map(len, frames)))
    if not filled.size:
        return None
    head = tasks.results([tasks.submit(first_rows, frames[filled[0]], 0)])[0]
    source = open_frame(head)
    roles = source.resolved(roles_for_model(model, source, wanted.roles), need_labels=False)
    return tagged_bags(frames, tasks, roles)


def files(folder: Path, partitions: Sequence[Any]) -> list[Path]:
    """Return the file of each partition."""
    return [folder / f"part-{place:05}.parquet" for place in range(len(partitions))]


# What workers do.


class WrittenPartition(NamedTuple):
    """A partition that a worker has written: ids, of shape (n_bags,), a summary and columns."""

    ids: np.ndarray
    figures: Figures
    columns: dict[str, str]


def annotate_frame(
    frame: Any, labels: LabelSets | None, file: Path, name: str, model: Any, wanted: Wanted
) -> WrittenPartition | None:
    """Annotate the rows of a frame and write them; without rows, return None and write no file.

    Labels are those of its bags, in the classes of the model.
    """
    if not len(frame):
        return None
    with faults_of(name):
        source = open_frame(frame)
        roles = roles_for_model(model, source, wanted.roles, use_labels=False)
        table, _ = read_for_model(model, source, roles, use_labels=False)
        return written(model, table, labels, file, wanted, written_columns(source, roles))


def annotate_pair(
    partition: Partition, ids: np.ndarray, file: Path, model: Any, wanted: Wanted
) -> WrittenPartition:
    """Annotate bags, with ids that are unique among partitions, and write a table of instances."""
    given, labels = partition.bags, partition.labels
    bags = Bags(given.X, given.offsets, ids, given.instance_labels, given.feature_names)
    with faults_of(file.stem):
        known: Any = None
        if wanted.use_labels and labels is not None:
            chosen = {name: getattr(wanted.roles.tagging, name) for name in OF_LABELS}
            known = LabelSets.parse(labels, model.classes_, **chosen)
        return written(model, bag_table(file, bags, known), known, file, wanted, {})


def written(
    model: Any,
    table: BagTable,
    labels: LabelSets | None,
    file: Path,
    wanted: Wanted,
    earlier: dict[str, str],
) -> WrittenPartition:
    """Annotate the bags of a table, write its rows with the annotations, and return a summary."""
    bags = table.bags
    answers = annotations.annotate(model, bags, labels, **wanted.options)
    columns, _ = write_annotated(table, file, answers.columns(), earlier)
    return WrittenPartition(bags.ids, answers.figures(table.n_dropped), columns)
