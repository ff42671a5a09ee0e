"""Compare the time of fits to bag labels with fits to instance labels, which are the limit.

    python benchmarks/fits.py [--quick]

If UNBAG_DATA names a folder with the paper's data, the 10-fold run on HJA is timed too.
"""

import argparse
import os
import tracemalloc
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from measure import alternate, machine, save
from unbag import Bags, OnInstances, ORLogisticRegression, RBFDictionary
from unbag._threads import one_blas_thread, thread_map
from unbag.fitting import Decision, Progress
from unbag.fitting.linear import Climb, InMemory, Objective
from unbag.fitting.parts import PartMaker
from unbag.fitting.scaling import Scale
from unbag.model_selection import inductive_accuracy
from unbag.union import UnionProblem


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


def parts_of(bags, problem):
    """Return the parts of a fit."""
    return InMemory(bags).parts(PartMaker(problem, np.arange(len(bags))), map)


def iteration_over_supervised(bags, y, rounds):
    """Return the ratio of the time of an iteration on bag labels to one on instance labels."""
    calls, scale = {}, Scale.none(bags.n_features)
    start = np.zeros((y.shape[1], bags.n_features + 1))
    for kind, pinned in (("bags", None), ("instances", bags.instance_labels)):
        parts = parts_of(bags, UnionProblem(bags.offsets, y, pinned))
        objective = Objective(parts, scale, 1.0, start.shape)

        def call(objective=objective):
            Climb(objective, Progress(start, scale, Decision()), None).run(10, 0.0)

        calls[kind] = call
    with one_blas_thread():
        seconds = alternate(calls, rounds)
    return seconds["bags"] / seconds["instances"]


def large_fit(rng, quick):
    """Compare a large fit to bag labels with scikit-learn's fit to the true instance labels."""
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


def memory_of_a_fit(rng, quick):
    """Measure the peak memory of a fit beyond its features, in units of their size."""
    n_instances = 100_000 if quick else 400_000
    bags, y = labelled_bags(rng, n_instances, 50, 6, 10, 2)
    bags.X[:] += rng.uniform(-100, 100, 50)
    tracemalloc.start()
    ORLogisticRegression(max_iter=5).fit(bags, y)
    peak = tracemalloc.get_traced_memory()[1] / bags.X.nbytes
    tracemalloc.stop()
    return {"n_instances": n_instances, "of_features": peak}


def kernel_fit(bags, y, n_iterations):
    """Compare an iteration on kernel columns with the two matrix products that it needs.

    The products are timed between iterations, so that both are measured under the same load. They
    are timed as one product and in the parts and threads of the fit; the faster way counts.
    """
    scaled = OnInstances(StandardScaler()).fit_transform(bags)
    kernel = RBFDictionary(whiten=False).fit_transform(scaled)
    X, n_classes = kernel.X, y.shape[1]
    rng = np.random.default_rng(0)
    weights, residual = (
        rng.normal(size=(n_classes, X.shape[1])),
        rng.normal(size=(len(X), n_classes)),
    )
    problem = UnionProblem(kernel.offsets, y)
    rows = [part.rows for part in parts_of(kernel, problem).parts]

    def whole():
        return X @ weights.T, residual.T @ X

    def in_parts():
        with thread_map(None, np.inf) as map_parts:
            list(map_parts(lambda own: X[own] @ weights.T, rows))
            return sum(map_parts(lambda own: residual[own].T @ X[own], rows))

    times = {"iteration": [], "whole": [], "in_parts": []}
    started = perf_counter()

    def iterated(progress):
        """Record the time of an iteration, and sometimes time the products."""
        nonlocal started
        times["iteration"].append(perf_counter() - started)
        if len(progress.history) % 10 == 0:
            for name, products in (("whole", whole), ("in_parts", in_parts)):
                started = perf_counter()
                products()
                times[name].append(perf_counter() - started)
        started = perf_counter()

    model = ORLogisticRegression(max_iter=n_iterations, tol=0.0)
    model.fit(kernel, y, watch=iterated)
    medians = {name: median(each) for name, each in times.items()}
    iteration, products = medians["iteration"], min(medians["whole"], medians["in_parts"])
    return {
        "shape": list(X.shape),
        "iterations": model.n_iter_,
        "iteration_seconds": iteration,
        "two_products_seconds": products,
        "over_two_products": iteration / products,
    }


def hja_bags(folder):
    """Return the bags of HJA birdsong and their label sets."""
    with np.load(folder / "hja_union.npz", allow_pickle=True) as file:
        bags = Bags(file["X"], file["offsets"], instance_labels=file["instance_labels"])
        return bags, file["bag_labels"].astype(int)


def ten_folds(bags, y):
    """Time the 10-fold run as a user would write it."""
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
    bags, y = like_hja
    if (folder / "hja_union.npz").exists():
        bags, y = hja_bags(folder)
        results["ten_folds_of_hja"] = ten_folds(bags, y)
    results["kernel_fit"] = kernel_fit(bags, y, 20 if quick else 500)
    results["memory_of_a_fit"] = memory_of_a_fit(rng, quick)
    large = results["large_fit"]
    console.print(
        f"bags like HJA's, an iteration on bag labels over one on instance labels: "
        f"{results['iteration_over_supervised']:.2f}\n"
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
    kernel, memory = results["kernel_fit"], results["memory_of_a_fit"]
    console.print(
        f"a fit to {kernel['shape'][0]:,} x {kernel['shape'][1]:,} kernel columns: "
        f"{1e3 * kernel['iteration_seconds']:.1f} ms an iteration, "
        f"{kernel['over_two_products']:.2f} times two products with them\n"
        f"{memory['n_instances']:,} x 50: a fit asks for {memory['of_features']:.2f} of its "
        f"features' memory"
    )
    save("fits", results, console)


if __name__ == "__main__":
    main()
