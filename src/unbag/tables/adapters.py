"""Files of other tools, read as tables of bags.

An *adapter* knows one format: how to recognise it, and how to make of it what the rest of the
package reads: a table of instances under the usual names of columns, and tags, the labels of whole
recordings or pictures. `ADAPTERS` is the table of them; a new one is a function in
`tables/formats`, and a line here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import pyarrow as pa

from unbag._files import TABLES, DataError, PathLike, check, check_format, check_rows, suffix_of
from unbag._messages import argument, suggestion
from unbag.tagging import DELIMITER, Tagging

from .adapted import Adapted, Choices, Head, check_choices
from .bag_table import BagTable
from .formats import (
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
from .frame import PyarrowTable
from .roles import Roles
from .tags import label_rows
from .writing import WRITTEN, write_bags, write_tables


@dataclass(frozen=True)
class Adapter:
    """How one format is recognised and read."""

    name: str
    is_format: Callable[[Head], bool]
    read: Callable[[Head, Choices], Adapted]
    summary: str
    #: What a label is that the tags of a bag do not name, unless people say otherwise.
    absent: str = "absent"


#: By name; the more particular ones first, since the first that fits is recognised.
ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter
    for adapter in (
        Adapter("birdnet-embeddings", birdnet.are_embeddings, birdnet.read_embeddings,
            "BirdNET-Analyzer embeddings: CSV of file_path,start,end,embedding"),
        Adapter("birdnet-detections", birdnet.are_detections, birdnet.read_detections,
            "results of BirdNET-Analyzer (CSV, Raven tables, a folder) or of the package birdnet "
            "(CSV, Parquet): tags"),
        Adapter("hoplite", hoplite.is_database, hoplite.read_database,
            "perch-hoplite's Parquet database, a folder: windows, embeddings, annotations",
            absent="unknown"),
        Adapter("birdset", birdset.is_birdset, birdset.read_birdset,
            "BirdSet-like Parquet: filepath, start_time, end_time, ebird_code_multilabel"),
        Adapter("opensoundscape", opensoundscape.is_frame, opensoundscape.read_frame,
            "opensoundscape frames as CSV: file,start_time,end_time, then classes or embeddings"),
        Adapter("raven", raven.is_selection_table, raven.read_selection_tables,
            "Raven selection table, or a folder of them: segments, with or without labels"),
        Adapter("xeno-canto", xeno_canto.is_metadata, xeno_canto.read_metadata,
            "xeno-canto metadata, JSON of its API or CSV of gen,sp,also: tags"),
        Adapter("coco", coco.is_coco, coco.read_coco,
            "COCO annotations, JSON: boxes in pictures"),
        Adapter("label-studio", label_studio.is_export, label_studio.read_export,
            "Label Studio export, JSON: segments of recordings, or boxes in pictures"),
        Adapter("audacity", audacity.is_label_track, audacity.read_label_tracks,
            "Audacity label track, or a folder of them: segments, with or without labels"),
    )
}  # fmt: skip


def adapted(path: PathLike, format: str, choices: Choices) -> Adapted:
    """Read a file or folder of another tool, in one of the formats of `ADAPTERS`."""
    check(
        format in ADAPTERS,
        f"There is no format {format!r}; there are {', '.join(ADAPTERS)}."
        f"{suggestion(format, ADAPTERS)}",
    )
    head = Head(path)
    adapter = ADAPTERS[format]
    if not adapter.is_format(head) and (other := recognised(head)) is not None:
        raise DataError(
            f"{head.path} looks like {other}, not like {format}: pass {argument('format', other)}."
        )
    return adapter.read(head, choices)


def recognised(head: Head) -> str | None:
    """Return the first format that a file or folder looks like; None if there is none."""
    return next((name for name, adapter in ADAPTERS.items() if adapter.is_format(head)), None)


class AdaptedTable(PyarrowTable):
    """A table in memory, made of another tool's file, with notes about what was left out."""

    made_features: bool = True

    def __init__(self, path: PathLike, format: str, table: pa.Table, notes: Sequence[str] = ()):
        check_rows(path, table.num_rows)
        super().__init__(table)
        self.path: Path = Path(path)
        self.format: str = format
        self.notes: tuple[str, ...] = tuple(notes)
        # The file that the labels come from, for messages.
        self.tagged_by: PathLike = path

    @property
    def table(self) -> pa.Table:
        """The rows."""
        return self.frame

    def place(self, row: int) -> str:
        """Name a row, which is an instance or a label."""
        return f"instance {row + 1}"


