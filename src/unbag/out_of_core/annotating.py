"""Annotations of Parquet sets: what a model says of every instance, block by block.

Which instances are the most uncertain is known only when all have been looked at. So there are two
passes: the first keeps its answers in a file without a name, which nobody has to remove, the second
writes the rows of the set with them.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc
from sklearn.utils.validation import check_is_fitted

from unbag import annotations
from unbag._files import PARQUET, PathLike, check_format, check_output
from unbag.annotations import REVIEW_SHARE, worth_a_look
from unbag.frames import in_classes, roles_for_model
from unbag.io import Roles
from unbag.io.annotated import (
    ANSWERS,
    KNOWN_LABEL,
    check_nothing_is_lost,
    free_name,
    marked_metadata,
    written_columns,
)
from unbag.io.formats.arrow import with_shared_categories
from unbag.io.parquet_set import ParquetSet
from unbag.io.stored import StoredBags
from unbag.io.writing import write_tables

#: Called with the instances done so far, and with twice their number: there are two passes.
Report = Callable[[int, int], object]


@dataclass(frozen=True)
class Annotated:
    """What was written, in figures.

    Attributes
    ----------
    bags, instances : int
    bag_labels_used : bool
    mean_probability : float
        Of the annotations.
    review : int
        Instances that are worth a look.
    impossible_bags : int
        Bags whose label sets no labelling can produce.
    columns : dict of str to str
        What the new columns are called.
    """

    bags: int
    instances: int
    bag_labels_used: bool
    mean_probability: float
    review: int
    impossible_bags: int
    columns: dict[str, str]


def annotate(
    model: Any,
    path: PathLike | StoredBags,
    output: PathLike,
    *,
    bag: str | None = None,
    labels: str | None = None,
    roles: Roles | None = None,
    use_labels: bool = True,
    review_share: float = REVIEW_SHARE,
    unknown_below: float | None = None,
    progress: Report | None = None,
) -> Annotated:
    """Label every instance of a Parquet set, and write its rows with the answers.

    Parameters
    ----------
    model : fitted estimator or BagPipeline
        With ``annotate_proba`` and ``predict_instances_proba``.
    path : str or path
        A Parquet set, as in `unbag.out_of_core.fit`; or `StoredBags`.
    output : str or path
        A Parquet file; it appears when it is whole.
    bag, labels : str, optional
        The columns that name the bag, and its labels; by default those of the table that the
        model was fitted to, or else those called so.
    roles : Roles, optional
        What the other columns are, by default the features are those of the model; what is named
        beside it wins.
    use_labels : bool, default=True
        Whether to go by the labels of bags, where there are any.
    review_share : float
        Share of the instances to flag for review.
    unknown_below : float, optional
        No label where the probability of the likeliest is lower.
    progress : callable, optional
        Called as ``progress(done, total)``; each instance counts twice, since it is annotated
        first and written then.

    Returns
    -------
    Annotated

    Notes
    -----
    Memory holds what is known of bags, 8 bytes for each instance, and a few blocks.
    """
    given = Roles.given(roles, bag=bag, labels=labels)
    stored = opened_for_model(model, path, given, use_labels)
    table = stored.table
    check_format(output, PARQUET)
    second = stored.roles.label_table
    check_output(output, *table.files, *([] if second is None else [second]))
    check_nothing_is_lost(Path(output))
    label_sets = stored.labels if use_labels else None
    if label_sets is not None:
        remedy = ("use_labels", False)
        label_sets = in_classes(label_sets, model.classes_, stored, table.path, remedy)
    known = written_columns(table, stored.roles)
    columns = {name: known.get(name) or free_name(name, table.columns)
               for name in (*ANSWERS, KNOWN_LABEL)}  # fmt: skip
    report = (lambda done: None) if progress is None else (
        lambda done: progress(done, 2 * stored.n_instances)
    )  # fmt: skip
    with scratch(Path(output).resolve().parent) as kept:
        impossible = annotate_blocks(model, stored, label_sets, kept, unknown_below, report)
        review = worth_a_look(kept.entropy, review_share) | np.repeat(impossible, stored.sizes)
        chunks = rows_with_answers(stored, kept, review, columns, KNOWN_LABEL in known, report)
        chunks = with_shared_categories(table, chunks)
        write_tables(output, (chunk for _, chunk in chunks), table.compression)
    return Annotated(
        bags=len(stored),
        instances=stored.n_instances,
        bag_labels_used=label_sets is not None,
        mean_probability=kept.probability_sum / max(stored.n_instances, 1),
        review=int(review.sum()),
        impossible_bags=int(impossible.sum()),
        columns=columns,
    )


def opened_for_model(
    model: Any, path: PathLike | StoredBags, given: Roles, use_labels: bool
) -> StoredBags:
    """Return the bags of a set, by the roles that are given or else by those of the model."""
    check_is_fitted(model)
    if isinstance(path, StoredBags):
        return path
    table = ParquetSet(path)
    roles = roles_for_model(model, table, given, use_labels=use_labels)
    return StoredBags(table, roles, need_labels=False)


class KeptAnswers:
    """Answers of the first pass, in a temporary file; entropies in memory too."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: Any = None
        self._entropies: list[NDArray[np.float64]] = []
        self.probability_sum: float = 0.0

    def add(self, answers: annotations.Annotations) -> None:
        """Keep the answers for the next bags."""
        given = answers.columns()
        columns = {}
        for name in ANSWERS[:-1]:
            # Classes may be numbers, and are text in a table.
            is_text = given[name].dtype.kind == "O"
            values = [None if each is None else str(each) for each in given[name]]
            columns[name] = pa.array(values, pa.string()) if is_text else pa.array(given[name])
        batch = pa.record_batch(columns)
        if self._writer is None:
            self._writer = ipc.new_stream(self._file, batch.schema)
        self._writer.write_batch(batch)
        self._entropies.append(answers.entropy)
        self.probability_sum += float(answers.probability.sum())

    @property
    def entropy(self) -> NDArray[np.float64]:
        """Of all instances, in their order."""
        return np.concatenate([np.empty(0), *self._entropies])

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield what was kept, batch after batch, in the order of the instances."""
        self._writer.close()
        self._file.seek(0)
        yield from ipc.open_stream(self._file)


@contextmanager
def scratch(folder: Path) -> Iterator[KeptAnswers]:
    """Give a file for answers that is gone afterwards, whatever happens."""
    with tempfile.TemporaryFile(dir=folder, prefix=".unbag-") as file:
        yield KeptAnswers(file)


def annotate_blocks(
    model: Any,
    stored: StoredBags,
    labels: Any,
    kept: KeptAnswers,
    unknown_below: float | None,
    report: Callable[[int], object],
) -> NDArray[np.bool_]:
    """Annotate block after block; return which bags no labelling can produce."""
    impossible = np.zeros(len(stored), dtype=bool)
    reader = stored.reader()
    for first, last in stored.runs():
        block = stored.bags(first, last, reader)
        own = None if labels is None else labels[first:last]
        answers = annotations.annotate(
            model, block, own, review_share=0.0, unknown_below=unknown_below
        )
        impossible[first:last] = answers.impossible
        kept.add(answers)
        report(int(stored.offsets[last]))
    return impossible


def rows_with_answers(
    stored: StoredBags,
    kept: KeptAnswers,
    review: NDArray[np.bool_],
    columns: dict[str, str],
    keep_known: bool,
    report: Callable[[int], object],
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of a set, with the answers of their instances as further columns."""
    table = stored.table
    new = {name: column for name, column in columns.items()
           if name != KNOWN_LABEL or not keep_known}  # fmt: skip
    metadata = marked_metadata(table.schema.metadata, new.values(), columns)
    answers = InstanceRows(kept.read())
    for first, batch in table.batches(table.columns):
        chunk = pa.Table.from_batches([batch])
        bounds = stored.offsets[first : first + batch.num_rows + 1] if stored.is_wide else None
        start, stop = (
            (first, first + batch.num_rows) if bounds is None else bounds[[0, -1]].tolist()
        )
        found = answers.take(stop - start)
        for name, column in new.items():
            if name in found.column_names:
                values = found.column(name).combine_chunks()
            elif name == KNOWN_LABEL:
                values = pa.nulls(stop - start, pa.string())
            else:
                values = pa.array(review[start:stop])
            if bounds is not None:
                offsets = pa.array(bounds - bounds[0], pa.int32())
                values = pa.ListArray.from_arrays(offsets, values)
            if column in chunk.column_names:
                chunk = chunk.set_column(chunk.column_names.index(column), column, values)
            else:
                chunk = chunk.append_column(column, values)
        yield first, chunk.replace_schema_metadata(metadata or None)
        report(stored.n_instances + stop)


class InstanceRows:
    """Rows that come in batches of one size, and are taken in those of another."""

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
