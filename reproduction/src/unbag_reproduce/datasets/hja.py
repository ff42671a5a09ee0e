"""HJA birdsong: syllables in recordings from a forest, and the birds heard in each recording."""

from pathlib import Path

import numpy as np

from unbag.datasets.dataset import union_of

from .home import Arrays, Source, arrays_of

SPECIES = (
    "BRCR", "WIWR", "PSFL", "RBNU", "DEJU", "OSFL", "HETH",
    "CBCH", "VATH", "HEWA", "SWTH", "HAFL", "WETA",
)  # fmt: skip

PAGE = "https://web.engr.oregonstate.edu/~briggsf/kdd2012datasets/hja_birdsong/"
FEATURES = "hja_birdsong_features.txt"
INSTANCE_LABELS = "hja_birdsong_instance_labels.txt"
BAG_LABELS = "hja_birdsong_bag_labels.txt"
FILES = (FEATURES, INSTANCE_LABELS, BAG_LABELS)

_DESCRIPTION = f"""\
{{title}}

548 bags (ten-second recordings), 4,998 instances (segments of their spectrograms), 38 features
(shape, frequency and time profile, gradients), 13 classes (species of birds). Segments without
a label are left out, as in the paper.

Source: {PAGE}
Licence: not stated by its authors
Cite: F. Briggs, X. Z. Fern and R. Raich (2012), "Rank-loss support instance machines for MIML
instance annotation", KDD.
"""


def convert_hja(folder: Path) -> Arrays:
    """Turn the published files into arrays; bags may name birds without a syllable.

    They have a line of headings, then commas between values. A line of the features is an instance:
    the number of its bag, then its features. The instance labels have the bag and the class, from 1
    to 13, of the same instances in the same order, where -1 means that it has no label. The bag
    labels have a line per bag: its number, then its classes.
    """
    paths = {name: next(folder.rglob(name)) for name in FILES}
    instances = _lines(paths[FEATURES], float)
    tags = _lines(paths[INSTANCE_LABELS], int)
    sets = _lines(paths[BAG_LABELS], int)
    if len(instances) != len(tags):
        raise ValueError(
            f"{paths[FEATURES]} has {len(instances)} instances, but {paths[INSTANCE_LABELS]} has "
            f"{len(tags)} labels."
        )
    width = len(instances[0][1])
    position = {values[0]: bag for bag, (_, values) in enumerate(sets)}
    X, labels, bag_of_instance = [], [], []
    for (number, values), (tag_number, tag) in zip(instances, tags, strict=True):
        if len(values) != width:
            raise ValueError(
                f"{paths[FEATURES]}, line {number}: {len(values) - 1} features, but the first "
                f"instance has {width - 1}."
            )
        if len(tag) != 2 or not (tag[1] == -1 or 1 <= tag[1] <= len(SPECIES)):
            raise ValueError(
                f"{paths[INSTANCE_LABELS]}, line {tag_number}: expected a bag and a class from 1 "
                f"to {len(SPECIES)}, or -1."
            )
        if values[0] != tag[0] or tag[0] not in position:
            raise ValueError(
                f"{paths[INSTANCE_LABELS]}, line {tag_number}: bag {tag[0]}, but it is "
                f"{values[0]:g} in {FEATURES}, and both must be in {BAG_LABELS}."
            )
        if tag[1] != -1:
            X.append(values[1:])
            labels.append(tag[1] - 1)
            bag_of_instance.append(position[tag[0]])
    y = np.zeros((len(sets), len(SPECIES)), np.int8)
    for bag, (number, (_, *classes)) in enumerate(sets):
        for species in classes:
            if not 1 <= species <= len(SPECIES):
                raise ValueError(
                    f"{paths[BAG_LABELS]}, line {number}: no class {species}; they go from 1 to "
                    f"{len(SPECIES)}."
                )
            y[bag, species - 1] = 1
    X = np.array(X).reshape(-1, width - 1)
    ids = np.array([values[0] for _, values in sets])
    return arrays_of(X, labels, bag_of_instance, SPECIES, ids=ids, bag_labels=y)


def convert_hja_union(folder: Path) -> Arrays:
    """Turn the published files into arrays, and take each bag's labels from its instances."""
    arrays = convert_hja(folder)
    union = union_of(arrays["instance_labels"], arrays["offsets"], len(SPECIES))
    return {**arrays, "bag_labels": union}


def _lines(path, kind):
    """Split every line after the headings into its values, and number it as editors do."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if number > 1 and line.strip():
            try:
                found.append((number, [kind(value) for value in line.strip(" ,").split(",")]))
            except ValueError:
                raise ValueError(
                    f"{path}, line {number}: expected numbers with commas between them, not "
                    f"{line[:60]!r}."
                ) from None
    if not found:
        raise ValueError(f"{path} has no lines after its headings.")
    return found


_SHARED = {"folder": "hja", "published": FILES, "page": PAGE}
HJA = Source(
    name="hja",
    file="hja.npz",
    description=_DESCRIPTION.format(
        title="HJA birdsong, with the birds that were heard in each recording. A few bags name a "
        "bird\nwithout an instance."
    ),
    convert=convert_hja,
    is_union=False,
    **_SHARED,
)
HJA_UNION = Source(
    name="hja-union",
    file="hja_union.npz",
    description=_DESCRIPTION.format(
        title="HJA birdsong, union version: each bag has the labels of its instances."
    ),
    convert=convert_hja_union,
    **_SHARED,
)
