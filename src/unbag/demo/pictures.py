"""Things in pictures: from a folder of photos and their tags to labelled regions and a report.

The pictures are made, so that it is known which pixel shows what. The model is told which things
are in each picture, and not where.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from unbag import io
from unbag._extras import require
from unbag._files import make_folder
from unbag.annotations import annotate
from unbag.datasets import Pictures, make_pictures, write_pictures
from unbag.extract import images
from unbag.extract.regions import outline_rings
from unbag.fitting.solvers import interruptions_raised
from unbag.frames import read_for_model, roles_for_model
from unbag.io.annotated import Status, write_annotated
from unbag.io.table import open_source
from unbag.learning import fit
from unbag.report import write_report
from unbag.report.outlines import outlines_of

N_PICTURES = 80


def run(
    out: Path, *, quiet: bool = False, n_pictures: int = N_PICTURES, seed: int = 0
) -> dict[str, Any]:
    """Make pictures in the folder `out`, and annotate them; print each command that does so.

    Return the shares of regions that are labelled right, and the files.
    """
    console = Console(quiet=quiet, soft_wrap=True, highlight=False)
    make_folder(out)
    names = {
        "pictures": out / "pictures", "table": out / "regions.parquet",
        "model": out / "things.unbag", "annotated": out / "annotated.parquet",
        "report": out / "report.html",
    }  # fmt: skip
    console.print(f"Making {n_pictures} pictures of things on sand, grass and cloth ...")
    made = make_pictures(n_pictures, random_state=seed)
    write_pictures(made, names["pictures"])
    tags = names["pictures"] / "tags.csv"

    def show(command: str) -> None:
        console.print(f"$ {command}", markup=False)

    show(f"unbag extract images {names['pictures']} --labels {tags} -o {names['table']}")
    extracted = images(names["pictures"], names["table"], tags)
    show(f"unbag fit {names['table']} -o {names['model']}")
    # Not a report on what half a fit has learnt.
    with interruptions_raised():
        model = fit(names["table"])
    model.save(names["model"], info={"source": names["table"].name, "bags": n_pictures,
                                     "instances": extracted.instances})  # fmt: skip
    show(f"unbag annotate {names['model']} {names['table']} -o {names['annotated']}")
    with open_source(names["table"]) as source:
        roles = roles_for_model(model, source, io.Roles())
        data, labels = read_for_model(model, source, roles)
        answers = annotate(model, data.bags, labels)
        write_annotated(data, names["annotated"], answers.columns(), {})
        show(
            f"unbag report {names['model']} {names['table']} -o {names['report']} --media-root "
            f"{names['pictures']}"
        )
        files, outlines, width, height = (
            data.column(name) for name in ("file", "outline", "image_width", "image_height")
        )
        write_report(
            names["report"], model, data.bags, labels, media=files,
            media_root=names["pictures"], places=outlines_of(outlines, width, height),
            title="Things in made pictures, annotated",
            settings={"model file": names["model"].name, "table": names["table"].name},
        )  # fmt: skip
    selected = answers.columns()["annotation"].copy()
    selected[answers.status != Status.LABELLED] = None
    found = shares_right(made, files, outlines, selected, answers.status == Status.BACKGROUND)
    _print(console, found, names)
    return {"accuracies": found, "files": {name: str(path) for name, path in names.items()}}


def shares_right(
    made: Pictures, files: Any, outlines: Any, labels: Any, is_background: Any
) -> dict[str, float]:
    """Return how many of the regions that show a thing have its label, and by tags at random."""
    names = [Path(str(file)).stem for file in files]
    size = made.maps[0].shape
    truth = np.array(
        [made.label_in(name, filled(str(outline), size))
         for name, outline in zip(names, outlines, strict=True)], dtype=object,
    )  # fmt: skip
    tags = dict(zip(made.names, made.tags, strict=True))
    holds = np.array([each is not None for each in truth])
    at_random = [
        1 / len(tags[name]) for name, is_thing in zip(names, holds, strict=True) if is_thing
    ]
    return {
        "tags copied at random": float(np.mean(at_random)),
        "learnt from the tags of the pictures": float(np.mean(labels[holds] == truth[holds])),
        "regions that show a thing": float(holds.mean()),
        "of the others, left without a label": float(np.mean(is_background[~holds])),
    }


def filled(outline: str, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return the pixels inside of an outline, without its holes."""
    drawn = require("PIL.Image").new("1", shape[::-1])
    for place, ring in enumerate(outline_rings(outline)):
        require("PIL.ImageDraw").Draw(drawn).polygon(ring, fill=int(not place))
    return np.asarray(drawn)


def _print(console: Console, found: dict[str, float], names: dict[str, Path]) -> None:
    table = Table(title="Regions that are labelled right")
    table.add_column("labels")
    table.add_column("share", justify="right")
    for name, share in found.items():
        table.add_row(name, f"{share:.1%}")
    console.print(table)
    console.print(
        f"Nobody said where in a picture a thing is. Open {names['report']} in a browser."
    )
