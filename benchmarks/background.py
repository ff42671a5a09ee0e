"""What a background costs and gains: instances right given the tags, with and without one.

    python benchmarks/background.py [--old SOURCES] [--models linear,learnt,kernel] [--only NAME]

Models: linear, learnt (rates of missed labels), "alpha 10", kernel and network. For each data set
and model: no background, one that costs nothing (`background=True`), and that which held-out bags
decide on (`background="auto"`); with `--old`, also what another version of the package decides,
whose folder `src` that is. Results are kept as soon as they are there, so that a run that was
stopped goes on.

Measured, in percent: instances of the training bags that are right given the tags (those of a class
are labelled so, all others left), and on held-out bags average precision and Hamming loss.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from measure import machine

RESULTS = Path(__file__).parent / "results" / "background.json"
SETTINGS = {"False": False, "True": True, "auto": "auto", "old auto": "auto"}


# Data.


def drawn(seed, share, *, kinds=1, diffuse=False, n_classes=6, n_bags=150, untagged=0.0):
    """Draw bags of Gaussian instances, some of no class, and classes of several kinds.

    Instances of no class have a mean of their own, or are spread over all means and beyond. Some
    bags, a share of `untagged`, hold nothing but instances of no class.
    """
    rng = np.random.default_rng([seed, kinds, diffuse])
    n_features = 10
    means = rng.normal(size=(n_classes * kinds + 1, n_features)) * 1.6
    X, labels, sizes = [], [], []
    for b in range(n_bags):
        size = rng.integers(6, 13)
        classes = rng.permutation(n_classes)[: rng.integers(1, 4)]
        own = rng.choice(classes, size)
        own[: len(classes)] = classes
        is_none = rng.random(size) < share
        is_none[: len(classes)] = False
        if b < untagged * n_bags:
            is_none[:] = True
        own = np.where(is_none, -1, own)
        kind = np.where(own < 0, n_classes * kinds, own * kinds + rng.integers(kinds, size=size))
        rows = means[kind] + rng.normal(size=(size, n_features))
        if diffuse:
            rows[is_none] = rng.normal(size=(is_none.sum(), n_features)) * 2.2
        X.append(rows)
        labels.append(own)
        sizes.append(size)
    return packed(np.concatenate(X), np.concatenate(labels), sizes, n_classes)


def packed(X, labels, sizes, n_classes):
    """Return bags with their true labels, and the union of these as label sets."""
    from unbag import Bags

    offsets = np.append(0, np.cumsum(sizes))
    y = np.zeros((len(sizes), n_classes), dtype=int)
    bag = np.repeat(np.arange(len(sizes)), sizes)
    y[bag[labels >= 0], labels[labels >= 0]] = 1
    return Bags(X, offsets, instance_labels=labels), y


def real(name, struck=0, seed=0):
    """Return a data set, some of whose classes are struck from all label sets."""
    from unbag import datasets

    data = datasets.load(name, **({"random_state": seed} if name.startswith("letter") else {}))
    y, labels = np.asarray(data.y), np.asarray(data.bags.instance_labels)
    if struck:
        gone = np.random.default_rng(seed).permutation(y.shape[1])[:struck]
        kept = np.setdiff1d(np.arange(y.shape[1]), gone)
        column = np.full(y.shape[1], -1)
        column[kept] = np.arange(len(kept))
        labels = column[labels]
        return packed(data.bags.X, labels, data.bags.sizes, len(kept))
    return packed(data.bags.X, labels, data.bags.sizes, y.shape[1])


DATA = {
    "made, none": lambda seed: drawn(seed, 0.0),
    "made, 1/3 clusters": lambda seed: drawn(seed, 1 / 3),
    "made, 1/3 diffuse": lambda seed: drawn(seed, 1 / 3, diffuse=True),
    "made, 2/3 clusters": lambda seed: drawn(seed, 2 / 3),
    "made, 2/3 diffuse": lambda seed: drawn(seed, 2 / 3, diffuse=True),
    "fragments, none": lambda seed: drawn(seed, 0.0, kinds=3),
    "fragments, 1/3 clusters": lambda seed: drawn(seed, 1 / 3, kinds=3),
    "fragments, 1/3 diffuse": lambda seed: drawn(seed, 1 / 3, kinds=3, diffuse=True),
    "fragments, 2/3 diffuse": lambda seed: drawn(seed, 2 / 3, kinds=3, diffuse=True),
    "3 classes, 1/3 diffuse": lambda seed: drawn(seed, 1 / 3, diffuse=True, n_classes=3),
    "untagged bags only": lambda seed: drawn(seed, 0.0, untagged=0.5),
    "untagged bags, 1/3 too": lambda seed: drawn(seed, 1 / 3, untagged=0.3),
    "hja-union": lambda seed: real("hja-union", seed=seed),
    "hja-union, 5 struck": lambda seed: real("hja-union", 5, seed),
    "msrcv2": lambda seed: real("msrcv2", seed=seed),
    "msrcv2, 5 struck": lambda seed: real("msrcv2", 5, seed),
    "letter-carroll": lambda seed: real("letter-carroll", seed=seed),
    "letter-frost": lambda seed: real("letter-frost", seed=seed),
}


# Models.


def model_of(kind, background):
    """Return an unfitted model."""
    from unbag import ORLogisticRegression
    from unbag.learning import Settings

    if kind == "kernel":
        return Settings(kernel=1.0, dictionary=200, alpha=0.1, background=background).unfitted()
    if kind == "network":
        from unbag.torch import ORNetwork

        return ORNetwork((64,), n_members=2, max_iter=150, background=background,
                         device="cpu", random_state=0)  # fmt: skip
    rates = {"missed": "learn"} if kind == "learnt" else {}
    alpha = {"alpha 10": 10.0}.get(kind, 1.0)
    return ORLogisticRegression(alpha, background=background, **rates)


def measured(data, kind, background, seed):
    """Fit to three quarters of the bags; return what is measured, as a dict."""
    from unbag import is_background
    from unbag.metrics import average_precision, hamming_loss

    warnings.simplefilter("ignore")
    bags, y = DATA[data](seed)
    order = np.random.default_rng([7, seed]).permutation(len(bags))
    n_train = len(bags) * 3 // 4
    train, test = np.sort(order[:n_train]), np.sort(order[n_train:])
    started = time.perf_counter()
    model = model_of(kind, background).fit(bags[train], y[train])
    seconds = time.perf_counter() - started
    answer, truth = model.annotate(bags[train], y[train]), bags[train].instance_labels
    fitted = model.model if hasattr(model, "model") else model
    found = np.where(is_background(answer), -1, answer.astype(float))
    tagged = np.repeat(y[train].any(axis=1), bags[train].sizes)
    return {
        "right": 100 * float(np.mean(found == truth)),
        "right in tagged": 100 * float(np.mean((found == truth)[tagged])),
        "average precision": 100 * average_precision(y[test], model.predict_proba(bags[test])),
        "hamming": 100 * float(hamming_loss(y[test], model.predict(bags[test]))),
        "empty": 100 * float(y[test].mean()),
        "used": bool(fitted.has_background_),
        "cost": float(getattr(fitted, "background_cost_", 0.0)),
        "threshold": float(getattr(fitted, "threshold_", 0.5)),
        "seconds": seconds,
    }  # fmt: skip


# Tables.


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--old")
    options.add_argument("--models", default="linear")
    options.add_argument("--only", default="")
    options.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options.add_argument("--results", type=Path, default=RESULTS)
    options.add_argument("--seeds", type=int, default=3)
    options = options.parse_args()
    if options.one:
        data, kind, setting, seed = options.one
        print(json.dumps(measured(data, kind, SETTINGS[setting], int(seed))))
        return
    path = options.results
    kept = json.loads(path.read_text()) if path.exists() else {"machine": machine()}
    names = [name for name in DATA if any(each in name for each in options.only.split(";"))]
    for kind in options.models.split(","):
        for data in names:
            for setting in SETTINGS:
                for seed in range(options.seeds):
                    key = "/".join((kind, data, setting, str(seed)))
                    if key in kept:
                        continue
                    if setting != "old auto":
                        kept[key] = measured(data, kind, SETTINGS[setting], seed)
                    elif options.old:
                        kept[key] = elsewhere(options.old, data, kind, setting, seed)
                    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
            show(kept, kind, data)


def elsewhere(source, *what):
    """Measure with another version of the package, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, __file__, "--one", *map(str, what)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def show(kept, kind, data):
    """Print a row for each setting of a data set."""
    for setting in SETTINGS:
        prefix = f"{kind}/{data}/{setting}/"
        rows = [row for key, row in sorted(kept.items()) if key.startswith(prefix)]
        if rows:
            mean = {name: np.mean([row[name] for row in rows]) for name in rows[0]}
            print(
                f"{kind:8} {data:26} {setting:9} right {mean['right']:5.1f} "
                f"(tagged {mean['right in tagged']:5.1f}) AP {mean['average precision']:5.1f} "
                f"Hamming {mean['hamming']:5.1f} (empty {mean['empty']:4.1f}) "
                f"used {mean['used']:.1f} cost {mean['cost']:.2f} {mean['seconds']:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
