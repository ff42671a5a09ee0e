"""Bags in an ``.npz`` file: the plainest format, exact and fast to read."""

import zipfile
import zlib

import numpy as np

from unbag._finite import first_nonfinite
from unbag.bags import Bags, bag_of
from unbag.labels import LabelSets

from .bag_arrays import feature_names, instance_label_codes
from .bag_table import BagTable
from .errors import DataError, listed
from .files import existing_file, writing
from .roles import Roles

REQUIRED = ("X", "offsets", "bag_labels", "class_names")


def read_npz(path):
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
    path = existing_file(path)
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {key: content[key] for key in content.files}
    except (ValueError, TypeError, AttributeError, EOFError, OSError) as error:
        raise DataError(f"{path} is no .npz file of plain arrays, or a damaged one.") from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise DataError(f"{path} is no .npz file, or a damaged one: {error}.") from error
    missing = [key for key in REQUIRED if key not in arrays]
    if missing:
        raise DataError(f"{path} has no array {listed(missing)}; it has {listed(arrays)}.")
    return table_of(path, arrays)


def table_of(path, arrays):
    """Make a BagTable of arrays laid out as in `read_npz`; errors name the file."""
    names = [str(name) for name in np.ravel(arrays["class_names"])]
    known = arrays.get("instance_labels")
    if known is not None:
        if known.dtype.kind not in "iu" or (
            known.size and not -1 <= known.min() <= known.max() < len(names)
        ):
            raise DataError(
                f"{path}: instance_labels must be integers from -1 (not known) to "
                f"{len(names) - 1}, since there are {len(names)} classes."
            )
        known = np.array([*names, None], dtype=object)[known]
        if all(label is None for label in known):
            known = None
    try:
        bags = Bags(
            arrays["X"], arrays["offsets"], arrays.get("ids"), known, arrays.get("feature_names")
        )
        labels = LabelSets(arrays["bag_labels"], names)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    return checked_table(path, bags, labels)


def checked_table(path, bags, labels):
    """Make a BagTable of a file that is no table; errors name the file and the bag."""
    if len(labels) != len(bags):
        raise DataError(f"{path} has {len(labels)} label sets for {len(bags)} bags.")
    found = first_nonfinite(bags.X)
    if found is not None:
        bag = bag_of(bags.offsets, found.row)
        raise DataError(
            f"{path}: bag {bags.ids[bag]}, instance {found.row - bags.offsets[bag] + 1} has "
            f"{found.value} as feature {feature_names(bags)[found.column]}: replace it by a finite "
            "number."
        )
    if bags.feature_names is None:
        bags = bags.with_features(bags.X, np.array(feature_names(bags)))
    roles = Roles(features=feature_names(bags), delimiter="|")
    return BagTable(path, roles, bags, labels, np.arange(bags.n_instances), bags.n_instances)


def write_npz(path, bags, labels):
    """Write bags as arrays; the inverse of `read_npz`.

    Parameters
    ----------
    path : str or path
    bags : Bags
        Dense. Its instance labels must be classes of `labels`, or not known.
    labels : LabelSets
    """
    if hasattr(bags.X, "tocsr"):
        raise DataError(f"{path}: sparse features cannot be written as .npz: use X.toarray().")
    arrays = {
        "X": bags.X,
        "instance_labels": instance_label_codes(bags, labels, ".npz"),
        "offsets": bags.offsets,
        "bag_labels": labels.indicator,
        "class_names": np.array([str(name) for name in labels.classes], dtype=str),
        "feature_names": np.array(feature_names(bags), dtype=str),
        "ids": bags.ids if bags.ids.dtype.kind in "iufU" else bags.ids.astype(str),
    }
    with writing(path) as file:
        np.savez_compressed(file, **arrays)
