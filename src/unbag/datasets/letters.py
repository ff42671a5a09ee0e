"""Words as bags of letters: the two data sets that ship with the package."""

import json
from importlib.resources import as_file, files

import numpy as np

from unbag._random import Seed, generator
from unbag.bags import Bags, offsets_of
from unbag.io.formats.npz import read_arrays

from .dataset import Dataset, union_of

FEATURE_NAMES = (
    "x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar",
    "y2bar", "xybar", "x2ybr", "xy2br", "x-ege", "xegvy", "y-ege", "yegvx",
)  # fmt: skip

_DESCRIPTION = """\
{title}: the words of {poem} as bags of letters.

{n_bags} bags, {n_instances} instances, 16 features, {n_classes} classes (the letters that occur).
Each letter of each word is one random image of that letter, drawn without replacement from the
Letter Recognition data set; 16 integers describe the image. Which images were drawn for the
published figures is not known: average over several seeds.

Source: Letter Recognition, UCI Machine Learning Repository, https://doi.org/10.24432/C5ZP40
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0)
Cite: P. W. Frey and D. J. Slate (1991), "Letter recognition using Holland-style adaptive
classifiers", Machine Learning 6(2), 161-182.
"""


def load_letter_carroll(random_state: Seed = 0) -> Dataset:
    """Read the letters in the words of "Jabberwocky": 166 bags, 24 classes.

    Parameters
    ----------
    random_state : int, Generator or RandomState, default=0
        Which images stand for the letters; the words are always the same.

    Returns
    -------
    Dataset

    Examples
    --------
    The first word is "'Twas":

    >>> letters = load_letter_carroll()
    >>> letters
    Dataset('letter-carroll': 166 bags, 717 instances, 16 features, 24 classes)
    >>> letters.class_names[letters.bags[:1].instance_labels].tolist()
    ['A', 'S', 'T', 'W']
    """
    return _letters("letter-carroll", "Letter Carroll", '"Jabberwocky"', random_state)


def load_letter_frost(random_state: Seed = 0) -> Dataset:
    """Read the letters in the words of "The Road Not Taken": 144 bags, 24 classes.

    Parameters
    ----------
    random_state : int, Generator or RandomState, default=0
        Which images stand for the letters; the words are always the same.

    Returns
    -------
    Dataset

    Examples
    --------
    The first word is "Two":

    >>> letters = load_letter_frost()
    >>> letters
    Dataset('letter-frost': 144 bags, 565 instances, 16 features, 24 classes)
    >>> letters.class_names[letters.y[0] == 1].tolist()
    ['O', 'T', 'W']
    """
    return _letters("letter-frost", "Letter Frost", '"The Road Not Taken"', random_state)


def _letters(name, title, poem, random_state):
    folder = files("unbag.datasets") / "data"
    poems = json.loads((folder / "letter_words.json").read_text(encoding="utf-8"))
    words = poems[name.replace("-", "_")]
    with as_file(folder / "letter_recognition.npz") as path:
        images = read_arrays(path, ["X", "y"])
    class_names, labels = np.unique(list("".join(words)), return_inverse=True)
    rng = generator(random_state)
    rows = np.empty(labels.size, np.intp)
    # Every letter is drawn, whether the poem has it or not: so both poems take the same images.
    for letter in np.unique(images["y"]):
        drawn = rng.permutation(np.flatnonzero(images["y"] == letter))
        places = np.flatnonzero(class_names[labels] == letter)
        rows[places] = drawn[: places.size]
    offsets = offsets_of([len(word) for word in words])
    bags = Bags(
        images["X"][rows].astype(float),
        offsets,
        instance_labels=labels,
        feature_names=np.array(FEATURE_NAMES),
    )
    description = _DESCRIPTION.format(
        title=title,
        poem=poem,
        n_bags=len(words),
        n_instances=labels.size,
        n_classes=class_names.size,
    )
    return Dataset(
        name, bags, union_of(labels, offsets, class_names.size), class_names, description
    )
