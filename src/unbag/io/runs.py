"""The first pass over a table that is sorted by bag: bags are runs of rows, and are kept as such.

A bag costs a few bytes here, and a row none, unless labels of instances are read. The rows of a
bag lie side by side, which is more than other tables promise; what breaks it is refused.
"""

from array import array
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unbag._files import DataError, check_rows
from unbag._messages import shortened
from unbag.bags import offsets_of
from unbag.labels import LabelSets, Unknown

from .roles import Roles
from .scan import Scan, factorized
from .wide import WideScan


class RunScan(Scan):
    """What is known of the rows of a table that is sorted by bag, one row per instance.

    Parameters
    ----------
    source : ParquetSet
    roles : Roles
        Resolved. Ids of instances are not read: to tell that they differ takes all of them.
    """

    def __init__(self, source: Any, roles: Roles) -> None:
        super().__init__(source, replace(roles, instance_id=None))
        self.first_row_of_bag: Any = array("q")
        self.n_rows: int = 0
        self._ids: list[pa.Array] = []
        self._last: Any = None

    @property
    def n_bags(self) -> int:
        """Bags that have appeared so far."""
        return len(self.first_row_of_bag)

    def _bag_codes(self, first, column):
        """Return the numbers of the bags of a chunk; each run of one id is a bag."""
        values, indices = factorized(column)
        self._check_lengths(first, self.roles.bag, values, indices)
        begins = np.append(True, np.diff(indices) != 0)
        begins[0] = self.n_bags == 0 or values[indices[0]] != self._last
        codes = (self.n_bags - 1 + np.cumsum(begins)).astype(np.int32)
        starts = np.flatnonzero(begins)
        self.first_row_of_bag.frombytes((first + starts).astype(np.int64).tobytes())
        self._ids.extend(column.take(pa.array(starts)).chunks)
        self._last = values[indices[-1]]
        self.n_rows = first + len(indices)
        return codes

    def laid_out(self) -> NDArray[np.intp]:
        """Check what only the whole table can tell, and return where bags begin and end.

        Returns
        -------
        ndarray of int of shape (n_bags + 1,)
        """
        check_rows(self.source.path, self.n_bags)
        ids = self.id_column()
        if pc.count_distinct(ids).as_py() < len(ids):
            self._complain_of_order(ids)
        return np.append(np.array(self.first_row_of_bag, np.intp), self.n_rows)

    def _complain_of_order(self, ids):
        _, indices = factorized(ids)
        _, firsts = np.unique(indices, return_index=True)
        again = int(np.setdiff1d(np.arange(indices.size), firsts)[0])
        before = int(np.flatnonzero(indices == indices[again])[0])
        places = [self.source.place(self.first_row_of_bag[bag]) for bag in (again, before)]
        raise DataError(
            f"{self.source.path}, {places[0]}: bag {shortened(ids[again].as_py())} begins again, "
            f"after other bags; it began in {places[1]}. All rows of a bag must follow each other, "
            "also from the end of one file to the start of the next: sort by bag."
        )

    def id_column(self) -> pa.ChunkedArray:
        """Return the ids of the bags, as the file has them or as text."""
        return pa.chunked_array(self._ids)

    def ids(self) -> list[Any]:
        """Return the names of the bags, in the order in which they appear."""
        return self.id_column().to_pylist()

    def instance_label_codes(self) -> tuple[list[str], NDArray[np.int32]] | None:
        """Return the names of known labels, and for each instance its place there, or -1."""
        if self.roles.instance_labels is None:
            return None
        return list(self.code_of_label), np.concatenate(self.label_codes)

    def label_sets(
        self, listed_labels: list[frozenset[str | Unknown]] | LabelSets | None
    ) -> LabelSets | None:
        """Return the label sets of the bags; None if the table has no labels.

        Label sets are put together once for all bags that have the same cells.

        Parameters
        ----------
        listed_labels : list of frozenset, LabelSets or None
            Those of a second table, if there is one.
        """
        if listed_labels is not None or self.roles.labels is None:
            return super().label_sets(listed_labels)
        codes = np.stack([column.code_of_bag for column in self.label_columns], axis=1)
        _, firsts, which = np.unique(codes, axis=0, return_index=True, return_inverse=True)
        sets = [column.sets_of(firsts) for column in self.label_columns]
        distinct = self._joined_label_sets(sets, [self.first_row_of_bag[bag] for bag in firsts])
        return LabelSets(distinct.indicator[which.ravel()], distinct.classes)


class WideRunScan(WideScan, RunScan):
    """What is known of the rows of a table that has one row per bag."""

    def laid_out(self) -> NDArray[np.intp]:
        """Check what only the whole table can tell, and return where bags begin and end.

        Returns
        -------
        ndarray of int of shape (n_bags + 1,)
        """
        super().laid_out()
        return offsets_of(np.concatenate(self.sizes))
