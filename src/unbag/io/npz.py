"""Bags in an ``.npz`` file: the plainest format, exact and fast to read."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unbag._files import DataError, PathLike, check, existing_file, faults_at, listed, writing
from unbag.bags import Bags
from unbag.labels import LabelSets, normal_spelling

from .arrays import bag_table, checked_bags, feature_names, instance_label_codes
from .bag_table import BagTable

REQUIRED = ("X", "offsets", "bag_labels", "class_names")


def read_npz(path: PathLike) -> BagTable:
    """Read bags from the arrays of an ``.npz`` file.

    Parameters
    ----------
    path : str or path
        Holds ``X`` (n_instances, n_features), ``offsets`` (n_bags + 1,), ``bag_labels``
        (n_bags, n_classes) of 1 (present), 0 (absent) and -1 (unknown), ``class_names``
        (n_classes,), and perhaps ``instance_labels`` (n_instances,), columns of `bag_labels` and
        -1 where the label is not known, ``feature_names`` (n_features,) and ``ids`` (n_bags,).
        Pickled objects are refused.

    Returns
    -------
    BagTable
    """
    path = Path(path)
    bags, labels = bags_of(path, read_arrays(path))
    if bags.instance_labels is not None:
        names = np.array([*labels.classes.tolist(), None], dtype=object)[bags.instance_labels]
        known = None if (bags.instance_labels == -1).all() else names
        bags = Bags(bags.X, bags.offsets, bags.ids, known, bags.feature_names)
    return bag_table(path, bags, labels)


def read_arrays(path: PathLike) -> dict[str, Any]:
    """Read all arrays of an ``.npz`` file; pickled objects are refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict of str to ndarray
    """
    path = existing_file(path)
    try:
        # Opened here, since NumPy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            return {key: content[key] for key in content.files}
    except (ValueError, TypeError, AttributeError, EOFError, OSError) as error:
        raise DataError(f"{path} is no .npz file of plain arrays, or a damaged one.") from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise DataError(f"{path} is no .npz file, or a damaged one: {error}.") from error


def bags_of(path: PathLike, arrays: Mapping[str, Any]) -> tuple[Bags, LabelSets]:
    """Make bags of arrays laid out as in `read_npz`; errors name the file and what is wrong.

    Parameters
    ----------
    path : path
        Where the arrays come from.
    arrays : dict of str to ndarray

    Returns
    -------
    bags : Bags
        With finite features that have names; with `instance_labels`, if there are any, as columns
        of `labels`, -1 where the label is not known.
    labels : LabelSets
    """
    missing = listed(key for key in REQUIRED if key not in arrays)
    check(not missing, f"{path} has no array {missing}; it has {listed(arrays)}.")
    names = [normal_spelling(str(name)) for name in np.ravel(arrays["class_names"])]
    known = arrays.get("instance_labels")
    if known is not None:
        is_whole = known.dtype.kind in "iu"
        check(
            is_whole and (not known.size or -1 <= known.min() <= known.max() < len(names)),
            f"{path}: instance_labels must be integers from -1 (not known) to {len(names) - 1}, "
            f"since there are {len(names)} classes.",
        )
    with faults_at(path):
        bags = Bags(
            arrays["X"], arrays["offsets"], arrays.get("ids"), known, arrays.get("feature_names")
        )
        labels = LabelSets(arrays["bag_labels"], names)
        return checked_bags(path, bags, labels), labels


def write_npz(path: PathLike, bags: Bags, labels: LabelSets) -> None:
    """Write bags as arrays; the inverse of `read_npz`.

    Parameters
    ----------
    path : str or path
    bags : Bags
        Dense. Its instance labels must be classes of `labels`, or not known.
    labels : LabelSets
    """
    check(
        not hasattr(bags.X, "tocsr"),
        f"{path}: sparse features cannot be written as .npz: use X.toarray().",
    )
    arrays = {
        "X": bags.X,
        "instance_labels": instance_label_codes(bags, labels, ".npz"),
        "offsets": bags.offsets,
        "bag_labels": labels.indicator,
        "class_names": np.array([str(name) for name in labels.classes], dtype=str),
        "feature_names": np.array(feature_names(bags), dtype=str),
        "ids": bags.ids if bags.ids.dtype.kind in "iufU" else bags.ids.astype(str),
    }
    write_arrays(path, arrays)


def write_arrays(path: PathLike, arrays: Mapping[str, Any]) -> None:
    """Write arrays as an ``.npz`` file; the inverse of `read_arrays`."""
    with writing(path) as file:
        np.savez_compressed(file, **arrays)
