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
from unbag.datasets import load_letter_frost
from unbag.metrics import calibration

README = Path(__file__).parents[1] / "README.md"
# Synthetic media are made there.
sys.path.insert(0, str(README.parent / "benchmarks"))
FIGURES = Path(__file__).parent / "figures"
# Distinguishable without red and green (Okabe and Ito).
COLOURS = np.array(["#0072b2", "#e69f00", "#009e73"])
# The same on a dark picture, and its ground and letters.
LIGHT_COLOURS = ("#f0c808", "#56b4e9", "#ff8c5a")
NIGHT, PALE = "#10141c", "#dfe6ee"
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


def how_sure():
    """Draw probabilities of letters against how often they are right."""
    data = load_letter_frost()
    half = np.arange(len(data.bags)) % 2 == 0
    labels = LabelSets(data.y[half], data.class_names)
    model = ORLogisticRegression(alpha="auto").fit(data.bags[half], labels)
    fitted, new = data.bags[half], data.bags[~half]
    figure, axis = pyplot.subplots(figsize=(4.6, 4.2))
    axis.plot([0, 1], [0, 1], color="0.7", lw=1)
    for name, (words, probabilities) in {
        "new words, without tags": (new, model.predict_instances_proba(new)),
        "words of the fit, given tags": (fitted, model.annotate_proba(fitted, labels)),
    }.items():
        truth = data.class_names[words.instance_labels]
        bins = calibration(truth, probabilities, model.classes_, n_bins=6)
        filled = bins.counts > 0
        name = f"{name}: off by {100 * bins.ece:.0f} points"
        axis.plot(bins.confidence[filled], bins.accuracy[filled], "o-", label=name)
    axis.set(xlabel="probability of the label", ylabel="share that is right")
    axis.legend(loc="upper left", fontsize=9)
    save(figure, "how_sure")


