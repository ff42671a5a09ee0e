"""Bags of instances, packed: one flat array and the places where each bag begins and ends.

The sample is the bag. A container of bags has a length and a ``shape`` whose first entry counts
bags, and it is indexed by bag, so scikit-learn splits it as it would split the rows of an array.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unbag._messages import listed, words
from unbag._notebook import bags_html

# An array, or a CSR matrix: scipy says nothing of its types.
Features: TypeAlias = np.ndarray | Any
# What selects one bag, and what selects several.
Position: TypeAlias = int | np.integer
Selection: TypeAlias = slice | Sequence[int] | Sequence[bool] | np.ndarray | tuple[Any, ...]
# Arrays of text have as much room for each as the longest takes; longer ones are kept as objects.
WIDEST_TEXT = 128
# Entries that are looked at together: few, so that the search needs next to no memory.
BLOCK_ENTRIES = 2**16


class Bags:
    """Instances in bags: bag ``b`` is ``X[offsets[b]:offsets[b + 1]]``.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_instances, n_features)
        The instances of all bags, one bag after the other. float32, float64 and CSR are kept
        without a copy; other numbers become float64, other sparse formats CSR.
    offsets : array-like of int of shape (n_bags + 1,)
        Where the bags begin and end: starts at 0, never falls, ends at ``n_instances``. Two equal
        neighbours make an empty bag.
    ids : array-like of shape (n_bags,), optional
        Distinct names of the bags; by default their positions 0, 1, 2, ... A selection keeps the
        ids of what it selects, so a bag that is picked twice shows its id twice.
    instance_labels : array-like of shape (n_instances,), optional
        The true label of every instance, of any type, where it is known. Selections carry it
        along and scorers read it; ``fit`` never does.
    feature_names : array-like of str of shape (n_features,), optional
        Names of the columns of `X`.
    rows : array-like of int of shape (n_instances,), optional
        The row of a table, counted from 0, that each instance stands in; by default the table is
        `X`. `from_table` and ``unbag.tables.read`` give it. Selections and transformers carry it
        along, and `in_table_order` puts answers back by it.

    Notes
    -----
    All parameters are attributes too. ``bags[3]`` is the 2-D array of one bag; a slice, a boolean
    mask or an array of positions gives Bags. A slice of neighbouring bags is a view of a dense
    `X`; other selections copy.

    Examples
    --------
    >>> bags = Bags([[1.0], [2.0], [3.0]], offsets=[0, 2, 3], ids=["dawn", "dusk"])
    >>> bags
    Bags(2 bags, 3 instances, 1 features, float64)
    >>> bags[0]
    array([[1.],
           [2.]])
    >>> bags[[False, True]].ids.tolist()
    ['dusk']
    """

    def __init__(
        self,
        X: ArrayLike | Features,
        offsets: ArrayLike,
        ids: ArrayLike | None = None,
        instance_labels: ArrayLike | None = None,
        feature_names: ArrayLike | None = None,
        rows: ArrayLike | None = None,
    ) -> None:
        self.X: Features = checked_features(X, "X")
        n_instances, n_features = self.X.shape
        self.ids: np.ndarray = checked_ids(ids, np.size(offsets) - 1)
        self.offsets: NDArray[np.intp] = checked_offsets(offsets, n_instances, self.ids)
        # Arrays, or None: whoever gives them need not ask a type checker each time they are used.
        self.instance_labels: np.ndarray | Any = checked_column(
            instance_labels, n_instances, "instance_labels"
        )
        self.feature_names: np.ndarray | Any = checked_column(
            feature_names, n_features, "feature_names"
        )
        # `rows`, and which table they are of.
        self.table_rows: TableRows = TableRows.checked(rows, n_instances)

    @classmethod
    def from_list(
        cls,
        arrays: Iterable[ArrayLike | Features],
        ids: ArrayLike | None = None,
        instance_labels: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> Self:
        """Pack one 2-D array per bag.

        Parameters
        ----------
        arrays : iterable of array-like or sparse matrix of shape (bag_size, n_features)
            At least one bag; an empty bag has shape ``(0, n_features)``. One sparse bag makes all
            of them sparse.
        ids : array-like of shape (n_bags,), optional
            Distinct names of the bags.
        instance_labels : array-like of shape (n_instances,) or list of array-like, optional
            The true label of every instance: flat, or one 1-D array per bag.

        Examples
        --------
        >>> dawn, dusk = [[1, 2], [3, 4]], [[5, 6]]
        >>> bags = Bags.from_list([dawn, dusk], instance_labels=[["wren", "tit"], ["wren"]])
        >>> bags.sizes.tolist(), bags.instance_labels.tolist()
        ([2, 1], ['wren', 'tit', 'wren'])
        """
        arrays = list(arrays)
        ids = checked_ids(ids, len(arrays))
        names = [bag_name(bag, ids) for bag in range(len(arrays))]
        packed = [checked_features(array, name) for array, name in zip(arrays, names, strict=True)]
        sizes = [array.shape[0] for array in packed]
        flat: Any = instance_labels
        if flat is not None and all(np.ndim(labels) == 1 for labels in flat):
            for name, size, labels in zip(names, sizes, flat, strict=False):
                if len(labels) != size:
                    raise ValueError(f"{name} has {size} instances but {len(labels)} labels.")
            flat = joined(flat)
        return cls(stacked(packed, names), offsets_of(sizes), ids, flat)

    @classmethod
    def from_table(
        cls,
        table: Any,
        bag: str,
        features: str | Sequence[str] | None = None,
        instance_labels: str | None = None,
    ) -> Self:
        """Read bags from a table that has one row per instance.

        Bags come in the order in which they first appear, and rows keep their order within a bag;
        the rows of a bag need not be neighbours. The names of the feature columns are kept.
        Answers come in the order of the bags, not of the table: `in_table_order` puts them back.

        Parameters
        ----------
        table : pandas, polars or pyarrow table
            A lazy polars frame is collected.
        bag : str
            The column that names the bag of each row; its values become `ids`.
        features : str or list of str, optional
            The columns of numbers or booleans that describe an instance; by default all there
            are, apart from the other two arguments. A missing value becomes NaN; X is float32 if
            all of them are.
        instance_labels : str, optional
            The column that holds the true label of each instance.

        Examples
        --------
        >>> import polars
        >>> table = polars.DataFrame({"night": ["a", "b", "a"], "pitch": [3.0, 5.0, 4.0]})
        >>> bags = Bags.from_table(table, bag="night")
        >>> bags.ids.tolist(), bags.X.ravel().tolist()
        (['a', 'b'], [3.0, 4.0, 5.0])
        >>> bags.rows
        array([0, 2, 1])
        >>> bags.in_table_order(["low", "middle", "high"]).tolist()
        ['low', 'high', 'middle']
        """
        import narwhals.stable.v2 as nw
        from narwhals.stable.v2.selectors import boolean, numeric

        frame = nw.from_native(table).lazy().collect()
        schema = frame.schema
        features = [features] if isinstance(features, str) else features
        for column in [bag, *(features or []), instance_labels]:
            if column is not None and column not in schema:
                raise ValueError(
                    f"The table has no column {column!r}; it has {listed(frame.columns)}."
                )
        # In their order, and looked up at once.
        numbers = dict.fromkeys(frame.select(numeric() | boolean()).columns)
        if features is None:
            features = [column for column in numbers if column not in (bag, instance_labels)]
        if not features:
            raise ValueError("The table has no column of numbers left to be a feature: add one.")
        for column in features:
            if column not in numbers:
                raise ValueError(f"Feature column {column!r} holds {schema[column]}, not numbers.")

        of_bag = frame.get_column(bag)
        missing = of_bag.is_null() | of_bag.is_nan() if schema[bag].is_float() else of_bag.is_null()
        if missing.any():
            raise ValueError(f"Row {missing.arg_true()[0]} has no bag: fill in {bag!r} or drop it.")
        # A dictionary numbers the bags as they appear; sorting their values would lose that order.
        positions = {}
        names_of_rows = of_bag.to_list()
        is_exact = getattr(schema[bag], "time_unit", None) != "ns"
        if not is_exact and all(type(name) is datetime for name in names_of_rows):
            # Python's own times end at microseconds, and would merge bags.
            names_of_rows = of_bag.to_numpy().astype("datetime64[ns]")
        bag_of_row = [positions.setdefault(name, len(positions)) for name in names_of_rows]
        rows = np.argsort(bag_of_row, kind="stable")
        all_single = all(schema[column] == nw.Float32 for column in features)
        dtype = nw.Float32 if all_single else nw.Float64
        # Column by column, because a whole frame with missing values can come out as objects.
        columns = [frame.get_column(column).cast(dtype).to_numpy() for column in features]
        if instance_labels is not None:
            instance_labels = frame.get_column(instance_labels).to_numpy()[rows]
        offsets = offsets_of(np.bincount(bag_of_row))
        names = [str(column) for column in features]
        X = np.column_stack(columns)[rows]
        return cls(X, offsets, list(positions), instance_labels, names, rows)

    @classmethod
    def concatenate(cls, parts: "Iterable[Bags]", ids: ArrayLike | None = None) -> Self:
        """Put the bags of several containers one after the other.

        Instance labels are kept where every part has them, names of features where all agree.
        Parts of one table keep their `rows`; several tables count as stacked in their order.

        Parameters
        ----------
        parts : iterable of Bags
            At least one, all with the same number of features.
        ids : array-like of shape (n_bags,), optional
            Distinct names of the joined bags. By default every bag keeps its id, unless every
            part just counts its bags from 0: then the result does so too.

        Examples
        --------
        >>> bags = Bags([[1.0], [2.0], [3.0]], offsets=[0, 2, 3])
        >>> Bags.concatenate([bags[1:], bags[:1]]).ids.tolist()
        [1, 0]
        >>> Bags.concatenate([bags, bags]).ids.tolist()
        [0, 1, 2, 3]
        """
        parts = list(parts)
        X = stacked([part.X for part in parts], [f"Part {index}" for index in range(len(parts))])
        counted = all(np.array_equal(part.ids, np.arange(len(part))) for part in parts)
        if ids is None and not counted:
            ids = joined([part.ids for part in parts])
        labels = [part.instance_labels for part in parts]
        labels = None if any(part is None for part in labels) else joined(labels)
        names: Any = parts[0].feature_names
        agreed = all(np.array_equal(part.feature_names, names) for part in parts)
        offsets = offsets_of(np.concatenate([part.sizes for part in parts]))
        bags = cls(X, offsets, ids, labels, names if agreed else None)
        bags.table_rows = TableRows.concatenated([part.table_rows for part in parts])
        return bags

    def with_features(
        self, X: ArrayLike | Features, feature_names: ArrayLike | None = None
    ) -> Self:
        """Give the same instances other features, in the same bags.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_new_features)
            One row per instance, in the order of the present `X`.
        feature_names : array-like of str of shape (n_new_features,), optional
            Names of the new columns; the present names are not kept.

        Examples
        --------
        >>> bags = Bags([[1.0], [2.0], [3.0]], offsets=[0, 2, 3])
        >>> bags.with_features(np.hstack([bags.X, -bags.X]))[1]
        array([[ 3., -3.]])
        """
        features = checked_features(X, "X")
        if features.shape[0] != self.n_instances:
            raise ValueError(f"X has {features.shape[0]} rows for {self.n_instances} instances.")
        names = checked_column(feature_names, features.shape[1], "feature_names")
        return self._replaced(X=features, feature_names=names)

    def in_table_order(self, values: ArrayLike) -> np.ndarray:
        """Put one answer per instance back into the order of the table's rows.

        Parameters
        ----------
        values : array-like of shape (n_instances,) or (n_instances, n_columns)
            In the order of `X`, as ``predict_instances``, ``annotate`` and their ``_proba`` forms
            return them.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_columns)
            Entry ``rows[i]`` is ``values[i]``: a new column of the table. An error if not every
            row has one answer, as in a selection of the bags: ``table.iloc[bags.rows]`` are the
            rows of a selection, in the order of its `X`.
        """
        answers = np.asarray(values)
        if answers.shape[:1] != (self.n_instances,):
            remedy = "np.repeat(values, bags.sizes, axis=0) gives every instance that of its bag"
            raise ValueError(
                f"values has shape {answers.shape} for {self.n_instances} instances: give one for "
                f"each, in the order of bags.X{f'; {remedy}' if len(answers) == len(self) else ''}."
            )
        return self.table_rows.in_table_order(answers)

    @property
    def rows(self) -> NDArray[np.intp]:
        """The row of the table that each instance stands in, of shape (n_instances,)."""
        return self.table_rows.positions

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features of an instance."""
        return self.X.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """The pair (n_bags, n_features): what scikit-learn takes for samples and features."""
        return len(self), self.n_features

    @property
    def dtype(self) -> np.dtype:
        """Type of the features."""
        return self.X.dtype

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of instances in each bag, of shape (n_bags,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __iter__(self) -> Iterator[Features]:
        return (self.X[start:stop] for start, stop in pairwise(self.offsets.tolist()))

    @overload
    def __getitem__(self, key: Position) -> Features: ...

    @overload
    def __getitem__(self, key: Selection) -> Self: ...

    def __getitem__(self, key: Position | Selection) -> Features | Self:
        key = bag_key(key, len(self))
        if isinstance(key, int):
            return self.X[self.offsets[key] : self.offsets[key + 1]]
        if isinstance(key, slice):
            start, stop = key.start, key.stop
            instances = slice(self.offsets[start], self.offsets[stop])
            offsets = self.offsets[start : stop + 1] - self.offsets[start]
        else:
            offsets = offsets_of(self.sizes[key])
            # Within a bag, a row's old and new positions differ by the same amount.
            shifts = self.offsets[key] - offsets[:-1]
            instances = np.arange(offsets[-1]) + np.repeat(shifts, np.diff(offsets))
        labels = self.instance_labels
        return self._replaced(
            X=self.X[instances],
            offsets=offsets,
            ids=self.ids[key],
            instance_labels=None if labels is None else labels[instances],
            table_rows=self.table_rows[instances],
        )

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        # Without this, numpy would stack bags of equal size into a 3-D array, and reject others.
        raise TypeError(
            "Bags are not an array. In a pipeline, wrap a transformer of arrays, as in "
            "OnInstances(StandardScaler()); elsewhere use bags.X, the instances of all bags."
        )

    def __repr__(self) -> str:
        counts = f"{len(self)} bags, {self.n_instances} instances, {self.n_features} features"
        return f"Bags({counts}, {self.dtype}{', sparse' if sparse.issparse(self.X) else ''})"

    def _repr_html_(self) -> str:
        return bags_html(self)

    def _replaced(self, **attributes):
        """Copy with some attributes replaced by others that need no check."""
        bags = copy.copy(self)
        vars(bags).update(attributes)
        return bags


# What an estimator takes for bags: a 2-D array has one instance per bag.
BagsLike: TypeAlias = Bags | Sequence[ArrayLike] | ArrayLike


def listed_bags(X: Any) -> Any:
    """Return a list of 2-D arrays as Bags, and anything else as it is."""
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
        return Bags.from_list(X)
    return X


def as_bags(X: Any) -> Any:
    """Return what estimators take for bags as Bags; those that are not in memory as they are."""
    X = listed_bags(X)
    return X if hasattr(X, "offsets") else Bags(X, np.arange(np.shape(X)[0] + 1))


def bag_key(key: Position | Selection, n_bags: int) -> int | slice | NDArray[np.intp]:
    """Reduce an index over bags to a position, a slice of neighbours or an array of positions.

    The key may sit in a tuple before ``...``, as scikit-learn writes it. In the answer nothing is
    negative, and a slice has both a start and a stop.
    """
    if isinstance(key, tuple):
        key, *rest = key
        if any(part is not Ellipsis and not _is_full_slice(part) for part in rest):
            raise IndexError("Only bags can be indexed; features are the columns of bags.X.")
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if not -n_bags <= key < n_bags:
            raise IndexError(f"There is no bag {key} among {n_bags} bags.")
        return int(key) % n_bags
    if isinstance(key, slice):
        start, stop, step = key.indices(n_bags)
        if step == 1:
            return slice(start, max(start, stop))
    positions = np.arange(n_bags)[key]
    if positions.ndim != 1:
        raise IndexError("Bags are indexed by an integer, a slice, or a 1-D mask or array.")
    return positions


def offsets_of(sizes: ArrayLike) -> NDArray[np.intp]:
    """Return where bags of these sizes begin and end, one after the other."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def _is_full_slice(part):
    return isinstance(part, slice) and part == slice(None)


class _Table:
    """A table that bags came from; each is equal to itself alone."""


class TableRows:
    """The row of a table, counted from 0, that each instance stands in.

    A range of neighbouring rows takes no memory. `table` distinguishes the table from others; by
    default it is like no other.
    """

    def __init__(
        self, rows: NDArray[np.intp] | range, n_rows: int, table: object | None = None
    ) -> None:
        self.rows = rows
        self.n_rows = n_rows
        self.table: object = _Table() if table is None else table

    @classmethod
    def checked(cls, rows: ArrayLike | None, n_instances: int) -> "TableRows":
        """Return the rows that are given; by default, those of the array of all instances."""
        if rows is None or not n_instances:
            return cls(range(n_instances), n_instances)
        column = checked_column(rows, n_instances, "rows")
        if column.dtype.kind not in "iu" or column.min() < 0:
            raise ValueError("rows must be integers from 0 on: where each row of X was in a table.")
        n_rows = int(column.max()) + 1
        if np.array_equal(column, np.arange(n_rows - n_instances, n_rows)):
            return cls(range(n_rows - n_instances, n_rows), n_rows)
        return cls(column.astype(np.intp, copy=False), n_rows)

    @classmethod
    def concatenated(cls, parts: "Sequence[TableRows]") -> "TableRows":
        """Join rows; different tables count as stacked, each where its first part comes."""
        first_row: dict[object, int] = {}
        n_rows = 0
        for part in parts:
            if part.table not in first_row:
                first_row[part.table] = n_rows
                n_rows += part.n_rows
        rows = np.concatenate([part.positions + first_row[part.table] for part in parts])
        return cls(rows, n_rows, parts[0].table if len(first_row) == 1 else None)

    @property
    def positions(self) -> NDArray[np.intp]:
        """The rows as an array of shape (n_instances,)."""
        if isinstance(self.rows, range):
            return np.arange(self.rows.start, self.rows.stop)
        return self.rows

    def __getitem__(self, instances: slice | np.ndarray) -> "TableRows":
        is_cut = isinstance(instances, slice)
        rows = self.rows[instances] if is_cut else self.positions[instances]
        return type(self)(rows, self.n_rows, self.table)

    def in_table_order(self, values: np.ndarray) -> np.ndarray:
        """Return one value per row of the table; an error if not each has exactly one."""
        is_held = np.zeros(self.n_rows, dtype=bool)
        is_held[self.positions] = True
        if len(values) != self.n_rows or not is_held.all():
            raise ValueError(
                "in_table_order needs the bags of the whole table, each row once; these are "
                f"{len(values)} instances from {is_held.sum()} of its {self.n_rows} rows. "
                "Answer for those alone: table.iloc[bags.rows] has the row of each instance, in "
                "the order of bags.X."
            )
        ordered = np.empty_like(values)
        ordered[self.positions] = values
        return ordered


# What people give, checked; errors name the bag.


def bag_name(bag: int, ids: np.ndarray) -> str:
    """Name a bag by its place, and by its id where that is another."""
    name = f"{words().bag.capitalize()} {bag}"
    return name if ids[bag] == bag else f"{name} (id {ids[bag]})"


def instance_name(bags: Bags, i: int) -> str:
    """Name an instance by its place in its bag, and the id of that."""
    b = bag_of(bags.offsets, i)
    instance = words().instance.capitalize()
    return f"{instance} {i - bags.offsets[b]} of {words().bag} {bags.ids[b]}"


def bag_of(offsets: np.ndarray, i: int) -> int:
    """Return the bag that instance `i` lies in."""
    # Among bags that begin at the same instance, only the last is not empty.
    return int(np.searchsorted(offsets, i, side="right")) - 1


def stacked(arrays: Sequence[Any], names: Sequence[str]) -> Any:
    """Put features one below the other; errors name those whose width differs."""
    if not arrays:
        raise ValueError("Without a bag the number of features is unknown: give at least one.")
    for array, name in zip(arrays, names, strict=True):
        if array.shape[1] != arrays[0].shape[1]:
            widths = f"{array.shape[1]} features but {names[0]} has {arrays[0].shape[1]}"
            raise ValueError(f"{name} has {widths}: all instances need the same features.")
    if not any(sparse.issparse(array) for array in arrays):
        return np.concatenate(arrays)
    rows = [array if sparse.issparse(array) else sparse.csr_matrix(array) for array in arrays]
    return sparse.vstack(rows, format="csr")


def joined(columns: Sequence[Any]) -> np.ndarray:
    """Concatenate 1-D arrays without turning numbers into strings."""
    # The type of a column without entries says nothing: an empty list reads as floats.
    columns = [value_array(column) for column in columns if len(column)] or [np.empty(0)]
    if len({column.dtype.kind == "U" for column in columns}) > 1:
        columns = [column.astype(object) for column in columns]
    if len({column.dtype for column in columns if column.dtype.kind in "iuf"}) > 1:
        # Signed and unsigned integers would come together as floats.
        return value_array([value for column in columns for value in column.tolist()])
    return np.concatenate(columns)


def value_array(values: ArrayLike) -> np.ndarray:
    """Return values as an array that holds each of them exactly, and an array as it is.

    A long text does not set the room for all of them, and integers are not rounded.
    """
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    # NumPy drops NULs at the end of a text.
    if any(
        isinstance(value, str) and (len(value) > WIDEST_TEXT or value[-1:] == "\0")
        for value in values
    ):
        return np.array(values, dtype=object)
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind != "f":
        return array
    # NumPy makes floats of integers where no type of integers holds all of them.
    whole = [int(value) for value in values if isinstance(value, int | np.integer)]
    if all(value == float(value) for value in whole):
        return array
    if len(whole) == len(values) and min(whole) >= 0:
        return np.array(whole, dtype=np.uint64)
    return np.array(values, dtype=object)


def checked_features(X: Any, name: str) -> Any:
    """Return features as a 2-D array or CSR matrix of floats."""
    is_sparse = sparse.issparse(X)
    X = X if is_sparse else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D, one row per instance, but has shape {X.shape}: reshape(1, -1) "
            "makes it one instance, reshape(-1, 1) one feature."
        )
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, but its dtype is {X.dtype}: convert it.")
    X = X.tocsr() if is_sparse else X
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def checked_column(values: ArrayLike | None, size: int, name: str) -> Any:
    """Return an array of shape (size,), or None without values."""
    if values is None:
        return None
    column = value_array(values)
    if column.shape != (size,):
        raise ValueError(f"{name} must be 1-D with {size} entries, but has shape {column.shape}.")
    return column


def checked_ids(ids: ArrayLike | None, n_bags: int) -> np.ndarray:
    """Return distinct ids of bags, by default their places."""
    if ids is None:
        return np.arange(n_bags)
    names = checked_column(ids, n_bags, "ids")
    first = {}
    for bag, name in enumerate(names.tolist()):
        if first.setdefault(name, bag) != bag:
            raise ValueError(
                f"Bag {bag} repeats the id {name!r} of bag {first[name]}: pass ids that differ."
            )
    return names


def checked_offsets(offsets: ArrayLike, n_instances: int, ids: np.ndarray) -> NDArray[np.intp]:
    """Return offsets that lead from 0 to the number of instances, and never fall."""
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or not offsets.size or offsets.dtype.kind not in "iu":
        found = f"shape {offsets.shape} and dtype {offsets.dtype}"
        raise ValueError(f"offsets must be a 1-D array of integers from 0 on, but has {found}.")
    # Differences of unsigned integers would wrap around instead of turning negative.
    offsets = offsets.astype(np.intp, copy=False)
    falls = np.flatnonzero(np.diff(offsets) < 0)
    if falls.size:
        start, stop = offsets[falls[0] : falls[0] + 2]
        name = bag_name(falls[0], ids)
        raise ValueError(f"{name} begins at {start} but ends at {stop}: offsets must not fall.")
    if offsets[0] != 0 or offsets[-1] != n_instances:
        raise ValueError(
            f"The first bag begins at instance {offsets[0]} and the last ends at {offsets[-1]}: "
            f"offsets must lead from 0 to {n_instances}, the number of instances."
        )
    return offsets


# The one search for what is NaN or infinite: the caller says whose number it is.


class NonFinite(NamedTuple):
    """An entry of an array that is NaN or infinite."""

    row: int
    column: int
    value: float


def first_nonfinite(X: np.ndarray | Any) -> NonFinite | None:
    """Find the first entry, row by row, that is NaN or infinite; None if all are finite."""
    if sparse.issparse(X):
        return _first_of_sparse(X)
    # Where all is well, one sum tells, and no array is made.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(X)):
            return None
    # The sum of large numbers may be infinite when none of them is.
    n_rows = max(1, BLOCK_ENTRIES // X.shape[1])
    for start in range(0, X.shape[0], n_rows):
        finite = np.isfinite(X[start : start + n_rows])
        if not finite.all():
            row, column = np.unravel_index(finite.argmin(), finite.shape)
            row = start + int(row)
            return NonFinite(row, int(column), X[row, column].item())
    return None


def _first_of_sparse(matrix: Any) -> NonFinite | None:
    X = matrix.tocsr()
    found = first_nonfinite(X.data[:, None])
    if found is None:
        return None
    row = int(np.searchsorted(X.indptr, found.row, side="right")) - 1
    # The columns of a row may be stored in any order.
    entries = slice(X.indptr[row], X.indptr[row + 1])
    columns, values = X.indices[entries], X.data[entries]
    bad = np.flatnonzero(~np.isfinite(values))
    first = bad[columns[bad].argmin()]
    return NonFinite(row, int(columns[first]), values[first].item())
