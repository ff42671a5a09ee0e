"""Time inference with required groups of classes, beside the same bags with single classes.

    OMP_NUM_THREADS=1 python benchmarks/groups.py [--quick]

Bags of random priors, with one to five tags. Each tag is a group of three classes, in all bags;
they share no class, or the first two share one. Two yardsticks: one class of each group is
required, and the others are forbidden (*single*), so that a third of the priors matter; or they are
optional (*allowed*), so that the same priors matter. Label sets are prepared once, as in fits.
`infer` is timed, and what fits use (`residual`).

Then what users call once, `unbag.union.infer`, which checks and packs label sets too: bags with one
or two single tags and a group of two or three classes, and bags of one instance with a group
(partial labels). The group is given in a list of lists, or as `Groups`. The yardsticks are the
same: one class of the group is required, and the others are forbidden or optional. On one thread,
and on as many as `infer` chooses. Threads take more of the processors' time, and `infer` counts
classes to choose: some of these bags it may give to one thread only without their groups.

Times are those of the processor, taken alternately in the same run, the best of several.
"""

import argparse
from functools import partial
from itertools import product
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from measure import machine, save
from unbag.union import Groups, UnionProblem, infer
from unbag.union.lanes import LANES

N_CLASSES = 20
SIZES = (1, 4, 16, 64)
N_TAGS = (1, 2, 3, 5)
KINDS = ("single", "allowed", "disjoint", "overlapping")
# Bags of the calls, how many instances each has, and single tags at least and at most.
CALLS = ((10_000, 10, 1, 2), (50_000, 1, 0, 0))


def label_sets(rng, n_bags, n_tags, kind):
    """Draw label sets: as numbers, and as groups where tags are groups."""
    classes = rng.permuted(np.tile(np.arange(N_CLASSES), (n_bags, 1)), axis=1)
    groups = [classes[:, 3 * k : 3 * k + 3] for k in range(n_tags)]
    y = np.zeros((n_bags, N_CLASSES), np.int8)
    if kind in ("single", "allowed"):
        for group in groups:
            np.put_along_axis(y, group, -1 if kind == "allowed" else 0, axis=1)
            np.put_along_axis(y, group[:, :1], 1, axis=1)
        return y, None
    if kind == "overlapping":
        groups[1] = np.hstack([groups[0][:, :1], groups[1][:, 1:]])
    return y, Groups.of(np.stack(groups, axis=1).tolist(), N_CLASSES)


def best_times(rng, n_instances, size, n_tags, rounds):
    """Return the best times of each kind of tags, of `infer` and of `residual`."""
    n_bags = n_instances // size
    offsets = np.arange(n_bags + 1) * size
    log_prior = random_priors(rng, n_instances)
    by_class = np.ascontiguousarray(log_prior.T)
    prior = np.append(np.exp(by_class).ravel(), np.zeros(LANES))
    nothing, one = np.zeros(n_instances), np.ones(n_instances)
    calls = {}
    for kind in KINDS if n_tags > 1 else KINDS[:3]:
        y, groups = label_sets(rng, n_bags, n_tags, kind)
        problem = UnionProblem(offsets, y, groups=groups)

        def infer(problem=problem):
            problem.infer(log_prior, n_jobs=1)

        def residual(problem=problem):
            problem.residual(by_class, prior.copy(), nothing, one)

        calls[kind, "infer"], calls[kind, "residual"] = infer, residual
    return best_of(calls, rounds)


def random_priors(rng, n_instances):
    logits = 2.0 * rng.normal(size=(n_instances, N_CLASSES))
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


