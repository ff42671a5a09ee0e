"""Annotation of Parquet sets, block by block.

The most uncertain instances are known only after all have been annotated, so there are two passes.
The first keeps the annotations in an unnamed temporary file; the second writes the rows of the set
with them.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc
from sklearn.utils.validation import check_is_fitted

from unbag import annotations
from unbag._files import PARQUET, PathLike, check_format, check_output
from unbag.annotations import REVIEW_SHARE, AnnotateOptions, Figures, worth_a_look
from unbag.frames import in_classes, roles_for_model
from unbag.tables import Roles
from unbag.tables.annotated import (
    ANSWERS,
    KNOWN_LABEL,
    REVIEW,
    answer_names,
    check_nothing_is_lost,
    marked_metadata,
    written_columns,
)
from unbag.tables.formats.arrow import with_new_columns, with_shared_categories
from unbag.tables.parquet_set import ParquetSet
from unbag.tables.stored import StoredBags
from unbag.tables.writing import write_tables
from unbag.tagging import BACKGROUND_NAME

#: Called with the instances done so far and the total, which counts both passes.
Report = Callable[[int, int], object]


@dataclass(frozen=True)
class Annotated(Figures):
    """Summary of what was written.

    Attributes
    ----------
    bags, instances : int
    bag_labels_used : bool
    mean_probability : float or None
        Of the annotations; None if there is none.
    review : int
        Instances that are worth a look.
    status : dict of str to int
        How many rows have which status.
    impossible_bags : int
        Bags whose label sets no labelling can produce.
    tags, tags_without_instance : int
        Labels of all bags, and those that no instance of the bag got.
    rare_tags : list of str
        Tags of these bags that fewer than three training bags had.
    rare_rows : int
        Instances that are worth a look because they could be one of those.
    columns : dict of str to str
        Names of the new columns.
    """

    columns: dict[str, str]


def annotate(
    model: Any,
    path: PathLike | StoredBags,
    output: PathLike,
    *,
    bag: str | None = None,
    labels: str | None = None,
    untagged: str | None = None,
    roles: Roles | None = None,
    use_labels: bool = True,
    progress: Report | None = None,
    **options: Unpack[AnnotateOptions],
) -> Annotated:
    """Label every instance of a Parquet set, and write its rows with the annotations.

    Parameters
    ----------
    model : fitted estimator or BagPipeline
        With ``annotate_proba`` and ``predict_instances_proba``.
    path : str or path
        A Parquet set, as in `unbag.out_of_core.fit`.
    output : str or path
        A Parquet file; it appears when it is complete.
    bag, labels : str, optional
        The columns of the bag and of its labels; by default those of the training table, or else
        the columns "bag" and "labels".
    untagged : {"refuse", "unknown", "absent"}, optional
        What an empty cell in place of labels means; by default as in the training table.
    roles : Roles, optional
        The roles of other columns; by default, features are those of the model. `bag` and `labels`
        take precedence.
    use_labels : bool, default=True
        Whether to use the labels of bags, if there are any.
    progress : callable, optional
        Called as ``progress(done, total)``; each instance counts twice, once when annotated and
        once when written.
    **options
        As in `unbag.annotations.annotate`, such as `joint` and `review_share`.

    Returns
    -------
    Annotated

    Notes
    -----
    Memory holds the sizes, ids and label sets of bags, 9 bytes per instance, and a few blocks.
    """
    given = Roles.given(roles, bag=bag, labels=labels, untagged=untagged)
    stored = opened_for_model(model, path, given, use_labels)
    table = stored.table
    check_format(output, PARQUET)
    second = stored.roles.label_table
    check_output(output, *table.files, *([] if second is None else [second]))
    check_nothing_is_lost(Path(output))
    label_sets = stored.labels if use_labels else None
    if label_sets is not None:
        remedy = ("use_labels", False)
        tagging = stored.roles.tagging
        label_sets = in_classes(label_sets, model.classes_, stored, table.path, remedy, tagging)
    annotations.check_joint(options.get("joint", False), label_sets)
    name = options.get("background_name", BACKGROUND_NAME)
    annotations.check_background_name(model, label_sets, name)
    known = written_columns(table, stored.roles)
    columns = answer_names((*ANSWERS, KNOWN_LABEL), table.columns, known)
    # The most uncertain instances are known when all are.
    review_share, options["review_share"] = options.get("review_share", REVIEW_SHARE), 0.0

    def report(done: int) -> None:
        if progress is not None:
            progress(done, 2 * stored.n_instances)

    with tempfile.TemporaryFile(dir=Path(output).resolve().parent, prefix=".unbag-") as file:
        kept, reader = KeptAnswers(file), stored.reader()
        for first, last in stored.runs():
            own = None if label_sets is None else label_sets[first:last]
            block = stored.bags(first, last, reader)
            kept.add(annotations.annotate(model, block, own, **options))
            report(int(stored.offsets[last]))
        review = worth_a_look(kept.entropy, review_share) | kept.review
        chunks = rows_with_answers(stored, kept, review, columns, KNOWN_LABEL in known, report)
        chunks = with_shared_categories(table, chunks)
        write_tables(output, (chunk for _, chunk in chunks), table.compression)
    figures = replace(annotations.added(kept.figures), review=int(review.sum()))
    return Annotated(**asdict(figures), columns=columns)


def opened_for_model(
    model: Any, path: PathLike | StoredBags, given: Roles, use_labels: bool
) -> StoredBags:
    """Open the bags of a set, with the given roles or else those of the model."""
    check_is_fitted(model)
    if isinstance(path, StoredBags):
        return path
    table = ParquetSet(path)
    roles = roles_for_model(model, table, given, use_labels=use_labels)
    return StoredBags(table, roles, need_labels=False)


class KeptAnswers:
    """Annotations of the first pass, in a temporary file; in memory what decides on a review."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: Any = None
        self._entropies: list[NDArray[np.float64]] = []
        self._reviews: list[NDArray[np.bool_]] = []
        self.figures: list[Figures] = []

    def add(self, answers: annotations.Annotations) -> None:
        """Keep the annotations of the next bags."""
        given = answers.columns()
        batch = pa.record_batch({
            name: pa.array(given[name], pa.string() if given[name].dtype.kind == "O" else None)
            for name in ANSWERS if name != REVIEW
        })  # fmt: skip
        if self._writer is None:
            self._writer = ipc.new_stream(self._file, batch.schema)
        self._writer.write_batch(batch)
        self._entropies.append(answers.entropy)
        self._reviews.append(answers.review)
        self.figures.append(answers.figures())

    @property
    def entropy(self) -> NDArray[np.float64]:
        """Entropies of all instances, in order."""
        return np.concatenate([np.empty(0), *self._entropies])

    @property
    def review(self) -> NDArray[np.bool_]:
        """The instances that are worth a look however certain they are, in their order."""
        return np.concatenate([np.empty(0, dtype=bool), *self._reviews])

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the annotations in batches, in the order of the instances."""
        self._writer.close()
        self._file.seek(0)
        yield from ipc.open_stream(self._file)


def rows_with_answers(
    stored: StoredBags,
    kept: KeptAnswers,
    review: NDArray[np.bool_],
    columns: dict[str, str],
    keep_known: bool,
    report: Callable[[int], object],
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of a set with the annotations of their instances as new columns."""
    table = stored.table
    new = {name: column for name, column in columns.items()
           if name != KNOWN_LABEL or not keep_known}  # fmt: skip
    metadata = marked_metadata(table.schema.metadata, new.values(), columns)
    answers = InstanceRows(kept.read())
    for first, batch in table.batches(table.columns):
        chunk = pa.Table.from_batches([batch])
        start, stop, bounds = first, first + batch.num_rows, None
        if stored.is_wide:
            bounds = stored.offsets[start : stop + 1]
            start, stop = bounds[[0, -1]].tolist()
        found, added = answers.take(stop - start), {}
        for name, column in new.items():
            if name == REVIEW:
                values = pa.array(review[start:stop])
            elif name == KNOWN_LABEL:
                values = pa.nulls(stop - start, pa.string())
            else:
                values = found.column(name).combine_chunks()
            if bounds is not None:
                offsets = pa.array(bounds - bounds[0], pa.int32())
                values = pa.ListArray.from_arrays(offsets, values)
            added[column] = values
        yield first, with_new_columns(chunk, added).replace_schema_metadata(metadata or None)
        report(stored.n_instances + stop)


class InstanceRows:
    """Rows that arrive in batches of one size and are taken in batches of another."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: pa.Table | None = None

    def take(self, n_rows: int) -> pa.Table:
        """Return the next rows."""
        parts = [] if self._left is None else [self._left]
        while not parts or sum(part.num_rows for part in parts) < n_rows:
            parts.append(pa.Table.from_batches([next(self._batches)]))
        joined = pa.concat_tables(parts)
        self._left = joined.slice(n_rows)
        return joined.slice(0, n_rows)
