"""Calls in recordings: from a folder of sounds and their tags to a Raven table and a report.

The recordings are made, so that it is known which call is whose. The model is told which species
are in each recording, and not where.
"""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from unbag import io
from unbag._files import make_folder, written_together
from unbag.annotations import annotate
from unbag.datasets import Soundscapes, make_soundscapes, write_soundscapes
from unbag.extract import audio
from unbag.fitting.solvers import interruptions_raised
from unbag.frames import read_for_model, roles_for_model
from unbag.io.annotated import Status, write_annotated
from unbag.io.table import open_source
from unbag.learning import fit
from unbag.report import write_report
from unbag.report.clips import places_of

N_RECORDINGS = 80


def run(
    out: Path, *, quiet: bool = False, n_recordings: int = N_RECORDINGS, seed: int = 0
) -> dict[str, Any]:
    """Make recordings in the folder `out`, and annotate them; print each command that does so.

    Return the shares of calls that are labelled right, and the files.
    """
    console = Console(quiet=quiet, soft_wrap=True, highlight=False)
    make_folder(out)
    names = {
        "recordings": out / "recordings", "table": out / "calls.parquet",
        "model": out / "birds.unbag", "annotated": out / "annotated.parquet",
        "raven": out / "annotated.selections.txt", "report": out / "report.html",
    }  # fmt: skip
    console.print(f"Making {n_recordings} recordings of calls over wind, rain and insects ...")
    made = make_soundscapes(n_recordings, random_state=seed)
    write_soundscapes(made, names["recordings"])
    tags = names["recordings"] / "tags.csv"

    def show(command: str) -> None:
        console.print(f"$ {command}", markup=False)

    show(f"unbag extract audio {names['recordings']} --labels {tags} -o {names['table']}")
    extracted = audio(names["recordings"], names["table"], tags)
    show(f"unbag fit {names['table']} -o {names['model']}")
    # Not a report on what half a fit has learnt.
    with interruptions_raised():
        model = fit(names["table"])
    model.save(names["model"], info={"source": names["table"].name, "bags": n_recordings,
                                     "instances": extracted.instances})  # fmt: skip
    show(
        f"unbag annotate {names['model']} {names['table']} -o {names['annotated']} --raven "
        f"{names['raven']}"
    )
    with open_source(names["table"]) as source:
        roles = roles_for_model(model, source, io.Roles())
        data, labels = read_for_model(model, source, roles)
        answers = annotate(model, data.bags, labels)
        selected = answers.columns()["annotation"].copy()
        selected[answers.status != Status.LABELLED] = None
        with written_together():
            io.write_raven(names["raven"], data, selected)
            write_annotated(data, names["annotated"], answers.columns(), {})
        show(
            f"unbag report {names['model']} {names['table']} -o {names['report']} --media-root "
            f"{names['recordings']}"
        )
        files = data.column("file", "media")
        boxes = np.column_stack(
            [data.column(name, "start").astype(float) for name in ("start", "end", "low", "high")]
        )
        write_report(
            names["report"], model, data.bags, labels, media=files,
            media_root=names["recordings"], places=places_of(boxes[:, 0], boxes[:, 1], boxes.T[2:]),
            title="Calls in made recordings, annotated",
            settings={"model file": names["model"].name, "table": names["table"].name},
        )  # fmt: skip
    found = shares_right(made, files, boxes, selected, answers.status == Status.BACKGROUND)
    _print(console, found, names)
    return {"accuracies": found, "files": {name: str(path) for name, path in names.items()}}


def shares_right(
    made: Soundscapes, files: Any, boxes: Any, labels: Any, is_background: Any
) -> dict[str, float]:
    """Return how many of the segments that hold a call have its label, and by tags at random."""
    truth = np.array(
        [made.species_in(Path(str(file)).stem, *box)
         for file, box in zip(files, boxes, strict=True)], dtype=object,
    )  # fmt: skip
    tags = dict(zip(made.names, made.tags, strict=True))
    holds = np.array([each is not None for each in truth])
    at_random = [1 / len(tags[Path(str(file)).stem]) for file in files[holds]]
    return {
        "tags copied at random": float(np.mean(at_random)),
        "learnt from the tags of the recordings": float(np.mean(labels[holds] == truth[holds])),
        "segments that hold a call": float(holds.mean()),
        "of the others, left without a label": float(np.mean(is_background[~holds])),
    }


def _print(console: Console, found: dict[str, float], names: dict[str, Path]) -> None:
    table = Table(title="Calls that are labelled right")
    table.add_column("labels")
    table.add_column("share", justify="right")
    for name, share in found.items():
        table.add_row(name, f"{share:.1%}")
    console.print(table)
    console.print(
        f"Nobody said where in a recording a bird is. Open {names['raven']} in Raven, and "
        f"{names['report']} in a browser."
    )