def best_of(calls, rounds):
    """Return the best time of each call."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(3):
                start = process_time()
                call()
                best[name] = min(best[name], process_time() - start)
    return best


def best_times_of_one_call(rng, n_bags, size, fewest, most, rounds):
    """Return the best times of `unbag.union.infer` for groups, and for what they are measured by.

    Parameters
    ----------
    fewest, most : int
        Single tags beside the group.
    """
    offsets = np.arange(n_bags + 1) * size
    log_prior = random_priors(rng, n_bags * size)
    classes = rng.permuted(np.tile(np.arange(N_CLASSES), (n_bags, 1)), axis=1)
    n_members = rng.integers(2, 4, n_bags)
    is_member = np.arange(3) < n_members[:, None]
    is_tag = np.arange(most) < rng.integers(fewest, most + 1, n_bags)[:, None]
    y = np.zeros((n_bags, N_CLASSES), np.int8)
    np.put_along_axis(y, classes[:, 3 : 3 + most], is_tag.astype(np.int8), axis=1)
    single, allowed = y.copy(), y.copy()
    np.put_along_axis(allowed, classes[:, :3], -is_member.astype(np.int8), axis=1)
    for each in (single, allowed):
        np.put_along_axis(each, classes[:, :1], np.int8(1), axis=1)
    lists = [[own[:n]] for own, n in zip(classes.tolist(), n_members.tolist(), strict=True)]
    packed = Groups.of(lists, N_CLASSES)
    asked = {"single": (single, None), "allowed": (allowed, None), "lists": (y, lists)}
    asked["Groups"] = y, packed
    calls = {
        (name, n_jobs): partial(infer, log_prior, offsets, own, groups=groups, n_jobs=n_jobs)
        for name, (own, groups) in asked.items()
        for n_jobs in (1, None)
    }
    return best_of(calls, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer bags and rounds")
    quick = parser.parse_args().quick
    n_instances, rounds = (2**13, 3) if quick else (2**15, 25)
    rng = np.random.default_rng(0)
    console = Console(width=100)
    table = Table(title=f"{n_instances:,} instances of {N_CLASSES} classes")
    headings = ("instances", "tags", "groups", "infer, ms", "x single", "x allowed")
    for heading in (*headings, "residual, x single", "x allowed"):
        table.add_column(heading, justify="right")
    rows = []
    for size in SIZES:
        for n_tags in [n for n in N_TAGS if n <= size]:
            best = best_times(rng, n_instances, size, n_tags, rounds)
            for kind in KINDS[2:] if n_tags > 1 else KINDS[2:3]:
                row = {"instances": size, "tags": n_tags, "groups": kind,
                       "milliseconds": round(1e3 * best[kind, "infer"], 2)}  # fmt: skip
                for how in ("infer", "residual"):
                    for yardstick in ("single", "allowed"):
                        ratio = best[kind, how] / best[yardstick, how]
                        row[f"{how}_times_{yardstick}"] = round(ratio, 2)
                table.add_row(*map(str, row.values()))
                rows.append(row)
    console.print(table)
    table = Table(title=f"one call of infer, {N_CLASSES} classes")
    headings = "bags", "instances", "groups as", "threads", "infer, ms", "x single", "x allowed"
    for heading in headings:
        table.add_column(heading, justify="right")
    calls = []
    for n_bags, size, fewest, most in CALLS:
        n_bags = n_bags // 10 if quick else n_bags
        best = best_times_of_one_call(rng, n_bags, size, fewest, most, rounds)
        for given, n_jobs in product(("lists", "Groups"), (1, None)):
            row = {"bags": n_bags, "instances": size, "groups_as": given,
                   "threads": "as chosen" if n_jobs is None else n_jobs,
                   "milliseconds": round(1e3 * best[given, n_jobs], 2)}  # fmt: skip
            for yardstick in ("single", "allowed"):
                ratio = best[given, n_jobs] / best[yardstick, n_jobs]
                row[f"times_{yardstick}"] = round(ratio, 2)
            table.add_row(*map(str, row.values()))
            calls.append(row)
    console.print(table)
    if not quick:
        result = {"machine": machine(), "classes": N_CLASSES, "bags": rows, "calls": calls}
        save("groups", result, console)


if __name__ == "__main__":
    main()
