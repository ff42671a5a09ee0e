"""MATLAB files of bags: a cell array with one matrix per bag, and a matrix of targets.

Variables are read here, and not by SciPy: its compiled reader trusts what a file declares,
and a damaged one can crash the process. Every number in a file is checked against the bytes
that are there before it is used: an element lies within the one that holds it, dimensions fit the
payload, and compressed variables are unpacked no further than they declare. Other variables are not
unpacked at all.

A file of level 5 (versions 5 to 7) is a header of 128 bytes and a sequence of elements: a tag
with a type and a number of bytes, and the bytes, filled up to a multiple of eight. A variable is an
element of the type ``MATRIX``, possibly within a compressed one, whose payload is a sequence of
elements again: flags, dimensions, name, and values; those of a cell array are such matrices.
"""

import math
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import numpy as np
from scipy import sparse

from unbag._files import (
    DataError,
    PathLike,
    check,
    check_unpacked,
    existing_file,
    faults_at,
    refuse,
    unreadable,
    writing,
)
from unbag._messages import listed, shortened
from unbag.bags import Bags
from unbag.io.arrays import (
    bag_table,
    check_no_groups,
    checked_bags,
    dense,
    feature_names,
    instance_label_codes,
)
from unbag.io.bag_table import BagTable, object_array
from unbag.labels import LabelSets
from unbag.tagging import normal_spelling

# Names that are in use for the same thing; the first is written.
NAMES = {
    "bags": ("bags", "data", "bag"),
    "targets": ("targets", "target", "labels"),
    "class_name": ("class_name", "class_names", "classes"),
    "unknown": ("unknown",),
    "instance_labels": ("instance_labels",),
    "feature_name": ("feature_name", "feature_names"),
    "ids": ("ids", "bag_ids"),
}
ALL_NAMES = [name for names in NAMES.values() for name in names]

ByteOrder: TypeAlias = Literal["<", ">"]

HEADER_BYTES = 128
VERSIONS_OF_HDF5 = (b"\0\2IM", b"\2\0MI")
# Enough for flags, dimensions and name of any variable.
HEAD_BYTES = 1024
MOST_DIMENSIONS = 32
# Cells within cells.
DEEPEST = 16

# Types of elements.
NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
INT8, UINT8, UINT16, INT32, UINT32 = 1, 2, 4, 5, 6
MATRIX, COMPRESSED, UTF8, UTF16, UTF32 = 14, 15, 16, 17, 18
# Classes of variables.
CELL, CHAR, SPARSE, SINGLE, OPAQUE = 1, 4, 5, 7, 17
CLASS_NAMES = {
    CELL: "cell", 2: "struct", 3: "object", CHAR: "char", SPARSE: "sparse", 6: "double",
    SINGLE: "single", 8: "int8", 9: "uint8", 10: "int16", 11: "uint16", 12: "int32", 13: "uint32",
    14: "int64", 15: "uint64", 16: "function", OPAQUE: "opaque",
}  # fmt: skip
NUMERIC_CLASSES = range(6, 16)
IS_LOGICAL, IS_COMPLEX = 0x02, 0x08


