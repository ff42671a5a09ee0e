"""Wide tables, one row per bag: every feature is a list with one number per instance."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unbag._checks import bag_of
from unbag._files import DataError, refuse
from unbag.bags import offsets_of

from .roles import Roles
from .scan import Scan, float_array


class WideScan(Scan):
    """What is known of the rows of a table that has one row per bag, and of their sizes."""

    def __init__(self, source: Any, roles: Roles):
        super().__init__(source, roles)
        self.sizes: list[NDArray[np.intp]] = []
        # By its lists the sizes of the bags are known.
        self.sized_by: str = self.roles.embedding or self.roles.features[0]
        self.columns: list[str] = list(dict.fromkeys([*self.columns, self.sized_by]))

    def add(self, first: int, table: pa.Table) -> None:
        """Take in a chunk whose first row is at position `first`."""
        n_known = self.n_bags
        codes = self._add_bags(first, table)
        refuse(
            np.flatnonzero(codes != np.arange(n_known, n_known + codes.size)),
            lambda row: (
                f"{self.at(first + row, self.roles.bag)}: the bag has a row already, "
                f"{self.source.place(self.first_row_of_bag[codes[row]])}: a table with list "
                "columns has one row per bag, unless embedding names the column of vectors."
            ),
        )
        sizes = self._list_sizes(first, self.sized_by, table)
        self.sizes.append(sizes)
        if self.roles.instance_labels is not None:
            self._check_sizes(first, self.roles.instance_labels, table, sizes)
            labels = pc.list_flatten(table.column(self.roles.instance_labels))
            self._add_instance_labels(first, labels)

    def finish(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Check what only the whole table can tell, and lay out the instances.

        Returns
        -------
        rows : ndarray of int of shape (n_instances,)
            The row of the bag, once for each instance.
        offsets : ndarray of int of shape (n_bags + 1,)
        """
        super().finish()
        sizes = np.concatenate(self.sizes)
        self.offsets: NDArray[np.intp] = offsets_of(sizes)
        # Labels of instances stand in the order of the bags already.
        self.rows: NDArray[np.intp] = np.arange(self.offsets[-1])
        return np.repeat(np.arange(sizes.size), sizes), self.offsets

    def put_features(self, X: NDArray[Any], first: int, table: pa.Table) -> None:
        """Put a chunk of features where they belong; see `Scan.put_features`."""
        bounds = self.offsets[first : first + table.num_rows + 1]
        chunk = X[bounds[0] : bounds[-1]]
        flat = {}
        for position, name in enumerate(self.roles.features):
            self._check_sizes(first, name, table, np.diff(bounds))
            flat[name] = pc.list_flatten(table.column(name))
            chunk[:, position] = float_array(flat[name], X.dtype)
        found = self._first_fault(chunk)
        if found is not None:
            row = bag_of(bounds - bounds[0], found.row)
            name = self.roles.features[found.column]
            error = self.source.bad_number(first + row, name, flat[name][found.row].as_py())
            entry = found.row - (bounds[row] - bounds[0]) + 1
            raise DataError(f"{error} It is entry {entry} of the list.")

    def _list_sizes(self, first, name, table):
        """Return the lengths of the lists of a column, which must all be there."""
        column = table.column(name)
        refuse(
            np.flatnonzero(column.is_null().to_numpy()),
            lambda row: (
                f"{self.at(first + row, name)}: the list is missing: an empty bag has an "
                "empty list."
            ),
        )
        return pc.list_value_length(column).to_numpy().astype(np.intp)

    def _check_sizes(self, first, name, table, sizes):
        """Check that the lists of a column are as long as those of the first feature."""
        found = self._list_sizes(first, name, table)
        refuse(
            np.flatnonzero(found != sizes),
            lambda row: (
                f"{self.at(first + row, name)}: the list has {found[row]} entries, but "
                f"that of {self.sized_by!r} has {sizes[row]}: a bag has as many as it has "
                "instances."
            ),
        )
