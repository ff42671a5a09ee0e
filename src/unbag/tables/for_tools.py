"""Labels of instances, written for other programs: Raven, Audacity, Label Studio, COCO."""

from collections.abc import Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from unbag._files import PathLike, check
from unbag._messages import argument

from .bag_table import BagTable
from .formats import audacity, coco, label_studio, raven
from .spans import Spans, recording_files, recordings_of

#: Suffixes of the files of programs that may have one for each recording.
SUFFIXES: dict[str, str] = {
    "raven": raven.SUFFIX, "audacity": audacity.SUFFIX, "audacity-frequencies": audacity.SUFFIX,
}  # fmt: skip
#: What can be written, by program.
TOOLS: tuple[str, ...] = (*SUFFIXES, "label-studio", "coco")


def needs_times(tool: str, table: BagTable) -> bool:
    """Return whether a program needs the times of the instances of a table."""
    return tool in SUFFIXES or (tool == "label-studio" and not label_studio.has_boxes(table))


def selection_files(outputs: Sequence[tuple[str, Path]], table: BagTable) -> list[Path]:
    """Return the files of Raven and Audacity that will be written for pairs of program and path.

    It is an error if the table lacks what they need.
    """
    check(
        bool(table.roles.start and table.roles.end)
        or not any(needs_times(tool, table) for tool, _ in outputs),
        f"{table.path} has no start and end columns, which Raven, Audacity and Label Studio files "
        f"need: name them with {argument('start')} and {argument('end')}.",
    )
    return [
        file
        for tool, path in outputs
        if tool in SUFFIXES
        for file in recording_files(
            path, recordings_of(table), SUFFIXES[tool], in_one=tool == "raven"
        )
    ]


def write_for_tool(
    tool: str,
    path: PathLike,
    table: BagTable,
    labels: ArrayLike,
    score: ArrayLike | None = None,
    media_root: PathLike | None = None,
) -> None:
    """Write labels of instances as a file of another program.

    Parameters
    ----------
    tool : {"raven", "audacity", "audacity-frequencies", "label-studio", "coco"}
        Audacity has frequencies in a second line of each label, if that is asked for.
    path : str or path
        The file. Raven and Audacity may have a folder, for a file of each recording; Audacity needs
        one if there are several recordings.
    table : BagTable
        Read from a table with columns of the roles start and end, in seconds, and perhaps of
        frequencies, ``low`` and ``high``; without the role media, a bag is a recording. For COCO,
        and for boxes in Label Studio, with columns ``x``, ``y``, ``width``, ``height``,
        ``image_width`` and ``image_height``, in pixels, such as `unbag.extract.images` writes.
    labels : array-like of shape (n_instances,)
        In the order of ``bags.X``, such as `Annotations.selected`; instances without one (None or
        empty) are left out.
    score : array-like of shape (n_instances,), optional
        The probability of each label; Audacity has no place for it.
    media_root : str or path, optional
        The folder of the recordings, for Raven; by default the one that they were extracted from,
        if the table knows it.
    """
    check(tool in TOOLS, f"Unknown tool {tool!r}: choose one of {', '.join(TOOLS)}.")
    spans = Spans(
        table, labels, score, need_times=needs_times(tool, table),
        find_band=tool in ("raven", "audacity-frequencies"),
    )  # fmt: skip
    if tool == "raven":
        raven.write_raven(path, spans, media_root)
    elif tool in SUFFIXES:
        check(
            spans.band or tool == "audacity",
            f"{table.path} has no columns of frequencies, low and high, to write to {path}.",
        )
        audacity.write_audacity(path, spans)
    elif tool == "coco":
        coco.write_coco(path, spans)
    else:
        label_studio.write_label_studio(path, spans)
