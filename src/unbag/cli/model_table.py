"""A table as a model needs it: with the columns it was fitted on, and its classes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unbag._files import check_column
from unbag.io import BagTable, DataError, Roles
from unbag.io.reading import Source, open_source
from unbag.labels import ColumnOfLabel, LabelSets

from .main import progress

#: Roles that a model file remembers for the tables to come.
REMEMBERED = ("bag", "labels", "unknown", "delimiter", "carry", "media", "start", "end")


def load_and_read(
    model: Path, table: Path, given: dict[str, Any], *, use_labels: bool = True
) -> tuple[Any, dict[str, Any], BagTable, LabelSets | None]:
    """Load a model and read a table for it.

    Parameters
    ----------
    model, table : Path
    given : dict
        Roles as options, for `Roles.from_options`.
    use_labels : bool
        Whether to look for bag labels at all.

    Returns
    -------
    model : estimator or BagPipeline
    header : dict
        Of its file.
    table : BagTable
    labels : LabelSets or None
        In the classes of the model; None if the table has none, or they are not wanted.
    """
    from unbag.models import load_with_header

    fitted, header = load_with_header(model)
    with open_source(table) as source:
        wanted = Roles.from_options(**given)
        roles = roles_for_model(fitted, header, source, wanted, use_labels=use_labels)
        return fitted, header, *read_for_model(fitted, source, roles, use_labels=use_labels)


def roles_for_model(
    model: Any, header: dict[str, Any], source: Source, given: Roles, *, use_labels: bool = True
) -> Roles:
    """Put roles that a command names over those that a model remembers, for one table.

    Parameters
    ----------
    model : estimator or BagPipeline
        Its features are those of the table, if they have names.
    header : dict
        Of its file.
    source : Source
        The table. What a command names must be in it; what is remembered need not.
    given : Roles
        What was only carried through when the model was fitted may have a role now.
    use_labels : bool
        Whether bag labels are wanted; if not, their columns are carried through unread.

    Returns
    -------
    Roles
    """
    known = (header.get("info") or {}).get("roles", {})
    remembered = Roles(
        **{name: known[name] for name in REMEMBERED if known.get(name)},
        features=feature_names(model),
    )
    present = source.columns
    for role in ("labels", "unknown", "media", "start", "end"):
        column = getattr(given, role)
        if present and column is not None:
            check_column(source.path, column, present, role)
        if present and getattr(remembered, role) not in present:
            remembered = replace(remembered, **{role: None})
    # Seconds are carried, lest they become features: that is no other role.
    seconds = {remembered.start, remembered.end}
    given = replace(given, carry=tuple(name for name in given.carry if name not in seconds))
    taken = {column for _, column in given.columns()}
    carried = tuple(name for name in remembered.carry if name in present and name not in taken)
    roles = replace(remembered, carry=carried).merged(given)
    if not use_labels:
        unread = {roles.labels, roles.unknown, "labels"} - {None}
        roles = replace(roles, labels=None, unknown=None, label_table=None)
        taken = {column for _, column in roles.columns()}
        unread = (unread - taken) & set(present)
        roles = replace(roles, carry=(*roles.carry, *sorted(unread)))
    return roles


def feature_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the features that a model expects, or None."""
    found = getattr(model, "feature_names_in_", None)
    return None if found is None else tuple(str(name) for name in found)


def read_for_model(
    model: Any, source: Source, roles: Roles, *, use_labels: bool = True
) -> tuple[BagTable, LabelSets | None]:
    """Read a table and align its labels with the classes of a model.

    Parameters
    ----------
    model : estimator or BagPipeline
    source : Source
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
        table = source.read(roles, need_labels=False, progress=report)
    expected = feature_names(model)
    found = table.bags.feature_names
    if expected is not None and found is not None and tuple(map(str, found)) != expected:
        missing = [name for name in expected if name not in set(map(str, found))]
        what = f"it lacks {', '.join(missing)}" if missing else "their order differs"
        raise DataError(f"{table.path} has not the features that the model was fitted on: {what}.")
    if table.labels is None or not use_labels:
        return table, None
    return table, aligned(table, table.labels, model.classes_)


def aligned(table: BagTable, labels: LabelSets, classes: np.ndarray) -> LabelSets:
    """Return the label sets of a table in the classes of a model; a strange label is named."""
    # By their text, as files have it; the classes of a model may be numbers.
    column_of = ColumnOfLabel(map(str, classes))
    indicator = np.zeros((len(table.bags), len(classes)), labels.indicator.dtype)
    for states, label in zip(labels.indicator.T, labels.classes, strict=True):
        if (column := column_of[str(label)]) >= 0:
            indicator[:, column] = states
        elif (states == 1).any():
            bag = table.bags.ids[(states == 1).argmax()]
            known = ", ".join(sorted(map(str, classes)))
            raise DataError(
                f"{table.path}: bag {bag} has the label {str(label)!r}, which the model was never "
                f"shown; it knows {known}. Correct the label, fit again with it, or use "
                "--ignore-labels."
            )
    return LabelSets(indicator, classes)
