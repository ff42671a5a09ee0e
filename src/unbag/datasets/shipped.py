"""The data sets that come with the package: words as bags of letters, and bags of digits."""

import json
from collections.abc import Callable
from importlib.resources import as_file, files
from numbers import Integral

import numpy as np

from unbag._random import Seed, generator
from unbag.bags import Bags, offsets_of

from .dataset import Dataset, union_of

FEATURE_NAMES = (
    "x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar",
    "y2bar", "xybar", "x2ybr", "xy2br", "x-ege", "xegvy", "y-ege", "yegvx",
)  # fmt: skip

_LETTERS = """\
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
    with as_file(folder / "letter_recognition.npz") as path, np.load(path) as file:
        images = {name: file[name] for name in ("X", "y")}
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
    description = _LETTERS.format(
        title=title,
        poem=poem,
        n_bags=len(words),
        n_instances=labels.size,
        n_classes=class_names.size,
    )
    return Dataset(
        name, bags, union_of(labels, offsets, class_names.size), class_names, description
    )


_DIGITS = """\
Digits: images of handwritten digits, a few in each bag.

{n_bags} bags, {n_instances} instances, 64 features (the pixels of 8 x 8 images, row by row), 10
classes. All images, in random order, are dealt into bags of {min_size} to {max_size}; the last bag
takes what is left.

Source: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
https://doi.org/10.24432/C50P49, as shipped with scikit-learn (its test part)
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0)
Cite: E. Alpaydin and C. Kaynak (1998).
"""


def load_digit_bags(random_state: Seed = 0, min_size: int = 2, max_size: int = 5) -> Dataset:
    """Deal scikit-learn's images of digits into bags: 512 of them unless told otherwise.

    Parameters
    ----------
    random_state : int, Generator or RandomState, default=0
        Which images share a bag.
    min_size, max_size : int, default=2 and 5
        Least and largest size of a bag, all sizes between being equally likely. The last bag takes
        what is left, which may be less.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> digits = load_digit_bags()
    >>> digits
    Dataset('digits': 512 bags, 1797 instances, 64 features, 10 classes)
    >>> digits.bags[:1].instance_labels.tolist(), np.flatnonzero(digits.y[0]).tolist()
    ([6, 6, 6, 2, 5], [2, 5, 6])
    """
    from sklearn.datasets import load_digits

    integers = isinstance(min_size, Integral) and isinstance(max_size, Integral)
    if not integers or not 1 <= min_size <= max_size:
        raise ValueError(
            f"Bags of {min_size!r} to {max_size!r} cannot be dealt: min_size and max_size are "
            "integers, from 1 on, the first no larger than the second."
        )
    images = load_digits()
    n_instances = len(images.data)
    rng = generator(random_state)
    order = rng.permutation(n_instances)
    cuts = np.cumsum(rng.integers(min_size, max_size + 1, n_instances))
    offsets = np.concatenate([[0], cuts[cuts < n_instances], [n_instances]])
    labels = images.target[order]
    names = np.array(images.feature_names)
    bags = Bags(images.data[order], offsets, instance_labels=labels, feature_names=names)
    description = _DIGITS.format(
        n_bags=len(bags), n_instances=n_instances, min_size=min_size, max_size=max_size
    )
    class_names = np.array(list("0123456789"))
    return Dataset("digits", bags, union_of(labels, offsets, 10), class_names, description)


#: What loads each of them, by name.
SHIPPED: dict[str, Callable[..., Dataset]] = {
    "letter-carroll": load_letter_carroll,
    "letter-frost": load_letter_frost,
    "digits": load_digit_bags,
}
