"""Calls in recordings: from a folder of sounds and their tags to a Raven table and a report.

The recordings are made, so that it is known which call is whose. The model is told which species
are in each recording, and not where.
"""

from pathlib import Path
from typing import Any

import numpy as np

from unbag.datasets import make_soundscapes, write_soundscapes
from unbag.extract import audio
from unbag.report.clips import places_of

from .extracted import Demo, shares_right

N_RECORDINGS = 80
FILES = {
    "recordings": "recordings", "table": "calls.parquet", "model": "birds.unbag",
    "annotated": "annotated.parquet", "raven": "annotated.selections.txt", "report": "report.html",
}  # fmt: skip


def run(
    out: Path, *, quiet: bool = False, n_recordings: int = N_RECORDINGS, seed: int = 0
) -> dict[str, Any]:
    """Make recordings in the folder `out`, and annotate them; print each command that does so.

    Return the shares of calls that are labelled right, and the files.
    """
    demo = Demo(out, FILES, quiet)
    demo.console.print(f"Making {n_recordings} recordings of calls over wind, rain and insects ...")
    made = make_soundscapes(n_recordings, random_state=seed)
    folder, table = demo.files["recordings"], demo.files["table"]
    write_soundscapes(made, folder)
    tags = folder / "tags.csv"
    demo.show(f"unbag extract audio {folder} --labels {tags} -o {table}")
    with demo.annotated(audio(folder, table, tags)) as found:
        files = found.table.column("file", "media")
        boxes = np.column_stack(
            [found.table.column(name, "start").astype(float)
             for name in ("start", "end", "low", "high")]
        )  # fmt: skip
        places = places_of(boxes[:, 0], boxes[:, 1], boxes.T[2:])
        demo.report(found, "Calls in made recordings, annotated", folder, files, places)
    names = [Path(str(file)).stem for file in files]
    truth = [made.species_in(name, *box) for name, box in zip(names, boxes, strict=True)]
    tags_of = dict(zip(made.names, made.tags, strict=True))
    shares = shares_right(
        found, truth, [tags_of[name] for name in names], "recordings", "segments that hold a call"
    )
    return demo.result(
        "Calls that are labelled right", shares,
        f"Nobody said where in a recording a bird is. Open {demo.files['raven']} in Raven, and "
        f"{demo.files['report']} in a browser.",
    )  # fmt: skip
