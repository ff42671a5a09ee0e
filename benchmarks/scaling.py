"""Time an iteration as bags, instances and features grow, and fit the exponents.

One evaluation of the objective on one thread, the best of several rounds taken by turns, beside
what `unbag.cost` says. Counted is the time of the processor: where others want it too, long calls
are interrupted, and short ones are not. Linear growth is an exponent of one; with few features it
is less, since inference does not depend on them.

    python benchmarks/scaling.py [--quick]
"""

import argparse
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from measure import RESULTS, machine, save
from unbag import Bags, cost
from unbag.bags import offsets_of
from unbag.fitting import Training, one_blas_thread
from unbag.union import UnionProblem

N_CLASSES = 10
BASE = {"bags": 2000, "instances of a bag": 8, "features": 64}
# Where features begin to grow: from there on, the products are most of the work.
FIRST = {**BASE, "features": 256}
TIMES = (1, 2, 4, 8, 16)


def make(n_bags, size, n_features):
    """Bags of one size, with two labels each."""
    rng = np.random.default_rng(0)
    y = np.zeros((n_bags, N_CLASSES), dtype=int)
    y[np.arange(n_bags)[:, None], rng.integers(0, N_CLASSES, (n_bags, 2))] = 1
    X = rng.normal(size=(n_bags * size, n_features))
    return Bags(X, offsets_of(np.full(n_bags, size))), y


def evaluation(bags, y):
    """Return a call that evaluates the objective once."""
    problem = UnionProblem(bags.offsets, y)
    training = Training(bags, problem, np.ones(len(bags), dtype=bool), scaling=None)
    objective = training.objective()
    W = 0.1 * np.random.default_rng(1).normal(size=training.shape)
    return lambda: objective.statistics(W)


def timed(call):
    """Return the time of the processor that a call takes; it is made once before."""
    call()
    start = process_time()
    call()
    return process_time() - start


def exponent(sizes, seconds):
    """Fit a straight line to the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def grow(what, rounds):
    """Time an evaluation while one of the sizes grows."""
    given = [{**BASE, what: FIRST[what] * times} for times in TIMES]
    data = [make(*each.values()) for each in given]
    with one_blas_thread():
        calls = [evaluation(*each) for each in data]
        seconds = np.min([[timed(call) for call in calls] for _ in range(rounds)], axis=0).tolist()
    sizes = [each[what] for each in given]
    predicted = [cost(*each, n_jobs=1).seconds for each in data]
    return {
        "sizes": sizes, "seconds": seconds, "predicted": predicted,
        "exponent": exponent(sizes, seconds),
        "operations_exponent": exponent(sizes, [cost(*each).operations for each in data]),
    }  # fmt: skip


def plot(results, path):
    """Draw time over size, in multiples of the smallest, beside a straight line."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4.5), layout="constrained")
    for what, found in results.items():
        label = f"{what}: exponent {found['exponent']:.2f}"
        ratios = np.divide(found["seconds"], found["seconds"][0])
        axes.loglog(TIMES, ratios, "o-", label=label)
    axes.loglog(TIMES, TIMES, "--", color="grey", label="linear")
    axes.set(xlabel="times as many", ylabel="times as long", title="One iteration, one thread")
    axes.legend()
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 2 if parser.parse_args().quick else 8
    console = Console()
    results = {what: grow(what, rounds) for what in BASE}
    table = Table(title="Growth of one iteration")
    for column in ("what grows", "from", "to", "exponent", "counted", "measured over predicted"):
        table.add_column(column)
    for what, found in results.items():
        ratios = np.divide(found["seconds"], found["predicted"])
        table.add_row(
            what, str(found["sizes"][0]), str(found["sizes"][-1]), f"{found['exponent']:.3f}",
            f"{found['operations_exponent']:.3f}", f"{ratios.min():.2f} to {ratios.max():.2f}",
        )  # fmt: skip
    console.print(table)
    save("scaling", {"machine": machine(), **results}, console)
    plot(results, RESULTS / "scaling.png")
    console.print("Drawn in benchmarks/results/scaling.png")


if __name__ == "__main__":
    main()
