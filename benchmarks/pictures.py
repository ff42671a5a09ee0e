"""Find things in synthetic pictures, and label them from the tags of the pictures.

    python benchmarks/pictures.py

100 pictures at each of three levels of difficulty, by `synthetic.pictures`. The constants of
`unbag.extract` were chosen on other draws.

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

from labelling import Instances, labelling, percent, show
from measure import machine, save
from synthetic.pictures import LEVELS, make_pictures, write_pictures
from unbag.extract import image_regions, images
from unbag.extract.regions import FEATURES

NOTHING, CLUTTER = "(nothing)", "(clutter)"
# Of the pictures whose extraction is timed.
TIMED_SIZE, N_TIMED = (640, 480), 20


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


def row_of(level, n_pictures, seed):
    """Measure extraction and labelling at one level of difficulty."""
    made, others = (
        make_pictures(n, random_state=seed + k, **LEVELS[level])
        for k, n in enumerate((n_pictures, n_pictures // 2))
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
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        rows = pool.map(row_of, LEVELS, [n] * len(LEVELS), [seed] * len(LEVELS))
        levels = dict(zip(LEVELS, rows, strict=True))
    show(console, "things", levels)
    found = {"pictures": n, "seed": seed, "figures": {"things": levels},
             "pictures per second": speed, "machine": machine()}  # fmt: skip
    save("pictures", found, console)


if __name__ == "__main__":
    main()
