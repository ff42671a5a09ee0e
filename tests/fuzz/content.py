"""Bags in plain Python, and files of every format that hold them.

Nothing of unbag is used: what is written here is what its readers must find.
"""

import csv
import gzip
import io
import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import feather, parquet
from scipy.io import savemat

TEXT = (".csv", ".tsv", ".txt", ".csv.gz")
ARROW = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
OWN = (".arff", ".npz", ".mat")
FORMATS = (*TEXT, *ARROW, *OWN)
CLASSES = ("wren", "owl", "zaunkönig", "great tit")


@dataclass
class Content:
    """What a file holds: a bag's instances are its rows, in their order.

    Parameters
    ----------
    ids : list of str
    sizes : list of int
    X : ndarray of shape (n_instances, n_features)
    states : ndarray of int of shape (n_bags, n_classes)
        1 for a label that is present, 0 for one that is absent, -1 for one not known.
    known : list of str or None
        Labels of the instances.
    """

    ids: list[str]
    sizes: list[int]
    X: np.ndarray
    states: np.ndarray
    known: list[str | None]

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [f"x{column}" for column in range(self.X.shape[1])]

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return list(CLASSES[: self.states.shape[1]])

    @property
    def offsets(self) -> np.ndarray:
        """Where bags begin and end."""
        return np.append(0, np.cumsum(self.sizes))

    def cell(self, bag: int) -> str:
        """Write the label set of a bag as a cell."""
        marks = {1: "", -1: "?"}
        pairs = zip(self.classes, self.states[bag].tolist(), strict=True)
        return "|".join(marks[state] + name for name, state in pairs if state) or "(none)"

    def rows(self) -> list[dict[str, Any]]:
        """Return a long table, the bags one after the other."""
        bag_of = np.repeat(np.arange(len(self.ids)), self.sizes)
        return [
            {"bag": self.ids[b], "labels": self.cell(b), "instance_label": self.known[i],
             **dict(zip(self.features, self.X[i].tolist(), strict=True)),
             "start": i / 4, "end": i / 4 + 1, "note": f"n{i}"}
            for i, b in enumerate(bag_of.tolist())
        ]  # fmt: skip


def draw_content(rng: np.random.Generator) -> Content:
    """Draw a few small bags."""
    n_bags, n_features = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    sizes = rng.integers(1, 5, n_bags).tolist()
    n_classes = int(rng.integers(1, len(CLASSES) + 1))
    X = np.round(rng.normal(size=(sum(sizes), n_features)) * 10, 3)
    states = rng.choice([0, 1, 1, -1], (n_bags, n_classes))
    # A class that no bag names would be lost in a table.
    states[rng.integers(n_bags, size=n_classes), np.arange(n_classes)] = 1
    names = [*CLASSES[:n_classes], None]
    known = [names[k] for k in rng.integers(0, n_classes + 1, sum(sizes))]
    ids = [f"night {b}" for b in range(n_bags)]
    return Content(ids, sizes, X, states, known)


# Files.


def file_bytes(suffix: str, content: Content) -> bytes:
    """Return a valid file of some format."""
    if suffix in TEXT:
        return text_bytes(content.rows(), suffix)
    if suffix in ARROW:
        return arrow_bytes(pa.Table.from_pylist(content.rows()), suffix)
    return {".arff": arff_bytes, ".npz": npz_bytes, ".mat": mat_bytes}[suffix](content)


def text_bytes(
    rows: list[dict[str, Any]], suffix: str = ".csv", line_end: str = "\n", quote_all: bool = False
) -> bytes:
    """Write rows as delimited text, by Python's own writer."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(
        text, list(rows[0]), delimiter="\t" if suffix == ".tsv" else ",", lineterminator=line_end,
        quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL,
    )  # fmt: skip
    writer.writeheader()
    writer.writerows(rows)
    data = text.getvalue().encode("utf-8", "surrogatepass")
    return gzip.compress(data, 1, mtime=0) if suffix.endswith(".gz") else data


def arrow_bytes(table: pa.Table, suffix: str, compression: str | None = None) -> bytes:
    """Write a table of Arrow as Parquet or Feather."""
    file = io.BytesIO()
    if suffix in (".parquet", ".pq"):
        parquet.write_table(table, file, compression=compression or "snappy", row_group_size=8)
    else:
        feather.write_feather(table, file, compression=compression or "uncompressed", chunksize=8)
    return file.getvalue()


def wide_table(content: Content) -> pa.Table:
    """Return a table with one row per bag, whose features are lists."""
    parts = [slice(*pair) for pair in zip(content.offsets, content.offsets[1:], strict=False)]
    columns: dict[str, Any] = {
        "bag": content.ids,
        "labels": [content.cell(b) for b in range(len(content.ids))],
        "instance_label": [content.known[part] for part in parts],
    }
    for column, name in enumerate(content.features):
        columns[name] = [content.X[part, column].tolist() for part in parts]
    return pa.table(columns)


def arff_bytes(content: Content) -> bytes:
    """Write a MIML ARFF file."""
    labels = [f"@attribute '{name}' {{0,1}}" for name in content.classes]
    lines = ["@relation nights", "@attribute id string", "@attribute bag relational"]
    lines += [f"  @attribute {name} numeric" for name in content.features]
    lines += ["  @attribute instance_label string", "@end bag", *labels, "@data"]
    marks = {1: "1", 0: "0", -1: "?"}
    for b, name in enumerate(content.ids):
        rows = range(content.offsets[b], content.offsets[b + 1])
        inner = "\\n".join(
            ",".join([*map(repr, content.X[i].tolist()), _in_quotes(content.known[i])])
            for i in rows
        )
        states = ",".join(marks[state] for state in content.states[b].tolist())
        lines.append(f"'{name}',\"{inner}\",{states}")
    return "\n".join([*lines, ""]).encode()


def _in_quotes(label):
    return "?" if label is None else f"'{label}'"


def npz_arrays(content: Content) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file."""
    place = {name: c for c, name in enumerate(content.classes)}
    return {
        "X": content.X,
        "offsets": content.offsets,
        "bag_labels": content.states,
        "class_names": np.array(content.classes),
        "instance_labels": np.array([place.get(name, -1) for name in content.known]),
        "feature_names": np.array(content.features),
        "ids": np.array(content.ids),
    }


