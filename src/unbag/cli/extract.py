"""``unbag extract``: from recordings, pictures and signals to a table of instances."""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from unbag._messages import argument, counted
from unbag.io import Roles

from . import options as o
from .console import messages, progress

app: typer.Typer = typer.Typer(no_args_is_help=True)

FOUND = "What instances are"
TAGS = "Tags"
# Files with something strange about them that are named; the others are counted.
MOST_NOTES = 5

Folder = Annotated[
    Path, typer.Argument(help="A folder of files, and of folders of them; or one file.")
]
Labels = Annotated[
    Path | None,
    typer.Option(
        help="A table with columns file and tags, such as wren|thrush, or tags of another tool.",
        rich_help_panel=TAGS,
    ),
]
TagsColumn = Annotated[
    str | None,
    typer.Option(help="Column of the tags. Default: tags, labels or label.", rich_help_panel=TAGS),
]
Jobs = Annotated[
    int, typer.Option("--jobs", help="Number of processes; -1 for as many as there are cores.")
]
#: How the table of tags is read; the names of files are in the column --bag.
OF_TAGS = ("bag", "label_columns", "delimiter", "untagged", "none", "fold_case", "rename")


@app.callback()
def extract() -> None:
    """Make tables of instances of recordings, pictures and signals.

    Example: unbag extract audio recordings --labels tags.csv -o calls.parquet
    """


