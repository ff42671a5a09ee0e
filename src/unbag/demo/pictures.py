"""Things in pictures: from a folder of photos and their tags to labelled regions and a report.

The pictures are made, so that it is known which pixel shows what. The model is told which things
are in each picture, and not where.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag._extras import require
from unbag.datasets import make_pictures, write_pictures
from unbag.extract import images
from unbag.extract.regions import outline_rings
from unbag.report.outlines import outlines_of

from .extracted import Demo, shares_right

N_PICTURES = 80
FILES = {
    "pictures": "pictures", "table": "regions.parquet", "model": "things.unbag",
    "annotated": "annotated.parquet", "report": "report.html",
}  # fmt: skip


def run(
    out: Path, *, quiet: bool = False, n_pictures: int = N_PICTURES, seed: int = 0
) -> dict[str, Any]:
    """Make pictures in the folder `out`, and annotate them; print each command that does so.

    Return the shares of regions that are labelled right, and the files.
    """
    demo = Demo(out, FILES, quiet)
    demo.console.print(f"Making {n_pictures} pictures of things on sand, grass and cloth ...")
    made = make_pictures(n_pictures, random_state=seed)
    folder, table = demo.files["pictures"], demo.files["table"]
    write_pictures(made, folder)
    tags = folder / "tags.csv"
    demo.show(f"unbag extract images {folder} --labels {tags} -o {table}")
    with demo.annotated(images(folder, table, tags)) as found:
        files, outlines, width, height = (
            found.table.column(name) for name in ("file", "outline", "image_width", "image_height")
        )
        places = outlines_of(outlines, width, height)
        demo.report(found, "Things in made pictures, annotated", folder, files, places)
    names = [Path(str(file)).stem for file in files]
    size = made.maps[0].shape
    truth = [
        made.label_in(name, filled(str(outline), size))
        for name, outline in zip(names, outlines, strict=True)
    ]
    tags_of = dict(zip(made.names, made.tags, strict=True))
    shares = shares_right(
        found, truth, [tags_of[name] for name in names], "pictures", "regions that show a thing"
    )
    return demo.result(
        "Regions that are labelled right", shares,
        f"Nobody said where in a picture a thing is. Open {demo.files['report']} in a browser.",
    )  # fmt: skip


def filled(outline: str, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return the pixels inside of an outline, without its holes."""
    drawn = require("PIL.Image").new("1", shape[::-1])
    for place, ring in enumerate(outline_rings(outline)):
        require("PIL.ImageDraw").Draw(drawn).polygon(ring, fill=int(not place))
    return np.asarray(drawn)
