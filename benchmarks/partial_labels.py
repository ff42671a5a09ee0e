"""Learn from partial labels: one instance per bag, and several candidates of which one is right.

    OMP_NUM_THREADS=1 python benchmarks/partial_labels.py

Every instance is a bag of its own, whose label set is one group: the true class and k false ones,
drawn at random. Then the likelihood is the summed probability of the candidates. Beside it are a
model that counts each candidate as an equal share of a label (averaged candidates), and one that
knows the true labels. Logistic regression for all three; the share of held-out instances that get
their own label, with standard deviations over five folds. Data: the handwritten digits of
scikit-learn, and Letter Recognition, of which 4,000 instances are drawn.
"""

from importlib.resources import as_file, files

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from measure import machine, save
from unbag import Bags, LabelSets, ORLogisticRegression

N_FALSE = (1, 2, 3, 4, 5)
N_FOLDS = 5
N_LETTERS = 4000
SEED = 0
READINGS = ("groups", "averaged", "true labels")


def candidates_of(classes, n_classes, n_false, rng):
    """Return, for each instance, its class and so many others."""
    found = []
    for c in classes:
        others = rng.choice(np.delete(np.arange(n_classes), c), n_false, replace=False)
        found.append(sorted([int(c), *map(int, others)]))
    return found


def accuracies(X, classes, n_false, rng, train, test):
    """Return the accuracy of each reading on held-out instances."""
    n_classes = int(classes.max()) + 1
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    candidates = candidates_of(classes[train], n_classes, n_false, rng)
    bags = Bags(X[train], np.arange(len(train) + 1))
    groups = [[each] for each in candidates]
    labels = LabelSets(np.zeros((len(train), n_classes)), groups=groups)
    model = ORLogisticRegression(alpha=1.0, scaling=None, background=False).fit(bags, labels)
    new = Bags(X[test], np.arange(len(test) + 1))
    found = [np.mean(model.predict_instances(new) == classes[test])]
    # Each candidate is an instance of its own, with an equal share of the weight.
    repeated = np.repeat(np.arange(len(train)), n_false + 1)
    weight = np.full(len(repeated), 1.0 / (n_false + 1))
    averaged = LogisticRegression(C=1.0, max_iter=2000)
    averaged.fit(X[train][repeated], np.concatenate(candidates), sample_weight=weight)
    found.append(averaged.score(X[test], classes[test]))
    exact = LogisticRegression(C=1.0, max_iter=2000).fit(X[train], classes[train])
    found.append(exact.score(X[test], classes[test]))
    return list(map(float, found))


def letter_recognition(rng):
    """Return features and classes of some instances of Letter Recognition."""
    with as_file(files("unbag.datasets") / "data" / "letter_recognition.npz") as path:
        arrays = np.load(path)
        X, letters = arrays["X"].astype(float), arrays["y"]
    _, classes = np.unique(letters, return_inverse=True)
    chosen = rng.permutation(len(X))[:N_LETTERS]
    return X[chosen], classes[chosen]


def main():
    console = Console()
    results = {"machine": machine(), "folds": N_FOLDS}
    table = Table(title="Held-out instances with their own label (%)")
    for column in ("data", "false candidates", *READINGS):
        table.add_column(column)
    rng = np.random.default_rng(SEED)
    data = {"digits": load_digits(return_X_y=True), "letter-recognition": letter_recognition(rng)}
    for name, (X, classes) in data.items():
        folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=SEED).split(X, classes))
        for n_false in N_FALSE:
            found = [
                accuracies(
                    X, classes, n_false, np.random.default_rng([SEED, n_false, fold]), *split
                )
                for fold, split in enumerate(folds)
            ]
            results[f"{name}, {n_false}"] = dict(
                zip(READINGS, map(list, zip(*found, strict=True)), strict=True)
            )
            shares = 100 * np.array(found)
            cells = [
                f"{mean:.1f} ± {deviation:.1f}"
                for mean, deviation in zip(shares.mean(0), shares.std(0, ddof=1), strict=True)
            ]
            table.add_row(name, str(n_false), *cells)
            console.print(name, n_false, *cells)
    console.print(table)
    save("partial_labels", results, console)


if __name__ == "__main__":
    main()
