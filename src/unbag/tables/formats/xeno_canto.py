"""xeno-canto's metadata: the species that a recording was made of, and others in the background.

Checked against the description of its API (``xeno-canto.org/explore/api``): ``recordings`` is a
list of objects with ``id``, ``gen``, ``sp`` and ``also``, the identified background species. In
answers of it that others have kept, ``also`` is ``[""]`` where there is none, names are repeated,
and two names stand for no species: one for soundscapes, one for unidentified animals.
"""

from collections.abc import Iterator
from typing import Any

from unbag._files import DataError, check, parsed_json
from unbag._messages import shortened
from unbag.tables.adapted import Adapted, Choices, Head, data_row, read_columns
from unbag.tables.tags import States
from unbag.tables.text import TextFile
from unbag.tagging import label_text

FIELDS = ("id", "gen", "sp")
#: Names that stand for no species: of soundscapes, and of animals that nobody could name.
PLACEHOLDERS = {"sonus naturalis", "mystery mystery"}


def is_metadata(head: Head) -> bool:
    """Return whether a file is xeno-canto's answer, a list of its recordings, or CSV of them."""
    if head.document is None:
        return set(FIELDS) <= set(head.columns)
    return any(set(FIELDS) <= recording.keys() for recording in _objects(head.document))


def _objects(document: Any) -> list[dict[str, Any]]:
    """Return the recordings of an answer, of a list of answers, or of a list of recordings."""
    found = []
    for each in document if isinstance(document, list) else [document]:
        page = each.get("recordings", [each]) if isinstance(each, dict) else None
        found += [one for one in page if isinstance(one, dict)] if isinstance(page, list) else []
    return found


def read_metadata(head: Head, _: Choices) -> Adapted:
    """Read which species recordings are tagged with, as tags without instances.

    Recordings are called by their catalogue number, such as ``XC1234``, and species by genus and
    epithet. A soundscape has the tags of its background only.
    """
    tags: States = {}
    for where, recording in _recordings(head):
        for field in FIELDS:
            check(
                label_text(recording.get(field)) or field == "sp",
                f"{where} has no {field!r}, which xeno-canto's recordings have.",
            )
        genus, epithet = (label_text(recording.get(field)) for field in ("gen", "sp"))
        names = [f"{genus} {epithet}", *_background(recording.get("also"), where)]
        labels = [name for name in map(label_text, names) if name.lower() not in PLACEHOLDERS]
        number = label_text(recording["id"]).upper().removeprefix("XC")
        tags.setdefault(f"XC{number}", {}).update(dict.fromkeys(filter(None, labels), 1))
    check(tags, f"{head.path} holds no recordings of xeno-canto.")
    # A soundscape whose background nobody has filled in says nothing.
    return Adapted(None, {bag: states for bag, states in tags.items() if states})


def _recordings(head: Head) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each recording, for messages, and its fields."""
    if head.document is not None:
        for number, recording in enumerate(_objects(head.document), 1):
            yield f"{head.path}, recording {number}", recording
        return
    check(not head.is_folder, f"{head.path} is a folder: name a file in it.")
    source = TextFile(head.path)
    with source:
        names = [*FIELDS, *(["also"] if "also" in source.columns else [])]
        table = read_columns(source, names, "xeno-canto's metadata")
        for row, recording in enumerate(table.to_pylist()):
            yield data_row(head.path, row), recording


def _background(also: Any, where: str) -> list[Any]:
    """Return the background species: a list, or a cell of a table that holds several."""
    if also is None:
        return []
    if isinstance(also, str):
        if also.strip().startswith("["):
            try:
                also = parsed_json(also.replace("'", '"'))
            except ValueError as error:
                raise DataError(f"{where}: 'also' is not a list: {shortened(also)}.") from error
        else:
            for mark in "|;":
                also = also.replace(mark, ",")
            also = also.split(",")
    check(
        isinstance(also, list) and all(isinstance(each, str) for each in also),
        f"{where}: 'also' should be a list of names, not {shortened(also)}.",
    )
    return also
