"""``unbag extract``: from recordings, pictures and signals to a table of instances."""

from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag import _messages
from unbag._messages import argument, counted
from unbag.tables.extracted import words_of
from unbag.tables.roles import Roles

from . import options as o
from .console import messages, progress

if TYPE_CHECKING:
    from unbag.extract import Extracted

app: typer.Typer = typer.Typer(no_args_is_help=True, add_completion=False)

# Files with notes that are named; the others are counted.
MOST_NOTES = 5

about_instances = partial(typer.Option, rich_help_panel="Calls, regions or windows")
about_networks = partial(typer.Option, rich_help_panel="Networks of others")
about_tags = partial(typer.Option, rich_help_panel="Tags")

Folder = Annotated[
    Path, typer.Argument(help="A folder of files, and of folders of them; or one file.")
]
Output = Annotated[Path, o.written("The table to write, Parquet or Feather.")]
Tags = Annotated[
    Path | None,
    about_tags(
        help="A table with columns file and tags, such as wren|thrush, and perhaps start and end; "
        "or tags of another tool."
    ),
]
TagsColumn = Annotated[
    str | None, about_tags(help="Column of the tags. Default: tags, labels or label.")
]
Embed = Annotated[
    str | None,
    about_networks(
        metavar="NETWORK",
        help="Describe calls or regions by a network, ONNX or TFLite: its path, or birdnet for "
        "calls.",
    ),
]
EmbedLayer = Annotated[
    list[str] | None,
    about_networks(
        metavar="TENSOR",
        help="Read this tensor of the network; may be repeated. Default: its last output.",
    ),
]
EmbedOnly = Annotated[bool, about_networks("--embed-only", help="Leave our own features out.")]
#: How the table of tags is read; the names of files are in the column --bag.
ROLES_OF_TAGS = ("bag", "label_columns", "label_separator", "untagged", "none")


@app.callback()
def extract() -> None:
    """Cut recordings into calls, pictures into regions, signals into windows: a table.

    Example: unbag extract audio recordings --tags tags.csv -o calls.parquet
    """


@app.command()
@o.with_options(*ROLES_OF_TAGS)
def audio(
    folder: Folder,
    output: Output,
    given: o.Given,
    tags: Tags = None,
    tags_column: TagsColumn = None,
    windows: Annotated[
        float | None, about_instances(help="Seconds of windows that replace calls.")
    ] = None,
    hop: Annotated[
        float | None,
        about_instances(
            help="With --windows: seconds from one to the next. Default: they do not overlap."
        ),
    ] = None,
    segments: Annotated[
        Path | None,
        about_instances(
            help="Segments that replace calls: a file of Raven, Audacity or BirdNET, or a table "
            "with columns file, start, end, low and high."
        ),
    ] = None,
    embed: Embed = None,
    embed_rate: Annotated[
        int | None,
        about_networks(help="Samples per second that the network hears; known for BirdNET."),
    ] = None,
    embed_seconds: Annotated[
        float | None,
        about_networks(help="Seconds that it hears at once, where its file does not say."),
    ] = None,
    embed_layer: EmbedLayer = None,
    embed_only: EmbedOnly = False,
    sample_rate: Annotated[
        int,
        about_instances(help="Resample to this rate; frequencies up to half of it are used."),
    ] = 22050,
    lowest: Annotated[
        float, about_instances(help="Ignore frequencies below this (hertz).")
    ] = 200.0,
    channel: Annotated[
        int | None,
        about_instances(help="Use this channel, counted from 1. Default: the mean of all."),
    ] = None,
    split: Annotated[
        float | None,
        about_tags(
            help="Seconds of the pieces that long recordings are cut into; each is a bag. A tag "
            "with columns start and end holds in the piece that has at least half of its stretch, "
            "and is unsure in others that it overlaps."
        ),
    ] = None,
    jobs: o.Jobs = -1,
    as_json: o.Json = False,
) -> None:
    """Cut recordings into calls, and describe each of them by numbers.

    Run it again after it was stopped: it resumes.

    Example: unbag extract audio recordings --tags tags.csv -o calls.parquet
    """
    from unbag.extract.recordings import Audio

    kind = Audio(
        sample_rate, lowest, channel, windows, hop, segments,
        embed, embed_rate, embed_seconds, embed_layer or (), embed_only, split=split,
    )  # fmt: skip
    run(kind, folder, output, tags, tags_column, jobs, given)


