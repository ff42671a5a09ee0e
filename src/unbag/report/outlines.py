"""A region of a picture for a report: its outline, and the picture in a small size."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from unbag._messages import require
from unbag.extract.pictures import picture_in
from unbag.extract.regions import outline_rings

#: Pixels of the longer side of a picture, and how well it is kept, from 0 to 95.
LONGER_SIDE, QUALITY = 320, 75


@dataclass(frozen=True)
class Outline:
    """Where a region lies: rings of corners, in a picture of some size, in pixels."""

    rings: Sequence[Sequence[tuple[int, int]]]
    width: int
    height: int


def outlines_of(outlines: Any, width: Any, height: Any) -> list[Outline | None]:
    """Return where instances lie, given columns of outlines, and of the sizes of pictures.

    Instances without a valid outline get None.
    """
    found: list[Outline | None] = []
    for text, *size in zip(outlines, width, height, strict=True):
        try:
            found.append(Outline(outline_rings(str(text)), *(int(each) for each in size)))
        except ValueError:
            found.append(None)
    return found


def small_picture(file: BinaryIO, path: str) -> tuple[bytes, int, int]:
    """Return a picture as a small JPEG, and its size; a DataError says why that is not possible."""
    picture = picture_in(file, Path(path), LONGER_SIDE)
    content = io.BytesIO()
    require("PIL.Image").fromarray(picture.pixels).save(content, "JPEG", quality=QUALITY)
    return content.getvalue(), picture.width, picture.height


def drawing_of(outline: Outline) -> str:
    """Return the outline as SVG, to be laid over its picture."""
    path = "".join(f"M{' '.join(f'{x},{y}' for x, y in ring)}Z" for ring in outline.rings)
    return (
        f'<svg viewBox="0 0 {outline.width} {outline.height}" aria-hidden="true">'
        f'<path class="halo" d="{path}"/><path d="{path}"/></svg>'
    )
