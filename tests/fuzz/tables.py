"""Files of bags, every format: damage that does no harm is passed over, all other refused.

Where unbag reads damaged text, Python's own reader must find the same in it.
"""

import functools
import gzip
import io
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from fuzz import beside, typed
from fuzz.content import (
    ARROW,
    FORMATS,
    TEXT,
    Content,
    arrow_bytes,
    check_agrees,
    draw_content,
    file_bytes,
    mat_bytes,
    text_bytes,
    wide_table,
)
from fuzz.damage import damaged, encoded, hostile_text, valid_text
from fuzz.reading import Refused, attempt, attempt_rewriting
from unbag.tables import Roles

#: Columns of numbers that are no features.
CARRIED = Roles(carry=("start", "end", "note"))
BOMB_BYTES = 1500 << 20


def choose(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    """Choose one of some texts."""
    return options[rng.integers(len(options))]


def shuffled(rng: np.random.Generator, content: Content) -> list[dict]:
    """Return the rows of a table, those of different bags mixed, each bag's in its order."""
    rows = content.rows()
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row["bag"], []).append(place)
    order = rng.permutation([row["bag"] for row in rows])
    return [rows[places[bag].pop(0)] for bag in order.tolist()]


def harmless_text(rng: np.random.Generator, folder: Path) -> Path:
    """Text as programs write it: other line ends, quotes, blank lines, an order mark."""
    content = draw_content(rng)
    suffix = choose(rng, TEXT)
    rows = shuffled(rng, content)
    names = rng.permutation(list(rows[0])).tolist()
    rows = [{name: row[name] for name in names} for row in rows]
    if rng.random() < 0.3:
        for row in rows:
            row["note"] = valid_text(rng).replace("\r", "").replace("\0", "")
    line_end = choose(rng, ("\n", "\r\n"))
    data = text_bytes(rows, suffix.removesuffix(".gz"), line_end, rng.random() < 0.3)
    if rng.random() < 0.3:
        data = b"\xef\xbb\xbf" + data
    if rng.random() < 0.3:
        data += line_end.encode() * 3
    elif rng.random() < 0.3:
        data = data.rstrip(line_end.encode())
    path = folder / f"nights{suffix}"
    path.write_bytes(gzip.compress(data, 1) if suffix.endswith(".gz") else data)
    check_agrees(attempt(path, CARRIED, rng), content)
    return path


def harmless_arrow(rng: np.random.Generator, folder: Path) -> Path:
    """Tables of Arrow as programs write them: other types of text, codecs, one row per bag."""
    content = draw_content(rng)
    suffix = choose(rng, ARROW)
    roles = CARRIED
    if rng.random() < 0.3:
        table, roles = wide_table(content), Roles()
    else:
        table = pa.Table.from_pylist(shuffled(rng, content))
        for name in ("bag", "labels", "instance_label"):
            kinds = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
            kind = kinds[rng.integers(3)]
            column = table.column(name)
            if pa.types.is_dictionary(kind):
                column = column.cast(pa.string()).combine_chunks().dictionary_encode()
            else:
                column = column.cast(kind)
            table = table.set_column(table.column_names.index(name), name, column)
    codecs = ("snappy", "gzip", "zstd", "none") if suffix in (".parquet", ".pq") else (
        "uncompressed", "lz4", "zstd")  # fmt: skip
    path = folder / f"nights{suffix}"
    path.write_bytes(arrow_bytes(table, suffix, choose(rng, codecs)))
    check_agrees(attempt(path, roles, rng), content)
    return path


def harmless_own(rng: np.random.Generator, folder: Path) -> Path:
    """Files of the other formats, as they should be."""
    content = draw_content(rng)
    suffix = choose(rng, (".arff", ".npz", ".mat"))
    path = folder / f"nights{suffix}"
    path.write_bytes(file_bytes(suffix, content))
    check_agrees(attempt(path), content)
    return path


def damaged_bytes(rng: np.random.Generator, folder: Path) -> Path:
    """A file of any format with damaged bytes; in compressed text, before they were compressed."""
    content = draw_content(rng)
    suffix = choose(rng, FORMATS)
    path = folder / f"nights{suffix}"
    if suffix == ".mat":
        data = mat_bytes(content, compressed=rng.random() < 0.3)
    elif suffix in ARROW and rng.random() < 0.3:
        data = arrow_bytes(wide_table(content), suffix)
    else:
        data = file_bytes(suffix, content)
    if suffix.endswith(".gz") and rng.random() < 0.5:
        data = gzip.compress(damaged(rng, gzip.decompress(data)), 1)
    else:
        data = damaged(rng, data)
    path.write_bytes(data)
    rewrite(attempt(path, CARRIED, rng, need_labels=rng.random() < 0.7), rng)
    return path