def report():
    """Take a picture of a report, from how sure labels are to the first bags."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("There is no Chromium: report.png is as it was.")
        return
    # What stands above, and the bar of links that stays in sight, would be all that is seen.
    cut = "<style>header, nav, #data, #classes, #evaluation { display: none; }</style></head>"
    with tempfile.TemporaryDirectory() as folder:
        words, model, path = (Path(folder, name) for name in ("w.csv", "m.unbag", "report.html"))
        for command in (
            ["data", "convert", "letter-frost", words],
            ["fit", words, "-o", model],
            ["report", model, words, "-o", path],
        ):
            unbag = [sys.executable, "-m", "unbag.cli", *command]
            subprocess.run(unbag, check=True, capture_output=True)
        path.write_text(path.read_text().replace("</head>", cut, 1))
        subprocess.run(
            [
                chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={folder}/profile", "--window-size=885,960",
                f"--screenshot={FIGURES / 'report.png'}", path.as_uri(),
            ],
            check=True, capture_output=True,
        )  # fmt: skip


def review(waits="document.querySelectorAll('#instances .spectrogram').length > 2"):
    """Take a picture of the page of a review, after an answer."""
    # What drives a browser in the tests.
    sys.path.insert(0, str(README.parent / "tests"))
    from browser import CHROMIUM, DRIVER, Browser
    from review.command import Command

    if CHROMIUM is None or DRIVER is None:
        print("There is no Chromium: review.png is as it was.")
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "demo")
        unbag = [sys.executable, "-m", "unbag.cli"]
        subprocess.run([*unbag, "demo", "audio", "-o", folder], check=True, capture_output=True)
        (folder / "birds.unbag").rename(folder / "m.unbag")
        options = ("--media-root", str(folder / "recordings"), "--refit-every", "0")
        with (
            Command(folder, *options, table="calls.parquet") as served,
            Browser(1200, 900) as browser,
        ):
            browser.open(served.address)
            browser.wait(waits)
            browser.press("2")
            browser.wait("document.querySelector('#news').textContent !== ''")
            browser.wait("!document.querySelector('#news').textContent.startsWith('The')")
            browser.wait(waits)
            browser.picture(FIGURES / "review.png")


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

    names = run_page("howto/cnn.md")
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
    """Draw the spectrogram of a synthetic recording with its tags, and its calls with labels.

    It is the first one with three tags and at least seven calls.
    """
    if find_spec("soundfile") is None:
        print("There is no soundfile: recordings.png is as it was.")
        return
    from synthetic.soundscapes import make_soundscapes, write_soundscapes

    made = make_soundscapes(80, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        write_soundscapes(made, folder)
        table = Path(folder, "calls.parquet")
        extract.audio(folder, table, Path(folder, "tags.csv"))
        rows = fit(table).annotate_frame(read_table(table)).to_pylist()
    calls = [
        [row for row in rows if Path(row["file"]).stem == name and row["status"] == "labelled"]
        for name in made.names
    ]
    shown = next(n for n, tags in enumerate(made.tags) if len(tags) == 3 and len(calls[n]) >= 7)
    colour = dict(zip(sorted(made.tags[shown]), LIGHT_COLOURS, strict=True))
    figure = pyplot.figure(figsize=(11, 4.6), facecolor=NIGHT)
    axis = figure.add_axes((0.05, 0.12, 0.93, 0.68), facecolor=NIGHT)
    level, frequencies, times = matplotlib.mlab.specgram(
        made.waveforms[shown], NFFT=512, Fs=made.sample_rate, noverlap=384, window=np.hanning(512)
    )
    decibels = 10 * np.log10(level + 1e-12)
    floor = np.median(decibels, axis=1, keepdims=True)
    axis.pcolormesh(
        times, frequencies / 1000, decibels - floor, cmap="bone", vmin=2, vmax=45, rasterized=True
    )
    for row in calls[shown]:
        left, width, edge = row["start"], row["end"] - row["start"], colour[row["annotation"]]
        low, high = row["low"] / 1000, row["high"] / 1000
        axis.add_patch(
            pyplot.Rectangle((left, low), width, high - low, fill=False, lw=1.8, edgecolor=edge)
        )
        axis.text(
            left - 0.02, high + 0.12, row["annotation"], color=edge, fontsize=11, va="bottom",
            fontweight="bold",
        )  # fmt: skip
    axis.set(ylim=(0, 9.5), xlim=(0, times[-1]), xlabel="seconds", ylabel="kHz")
    axis.tick_params(colors=PALE, length=0)
    axis.xaxis.label.set_color(PALE)
    axis.yaxis.label.set_color(PALE)
    for side in axis.spines.values():
        side.set_visible(False)
    figure.text(0.05, 0.905, "You tag the recording:", color=PALE, fontsize=13, va="center")
    place = 0.25
    for name in colour:
        tag = figure.text(
            place, 0.905, name, color=NIGHT, fontsize=13, va="center", fontweight="bold",
            bbox={"boxstyle": "round,pad=0.4", "facecolor": colour[name], "lw": 0},
        )  # fmt: skip
        place = tag.get_window_extent().x1 / figure.bbox.width + 0.03
    figure.text(
        0.98, 0.905, "unbag boxes and names every call.", color=PALE, fontsize=13, va="center",
        ha="right",
    )  # fmt: skip
    figure.savefig(FIGURES / "recordings.png", dpi=110, facecolor=NIGHT)
    pyplot.close(figure)
    make_smaller("recordings", n_colours=96)


def signals():
    """Draw a synthetic signal, its windows as they were labelled, and what was true."""
    from synthetic.signals import make_signals, write_signals

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
    """Draw synthetic photos with their tags, and with the labels that their regions get."""
    if find_spec("skimage") is None:
        print("There is no scikit-image: pictures.png is as it was.")
        return
    import pyarrow.parquet as pq

    from synthetic.pictures import make_pictures, write_pictures
    from unbag import fit
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
        from_bags_to_instances, how_sure, digits, recordings, signals,
        pictures, report, review,
    )  # fmt: skip
    for draw in drawings:
        if draw.__name__ in sys.argv[1:] or not sys.argv[1:]:
            draw()
