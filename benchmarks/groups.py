"""Time inference with required groups of classes, beside the same bags with single classes.

    python benchmarks/groups.py [--quick]

Bags of random priors with as many tags as named. Each tag is one class; or, in all bags, a group of
three, which share no class; or the first two groups share one. A ratio is of two times taken
alternately in the same run. The last column is for label sets that are prepared once, as in fits,
the others prepare them anew.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from measure import alternate, machine, save
from unbag.fitting.parts import Softmax
from unbag.union import Groups, UnionProblem, infer

N_CLASSES = 20
SIZES = (1, 4, 16, 64)
N_TAGS = (1, 2, 3, 5)


def label_sets(rng, n_bags, n_tags, kind):
    """Draw label sets: as numbers, and as groups where tags are groups."""
    classes = rng.permuted(np.tile(np.arange(N_CLASSES), (n_bags, 1)), axis=1)
    y = np.zeros((n_bags, N_CLASSES), np.int8)
    if kind == "single":
        np.put_along_axis(y, classes[:, :n_tags], 1, axis=1)
        return y, None
    groups = [classes[:, 3 * k : 3 * k + 3] for k in range(n_tags)]
    if kind == "overlapping":
        groups[1] = np.hstack([groups[0][:, :1], groups[1][:, 1:]])
    lists = np.stack(groups, axis=1).tolist()
    return y, Groups.of(lists, N_CLASSES)


def times(rng, n_instances, size, n_tags, rounds):
    """Return the best times of inference and of prepared inference, for each kind of tags."""
    n_bags = n_instances // size
    offsets = np.arange(n_bags + 1) * size
    logits = 2.0 * rng.normal(size=(n_instances, N_CLASSES))
    log_prior = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    by_class = np.ascontiguousarray(logits.T)
    softmax = Softmax(by_class)
    kinds = ["single", "disjoint"] + ["overlapping"] * (n_tags > 1)
    calls = {}
    for kind in kinds:
        y, groups = label_sets(rng, n_bags, n_tags, kind)
        problem = UnionProblem(offsets, y, groups=groups)

        def whole(y=y, groups=groups):
            infer(log_prior, offsets, y, groups=groups, n_jobs=1)

        def prepared(problem=problem):
            problem.infer(log_prior, n_jobs=1)

        calls[kind, "infer"], calls[kind, "prepared"] = whole, prepared
    del softmax
    return alternate(calls, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer bags and rounds")
    quick = parser.parse_args().quick
    n_instances, rounds = (2**13, 3) if quick else (2**15, 7)
    rng = np.random.default_rng(0)
    console = Console(width=100)
    table = Table(title=f"{n_instances:,} instances of {N_CLASSES} classes")
    for heading in ("instances", "tags", "groups", "infer, ms", "x single", "prepared, x single"):
        table.add_column(heading, justify="right")
    rows = []
    for size in SIZES:
        for n_tags in [n for n in N_TAGS if n <= size]:
            best = times(rng, n_instances, size, n_tags, rounds)
            for kind in ("disjoint", "overlapping"):
                if (kind, "infer") not in best:
                    continue
                ratios = [best[kind, how] / best["single", how] for how in ("infer", "prepared")]
                row = {
                    "instances": size, "tags": n_tags, "groups": kind,
                    "milliseconds": round(1e3 * best[kind, "infer"], 2),
                    "times_single": round(ratios[0], 2),
                    "prepared_times_single": round(ratios[1], 2),
                }  # fmt: skip
                table.add_row(*map(str, row.values()))
                rows.append(row)
    console.print(table)
    if not quick:
        save("groups", {"machine": machine(), "classes": N_CLASSES, "bags": rows}, console)


if __name__ == "__main__":
    main()
