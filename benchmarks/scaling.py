"""Time an iteration as bags, instances and features grow, and fit the exponents.

One evaluation of the objective on one thread, the best of several rounds taken by turns. Counted
is the time of the processor: where others want it too, long calls are interrupted, and short ones
are not. Linear growth is an exponent of one; with few features it is less, since inference does
not depend on them.

    python benchmarks/scaling.py [--quick]
"""

import argparse
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from measure import machine, save
from unbag import Bags
from unbag._threads import one_blas_thread
from unbag.bags import offsets_of
from unbag.fitting.linear import InMemory, Objective
from unbag.fitting.parts import PartMaker
from unbag.fitting.scaling import Scale
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
    maker = PartMaker(UnionProblem(bags.offsets, y), np.arange(len(bags)))
    W = 0.1 * np.random.default_rng(1).normal(size=(y.shape[1], bags.n_features + 1))
    parts, scale = InMemory(bags).parts(maker, map), Scale.none(bags.n_features)
    objective = Objective(parts, scale, 1.0, W.shape)
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
    return {"sizes": sizes, "seconds": seconds, "exponent": exponent(sizes, seconds)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 2 if parser.parse_args().quick else 8
    console = Console()
    results = {what: grow(what, rounds) for what in BASE}
    table = Table(title="Growth of one iteration")
    for column in ("what grows", "from", "to", "exponent"):
        table.add_column(column)
    for what, found in results.items():
        first, *_, last = found["sizes"]
        table.add_row(what, str(first), str(last), f"{found['exponent']:.3f}")
    console.print(table)
    save("scaling", {"machine": machine(), **results}, console)


if __name__ == "__main__":
    main()