def npz_bytes(content: Content) -> bytes:
    """Write an npz file."""
    file = io.BytesIO()
    np.savez(file, **npz_arrays(content))
    return file.getvalue()


def mat_variables(content: Content) -> dict[str, Any]:
    """Return the variables of a MATLAB file."""
    place = {name: c + 1.0 for c, name in enumerate(content.classes)}
    known = np.array([place.get(name, 0.0) for name in content.known])
    cut = content.offsets[1:-1]
    return {
        "bags": cells(np.split(content.X, cut)),
        "targets": np.where(content.states == 1, 1.0, -1.0).T,
        "unknown": (content.states == -1).astype(np.uint8).T,
        "class_name": cells(content.classes),
        "feature_name": cells(content.features),
        "ids": cells(content.ids),
        "instance_labels": cells([part[:, None] for part in np.split(known, cut)]),
    }


def cells(values: list[Any]) -> np.ndarray:
    """Return a cell array, a column of values of any kind."""
    array = np.empty((len(values), 1), dtype=object)
    for place, value in enumerate(values):
        array[place, 0] = value
    return array


def mat_bytes(content: Content, compressed: bool = True) -> bytes:
    """Write a MATLAB file."""
    file = io.BytesIO()
    savemat(file, mat_variables(content), do_compression=compressed)
    return file.getvalue()


# What was read.


def check_agrees(table: Any, content: Content) -> None:
    """Compare a table that unbag has read with what was written; bags may come in any order."""
    bags = table.bags
    assert sorted(map(str, bags.ids)) == sorted(content.ids), "other bags"
    names = [str(name) for name in bags.feature_names]
    columns = [content.features.index(name) for name in names]
    assert sorted(columns) == list(range(content.X.shape[1])), "other features"
    sets = table.labels.to_sets()
    for b, name in enumerate(map(str, bags.ids)):
        place = content.ids.index(name)
        rows = slice(content.offsets[place], content.offsets[place + 1])
        found = np.asarray(bags.X[bags.offsets[b] : bags.offsets[b + 1]])
        assert np.array_equal(found, content.X[rows][:, columns]), f"other features in {name}"
        assert label_cell(sets[b]) == label_set(content.cell(place)), f"other labels of {name}"
        known = bags.instance_labels
        if known is not None:
            own = known[bags.offsets[b] : bags.offsets[b + 1]].tolist()
            assert [each or None for each in own] == content.known[rows], "other known labels"
    if bags.instance_labels is None:
        assert not any(content.known), "known labels were lost"


def label_set(cell: str, delimiter: str = "|") -> set[str] | None:
    """Read a cell of labels, each with its mark; None if it says nothing, or not by itself."""
    parts = [part.strip() for part in cell.split(delimiter)]
    if not any(parts) or "(unknown)" in map(str.lower, parts) or cell.strip()[:1] in "[{(":
        return set() if cell.strip().lower() == "(none)" else None
    marked = {"?" + part[1:].strip() if part[:1] == "?" else part for part in parts if part}
    return {unicodedata.normalize("NFC", each) for each in marked}


def label_cell(labels: Any) -> set[str]:
    """Return a label set of unbag in the same form."""
    marked = {f"?{each.label}" if hasattr(each, "label") else str(each) for each in labels}
    return {unicodedata.normalize("NFC", each) for each in marked}


def rows_of_text(data: bytes, delimiter: str) -> tuple[list[str], list[list[str]]]:
    """Read delimited text by Python's own reader; return the header and the rows."""
    csv.field_size_limit(1 << 30)
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    header, *rows = [row for row in csv.reader(text, delimiter=delimiter) if row]
    return header, rows


def check_agrees_with_text(table: Any, data: bytes) -> None:
    """Compare what unbag has read from delimited text with what Python's own reader finds."""
    header, rows = rows_of_text(data, table.source.delimiter)
    assert header == table.source.columns, "other columns"
    assert len(rows) == table.n_rows, "other rows"
    roles, bags = table.roles, table.bags
    at_bag = header.index(roles.bag)
    sets = [] if table.labels is None else [label_cell(each) for each in table.labels.to_sets()]
    features = [header.index(name) for name in roles.features]
    bag_of = np.repeat(np.arange(len(bags)), bags.sizes)
    for i, row in enumerate(table.rows.tolist()):
        cells_of_row = rows[row]
        numbers = [float(cells_of_row[column]) for column in features]
        assert bags.X[i].tolist() == numbers, f"row {row} has other features"
        name = str(bags.ids[bag_of[i]])
        assert cells_of_row[at_bag].strip() == name.strip(), f"row {row} is in another bag"
        if sets and roles.labels is not None and roles.unknown is None:
            cell = label_set(cells_of_row[header.index(roles.labels)], roles.label_separator)
            assert cell is None or sets[bag_of[i]] == cell, f"row {row} has other labels"
