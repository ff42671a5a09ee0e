"""Whether a tuned linear model is as sure of itself as it is right.

    python benchmarks/calibration.py [--only NAME,...] [--methods default,tuned] [--seeds 10]

The data sets and folds of `committee.py`: accuracy on instances of new bags, of training bags given
their tags, and of new bags given theirs; the calibration error of the top probability in each of
these ways, in ten bins over all folds; and what was chosen. `default` is `ORLogisticRegression()`,
`tuned` is `unbag.tune` among linear models, `kernels` also among those with a kernel. A name such
as "msrcv2@0.5" leaves out each tag of a training bag with this probability, but for that of its
commonest class. Made families go by their names. Results are kept as soon as they are there, so
that a run that was stopped goes on. `--show` prints the table.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

from committee import REAL, answers, data_of, rounded, rows_of
from partial_tags import partly_named
from unbag_reproduce.calibration import calibration_error, reliability

LEDGER = Path(__file__).parent / "results" / "calibration.jsonl"
WAYS = ("new", "given", "new given")
# What is worth noting of a setting that was chosen.
NOTED = ("context", "kernel", "missed", "false", "alpha", "background")


def tagged(name, seed):
    """Return the data of a name, of which tags may be left out."""
    base, _, left_out = name.partition("@")
    train, y, new, y_new = data_of(base, seed)
    if left_out:
        rng = np.random.default_rng([seed, round(100 * float(left_out))])
        y = partly_named(train, (np.asarray(y) == 1).astype(int), 1 - float(left_out), rng)
    return train, y, new, y_new


def fitted(method, bags, y):
    """Return a fitted model."""
    import unbag

    if method == "default":
        return unbag.ORLogisticRegression().fit(bags, y)
    grid = {"kernel": [None]} if method == "tuned" else None
    return unbag.tune(bags, y, grid=grid, networks=False)


def measured(name, seed, method):
    """Fit a model, and return what it reaches, in percent, and what was chosen."""
    train, y, new, y_new = tagged(name, seed)
    truth, new_truth = train.instance_labels, new.instance_labels
    train, new = (type(bags)(bags.X, bags.offsets) for bags in (train, new))
    begin = time.process_time()
    model = fitted(method, train, y)
    row = {"data": name, "seed": seed, "method": method, "seconds": time.process_time() - begin}
    row |= answers(model, train, y, truth, new, new_truth)
    proba = model.annotate_proba(new, y_new)
    linear = getattr(model, "model", model)
    right = np.append(linear.classes_, -1)[proba.argmax(axis=1)] == new_truth
    row |= {"new given": 100 * right.mean(), "bins new given": reliability(proba, right)}
    if hasattr(model, "tuning_"):
        said = model.tuning_
        row["chosen"] = {key: said["chosen"][key] for key in NOTED if key in said["chosen"]}
        row["temperatures"] = [round(said[key], 2) for key in said if key.endswith("temperature")]
        row["rates"] = [round(float(rate.mean()), 4) for rate in (linear.missed_, linear.false_)]
    return rounded(row)


def show(rows):
    """Print accuracy and calibration error of each way, over all folds that a method has."""
    print(f"{'':16}{'':>10}{'folds':>7}{'accuracy':>27}{'calibration error':>27}   chosen")
    print(" " * 33 + "".join(f"{way:>9}" for way in WAYS) * 2)
    for name in dict.fromkeys(row["data"] for row in rows):
        for method in dict.fromkeys(row["method"] for row in rows):
            own = [row for row in rows if (row["data"], row["method"]) == (name, method)]
            if not own:
                continue
            found = [np.mean([row[way] for row in own]) for way in WAYS]
            found += [calibration_error([row[f"bins {way}"] for row in own]) for way in WAYS]
            n_missed = sum(row.get("chosen", {}).get("missed") == "learn" for row in own)
            note = f"   missed learnt in {n_missed}" if "chosen" in own[0] else ""
            line = "".join(f"{value:9.1f}" for value in found)
            print(f"{name:16}{method:>10}{len(own):7}{line}{note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(REAL))
    parser.add_argument("--methods", default="default,tuned")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.show:
        done = {(row["data"], row["seed"], row["method"]) for row in rows_of(options.ledger)}
        with options.ledger.open("a") as ledger:
            for name in options.only.split(","):
                for seed in range(options.seeds):
                    for method in options.methods.split(","):
                        if (name, seed, method) not in done:
                            ledger.write(json.dumps(measured(name, seed, method)) + "\n")
                            ledger.flush()
    show(rows_of(options.ledger))


if __name__ == "__main__":
    main()
