"""Reading a file that may be damaged: bags that are sound, or a refusal that names the file."""

from pathlib import Path
from typing import Any

import numpy as np

from fuzz.content import check_agrees_with_text
from small_tables import in_chunks
from unbag import tables
from unbag.tables import BagTable, DataError, Roles

#: Suffixes of files that Python's own reader understands as well.
PLAIN_TEXT = (".csv", ".tsv", ".txt")
# Small chunks too, so that records and batches are torn apart; of small files.
CHUNKS = (64, 1000, 8 << 20)
SMALL_FILE = 1 << 17


class Refused(Exception):
    """A file was refused as it should be."""


def check_refusal(error: Exception, folder: Path) -> Refused:
    """Check that the message of an error names a file of a folder."""
    message = str(error)
    named = any(path.name in message for path in folder.rglob("*")) or str(folder) in message
    # What is wrong with roles, or with a label that is to be written, has no file.
    about_other = any(word in message for word in ("The role", "Column", "The label"))
    assert named or about_other, f"no file is named: {message}"
    return Refused()


def dense(X: Any) -> np.ndarray:
    """Return features as an array, whether they are sparse or not."""
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def check_sound(table: BagTable) -> None:
    """Check that what was read fits together."""
    bags, labels = table.bags, table.labels
    X = dense(bags.X)
    assert X.dtype.kind == "f", f"features are {X.dtype}"
    assert np.isfinite(X).all(), "features are not finite"
    assert bags.offsets[-1] == len(X) == len(table.rows), "instances without a row"
    assert len(set(bags.ids.tolist())) == len(bags.ids) == len(bags), "a bag twice"
    if labels is not None:
        assert labels.indicator.shape == (len(bags), len(labels.classes)), "labels do not fit"
        assert np.isin(labels.indicator, [1, 0, -1]).all(), "strange states of labels"
        assert len(set(map(str, labels.classes))) == len(labels.classes), "a class twice"


def attempt(
    path: Path, roles: Roles | None = None, rng: np.random.Generator | None = None, **options: Any
) -> BagTable:
    """Read a file; raise `Refused` if it is refused as it should be.

    Parameters
    ----------
    path : Path
        Whose folder holds all files of the case.
    roles : Roles, optional
    rng : Generator, optional
        Draws the size of chunks.
    **options
        Of `unbag.tables.read`.
    """
    is_small = rng is not None and path.stat().st_size < SMALL_FILE
    size = int(rng.choice(CHUNKS)) if is_small else CHUNKS[-1]
    try:
        with in_chunks(size):
            table = tables.read(path, roles, **options)
    except DataError as error:
        raise check_refusal(error, path.parent) from error
    check_sound(table)
    if path.suffix in PLAIN_TEXT and table.source is not None:
        check_agrees_with_text(table, path.read_bytes())
    return table


def attempt_rewriting(table: BagTable, rng: np.random.Generator) -> None:
    """Write what was read with one more column; if that is not refused, it must read the same."""
    suffixes = [".csv", ".tsv", ".parquet", ".feather"]
    path = table.path.with_name(f"rewritten{suffixes[rng.integers(4)]}")
    values = np.arange(table.bags.n_instances)
    try:
        table.write(path, {"our own": values})
    except DataError as error:
        assert not path.exists(), "a file was written all the same"
        raise check_refusal(error, path.parent) from error
    features = tuple(map(str, table.bags.feature_names))
    roles = table.roles if table.source is not None else Roles(features=features)
    again = attempt(path, roles, need_labels=False)
    assert again.n_rows == table.n_rows, "other rows after writing"
    assert np.array_equal(dense(again.bags.X), dense(table.bags.X)), "other features after writing"
