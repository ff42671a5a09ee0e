"""Compare ways to read tags that name groups of classes, such as a genus in place of a species.

    OMP_NUM_THREADS=1 python benchmarks/vague_tags.py

Classes are merged in pairs, or in fives, in the order of their names: class c is in group c // 2,
or c // 5. Each tag of a training bag is vague with probability p: it names the group of its class.
The tags are read in four ways: as groups, of which at least one class is there; bags with vague
tags are dropped; the classes of a vague tag are unknown; and, as an upper bound, all tags are
exact. Measured is how many instances get their own label: those of the training bags, given the
tags in the same reading (`annotate`), and those of held-out bags, given nothing
(`predict_instances`). Where bags were dropped, they are annotated like those whose vague tags are
unknown. Linear models, ten folds, ten draws of what is vague in each; differences to groups are
paired by folds, with their standard errors.
"""

import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

from measure import machine, save
from unbag import LabelSets, ORLogisticRegression
from unbag.metrics import instance_accuracy
from unbag.model_selection import bag_folds
from unbag.union import ImpossibleBagWarning, IntractableBagWarning
from unbag_reproduce import datasets

DATA = ("letter-carroll", "letter-frost", "msrcv2", "hja-union")
VAGUE = (0.6, 0.3, 0.9)
MERGED = {"pairs": 2, "fives": 5}
READINGS = ("groups", "dropped", "unknown", "exact")
N_FOLDS, N_DRAWS = 10, 10
SEED = 0


def vague_tags(y, size, probability, rng):
    """Make some tags vague.

    Parameters
    ----------
    y : ndarray of shape (n_bags, n_classes)
        Indicator of 0 and 1.
    size : int
        Number of classes that are merged.
    probability : float
        That a tag is vague.
    rng : numpy Generator

    Returns
    -------
    labels : LabelSets
        With groups in place of vague tags.
    is_vague : ndarray of bool of shape (n_bags,)
    """
    vague = (y == 1) & (rng.random(y.shape) < probability)
    n_classes = y.shape[1]
    groups = [
        [list(range(g * size, min((g + 1) * size, n_classes))) for g in sorted(set(own // size))]
        for own in map(np.flatnonzero, vague)
    ]
    return LabelSets(np.where(vague, 0, y), groups=groups), vague.any(axis=1)


def shares_right(bags, y, train, test, labels, is_vague, reading):
    """Return the shares of training and of held-out instances that get their own label."""
    own, given = bags[train], labels
    if reading == "exact":
        given = LabelSets(y[train])
    elif reading in ("unknown", "dropped"):
        # The classes of groups are unknown in the indicator.
        given = LabelSets(labels.indicator)
    used = ~is_vague if reading == "dropped" else np.ones(len(own), dtype=bool)
    if not given[used].is_tagged.any():
        return 0.0, 0.0
    model = ORLogisticRegression(background=False).fit(own[used], given[used])
    new = bags[test]
    return (
        float(instance_accuracy(own.instance_labels, model.annotate(own, given))),
        float(instance_accuracy(new.instance_labels, model.predict_instances(new))),
    )


def measured(name, size, probability, exact):
    """Return the shares of all readings, fold by fold."""
    data = datasets.load(name)
    bags, y = data.bags, np.asarray(data.y)
    found = {reading: [] for reading in READINGS}
    folds = bag_folds(bags, LabelSets(y), N_FOLDS, random_state=SEED)
    for fold, (train, test) in enumerate(folds):
        of_draws = {reading: [] for reading in READINGS}
        for draw in range(N_DRAWS):
            rng = np.random.default_rng([SEED, fold, size, round(100 * probability), draw])
            labels, is_vague = vague_tags(y[train], size, probability, rng)
            for reading in READINGS:
                if reading == "exact" and len(exact) > fold:
                    of_draws[reading].append(exact[fold])
                    continue
                given = bags, y, train, test, labels, is_vague, reading
                of_draws[reading].append(shares_right(*given))
                if reading == "exact":
                    exact.append(of_draws[reading][-1])
        for reading, shares in of_draws.items():
            found[reading].append(np.mean(shares, axis=0).tolist())
    return found


def main():
    console = Console()
    results = {"machine": machine(), "folds": N_FOLDS, "draws": N_DRAWS}
    for category in (ImpossibleBagWarning, IntractableBagWarning):
        warnings.simplefilter("ignore", category)
    for name in DATA:
        if not datasets.is_available(name):
            console.print(f"{name} is not on this machine: left out.")
            continue
        exact = []
        for probability in VAGUE:
            for merged, size in MERGED.items():
                key = f"{name}, {merged}, {probability:g}"
                results[key] = measured(name, size, probability, exact)
                save("vague_tags", results, console)
    for place, what in enumerate(("given tags, training bags", "new bags")):
        table = Table(title=f"Instances with their own label (%), {what}")
        for column in ("data", "merged", "vague", *READINGS, "groups - dropped",
                       "groups - unknown"):  # fmt: skip
            table.add_column(column)
        for key in sorted(set(results) - {"machine", "folds", "draws"}):
            shares = {r: 100 * np.array(results[key][r])[:, place] for r in READINGS}
            means = [f"{shares[reading].mean():.1f}" for reading in READINGS]
            differences = []
            for other in ("dropped", "unknown"):
                paired = shares["groups"] - shares[other]
                error = paired.std(ddof=1) / np.sqrt(len(paired))
                differences.append(f"{paired.mean():.1f} ± {error:.1f}")
            table.add_row(*key.split(", "), *means, *differences)
        console.print(table)


if __name__ == "__main__":
    main()
