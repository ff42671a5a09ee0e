"""Activities in signals: from tables of sensor values and the tags of each day to labelled windows.

The signals are made, so that it is known when somebody did what. The model is told what was done on
each day, and not when.
"""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from unbag import io
from unbag._files import make_folder
from unbag.annotations import annotate
from unbag.datasets import Signals, make_signals, write_signals
from unbag.extract import signals
from unbag.extract.layouts import Layout
from unbag.fitting.solvers import interruptions_raised
from unbag.frames import read_for_model, roles_for_model
from unbag.io.annotated import Status, write_annotated
from unbag.io.table import open_source
from unbag.learning import fit
from unbag.report import write_report
from unbag.report.clips import places_of

N_RECORDINGS, SECONDS = 60, 90.0


def run(
    out: Path, *, quiet: bool = False, n_recordings: int = N_RECORDINGS, seed: int = 0
) -> dict[str, Any]:
    """Make signals in the folder `out`, and annotate them; print each command that does so.

    Return the shares of windows that are labelled right, and the files.
    """
    console = Console(quiet=quiet, soft_wrap=True, highlight=False)
    make_folder(out)
    names = {
        "signals": out / "signals", "table": out / "windows.parquet",
        "model": out / "activities.unbag", "annotated": out / "annotated.parquet",
        "report": out / "report.html",
    }  # fmt: skip
    console.print(f"Making {n_recordings} recordings of a sensor on a wrist ...")
    made = make_signals(n_recordings, duration=SECONDS, random_state=seed)
    write_signals(made, names["signals"])
    days, tags = names["signals"] / "days", names["signals"] / "tags.csv"

    def show(command: str) -> None:
        console.print(f"$ {command}", markup=False)

    show(f"unbag extract signals {days} --labels {tags} -o {names['table']}")
    extracted = signals(days, names["table"], tags)
    show(f"unbag fit {names['table']} -o {names['model']}")
    # Not a report on what half a fit has learnt.
    with interruptions_raised():
        model = fit(names["table"])
    model.save(names["model"], info={"source": names["table"].name, "bags": n_recordings,
                                     "instances": extracted.instances})  # fmt: skip
    show(f"unbag annotate {names['model']} {names['table']} -o {names['annotated']}")
    with open_source(names["table"]) as source:
        roles = roles_for_model(model, source, io.Roles())
        data, labels = read_for_model(model, source, roles)
        answers = annotate(model, data.bags, labels)
        write_annotated(data, names["annotated"], answers.columns(), {})
        show(
            f"unbag report {names['model']} {names['table']} -o {names['report']} --media-root "
            f"{days}"
        )
        files = data.column("file", "media")
        start, end = (data.column(name, "start").astype(float) for name in ("start", "end"))
        write_report(
            names["report"], model, data.bags, labels, media=files, media_root=days,
            places=places_of(start, end, []), layout=Layout("time", "s", made.channels),
            title="Activities in made signals, annotated",
            settings={"model file": names["model"].name, "table": names["table"].name},
        )  # fmt: skip
    chosen = answers.columns()["annotation"].copy()
    chosen[answers.status != Status.LABELLED] = None
    is_background = answers.status == Status.BACKGROUND
    found = shares_right(made, files, start, end, chosen, is_background)
    _print(console, found, names)
    return {"accuracies": found, "files": {name: str(path) for name, path in names.items()}}


def shares_right(
    made: Signals, files: Any, start: Any, end: Any, labels: Any, is_background: Any
) -> dict[str, float]:
    """Return how many of the windows of an activity have its label, and by tags at random."""
    names = [Path(str(file)).stem for file in files]
    truth = np.array(
        [made.activity_in(*each) for each in zip(names, start, end, strict=True)], dtype=object
    )
    tags = dict(zip(made.names, made.tags, strict=True))
    holds = np.array([each is not None for each in truth])
    at_random = [1 / len(tags[name]) for name in np.array(names)[holds]]
    return {
        "tags copied at random": float(np.mean(at_random)),
        "learnt from the tags of the recordings": float(np.mean(labels[holds] == truth[holds])),
        "windows of an activity": float(holds.mean()),
        "of the others, left without a label": float(np.mean(is_background[~holds])),
    }


def _print(console: Console, found: dict[str, float], names: dict[str, Path]) -> None:
    table = Table(title="Windows that are labelled right")
    table.add_column("labels")
    table.add_column("share", justify="right")
    for name, share in found.items():
        table.add_row(name, f"{share:.1%}")
    console.print(table)
    console.print(f"Nobody said when somebody did what. Open {names['report']} in a browser.")