def read_mat(path: PathLike) -> BagTable:
    """Read bags from a MATLAB file.

    Parameters
    ----------
    path : str or path
        Of version 5, 6 or 7. Holds ``bags`` (or ``data``), a cell array with one matrix per bag,
        a row per instance; and ``targets`` (or ``target``), a class per row and a bag per column,
        or the other way round, of 1 and -1 (0 is then unknown) or of 1 and 0. Perhaps
        ``class_name`` and ``feature_name``, cell arrays of text; ``ids``, one per bag;
        ``unknown``, a mask of the shape of the targets; ``instance_labels``, a cell array with
        one vector per bag, of classes counted from 1, 0 where the label is not known.

    Returns
    -------
    BagTable

    Notes
    -----
    If all matrices have the same number of rows, but not of columns, instances are their columns.
    If there are as many classes as bags, a column of the targets is a bag.
    """
    path = existing_file(path)
    content = load_variables(path, ALL_NAMES)
    arrays = _bag_matrices(path, _cells(path, content, "bags"))
    indicator = _indicator(path, content, len(arrays))
    n_classes = indicator.shape[1]
    names = _texts(path, content, "class_name", n_classes)
    names = [normal_spelling(name) for name in names or map(str, range(1, n_classes + 1))]
    with faults_at(path):
        labels = LabelSets(indicator, names)
        bags = Bags.from_list(arrays, ids=_ids(path, content, len(arrays)))
        known = _instance_labels(path, content, bags, names)
        features = _texts(path, content, "feature_name", bags.n_features)
        bags = Bags(bags.X, bags.offsets, bags.ids, known, features or None)
        return bag_table(path, checked_bags(path, bags, labels), labels)


def _found(content, what):
    """Return the value of the first of the names that the file has; None if it has none."""
    by_lower = {name.lower(): value for name, value in content.items()}
    return next((by_lower[name] for name in NAMES[what] if name in by_lower), None)


def _needed(path, content, what, is_cells):
    value = _found(content, what)
    if value is None or not (value.dtype == object if is_cells else _is_numeric(value)):
        kind, names = "cell array" if is_cells else "matrix", " or ".join(NAMES[what])
        raise DataError(f"{path} has no {kind} {names}; it has {listed(list_variables(path))}.")
    return value


def _is_numeric(value):
    return value.dtype.kind in "biuf"


def _dense(path, what, matrix):
    """Return a matrix as an array; a sparse one may be far larger than its file."""
    check_unpacked(f"{path}, {what}", 8 * math.prod(matrix.shape), path.stat().st_size)
    return dense(matrix)


def _cells(path, content, what):
    cells = _needed(path, content, what, is_cells=True)
    return [cells[place] for place in np.ndindex(cells.shape)]


def _bag_matrices(path, cells):
    arrays = []
    for bag, cell in enumerate(cells):
        check(
            _is_numeric(cell) and cell.ndim == 2,
            f"{path}: bag {bag + 1} is not a matrix of numbers.",
        )
        # Not an integer matrix: numbers of any kind become float64, single stays single.
        arrays.append(cell if cell.dtype == np.float32 else cell.astype(np.float64))
    filled = [array.shape for array in arrays if min(array.shape)]
    check(filled, f"{path}: all bags are empty, so there are no features.")
    widths, heights = {width for _, width in filled}, {height for height, _ in filled}
    if len(widths) > 1:
        refuse(
            (b for b, a in enumerate(arrays) if len(heights) > 1 and a.shape[1] != filled[0][1]),
            lambda bag: (
                f"{path}: bag {bag + 1} has {arrays[bag].shape[1]} columns, but others "
                f"have {filled[0][1]}: all instances need the same features."
            ),
        )
        arrays, widths = [array.T for array in arrays], heights
    (width,) = widths
    return [array if min(array.shape) else np.empty((0, width)) for array in arrays]


def _indicator(path, content, n_bags):
    targets = _dense(path, "targets", _needed(path, content, "targets", is_cells=False))
    unknown = _found(content, "unknown")
    check(
        targets.ndim == 2 and n_bags in targets.shape,
        f"{path}: targets have shape {targets.shape}, but there are {n_bags} bags: give one column "
        "per bag.",
    )
    refuse(
        targets[~np.isin(targets, [-1, 0, 1])],
        lambda wrong: f"{path}: targets must be 1 and -1, or 1 and 0, but one is {wrong}.",
    )
    if unknown is None:
        # Where absent labels are -1, those that are not known are 0.
        unknown = (targets == 0) & (targets == -1).any()
    check(
        unknown.shape == targets.shape and _is_numeric(unknown),
        f"{path}: unknown must have the shape of the targets.",
    )
    unknown = dense(unknown)
    indicator = np.where(unknown != 0, -1, np.where(targets == 1, 1, 0))
    return indicator.T if targets.shape[1] == n_bags else indicator


