"""Find things in synthetic pictures, and label them from the tags of the pictures.

    python benchmarks/pictures.py

100 pictures at each of three levels of difficulty, by `synthetic.pictures`; and, made
otherwise, cut-outs of photographs of surfaces (those that come with scikit-image) on other
photographs. The constants of `unbag.extract` were chosen on other draws of the first kind.

A region *holds* the class that at least half of its pixels show; else perhaps clutter; else it is
*nothing*, which is mostly what things lie on. A thing is *found* if regions that are mainly its own
cover at least half of it, and found *whole* if one region has an intersection over union of at
least a half with it. What is learnt without tags is tried on half as many other pictures.
"""

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
from rich.console import Console
from scipy import ndimage
from skimage import data

from labelling import Instances, labelling, percent, show
from measure import machine, save
from synthetic.pictures import LEVELS, Pictures, Thing, make_pictures, write_pictures
from unbag.extract import image_regions, images
from unbag.extract.regions import FEATURES

NOTHING, CLUTTER = "(nothing)", "(clutter)"
# Of the pictures whose extraction is timed.
TIMED_SIZE, N_TIMED = (640, 480), 20


# Pictures that are made otherwise.


def surfaces():
    """Parts of photographs by their names, and those that things are laid on."""
    brick, grass, gravel = (
        np.dstack([photo()] * 3) for photo in (data.brick, data.grass, data.gravel)
    )
    coffee, cat, tissue = data.coffee(), data.chelsea(), data.immunohistochemistry()
    things = {
        "brick": brick[:400, :400],
        "gravel": gravel[:400, :400],
        "wood": coffee[290:390, 20:120],
        "saucer": coffee[270:330, 290:350],
        "fur": cat[20:130, 140:260],
        "tissue": tissue[150:300, 20:170],
        "suit": data.astronaut()[330:420, 60:150],
        "retina": data.retina()[500:900, 500:900],
    }
    grounds = [grass, np.dstack([data.moon()] * 3), data.rocket()[:200], tissue[300:, 200:]]
    return things, grounds


def cut(surface, height, width, rng):
    """Take a part of a surface, turned and brought to a size."""
    surface = np.rot90(surface, rng.integers(4))
    share = rng.uniform(0.6, 1.0)
    rows, columns = (max(8, int(share * side)) for side in surface.shape[:2])
    row, column = (rng.integers(side - n + 1) for side, n in
                   zip(surface.shape[:2], (rows, columns), strict=True))  # fmt: skip
    part = surface[row : row + rows, column : column + columns].astype(float)
    zoom = (height / rows, width / columns, 1)
    return ndimage.zoom(part, zoom, order=1)[:height, :width]


def made_collages(n_pictures, level, seed):
    """Lay cut-outs of photographs on others, with blurred edges, light and noise."""
    rng = np.random.default_rng(seed)
    controls = LEVELS[level]
    things, grounds = surfaces()
    width, height = 320, 240
    names, pixels, tags, found, maps = [], [], [], [], []
    for number in range(n_pictures):
        name = f"collage_{number:03}"
        scene = cut(grounds[rng.integers(len(grounds))], height, width, rng)
        numbers = np.zeros((height, width), np.uint8)
        present = rng.permutation(list(things))[: rng.integers(1, 4)]
        laid = [str(label) for label in present for _ in range(rng.integers(1, 3))]
        labels = {}
        for label in laid:
            wide, high = rng.integers(45, 100, 2)
            x, y = rng.integers(0, width - wide), rng.integers(0, height - high)
            place = np.s_[y : y + high, x : x + wide]
            if numbers[place].any() and rng.random() > controls["overlap"]:
                continue
            rows, columns = np.mgrid[-1 : 1 : high * 1j, -1 : 1 : wide * 1j]
            power = rng.uniform(1.5, 6)
            own = np.abs(rows) ** power + np.abs(columns) ** power < 1
            hidden = np.bincount(numbers[place][own], minlength=256)[1:]
            shown = np.bincount(numbers.ravel(), minlength=256)[1:]
            if (hidden > 0.5 * shown).any():
                continue
            cover = ndimage.gaussian_filter(own.astype(float), 0.8)[..., None]
            scene[place] += cover * (cut(things[label], high, wide, rng) - scene[place])
            numbers[place][own] = len(labels) + 1
            labels[len(labels) + 1] = label
        light = np.exp(0.6 * controls["light"] * rng.standard_normal()) * np.exp(
            controls["light"] / 3 * rng.standard_normal(3)
        )
        scene = scene * light + controls["noise"] * rng.standard_normal(scene.shape)
        names.append(name)
        pixels.append(np.clip(scene, 0, 255).astype(np.uint8))
        maps.append(numbers)
        tags.append(set(labels.values()))
        found += [Thing(name, label, each, 0, 0, 0, 0, 1.0) for each, label in labels.items()]
    return Pictures(names, pixels, tags, found, maps)


