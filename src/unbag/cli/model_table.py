"""A table as a model needs it: with the columns it was fitted on, and its classes."""

from dataclasses import replace

from unbag.io import DataError, Roles, read
from unbag.io.errors import missing_column
from unbag.io.files import BAG_FILES, existing_file, suffix_of
from unbag.io.sources import open_table
from unbag.labels import LabelSets
from unbag.models import load, read_header

from .terminal import progress

#: Roles that a model file remembers for the tables to come.
REMEMBERED = ("bag", "labels", "unknown", "delimiter", "carry", "media", "start", "end")


def load_model(path):
    """Load a model, and the roles of the columns that it was fitted to.

    Returns
    -------
    model : estimator or BagPipeline
    roles : Roles
        With the model's features, if they have names.
    """
    model = load(path)
    info = read_header(path).get("info") or {}
    remembered = {
        name: info["roles"][name] for name in REMEMBERED if info.get("roles", {}).get(name)
    }
    features = feature_names(model)
    return model, Roles(**remembered, features=features)


def over(remembered, given, path, *, use_labels=True):
    """Put roles that a command names over those that a model remembers, for one table.

    Parameters
    ----------
    remembered, given : Roles
        What was only carried through when the model was fitted may have a role now.
    path : Path
        The table. What a command names must be in it; what is remembered need not.
    use_labels : bool
        Whether bag labels are wanted; if not, their columns are carried through unread.

    Returns
    -------
    Roles
    """
    present = peek_columns(path)
    for role in ("labels", "unknown", "media", "start", "end"):
        named = getattr(given, role)
        if present and named is not None and named not in present:
            raise missing_column(path, named, present, role)
        if present and getattr(remembered, role) not in present:
            remembered = replace(remembered, **{role: None})
    named = {column for _, column in given.columns()}
    carried = tuple(column for column in remembered.carry if column not in named)
    roles = replace(remembered, carry=carried).merged(given)
    if not use_labels:
        unread = {roles.labels, roles.unknown, "labels"} - {None}
        roles = replace(roles, labels=None, unknown=None, label_table=None)
        taken = {column for _, column in roles.columns()}
        roles = replace(roles, carry=(*roles.carry, *sorted(unread - taken)))
    return roles


def feature_names(model):
    """Return the names of the features that a model expects, or None."""
    found = getattr(model, "feature_names_in_", None)
    return None if found is None else tuple(str(name) for name in found)


def read_for_model(model, path, roles, *, use_labels=True):
    """Read a table and align its labels with the classes of a model.

    Parameters
    ----------
    model : estimator or BagPipeline
    path : Path
    roles : Roles
    use_labels : bool
        Whether to look for bag labels at all.

    Returns
    -------
    table : BagTable
    labels : LabelSets or None
        None if the table has none, or they are not wanted.
    """
    with progress("reading") as report:
        table = read(path, roles, need_labels=False, progress=report)
    expected = feature_names(model)
    found = table.bags.feature_names
    if expected is not None and found is not None and tuple(map(str, found)) != expected:
        missing = [name for name in expected if name not in set(map(str, found))]
        what = f"it lacks {', '.join(missing)}" if missing else "their order differs"
        raise DataError(f"{path} has not the features that the model was fitted on: {what}.")
    if table.labels is None or not use_labels:
        return table, None
    return table, aligned(table, model.classes_)


def peek_columns(path):
    """List the columns of a table; nothing for formats without."""
    if suffix_of(path) in BAG_FILES:
        return []
    return open_table(existing_file(path)).columns


def aligned(table, classes):
    """Return the label sets of a table in the classes of a model; a strange label is named."""
    known = set(map(str, classes))
    for column, label in enumerate(table.labels.classes):
        if str(label) not in known and (present := table.labels.required[:, column]).any():
            bag = table.bags.ids[int(present.argmax())]
            raise DataError(
                f"{table.path}: bag {bag} has the label {str(label)!r}, which the model was never "
                f"shown; it knows {', '.join(sorted(known))}. Correct the label, fit again with "
                "it, or use --ignore-labels."
            )
    # By their text, as files have it; the classes of a model may be numbers.
    as_text = LabelSets(table.labels.indicator, [str(label) for label in table.labels.classes])
    found = as_text.reindex([str(label) for label in classes])
    return LabelSets(found.indicator, classes)
