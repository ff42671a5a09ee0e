"""Bags as a long table with the usual names of columns; bags of files that are not tables."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from unbag._files import DataError, PathLike, check, refuse
from unbag.bags import Bags, bag_of, first_nonfinite
from unbag.labels import LabelSets

from .bag_table import BagTable
from .roles import NUMBER, USUAL, Roles

# Rows of a chunk.
CHUNK_ROWS = 1 << 14
# What a long table has besides its features.
OWN_COLUMNS = (USUAL["bag"], NUMBER, USUAL["labels"], USUAL["instance_labels"])
# Units of times and of durations for which Arrow has a type.
ARROW_TIMES = {"M": ("D", "s", "ms", "us", "ns"), "m": ("s", "ms", "us", "ns")}


def checked_bags(path: PathLike, bags: Bags, labels: LabelSets) -> Bags:
    """Return bags with names of features; raise an error that names the file and the bag."""
    check(len(labels) == len(bags), f"{path} has {len(labels)} label sets for {len(bags)} bags.")
    names = feature_names(bags)
    found = first_nonfinite(bags.X)
    if found is not None:
        bag = bag_of(bags.offsets, found.row)
        raise DataError(
            f"{path}: bag {bags.ids[bag]}, instance {found.row - bags.offsets[bag] + 1} has "
            f"{found.value} as feature {names[found.column]}: replace it by a finite number."
        )
    return bags if bags.feature_names is not None else bags.with_features(bags.X, np.array(names))


def bag_table(path: Path, bags: Bags, labels: LabelSets | None) -> BagTable:
    """Make a BagTable of bags from a file that is not a table; see `checked_bags`."""
    roles = Roles(features=feature_names(bags), label_separator="|")
    if labels is not None and labels.classes.size:
        # Such files have no other way to say that a bag was not looked at.
        is_open = labels.open | labels.optional.all(axis=1)
        labels = LabelSets(labels.indicator, labels.classes, is_open, labels.groups)
    return BagTable(path, roles, bags, labels, np.arange(bags.n_instances), bags.n_instances)


def dense(X: Any) -> NDArray[Any]:
    """Return a sparse matrix as an array, and anything else as it is."""
    return X.toarray() if sparse.issparse(X) else X


def check_no_groups(path: Any, labels: LabelSets, suffix: str) -> None:
    """Raise an error if bags require groups of classes, which a format cannot hold."""
    check(
        labels.groups is None,
        f"{path}: labels that say that one of several classes is there cannot be written as "
        f"{suffix}: write a table, such as .csv or .parquet.",
    )


def feature_names(bags: Bags) -> list[str]:
    """Return the names of the features; x0, x1, ... where they have none."""
    if bags.feature_names is None:
        return [f"x{column}" for column in range(bags.n_features)]
    return [str(name) for name in bags.feature_names]


def long_chunks(
    bags: Bags,
    labels: LabelSets | None,
    delimiter: str = "|",
    numbered: bool = True,
    path: PathLike | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield bags as a long table, in pairs of the first row's position and a pyarrow table.

    Its columns are ``bag``, ``instance`` (if `numbered`), ``labels``, ``instance_label`` and the
    features. An empty bag has no row. Errors name the file that is read or written, at `path`.
    """
    where = "" if path is None else f"{path}: "
    names = feature_names(bags)
    known = instance_label_texts(bags, labels)
    times = Counter(names)
    refuse(
        (name for name in names if name in OWN_COLUMNS or times[name] > 1),
        lambda name: (
            f"{where}The feature {name!r} has the name of another column of the table: rename it."
        ),
    )
    bag, number, cells_of, label = OWN_COLUMNS
    bag_of_row = np.repeat(np.arange(len(bags)), bags.sizes)
    ids = id_column(bags.ids)
    if labels is not None:
        try:
            cells = pa.array(labels.to_cells(delimiter), pa.string())
        except DataError as error:
            raise DataError(f"{where}{error}") from error
    # At least one chunk, so that a file without instances still has its columns.
    for first in range(0, max(bags.n_instances, 1), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        part = pa.array(bag_of_row[rows])
        columns = {bag: ids.take(part)}
        if numbered:
            start = bags.offsets[bag_of_row[rows]]
            columns[number] = np.arange(first, first + start.size) - start + 1
        if labels is not None:
            columns[cells_of] = cells.take(part)
        if known is not None:
            columns[label] = pa.array(known[rows], pa.string())
        X = dense(bags.X[rows])
        columns |= {name: X[:, column] for column, name in enumerate(names)}
        yield first, pa.table(columns)


def id_column(ids: NDArray[Any]) -> Any:
    """Return ids as an Arrow array: of their own type where Arrow has it, else as text."""
    kind = ids.dtype.kind
    if kind in ARROW_TIMES:
        unit, step = np.datetime_data(ids.dtype)
        # Arrow takes a count of steps of ten seconds for one of seconds.
        has_type = step == 1 and unit in ARROW_TIMES[kind]
    else:
        has_type = kind in "biufUO" and ids.dtype.char != np.dtype(np.longdouble).char
    if has_type:
        try:
            return pa.array(ids.astype(ids.dtype.newbyteorder("="), copy=False))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            # Ids of several types, such as 1 and "owl", or integers of more than 64 bits.
            pass
    texts = [name.decode(errors="replace") if kind == "S" else str(name) for name in ids]
    # A bag that was picked twice shows its id twice.
    check(
        len(set(texts)) == len(set(ids.tolist())),
        f"Some ids of bags, of type {ids.dtype}, are the same as text: give others.",
    )
    return pa.array(texts, pa.string())


def instance_label_texts(bags: Bags, labels: LabelSets | None) -> list[str | None] | None:
    """Return known labels of instances as text, None where the label is not known.

    Whole numbers are columns of `labels`, if its classes have names, and -1 is not known.
    """
    known = bags.instance_labels
    if known is None:
        return None
    if known.dtype.kind not in "iu":
        return [None if is_unknown(value) else str(value) for value in known.tolist()]
    names = labels.classes.tolist() if labels is not None else None
    if names is None or not isinstance(next(iter(names), ""), str):
        return [None if value == -1 else str(value) for value in known.tolist()]
    check(
        not known.size or -1 <= known.min() <= known.max() < len(names),
        f"Instance labels must be columns from 0 to {len(names) - 1}, or -1.",
    )
    return [names[value] if value >= 0 else None for value in known.tolist()]


def instance_label_codes(bags: Bags, labels: LabelSets, what: str) -> NDArray[np.int64]:
    """Return known labels of instances as columns of `labels`, -1 where the label is not known.

    All are -1 if the bags have no instance labels. `what` names the format in messages.
    """
    texts = instance_label_texts(bags, labels)
    if texts is None:
        return np.full(bags.n_instances, -1)
    column_of: dict[str | None, int] = {str(name): c for c, name in enumerate(labels.classes)}
    column_of[None] = -1
    refuse(
        (text for text in texts if text not in column_of),
        lambda text: (
            f"The instance label {text!r} is not among the classes of the bags, and "
            f"{what} has no place for others: remove it, or choose another format."
        ),
    )
    return np.array([column_of[text] for text in texts], dtype=np.int64)


def is_unknown(label: object) -> bool:
    """Return whether an instance label is not known: None, NaN or empty."""
    return label is None or label == "" or label != label
