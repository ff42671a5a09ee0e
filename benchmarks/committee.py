"""Whether a committee is as good as the best of a linear model, a kernel and networks of one kind.

    python benchmarks/committee.py [--only NAME] [--methods linear,committee] [--seeds 3] [--jobs 2]

Made families, digits of 25 to 500 bags, and with `--real` the data sets of the paper, on folds of
this benchmark. For each: accuracy on instances of new bags, and of the training bags given their
tags; the mean log-likelihood of the label sets of new bags; and the calibration error of the top
probability both ways, in ten bins over all seeds. Results are kept as soon as they are there, so
that a run that was stopped goes on. `--show` prints the table. The method `told` is the committee
told the label of every instance: what there is to reach.
"""

import argparse
import json
import os
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from synthetic.families import FAMILIES, N_NEW, family

LEDGER = Path(__file__).parent / "results" / "committee.jsonl"
REAL = ("hja-union", "msrcv2", "letter-carroll", "letter-frost")
# Of ten; other ones than those of the reproduction.
FOLDS, FOLD_SEED = 10, 71
N_BINS = 10


# Data.

DIGITS = ("digits 25", "digits 60", "digits 150", "digits 500")


def data_of(name, seed):
    """Return training bags with y, and new bags with y."""
    from unbag import Bags
    from unbag.datasets import load_digit_bags

    if name in REAL:
        from unbag_reproduce import datasets

        data = (
            datasets.load(name, random_state=seed // FOLDS)
            if "letter" in name
            else (datasets.load(name))
        )
        rng = np.random.default_rng([FOLD_SEED, seed // FOLDS])
        order = rng.permutation(len(data.bags))
        new = np.sort(order[seed % FOLDS :: FOLDS])
        train = np.setdiff1d(order, new)
        return data.bags[train], data.y[train], data.bags[new], data.y[new]
    if name.startswith("digits"):
        n_bags = int(name.split()[1])
        # There are 1,797 digits: of 500 bags and new ones, each gets fewer.
        data = load_digit_bags(random_state=seed, max_size=3 if n_bags > 300 else 5)
        bags, y = data.bags[: n_bags + N_NEW], data.y[: n_bags + N_NEW]
    else:
        X, sizes, labels, y, n_bags = family(name, seed)
        bags = Bags(X, np.append(0, np.cumsum(sizes)), instance_labels=labels)
    return bags[:n_bags], y[:n_bags], bags[n_bags:], y[n_bags:]


# Methods.


def model_of(method, seed):
    """Return an unfitted model."""
    from unbag import ORLogisticRegression
    from unbag.pipeline import bag_pipeline

    if method == "linear":
        return ORLogisticRegression()
    if method == "kernel":
        return bag_pipeline(ORLogisticRegression(0.1), kernel=0.5, random_state=seed)
    from unbag.torch import ORNetwork

    if method == "network":
        return ORNetwork(committee=False, n_members=8, random_state=seed)
    return ORNetwork(random_state=seed)


def reliability(proba, is_right):
    """Return for bins of the top probability: the instances, its sum, and how many are right."""
    top = proba.max(axis=1)
    place = np.minimum((top * N_BINS).astype(int), N_BINS - 1)
    columns = (np.bincount(place, each, N_BINS) for each in (None, top, is_right))
    return np.column_stack([*columns]).tolist()


def calibration_error(fits):
    """Return how far top probabilities are from the share that is right, over the bins of fits."""
    n, top, right = np.asarray(fits).sum(axis=0).T
    return float(100.0 * np.abs(top - right).sum() / n.sum())


def answers(model, train, y, truth, new, new_truth):
    """Return accuracy and bins of a fitted model: of new bags, and of training bags given tags."""
    # A background, the column after the last class, has no label.
    classes = np.append(getattr(model, "model", model).classes_, -1)
    row = {}
    proba, given = model.predict_instances_proba(new), model.annotate_proba(train, y)
    for way, found, labels in (("new", proba, new_truth), ("given", given, truth)):
        right = classes[found.argmax(axis=1)] == labels
        row[way] = 100 * right.mean()
        row[f"bins {way}"] = reliability(found, right)
    return row


def measured(task):
    """Fit a model, and return what it reaches, in percent."""
    name, seed, method = task
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    train, y, new, y_new = data_of(name, seed)
    truth, new_truth = train.instance_labels, new.instance_labels
    bare, bare_new = (type(b)(b.X, b.offsets) for b in (train, new))
    begin = time.monotonic()
    known = {"instance_labels": truth} if method == "told" else {}
    model = model_of(method, seed).fit(bare, y, **known)
    row = {"data": name, "seed": seed, "method": method, "seconds": time.monotonic() - begin}
    row |= answers(model, bare, y, truth, bare_new, new_truth)
    row["likelihood"] = float(np.maximum(model.log_likelihood(bare_new, y_new), -27.6).mean())
    if hasattr(model, "pool_weights_"):
        parts = [each for each, _ in model.committee_]
        row["weights"] = dict(zip(parts, model.pool_weights_.round(3).tolist(), strict=True))
        if os.environ.get("COMMITTEE_PARTS"):
            from unbag.torch.committee import log_proba_of

            classes = model.classes_
            row["parts new"] = {
                each: round(
                    100 * (classes[log_proba_of(part, bare_new).argmax(1)] == new_truth).mean(), 1
                )
                for each, part in model.committee_
            }
    return rounded(row)


def rounded(row):
    """Return a row of the ledger with three digits."""
    return {
        key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()
    }


def rows_of(path):
    """Read the ledger."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def show(rows):
    """Print means over seeds: new bags, given tags, and the committee less the best other."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    methods = [
        m
        for m in ("linear", "kernel", "network", "committee", "told")
        if any(r["method"] == m for r in rows)
    ]
    for measure in ("new", "given", "bins new", "bins given", "likelihood", "seconds"):
        title = measure.replace("bins", "calibration")
        print(f"\n{title:16}" + "".join(f"{m:>11}" for m in methods) + "   committee less best")
        for name in names:
            means = {}
            own = {
                m: {
                    r["seed"]: r[measure]
                    for r in rows
                    if r["data"] == name and r["method"] == m and measure in r
                }
                for m in methods
            }
            known = [set(each) for each in own.values() if each]
            common = set.intersection(*known) if known else set()
            is_error = measure.startswith("bins")
            mean, best = (calibration_error, min) if is_error else (np.mean, max)
            for m in methods:
                if own[m] and common:
                    means[m] = mean([own[m][s] for s in common])
            others = [v for m, v in means.items() if m not in ("committee", "told")]
            gap = means["committee"] - best(others) if others and "committee" in means else np.nan
            line = "".join(f"{means.get(m, np.nan):11.2f}" for m in methods)
            print(f"{name:16}{line}{gap:11.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only")
    parser.add_argument("--methods", default="linear,kernel,network,committee")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        names = REAL if options.real else FAMILIES + DIGITS
        if options.only:
            names = [name for name in names if name in options.only.split(",")]
        done = {(r["data"], r["seed"], r["method"]) for r in rows_of(options.ledger)}
        tasks = [
            (name, seed, method)
            for seed in range(options.first, options.first + options.seeds)
            for name in names
            for method in options.methods.split(",")
        ]
        tasks = [task for task in tasks if task not in done]
        os.environ.update(OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        with get_context("spawn").Pool(options.jobs) as pool, options.ledger.open("a") as ledger:
            for row in pool.imap_unordered(measured, tasks):
                ledger.write(json.dumps(row) + "\n")
                ledger.flush()
    show(rows_of(options.ledger))


if __name__ == "__main__":
    main()