def read_from(
    path: PathLike,
    format: str,
    roles: Roles | None = None,
    *,
    need_labels: bool = True,
    **choices: Unpack[Choices],
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
    need_labels : bool, default=True
        As in `read`.
    **choices
        ``tags``: path of a file of any of the formats, which is recognised. It has the labels of
        the bags, in place of `path`. Bags are found in it by their names; else by these without
        folders, then without suffixes, then by xeno-canto's catalogue number.

        ``absent``: what a label is that the tags of a bag do not name, ``"absent"`` or
        ``"unknown"``; by default absent, except in hoplite.

        ``confidence``: detections below it leave their label unknown.

        ``annotation_column``: the column of labels in Raven's tables and BirdNET's results, if it
        is not the usual one.
    """
    found, absent = _with_tags(path, format, choices)
    if found.instances is None:
        raise DataError(
            f"{path} has labels of recordings, but no instances: pass it with {argument('tags')}, "
            f"as well as a table of instances, or convert it for {argument('label_table')}."
        )
    separator = (roles and roles.label_separator) or DELIMITER
    source = AdaptedTable(path, format, found.labelled(absent, separator, path), found.notes)
    source.tagged_by = choices.get("tags") or path
    source.has_union = choices.get("tags") is None
    return source.read(roles, need_labels=need_labels)


def convert_from(
    path: PathLike,
    format: str,
    target: PathLike,
    roles: Roles | None = None,
    **choices: Unpack[Choices],
) -> AdaptedTable:
    """Write what a file of another tool holds as a table with the usual names of columns.

    Parameters
    ----------
    path, format, **choices
        As in `read_from`.
    target : str or path
        Its suffix selects the format. A file about whole recordings alone is written as a table of
        labels, with columns ``bag``, ``label`` and ``state``.
    roles : Roles, optional
        Used if `target` is not a table; what they say about the names of labels always is.

    Returns
    -------
    AdaptedTable
        What was written.
    """
    check_format(target, WRITTEN)
    found, absent = _with_tags(path, format, choices)
    if roles is not None:
        of_instances = choices.get("tags") is None
        found = found.renamed(replace(roles.tagging, of_instances=of_instances), path)
        roles = replace(roles, none=(), fold_case=None, rename=())
    delimiter = (roles and roles.label_separator) or DELIMITER
    if found.instances is None:
        check(
            choices.get("tags") is None,
            f"{path} holds no instances to be tagged: leave out {argument('tags')}.",
        )
        check_format(target, TABLES)
        table = label_rows(found.tags or {}, absent)
    else:
        tagging = Tagging.of(roles and roles.untagged)
        table = found.labelled(absent, delimiter, path, tagging)
    source = AdaptedTable(path, format, table, found.notes)
    if suffix_of(target) in TABLES:
        write_tables(target, [source.table])
    else:
        bags = source.read(roles)
        write_bags(target, bags.bags, bags.labels, delimiter)
    return source


def _with_tags(path: PathLike, format: str, choices: Choices) -> tuple[Adapted, str]:
    """Read a file and its tags; return also what labels are that these do not name."""
    check_choices(choices)
    found = adapted(path, format, choices)
    tags = choices.get("tags")
    if tags is not None:
        recognised_as = recognised(Head(tags))
        if recognised_as is None:
            raise DataError(
                f"{tags} is in no format that {argument('tags')} takes: {', '.join(ADAPTERS)}. "
                f"Pass a table with columns bag and label with {argument('label_table')}."
            )
        format = recognised_as
        found = found.with_tags(adapted(tags, format, choices), tags)
    return found, choices.get("absent") or ADAPTERS[format].absent
