"""Activities in signals: from tables of sensor values and the tags of each day to labelled windows.

The signals are made, so that it is known when somebody did what. The model is told what was done on
each day, and not when.
"""

from pathlib import Path
from typing import Any

from unbag.datasets import make_signals, write_signals
from unbag.extract import signals
from unbag.extract.layouts import Layout
from unbag.report.clips import places_of

from .extracted import Demo, shares_right

N_RECORDINGS, SECONDS = 60, 90.0
FILES = {
    "signals": "signals", "table": "windows.parquet", "model": "activities.unbag",
    "annotated": "annotated.parquet", "report": "report.html",
}  # fmt: skip


def run(
    out: Path, *, quiet: bool = False, n_recordings: int = N_RECORDINGS, seed: int = 0
) -> dict[str, Any]:
    """Make signals in the folder `out`, and annotate them; print each command that does so.

    Return the shares of windows that are labelled right, and the files.
    """
    demo = Demo(out, FILES, quiet)
    demo.console.print(f"Making {n_recordings} recordings of a sensor on a wrist ...")
    made = make_signals(n_recordings, duration=SECONDS, random_state=seed)
    folder, table = demo.files["signals"], demo.files["table"]
    write_signals(made, folder)
    days, tags = folder / "days", folder / "tags.csv"
    demo.show(f"unbag extract signals {days} --labels {tags} -o {table}")
    with demo.annotated(signals(days, table, tags)) as found:
        files = found.table.column("file", "media")
        start, end = (found.table.column(name, "start").astype(float) for name in ("start", "end"))
        demo.report(
            found, "Activities in made signals, annotated", days, files, places_of(start, end, []),
            layout=Layout("time", "s", made.channels),
        )  # fmt: skip
    names = [Path(str(file)).stem for file in files]
    truth = [made.activity_in(*each) for each in zip(names, start, end, strict=True)]
    tags_of = dict(zip(made.names, made.tags, strict=True))
    shares = shares_right(
        found, truth, [tags_of[name] for name in names], "recordings", "windows of an activity"
    )
    return demo.result(
        "Windows that are labelled right", shares,
        f"Nobody said when somebody did what. Open {demo.files['report']} in a browser.",
    )  # fmt: skip