@app.command()
@o.with_options(*ROLES_OF_TAGS)
def signals(
    table: Annotated[
        Path,
        typer.Argument(
            help="A table with a row per time stamp and a column per channel; or a folder of "
            "such tables."
        ),
    ],
    output: Output,
    given: o.Given,
    tags: Tags = None,
    tags_column: TagsColumn = None,
    windows: Annotated[float, about_instances(help="Seconds of a window.")] = 2.0,
    hop: Annotated[
        float | None,
        about_instances(help="Seconds from one window to the next. Default: they do not overlap."),
    ] = None,
    time: Annotated[
        str | None,
        about_instances(
            help="Column of the times, numbers or time stamps. Default: the one called time, "
            "timestamp or the like."
        ),
    ] = None,
    time_unit: Annotated[
        str | None,
        about_instances(help="Unit of numeric times (s, ms, us, ns). Default: guessed."),
    ] = None,
    channels: Annotated[
        list[str] | None,
        about_instances(
            help="Column of a channel, or a pattern; may be repeated. Default: all columns of "
            "numbers except times, ids and labels."
        ),
    ] = None,
    rate: Annotated[
        float | None,
        about_instances(
            help="Resample to this many samples per second. Default: the rate of most recordings."
        ),
    ] = None,
    jobs: o.Jobs = -1,
    as_json: o.Json = False,
) -> None:
    """Cut signals into windows, and describe each of them by numbers.

    Each file is a recording, or the column --bag tells recordings apart. Run it again after it was
    stopped: it resumes.

    Example: unbag extract signals days --tags tags.csv -o windows.parquet
    """
    from unbag.extract.streams import Signals

    kind = Signals(windows, hop, rate, time, time_unit, channels or None, given.roles.bag)
    run(kind, table, output, tags, tags_column, jobs, given)


@app.command()
@o.with_options(*ROLES_OF_TAGS)
def images(
    folder: Folder,
    output: Output,
    given: o.Given,
    tags: Tags = None,
    tags_column: TagsColumn = None,
    size: Annotated[
        int,
        about_instances(
            help="Pixels of the longer side at which pictures are looked at. A larger one finds "
            "smaller things."
        ),
    ] = 320,
    contrast: Annotated[
        float,
        about_instances(
            help="Least difference of neighbouring regions, in units of CIELAB. A smaller one "
            "gives more regions."
        ),
    ] = 7.0,
    grid: Annotated[
        int | None,
        about_instances(help="Cells along the longer side of a grid that replaces regions."),
    ] = None,
    segments: Annotated[
        Path | None,
        about_instances(
            help="Boxes that replace regions: a file of COCO or Label Studio, or a table with "
            "columns file, x, y, width and height."
        ),
    ] = None,
    masks: Annotated[
        Path | None,
        about_instances(
            help="Folder of masks that replace regions: a PNG of region numbers per picture, with "
            "its name."
        ),
    ] = None,
    embed: Embed = None,
    embed_layer: EmbedLayer = None,
    embed_scale: Annotated[
        str | None,
        about_networks(
            metavar="VALUES",
            help="Values that the network takes: imagenet, 0..1, -1..1 or 0..255. Default: "
            "imagenet.",
        ),
    ] = None,
    embed_only: EmbedOnly = False,
    jobs: o.Jobs = -1,
    as_json: o.Json = False,
) -> None:
    """Cut pictures into regions, and describe each of them by numbers.

    Run it again after it was stopped: it resumes.

    Example: unbag extract images photos --tags tags.csv -o regions.parquet
    """
    from unbag.extract.pictures import Images

    kind = Images(
        size, contrast, grid, segments, masks, embed, embed_layer or (), embed_scale, embed_only
    )
    run(kind, folder, output, tags, tags_column, jobs, given)


def run(
    kind: Any,
    folder: Path,
    output: Path,
    tags: Path | None,
    tags_column: str | None,
    jobs: int,
    given: o.Given,
) -> None:
    """Extract instances of a kind, and print what was found, and what could not be read."""
    if tags is None:
        about_media = {"bag"} if kind.has_bag_column else set()
        for name, value in {**vars(given.roles), "tags_column": tags_column}.items():
            if value not in (None, ()) and name not in about_media:
                raise typer.BadParameter(f"{argument(name)} is for --tags: pass both")
    roles = replace(given.roles, labels=tags_column or given.roles.labels)
    result = extract_shown(kind, folder, output, tags, jobs, roles)
    messages.result(asdict(result))
    messages.note(f"Written to {result.output}.")
    end_with_faults(result, kind.things)


def extract_shown(
    kind: Any,
    folder: Path,
    output: Path,
    tags: Path | None,
    jobs: int,
    roles: Roles,
) -> "Extracted":
    """Extract instances; show how far that has got, what was found, and notes on files."""
    from unbag.extract.extraction import extract, summary

    _messages.current_words = words_of(
        kind.name, kind.things, {"windows": getattr(kind, "windows", None)}
    )
    with progress("extracting") as report:

        def on_file(done: int, total: int, name: str, fault: str | None) -> None:
            if fault is not None:
                messages.say(f"unbag: error: {fault}")

        try:
            result = extract(
                kind, folder, output, tags, roles, n_jobs=jobs, on_file=on_file, on_progress=report
            )
        except KeyboardInterrupt:
            messages.say("Finished files are kept: run the same command again to resume.")
            raise
    for name, note in islice(result.notes.items(), MOST_NOTES):
        messages.note(f"{name}: {note}")
    if (n_more := len(result.notes) - MOST_NOTES) > 0:
        messages.note(f"Notes like these: {counted(n_more, 'more file')}. --json has them all.")
    for line in summary(result, kind.things):
        messages.note(line)
    return result


def end_with_faults(result: "Extracted", things: str) -> None:
    """End with an error if files could not be read."""
    if result.failed:
        messages.say(
            f"unbag: error: {len(result.failed):,} of {result.files:,} {things} could not be "
            "read; they are named above, and the table is without them."
        )
        raise typer.Exit(1)
