"""Compare ways to read missing tags of recordings: as absent, as unknown, or as possibly missed.

    python benchmarks/partial_tags.py

Recordings of an archive such as xeno-canto name the species that they were made of, and some of
those in the background. Here the foreground of a bag is its commonest class; each of its other
labels is named with probability p. The labels of training bags are read in three ways: what is not
named is absent, unknown, or absent but perhaps missed, at a rate that is learnt. Measured is how
many instances get their own label: those of the training bags, given the tags in the same reading
(`annotate`), and those of held-out bags, given nothing (`predict_instances`). Means of five splits.
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

DATA = ("hja-union", "msrcv2", "letter-frost")
NAMED = (1.0, 0.75, 0.5, 0.25, 0.0)
SEED = 0
#: What a label that nobody named is taken as, and what the model thinks of missing labels.
READINGS = {
    "absent": (0, {}),
    "unknown": (-1, {}),
    "absent, or missed": (0, {"missed_rate": "learn"}),
}


def partly_named(bags, y, probability, rng):
    """Keep the label of the commonest class of each bag, and of the others some.

    Parameters
    ----------
    bags : Bags
        With instance labels, that are columns of `y`.
    y : ndarray of shape (n_bags, n_classes)
        Indicator of 0 and 1.
    probability : float
        That a label of the background is named.
    rng : numpy Generator

    Returns
    -------
    ndarray of shape (n_bags, n_classes)
    """
    named = (y == 1) & (rng.random(y.shape) < probability)
    for b, (first, last) in enumerate(zip(bags.offsets[:-1], bags.offsets[1:], strict=True)):
        labels = bags.instance_labels[first:last]
        counts = np.bincount(labels[labels >= 0], minlength=y.shape[1])
        # Where no instance has a label, or some labels have no instance, any label will do.
        counts = np.where(y[b] == 1, counts + 1, 0)
        if counts.any():
            named[b, counts.argmax()] = True
    return named.astype(np.int8)


def measured(name, probability):
    """Shares of instances that get their own label, in every reading, one per split."""
    data = datasets.load(name)
    bags, y = data.bags, np.asarray(data.y)
    found = {reading: {"training": [], "held_out": []} for reading in READINGS}
    folds = bag_folds(bags, LabelSets.parse(y), 5, random_state=SEED)
    for split, (train, test) in enumerate(folds):
        rng = np.random.default_rng([SEED, split, round(100 * probability)])
        given = partly_named(bags[train], y[train], probability, rng)
        for reading, (absent, rates) in READINGS.items():
            labels = np.where(given == 1, 1, absent)
            model = ORLogisticRegression(background=False, **rates).fit(bags[train], labels)
            truth, answers = bags[train].instance_labels, model.annotate(bags[train], labels)
            found[reading]["training"].append(float(instance_accuracy(truth, answers)))
            truth, answers = bags[test].instance_labels, model.predict_instances(bags[test])
            found[reading]["held_out"].append(float(instance_accuracy(truth, answers)))
    return found


def main():
    console = Console()
    results = {"machine": machine()}
    for category in (ImpossibleBagWarning, IntractableBagWarning):
        warnings.simplefilter("ignore", category)
    for measure in ("training", "held_out"):
        table = Table(title=f"Instances with their own label (%), {measure.replace('_', '-')} bags")
        table.add_column("data")
        table.add_column("not named is")
        for probability in NAMED:
            table.add_column(f"p = {probability:g}", justify="right")
        for name in DATA:
            if not datasets.is_available(name):
                console.print(f"{name} is not on this machine: left out.")
                continue
            for probability in NAMED:
                of_data = results.setdefault(name, {})
                if f"{probability:g}" not in of_data:
                    of_data[f"{probability:g}"] = measured(name, probability)
                    console.print(f"{name}, background named with probability {probability:g}")
            for reading in READINGS:
                shares = (results[name][f"{p:g}"][reading][measure] for p in NAMED)
                table.add_row(name, reading, *(f"{100 * np.mean(share):.1f}" for share in shares))
        console.print(table)
    save("partial_tags", results, console)


if __name__ == "__main__":
    main()
