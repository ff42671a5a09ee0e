"""Known labels that a person has filled in, and the instances that they belong to."""

import numpy as np

from unbag.io import DataError, Roles, read
from unbag.io.label_cells import text_of

#: The column of annotate's output that people fill in.
KNOWN = "known_label"


def corrected_labels(path, source):
    """Read known labels from a table that annotate wrote and a person corrected.

    Parameters
    ----------
    path : Path
        A table with a column ``known_label``, empty where the label is not known.
    source : BagTable
        What is fitted. Its instances are found again by their id, where there is one; else by
        their place, as long as bags and features are the same there.

    Returns
    -------
    ndarray of object of shape (n_instances,)
        Labels as text; None where not known.
    """
    wanted = Roles(
        bag=source.roles.bag, instance_id=source.roles.instance_id, features=source.roles.features
    )
    corrected = read(path, wanted, need_labels=False)
    columns = corrected.source.columns if corrected.source is not None else ()
    if KNOWN not in columns:
        raise DataError(
            f"{path} has no column {KNOWN}: fill in that column of annotate's output where you "
            "know the label, and leave it empty elsewhere."
        )
    known = [text_of(value) or None for value in corrected.column(KNOWN).tolist()]
    if source.roles.instance_id is not None:
        known = by_id(known, path, corrected, source)
    elif not are_same(corrected, source):
        raise DataError(
            f"{path} has other rows than {source.path}, or in another order: keep the order of "
            "the rows, or name a column of ids by --instance-id."
        )
    return np.array(known, dtype=object)


def by_id(known, path, corrected, source):
    """Bring known labels into the order of the table that is fitted."""
    column = source.roles.instance_id
    label_of = dict(zip(map(text_of, corrected.column(column).tolist()), known, strict=True))
    ids = [text_of(value) for value in source.column(column).tolist()]
    strange = sorted(label_of.keys() - set(ids))
    if strange:
        raise DataError(
            f"{path} has the {column} {strange[0]!r}, which {source.path} does not have: correct "
            "the id, or leave out the row."
        )
    return [label_of.get(each) for each in ids]


def are_same(corrected, source):
    """Tell whether two tables hold the same instances in the same order.

    Spreadsheets round numbers, so features need only be close.
    """
    first, second = corrected.bags, source.bags
    return (
        first.X.shape == second.X.shape
        and np.array_equal(first.offsets, second.offsets)
        and list(map(text_of, first.ids.tolist())) == list(map(text_of, second.ids.tolist()))
        and np.allclose(first.X, second.X, rtol=1e-4, atol=1e-8)
    )
