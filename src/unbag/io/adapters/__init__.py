"""Files of other tools, read as tables of bags.

An *adapter* knows one format: how to recognise it (`Head`), and how to make of it what the rest of
the package reads (`Adapted`): a table of instances under the usual names of columns, and tags, what
is said of the labels of whole recordings or pictures. `ADAPTERS` is the table of them; a new one is
a function in a file of its family, and a line here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from unbag._files import TABLES, DataError, PathLike, check, check_format, suffix_of
from unbag._messages import argument, suggestion
from unbag.io.bag_table import BagTable
from unbag.io.roles import Roles
from unbag.io.writing import write_bags, write_tables

from . import (
    audacity,
    birdnet,
    birdset,
    coco,
    hoplite,
    label_studio,
    opensoundscape,
    raven,
    xeno_canto,
)
from .adapted import Adapted, AdaptedTable, Choices
from .head import Head
from .tags import ABSENT, UNTAGGED, label_rows, labelled


@dataclass(frozen=True)
class Adapter:
    """How one format is recognised and read.

    Parameters
    ----------
    name : str
        What people type.
    summary : str
        One line for them.
    is_format : callable
        Takes a `Head`; returns whether it is of this format.
    read : callable
        Takes a `Head` and `Choices`; returns `Adapted`.
    absent : {"absent", "unknown"}, default="absent"
        What a label is, by default, that the tags of a bag do not name.
    """

    name: str
    summary: str
    is_format: Callable[[Head], bool]
    read: Callable[[Head, Choices], Adapted]
    absent: str = "absent"


#: By name; the more particular ones first, since the first that fits is recognised.
ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter
    for adapter in (
        Adapter(
            "birdnet-embeddings",
            "BirdNET-Analyzer embeddings: CSV of file_path,start,end,embedding",
            birdnet.are_embeddings, birdnet.read_embeddings,
        ),
        Adapter(
            "birdnet-detections",
            "BirdNET-Analyzer results, CSV or Raven table, or a folder of them: tags",
            birdnet.are_detections, birdnet.read_detections,
        ),
        Adapter(
            "hoplite",
            "perch-hoplite's Parquet database, a folder: windows, embeddings, annotations",
            hoplite.is_database, hoplite.read_database, "unknown",
        ),
        Adapter(
            "birdset",
            "BirdSet-like Parquet: filepath, start_time, end_time, ebird_code_multilabel",
            birdset.is_birdset, birdset.read_birdset,
        ),
        Adapter(
            "opensoundscape",
            "opensoundscape frames as CSV: file,start_time,end_time, then classes or embeddings",
            opensoundscape.is_frame, opensoundscape.read_frame,
        ),
        Adapter(
            "raven",
            "Raven selection table, or a folder of them: segments, with or without labels",
            raven.is_selection_table, raven.read_selection_tables,
        ),
        Adapter(
            "xeno-canto",
            "xeno-canto metadata, JSON of its API or CSV of gen,sp,also: tags",
            xeno_canto.is_metadata, xeno_canto.read_metadata,
        ),
        Adapter(
            "coco",
            "COCO annotations, JSON: boxes in pictures",
            coco.is_coco, coco.read_coco,
        ),
        Adapter(
            "label-studio",
            "Label Studio export, JSON: segments of recordings, or boxes in pictures",
            label_studio.is_export, label_studio.read_export,
        ),
        Adapter(
            "audacity",
            "Audacity label track, or a folder of them: segments, with or without labels",
            audacity.is_label_track, audacity.read_label_tracks,
        ),
    )
}  # fmt: skip


def adapted(path: PathLike, format: str, choices: Choices | None = None) -> Adapted:
    """Read a file of another tool.

    Parameters
    ----------
    path : str or path
        A file or a folder, as the format has it.
    format : str
        Of `ADAPTERS`.
    choices : Choices, optional

    Returns
    -------
    Adapted
    """
    check(
        format in ADAPTERS,
        f"There is no format {format!r}; there are {', '.join(ADAPTERS)}."
        f"{suggestion(format, ADAPTERS)}",
    )
    head = Head(path)
    adapter = ADAPTERS[format]
    if not adapter.is_format(head) and (other := recognised(head)) is not None:
        raise DataError(
            f"{head.path} looks like {other}, not like {format}: use {argument('format', other)}."
        )
    return adapter.read(head, choices or Choices())


def recognised(head: Head) -> str | None:
    """Return the name of the first format that a file or folder looks like; None if there is none.

    Parameters
    ----------
    head : Head
    """
    return next((name for name, adapter in ADAPTERS.items() if adapter.is_format(head)), None)


def open_from(
    path: PathLike,
    format: str,
    *,
    tags: PathLike | None = None,
    absent: str | None = None,
    untagged: str | None = None,
    confidence: float | None = None,
    annotation_column: str | None = None,
    delimiter: str | None = None,
) -> AdaptedTable:
    """Open a file of another tool as a table of instances.

    Parameters
    ----------
    path, format, tags, absent, untagged, confidence, annotation_column
        As in `read_from`.
    delimiter : str, optional
        What separates labels in a cell; by default ``|``.

    Returns
    -------
    AdaptedTable
        To be closed: use it in a ``with`` block.
    """
    choices = Choices(confidence or 0.0, annotation_column)
    found, absent = _with_tags(path, format, tags, absent, untagged, choices)
    if found.instances is None:
        raise DataError(
            f"{path} tells the labels of recordings, and holds no instances: give it by "
            f"{argument('tags')}, beside a table of instances, or convert it to a table for "
            f"{argument('label_table')}."
        )
    return AdaptedTable(path, format, labelled(found, absent, delimiter or "|", path), found)


def read_from(
    path: PathLike,
    format: str,
    roles: Roles | None = None,
    *,
    tags: PathLike | None = None,
    absent: str | None = None,
    untagged: str | None = None,
    confidence: float | None = None,
    annotation_column: str | None = None,
    need_labels: bool = True,
) -> BagTable:
    """Read bags from a file of another tool.

    Parameters
    ----------
    path : str or path
        A file, or a folder where the format has such.
    format : str
        Such as ``"birdnet-embeddings"``; ``unbag data formats`` names them all.
    roles : Roles, optional
        The usual names of columns have their roles without.
    tags : str or path, optional
        A file of any of the formats, which is recognised. It tells the labels of the bags in
        place of `path`. Bags are found in it by their names; else by these without folders, then
        without suffixes, then by xeno-canto's catalogue number.
    absent : {"absent", "unknown"}, optional
        What a label is that the tags of a bag do not name; by default absent, except in hoplite.
    untagged : {"refuse", "absent", "unknown"}, optional
        What is done about bags that are not in `tags`: it is an error, which is the default, or
        they have no label, or any label is unknown.
    confidence : float, optional
        Detections below it do not tell whether their label is there.
    annotation_column : str, optional
        The column of labels in Raven's tables and BirdNET's results, if it is not the usual one.
    need_labels : bool, default=True
        As in `read_table`.

    Returns
    -------
    BagTable
    """
    with open_from(
        path,
        format,
        tags=tags,
        absent=absent,
        untagged=untagged,
        confidence=confidence,
        annotation_column=annotation_column,
        delimiter=None if roles is None else roles.delimiter,
    ) as source:
        return source.read(roles, need_labels=need_labels)


def convert_from(
    path: PathLike,
    format: str,
    target: PathLike,
    roles: Roles | None = None,
    *,
    tags: PathLike | None = None,
    absent: str | None = None,
    untagged: str | None = None,
    confidence: float | None = None,
    annotation_column: str | None = None,
) -> AdaptedTable:
    """Write what a file of another tool holds as a table with the usual names of columns.

    Parameters
    ----------
    path, format, tags, absent, untagged, confidence, annotation_column
        As in `read_from`.
    target : str or path
        Its suffix tells the format. What tells of whole recordings alone is written as a table of
        labels, with columns ``bag``, ``label`` and ``state``.
    roles : Roles, optional
        For formats that are no tables.

    Returns
    -------
    AdaptedTable
        What was written.
    """
    check_format(target)
    choices = Choices(confidence or 0.0, annotation_column)
    found, absent = _with_tags(path, format, tags, absent, untagged, choices)
    delimiter = (roles and roles.delimiter) or "|"
    if found.instances is None:
        check(
            tags is None, f"{path} holds no instances to be tagged: leave out {argument('tags')}."
        )
        check_format(target, TABLES)
        source = AdaptedTable(path, format, label_rows(found.tags or {}, absent), found)
    else:
        source = AdaptedTable(path, format, labelled(found, absent, delimiter, path), found)
    if suffix_of(target) in TABLES:
        write_tables(target, [source.table])
    else:
        table = source.read(roles)
        write_bags(target, table.bags, table.labels, delimiter)
    return source


def _with_tags(
    path: PathLike,
    format: str,
    tags: PathLike | None,
    absent: str | None,
    untagged: str | None,
    choices: Choices,
) -> tuple[Adapted, str]:
    """Read a file and its tags; return what labels are, too, that these do not name."""
    for option, given, words in (("absent", absent, ABSENT), ("untagged", untagged, UNTAGGED)):
        check(
            given is None or given in words,
            f"{argument(option)} must be one of {', '.join(words)}, not {given!r}.",
        )
    found = adapted(path, format, choices)
    if tags is not None:
        format = _tags_format(tags)
        found = found.with_tags(adapted(tags, format, choices), tags, untagged)
    return found, absent or ADAPTERS[format].absent


def _tags_format(tags: PathLike) -> str:
    format = recognised(Head(tags))
    if format is None:
        raise DataError(
            f"{tags} is of no format that tags may have: {', '.join(ADAPTERS)}. A table with "
            f"columns bag and label is given by {argument('label_table')}."
        )
    return format
