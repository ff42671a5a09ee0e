"""Draw the figures of README and the documentation: ``python docs/make_figures.py [NAME ...]``.

Pictures of pages need Chromium, and are left as they are where there is none.
"""

import shutil
import subprocess
import sys
import tempfile
from doctest import DocTestParser
from importlib.util import find_spec
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from pyarrow.parquet import read_table

from unbag import Bags, LabelSets, ORLogisticRegression, extract, fit
from unbag.datasets import (
    load_digit_bags,
    load_letter_frost,
    make_signals,
    make_soundscapes,
    write_signals,
    write_soundscapes,
)
from unbag.metrics import calibration
from unbag.report import render

README = Path(__file__).parents[1] / "README.md"
FIGURES = Path(__file__).parent / "figures"
# Distinguishable without red and green (Okabe and Ito).
COLOURS = np.array(["#0072b2", "#e69f00", "#009e73"])
NAMES = ("wren", "thrush", "robin")


def syllables(random_state=4, n_bags=60):
    """Make syllables of three birds, two numbers each, in recordings of a few."""
    rng = np.random.default_rng(random_state)
    centres = np.array([[2.0, 4.0], [5.0, 2.0], [6.0, 6.0]])
    sizes = rng.integers(2, 6, n_bags)
    labels = rng.integers(0, 3, sizes.sum())
    X = centres[labels] + 0.9 * rng.normal(size=(len(labels), 2))
    y = np.zeros((n_bags, 3), dtype=int)
    y[np.repeat(np.arange(n_bags), sizes), labels] = 1
    return Bags(X, np.append(0, np.cumsum(sizes)), instance_labels=labels), y


def from_bags_to_instances():
    """Draw what is known, what is learnt, and what was true."""
    bags, y = syllables()
    model = ORLogisticRegression().fit(bags, y)
    figure, axes = pyplot.subplots(1, 3, figsize=(10, 3.6), sharex=True, sharey=True)
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    share = y[bag] / y[bag].sum(axis=1, keepdims=True)
    rgb = np.array([matplotlib.colors.to_rgb(colour) for colour in COLOURS])
    axes[0].scatter(*bags.X.T, c=share @ rgb, s=18)
    axes[0].set_title("known: which birds are in\nthe recording (colours mixed)")
    proba = model.predict_instances_proba(bags)
    grid = np.stack(np.meshgrid(np.linspace(-1, 9, 200), np.linspace(-1, 9, 200)), axis=-1)
    regions = model.predict_instances(grid.reshape(-1, 2)).reshape(200, 200)
    axes[1].contourf(
        grid[..., 0], grid[..., 1], regions, levels=[-0.5, 0.5, 1.5, 2.5], colors=COLOURS, alpha=0.2
    )
    axes[1].scatter(*bags.X.T, c=proba @ rgb, s=18)
    axes[1].set_title("learnt: which syllable\nis whose")
    for c, name in enumerate(NAMES):
        axes[2].scatter(*bags.X[bags.instance_labels == c].T, c=COLOURS[c], s=18, label=name)
    axes[2].set_title("true, and never told")
    axes[2].legend(loc="upper left")
    for axis in axes:
        axis.set(xlabel="pitch", ylabel="length")
    save(figure, "from_bags_to_instances")


def fit_curve():
    """Draw the likelihood, iteration by iteration."""
    digits = load_digit_bags()
    bags, y = digits.bags, digits.y
    figure, axis = pyplot.subplots(figsize=(5.5, 3.6))
    for name, options in {
        "EM, as published (no penalty)": {
            "solver": "em",
            "alpha": 0.0,
            "max_iter": 100,
            "tol": 0.0,
        },
        "L-BFGS (alpha = 1)": {"solver": "lbfgs", "max_iter": 100, "tol": 0.0},
    }.items():
        history = ORLogisticRegression(**options).fit(bags, y).history_
        axis.plot(np.arange(1, len(history) + 1), history, label=name)
    axis.set(xlabel="iteration", ylabel="log-likelihood of the label sets", ylim=(-700, 10))
    axis.legend()
    save(figure, "fit_curve")


def how_sure():
    """Draw probabilities of instances against how often they are right."""
    digits = load_digit_bags()
    bags, y = digits.bags, digits.y
    n_train = 120
    model = ORLogisticRegression().fit(bags[:n_train], y[:n_train])
    test = bags[n_train:]
    figure, axis = pyplot.subplots(figsize=(4.2, 4))
    axis.plot([0, 1], [0, 1], color="0.7", lw=1)
    for name, proba in {
        "label set not known": model.predict_instances_proba(test),
        "label set known": model.annotate_proba(test, y[n_train:]),
    }.items():
        bins = calibration(test.instance_labels, proba, model.classes_, n_bins=8)
        filled = bins.counts > 0
        axis.plot(bins.confidence[filled], bins.accuracy[filled], "o-", label=name)
    axis.set(xlabel="probability of the chosen label", ylabel="share that is right")
    axis.legend()
    save(figure, "how_sure")