@app.command()
@o.with_roles(*OF_TAGS)
def audio(
    folder: Folder,
    output: Annotated[Path, o.written("The table to write, Parquet or Feather.")],
    labels: Labels = None,
    tags_column: TagsColumn = None,
    windows: Annotated[
        float | None,
        typer.Option(
            help="Take windows of so many seconds in place of calls.", rich_help_panel=FOUND
        ),
    ] = None,
    hop: Annotated[
        float | None,
        typer.Option(
            help="With --windows: seconds from one to the next. Default: they do not overlap.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    segments: Annotated[
        Path | None,
        typer.Option(
            help="Take segments of a file of Raven, Audacity or BirdNET, or of a table with "
            "columns file, start, end, low and high.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(
            help="Embeddings of BirdNET or Perch, as more features of the calls in their windows.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    sample_rate: Annotated[
        int,
        typer.Option(
            help="Resample to this rate; frequencies up to half of it are looked at.",
            rich_help_panel=FOUND,
        ),
    ] = 22050,
    lowest: Annotated[
        float,
        typer.Option(help="Look for nothing below so many hertz.", rich_help_panel=FOUND),
    ] = 200.0,
    channel: Annotated[
        int | None,
        typer.Option(
            help="Use this channel, counted from 1. Default: their mean.", rich_help_panel=FOUND
        ),
    ] = None,
    jobs: Jobs = 1,
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Cut recordings into calls, and describe each of them by numbers.

    Run it again after it was stopped: it goes on where it was.

    Example: unbag extract audio recordings --labels tags.csv -o calls.parquet
    """
    from unbag.extract.recordings import audio_kind
    from unbag.extract.tags import read_tags

    kind = audio_kind(
        folder, sample_rate=sample_rate, lowest=lowest, channel=channel, windows=windows, hop=hop,
        segments=segments, embeddings=embeddings, output=output,
    )  # fmt: skip
    tags = None
    if labels is not None:
        tags = read_tags(labels, Roles.from_options(**given), tags_column)
    else:
        refuse_without_labels(given, tags_column)
    extract_files(kind, folder, output, tags, jobs)


@app.command()
@o.with_roles(*OF_TAGS)
def signals(
    table: Annotated[
        Path,
        typer.Argument(
            help="A table with a row per time stamp and a column per channel; or a folder of such."
        ),
    ],
    output: Annotated[Path, o.written("The table to write, Parquet or Feather.")],
    labels: Labels = None,
    tags_column: TagsColumn = None,
    windows: Annotated[
        float, typer.Option(help="Seconds of a window.", rich_help_panel=FOUND)
    ] = 2.0,
    hop: Annotated[
        float | None,
        typer.Option(
            help="Seconds from one window to the next. Default: they do not overlap.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="Column of the times, numbers or time stamps. Default: time, timestamp or so.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    time_unit: Annotated[
        str | None,
        typer.Option(
            help="What numbers of time count: s, ms, us or ns. Default: as they look.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    channels: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of a channel, or a pattern; may be repeated. Default: all numbers that "
            "are no times, ids or labels.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            help="Resample to so many samples per second. Default: as most recordings have.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    jobs: Jobs = 1,
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Cut signals into windows, and describe each of them by numbers.

    Each file is a recording, or the column --bag tells recordings apart. Run it again after it was
    stopped: it goes on where it was.

    Example: unbag extract signals days --labels tags.csv -o windows.parquet
    """
    from unbag.extract.streams import signals_kind, tags_of_signals

    kind = signals_kind(
        table, windows=windows, hop=hop, rate=rate, time=time, time_unit=time_unit,
        channels=channels or None, bag=given.get("bag"), labels=labels, output=output,
    )  # fmt: skip
    tags = None
    if labels is not None:
        tags = tags_of_signals(labels, Roles.from_options(**given), tags_column)
    else:
        refuse_without_labels({**given, "bag": None}, tags_column)
    extract_files(kind, table, output, tags, jobs)


@app.command()
@o.with_roles(*OF_TAGS)
def images(
    folder: Folder,
    output: Annotated[Path, o.written("The table to write, Parquet or Feather.")],
    labels: Labels = None,
    tags_column: TagsColumn = None,
    size: Annotated[
        int,
        typer.Option(
            help="Pixels of the longer side in which pictures are looked at. A larger one finds "
            "smaller things.",
            rich_help_panel=FOUND,
        ),
    ] = 320,
    contrast: Annotated[
        float,
        typer.Option(
            help="How much neighbouring regions differ at least, in units of CIELAB. A smaller one "
            "gives more regions.",
            rich_help_panel=FOUND,
        ),
    ] = 7.0,
    grid: Annotated[
        int | None,
        typer.Option(
            help="Take a grid in place of regions, with so many cells along the longer side.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    segments: Annotated[
        Path | None,
        typer.Option(
            help="Take boxes of a file of COCO or Label Studio, or of a table with columns file, "
            "x, y, width and height.",
            rich_help_panel=FOUND,
        ),
    ] = None,
    jobs: Jobs = 1,
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Cut pictures into regions, and describe each of them by numbers.

    Run it again after it was stopped: it goes on where it was.

    Example: unbag extract images photos --labels tags.csv -o regions.parquet
    """
    from unbag.extract.pictures import images_kind
    from unbag.extract.tags import read_tags

    kind = images_kind(
        folder, size=size, contrast=contrast, grid=grid, segments=segments, output=output
    )
    tags = None
    if labels is not None:
        tags = read_tags(labels, Roles.from_options(**given), tags_column)
    else:
        refuse_without_labels(given, tags_column)
    extract_files(kind, folder, output, tags, jobs)


def extract_files(kind: Any, where: Path, output: Path, tags: Any, jobs: int) -> None:
    """Extract instances of a kind, show progress, and print what was extracted."""
    from unbag.extract.extraction import extract as run

    with progress("extracting") as report:

        def on_file(done: int, total: int, name: str, fault: str | None) -> None:
            if fault is not None:
                messages.say(f"unbag: error: {fault}")

        try:
            result = run(
                kind, where, output, tags, n_jobs=jobs, on_file=on_file, on_progress=report
            )
        except KeyboardInterrupt:
            messages.say("What is finished is kept: run the same command again to go on.")
            raise
    finish(result, kind.things)


def refuse_without_labels(given: dict[str, Any], tags_column: str | None) -> None:
    """Raise an error for options about tags where there are none."""
    for name, value in {**given, "tags_column": tags_column}.items():
        if value is not None:
            raise typer.BadParameter(f"{argument(name)} is for --labels: pass both")


def finish(result: Any, things: str) -> None:
    """Print what was extracted, and end with exit code 1 if files could not be read."""
    from unbag.extract.extraction import summary

    messages.result(asdict(result))
    for name, note in islice(result.notes.items(), MOST_NOTES):
        messages.note(f"{name}: {note}")
    if (n_more := len(result.notes) - MOST_NOTES) > 0:
        messages.note(f"Notes like these: {counted(n_more, 'more file')}. --json has them all.")
    for line in summary(result, things):
        messages.note(line)
    messages.note(f"Written to {result.output}.")
    if result.failed:
        messages.say(
            f"unbag: error: {len(result.failed):,} of {result.files:,} {things} could not be read; "
            "they are named above, and the table is without them."
        )
        raise typer.Exit(1)
