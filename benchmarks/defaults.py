"""Measure what `unbag.fit` decides by default, on tables whose instances are known.

    python benchmarks/defaults.py [TABLE ...] [--splits 3] [--tune] [--old FOLDER] [--again]

UNBAG_DATA has the tables, in the folder ``tables``; without names all are measured. For each table
and split: instances right on new bags and given the tags (those of a class, and all), calibration
errors of both and of the presence of classes, log loss of new bags, and processor seconds next to a
plain fit. "Tune" is the same by `unbag.tune` without networks. "Before" is the same by a tree of
the old commit, given by --old: a worktree of it. "Commonest" is how often the commonest class is
right: of all, and of the tags of a bag. Writes benchmarks/results/defaults.json; figures, no data.
Figures that are there are kept, so that a run that was stopped goes on; --again measures all.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

# One thread, so that processor seconds can be compared.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

import unbag  # noqa: E402
from unbag import Bags, ORLogisticRegression  # noqa: E402

TABLES = Path(os.environ.get("UNBAG_DATA", "")) / "tables"
#: The test bags of these lie elsewhere: other people, recordings, places.
APART = ("watch", "sounds", "scenes", "photos")
KINDS = ("before", "plain", "tune", "commonest")
FIGURES = (
    "new", "new_all", "given", "given_all", "error_new", "error_given", "error_presence",
    "log_loss_new", "seconds",
)  # fmt: skip


def table(name, split):
    """Return training bags with tags and truth, and test bags with tags and truth."""
    with np.load(TABLES / f"{name}.npz") as file:
        X, offsets, y, truth = file["X"], file["off"], file["Y"], file["y"]
        shown, train, test = file["shown"], file["tr"], file["te"]
    rng = np.random.default_rng(1000 + split)
    if split and name.removeprefix("f_").startswith(APART):
        train = np.sort(rng.permutation(train)[: int(0.9 * len(train))])
    elif split:
        order = rng.permutation(np.sort(np.append(train, test)))
        train, test = np.sort(order[: len(train)]), np.sort(order[len(train) :])
    kept = shown[train].any(axis=0)
    train, test = (each[~y[each][:, ~kept].any(axis=1)] for each in (train, test))
    column = np.append(np.where(kept, np.cumsum(kept) - 1, -1), kept.sum())
    truth, bags = column[np.minimum(truth, len(kept))], Bags(X, offsets)
    rows = [np.concatenate([np.arange(*offsets[b : b + 2]) for b in own]) for own in (train, test)]
    return (
        (bags[train], shown[train][:, kept], truth[rows[0]]),
        (bags[test], y[test][:, kept], truth[rows[1]]),
    )


def calibration_error(proba, right):
    """Return the mean difference of probability and share of right ones, in ten bins, in %."""
    bins = np.minimum((proba * 10).astype(int), 9)
    gaps = np.bincount(bins, right, 10) - np.bincount(bins, proba, 10)
    return 100 * float(np.abs(gaps).sum()) / len(proba)


def judged(proba, truth, n_classes):
    """Return how many instances of classes, and of all, are right, and the calibration error."""
    right, named = proba.argmax(axis=1) == truth, truth < n_classes
    error = calibration_error(proba.max(axis=1), right)
    return 100 * float(right[named].mean()), 100 * float(right.mean()), error


def figures(model, train, test):
    """Fit a model, and measure it."""
    (bags, tags, truth), (new, new_tags, new_truth) = train, test
    begin, n_classes = time.process_time(), tags.shape[1]
    model.fit(bags, tags)
    seconds = time.process_time() - begin
    proba = model.predict_instances_proba(new)
    found = dict(
        zip(("new", "new_all", "error_new"), judged(proba, new_truth, n_classes), strict=True)
    )
    given = judged(model.annotate_proba(bags, tags), truth, n_classes)
    found |= dict(zip(("given", "given_all", "error_given"), given, strict=True))
    presence = model.predict_proba(new)
    found["error_presence"] = calibration_error(presence.ravel(), new_tags.ravel() == 1)
    known = new_truth < proba.shape[1]
    likely = proba[np.flatnonzero(known), new_truth[known]]
    found["log_loss_new"] = float(-np.log(np.maximum(likely, 1e-6)).mean())
    return found | {"seconds": seconds}


def commonest(train, test):
    """Return how often the commonest class is right: of all, and of the tags of a bag."""
    (bags, tags, truth), (_, _, new_truth) = train, test
    counts = tags.sum(axis=0)
    of_bag = np.where(tags == 1, counts, -1).argmax(axis=1)
    named, new_named = truth < tags.shape[1], new_truth < tags.shape[1]
    return {
        "new": 100 * float((new_truth[new_named] == counts.argmax()).mean()),
        "given": 100 * float((np.repeat(of_bag, bags.sizes) == truth)[named].mean()),
    }


class Tuned:
    """`unbag.tune` as an estimator."""

    def fit(self, bags, y):
        """Choose features and fit."""
        self.model = unbag.tune(bags, y, networks=False)

    def __getattr__(self, name):
        return getattr(self.model, name)


def measured(kind, train, test):
    """Return the figures of a kind of model on a table."""
    if kind == "commonest":
        return commonest(train, test)
    if kind == "tune":
        tuned = Tuned()
        return figures(tuned, train, test) | tuned.model.tuning_["chosen"]
    alpha, background = ("auto", "auto") if kind == "after" else (1.0, kind == "before" and "auto")
    model = ORLogisticRegression(alpha, background=background, n_jobs=1)
    found = figures(model, train, test)
    if kind == "after":
        decision = model.decision_
        found |= {"kind": decision.kind, "alpha": decision.alpha, "says": decision.sentence()}
    return found


def by_old_tree(folder, names, splits):
    """Return the figures of the default of an old tree, by table and split."""
    command = [sys.executable, __file__, *names, "--splits", str(splits), "--only-old"]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    old = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(old.stdout)


def show(found):
    """Print means of all kinds over the tables that have them, next to the default there."""
    for kind in KINDS:
        both = [own for own in found.values() if kind in own and "after" in own]
        if not both or kind == "commonest":
            continue
        for each in dict.fromkeys((kind, "after")):
            means = {name: np.mean([own[each][name] for own in both]) for name in FIGURES}
            rounded = {name: round(float(mean), 2) for name, mean in means.items()}
            print(f"{each}, {len(both)} tables and splits of {kind}:", rounded)
        gains = {key: gain(own, kind) for key, own in found.items() if own in both}
        for way, place in (("new", 0), ("given", 1)):
            worst = min(gains, key=lambda key, place=place: gains[key][place])
            print(f"  the default against it, {way}: at worst {gains[worst][place]:.1f}, {worst}")
    price = [
        own["after"]["seconds"] / own["plain"]["seconds"]
        for own in found.values()
        if {"after", "plain"} <= own.keys()
    ]
    longest = max(own["after"]["seconds"] for own in found.values())
    print(f"price: median {np.median(price):.1f} plain fits, at most {longest:.1f} seconds")


def gain(own, kind):
    """Return by how much the default is better, as means of classes and all instances."""
    one, other = own["after"], own[kind]
    return [
        (one[way] + one[f"{way}_all"] - other[way] - other[f"{way}_all"]) / 2
        for way in ("new", "given")
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--tune", action="store_true", help="measure unbag.tune as well")
    parser.add_argument("--old", type=Path, help="a worktree of the old commit")
    parser.add_argument("--again", action="store_true", help="measure what is already there")
    parser.add_argument("--only-old", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not TABLES.is_dir():
        sys.exit("UNBAG_DATA does not name a folder that has tables.")
    warnings.simplefilter("ignore")
    names = options.tables or sorted(each.stem for each in TABLES.glob("*.npz"))
    places = [(name, split) for split in range(options.splits) for name in names]
    # What is compiled on the way counts for no table.
    measured("before" if options.only_old else "after", *table(names[0], 0))
    if options.only_old:
        print(json.dumps({f"{n}/{s}": measured("before", *table(n, s)) for n, s in places}))
        return
    path = Path(__file__).parent / "results" / "defaults.json"
    kept = path.exists() and not options.again
    found = json.loads(path.read_text(encoding="utf-8")) if kept else {}
    wanted = ["plain", "after", "commonest", *(["tune"] if options.tune else [])]
    old = {} if options.old is None else by_old_tree(options.old, names, options.splits)
    for name, split in places:
        own = found.setdefault(f"{name}/{split}", {})
        data = table(name, split)
        if f"{name}/{split}" in old:
            own["before"] = old[f"{name}/{split}"]
        for kind in wanted:
            if kind not in own:
                own[kind] = measured(kind, *data)
        rounded = json.loads(json.dumps(found), parse_float=lambda text: round(float(text), 3))
        path.write_text(
            json.dumps(dict(sorted(rounded.items())), indent=1) + "\n", encoding="utf-8"
        )
    show(found)


if __name__ == "__main__":
    main()
