"""A model from its file, and a table as the model needs it."""

from pathlib import Path
from typing import Any

from unbag._files import check_output
from unbag.io import BagTable, Roles
from unbag.io.table import Paths
from unbag.labels import LabelSets

from .console import progress
from .options import files_named, open_table


def load_and_read(
    model: Path,
    table: Paths,
    given: dict[str, Any],
    output: Path | None = None,
    *,
    use_labels: bool = True,
) -> tuple[Any, dict[str, Any], BagTable, LabelSets | None]:
    """Load a model, and read a table for it by roles and tools as options give them.

    Return the model, the header of its file, the table, and its labels in the classes of the model;
    None if the table has none, or they are not wanted. What is to be written must be none of what
    is read.
    """
    # They bring scikit-learn, which takes a second.
    from unbag.frames import read_for_model, roles_for_model
    from unbag.models import load_with_header

    fitted, header = load_with_header(model)
    named = files_named(given)
    with open_table(table, given) as source, progress("reading") as report:
        if output is not None:
            check_output(output, model, *source.files, *named)
        wanted = Roles.from_options(**given)
        roles = roles_for_model(fitted, source, wanted, use_labels=use_labels)
        data, labels = read_for_model(fitted, source, roles, use_labels=use_labels, progress=report)
    return fitted, header, data, labels
