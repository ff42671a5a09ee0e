"""A model from its file, and a table as the model needs it, extracted from media if need be."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from unbag._files import ALL, TABLES, check_format, check_output
from unbag._messages import argument, words
from unbag.labels import LabelSets
from unbag.tables import BagTable, Roles
from unbag.tables.table import Paths

from .console import messages, progress
from .options import Given, open_table

#: Ending of the table of what is found in files that a model labels; it is removed afterwards.
EXTRACTED = ".extracted.parquet"


@contextmanager
def instances_for(
    model: Path,
    data: Sequence[Path],
    output: Path,
    tags: Path | None,
    embed: str | None,
    given: Given,
) -> Iterator[tuple[list[Path], Given]]:
    """Give the tables that a model is to label, and roles: as named, or one made of media.

    Recordings or pictures, in a folder or a file, are extracted as those were that the model was
    fitted to. If labelling fails, the table stays.
    """
    from unbag.extract.for_models import kind_like, kind_of_media
    from unbag.models import read_header
    from unbag.tables.annotated import check_nothing_is_lost
    from unbag.tables.extracted import extracted_facts

    from .extract import end_with_faults, extract_shown

    extraction = None
    if len(data) == 1 and data[0].suffix.lower() not in ALL:
        info = read_header(model).get("info")
        extraction = info.get("extraction") if isinstance(info, dict) else None
    if not isinstance(extraction, dict) or kind_of_media(extraction, data[0]) is None:
        for name, value in (("tags", tags), ("embed", embed)):
            if value is not None:
                raise typer.BadParameter(
                    f"{argument(name)} is for recordings or pictures of the kind that the model "
                    f"was fitted to, not for {', '.join(map(str, data))}"
                )
        yield list(data), given
        return
    # Before hours of work.
    check_format(output, TABLES)
    check_nothing_is_lost(output)
    table = output.with_name(output.name + EXTRACTED)
    check_output(output, model, *data, *given.files, *([] if tags is None else [tags]))
    kind = kind_like(extraction, embed)
    unknown = None if tags is None else given.roles.untagged or "unknown"
    roles = replace(given.roles, untagged=unknown)
    result = extract_shown(kind, data[0], table, tags, -1, roles)
    try:
        with open_table([table]) as source:
            facts = extracted_facts(source)
        # What was named is in the tags.
        yield [table], given._replace(roles=Roles(bag=facts and facts.roles["bag"]))
    except BaseException:
        messages.say(f"The {kind.things} need not be read again: what was found is in {table}.")
        raise
    table.unlink()
    end_with_faults(result, kind.things)


def load_and_read(
    model: Path,
    table: Paths,
    given: Given,
    output: Path | None = None,
    *,
    use_labels: bool = True,
    compare: bool = False,
    corrections: Path | None = None,
) -> tuple[Any, dict[str, Any], BagTable, LabelSets | None]:
    """Load a model, and read a table for it by roles as options give them.

    Return the model, the header of its file, the table, and its labels in the classes of the model;
    None if the table has none, or they are not wanted. No file to write may be one that is
    read. With `compare`, true labels of instances come without those that the model was told.
    """
    # They bring scikit-learn, which takes a second.
    from unbag.frames import (
        known_when_fitted,
        n_given,
        read_for_model,
        roles_for_model,
        without_known,
    )
    from unbag.models import load, read_header

    fitted, header = load(model), read_header(model)
    with open_table(table) as source, progress("reading") as report:
        if output is not None:
            inputs = [model, *source.files, *given.files]
            check_output(output, *inputs, *([] if corrections is None else [corrections]))
        roles = roles_for_model(fitted, source, given.roles, use_labels=use_labels)
        info = header.get("info")
        info = info if isinstance(info, dict) else {}
        if compare and source.columns:
            roles = known_when_fitted(fitted, source, roles, info)
        data, labels = read_for_model(
            fitted, source, roles, use_labels=use_labels, corrections=corrections, progress=report
        )
    if compare:
        data, n_told = without_known(data)
        n_learnt = info.get("known_instance_labels")
        if n_told:
            messages.note(
                f"{n_told:,} labelled {words().instances} are left out of the comparison: their "
                "labels were known when the model was fitted."
            )
        elif isinstance(n_learnt, int) and n_learnt and n_given(data.bags.instance_labels):
            messages.note(
                f"The model has learnt from {n_learnt:,} known labels of {words().instances}. If "
                "they are in this table, name them by --corrections, or their column by known in a "
                "file for --roles, to leave them out."
            )
    return fitted, header, data, labels
