"""Demos that need no data: digits in bags, and calls in synthetic recordings.

Both learn from labels of bags alone, and count the instances that they label right.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

from unbag import tables
from unbag._files import atomic_write, make_folder
from unbag._messages import MissingExtraError, require
from unbag.bags import Bags
from unbag.datasets import load_digit_bags
from unbag.estimators import ORLogisticRegression
from unbag.extract import audio
from unbag.fitting.linear import interruptions_raised
from unbag.learning import fit
from unbag.report import write_report
from unbag.report.clips import places_of


def digits(out: Path, *, quiet: bool = False) -> dict[str, Any]:
    """Fit to bags of digits, print a table, and draw a picture into a folder.

    Return the accuracies, and the path of the picture; None if it could not be drawn.
    """
    console = Console(quiet=quiet)
    data = load_digit_bags()
    bags, y = data.bags, data.y
    n_train = len(bags) * 2 // 3
    console.print(
        f"{bags.n_instances} digits in {len(bags)} bags. Learning from the sets of digits in "
        f"{n_train} of them ..."
    )
    # An interrupted fit gives no picture.
    with interruptions_raised():
        model, table = accuracies(bags, y, n_train)
    print_shares(console, "Digits of the other bags that are labelled right",
                 ("learnt from", "accuracy"), table)  # fmt: skip
    picture = out / "digits.png"
    try:
        draw(model, bags[n_train:], y[n_train:], picture)
        drawn = f"Some of these bags are drawn in {picture}."
    except MissingExtraError as error:
        drawn, picture = f"No picture was drawn. {error}", None
    _, inductive, transductive, supervised = table.values()
    console.print(
        f"Nobody said which image is which digit. Knowing only the set of digits in each bag, the "
        f"model reads {inductive:.1%} of new digits right, where labels for every digit would have "
        f"given {supervised:.1%}; told what is in the new bags too, it gets {transductive:.1%}.\n"
        f"{drawn}",
        markup=False,  # The name of an extra stands in brackets.
    )
    return {"accuracies": table, "picture": picture}


def print_shares(
    console: Console, title: str, header: Iterable[str], shares: Mapping[str, Any]
) -> None:
    """Print shares as a table in percent."""
    printed = Table(title=title)
    for name, justify in zip(header, ("left", "right"), strict=True):
        printed.add_column(name, justify=justify)
    for name, share in shares.items():
        printed.add_row(name, f"{share:.1%}")
    console.print(printed)


def accuracies(
    bags: Bags, y: NDArray[np.integer], n_train: int
) -> tuple[ORLogisticRegression, dict[str, float]]:
    """Fit on the first bags, and count how many instances each way of labelling gets right."""
    train, test = bags[:n_train], bags[n_train:]
    model = ORLogisticRegression().fit(train, y[:n_train])
    supervised = ORLogisticRegression().fit(train.X, train.instance_labels)
    answers = {
        "majority class": np.bincount(train.instance_labels).argmax(),
        "bag labels, new bags without labels (inductive)": model.predict_instances(test),
        "bag labels, new bags with labels (transductive)": model.annotate(test, y[n_train:]),
        "every digit labelled by hand (supervised bound)": supervised.predict(test.X),
    }
    truth = test.instance_labels
    return model, {name: np.mean(answer == truth) for name, answer in answers.items()}


def draw(
    model: ORLogisticRegression, bags: Bags, y: NDArray[np.integer], path: Path, n_bags: int = 8
) -> None:
    """Draw the first bags, each digit with its inferred label and probability."""
    require("matplotlib").use("agg")
    from matplotlib import pyplot

    labels = model.annotate(bags, y, joint=True)
    proba = model.annotate_proba(bags, y)
    wrong = labels != bags.instance_labels
    figure, axes = pyplot.subplots(
        n_bags, int(bags.sizes[:n_bags].max()), figsize=(6.5, 1.05 * n_bags + 0.5), squeeze=False
    )
    for b, row in enumerate(axes):
        told = ", ".join(str(digit) for digit in np.flatnonzero(y[b]))
        row[0].text(-6, 3.5, f"told: {{{told}}}", ha="right", va="center", fontsize=10)
        for axis in row:
            axis.axis("off")
        for i, axis in zip(range(bags.offsets[b], bags.offsets[b + 1]), row, strict=False):
            axis.imshow(bags.X[i].reshape(8, 8), cmap="gray_r")
            title = f"{labels[i]} ({proba[i, labels[i]]:.0%})"
            colour = "#b2182b" if wrong[i] else "black"
            axis.set_title(title, fontsize=9, color=colour, pad=2)
    drawn = wrong[: bags.offsets[n_bags]]
    figure.suptitle(
        "Digits, labelled from the set of digits in their bag\n"
        f"(mistakes in red: {drawn.sum()} of these {len(drawn)} digits; {wrong.sum()} of all "
        f"{len(wrong)})",
        fontsize=11,
    )
    figure.subplots_adjust(left=0.27, right=0.99, top=0.89, bottom=0.03, hspace=0.55, wspace=0.1)
    make_folder(path.parent)
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=130)
    pyplot.close(figure)


RATE, SECONDS = 22050, 10.0
#: Each sound of a recording lies in a slot of its own, of as many seconds.
SLOT = 1.25
# Pitches at the beginning, in the middle and at the end of a note, its seconds, and how many notes
# there are. The last two species differ by their rhythm alone.
SPECIES = {
    "whistler": ((2300, 2350, 2300), 0.55, 1),
    "faller": ((5200, 4300, 3100), 0.4, 1),
    "hooter": ((620, 680, 610), 0.28, 2),
    "riser": ((1700, 2100, 3000), 0.3, 2),
    "triller": ((4600, 4000, 3700), 0.04, 10),
    "slow triller": ((4500, 4000, 3600), 0.09, 5),
}
#: A sound of a recording: its species, None if it is a gust, and where it begins and ends.
Sound = tuple[str | None, float, float]


def made_recording(
    tags: Iterable[str], rng: np.random.Generator
) -> tuple[NDArray[np.float64], list[Sound]]:
    """Draw a recording of one or two calls of each species, and some gusts, over wind."""
    n_samples = round(SECONDS * RATE)
    spectrum = np.fft.rfft(rng.standard_normal(n_samples))
    wind = np.fft.irfft(spectrum / (1 + np.fft.rfftfreq(n_samples, 1 / RATE) / 150), n_samples)
    waveform = 0.01 * wind / wind.std() + 0.003 * rng.standard_normal(n_samples)
    labels = [name for name in tags for _ in range(rng.integers(1, 3))] + [None] * rng.integers(3)
    sounds = []
    for slot, label in zip(rng.permutation(round(SECONDS / SLOT)), labels, strict=False):
        time = np.arange(round(rng.uniform(0.1, 0.4) * RATE)) / RATE
        sound = rng.standard_normal(len(time)) * np.exp(-8 * time)
        if label is not None:
            pitches, seconds, n_notes = SPECIES[label]
            time = np.arange(round(seconds * RATE)) / RATE
            pitch = np.interp(time, np.linspace(0, seconds, 3), pitches) * rng.normal(1, 0.03)
            note = np.sin(2 * np.pi * np.cumsum(pitch) / RATE) * np.sin(np.pi * time / seconds)
            sound = np.tile(np.pad(note, (0, 700)), n_notes)[:-700]
        first = round((slot * SLOT + rng.uniform(0, 0.4)) * RATE)
        waveform[first : first + len(sound)] += 10 ** rng.uniform(-1.7, -0.9) * sound
        sounds.append((label, first / RATE, (first + len(sound)) / RATE))
    return np.clip(waveform, -0.99, 0.99), sounds


def recordings(
    out: Path, *, quiet: bool = False, n_recordings: int = 80, seed: int = 0
) -> dict[str, Any]:
    """Make recordings in a folder, and annotate their calls; print each command that does so.

    Return the shares of calls that are labelled right, and the files.
    """
    console = Console(quiet=quiet, soft_wrap=True, highlight=False)
    soundfile = require("soundfile")
    files = {
        "recordings": out / "recordings", "table": out / "calls.parquet",
        "model": out / "birds.unbag", "annotated": out / "annotated.parquet",
        "raven": out / "annotated.selections.txt", "report": out / "report.html",
    }  # fmt: skip
    folder, table, model_file, annotated, raven, report = files.values()
    make_folder(folder)
    console.print(f"Making {n_recordings} recordings of calls over wind ...")
    rng = np.random.default_rng(seed)
    sounds: dict[str, list[Sound]] = {}
    tags = {}
    for number in range(n_recordings):
        name = f"recording_{number:03}.wav"
        tags[name] = sorted(rng.permutation(list(SPECIES))[: rng.integers(1, 4)].tolist())
        waveform, sounds[name] = made_recording(tags[name], rng)
        soundfile.write(folder / name, waveform, RATE, subtype="PCM_16")
    lines = ["file,tags", *(f"{name},{'|'.join(own)}" for name, own in tags.items()), ""]
    (folder / "tags.csv").write_text("\n".join(lines), encoding="utf-8")

    def show(command: str) -> None:
        console.print(f"$ unbag {command}", markup=False)

    show(f"extract audio {folder} --tags {folder / 'tags.csv'} -o {table}")
    audio(folder, table, folder / "tags.csv")
    show(f"fit {table} -o {model_file}")
    # An interrupted fit gives no report.
    with interruptions_raised():
        model = fit(table)
    model.save(model_file)
    show(f"annotate {model_file} {table} -o {annotated} --write raven={raven}")
    answers = model.annotate_frame(parquet.read_table(table))
    parquet.write_table(answers, annotated)
    data = tables.read(table)
    rows = answers.select(["file", "start", "end", "annotation", "status"]).to_pylist()
    labels = [row["annotation"] if row["status"] == "labelled" else None for row in rows]
    selected = np.array(labels)
    tables.write_for_tool("raven", raven, data, selected)
    show(f"report {model_file} {table} -o {report} --media-root {folder}")
    start, end, low, high = (data.column(name) for name in ("start", "end", "low", "high"))
    write_report(
        report, model, data.bags, data.labels, media=data.column("file"), media_root=folder,
        places=places_of(start, end, [low, high]), title="Calls in synthetic recordings, annotated",
        settings={"model file": model_file.name, "table": table.name},
    )  # fmt: skip
    truth = np.array([species_in(sounds[row["file"]], row["start"], row["end"]) for row in rows])
    holds = np.array([each is not None for each in truth])
    right = selected == truth
    n_tags = np.array([len(tags[row["file"]]) for row in rows])
    is_background = np.array([row["status"] == "background" for row in rows])
    shares = {
        "tags copied at random": np.mean(1 / n_tags[holds]),
        "learnt from the tags of the recordings": np.mean(right[holds]),
        "segments that hold a call": np.mean(holds),
        "of the others, left without a label": np.mean(is_background[~holds]),
    }
    print_shares(console, "Calls that are labelled right", ("labels", "share"), shares)
    console.print(
        f"Nobody said where in a recording a bird is. Open {raven} in Raven, and {report} in a "
        "browser."
    )
    return {"accuracies": shares, "files": {name: str(path) for name, path in files.items()}}


def species_in(sounds: Iterable[Sound], start: float, end: float) -> str | None:
    """Return the species that sounds for most of the time of a segment; None if there is none."""
    shared = [(min(end, stop) - max(start, first), name) for name, first, stop in sounds]
    longest, species = max(shared, key=lambda each: each[0])
    return species if longest > 0 else None
