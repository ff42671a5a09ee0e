"""Bags in an ``.npz`` file: the plainest format, exact and fast to read."""

import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from unbag._files import (
    DataError,
    PathLike,
    check,
    check_unpacked,
    existing_file,
    faults_at,
    writing,
)
from unbag._messages import listed, shortened
from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.tables.arrays import (
    bag_table,
    check_no_groups,
    checked_bags,
    feature_names,
    instance_label_codes,
)
from unbag.tables.bag_table import BagTable
from unbag.tagging import normal_spelling

REQUIRED = ("X", "offsets", "bag_labels", "class_names")
OPTIONAL = ("instance_labels", "feature_names", "ids")
# Bytes of names that are written with room for the longest.
LARGEST_TEXT_ARRAY = 1 << 30


def read_npz(path: PathLike) -> BagTable:
    """Read bags from the arrays of an ``.npz`` file.

    These are ``X`` (n_instances, n_features), ``offsets`` (n_bags + 1,), ``bag_labels``
    (n_bags, n_classes) of 1 (present), 0 (absent) and -1 (unknown), ``class_names``
    (n_classes,), and perhaps ``instance_labels`` (n_instances,), columns of ``bag_labels`` and -1
    where the label is not known, ``feature_names`` (n_features,) and ``ids`` (n_bags,). Pickled
    objects are refused.
    """
    path = Path(path)
    bags, labels = bags_of(path, read_arrays(path, REQUIRED, OPTIONAL))
    if bags.instance_labels is not None:
        names = np.array([*labels.classes.tolist(), None], dtype=object)[bags.instance_labels]
        known = None if (bags.instance_labels == -1).all() else names
        bags = Bags(bags.X, bags.offsets, bags.ids, known, bags.feature_names)
    return bag_table(path, bags, labels)


def read_arrays(
    path: PathLike, names: Collection[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """Read arrays of an ``.npz`` file, and optional ones if they are there; refuse pickles."""
    path = existing_file(path)
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
            wanted = {name: members[name] for name in [*names, *optional] if name in members}
            sizes = [_declared_bytes(path, archive, member) for member in wanted.values()]
            missing = listed(name for name in names if name not in members)
            check(not missing, f"{path} has no array {missing}; it has {listed(members)}.")
            # Members may lie in the same bytes of the file.
            packed = sum(member.compress_size for member in wanted.values())
            packed = min(packed, path.stat().st_size)
            check_unpacked(f"{path} (arrays {listed(wanted)})", sum(sizes), packed)
            return {name: _array(archive, member) for name, member in wanted.items()}
    except DataError:
        raise
    except (
        ValueError, TypeError, AttributeError, LookupError, EOFError, OSError, RuntimeError,
        MemoryError, struct.error, tokenize.TokenError,
    ) as error:  # fmt: skip
        raise DataError(f"{path} is not an .npz file of plain arrays, or is damaged.") from error
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path} is not an .npz file, or is damaged: {error}.") from error


def _declared_bytes(path, archive, member):
    """Return the memory that an array asks for, checked to be what its member declares."""
    with archive.open(member) as file:
        is_first = npy.read_magic(file) == (1, 0)
        read_header = npy.read_array_header_1_0 if is_first else npy.read_array_header_2_0
        shape, _, dtype = read_header(file)
        n_bytes = math.prod(shape) * dtype.itemsize
        check(
            not dtype.hasobject and n_bytes == member.file_size - file.tell(),
            f"{path} is not an .npz file of plain arrays, or is damaged: {member.filename} "
            "holds "
            f"{dtype} of shape {shape} in {member.file_size:,} bytes.",
        )
    # The rows or columns of an array without entries may still be iterated over.
    return max(n_bytes, math.prod(max(1, length) for length in shape))


def _array(archive, member):
    with archive.open(member) as file:
        return npy.read_array(file, allow_pickle=False)


def bags_of(path: PathLike, arrays: Mapping[str, Any]) -> tuple[Bags, LabelSets]:
    """Make bags of arrays laid out as in `read_npz`; errors name the file and what is wrong.

    Features have names. Instance labels, if there are any, are columns of the label sets.
    """
    missing = listed(key for key in REQUIRED if key not in arrays)
    check(not missing, f"{path} has no array {missing}; it has {listed(arrays)}.")
    arrays = {name: _decoded(path, name, array) for name, array in arrays.items()}
    names = [normal_spelling(str(name)) for name in np.ravel(arrays["class_names"])]
    known = arrays.get("instance_labels")
    if known is not None:
        is_whole = known.dtype.kind in "iu"
        check(
            is_whole and (not known.size or -1 <= known.min() <= known.max() < len(names)),
            f"{path}: instance_labels must be integers from -1 (not known) to {len(names) - 1}, "
            f"since there are {len(names)} classes.",
        )
    ids = arrays.get("ids")
    check(
        ids is None or ids.dtype.kind in "biufUMm",
        f"{path}: ids must be text or numbers, but their type is {getattr(ids, 'dtype', None)}.",
    )
    with faults_at(path):
        bags = Bags(
            arrays["X"], arrays["offsets"], arrays.get("ids"), known, arrays.get("feature_names")
        )
        labels = LabelSets(arrays["bag_labels"], names)
        return checked_bags(path, bags, labels), labels


def _decoded(path, name, array):
    """Return an array of bytes as text, and any other as it is."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "S":
        return array
    try:
        return np.strings.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: {name} is not UTF-8 ({error.reason}): store it as text."
        ) from None


def write_npz(path: PathLike, bags: Bags, labels: LabelSets) -> None:
    """Write dense bags as arrays; the inverse of `read_npz`.

    Labels of instances must be classes of `labels`, or not known.
    """
    check_no_groups(path, labels, ".npz")
    check(
        not hasattr(bags.X, "tocsr"),
        f"{path}: sparse features cannot be written as .npz: use X.toarray().",
    )
    arrays = {
        "X": bags.X,
        "instance_labels": instance_label_codes(bags, labels, ".npz"),
        "offsets": bags.offsets,
        "bag_labels": labels.indicator,
        "class_names": _text_array(path, "class", labels.classes),
        "feature_names": _text_array(path, "feature", feature_names(bags)),
        "ids": bags.ids if bags.ids.dtype.kind in "iufU" else _text_array(path, "bag", bags.ids),
    }
    write_arrays(path, arrays)


def _text_array(path, what, names):
    """Return names as an array of text, which has as much room for each as the longest takes."""
    texts = [str(name) for name in names]
    longest = max(texts, key=len, default="")
    check(
        4 * len(longest) * len(texts) <= LARGEST_TEXT_ARRAY,
        f"{path}: the {what} {shortened(longest)} has {len(longest):,} characters, and .npz would "
        f"keep as much room for each {what}: shorten it, or choose another format.",
    )
    return np.array(texts, dtype=str)


def write_arrays(path: PathLike, arrays: Mapping[str, Any]) -> None:
    """Write arrays as an ``.npz`` file; the inverse of `read_arrays`."""
    with writing(path) as file:
        np.savez_compressed(file, **arrays)
