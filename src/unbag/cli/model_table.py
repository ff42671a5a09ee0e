"""A model from its file, and a table as the model needs it."""

from pathlib import Path
from typing import Any

from unbag._files import check_output
from unbag.io import BagTable, Roles
from unbag.io.table import Paths
from unbag.labels import LabelSets

from .console import messages, progress
from .options import files_named, open_table


def load_and_read(
    model: Path,
    table: Paths,
    given: dict[str, Any],
    output: Path | None = None,
    *,
    use_labels: bool = True,
    compare: bool = False,
    corrections: Path | None = None,
) -> tuple[Any, dict[str, Any], BagTable, LabelSets | None]:
    """Load a model, and read a table for it by roles and tools as options give them.

    Return the model, the header of its file, the table, and its labels in the classes of the model;
    None if the table has none, or they are not wanted. What is to be written must be none of what
    is read. With `compare`, true labels of instances come without those that the model was told.
    """
    # They bring scikit-learn, which takes a second.
    from unbag.frames import (
        known_when_fitted,
        n_given,
        read_for_model,
        roles_for_model,
        without_known,
    )
    from unbag.models import load_with_header

    fitted, header = load_with_header(model)
    named = files_named(given, corrections)
    with open_table(table, given) as source, progress("reading") as report:
        if output is not None:
            check_output(output, model, *source.files, *named)
        wanted = Roles.from_options(**given)
        roles = roles_for_model(fitted, source, wanted, use_labels=use_labels)
        info = header.get("info")
        info = info if isinstance(info, dict) else {}
        if compare and source.columns:
            roles = known_when_fitted(fitted, source, roles, info)
        data, labels = read_for_model(fitted, source, roles, use_labels=use_labels, progress=report)
    if compare:
        from unbag.corrections import corrected_labels

        told = None if corrections is None else corrected_labels(corrections, data)
        data, n_told = without_known(data, told)
        n_learnt = info.get("known_instance_labels")
        if n_told:
            messages.note(
                f"{n_told:,} labelled instances are left out of the comparison: their labels were "
                "known when the model was fitted."
            )
        elif isinstance(n_learnt, int) and n_learnt and n_given(data.bags.instance_labels):
            messages.note(
                f"The model has learnt from {n_learnt:,} known labels of instances. If they are in "
                "this table, name them by --known or --corrections, to leave them out."
            )
    return fitted, header, data, labels