def _texts(path, content, what, size):
    """Return texts of a cell array or of rows of characters; none if it is not there."""
    value = _found(content, what)
    if value is None:
        return []
    refuse(
        (each for each in np.ravel(value) if not _is_text(each)),
        lambda each: f"{path}: a {what} must be text, but holds {np.asarray(each).dtype}.",
    )
    texts = [str(np.ravel(each)[0]) if np.size(each) else "" for each in np.ravel(value)]
    check(len(texts) == size, f"{path} has {len(texts)} {what}s, but {size} are needed.")
    # The rows of a character matrix are filled up with spaces.
    return texts if value.dtype == object else [text.rstrip() for text in texts]


def _is_text(value):
    return not sparse.issparse(value) and np.asarray(value).dtype.kind in "Ubiuf"


def _ids(path, content, n_bags):
    value = _found(content, "ids")
    if value is not None and value.dtype.kind in "iuf" and math.prod(value.shape) == n_bags:
        values = np.ravel(dense(value))
        check(np.isfinite(values).all(), f"{path}: ids must be finite.")
        is_whole = (values == np.floor(values)).all() and (abs(values) < 2**53).all()
        return values.astype(np.int64) if is_whole else values
    return _texts(path, content, "ids", n_bags) or None


def _instance_labels(path, content, bags, names):
    if _found(content, "instance_labels") is None:
        return None
    cells = _cells(path, content, "instance_labels")
    check(
        [math.prod(cell.shape) for cell in cells] == bags.sizes.tolist()
        and all(map(_is_numeric, cells)),
        f"{path}: instance_labels need one vector per bag, one entry per instance.",
    )
    codes = np.concatenate([np.ravel(dense(cell)) for cell in cells])
    check(
        np.isin(codes, np.arange(len(names) + 1)).all(),
        f"{path}: instance_labels must be whole numbers from 0 to {len(names)}.",
    )
    return np.array([None, *names], dtype=object)[codes.astype(np.int64)]


def write_mat(path: PathLike, bags: Bags, labels: LabelSets) -> None:
    """Write bags as a MATLAB file of version 7; the inverse of `read_mat`.

    Parameters
    ----------
    path : str or path
    bags : Bags
        Its instance labels must be classes of `labels`, or not known.
    labels : LabelSets
    """
    from scipy.io import savemat

    check_no_groups(path, labels, ".mat")
    content = {
        "bags": _cell_array(list(bags)),
        "targets": np.where(labels.required, 1.0, np.where(labels.optional, 0.0, -1.0)).T,
        "class_name": _cell_array([str(name) for name in labels.classes]),
        "feature_name": _cell_array(feature_names(bags)),
        "ids": bags.ids[:, None]
        if bags.ids.dtype.kind in "iuf"
        else _cell_array([str(name) for name in bags.ids]),
    }
    if labels.optional.any():
        content["unknown"] = labels.optional.T.astype(np.uint8)
    if bags.instance_labels is not None:
        codes = instance_label_codes(bags, labels, ".mat") + 1.0
        parts = np.split(codes, bags.offsets[1:-1])
        content["instance_labels"] = _cell_array([part[:, None] for part in parts])
    with writing(path) as file:
        savemat(file, content, do_compression=True)


def _cell_array(values):
    return object_array(values)[:, None]


# Variables.


class DamageError(ValueError):
    """A contradiction in a file, which the message describes."""


def demand(condition: object, what: str) -> None:
    """Raise a DamageError unless a condition holds."""
    if not condition:
        raise DamageError(what)


@dataclass(frozen=True)
class Head:
    """The description of a variable, before its values."""

    name: str
    matlab_class: int
    is_complex: bool
    is_logical: bool
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.shape} {CLASS_NAMES[self.matlab_class]}"


