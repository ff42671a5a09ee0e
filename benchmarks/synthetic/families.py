"""Families of synthetic bags, drawn by known rules, each hard for some methods in its own way."""

import numpy as np

#: New bags of a family, beside those to learn from.
N_NEW = 150


def bags_of(
    size: tuple[int, int], classes_of_bag: list[np.ndarray], rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw the classes of the instances of bags: each class of a bag at least once."""
    labels = []
    for classes in classes_of_bag:
        n = max(int(rng.integers(*size)), len(classes))
        drawn = rng.choice(classes, n)
        drawn[: len(classes)] = classes
        labels.append(rng.permutation(drawn))
    return labels


def gaussian(
    labels: list[np.ndarray],
    rng: np.random.Generator,
    *,
    n_classes: int,
    n_features: int = 10,
    distance: float = 2.5,
    kinds: int = 1,
    tails: bool = False,
) -> np.ndarray:
    """Draw instances around means of their classes, of which each may have several."""
    means = (
        rng.normal(size=(n_classes * kinds, n_features)) * distance / np.sqrt(2 * n_features) * 2
    )
    columns = np.concatenate(labels) * kinds + rng.integers(kinds, size=sum(map(len, labels)))
    noise = (
        rng.standard_t(2, size=(len(columns), n_features))
        if tails
        else rng.normal(size=(len(columns), n_features))
    )
    return means[columns] + noise


def random_sets(
    n_bags: int,
    n_classes: int,
    most: int,
    rng: np.random.Generator,
    shares: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Draw label sets of one to `most` classes."""
    return [
        rng.choice(n_classes, rng.integers(1, most + 1), replace=False, p=shares)
        for _ in range(n_bags)
    ]


def words(n_bags: int, n_words: int, n_classes: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw label sets that are those of a few words."""
    spelled = [rng.choice(n_classes, rng.integers(3, 6), replace=False) for _ in range(n_words)]
    return [spelled[rng.integers(n_words)] for _ in range(n_bags)]


def family(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """Draw a family: X, sizes of bags, labels of instances, y, and the number of training bags."""
    rng = np.random.default_rng([seed, *name.encode()])
    n_classes, size = 8, (3, 9)
    n_bags = {"few bags": 40, "many bags": 600, "rare": 60, "noise": 60, "binary": 60}.get(
        name, 200
    )
    total = n_bags + N_NEW
    options = {}
    if name.startswith("words"):
        n_classes = 10
        n_words, n_bags = map(int, name.split()[1:])
        total = n_bags + N_NEW
        sets = words(total, n_words, n_classes, rng)
        size = (3, 7)
    elif name == "rare":
        shares = 0.55 ** np.arange(n_classes)
        sets = random_sets(total, n_classes, 3, rng, shares / shares.sum())
    elif name == "pairs":
        sets = [
            np.unique(np.concatenate([[c, c ^ 1] if rng.random() < 0.85 else [c] for c in own]))
            for own in random_sets(total, n_classes, 2, rng)
        ]
    else:
        sets = random_sets(total, n_classes, 3, rng)
    labels = bags_of(size, sets, rng)
    if name == "binary":
        proba = rng.random((n_classes, 40))
        flat = np.concatenate(labels)
        X = np.hstack(
            [
                rng.random((len(flat), 40)) < 0.5 + 0.55 * (proba[flat] - 0.5),
                rng.random((len(flat), 200)) < 0.5,
            ]
        ).astype(float)
    else:
        if name == "kinds":
            options = {"kinds": 3, "distance": 3.5}
        if name == "tails":
            options = {"tails": True, "distance": 3.5}
        if name == "many features":
            options = {"n_features": 60, "distance": 2.5}
        X = gaussian(labels, rng, n_classes=n_classes, **options)
        if name == "noise":
            X = np.hstack([X, rng.normal(size=(len(X), 200))])
    sizes = np.array([len(own) for own in labels])
    y = np.zeros((total, n_classes), dtype=int)
    for row, own in zip(y, labels, strict=True):
        row[own] = 1
    given = y.copy()
    if name == "wrong tags":
        wrong = rng.random(y.shape)
        given = np.where(y == 1, wrong >= 0.1, wrong < 0.03).astype(int)
        given[n_bags:] = y[n_bags:]
    return X, sizes, np.concatenate(labels), given, n_bags


FAMILIES = (
    "few bags", "many bags", "rare", "noise", "binary", "pairs", "wrong tags", "kinds", "tails",
    "many features", "words 5 200", "words 12 200", "words 50 100", "words 200 500",
    "words 5 50",
)  # fmt: skip
