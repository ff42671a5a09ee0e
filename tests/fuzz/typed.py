"""Files in which values have other types, shapes and sizes than they should."""

import datetime
import decimal
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fuzz.content import ARROW, arrow_bytes, draw_content, npz_arrays
from fuzz.content import wide_table as wide_table_of
from fuzz.damage import valid_text
from fuzz.reading import attempt, attempt_rewriting
from unbag.tables import Roles

CARRIED = Roles(carry=("start", "end", "note"))


def arrow_column(rng: np.random.Generator, size: int) -> pa.Array:
    """Draw a column of any type that Arrow has."""
    day = datetime.date(2024, 2, 29)
    moment = datetime.datetime(2024, 2, 29, 5, 30)
    makers: list[Any] = [
        lambda: pa.array([{"a": i} for i in range(size)]),
        lambda: pa.array([[("a", i)] for i in range(size)], pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([bytes([i % 256, 0xFF]) for i in range(size)], pa.binary()),
        lambda: pa.array([b"ab"] * size, pa.binary(2)),
        lambda: pa.array([moment] * size, pa.timestamp("ns")),
        lambda: pa.array(np.arange(size), pa.timestamp("ns", tz="Europe/Berlin")),
        lambda: pa.array([day] * size),
        lambda: pa.array(np.arange(size), pa.time64("ns")),
        lambda: pa.array(np.arange(size), pa.duration("ns")),
        lambda: pa.array([decimal.Decimal("1.50")] * size),
        lambda: pa.array([decimal.Decimal("1e30")] * size),
        lambda: pa.array([None] * size),
        lambda: pa.array([bool(i % 2) for i in range(size)]),
        lambda: pa.array(np.arange(size), pa.int8()),
        lambda: pa.array(np.arange(size, dtype=np.uint64) + np.uint64(2**63)),
        lambda: pa.array(np.arange(size) + 2**53, pa.int64()),
        lambda: pa.array(np.arange(size, dtype=np.float16)),
        lambda: pa.array(np.full(size, np.nan)),
        lambda: pa.array(np.full(size, np.inf, np.float32)),
        lambda: pa.array(np.full(size, 1e308)),
        lambda: pa.array([[1.0] * (i % 3) for i in range(size)]),
        lambda: pa.array([[] for _ in range(size)], pa.list_(pa.float64())),
        lambda: pa.array([[[1.0]] for _ in range(size)]),
        lambda: pa.array([None if i % 2 else [1.0] for i in range(size)]),
        lambda: pa.array([["wren", "?owl"] for _ in range(size)]),
        lambda: pa.array([["wren", None] for _ in range(size)]),
        lambda: pa.array([[1.0, 2.0]] * size, pa.list_(pa.float64(), 2)),
        lambda: pa.array([[1, 2]] * size, pa.large_list(pa.int64())),
        lambda: pa.array([1, "a"][:1] * size).dictionary_encode(),
        lambda: pa.array([valid_text(rng) for _ in range(size)]),
        lambda: pa.array([valid_text(rng) for _ in range(size)]).dictionary_encode(),
        lambda: pa.array([None if i % 2 else "wren" for i in range(size)]),
        lambda: pa.array(["wren"] * size, pa.large_string()),
        lambda: pa.array(["wren"] * size, pa.string_view()),
        lambda: pa.array([1.5 if i else None for i in range(size)]),
    ]
    while True:
        try:
            return makers[rng.integers(len(makers))]()
        except (pa.ArrowException, AttributeError):
            # Types that this Arrow cannot make.
            continue


def changed_arrow(rng: np.random.Generator, folder: Path) -> None:
    """A table of Arrow in which columns have other types."""
    content = draw_content(rng)
    is_wide = rng.random() < 0.3
    table = wide_table_of(content) if is_wide else pa.Table.from_pylist(content.rows())
    for _ in range(rng.integers(1, 3)):
        place = int(rng.integers(table.num_columns))
        name = table.column_names[place] if rng.random() < 0.9 else valid_text(rng)
        table = table.set_column(place, name, arrow_column(rng, table.num_rows))
    if rng.random() < 0.05:
        table = table.slice(0, 0)
    path = folder / f"nights{ARROW[rng.integers(len(ARROW))]}"
    try:
        data = arrow_bytes(table, path.suffix)
    except (pa.ArrowException, TypeError, ValueError, KeyError):
        # The format has no place for the type.
        data = arrow_bytes(pa.Table.from_pylist(content.rows()), path.suffix)
    path.write_bytes(data)
    usual = Roles() if is_wide else CARRIED
    roles = [usual, Roles(), Roles(features=("x0",)), Roles(unknown="note", carry=("start", "end")),
             Roles(instance_id="note"), Roles(carry=table.column_names[4:5])]  # fmt: skip
    found = attempt(path, roles[rng.integers(len(roles))], rng, need_labels=rng.random() < 0.5)
    if rng.random() < 0.3:
        attempt_rewriting(found, rng)


def draw_array(rng: np.random.Generator, old: Any) -> np.ndarray:
    """Draw an array of another type, shape or range than an old one."""
    old = np.asarray(old)
    numbers = old.astype(float, copy=True) if old.dtype.kind in "iufb" else np.zeros(old.shape)
    if numbers.size:
        wild = [np.nan, np.inf, -1, 1e308, 1e18, 2**31, 2**63, 0.5, -2]
        numbers.flat[rng.integers(numbers.size)] = wild[rng.integers(len(wild))]
    with np.errstate(invalid="ignore", over="ignore"):
        makers: list[Any] = [
            lambda: numbers,
            lambda: numbers.astype(np.int64),
            lambda: numbers.astype(np.uint8),
            lambda: numbers.astype(np.float16),
            lambda: numbers.astype(np.longdouble),
            lambda: numbers.astype(">f4"),
            lambda: numbers.astype(complex),
            lambda: numbers.astype(bool),
            lambda: numbers.astype("S"),
            lambda: np.full(old.shape, valid_text(rng)[:50]),
            lambda: np.full(old.shape, "wren"),
            lambda: np.zeros(old.shape, "M8[ns]"),
            lambda: np.zeros(old.shape, "m8[s]"),
            lambda: np.zeros(old.shape, "V8"),
            lambda: np.zeros(old.shape, [("a", "f8"), ("b", "i4")]),
            lambda: old[..., None],
            lambda: old.ravel(),
            lambda: old.T,
            lambda: old[:0],
            lambda: np.concatenate([old, old]),
            lambda: old[:-1],
            lambda: old[()] if old.ndim == 0 else old.flat[:1].reshape(()),
            lambda: np.empty((0, 5)),
            lambda: np.array(7),
        ]
        while True:
            try:
                return np.asarray(makers[rng.integers(len(makers))]())
            except (ValueError, IndexError, TypeError, OverflowError):
                continue


def draw_npz_arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw the arrays of an npz file, some of which are others, or missing."""
    arrays = npz_arrays(draw_content(rng))
    for _ in range(rng.integers(1, 3)):
        name = list(arrays)[rng.integers(len(arrays))]
        if rng.random() < 0.15:
            del arrays[name]
        else:
            arrays[name] = draw_array(rng, arrays[name])
    return arrays


def npz_file(arrays: dict[str, np.ndarray]) -> bytes:
    """Return the bytes of an npz file."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def changed_npz(rng: np.random.Generator, folder: Path) -> None:
    """An npz file whose arrays are other than they should be."""
    path = folder / "nights.npz"
    path.write_bytes(npz_file(draw_npz_arrays(rng)))
    found = attempt(path)
    if rng.random() < 0.2:
        attempt_rewriting(found, rng)


def lying_npz(rng: np.random.Generator, folder: Path) -> None:
    """An npz file, sound as an archive, in which an array lies about its shape or type."""
    packed = npz_file(npz_arrays(draw_content(rng)))
    path = folder / "nights.npz"
    with zipfile.ZipFile(io.BytesIO(packed)) as old, zipfile.ZipFile(path, "w") as new:
        chosen = old.namelist()[rng.integers(len(old.namelist()))]
        for name in old.namelist():
            data = old.read(name)
            if name == chosen:
                data = _with_other_header(rng, data)
            new.writestr(name, data)
    attempt(path)


def _with_other_header(rng, data):
    array = np.lib.format.read_array(io.BytesIO(data))
    shapes = [(10**6, 10**6), (10**12,), (-1,), (2**63,), (3, -3), (0,), (1.5,), "x", (2**31, 2)]
    types = ["<f8", "|O", "<U999999999", "<c32", "[('a','<f8')]", "|V2000000000", "nonsense", "<i8"]
    header = {
        "descr": array.dtype.str if rng.random() < 0.5 else types[rng.integers(len(types))],
        "fortran_order": bool(rng.integers(2)),
        "shape": shapes[rng.integers(len(shapes))] if rng.random() < 0.7 else array.shape,
    }
    text = repr(header).encode() if rng.random() < 0.9 else b"{" * 50
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes()
