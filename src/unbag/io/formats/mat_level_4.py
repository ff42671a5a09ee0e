"""MATLAB files of level 4, which hold matrices only: numbers, text and sparse ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from unbag._files import check_unpacked
from unbag._messages import shortened

from .mat_variables import CHAR, SPARSE, ByteOrder, Head, demand, file_size, sparse_matrix

HEAD_BYTES = 20
DOUBLE = 6
DTYPES = ["f8", "f4", "i4", "i2", "u2", "u1"]
CLASSES = [DOUBLE, CHAR, SPARSE]


def variables_of_level_4(file: BinaryIO, path: Path) -> Iterator[tuple[Head, Any]]:
    """Yield what each variable says of itself, and the function that reads it.

    Parameters
    ----------
    file : binary file
    path : Path
        For messages.
    """
    position, size = 0, file_size(file)
    while position < size:
        file.seek(position)
        demand(size - position >= HEAD_BYTES, "the file ends within a head")
        content = file.read(HEAD_BYTES)
        order: ByteOrder = (
            "<" if 0 <= int.from_bytes(content[:4], "little", signed=True) < 5000 else ">"
        )
        code, n_rows, n_columns, is_complex, n_name = np.frombuffer(content, f"{order}i4").tolist()
        machine, rest = divmod(code, 1000)
        reserved, rest = divmod(rest, 100)
        precision, kind = divmod(rest, 10)
        is_known = machine in (0, 1) and reserved == 0 and kind < 3 and precision < len(DTYPES)
        demand(is_known, f"there is no type {code}")
        shape = n_rows, n_columns
        demand(min(shape) >= 0, f"its shape is {shape}")
        demand(is_complex in (0, 1), f"its flag of complex numbers is {is_complex}")
        demand(0 < n_name <= size - position - HEAD_BYTES, f"its name has {n_name} bytes")
        name = file.read(n_name).rstrip(b"\0").decode("latin-1")
        dtype = np.dtype(DTYPES[precision])
        start = position + HEAD_BYTES + n_name
        n_values = (1 + is_complex) * n_rows * n_columns
        position = start + n_values * dtype.itemsize
        demand(position <= size, f"{size - start} bytes cannot have the shape {shape}")
        head = Head(name, CLASSES[kind], bool(is_complex), False, shape)

        stored_dtype = dtype.newbyteorder(order)

        def read(start=start, end=position, dtype=dtype, stored_dtype=stored_dtype, head=head):
            file.seek(start)
            values = np.frombuffer(file.read(end - start), stored_dtype).astype(dtype)
            return _value(values, head, f"{path}, variable {shortened(head.name)}", end - start)

        yield head, read


def _value(values, head, where, stored_bytes):
    if head.is_complex:
        demand(head.matlab_class == DOUBLE, "text or a sparse matrix has imaginary parts")
        real, imaginary = values.reshape(2, -1)
        values = real + 1j * imaginary
    matrix = values.reshape(head.shape, order="F")
    if head.matlab_class == CHAR:
        # Rows without characters take nothing in the file, however many there are.
        if not matrix.size:
            return np.empty(0, dtype="U1")
        demand(0 <= matrix.min() <= matrix.max() < 0xD800, "a number is no character")
        return np.array(["".join(map(chr, row)) for row in matrix.astype(int).tolist()], dtype=str)
    return _sparse(matrix, where, stored_bytes) if head.matlab_class == SPARSE else matrix


def _sparse(entries, where, stored_bytes):
    """Make a sparse matrix of rows, columns and values; the last line has its shape."""
    demand(entries.shape[0] and entries.shape[1] == 3, f"entries have the shape {entries.shape}")
    whole = entries[:, :2].astype(np.float64)
    demand(
        np.isfinite(whole).all()
        and (whole == np.floor(whole)).all()
        and (abs(whole) < 2**31).all(),
        "rows and columns are no whole numbers",
    )
    places = whole.astype(np.int64)
    shape = tuple(places[-1].tolist())
    rows, columns, values = places[:-1, 0] - 1, places[:-1, 1] - 1, entries[:-1, 2]
    demand(min(shape) >= 0, f"its shape is {shape}")
    demand(
        not columns.size or 0 <= columns.min() <= columns.max() < shape[1],
        f"an entry lies outside of the shape {shape}",
    )
    check_unpacked(where, 8 * (shape[0] + shape[1]), stored_bytes)
    order = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[order], np.arange(shape[1] + 1))
    return sparse_matrix(shape, rows[order], starts, values[order])