def is_level_4(beginning: bytes) -> bool:
    """Return whether a file begins as those of level 4 do: with a type of a matrix, below 5000.

    Examples
    --------
    >>> is_level_4(bytes(20)), is_level_4(b"MATLAB 5.0 MAT-file")
    (True, False)
    """
    codes = {int.from_bytes(beginning[:4], order) for order in ("little", "big")}
    return len(beginning) >= 20 and min(codes) < 5000


def load_variables(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Read those of some variables that a MATLAB file of version 5, 6 or 7 has.

    Numbers are as they are stored, text is an array of strings, one per row, and a cell array an
    array of objects. A struct, or anything else, is an array of type void.
    """
    return {head.name: value for head, value in _checked(path, names) if head.name in names}


def list_variables(path: Path) -> list[str]:
    """Return name, shape and class of each variable in a MATLAB file, in words."""
    return [str(head) for head, _ in _checked(path, ())]


def _checked(path: Path, names: Collection[str]) -> Iterator[tuple[Head, Any]]:
    """Yield the head of each variable, and its value if its name is among `names`."""
    where = "its beginning"
    try:
        with path.open("rb") as file:
            beginning = file.read(HEADER_BYTES)
            check(
                b"MATLAB 7.3" not in beginning and beginning[124:] not in VERSIONS_OF_HDF5,
                f"{path} is in MATLAB's format 7.3, which is HDF5: load it in MATLAB and save its "
                "variables with the option '-v7'.",
            )
            check(
                not is_level_4(beginning),
                f"{path} is in MATLAB's format 4: load it in MATLAB and save its variables with "
                "the option '-v7'.",
            )
            for number, (head, read) in enumerate(_variables(file, path), 1):
                where = f"variable {shortened(head.name)}"
                yield head, read() if head.name in names else None
                where = f"what follows variable {number}"
    except OSError as error:
        raise unreadable(path, error) from error
    except (DamageError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} cannot be read: it is not a MATLAB file, or is damaged ({where}: {error})."
        ) from error


def _variables(file: BinaryIO, path: Path) -> Iterator[tuple[Head, Any]]:
    size = path.stat().st_size
    file.seek(HEADER_BYTES - 4)
    version = file.read(4)
    demand(version in (b"\0\1IM", b"\1\0MI"), "it names no version that is known")
    order: ByteOrder = "<" if version[2:] == b"IM" else ">"
    position = HEADER_BYTES
    while position < size:
        file.seek(position)
        kind, n_bytes = _Elements(file.read(8), order).full_tag()
        start, position = position + 8, position + 8 + n_bytes
        demand(n_bytes, "an element is empty")
        demand(position <= size, "the file ends within an element")
        beginning, declared = file.read(min(n_bytes, HEAD_BYTES)), None
        if kind == COMPRESSED:
            beginning = zlib.decompressobj().decompress(beginning, HEAD_BYTES)
            kind, declared = _Elements(beginning, order).full_tag()
            beginning = beginning[8:]
        demand(kind == MATRIX, f"an element of type {kind} is not a variable")
        head = _head_of(_Elements(beginning, order))

        def read(start=start, n_bytes=n_bytes, declared=declared, head=head):
            where = f"{path}, variable {shortened(head.name)}"
            file.seek(start)
            if declared is None:
                content = file.read(n_bytes)
            else:
                check_unpacked(where, declared, n_bytes)
                content = _unpacked(file.read(n_bytes), declared)
            return _Values(where, n_bytes).after_head(_Elements(content, order))

        yield head, read


def _unpacked(stored, declared):
    """Unpack a compressed variable, without its tag, and make sure that nothing follows."""
    stream = zlib.decompressobj()
    content = stream.decompress(stored, 8 + declared)
    demand(len(content) == 8 + declared, "it ends before its declared size")
    # The checksum is looked at only where the stream ends, perhaps after bytes that fill it up.
    stream.decompress(stream.unconsumed_tail, 8)
    demand(stream.eof, "it goes on after its declared size, or is cut")
    return memoryview(content)[8:]


class _Elements:
    """Elements one after the other in some bytes; none is taken that does not lie within them."""

    def __init__(self, content: Any, order: ByteOrder) -> None:
        self.content: memoryview = memoryview(content)
        self.order: ByteOrder = order
        self.position: int = 0

    @property
    def n_left(self) -> int:
        """Number of bytes that have not been taken yet."""
        return len(self.content) - self.position

    def _whole_number(self, place, n_bytes):
        content = self.content[place : place + n_bytes]
        return int.from_bytes(content, "little" if self.order == "<" else "big")

    def full_tag(self) -> tuple[int, int]:
        """Return type and number of bytes of the next element, which must not be a small one."""
        demand(self.n_left >= 8, "it ends within a tag")
        place = self.position
        self.position += 8
        return self._whole_number(place, 4), self._whole_number(place + 4, 4)

    def take(self) -> tuple[int, memoryview]:
        """Return type and bytes of the next element."""
        kind, n_bytes = self.full_tag()
        if kind >> 16:
            # A small element has its bytes in its tag, where others have their number.
            kind, n_bytes = kind & 0xFFFF, kind >> 16
            demand(n_bytes <= 4, f"a small element has {n_bytes} bytes")
            return kind, self.content[self.position - 4 : self.position - 4 + n_bytes]
        demand(n_bytes <= self.n_left, f"an element of {n_bytes} bytes has {self.n_left}")
        content = self.content[self.position : self.position + n_bytes]
        self.position = min(self.position + n_bytes + -n_bytes % 8, len(self.content))
        return kind, content

    def numbers(self, kinds: Collection[int] = tuple(NUMBERS)) -> np.ndarray:
        """Return the next element, of one of some types of numbers, as an array of its own."""
        kind, content = self.take()
        demand(kind in kinds, f"numbers are of type {kind}")
        dtype = np.dtype(NUMBERS[kind])
        demand(
            len(content) % dtype.itemsize == 0, f"{len(content)} bytes do not make whole numbers"
        )
        # A copy, so that the bytes of the variable need not stay.
        return np.frombuffer(content, dtype.newbyteorder(self.order)).astype(dtype)


def _head_of(elements):
    flags = elements.numbers([UINT32])
    demand(flags.size == 2, "flags have a wrong size")
    matlab_class, bits = int(flags[0]) & 0xFF, int(flags[0]) >> 8
    demand(matlab_class in CLASS_NAMES, f"there is no class {matlab_class}")
    # Objects of newer kinds have no dimensions.
    shape = (1, 1)
    if matlab_class != OPAQUE:
        dimensions = elements.numbers([INT32, UINT32])
        demand(2 <= dimensions.size <= MOST_DIMENSIONS, f"it has {dimensions.size} dimensions")
        shape = tuple(dimensions.tolist())
        demand(min(shape) >= 0, f"its shape is {shape}")
    kind, name = elements.take()
    demand(kind in (INT8, UINT8, UTF8), f"its name is of type {kind}")
    is_complex, is_logical = bool(bits & IS_COMPLEX), bool(bits & IS_LOGICAL)
    return Head(str(name, "utf-8"), matlab_class, is_complex, is_logical, shape)


class _Values:
    """Reads the value of a variable, which takes `stored_bytes` in the file."""

    def __init__(self, where: str, stored_bytes: int) -> None:
        self.where: str = where
        self.stored_bytes: int = stored_bytes
        self.n_sparse_rows: int = 0

    def after_head(self, elements: _Elements, depth: int = 0) -> Any:
        """Return the value of a matrix whose elements begin with its head."""
        head = _head_of(elements)
        if head.matlab_class == CELL:
            return self._cells(elements, head, depth)
        if head.matlab_class == CHAR:
            return _text(elements, head)
        if head.matlab_class == SPARSE:
            return self._sparse(elements, head)
        if head.matlab_class not in NUMERIC_CLASSES:
            return np.empty((1, 1), dtype="V1")
        values = _numbers(elements, head)
        n_values = math.prod(head.shape)
        demand(values.size == n_values, f"{values.size} numbers have the shape {head.shape}")
        if head.matlab_class == SINGLE and not head.is_complex:
            # Whole numbers may be stored as such.
            values = values.astype(np.float32)
        return values.reshape(head.shape, order="F")

    def _cells(self, elements, head, depth):
        n_cells = math.prod(head.shape)
        demand(depth < DEEPEST, f"there are more than {DEEPEST} cell arrays within each other")
        demand(8 * n_cells <= elements.n_left, f"{n_cells} cells are more than it has bytes for")
        # One array for all empty cells, which take no more than their tags in the file.
        empty = np.empty((0, 0))
        cells = np.empty(n_cells, dtype=object)
        for place in range(n_cells):
            kind, content = elements.take()
            demand(kind == MATRIX, f"cell {place + 1} is of type {kind}")
            inner = _Elements(content, elements.order)
            cells[place] = self.after_head(inner, depth + 1) if len(content) else empty
        return cells.reshape(head.shape, order="F")

    def _sparse(self, elements, head):
        demand(len(head.shape) == 2, f"a sparse matrix has the shape {head.shape}")
        places = elements.numbers([INT32, UINT32]).astype(np.int64)
        starts = elements.numbers([INT32, UINT32]).astype(np.int64)
        if head.is_logical:
            # Of a byte each, whatever type they declare.
            values = np.frombuffer(bytes(elements.take()[1]), np.uint8)
        else:
            values = _numbers(elements, head)
        n_columns = starts.size - 1
        demand(n_columns == head.shape[1], f"{n_columns} columns have the shape {head.shape}")
        # There may be room for more entries than there are.
        n_entries = int(starts[-1])
        demand(n_entries <= min(places.size, values.size), f"it has less than {n_entries} entries")
        # Rows without entries take nothing in the file, but do wherever rows are counted.
        self.n_sparse_rows += head.shape[0]
        check_unpacked(self.where, 8 * self.n_sparse_rows, self.stored_bytes)
        places, values = places[:n_entries], values[:n_entries]
        demand(starts[0] == 0 and (np.diff(starts) >= 0).all(), "columns overlap")
        demand(
            not n_entries or 0 <= places.min() <= places.max() < head.shape[0],
            f"an entry lies outside of the shape {head.shape}",
        )
        return sparse.csc_array((values, places, starts), shape=head.shape)


def _numbers(elements, head):
    """Return numbers, complex ones if the head is of such."""
    real = elements.numbers()
    if not head.is_complex:
        return real
    imaginary = elements.numbers()
    demand(imaginary.size == real.size, "real and imaginary parts differ in number")
    return real + 1j * imaginary


def _text(elements, head):
    """Return an array of strings, one for each row of characters."""
    n_characters = math.prod(head.shape)
    if not n_characters:
        return np.empty(0, dtype="U1")
    kind, content = elements.take()
    wide = "le" if elements.order == "<" else "be"
    codecs = {INT8: "latin-1", UINT8: "latin-1", UTF8: "utf-8", UINT16: f"utf-16-{wide}",
              UTF16: f"utf-16-{wide}", UTF32: f"utf-32-{wide}"}  # fmt: skip
    demand(kind in codecs, f"characters are of type {kind}")
    text = str(content, codecs[kind])
    *rows, width = head.shape
    if math.prod(rows) == 1:
        # MATLAB counts a character beyond the first 65,536 as two.
        n_units = len(text.encode("utf-16-le")) // 2
        demand(width in (len(text), n_units), f"{len(text)} characters have a width of {width}")
        return np.array([text]).reshape(rows)
    demand(len(text) == n_characters, f"{len(text)} characters have the shape {head.shape}")
    characters = np.array(list(text)).reshape(head.shape, order="F")
    return np.ascontiguousarray(characters).view(f"U{width}")[..., 0]