def report():
    """Take a picture of a report, from how sure labels are to the first bags."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("There is no Chromium: report.png is as it was.")
        return
    data = load_letter_frost()
    names = data.class_names.astype(object)
    bags = Bags(data.bags.X, data.bags.offsets, instance_labels=names[data.instance_labels])
    labels = LabelSets(data.y, data.class_names)
    page = render(ORLogisticRegression().fit(bags, labels), bags, labels)
    # What stands above, and the bar of links that stays in sight, would be all that is seen.
    cut = "<style>header, nav, #data, #classes, #evaluation { display: none; }</style></head>"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        path.write_text(page.replace("</head>", cut, 1))
        subprocess.run(
            [
                chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={folder}/profile", "--window-size=885,960",
                f"--screenshot={FIGURES / 'report.png'}", path.as_uri(),
            ],
            check=True, capture_output=True,
        )  # fmt: skip


def review(waits="document.querySelectorAll('#instances .spectrogram').length > 2"):
    """Take pictures of the page of a review: of calls, after an answer; wide, and on a phone."""
    # What drives a browser in the tests.
    sys.path.insert(0, str(README.parent / "tests"))
    from review.browser import CHROMIUM, DRIVER, Browser
    from review.command import Command

    if CHROMIUM is None or DRIVER is None:
        print("There is no Chromium: the pictures of a review are as they were.")
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "demo")
        unbag = [sys.executable, "-m", "unbag.cli"]
        subprocess.run([*unbag, "demo", "audio", "-o", folder], check=True, capture_output=True)
        (folder / "birds.unbag").rename(folder / "m.unbag")
        options = ("--media-root", str(folder / "recordings"), "--refit-every", "0")
        with Command(folder, *options, table="calls.parquet") as served:
            for name, *window in (("review", 1200, 900), ("review_phone", 390, 844, True)):
                with Browser(*window) as browser:
                    browser.open(served.address)
                    browser.wait(waits)
                    browser.press("2" if name == "review" else "1")
                    browser.wait("document.querySelector('#news').textContent !== ''")
                    browser.wait("!document.querySelector('#news').textContent.startsWith('The')")
                    browser.wait(waits)
                    browser.picture(FIGURES / f"{name}.png")


def first_look():
    """Draw some bags of README's first lines: tags on the left, what each picture is on the right.

    The bags are the first of four or five pictures, and the first with a picture that is labelled
    wrongly.
    """
    names = {}
    first_lines = README.read_text().split("```python\n", 1)[1].split("```", 1)[0]
    exec(compile(first_lines, README.name, "exec"), names)
    labelled = names["labelled"].to_pandas()
    is_wrong = labelled["annotation"] != labelled["instance_label"]
    sizes = labelled.groupby("bag").size()
    of_four = labelled["bag"].isin(sizes.index[sizes >= 4])
    shown = [*labelled["bag"][of_four].unique()[:3], labelled["bag"][of_four & is_wrong].iloc[0]]
    figure, axes = pyplot.subplots(
        len(shown), 2, figsize=(9, 4.2), gridspec_kw={"width_ratios": [1.25, 1]}
    )
    axes[0, 0].set_title("you say what is in a bag", loc="left", x=0.02, fontsize=13)
    axes[0, 1].set_title("unbag says which is which", loc="left", x=0.01, fontsize=13)
    for (before, after), bag in zip(axes, shown, strict=True):
        rows = labelled[labelled["bag"] == bag]
        pictures = rows.filter(like="pixel").to_numpy().reshape(-1, 8, 8)
        for axis in (before, after):
            draw_in_a_row(axis, pictures, n_places=5)
        tags = ", ".join(rows["labels"].iloc[0].split("|"))
        before.text(-2, 4.5, f"{{{tags}}}", ha="right", va="center", fontsize=15)
        before.set(xlim=(-25, 49.5))
        for place, row in enumerate(rows.index):
            caption_picture(after, place, labelled["annotation"][row], not is_wrong[row], 14)
            if is_wrong[row]:
                truth = f"wrong: it is {labelled['instance_label'][row]}"
                after.text(10 * len(rows) + 1, 13, truth, va="center", color=COLOURS[1])
    save(figure, "first_look")


def draw_in_a_row(axis, pictures, n_places):
    """Draw pictures of 8 by 8 pixels side by side, with room for captions below."""
    framed = np.pad(pictures, ((0, 0), (1, 1), (1, 1)))
    axis.imshow(np.hstack(framed), cmap="gray_r")
    axis.set(xlim=(-0.5, 10 * n_places - 0.5), ylim=(15, -0.5))
    axis.set_axis_off()


def caption_picture(axis, place, label, is_right, fontsize=10):
    """Write what a picture was read as below it."""
    axis.text(
        10 * place + 4.5, 13, f"{label}", ha="center", va="center", fontsize=fontsize,
        color=COLOURS[0] if is_right else COLOURS[1], fontweight="normal" if is_right else "bold",
    )  # fmt: skip


def digits():
    """Draw bags of digits, what is known of each, and what the network of the page reads."""
    if find_spec("torch") is None:
        print("There is no torch: digits.png is as it was.")
        return
    from torch import no_grad

    names = run_page("howto/digits.md")
    test = names["test"]
    with no_grad():
        read = names["network"](names["test_pictures"]).argmax(1).numpy()
    # A bag with a picture that is read wrongly, and some without.
    wrong = np.repeat(np.arange(len(test)), test.sizes)[read != test.instance_labels]
    shown = [*wrong[:1], *(b for b in range(len(test)) if test.sizes[b] > 3 and b not in wrong)][:6]
    figure, axes = pyplot.subplots(2, 3, figsize=(10, 3.0))
    for axis, b in zip(axes.flat, sorted(shown), strict=True):
        start, stop = test.offsets[b], test.offsets[b + 1]
        draw_in_a_row(axis, test.X[start:stop].reshape(-1, 8, 8), n_places=5)
        known = ", ".join(map(str, sorted(set(test.instance_labels[start:stop]))))
        axis.set_title(f"known: {known}", loc="left", fontsize=11)
        for place, row in enumerate(range(start, stop)):
            caption_picture(axis, place, read[row], read[row] == test.instance_labels[row])
        axis.text(-1, 13, "read:", ha="right", va="center")
    save(figure, "digits")


def recordings():
    """Draw the spectrogram of a made recording, with the calls that were found and their labels."""
    if find_spec("soundfile") is None:
        print("There is no soundfile: recordings.png is as it was.")
        return
    made = make_soundscapes(80, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        write_soundscapes(made, folder)
        table = Path(folder, "calls.parquet")
        extract.audio(folder, table, Path(folder, "tags.csv"))
        rows = fit(table).annotate_frame(read_table(table)).to_pylist()
    shown = next(n for n, tags in enumerate(made.tags) if len(tags) == 3)
    colour = dict(zip(sorted(made.tags[shown]), COLOURS, strict=True))
    figure, axis = pyplot.subplots(figsize=(10, 3.8))
    level = pyplot.specgram(
        made.waveforms[shown], NFFT=512, Fs=made.sample_rate, noverlap=256, cmap="gray_r",
        window=np.hanning(512), vmin=-110,
    )[0]  # fmt: skip
    axis.images[0].set_clim(10 * np.log10(np.median(level)) - 5, 10 * np.log10(level.max()) - 5)
    for row in rows:
        if Path(row["file"]).stem != made.names[shown]:
            continue
        is_labelled = row["status"] == "labelled"
        axis.add_patch(
            pyplot.Rectangle(
                (row["start"], row["low"]), row["end"] - row["start"], row["high"] - row["low"],
                fill=False, lw=1.8 if is_labelled else 1.0, ls="-" if is_labelled else ":",
                edgecolor=colour[row["annotation"]] if is_labelled else "black",
            )
        )  # fmt: skip
    axis.set(
        title=f"known: {', '.join(colour)}", xlabel="seconds", ylabel="kHz", ylim=(0, 11000),
        xlim=(0, len(made.waveforms[shown]) / made.sample_rate),
    )  # fmt: skip
    axis.set_yticks(range(0, 12000, 2000), range(0, 12, 2))
    patches = [pyplot.Rectangle((0, 0), 1, 1, fill=False, edgecolor=each, lw=1.8)
               for each in colour.values()]  # fmt: skip
    patches.append(pyplot.Rectangle((0, 0), 1, 1, fill=False, edgecolor="black", ls=":"))
    axis.legend(patches, [*colour, "none of them"], loc="upper right", ncols=4, fontsize=9)
    save(figure, "recordings", dpi=80)
    make_smaller("recordings", n_colours=24)


def signals():
    """Draw a made signal, its windows as they were labelled, and what was true."""
    made = make_signals(60, n_activities=6, activities_per_recording=(2, 3), random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        write_signals(made, folder, suffix=".parquet")
        table = Path(folder, "windows.parquet")
        extract.signals(Path(folder, "days"), table, Path(folder, "tags.csv"))
        model = fit(table)
        rows = model.annotate_frame(read_table(table)).to_pylist()
    name = next(name for name, tags in zip(made.names, made.tags, strict=True) if len(tags) == 3)
    shown = made.names.index(name)
    colour = dict(zip(sorted(made.tags[shown]), COLOURS, strict=True))
    figure, axes = pyplot.subplots(
        3, 1, figsize=(10, 3.8), sharex=True, height_ratios=[4, 0.6, 0.6]
    )  # fmt: skip
    axes[0].plot(made.times[shown], made.values[shown][:, :3], lw=0.6)
    axes[0].set(title=f"known: {', '.join(colour)}", ylabel="acceleration (g)", ylim=(-2.5, 3))
    found = [row for row in rows if Path(row["file"]).stem == name]
    for row in found:
        if row["status"] == "labelled":
            axes[1].axvspan(row["start"], row["end"], color=colour[row["annotation"]], lw=0)
    for bout in made.bouts:
        if bout.recording == name and bout.label is not None:
            axes[2].axvspan(bout.start, bout.end, color=colour[bout.label], lw=0)
    for axis, title in zip(axes[1:], ("learnt", "true"), strict=True):
        axis.set(yticks=[0.5], yticklabels=[title], ylim=(0, 1))
    axes[2].set(xlabel="seconds", xlim=(0, 120))
    patches = [pyplot.Rectangle((0, 0), 1, 1, color=each) for each in colour.values()]
    axes[0].legend(patches, colour, loc="upper right", ncols=3, fontsize=9)
    save(figure, "signals")


def pictures():
    """Draw made photos with their tags, and with the labels that their regions get."""
    if find_spec("skimage") is None:
        print("There is no scikit-image: pictures.png is as it was.")
        return
    import pyarrow.parquet as pq

    from unbag import fit
    from unbag.datasets import make_pictures, write_pictures
    from unbag.extract import images
    from unbag.extract.regions import outline_rings

    made = make_pictures(80, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        write_pictures(made, folder)
        table = Path(folder) / "regions.parquet"
        images(folder, table, Path(folder) / "tags.csv")
        labelled = fit(table).annotate_frame(pq.read_table(table)).to_pylist()
    # Photos with three tags.
    shown = [n for n, tags in enumerate(made.tags) if len(tags) == 3][:3]
    figure, axes = pyplot.subplots(2, len(shown), figsize=(9, 5))
    for (before, after), number in zip(axes.T, shown, strict=True):
        for axis in (before, after):
            axis.imshow(made.pixels[number])
            axis.set_axis_off()
        before.set_title(", ".join(sorted(made.tags[number])), fontsize=10)
        for row in labelled:
            if row["file"] != f"{made.names[number]}.png" or row["status"] != "labelled":
                continue
            for ring in outline_rings(row["outline"]):
                after.fill(*np.transpose(ring), fill=False, edgecolor="white", lw=1.5)
            after.text(
                row["x"] + row["width"] / 2, row["y"] + row["height"] / 2, row["annotation"],
                ha="center", va="center", fontsize=7, color="black",
                bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 1},
            )  # fmt: skip
    for axis in axes.flat:
        axis.set(xlim=(0, 320), ylim=(240, 0))
    save(figure, "pictures", dpi=80)
    make_smaller("pictures", n_colours=192)


def make_smaller(name, n_colours):
    """Take fewer colours: the noise of photos and spectrograms makes large files."""
    from PIL import Image

    path = FIGURES / f"{name}.png"
    few = Image.open(path).convert("RGB").quantize(n_colours, Image.Quantize.MAXCOVERAGE, dither=0)
    few.save(path, optimize=True)


def run_page(page):
    """Run the examples of a page, and return what they have named."""
    names = {}
    for example in DocTestParser().get_examples((Path(__file__).parent / page).read_text()):
        exec(compile(example.source, page, "single"), names)
    return names


def save(figure, name, dpi=110):
    figure.tight_layout()
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / f"{name}.png", dpi=dpi)
    pyplot.close(figure)


if __name__ == "__main__":
    drawings = (
        first_look, from_bags_to_instances, fit_curve, how_sure, digits, recordings, signals,
        pictures, report, review,
    )  # fmt: skip
    for draw in drawings:
        if draw.__name__ in sys.argv[1:] or not sys.argv[1:]:
            draw()