def wrong_suffix(rng: np.random.Generator, folder: Path) -> Path:
    """A file under the name of another format."""
    content = draw_content(rng)
    path = folder / f"nights{choose(rng, FORMATS)}"
    path.write_bytes(file_bytes(choose(rng, FORMATS), content))
    attempt(path, CARRIED, rng)
    return path


def hostile_cells(rng: np.random.Generator, folder: Path) -> Path:
    """Delimited text in which some cells, or names of columns, hold hostile text."""
    rows = draw_content(rng).rows()
    names = list(rows[0])
    for _ in range(rng.integers(1, 4)):
        text = hostile_text(rng)
        if rng.random() < 0.02:
            text *= 1 + 2_000_000 // max(len(text), 1)
        if rng.random() < 0.2:
            old = choose(rng, tuple(rows[0]))
            rows = [{text if name == old else name: row[name] for name in row} for row in rows]
        else:
            rows[rng.integers(len(rows))][choose(rng, tuple(rows[0]))] = text
    suffix = choose(rng, (".csv", ".tsv", ".txt"))
    data = text_bytes(rows, suffix, choose(rng, ("\n", "\r\n")), rng.random() < 0.2)
    if rng.random() < 0.3:
        # A hostile text that no writer has put into quotes.
        data = data.replace(encoded(choose(rng, tuple(names))), encoded(hostile_text(rng)), 1)
    path = folder / f"nights{suffix}"
    path.write_bytes(data)
    roles = Roles(features=("x0",)) if rng.random() < 0.3 else CARRIED
    rewrite(attempt(path, roles, rng, need_labels=rng.random() < 0.5), rng)
    return path


def hostile_arff(rng: np.random.Generator, folder: Path) -> Path:
    """An ARFF file in which words are replaced by hostile ones; perhaps with a list of labels."""
    content = draw_content(rng)
    words = file_bytes(".arff", content).decode().split(" ")
    for _ in range(rng.integers(1, 4)):
        words[rng.integers(len(words))] = hostile_text(rng)
    path = folder / "nights.arff"
    path.write_bytes(encoded(choose(rng, (" ", " ", "\t", "  ")).join(words)))
    if rng.random() < 0.3:
        names = "".join(f'<label name="{name}"></label>' for name in content.classes)
        data = f"<labels>{names}</labels>".encode()
        path.with_suffix(".xml").write_bytes(damaged(rng, data) if rng.random() < 0.7 else data)
    rewrite(attempt(path), rng)
    return path


@functools.cache
def bomb(kind: str) -> bytes:
    """Return a small file that takes gigabytes when it is unpacked."""
    zeros = bytes(1 << 20)
    file = io.BytesIO()
    if kind == ".csv.gz":
        with gzip.open(file, "wb", 1) as packed:
            packed.write(b"bag,labels,x\n")
            for _ in range(BOMB_BYTES >> 20):
                packed.write(zeros.replace(b"\0", b"1"))
    else:
        np.savez(file, X=np.ones((1, 1)), offsets=[0, 1])
        shape = {"descr": "<f8", "fortran_order": False, "shape": (BOMB_BYTES >> 3,)}
        with (
            zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
            packed.open("unused.npy", "w", force_zip64=True) as member,
        ):
            np.lib.format.write_array_header_1_0(member, shape)
            for _ in range(BOMB_BYTES >> 20):
                member.write(zeros)
    return file.getvalue()


def bombs(rng: np.random.Generator, folder: Path) -> Path:
    """A small file that unpacks to more than may be held in memory."""
    kind = choose(rng, (".csv.gz", ".npz"))
    path = folder / f"bomb{kind}"
    path.write_bytes(bomb(kind))
    attempt(path, CARRIED)
    return path


def rewrite(table, rng: np.random.Generator) -> None:
    """Write some of what could be read again."""
    if rng.random() < 0.2:
        attempt_rewriting(table, rng)


#: What a case may be, and how often.
KINDS: dict[Callable[[np.random.Generator, Path], object], float] = {
    harmless_text: 3, harmless_arrow: 3, harmless_own: 2, damaged_bytes: 20, wrong_suffix: 1,
    hostile_cells: 8, hostile_arff: 4, typed.changed_arrow: 6, typed.changed_npz: 4,
    typed.lying_npz: 2, beside.label_tables: 3, beside.role_files: 3,
    beside.corrections: 3, beside.selections: 2, bombs: 0.02,
}  # fmt: skip
HARMLESS = (harmless_text, harmless_arrow, harmless_own)


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Read one file."""
    weights = np.array(list(KINDS.values()))
    kind = list(KINDS)[rng.choice(len(KINDS), p=weights / weights.sum())]
    name = kind.__name__.replace("_", " ")
    try:
        kind(rng, folder)
    except Refused:
        assert kind not in HARMLESS, f"{name}: refused"
        return Counter({f"{name} refused": 1})
    return Counter({f"{name} read": 1})
