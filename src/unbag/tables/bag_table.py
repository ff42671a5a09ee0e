"""BagTable: bags and labels as read from a file, with the way back to the file's rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from unbag._files import DataError, PathLike, check
from unbag.bags import Bags, value_array
from unbag.labels import LabelSets
from unbag.tagging import Tagging

from .roles import Roles, check_column

# Rows by which columns are judged.
SAMPLE_ROWS = 1000

#: Called with the rows done so far and with their total, None while that is not known.
Progress = Callable[[int, int | None], object]


@dataclass(frozen=True, eq=False, repr=False)
class BagTable:
    """Bags and label sets read from a file, and where each instance stood in it.

    Parameters
    ----------
    path : Path
        The file.
    roles : Roles
        With everything filled in that was left out.
    bags : Bags
        With `ids` and `feature_names`; with `instance_labels`, text or None where the label is
        not known, if there are any.
    labels : LabelSets or None
        None if the file has no labels. From a table, the classes are the sorted labels of all
        bags; the other formats list their classes.
    rows : ndarray of int of shape (n_instances,)
        The row of the file that holds each instance, counted from 0.
    n_rows : int
        Rows of the file. As many as instances, except where a row is a bag.
    source : Table or None
        The table, if it is one; a file is closed, and each further pass opens it once.
    known : ndarray of shape (n_instances,) or None
        Labels of instances that people gave, text or None; None if no column of them was named.
    unused_names : tuple of str
        Labels that the roles rename, and that the table does not have.
    """

    path: Path
    roles: Roles
    bags: Bags
    labels: LabelSets | None
    rows: NDArray[np.intp]
    n_rows: int
    source: Any = None
    known: NDArray[np.object_] | None = None
    unused_names: tuple[str, ...] = ()

    def with_groups(self) -> "BagTable":
        """Return the table with labels that stand for groups of classes as groups."""
        if self.labels is None or not self.roles.tagging.names_groups:
            return self
        return replace(self, labels=self.labels.with_groups_of(self.roles.tagging))

    def read_by(self, tagging: Tagging) -> "BagTable":
        """Return the same bags, with labels renamed as people say; of a file without columns.

        Parameters
        ----------
        tagging : Tagging
        """
        if not (tagging.none or tagging.fold_case or tagging.rename):
            return self
        bags, labels, truth = self.bags, self.labels, self.bags.instance_labels
        try:
            labels = None if labels is None else labels.read_by(tagging, bags.ids.tolist())
        except ValueError as error:
            raise DataError(f"{self.path}: {error}") from error
        if truth is not None:
            names = [tagging.name_of_instance(each) or None for each in truth.tolist()]
            truth = np.array(names, dtype=object)
            bags = Bags(bags.X, bags.offsets, bags.ids, truth, bags.feature_names, bags.rows)
        return replace(self, bags=bags, labels=labels, unused_names=tagging.unused_names())

    @property
    def is_wide(self) -> bool:
        """Whether the file has one row per bag."""
        return self.source is not None and self.source.is_wide(self.roles)

    @property
    def n_dropped(self) -> int:
        """Rows of the file that were left out, because values are missing in them."""
        return 0 if self.source is None or self.is_wide else self.n_rows - len(self.rows)

    def write(
        self,
        path: PathLike,
        columns: Mapping[str, ArrayLike],
        *,
        progress: Progress | None = None,
    ) -> None:
        """Write the rows of the file again, as they came, with more columns.

        Every row comes out, in the order of the file and with all its columns untouched; CSV cells
        stay what they were to the letter. A new column that has the name of an old one takes its
        place, unless the old one has a role: that is an error. Others come last. From a file
        without rows (ARFF, MATLAB, npz) comes a long table: bag, number of the instance, labels,
        features. If the file has a row per bag, new columns are lists.

        Parameters
        ----------
        path : str or path
            Its suffix selects the format: ``.csv``, ``.tsv``, ``.parquet``, ``.feather``, ... The
            file appears when it is whole; it may be the one that was read.
        columns : dict of str to array-like of shape (n_instances,)
            New columns, in the order of ``bags.X``: text, numbers or booleans, None for
            missing ones.
        progress : callable, optional
            Called with the rows written so far, and with their total.
        """
        from .writing import write_rows

        write_rows(self, path, columns, progress)

    def column(self, name: str, role: str | None = None) -> NDArray[Any]:
        """Read a column of the file, in the order of ``bags.X``.

        Parameters
        ----------
        name : str
        role : str, optional
            What the column is needed for, such as ``"media"``: then a type that makes no sense
            for it is an error.

        Returns
        -------
        ndarray of shape (n_instances,)
            Text as objects, None where there is no value; numbers as the file has them. All cells
            of a text file are text.
        """
        return _array(self._values(name, role).to_pylist())

    def texts(self, name: str, role: str | None = None) -> list[str | None]:
        """Read a column of the file as text, exactly, in the order of ``bags.X``.

        Parameters
        ----------
        name : str
        role : str, optional
            As in `column`.

        Returns
        -------
        list of str
            None where there is no value. The text is that of a CSV file with this column,
            whatever the type: so ids are the same in every format.
        """
        from .scan import spelt_out

        cells = spelt_out(self._values(name, role)).to_pylist()
        return [None if cell is None else str(cell) for cell in cells]

    def _values(self, name, role):
        """Return a column as a pyarrow array with one entry per instance."""
        check(self.source is not None, f"{self.path} has no columns besides its features.")
        check_column(self.path, name, self.source.columns, role or "this")
        if role is not None:
            self.source.check_type(name, role, self.is_wide)
        whole = self.source.column(name)
        if self.is_wide and pa.types.is_nested(whole.type):
            lengths = pc.list_value_length(whole).fill_null(0).to_numpy()
            check(
                np.array_equal(lengths, np.bincount(self.rows, minlength=self.n_rows)),
                f"{self.path}, column {name!r}: not one entry per instance.",
            )
            return pc.list_flatten(whole)
        return whole.take(pa.array(self.rows))

    def __repr__(self) -> str:
        classes = "no labels" if self.labels is None else f"{self.labels.classes.size} classes"
        return f"BagTable({str(self.path)!r}: {self.bags!r}, {classes})"


@dataclass(frozen=True)
class Peek:
    """Format of a file, in words, with its columns, resolved roles and number of rows.

    Formats without columns have none, and no roles if they define them. The number of rows may not
    be known before reading. With `is_wide`, a row is a bag.
    """

    path: Path
    format: str
    columns: list[str]
    roles: Roles | None
    n_rows: int | None
    is_wide: bool


def _array(values: list[Any]) -> NDArray[Any]:
    is_text = any(value is None or isinstance(value, str) for value in values)
    return np.fromiter(values, object) if is_text else value_array(values)
