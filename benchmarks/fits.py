"""Time fits to bag labels beside fits to instance labels, which is the limit to measure against.

    python benchmarks/fits.py [--quick]

Where UNBAG_DATA names a folder with the paper's data, the 10-fold run on HJA is timed too.
"""

import argparse
import os
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score

from measure import alternate, machine, save
from unbag import Bags, ORLogisticRegression
from unbag.fitting import Objective, Progress, fit_em, fit_lbfgs
from unbag.fitting.threads import one_blas_thread
from unbag.model_selection import inductive_accuracy


def labelled_bags(rng, n_instances, n_features, n_classes, mean_size, mean_labels):
    """Gaussian classes, in bags whose instances come from a few classes each."""
    centres = rng.normal(size=(n_classes, n_features)) * 2 / np.sqrt(n_features)
    sizes = []
    while sum(sizes) < n_instances:
        sizes.append(min(rng.poisson(mean_size - 1) + 1, n_instances - sum(sizes)))
    offsets = np.append(0, np.cumsum(sizes))
    labels = np.concatenate(
        [
            rng.choice(
                rng.choice(n_classes, min(n_classes, rng.poisson(mean_labels - 1) + 1), False), size
            )
            for size in sizes
        ]
    )
    X = centres[labels] + rng.normal(size=(n_instances, n_features))
    y = np.zeros((len(sizes), n_classes), dtype=int)
    y[np.repeat(np.arange(len(sizes)), sizes), labels] = 1
    return Bags(X, offsets, instance_labels=labels), y


def iteration_over_supervised(bags, y, rounds):
    """Time one iteration on bag labels over one of the same code on instance labels."""
    ratios = {}
    with one_blas_thread():
        for name, fit in (("lbfgs", fit_lbfgs), ("em", fit_em)):
            calls = {}
            for kind, pinned in (("bags", None), ("instances", bags.instance_labels)):
                objective = Objective(bags.X, bags.offsets, y, pinned, alpha=1.0)
                start = np.zeros(objective.shape)

                def call(fit=fit, objective=objective, start=start):
                    fit(objective, start, max_iter=10, tol=0.0, progress=Progress(start))

                calls[kind] = call
            seconds = alternate(calls, rounds)
            ratios[name] = seconds["bags"] / seconds["instances"]
    return ratios


def large_fit(rng, quick):
    """Time a large fit to bag labels beside scikit-learn's to the true instance labels."""
    n_instances = 9_400 if quick else 47_000
    bags, y = labelled_bags(rng, n_instances, 128, 26, 20, 7)
    n_iterations = 50
    ours = ORLogisticRegression(max_iter=n_iterations, tol=0.0, scaling=None)
    theirs = LogisticRegression(max_iter=n_iterations, tol=0.0)

    def fit_theirs():
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.fit(bags.X, bags.instance_labels)

    seconds = alternate({"ours": lambda: ours.fit(bags, y), "theirs": fit_theirs}, 1)
    return {
        "n_instances": n_instances,
        "labels_per_bag": float(y.sum(axis=1).mean()),
        "iterations": [int(ours.n_iter_), int(np.max(theirs.n_iter_))],
        "accuracy": float(np.mean(ours.predict_instances(bags) == bags.instance_labels)),
        "supervised_accuracy": float(theirs.score(bags.X, bags.instance_labels)),
        **seconds,
        "over_scikit_learn": seconds["ours"] / seconds["theirs"],
    }


def ten_folds_of_hja(folder):
    """Time the 10-fold run as a user would write it."""
    with np.load(folder / "hja_union.npz", allow_pickle=True) as file:
        bags = Bags(file["X"], file["offsets"], instance_labels=file["instance_labels"])
        y = file["bag_labels"].astype(int)
    folds = KFold(10, shuffle=True, random_state=0)
    cross_val_score(ORLogisticRegression(max_iter=1), bags, y, cv=folds)
    start = perf_counter()
    scores = cross_val_score(ORLogisticRegression(), bags, y, cv=folds, scoring=inductive_accuracy)
    return {"seconds": perf_counter() - start, "accuracy": float(scores.mean())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller data")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(0)
    console = Console()
    like_hja = labelled_bags(rng, 4_998, 38, 13, 9, 2)
    results = {
        "machine": machine(),
        "iteration_over_supervised": iteration_over_supervised(*like_hja, 5 if quick else 20),
        "large_fit": large_fit(rng, quick),
    }
    folder = Path(os.environ.get("UNBAG_DATA", "not set"))
    if (folder / "hja_union.npz").exists():
        results["ten_folds_of_hja"] = ten_folds_of_hja(folder)
    ratios, large = results["iteration_over_supervised"], results["large_fit"]
    console.print(
        f"bags like HJA's, an iteration on bag labels over one on instance labels: "
        f"L-BFGS {ratios['lbfgs']:.2f}, EM {ratios['em']:.2f}\n"
        f"{large['n_instances']:,} instances, 128 features, 26 classes, "
        f"{large['labels_per_bag']:.1f} labels per bag: {large['over_scikit_learn']:.2f} times "
        f"scikit-learn's LogisticRegression on the true instance labels "
        f"({large['iterations'][0]} and {large['iterations'][1]} iterations; accuracy "
        f"{large['accuracy']:.3f} and {large['supervised_accuracy']:.3f})"
    )
    if "ten_folds_of_hja" in results:
        hja = results["ten_folds_of_hja"]
        console.print(
            f"10-fold cross_val_score on HJA union: {hja['seconds']:.1f} s "
            f"(accuracy {hja['accuracy']:.3f})"
        )
    save("fits", results, console)


if __name__ == "__main__":
    main()