# Regions beside the truth.


def judged(made, regions):
    """Return the figures of regions, and what each of them holds."""
    found, whole, truth = [], [], []
    for name, numbers, labels in zip(made.names, made.maps, regions, strict=True):
        n_regions = labels.max() + 1
        shown = np.bincount((labels * 256 + numbers).ravel(), minlength=256 * n_regions)
        shown = shown.reshape(n_regions, 256)
        area = shown.sum(axis=1)
        things = [each for each in made.things if each.picture == name]
        held = np.full(n_regions, NOTHING, dtype=object)
        for label in {each.label for each in things}:
            own = [each.number for each in things if each.label == label]
            held[shown[:, own].sum(axis=1) >= 0.5 * area] = label or CLUTTER
        truth.append(held)
        for thing in things:
            if thing.label is not None:
                own = shown[:, thing.number]
                found.append(own[own >= 0.5 * area].sum() >= 0.5 * own.sum())
                whole.append((own / (area + own.sum() - own)).max() >= 0.5)
    truth = np.concatenate(truth)
    return {
        "things": len(found),
        "found": percent(found),
        "found whole": percent(whole),
        "regions per picture": round(len(truth) / len(made.names), 1),
        "regions that are nothing": percent(truth == NOTHING),
        "regions of clutter": percent(truth == CLUTTER),
    }, truth


def extracted(made):
    """Return the table that `images` would write of pictures, and the regions of each."""
    found = [image_regions(pixels) for pixels in made.pixels]
    sizes = [len(each) for each in found]
    tags = ["|".join(sorted(each)) or "(none)" for each in made.tags]
    features = np.concatenate([each.features for each in found])
    rows = pa.table({
        "file": np.repeat(made.names, sizes), **dict(zip(FEATURES, features.T, strict=True)),
        "tags": np.repeat(tags, sizes),
    })  # fmt: skip
    return rows, [each.labels for each in found]


def row_of(kind, level, n_pictures, seed):
    """Measure extraction and labelling of one kind of pictures at one level."""
    if kind == "things":
        made, others = (
            make_pictures(n, random_state=seed + k, **LEVELS[level])
            for k, n in enumerate((n_pictures, n_pictures // 2))
        )
    else:
        made, others = (
            made_collages(n, level, seed + k) for k, n in enumerate((n_pictures, n_pictures // 2))
        )
    rows, regions = extracted(made)
    figures, truth = judged(made, regions)
    new_rows, new_regions = extracted(others)
    _, new_truth = judged(others, new_regions)
    own, new = (
        Instances(table, [*FEATURES], held, ~np.isin(held, (NOTHING, CLUTTER)), held == NOTHING)
        for table, held in ((rows, truth), (new_rows, new_truth))
    )
    return figures | labelling(own, new, "pictures")[0]


def pictures_per_second():
    """Time extraction from PNG files, decoding included, on one core."""
    with tempfile.TemporaryDirectory() as folder:
        write_pictures(make_pictures(N_TIMED, size=TIMED_SIZE, random_state=0), folder)
        images(folder, Path(folder) / "warm.parquet")
        # Of this process alone: others may run beside it.
        started = process_time()
        images(folder, Path(folder) / "regions.parquet")
        return round(N_TIMED / (process_time() - started), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=100)
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    console = Console()
    n, seed = given.pictures, given.seed
    speed = pictures_per_second()
    console.print(f"{speed} pictures of {TIMED_SIZE[0]} x {TIMED_SIZE[1]} per second, one core")
    units = [(kind, level, n, seed) for kind in ("things", "collages") for level in LEVELS]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        found = pool.map(row_of, *zip(*units, strict=True))
    figures = {"things": {}, "collages": {}}
    for (kind, level, *_), row in zip(units, found, strict=True):
        figures[kind][level] = row
    for kind, levels in figures.items():
        show(console, kind, levels)
    found = {"pictures": n, "seed": seed, "figures": figures, "pictures per second": speed,
             "machine": machine()}  # fmt: skip
    save("pictures", found, console)


if __name__ == "__main__":
    main()
