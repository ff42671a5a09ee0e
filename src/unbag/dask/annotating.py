"""Annotations on a cluster: each partition is annotated where it lies, and written as a file.

Workers write into a folder beside the output that has another name, and it gets its own when all
files are there.
"""

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Future
from sklearn.utils.validation import check_is_fitted

from unbag import annotations
from unbag._files import DataError, PathLike, check, unwritable
from unbag.annotations import REVIEW_SHARE
from unbag.bags import Bags
from unbag.frames import read_for_model, roles_for_model
from unbag.io import Roles
from unbag.io.annotated import write_annotated, written_columns
from unbag.io.arrays import bag_table
from unbag.io.bag_table import BagTable
from unbag.io.frame import open_frame
from unbag.labels import LabelSets
from unbag.out_of_core import Annotated
from unbag.out_of_core.annotating import opened_for_model

from .bags import ClusterBags
from .clusters import ClientLike, Tasks, connected
from .partitions import Partition, faults_of, itself
from .sources import (
    check_kind,
    frames_of,
    is_pairs,
    is_path,
    pairs_of,
    refuse_divided_bags,
    tables_of,
)


def annotate(
    model: Any,
    data: Any,
    output: PathLike,
    client: ClientLike = None,
    *,
    bag: str | None = None,
    labels: str | None = None,
    roles: Roles | None = None,
    use_labels: bool = True,
    review_share: float = REVIEW_SHARE,
    unknown_below: float | None = None,
) -> Annotated:
    """Label every instance of bags on a cluster, and write a Parquet file for each partition.

    Parameters
    ----------
    model : fitted estimator or BagPipeline
        With ``annotate_proba`` and ``predict_instances_proba``.
    data : dask DataFrame, list of (Bags, labels), str or path
        As in `unbag.dask.fit`; labels may be None.
    output : str or path
        A folder that is not there yet, or empty; this machine and all workers must see it under
        the same name. It appears when all files are written: ``part-00000.parquet`` and so on,
        a Parquet set again.
    client : distributed.Client or str, optional
        As in `unbag.dask.fit`.
    bag, labels : str, optional
        The columns that name the bag, and its labels; by default those of the table that the
        model was fitted to.
    roles : Roles, optional
        What the other columns are, by default the features are those of the model; what is named
        beside it wins.
    use_labels : bool, default=True
        Whether to go by the labels of bags, where there are any.
    review_share : float
        Share of the instances to flag for review, of each partition.
    unknown_below : float, optional
        No label where the probability of the likeliest is lower.

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
    given = Roles.given(roles, bag=bag, labels=labels)
    wanted = Wanted(given, use_labels, review_share, unknown_below)
    with connected(client) as own, staged(Path(output)) as folder, Tasks(own) as tasks:
        found = tasks.results(annotated_partitions(model, data, tasks, wanted, folder))
        filled = [place for place, each in enumerate(found) if each is not None]
        check(filled, "There is no bag: all partitions are empty.")
        if not is_path(data):
            # Of frames, nobody knows before they are read.
            refuse_divided_bags([found[place].ids for place in filled], filled)
        return joined_figures([found[place].figures for place in filled])


@dataclass(frozen=True)
class Wanted:
    """How partitions are to be annotated."""

    roles: Roles
    use_labels: bool
    review_share: float
    unknown_below: float | None


@contextmanager
def staged(output: Path) -> Iterator[Path]:
    """Give a folder that becomes `output` when the context ends well, and goes when it does not."""
    check(
        not output.exists() or (output.is_dir() and not any(output.iterdir())),
        f"{output} is there already, and not an empty folder: name another, or remove it.",
    )
    staging = output.absolute().with_name(f".unbag-{secrets.token_hex(6)}")
    try:
        staging.mkdir(parents=True)
    except OSError as error:
        raise unwritable(output, error) from error
    try:
        yield staging
        # What workers that were killed have left half-written.
        for part in staging.glob(".unbag-*.part"):
            part.unlink()
        # Windows replaces no folder, not even an empty one.
        if output.exists():
            output.rmdir()
        os.replace(staging, output)
    except BaseException:
        # Workers that still write do not find it under another name, and give up.
        gone = staging.with_name(f"{staging.name}.gone")
        # Windows renames no folder in which a file is open.
        with suppress(OSError):
            os.replace(staging, gone)
        for folder in (gone, staging):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def annotated_partitions(
    model: Any, data: Any, tasks: Tasks, wanted: Wanted, folder: Path
) -> list[Future]:
    """Let workers annotate each partition, and write it."""
    same = {"model": tasks.submit(itself, model), "wanted": wanted}
    if is_pairs(data):
        bags = ClusterBags(tasks, pairs_of(data, tasks))
        ids = np.split(bags.ids, bags.firsts[1:-1])
        return tasks.map(annotate_pair, bags.partitions, ids, files(folder, ids), **same)
    if is_path(data):
        stored = opened_for_model(model, data, wanted.roles, wanted.use_labels)
        frames, names = tables_of(stored, tasks, stored.table.columns)
    else:
        frames = frames_of(data, tasks)
        names = [f"Partition {place}" for place in range(len(frames))]
    return tasks.map(annotate_frame, frames, files(folder, frames), names, **same)


def files(folder: Path, partitions: Sequence[Any]) -> list[Path]:
    """Return the file of each partition."""
    return [folder / f"part-{place:05}.parquet" for place in range(len(partitions))]


# What workers do.


@dataclass(frozen=True, eq=False)
class WrittenPartition:
    """What a worker has written: the ids of its bags, of shape (n_bags,), and figures."""

    ids: np.ndarray
    figures: Annotated


def annotate_frame(
    frame: Any, file: Path, name: str, model: Any, wanted: Wanted
) -> WrittenPartition | None:
    """Annotate the rows of a frame and write them; None, and no file, if there are none."""
    if not len(frame):
        return None
    with faults_of(name):
        source = open_frame(frame)
        use_labels = wanted.use_labels
        roles = roles_for_model(model, source, wanted.roles, use_labels=use_labels)
        remedy = ("use_labels", False)
        table, labels = read_for_model(model, source, roles, use_labels=use_labels, remedy=remedy)
        return written(model, table, labels, file, wanted, written_columns(source, roles))


def annotate_pair(
    partition: Partition, ids: np.ndarray, file: Path, model: Any, wanted: Wanted
) -> WrittenPartition:
    """Annotate bags, under ids that no other partition has, and write a table of instances."""
    given, labels = partition.bags, partition.labels
    bags = Bags(given.X, given.offsets, ids, given.instance_labels, given.feature_names)
    with faults_of(file.stem):
        known: Any = None
        if wanted.use_labels and labels is not None:
            known = LabelSets.parse(labels, model.classes_)
        return written(model, bag_table(file, bags, known), known, file, wanted, {})


def written(
    model: Any,
    table: BagTable,
    labels: LabelSets | None,
    file: Path,
    wanted: Wanted,
    earlier: dict[str, str],
) -> WrittenPartition:
    """Annotate the bags of a table, write its rows with the answers, and say what was written."""
    bags = table.bags
    answers = annotations.annotate(
        model, bags, labels, review_share=wanted.review_share, unknown_below=wanted.unknown_below
    )
    columns = write_annotated(table, file, answers.columns(), earlier)
    figures = Annotated(
        bags=len(bags),
        instances=bags.n_instances,
        bag_labels_used=labels is not None,
        mean_probability=float(answers.probability.mean()) if bags.n_instances else 0.0,
        review=int(answers.review.sum()),
        impossible_bags=int(answers.impossible.sum()),
        columns=columns,
    )
    return WrittenPartition(bags.ids, figures)


def joined_figures(figures: list[Annotated]) -> Annotated:
    """Add up what was written."""
    n_instances = sum(each.instances for each in figures)
    certainty = sum(each.instances * each.mean_probability for each in figures)
    return Annotated(
        bags=sum(each.bags for each in figures),
        instances=n_instances,
        bag_labels_used=any(each.bag_labels_used for each in figures),
        mean_probability=certainty / max(n_instances, 1),
        review=sum(each.review for each in figures),
        impossible_bags=sum(each.impossible_bags for each in figures),
        columns=figures[0].columns,
    )
